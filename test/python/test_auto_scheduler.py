"""Schedules that nobody writes, by the auto-scheduler's names: sketches mean what was computed, sessions are recorded and go on,
users' rules and policies take part."""

import json
import os
import tempfile
import unittest
import warnings

import numpy as np

import tenon
import tenon as tvm
from tenon import auto_scheduler, autotvm, te, tir


@auto_scheduler.register_workload
def matmul(M, N, K):
    A = te.placeholder((M, K), name="A")
    B = te.placeholder((K, N), name="B")
    k = te.reduce_axis((0, K), name="k")
    C = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return [A, B, C]


@auto_scheduler.register_workload("layer")
def matmul_bias_relu(m, n, k):
    a, b, c = matmul(m, n, k)
    bias = te.placeholder((n,), name="bias")
    d = te.compute((m, n), lambda i, j: te.max(c[i, j] + bias[j], 0.0), name="D")
    return [a, b, bias, d]


@auto_scheduler.register_workload
def softmax(m, n):
    a = te.placeholder((m, n), name="A")
    k, l = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="l")
    top = te.compute((m,), lambda i: te.max(a[i, k], axis=k), name="T")
    e = te.compute((m, n), lambda i, j: te.exp(a[i, j] - top[i]), name="E")
    total = te.compute((m,), lambda i: te.sum(e[i, l], axis=l), name="S")
    return [a, te.compute((m, n), lambda i, j: e[i, j] / total[i], name="D")]


@auto_scheduler.register_workload
def conv(c, h, o):
    a, w = te.placeholder((c, h, h), name="A"), te.placeholder((o, c, 3, 3), name="W")
    rc, rh, rw = te.reduce_axis((0, c), name="rc"), te.reduce_axis((0, 3), name="rh"), te.reduce_axis((0, 3), name="rw")
    return [a, w, te.compute((o, h - 2, h - 2), lambda f, y, x: te.sum(a[rc, y + rh, x + rw] * w[f, rc, rh, rw], axis=[rc, rh, rw]), name="C")]


@auto_scheduler.register_workload
def column_sum(m, n):
    a = te.placeholder((m, n), name="A")
    k = te.reduce_axis((0, m), name="k")
    return [a, te.compute((n,), lambda j: te.sum(a[k, j], axis=k), name="C")]


def values(*shape):
    return np.random.default_rng(1).integers(-3, 4, shape).astype("float32")


def inputs_of(tensors):
    return [values(*(int(str(d)) for d in t.shape)) for t in tensors[:-1]]


def quick(trials, *callbacks, **kwargs):
    runner = auto_scheduler.LocalRPCMeasureContext(candidate_seconds=0.02, timeout=20).runner
    return auto_scheduler.TuningOptions(trials, runner=runner, verbose=0, measure_callbacks=list(callbacks), **kwargs)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = os.path.join(folder.name, "log.json")

    def records(self):
        with open(self.log) as file:
            return [json.loads(line)["record"] for line in file if '"record"' in line]


class Sketches(unittest.TestCase):
    CASES = (
        ("layer", [(7, 17, 5), (1, 1, 1), (9, 31, 13)]),
        ("matmul", [(8, 16, 3), (13, 7, 2)]),
        ("softmax", [(3, 37), (8, 64), (1, 1)]),
        ("conv", [(1, 3, 1), (4, 13, 16)]),
        ("column_sum", [(37, 5), (64, 16), (5000, 3)]),
    )

    def test_every_sketch_computes_what_was_asked(self):
        for name, sizes in self.CASES:
            for args in sizes:
                task = auto_scheduler.SearchTask(func=name, args=args, target="llvm")
                inputs = inputs_of(task.compute_dag.tensors)
                want = tenon.build(task.compute_dag.module, target="llvm")(*inputs).numpy()
                policy = auto_scheduler.SketchPolicy(task, sketch_max_num=16)
                for schedule in [*policy.generate_sketches(), *policy.sample_initial_population()[:3]]:
                    with self.subTest(name, args=args, trace=str(schedule.trace)):
                        got = tenon.build(schedule, target="llvm")(*inputs).numpy()
                        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)

    def test_code_for_gpus_is_made(self):
        for target in ("cuda -arch=sm_80", "opencl"):
            for name, args in (("matmul", (64, 64, 64)), ("softmax", (64, 128)), ("column_sum", (512, 4))):
                task = auto_scheduler.SearchTask(func=name, args=args, target=target)
                for schedule in auto_scheduler.SketchPolicy(task).generate_sketches():
                    with self.subTest(name, target=target, trace=str(schedule.trace)):
                        source = tenon.build(schedule, target=target).get_source()
                        self.assertIn("__global__" if target.startswith("cuda") else "__kernel", source)


