import hashlib
import json
import os
import pathlib
import random
import signal
import stat
import subprocess
import time

import onnx

import harness
from harness import Case, DONE, INPUT, USAGE

# Two layers of bert-tiny's width: a product with several algorithms, which takes some microseconds.
KERNEL = """graph @g(%0 "x": f32[64, 128], %1 "w": f32[128, 96]) {
  %2: f32[64, 96] = matmul(%0, %1) "mm"
  return %2 "y"
}
"""


FUNCTION = """func @product(A: f32[24, 16], B: f32[16, 40], out C: f32[24, 40]) {
  for i in 0..24, j in 0..40, k in 0..16 {
    block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) fp: contract {
      reads A[vi, vk], B[vk, vj]; writes C[vi, vj]
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    }
  }
}
"""


def sha(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


class Tuning(Case):
    """Measuring kernels into logs, and compiling by them."""

    def tune(self, model, *args, log="tuning.log", **kwargs):
        """Runs `tenon tune` and returns the summary."""
        out, _ = self.tenon("tune", model, "--log", self.path(log), "--candidate-time", "0.05", "--json", *args, **kwargs)
        return json.loads(out.splitlines()[-1])

    def kernel(self, text=KERNEL):
        path = self.dir / "kernel.txt"
        path.write_text(text)
        return str(path)

    def records(self, log="tuning.log"):
        out, _ = self.tenon("log", "export", self.path(log))
        lines = map(json.loads, out.splitlines())
        return [line["record"] for line in lines if "record" in line]

    def raced(self, factor, log="tuning.log"):
        """The log's lines, in which a whole network took `factor` times as long by its records as without them."""
        lines = []
        for line in map(json.loads, self.tenon("log", "export", self.path(log))[0].splitlines()):
            record = line.get("record", {})
            if record.get("algorithm") == "network":
                record["seconds"] = record["predicted"] * factor
            lines.append(json.dumps(line) + "\n")
        return "".join(lines)

    def test_network(self):
        """Tuned, compiled by the log, the same bytes twice; the library says which records it follows and answers as before."""
        model = self.model("mlp-4-2")
        summary = self.tune(model, "--trials", "3")
        self.assertEqual(summary["trials"], 3)
        self.assertEqual(sum(task["trials"] for task in summary["tasks"]), 3)
        self.assertEqual(summary["failures"], 0, summary)
        for name in ["a.so", "b.so"]:
            self.compile("mlp-4-2", name, "--log", self.path("tuning.log"), "--soname", "m.so")
        self.assertEqual(sha(self.path("a.so")), sha(self.path("b.so")))
        out, _ = self.tenon("inspect", self.path("a.so"), "--json")
        used = json.loads(out)["tuning"]
        # Where the whole network was found slower by its records it is planned without.
        raced = summary["network"]
        self.assertNotIn("trouble", raced or {})
        self.assertEqual(bool(used), not raced or raced["kept"])
        ids = {r["id"] for r in self.records()}
        for record in used:
            self.assertIn(record["record"], ids)
            self.assertTrue(record["best"], record)
        self.compile("mlp-4-2", "plain.so")
        answers = []
        for name in ["a.so", "plain.so"]:
            self.tenon("run", self.path(name), "--fill", "random", "-o", self.path(name + ".npz"))
            answers.append(dict(harness.np.load(self.path(name + ".npz"))))
        for key, value in answers[0].items():
            harness.np.testing.assert_allclose(value, answers[1][key], rtol=1e-4, atol=1e-5)

    def test_a_slower_network_is_planned_without(self):
        """Records by which the whole network took longer than without them are not followed, and the library says none."""
        self.tune(self.model("mlp-4-2"), "--trials", "3")
        for slower in (True, False):
            log = self.path(f"{slower}.jsonl")
            pathlib.Path(log).write_text(self.raced(2 if slower else 1))
            error = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("a.so"), "--log", log)[1]
            self.assertEqual("planned without" in error, slower, error)
            used = json.loads(self.tenon("inspect", self.path("a.so"), "--json")[0])["tuning"]
            self.assertEqual(used == [], slower)

    def layer(self):
        """A product with a rectifier behind it: one kernel, which costs little more in parts. Its matrix is a group of constants,
        which no call computes."""
        helper, real = onnx.helper, onnx.TensorProto.FLOAT
        weight = harness.np.random.default_rng(1).standard_normal((512, 384)).astype(harness.np.float32)
        graph = helper.make_graph(
            [helper.make_node("Abs", ["v"], ["a"]), helper.make_node("Sqrt", ["a"], ["w"]),
             helper.make_node("MatMul", ["x", "w"], ["product"], name="product"), helper.make_node("Relu", ["product"], ["y"], name="relu")],
            "layer", [helper.make_tensor_value_info("x", real, [128, 512])], [helper.make_tensor_value_info("y", real, [128, 384])],
            [onnx.numpy_helper.from_array(weight, "v")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.path("layer.onnx"))
        return self.path("layer.onnx")

    def test_fusion(self):
        """A group that costs about the same in parts is raced both ways, once, and a log that says that the parts are faster is
        followed: by plans, and by tuning, which then tunes the parts."""
        model = self.layer()
        summary = self.tune(model, "--trials", "2")
        self.assertEqual([(f["result"], f["nodes"]) for f in summary["fusions"]], [("y", 1)])
        self.assertEqual(self.tune(model, "--trials", "2")["fusions"], [], "it is known")
        self.assertEqual(len([r for r in self.records() if r["algorithm"] == "fusion"]), 1)
        lines = list(map(json.loads, self.tenon("log", "export", self.path("tuning.log"))[0].splitlines()))
        answers, kernels = [], []
        for parts in (False, True):
            kept = []
            for line in lines:
                record = line.get("record", {})
                if record.get("algorithm") == "fusion":
                    record.update({"leader": parts, "seconds": record["predicted"] * (0.5 if parts else 1)})
                if record.get("algorithm") != "network":
                    kept.append(json.dumps(line) + "\n")
            log = self.path(f"{parts}.jsonl")
            pathlib.Path(log).write_text("".join(kept))
            library = self.path(f"{parts}.so")
            self.tenon("compile", model, "-o", library, "--verify-each", "--log", log)
            kernels.append(len(json.loads(self.tenon("inspect", library, "--json")[0])["kernels"]))
            self.tenon("run", library, "--fill", "random", "-o", self.path("out.npz"))
            answers.append(dict(harness.np.load(self.path("out.npz"))))
        self.assertEqual(kernels[0] + 1, kernels[1])
        for key, value in answers[0].items():
            harness.np.testing.assert_allclose(value, answers[1][key], rtol=1e-4, atol=1e-4)
        self.tenon("log", "merge", self.path("parts.log"), self.path("True.jsonl"))
        of_parts = self.tune(model, "--trials", "1", log="parts.log")
        whole, product = ({task["kernel"] for task in s["tasks"]} for s in (summary, of_parts))
        self.assertFalse(whole & product, "the product by itself is another kernel")

    def test_relayouts(self):
        """What lays values out anew between kernels is measured, once; libraries say which of its records they follow."""
        helper, real = onnx.helper, onnx.TensorProto.FLOAT
        draw = harness.np.random.default_rng(1)
        weights = [draw.standard_normal((64, 64, 3, 3)).astype(harness.np.float32) for _ in range(2)]
        nodes = [helper.make_node("Conv", [x, w], [y], pads=[1, 1, 1, 1], name=y) for x, w, y in (("x", "v", "h"), ("h", "w", "y"))]
        image = [1, 64, 14, 14]
        graph = helper.make_graph(nodes, "convs", [helper.make_tensor_value_info("x", real, image)], [helper.make_tensor_value_info("y", real, image)],
                                  [onnx.numpy_helper.from_array(w, name) for w, name in zip(weights, "vw")])
        model = self.path("convs.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
        target = ("--target", "llvm -mcpu=x86-64-v3") if os.uname().machine == "x86_64" else ()
        summary = self.tune(model, "--trials", "3", *target)
        self.assertGreater(summary["relayouts"], 0, summary)
        of_relayouts = [r for r in self.records() if r["algorithm"] == "definition"]
        self.assertEqual(len(of_relayouts), summary["relayouts"])
        for record in of_relayouts:
            self.assertEqual(record["outcome"], "ok", record)
        self.tune(model, "--trials", "3", *target)
        kernels = [r["kernel"] for r in self.records() if r["algorithm"] == "definition"]
        self.assertEqual(len(kernels), len(set(kernels)), "a relayout was measured twice")
        lines = self.tenon("log", "export", self.path("tuning.log"))[0].splitlines()
        answers = []
        for factor in (1, 1000):
            kept = list(map(json.loads, lines))
            for line in kept:
                record = line.get("record", {})
                if record.get("algorithm") == "definition":
                    record["seconds"] *= factor
            log = self.path(f"{factor}.jsonl")
            pathlib.Path(log).write_text("".join(json.dumps(line) + "\n" for line in kept if line.get("record", {}).get("algorithm") != "network"))
            library = self.path(f"{factor}.so")
            self.tenon("compile", model, "-o", library, "--log", log, *target)
            self.tenon("run", library, "--fill", "random", "-o", self.path("out.npz"))
            answers.append(dict(harness.np.load(self.path("out.npz"))))
            used = json.loads(self.tenon("inspect", library, "--json")[0])["tuning"]
            relayouts = [r for r in used if r["point"] == "definition {}"]
            self.assertTrue({r["record"] for r in relayouts} <= {r["id"] for r in of_relayouts} | {r["id"] for r in self.records()})
            if factor > 1:
                self.assertEqual(relayouts, [], "a millisecond is no gain of any layout")
        for key, value in answers[0].items():
            harness.np.testing.assert_allclose(value, answers[1][key], rtol=1e-3, atol=1e-3)

    def test_looking(self):
        """A log shows itself, in both of its forms, and logs are put together."""
        self.tune(self.kernel(), "--trials", "4")
        out, _ = self.tenon("inspect", self.path("tuning.log"))
        self.assertIn("log of tuning", out)
        out, _ = self.tenon("log", "best", self.path("tuning.log"), "--json")
        best = json.loads(out)["kernels"]
        self.assertEqual(len(best), 1)
        self.assertRegex(best[0]["computes"], r"^[a-z].* f32\[")
        out, _ = self.tenon("log", "show", self.path("tuning.log"))
        self.assertIn(best[0]["computes"], out)
        out, _ = self.tenon("log", "export", self.path("tuning.log"))
        (self.dir / "lines").write_text(out)
        again, _ = self.tenon("log", "best", self.path("lines"), "--json")
        self.assertEqual(json.loads(again)["kernels"], best)
        self.tenon("log", "merge", self.path("other.log"), self.path("lines"), self.path("tuning.log"))
        self.assertEqual(self.records("other.log"), self.records())
        self.tenon("log", "prune", self.path("other.log"), "--keep", "1")
        self.assertEqual([r["point"] for r in self.records("other.log")], [best[0]["best"].split(" ", 1)[1]])

    def test_resumes(self):
        """A session goes on where another one ended: nothing is measured twice but the incumbent."""
        kernel = self.kernel()
        self.tune(kernel, "--trials", "3")
        first = {(r["algorithm"], r["point"]) for r in self.records()}
        self.tune(kernel, "--trials", "3")
        records = self.records()
        self.assertEqual(len(records), 3 + 3 + 2)
        self.assertEqual(len({(r["algorithm"], r["point"]) for r in records}), 7)
        self.assertEqual(len(first), 4)

    def test_function(self):
        """A function of loop IR by its sketches: it goes on where it was, its best schedule replays, and every searcher works."""
        path = self.dir / "product.tn"
        path.write_text(FUNCTION)
        summary = self.tune(str(path), "--trials", "6", "--trace", self.path("best.trace"))
        self.assertEqual((summary["trials"], summary["stopped"]), (6, "6 trials were made"))
        self.assertGreater(summary["best_us"], 0)
        self.tune(str(path), "--trials", "4")
        points = [(r["algorithm"], r["point"]) for r in self.records() if not (r["leader"] and r["outcome"] == "ok")]
        self.assertEqual(len(points), len(set(points)), "a point was measured twice")
        out = subprocess.run([harness.options.build / "bin" / "tenon-opt", "--replay", self.path("best.trace"), str(path)],
                             capture_output=True, text=True, check=True).stdout
        self.assertIn("func @product", out)
        for searcher in ("random", "grid", "genetic", "annealing"):
            summary = self.tune(str(path), "--trials", "2", "--searcher", searcher, log=f"{searcher}.log")
            self.assertEqual(summary["trials"], 2)
        open_sizes = self.dir / "open.tn"
        open_sizes.write_text(FUNCTION.replace("@product(", "@product<m: 1..=64>(").replace("f32[24, 16]", "f32[m, 16]"))
        _, err = self.tenon("tune", str(open_sizes), "--log", self.path("x.log"), status=INPUT)
        self.assertIn("its sizes are open", err)

    def test_profile(self):
        """The machine is measured; plans follow what was found, the metadata says so, and files that do not fit are refused."""
        start = time.time()
        out, _ = self.tenon("doctor", "--json", "-o", self.path("here.json"))
        self.assertLess(time.time() - start, 120, "a minute, on a machine that does nothing else")
        profile = json.loads(out)
        self.assertEqual(json.loads((self.dir / "here.json").read_text()), profile)
        rates = profile["rates"]
        near, far = rates["memory"][0]["worker_bytes_per_second"], rates["memory"][3]["worker_bytes_per_second"]
        self.assertGreater(near, far, rates)
        self.assertGreater(rates["cycles_per_second"], 1e8)
        f32 = [t["flops_per_second"] for t in profile["tiles"] if t["a"] == "f32" and t["level"] == "L1"]
        # Four cycles a sum: up to eight times, and up to four where a unit begins one vector in a cycle (Zen 4's of 512 bits).
        self.assertGreater(max(f32), 2 * min(f32), "a tile of one vector waits for its sums")
        self.assertLess(max(f32), 1.1 * rates["units"][0]["per_second"] * 2 * rates["units"][0]["n"])

        for name in ["a.so", "b.so"]:
            self.compile("mlp-4-2", name, "--profile", self.path("here.json"), "--soname", "m.so")
        self.assertEqual(sha(self.path("a.so")), sha(self.path("b.so")))
        self.compile("mlp-4-2", "plain.so")
        hashes = [json.loads(self.tenon("inspect", self.path(name), "--json")[0])["hashes"] for name in ["a.so", "plain.so"]]
        self.assertEqual(len(hashes[0]["profile"]), 32)
        self.assertNotIn("profile", hashes[1])
        self.tune(self.kernel(), "--trials", "1", "--profile", self.path("here.json"))
        path = self.dir / "product.tn"
        path.write_text(FUNCTION)
        self.tune(str(path), "--trials", "1", "--profile", self.path("here.json"), log="function.log")

        def refused(text, *args, status=INPUT, profile="broken.json"):
            (self.dir / "broken.json").write_text(text if isinstance(text, str) else json.dumps(text))
            for verb in (["compile", self.model("mlp-4-2"), "-o", self.path("x.so")], ["tune", self.kernel(), "--log", self.path("x.log")]):
                _, err = self.tenon(*verb, "--profile", self.path(profile), *args, status=status)
                self.assertFalse((self.dir / "x.so").exists())
            return err

        self.assertIn("cannot be used", refused("{"))
        self.assertIn("registers: expected", refused({**profile, "rates": {**rates, "registers": 999}}))
        self.assertIn("is of another machine", refused({**profile, "machine": "0" * 32}))
        self.assertIn("cannot open", refused("", profile="none.json"))
        self.compile("mlp-4-2", "c.so", "--profile", self.path("broken.json"), status=INPUT)
        (self.dir / "broken.json").write_text(json.dumps({**profile, "machine": "0" * 32}))
        self.compile("mlp-4-2", "c.so", "--profile", self.path("broken.json"), "--any-machine", "--soname", "m.so")
        self.assertEqual(sha(self.path("a.so")), sha(self.path("c.so")))
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("x.so"), "--profile", self.path("here.json"),
                            "--target", "llvm -mcpu=x86-64", status=INPUT)
        self.assertIn("is of the target", err)
        _, err = self.tenon("doctor", "--target", "llvm -num-cores=2", status=USAGE)
        self.assertIn("-num-cores", err)
        _, err = self.tenon("doctor", "--target", "cuda -arch=sm_90", status=INPUT, env={"TENON_CUDA_DRIVER": "/no/such/library.so"})
        self.assertIn("there is no cuda device here", err)

        # Measured once and kept: the second time there is nothing to wait for.
        for name in ["d.so", "e.so"]:
            _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path(name), "--profile", "host", "--soname", "m.so")
            self.assertEqual("is measured" in err, name == "d.so", err)
        self.assertEqual(sha(self.path("d.so")), sha(self.path("e.so")))

    def test_hints(self):
        """A log of AutoTVM: entities name the points that are tried first; what is no record is named."""
        line = {"input": ["llvm -keys=cpu", "dense_pack.x86", [["TENSOR", [64, 128], "float32"], ["TENSOR", [96, 128], "float32"], None, "float32"], {}],
                "config": {"index": 1, "code_hash": None, "entity": [["tile_y", "sp", [-1, 1, 2]], ["tile_x", "sp", [-1, 1, 8]], ["tile_k", "sp", [-1, 1]]]},
                "result": [[0.001], 0, 0.5, 1.0], "version": 0.2, "tvm_version": "0.10.0"}
        failed = {**line, "result": [[1e9], 4, 0.5, 1.0]}
        rows = [json.dumps(line), json.dumps(failed), "gASVCg==", '{"i": [1], "r": [1], "v": "v0.6"}', json.dumps({**line, "version": 0.1})]
        (self.dir / "autotvm.log").write_text("\n".join(rows))
        out, err = self.tenon("tune", self.kernel(), "--log", self.path("tuning.log"), "--candidate-time", "0.05", "--trials", "1", "--json",
                              "--hints", self.path("autotvm.log"))
        for number, text in ((3, "pickles"), (4, "Ansor's, whose hash keys cannot be recreated"), (5, "version 0.1")):
            self.assertRegex(err, f"autotvm.log:{number}: .*passed over: .*{text}")
        tried = [r["point"] for r in self.records()]
        self.assertTrue(any("tile_rows: 2" in point and "nv: 1" in point for point in tried), tried)

    def test_report(self):
        """A log as a page that needs nothing else."""
        self.tune(self.kernel(), "--trials", "4")
        self.tenon("report", self.path("tuning.log"), "-o", self.path("page.html"))
        page = (self.dir / "page.html").read_text()
        for text in ("<!DOCTYPE html>", "<svg", "matmul", "share of peak"):
            self.assertIn(text, page)
        self.assertNotIn("http", page)
        (self.dir / "broken").write_text('{"tenon_log": 1, "rec')
        _, err = self.tenon("report", self.path("broken"), "-o", self.path("page.html"), status=INPUT)
        self.assertIn("passed over", err)

    def test_killed(self):
        """kill -9 at any moment: what was in the log stays in it, and the next session goes on."""
        kernel = self.kernel()
        random.seed(1)
        known = []
        for _ in range(12):
            process = subprocess.Popen(
                [harness.options.build / "bin" / "tenon", "tune", kernel, "--log", self.path("tuning.log"),
                 "--candidate-time", "0.05", "--time-limit", "30s", "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.2 + 1.5 * random.random())
            process.kill()
            process.wait()
            if not os.path.exists(self.path("tuning.log")):
                continue
            now = {r["id"]: r for r in self.records()}
            for record in known:
                self.assertEqual(now.get(record["id"]), record)
            known = [r for r in now.values() if r["outcome"] != "started"]
        self.assertTrue(known)
        done = [(r["algorithm"], r["point"]) for r in known if not r["leader"]]
        self.assertEqual(len(done), len(set(done)), "a trial was made twice")
        # One under way at each death, at most.
        self.assertLessEqual(sum(r["outcome"] == "started" for r in now.values()), 12)
        self.tune(kernel, "--trials", "1")
        # Killed sessions leave folders; a later one takes them away.
        left = [p for p in pathlib.Path("/tmp").glob("tenon-tune.*")
                if not os.path.exists(f"/proc/{p.name.split('.')[1]}")]
        self.assertEqual(left, [])

    def test_weights_of_a_text(self):
        """A graph's text may name weights, which lie beside it."""
        kernel = self.kernel('graph @g(%0 "x": f32[4, 32]) {\n  %1 "w": f32[32, 16] = const @"weights"+0\n'
                             '  %2: f32[4, 16] = matmul(%0, %1)\n  return %2 "y"\n}\n')
        _, err = self.tenon("tune", kernel, "--log", self.path("none.log"), "--trials", "1", status=INPUT)
        self.assertIn("weights", err)
        (self.dir / "weights").write_bytes(bytes(32 * 16 * 4))
        self.assertEqual(self.tune(kernel, "--trials", "2")["trials"], 2)

    def test_time_limit_of_a_network(self):
        """It holds for relayouts, fusions and the race of the whole, too."""
        begin = time.monotonic()
        summary = self.tune(self.model("bert-tiny"), "--time-limit", "10s")
        self.assertLess(time.monotonic() - begin, 20)
        self.assertLessEqual(summary["seconds"], 8)

    def test_interrupted(self):
        """Ctrl-C ends with the best so far."""
        process = subprocess.Popen(
            [harness.options.build / "bin" / "tenon", "tune", self.kernel(), "--log", self.path("tuning.log"),
             "--candidate-time", "0.05", "--time-limit", "60s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if line.split()[0] == "2":
                break
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
        self.assertEqual(process.returncode, DONE)
        self.assertIn("it was interrupted", out)
        self.assertGreaterEqual(len(self.records()), 3)

    def worker(self, body):
        """A program in the place of tenon-measure."""
        path = self.dir / "worker"
        path.write_text("#!/usr/bin/env python3\nimport json, os, subprocess, sys, time\n"
                        f"real = {str(harness.options.build / 'bin' / 'tenon-measure')!r}\n" + body)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return {"TENON_MEASURE": str(path)}

    def test_workers_that_die(self):
        """Every third question kills the worker, every fourth is never answered: recorded, and the session goes on."""
        counter = self.path("count")
        env = self.worker(f"""
inner = subprocess.Popen([real], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for line in sys.stdin:
    n = int(open({counter!r}).read()) + 1 if os.path.exists({counter!r}) else 1
    open({counter!r}, "w").write(str(n))
    if n > 1 and n % 3 == 0: inner.kill(); os.abort()
    if n > 1 and n % 4 == 0: inner.kill(); time.sleep(1000)
    inner.stdin.write(line); inner.stdin.flush()
    sys.stdout.write(inner.stdout.readline()); sys.stdout.flush()
""")
        summary = self.tune(self.kernel(), "--trials", "8", "--worker-time", "5s", env=env)
        self.assertEqual(summary["trials"], 8)
        outcomes = [r["outcome"] for r in self.records()]
        self.assertIn("crash", outcomes)
        self.assertIn("timeout", outcomes)
        self.assertGreaterEqual(outcomes.count("ok"), 3)
        self.assertGreater(summary["worker_starts"], 1)

    def test_open_sizes(self):
        """Kernels of open sizes are tuned at those that count, and plans follow what was found; answers stay what they are."""
        model, shape = self.model("mlp-4-2"), ("--shape", "input:n[1..40]x4")
        weights = ("--shape-weights", "n=7:3", "--shape-weights", "n=40")
        summary = self.tune(model, *shape, *weights, "--trials", "6")
        self.assertEqual((summary["trials"], summary["failures"], summary["left_out"]), (6, 0, []), summary)
        self.assertEqual({t["name"].split()[-1] for t in summary["tasks"]}, {"n=7", "n=40"})
        self.assertEqual({t["weight"] for t in summary["tasks"]}, {0.75, 0.25})
        self.tenon("compile", model, "-o", self.path("tuned.so"), *shape, *weights, "--log", self.path("tuning.log"))
        self.tenon("compile", model, "-o", self.path("plain.so"), *shape)
        out, _ = self.tenon("inspect", self.path("tuned.so"), "--json")
        self.assertEqual({r["sizes"] for r in json.loads(out)["tuning"]}, {"n=7", "n=40"})
        for n in (1, 6, 7, 8, 39, 40):
            answers = []
            for name in ("tuned", "plain"):
                self.tenon("run", self.path(name + ".so"), "--shape", f"input:{n}x4", "--fill", "random", "-o", self.path(name + ".npz"))
                answers.append(dict(harness.np.load(self.path(name + ".npz"))))
            for key, value in answers[0].items():
                harness.np.testing.assert_allclose(value, answers[1][key], rtol=1e-4, atol=1e-5)
        # Nobody says how often: the ends, a middle and a prime.
        summary = self.tune(model, *shape, "--trials", "1", log="ends.log")
        self.assertEqual({t["name"].split()[-1] for t in summary["tasks"]}, {"n=1", "n=7", "n=23", "n=40"})
        _, err = self.tenon("tune", model, *shape, "--shape-weights", "n=7:0", "--log", self.path("x.log"), status=USAGE)
        self.assertIn("--shape-weights", err)

    def test_two_sessions_at_once(self):
        kernel = self.kernel()
        both = [subprocess.Popen([harness.options.build / "bin" / "tenon", "tune", kernel, "--log", self.path("tuning.log"),
                                  "--candidate-time", "0.05", "--trials", "3", "-q"], stdout=subprocess.DEVNULL)
                for _ in range(2)]
        self.assertEqual([p.wait() for p in both], [DONE, DONE])
        self.assertEqual(len(self.records()), 2 * (1 + 3))

    def test_device(self):
        """Kernels of a device are measured on it, and the network after them; records say which device it was."""
        model = self.model("mlp-4-2")
        self.tune(model, "--trials", "1", log="cpu.log")
        summary = self.tune(self.kernel(), "--trials", "3", "--target", "opencl")
        self.assertEqual((summary["trials"], summary["failures"]), (3, 0), summary)
        summary = self.tune(model, "--trials", "3", "--target", "opencl")
        self.assertEqual((summary["trials"], summary["failures"]), (3, 0), summary)
        self.assertNotIn("trouble", summary["network"] or {})
        machines = {r["machine"] for r in self.records()}
        self.assertEqual(len(machines), 1)
        self.assertNotIn(self.records("cpu.log")[0]["machine"], machines)
        _, err = self.tenon("compile", model, "-o", self.path("a.so"), "--log", self.path("tuning.log"), "--target", "opencl")
        self.assertNotIn("of another machine", err)
        # Without one nothing is measured, and nothing written.
        nothing = {"TENON_OPENCL_LOADER": "/no/such/library.so"}
        _, err = self.tenon("tune", model, "--log", self.path("none.log"), "--target", "opencl", "--trials", "1", status=INPUT, env=nothing)
        self.assertIn("there is no opencl device here", err)
        self.assertFalse((self.dir / "none.log").exists())
        _, err = self.tenon("compile", model, "-o", self.path("b.so"), "--log", self.path("tuning.log"), "--target", "opencl", env=nothing)
        self.assertIn("of another machine", err)

    def test_profile_of_a_device(self):
        """Rates of the device, which plans are made by; the same profile gives the same bytes."""
        out, _ = self.tenon("doctor", "--target", "opencl", "-o", self.path("device.json"))
        self.assertIn("launch", out)
        profile = json.loads((self.dir / "device.json").read_text())
        self.assertGreater(profile["rates"]["launch_seconds"], 0)
        reads = {entry["bytes"]: entry["bytes_per_second"] for entry in profile["reads"]}
        self.assertEqual(len(reads), 2)
        for name in ["a.so", "b.so"]:
            self.compile("mlp-4-2", name, "--profile", self.path("device.json"), "--target", "opencl", "--soname", "m.so")
        self.assertEqual(sha(self.path("a.so")), sha(self.path("b.so")))
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("x.so"), "--profile", self.path("device.json"),
                            "--target", "cuda -arch=sm_90", status=INPUT)
        self.assertIn("is of the target", err)
        # Of another device it counts only when asked for.
        (self.dir / "other.json").write_text((self.dir / "device.json").read_text().replace(profile["machine"], "0" * 32))
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("x.so"), "--profile", self.path("other.json"),
                            "--target", "opencl", status=INPUT)
        self.assertIn("another machine", err)
        self.compile("mlp-4-2", "c.so", "--profile", self.path("other.json"), "--any-machine", "--target", "opencl")

    def test_refusals(self):
        kernel = self.kernel()
        _, err = self.tenon("tune", kernel, "--trials", "1", status=USAGE)
        self.assertIn("--log", err)
        (self.dir / "text").write_text("no log")
        for log in ["text", "no/folder/log"]:
            self.tenon("tune", kernel, "--log", self.path(log), "--trials", "1", status=INPUT)
        self.assertEqual((self.dir / "text").read_text(), "no log")
        _, err = self.tenon("tune", kernel, "--log", self.path("t"), "--target", "llvm -mtriple=aarch64-linux-gnu",
                            "--trials", "1", status=INPUT)
        self.assertIn("measured", err)
        _, err = self.tenon("tune", kernel, "--log", self.path("t"), "--trials", "1", status=INPUT,
                            env={"TENON_MEASURE": "/no/such/program"})
        self.assertIn("TENON_MEASURE", err)

    def test_a_worker_that_cannot_be_started_any_more(self):
        """What ends a session says what the log has kept of it."""
        env = self.worker("""
inner = subprocess.Popen([real], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for count, line in enumerate(sys.stdin):
    if count == 3: print("no answer", flush=True); sys.exit(1)
    inner.stdin.write(line); inner.stdin.flush()
    sys.stdout.write(inner.stdout.readline()); sys.stdout.flush()
""")
        _, err = self.tenon("tune", self.kernel(), "--log", self.path("tuning.log"), "--candidate-time", "0.05", "--trials", "8", env=env, status=INPUT)
        self.assertIn("has kept what was measured before: 2 records", err)
        self.assertEqual([r["outcome"] for r in self.records()], ["ok", "ok"])

    def test_records_that_do_not_count(self):
        """Broken lines, and records of other machines: said, counted, and passed over."""
        self.tune(self.model("mlp-4-2"), "--trials", "2")
        out = self.raced(1)
        (self.dir / "lines").write_text(out + "broken\n")
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("a.so"), "--log", self.path("lines"))
        self.assertIn(f"lines:{len(out.splitlines()) + 1}", err)
        machine = self.records()[0]["machine"]
        (self.dir / "lines").write_text(out.replace(machine, "0" * 32))
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("b.so"), "--log", self.path("lines"))
        self.assertIn("another machine", err)
        self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("c.so"), "--log", self.path("lines"), "--any-machine")
        out, _ = self.tenon("inspect", self.path("c.so"), "--json")
        self.assertTrue(json.loads(out)["tuning"])
        out, _ = self.tenon("inspect", self.path("b.so"), "--json")
        self.assertFalse(json.loads(out)["tuning"])
