import json
import os
import pathlib

import numpy as np

from harness import Case, MODELS, INPUT, USAGE, DIFFER, reference

BENCH_KEYS = "mean_ms std_ms p50_ms p90_ms p99_ms min_ms runs device threads compile_ms load_ms peak_rss_mb artifact_bytes"


class Models(Case):
    """Compile, run, compare."""

    def test_results_are_those_of_the_reference(self):
        for model in MODELS:
            with self.subTest(model):
                inputs, outputs = reference(model)
                library = self.compile(model)
                given, wanted = self.save("in.npz", inputs), self.save("want.npz", outputs)
                self.tenon("run", library, "-i", given, "--expect", wanted, "--rtol", "1e-3", "--atol", "1e-4",
                           "-o", self.path("out.npz"))
                got = np.load(self.path("out.npz"))
                self.assertEqual(set(got), set(outputs))
                for name, want in outputs.items():
                    self.assertEqual((got[name].dtype, got[name].shape), (want.dtype, want.shape))
                    error = np.linalg.norm((got[name] - want).astype(np.float64)) / np.linalg.norm(want)
                    self.assertLess(error, 1e-4)

    def test_every_level_gives_the_same_answer(self):
        inputs, outputs = reference("mlp-4-2")
        given, wanted = self.save("in.npz", inputs), self.save("want.npz", outputs)
        out, _ = self.tenon("run", self.model("mlp-4-2"), "-i", given, "--expect", wanted)
        self.assertRegex(out, r"^output: as expected; the worst difference is [0-9.e-]+\n$")
        for level in ["-O0", "-O1", "-O2", "-O3"]:
            self.tenon("run", self.model("mlp-4-2"), level, "-i", given, "--expect", wanted)

    def test_an_onnx_file_is_compiled_once(self):
        inputs, outputs = reference("mlp-4-2")
        given, wanted = self.save("in.npz", inputs), self.save("want.npz", outputs)
        run = lambda *args: self.tenon("run", self.model("mlp-4-2"), "-i", given, "--expect", wanted, *args)
        cached = lambda: {p.name: p.stat().st_mtime_ns for p in (self.dir / "cache").glob("*.so")}
        run()
        first = cached()
        self.assertEqual(len(first), 1)
        run()
        self.assertEqual(cached(), first)
        run("-O1")
        self.assertEqual(len(cached()), 2)

    def test_differences_are_named(self):
        inputs, outputs = reference("mlp-4-2")
        library, given = self.compile("mlp-4-2"), self.save("in.npz", inputs)
        (name, array), = outputs.items()
        wrong = array.copy()
        wrong.flat[1] += 0.5
        for bad, message in [(wrong, "1 of 2 elements differ"), (array.astype(np.float64), "expected float64 but got float32"),
                             (array[:, :1], "expected shape 1x1 but got 1x2")]:
            _, err = self.tenon("run", library, "-i", given, "--expect", self.save("want.npz", {name: bad}), status=DIFFER)
            self.assertIn(f"output '{name}': ", err)
            self.assertIn(message, err)
        nan = self.save("want.npz", {name: np.full_like(array, np.nan)})
        self.tenon("run", library, "-i", given, "--expect", nan, status=DIFFER)
        self.tenon("run", library, "-i", given, "--expect", self.save("want.npz", {"other": array}), status=INPUT)

    def test_npy_files(self):
        inputs, outputs = reference("mlp-4-2")
        (in_name, x), = inputs.items()
        (out_name, y), = outputs.items()
        library = self.compile("mlp-4-2")
        np.save(self.path("x.npy"), x)
        np.save(self.path("columns.npy"), np.asfortranarray(np.vstack([x, x])))
        self.tenon("run", library, "-i", f"{in_name}={self.path('x.npy')}", "-o", f"{out_name}={self.path('y.npy')}")
        np.testing.assert_allclose(np.load(self.path("y.npy")), y, rtol=1e-4, atol=1e-5)
        self.tenon("run", library, "-i", self.path("x.npy"), "-o", self.path("z.npy"))
        np.testing.assert_array_equal(np.load(self.path("z.npy")), np.load(self.path("y.npy")))
        self.tenon("run", library, "-i", self.path("columns.npy"), status=INPUT)  # read, and of a wrong shape

    def test_print_top(self):
        out, _ = self.tenon("run", self.compile("mlp-4-2"), "--fill", "ones", "--print-top", "1")
        self.assertRegex(out, r"the 1 largest of 2\n  \[0, \d\] +-?\d")

    def test_bench(self):
        library = self.compile("mlp-4-2")
        out, _ = self.tenon("bench", library, "--repeat", "7", "--threads", "1", "--json", self.path("b.json"))
        self.assertIn("7 runs", out)
        figures = json.loads(pathlib.Path(self.path("b.json")).read_text())
        self.assertEqual(list(figures), BENCH_KEYS.split())
        self.assertEqual((figures["runs"], figures["threads"], figures["compile_ms"]), (7, 1, 0))
        self.assertEqual(figures["artifact_bytes"], os.path.getsize(library))
        self.assertGreater(figures["peak_rss_mb"], 1)
        self.assertLessEqual(figures["min_ms"], figures["p50_ms"])
        self.tenon("bench", self.model("mlp-4-2"), "--duration", "0", "--json", self.path("b.json"))
        figures = json.loads(pathlib.Path(self.path("b.json")).read_text())
        self.assertGreaterEqual(figures["runs"], 3)
        self.assertGreater(figures["compile_ms"], 0)

    def test_times_of_kernels(self):
        out, _ = self.tenon("bench", self.model("mlp-4-2"), "--time-kernels", "--repeat", "5", "--json", self.path("b.json"))
        self.assertRegex(out, r"share +µs +est. µs +launches .* kernel +node\n +\d+\.\d% +\d+\.\d .*node '")
        figures = json.loads(pathlib.Path(self.path("b.json")).read_text())
        self.assertGreater(len(figures["kernels"]), 0)
        for kernel in figures["kernels"]:
            self.assertEqual(kernel["launches"], 5)  # of the measured calls alone
            self.assertGreaterEqual(kernel["us"], 0)
        took = sum(kernel["us"] for kernel in figures["kernels"]) / 1e3
        self.assertTrue(0 < took <= 5 * figures["mean_ms"] + 1e-3, took)
        error = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.c"), "--time-kernels", status=USAGE)[1]
        self.assertIn("kernels are timed in libraries", error)

    def test_on_a_device(self):
        """Inputs go to the device that the model is compiled for, results come back."""
        inputs, outputs = reference("mlp-4-2")
        given, wanted = self.save("in.npz", inputs), self.save("want.npz", outputs)
        library = self.compile("mlp-4-2", "device.so", "--target", "opencl")
        for device in ([], ["--device", "opencl"], ["--device", "opencl:0"]):
            self.tenon("run", library, "-i", given, "--expect", wanted, "-o", self.path("out.npz"), *device)
        out, _ = self.tenon("bench", library, "--repeat", "3", "--json", self.path("bench.json"))
        self.assertRegex(out, r"runs/s on opencl:0, of 3 runs")
        self.assertEqual(json.loads((self.dir / "bench.json").read_text())["device"], "opencl:0")
        for device, message in [("cpu", "the model is compiled for opencl"), ("opencl:99", "opencl device"),
                                ("opencl:x", "expected a name or name:0, such as opencl:0")]:
            _, err = self.tenon("run", library, "-i", given, "--device", device, status=INPUT)
            self.assertIn(f"--device '{device}': ", err)
            self.assertIn(message, err)
        _, err = self.tenon("run", self.model("mlp-4-2"), "-i", given, "--device", "opencl", status=INPUT)
        self.assertIn("the model is compiled for cpu\n  note: --target says what a model is compiled for", err)