class Tuning(Files):
    def test_the_snippet_of_the_tutorial(self):
        for target in ("llvm", "cuda"):
            task = auto_scheduler.SearchTask(func=matmul, args=(64, 64, 64), target=target)
            tune_option = quick(6, auto_scheduler.RecordToFile(self.log))
            task.tune(tune_option)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                sch, args = task.apply_best(self.log)
            if target == "llvm":
                self.assertEqual(caught, [])
                f = tvm.build(sch, args, target)
                x, y = values(64, 64), values(64, 64)
                np.testing.assert_allclose(f(x, y).numpy(), x @ y, rtol=1e-4)
                self.assertIn("func @", str(tvm.lower(sch, args, simple_mode=True)))
            elif not tenon.cuda(0).exist:
                self.assertIn("predicted best", str(caught[-1].message))
            self.assertIn("threadIdx" if target == "cuda" else "split", task.print_best(self.log))

    def test_the_other_snippet(self):
        search_policy = auto_scheduler.SketchPolicy(sketch_max_num=100, evolutionary_search_num=3000)
        cfg = autotvm.get_config()
        name = "auto_scheduler_test_intrin"
        text = f"func @{name}(A: f32[4], out B: f32[4]) kind device {{\n  for i in 0..4 {{\n    B[i] = A[i] + 1f32\n  }}\n}}\n"
        with tvm.target.Target("cuda"):
            cfg.define_knob("use_tensorcore_2", [0, 1])
            if not cfg["use_tensorcore_2"].val:
                intrin = tvm.tir.TensorIntrin.register(name, text, text)
                self.assertEqual(intrin.name, name)
        self.assertIsNone(search_policy.search_task)
        task = auto_scheduler.SearchTask(func=matmul, args=(4, 4, 4), target="llvm")
        self.assertIs(search_policy.bind(task).search_task, task)

    def test_sessions_are_recorded_and_go_on(self):
        task = auto_scheduler.SearchTask(func=matmul, args=(32, 32, 32), target="llvm")
        task.tune(quick(6, auto_scheduler.RecordToFile(self.log)))
        first = [i.state.line for i, _ in auto_scheduler.RecordReader(self.log)]
        self.assertEqual(len(first), 6)
        policy = auto_scheduler.SketchPolicy(task, init_search_callbacks=[auto_scheduler.PreloadMeasuredStates(self.log)])
        task.tune(quick(6, auto_scheduler.RecordToFile(self.log)), policy)
        points = [(r["algorithm"], r["point"]) for r in self.records()]
        self.assertEqual(len(points), 12)
        self.assertEqual(len(set(points)), 12, "a point was measured twice")
        inp, result = auto_scheduler.load_best_record(self.log, task.workload_key)
        self.assertEqual(inp.task.kernel, task._task(policy).kernel)
        self.assertEqual(result.costs[0], min(r.costs[0] for _, r in auto_scheduler.load_records(self.log) if r.error_no == 0))

    def test_a_search_looks_at_many_points(self):
        """What is tried first is predicted to be as fast as the best of thousands, not what was drawn first."""
        task = auto_scheduler.SearchTask(func=matmul, args=(96, 128, 64), target="llvm")
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log.json")
            task.tune(quick(1, auto_scheduler.RecordToFile(log)))
            inner = task._task(task._policy)
            first = inner.read_trials(log)[0][0].pick
        self.assertLessEqual(inner.price(first), 1.001 * inner.price(inner.predicted(0, 2048)))

    def test_kernels_teach_each_other(self):
        """A file that knows another kernel of this machine is learned from: what is tried is not what would be without it."""
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log.json")
            auto_scheduler.SearchTask(func=matmul, args=(96, 128, 64), target="llvm").tune(quick(12, auto_scheduler.RecordToFile(log)))
            lines = []
            for line in map(json.loads, open(log)):
                record = line.get("record")
                if record and record["outcome"] == "ok":
                    # As if half of them were ten times as fast as predicted, and the others as slow.
                    record["seconds"] = record["predicted"] * (0.1 if len(lines) % 2 else 10)
                lines.append(json.dumps(line) + "\n")
            with open(log, "w") as file:
                file.writelines(lines)
            tried = []
            for taught in (False, True):
                record = os.path.join(folder, f"{taught}.json")
                task = auto_scheduler.SearchTask(func=matmul, args=(80, 128, 64), target="llvm")
                model = auto_scheduler.XGBModel(model_file=log) if taught else None
                task.tune(quick(4, auto_scheduler.RecordToFile(record)), auto_scheduler.SketchPolicy(task, model))
                tried.append([state.state.algorithm + state.state.point for state, _ in auto_scheduler.load_records(record)])
            self.assertEqual(len(tried[1]), 4)
            self.assertNotEqual(tried[0], tried[1])

    def test_a_search_is_the_same_each_time(self):
        seen = []
        for _ in range(2):
            task = auto_scheduler.SearchTask(func="softmax", args=(16, 64), target="llvm")
            policy = auto_scheduler.SketchPolicy(task, seed=3)
            seen.append([str(s.trace) for s in policy.sample_initial_population()])
        self.assertEqual(*seen)

    def test_a_log_of_something_else(self):
        with open(self.log, "w") as file:
            file.write('{"i": [["[\\"abc\\"]", "llvm"], [[], []]], "r": [[0.1], 0, 1, 1], "v": "v0.6"}\n{"tenon_log": 1, "rec\n')
        task = auto_scheduler.SearchTask(func=matmul, args=(8, 8, 8), target="llvm")
        with warnings.catch_warnings(record=True) as caught, self.assertRaisesRegex(RuntimeError, "cannot find any valid schedule"):
            warnings.simplefilter("always")
            task.apply_best(self.log)
        self.assertEqual(len(caught), 2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(list(auto_scheduler.RecordReader(self.log)), [])
        self.assertIn("log.json:1: passed over: it is a record of Ansor's, whose hash keys cannot be recreated", str(caught[0].message))
        self.assertIn("log.json:2: passed over: it is broken", str(caught[1].message))
        with self.assertRaises(Exception):
            task.apply_best(self.log + ".not")

    def test_schedulers_of_tasks(self):
        tasks = [auto_scheduler.SearchTask(func=matmul, args=(n, n, n), target="llvm") for n in (8, 16)]
        auto_scheduler.TaskScheduler(tasks, [1, 2]).tune(quick(6, auto_scheduler.RecordToFile(self.log)), search_policy="sketch.xgb")
        for task in tasks:
            task.apply_best(self.log)
        with self.assertRaisesRegex(ValueError, "no search policy 'best'"):
            auto_scheduler.TaskScheduler(tasks).tune(quick(1), search_policy="best")


class Rules(Files):
    def test_a_rule_of_ones_own(self):
        def meets(policy, state, block):
            self.assertIsInstance(state, tir.Schedule)
            return auto_scheduler.PreloadCustomSketchRule.APPLY_AND_SKIP_REST if block == "C" else auto_scheduler.PreloadCustomSketchRule.PASS

        def apply(policy, state, block):
            i = state.get_loops(block)[0]
            state.decide("mine", [1, 2, 4], 2)
            state.split(i, [None, "$mine"])
            return [[state, int(block) - 1]]

        task = auto_scheduler.SearchTask(func=matmul, args=(8, 8, 8), target="llvm")
        rule = auto_scheduler.PreloadCustomSketchRule(meets, apply, "mine")
        policy = auto_scheduler.SketchPolicy(task, init_search_callbacks=[rule])
        (sketch,) = policy.generate_sketches()
        self.assertIn('decide("mine", [1, 2, 4], 2)', str(sketch.trace))
        task.tune(quick(5, auto_scheduler.RecordToFile(self.log)), policy)
        points = {r["point"] for r in self.records()}
        self.assertEqual(points, {"{mine: 1}", "{mine: 2}", "{mine: 4}"})
        sch, args = task.apply_best(self.log)
        x, y = values(8, 8), values(8, 8)
        np.testing.assert_array_equal(tenon.build(sch, args, "llvm")(x, y).numpy(), x @ y)

    def test_mistakes_of_a_rule_are_named(self):
        task = auto_scheduler.SearchTask(func=matmul, args=(8, 8, 8), target="llvm")

        def apply(policy, state, block):
            state.split("nonsense", [None, 4])

        rule = auto_scheduler.PreloadCustomSketchRule(lambda *_: 1, apply, "wrong")
        with self.assertRaisesRegex(ValueError, "nonsense"):
            auto_scheduler.SketchPolicy(task, init_search_callbacks=[rule]).generate_sketches()


class Names(unittest.TestCase):
    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, "there is no workload 'none'"):
            auto_scheduler.SearchTask(func="none", args=(), target="llvm")
        with self.assertRaisesRegex(ValueError, "there is a workload 'matmul' already"):
            auto_scheduler.register_workload("matmul", lambda n: n)
        with self.assertRaisesRegex(ValueError, "no parameter 'eps'"):
            auto_scheduler.SketchPolicy(params={"eps": 1})
        with self.assertRaisesRegex(NotImplementedError, "auto_scheduler.LocalRunner"):
            auto_scheduler.RPCRunner("board", "0.0.0.0", 9190)
        with self.assertRaisesRegex(ValueError, "open sizes"):
            n = te.var("n")
            a = te.placeholder((n,), name="A")
            auto_scheduler.ComputeDAG([a, te.compute((n,), lambda i: a[i] + 1, name="B")])

    def test_parameters_of_a_machine(self):
        params = auto_scheduler.HardwareParams(num_cores=2)
        task = auto_scheduler.SearchTask(func=matmul, args=(8, 8, 8), target="llvm", hardware_params=params)
        self.assertIn("-num-cores=2", str(task.target))
        for key in ("eps_greedy", "evolutionary_search_population", "gpu_multi_level_tiling_structure"):
            self.assertIn(key, auto_scheduler.SketchPolicy.DEFAULT_PARAMS)


if __name__ == "__main__":
    unittest.main()
