"""Templates by AutoTVM's names: what they leave open, how they are tuned, what logs say."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np

import tenon
from tenon import autotvm, te


@autotvm.template("test/matmul")
def matmul(n, m, k, dtype="float32"):
    a, b = te.placeholder((n, k), dtype, name="A"), te.placeholder((k, m), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = te.create_schedule(c.op)
    y, x = s[c].op.axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2, filter=lambda e: e.size[-1] <= 16)
    cfg.define_knob("unroll", [False, True])
    cfg.add_flop(2 * n * m * k)
    yo, yi = cfg["tile_y"].apply(s, c, y)
    xo, xi = cfg["tile_x"].apply(s, c, x)
    s[c].reorder(yo, xo, r, yi, xi)
    if cfg["unroll"].val:
        s[c].unroll(yi)
        if cfg["tile_y"].size[-1] > 8:
            cfg.raise_error("too much to unroll")
    s[c].vectorize(xi)
    return s, [a, b, c]


@autotvm.template("test/refuses")
def refuses(n):
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    s = te.create_schedule(b.op)
    cfg = autotvm.get_config()
    cfg.define_split("t", b.op.axis[0], num_outputs=2)
    _, inner = cfg["t"].apply(s, b, b.op.axis[0])
    s[b].vectorize(inner)
    lanes = cfg["t"].size[-1]
    if lanes > 8:
        cfg.raise_error(f"a vector of {lanes} is too long")
    if lanes == n:
        raise RuntimeError("no schedule")
    return s, [a, b]


def task_of(*args):
    return autotvm.task.create("test/matmul", args=args, target="llvm")


FAST = autotvm.measure_option(builder="local", runner=autotvm.LocalRunner(candidate_seconds=0.02, timeout=20))


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def path(self, name):
        return os.path.join(self.dir, name)


class Spaces(unittest.TestCase):
    def test_a_task_knows_its_space(self):
        task = task_of(32, 32, 16)
        self.assertEqual(len(task.config_space), 6 * 5 * 2)
        self.assertEqual(task.config_space.dims, [6, 5, 2])
        self.assertEqual(task.flop, 2 * 32 * 32 * 16)
        config = task.config_space.get(7)
        self.assertEqual((config.index, config["tile_y"].size, config["tile_x"].size), (7, [-1, 2], [-1, 2]))
        self.assertEqual(config.to_json_dict()["entity"][2], ["unroll", "ot", False])
        self.assertEqual(task.workload, ("test/matmul", 32, 32, 16))
        with self.assertRaisesRegex(IndexError, "60 configs"):
            task.config_space.get(60)

    def test_outside_of_templates_there_are_first_candidates(self):
        cfg = autotvm.get_config()
        with tenon.target.Target("cuda"):
            cfg.define_knob("use_tensorcore", [0, 1])
            self.assertEqual(cfg["use_tensorcore"].val, 0)
        self.assertEqual(cfg.axis(7).length, 7)

    def test_every_policy(self):
        cfg = autotvm.ConfigSpace()
        cfg.define_split("factors", cfg.axis(12), num_outputs=3)
        cfg.define_split("power2", cfg.axis(12), policy="power2", num_outputs=2)
        cfg.define_split("verbose", cfg.axis(12), policy="verbose", num_outputs=2, max_factor=6)
        cfg.define_split("candidate", cfg.axis(12), policy="candidate", candidate=[[-1, 5], [-1, 3]])
        cfg.define_reorder("order", [1, 2, 3], "all")
        cfg.define_reorder("two", [1, 2], "candidate", candidate=[[1, 0]])
        cfg.define_annotate("ann", [1, 2], "try_unroll_vec")
        cfg.define_annotate("gpu", [1, 2], "bind_gpu")
        sizes = {name: len(t) for name, t in cfg.space_map.items()}
        self.assertEqual(sizes, {"factors": 18, "power2": 4, "verbose": 5, "candidate": 2, "order": 6, "two": 1, "ann": 8, "gpu": 1})

    def test_mistakes_are_named_where_they_are_made(self):
        cfg = autotvm.ConfigSpace()
        with self.assertRaisesRegex(ValueError, "knob 'none': there is nothing to choose from"):
            cfg.define_knob("none", [])
        with self.assertRaisesRegex(ValueError, r"'seven': \[-1, 9\] does not split a loop of 7 into 2"):
            cfg.define_split("seven", cfg.axis(7), policy="candidate", candidate=[[-1, 9]])
        with self.assertRaisesRegex(ValueError, "split 'none': expected an extent"):
            cfg.define_split("none", cfg.axis(0))
        with self.assertRaisesRegex(ValueError, "no policy 'best'"):
            cfg.define_split("s", cfg.axis(8), policy="best")
        with self.assertRaisesRegex(ValueError, r"\[0, 0\] is no order of 2 loops"):
            cfg.define_reorder("o", [1, 2], "candidate", candidate=[[0, 0]])
        with self.assertRaisesRegex(ValueError, "no policy 'try_fuse'"):
            cfg.define_annotate("a", [1], "try_fuse")

        @autotvm.template("test/raises")
        def raises(n):
            raise ZeroDivisionError(f"of {n}")

        with self.assertRaisesRegex(ZeroDivisionError, "template 'test/raises': of 3"):
            autotvm.task.create("test/raises", args=(3,), target="llvm")
        with self.assertRaisesRegex(ValueError, "there is no template 'test/none'"):
            autotvm.task.create("test/none", args=(), target="llvm")
        with self.assertRaisesRegex(ValueError, "there is a template 'test/matmul' already"):
            autotvm.template("test/matmul")(lambda n: n)
        with self.assertRaisesRegex(NotImplementedError, "autotvm.LocalRunner"):
            autotvm.RPCRunner("board", "0.0.0.0", 9190)


class Tuning(Files):
    def tuned(self, tuner, trials, name="log", task=None):
        task = task or task_of(32, 32, 32)
        made = tuner(task)
        made.tune(n_trial=trials, measure_option=FAST, callbacks=[autotvm.callback.log_to_file(self.path(name))])
        return made

    def test_every_tuner(self):
        t = autotvm.tuner
        for cls in (t.XGBTuner, t.GATuner, t.RandomTuner, t.GridSearchTuner, t.DropletTuner):
            with self.subTest(cls.__name__):
                tuner = self.tuned(cls, 5, cls.__name__)
                rows = list(autotvm.record.load_from_file(self.path(cls.__name__)))
                indices = [i.config.index for i, _ in rows]
                self.assertEqual(len(set(indices)), len(indices), "a config was told of twice")
                tried = [r for _, r in rows if r.error_no != autotvm.MeasureErrorNo.INSTANTIATION_ERROR]
                self.assertEqual(len(tried), 5)
                self.assertIsNotNone(tuner.best_config)
                best = min(r.mean for _, r in rows if r.error_no == 0)
                self.assertGreater(tuner.best_seconds, 0)
                self.assertLess(best, 1e9)

    def test_a_policy_of_ones_own(self):
        asked = []

        class Backwards(autotvm.tuner.Tuner):
            def next_batch(self, batch_size):
                first = len(self.task.config_space) - 1 - len(asked)
                picks = list(range(first, first - batch_size, -1))
                asked.extend(picks)
                return picks

            def update(self, inputs, results):
                self.told = getattr(self, "told", 0) + len(inputs)

        tuner = self.tuned(Backwards, 3)
        indices = [i.config.index for i, _ in autotvm.record.load_from_file(self.path("log"))]
        self.assertEqual(indices, [59, 58, 57])
        self.assertEqual(tuner.told, 3)

    def test_configs_without_a_schedule_are_failures(self):
        task = autotvm.task.create("test/refuses", args=(64,), target="llvm")
        refused = {4: "a vector of 16 is too long", 5: "a vector of 32 is too long", 6: "no schedule"}

        class InOrder(autotvm.tuner.Tuner):
            def has_next(self):
                return not hasattr(self, "asked")

            def next_batch(self, batch_size):
                self.asked = range(7)
                return self.asked

        for cls in (autotvm.tuner.GridSearchTuner, autotvm.tuner.XGBTuner, InOrder, autotvm.tuner.GridSearchTuner):
            with self.subTest(cls.__name__):
                log, told, bar = io.StringIO(), [], io.StringIO()
                callbacks = [
                    lambda _, inputs, results: told.extend((i.config.index, r) for i, r in zip(inputs, results)),
                    autotvm.callback.log_to_file(log),
                    autotvm.callback.progress_bar(4),
                ]
                with contextlib.redirect_stdout(bar):
                    cls(task).tune(n_trial=20, measure_option=FAST, callbacks=callbacks)
                self.assertEqual(sorted(index for index, _ in told), list(range(7)))
                errors = {index: r for index, r in told if r.error_no != 0}
                self.assertEqual({index: r.error_no for index, r in errors.items()}, {4: 1, 5: 1, 6: 2})
                for index, message in refused.items():
                    self.assertIn(message, str(errors[index].costs[0]))
                lines = [autotvm.record.decode(line) for line in log.getvalue().splitlines()]
                self.assertEqual([i.config.index for i, _ in lines], [index for index, _ in told])
                self.assertEqual({i.config.index: (r.costs, r.error_no) for i, r in lines if r.error_no}, {4: ((1e9,), 1), 5: ((1e9,), 1), 6: ((1e9,), 2)})
                if cls is not InOrder:  # which tries them
                    self.assertEqual(bar.getvalue().count("4/4"), 1)

    def test_the_best_of_a_log_is_applied(self):
        self.tuned(autotvm.tuner.RandomTuner, 6)
        rows = [r for r in autotvm.record.load_from_file(self.path("log")) if r[1].error_no == 0]
        best = min(rows, key=lambda r: r[1].mean)[0].config.to_json_dict()["entity"]
        autotvm.record.pick_best(self.path("log"), self.path("best"))
        self.assertEqual(len(list(autotvm.record.load_from_file(self.path("best")))), 1)
        x, y = np.random.rand(32, 32).astype("float32"), np.random.rand(32, 32).astype("float32")
        for log in ("log", "best"):
            with autotvm.apply_history_best(self.path(log)), tenon.target.Target("llvm"):
                s, args = matmul(32, 32, 32)
                f = tenon.build(s, args)
            np.testing.assert_allclose(f(x, y).numpy(), x @ y, rtol=1e-4, atol=1e-4)
            inner = dict((name, value) for name, _, value in best)["tile_x"][-1]
            self.assertIn(f"0..{inner}", str(tenon.lower(s, args)))
        with autotvm.apply_history_best(self.path("log")), self.assertWarnsRegex(UserWarning, "first candidates"):
            matmul(16, 16, 16)

    def test_records_are_of_targets_without_tvms_own_options(self):
        task = task_of(32, 32, 32)
        records = []
        for index, cost, target in ((7, 2.0, "llvm -keys=cpu -mcpu=core-avx2 -link-params=0"), (0, 1.0, "llvm -keys=cpu -mcpu=x86-64")):
            result = autotvm.MeasureResult((cost,), 0, 0.1, 0.0)
            records.append((autotvm.MeasureInput(target, task, task.config_space.get(index)), result))
        for target, tiles in (("llvm -mcpu=core-avx2", [-1, 2]), ("llvm -mcpu=x86-64", [-1, 1])):
            config = autotvm.apply_history_best(records).query(tenon.target.Target(target), task.workload)
            self.assertEqual(config["tile_y"].size, tiles)

    def test_history_is_tried_first(self):
        self.tuned(autotvm.tuner.RandomTuner, 6)
        rows = [r for r in autotvm.record.load_from_file(self.path("log")) if r[1].error_no == 0]
        best = min(rows, key=lambda r: r[1].mean)[0].config.index
        tuner = autotvm.tuner.XGBTuner(task_of(32, 32, 32))
        tuner.load_history(autotvm.record.load_from_file(self.path("log")))
        tuner.tune(n_trial=1, measure_option=FAST, callbacks=[autotvm.callback.log_to_file(self.path("again"))])
        (again,) = autotvm.record.load_from_file(self.path("again"))
        self.assertEqual(again[0].config.index, best)

    def test_a_killed_session_leaves_whole_lines(self):
        script = self.path("tune.py")
        with open(script, "w") as file:
            file.write(
                f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
                "import test_autotvm as t\nfrom tenon import autotvm\n"
                f"autotvm.tuner.RandomTuner(t.task_of(32, 32, 32)).tune(60, t.FAST, callbacks=[autotvm.callback.log_to_file({self.path('log')!r})])\n"
            )
        for seconds in (1.5, 2.0, 2.5):
            process = subprocess.Popen([sys.executable, script])
            try:
                process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if os.path.exists(self.path("log")):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for _, result in autotvm.record.load_from_file(self.path("log")):
                    self.assertGreater(result.costs[0], 0)


LINE = (
    '{"input":["llvm -keys=cpu","conv2d_NCHWc.x86",[["TENSOR",[1,3,224,224],"float32"],["TENSOR",[64,3,7,7],"float32"],[2,2],[3,3,3,3],[1,1],'
    '"NCHW","NCHW","float32"],{}],"config":{"index":172,"code_hash":null,"entity":[["tile_ic","sp",[-1,1]],["tile_oc","sp",[-1,4]],'
    '["tile_ow","sp",[-1,1]],["unroll_kw","ot",false]]},"result":[[0.0045],0,0.53,1676344759.5],"version":0.2,"tvm_version":"0.10.0"}'
)


class Logs(Files):
    def test_a_line_of_autotvm(self):
        inp, result = autotvm.record.decode(LINE)
        self.assertEqual(inp.task.workload[0], "conv2d_NCHWc.x86")
        self.assertEqual(inp.task.workload[1], ("TENSOR", (1, 3, 224, 224), "float32"))
        self.assertEqual(inp.config["tile_oc"].size, [-1, 4])
        self.assertEqual((result.mean, result.error_no), (0.0045, 0))
        again = json.loads(autotvm.record.encode(inp, result))
        given = json.loads(LINE)
        for key in ("input", "config", "result", "version"):
            self.assertEqual(again[key], given[key])

    def test_a_failure_is_one(self):
        _, result = autotvm.record.decode(LINE.replace("[0.0045],0", "[1000000000.0],0"))
        self.assertNotEqual(result.error_no, 0)

    def test_what_is_no_record_is_passed_over_by_name(self):
        lines = [LINE, "{\"input\": [", "gASVCgAAAAAAAAB9lC4=\tgASV", LINE.replace('"version":0.2', '"version":0.1'), '{"i": [1], "r": [[1], 0, 1, 1], "v": "v0.6"}', "[1]"]
        with open(self.path("log"), "w") as file:
            file.write("\n".join(lines))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rows = list(autotvm.record.load_from_file(self.path("log")))
        self.assertEqual(len(rows), 1)
        texts = [str(w.message) for w in caught]
        for number, text in ((2, "it is broken"), (3, "pickles"), (4, "version 0.1"), (5, "Ansor"), (6, "no record")):
            self.assertTrue(any(f"log:{number}: passed over: " in t and text in t for t in texts), (number, texts))

    def test_pickles_are_refused(self):
        with self.assertRaisesRegex(ValueError, "pickles"):
            autotvm.record.decode("gASV", protocol="pickle")
        with self.assertRaisesRegex(ValueError, "pickles"):
            autotvm.callback.log_to_file("x", protocol="pickle")


if __name__ == "__main__":
    unittest.main()
