"""examples/tuning: what the script writes, and its functions."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import tenon

ROOT = pathlib.Path(__file__).parents[2]
MODEL = str(ROOT / "test" / "models" / "mlp-4-2.onnx")
SCRIPTS = ROOT / "examples" / "tuning"
sys.path.insert(0, str(SCRIPTS))

try:
    import onnx  # noqa: F401
except ImportError:
    onnx = None


@unittest.skipIf(onnx is None, "the script reads graphs by the package onnx")
class Script(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def run_script(self, name, *args):
        done = subprocess.run([sys.executable, SCRIPTS / name, *map(str, args)], capture_output=True, text=True, cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_tuned_compiled_and_compared(self):
        for name, more in (("a", []), ("b", ["--use-ansor"])):
            out = self.run_script(
                "run_autotvm.py", MODEL, "--example-shape", 1, 4, "--tuning-trials", 3, "--tuning-log", f"{name}.log", "--artifacts", name, *more
            )
            self.assertRegex(out, r"mlp-4-2.onnx: [\d.]+ ms ± [\d.]+, artifacts in " + name)
            self.assertEqual(
                sorted(os.listdir(self.dir / name)), ["deploy_graph.json", "deploy_lib.tar", "deploy_params.bin", "metadata.json"]
            )
            data = json.loads((self.dir / name / "metadata.json").read_text())
            self.assertGreater(data["latency"]["mean_ms"], 0)
            self.assertEqual(data["tuning"]["by"], "ansor" if more else "autotvm")
            self.assertIn('"record"', (self.dir / f"{name}.log").read_text())
            graph = json.loads((self.dir / name / "deploy_graph.json").read_text())
            self.assertIn("Gemm", {n["op"] for n in graph["nodes"]})
        table = self.run_script("compare_results.py", "a", "b")
        self.assertIn("latency, ms", table)
        self.assertRegex(table, r"the second is [\d.]+ times as fast as the first")
        x = np.ones((1, 4), "float32")
        module = tenon.runtime.load_module(str(self.dir / "a" / "deploy_lib.tar"))
        np.testing.assert_allclose(module(x).numpy(), tenon.compile(MODEL)(x).numpy(), rtol=1e-4, atol=1e-5)

    def test_parameters_are_the_weights(self):
        import run_autotvm

        weights = run_autotvm.read_weights(MODEL)
        data = run_autotvm.parameter_bytes(weights)
        self.assertEqual(data[:8], (0xF7E58D4F05049CB7).to_bytes(8, "little"))
        for array in weights.values():
            self.assertIn(array.tobytes(), data)

    def test_runtimes_are_verified(self):
        import run_autotvm

        module, _ = run_autotvm.compile_onnx(MODEL, run_autotvm.ExportConfig(repeat=2, warm_up=1))
        x = np.ones((1, 4), "float32")
        module.set_input(0, x)
        module.run()
        right = module.get_output(0).numpy()
        self.assertEqual(run_autotvm.verify_runtime(module, [x], right), 0)
        self.assertEqual(run_autotvm.verify_runtime(module, x, lambda a: right), 0)
        with self.assertRaisesRegex(ValueError, "output 0 differs by"):
            run_autotvm.verify_runtime(module, [x], right + 1)
        with self.assertRaisesRegex(ValueError, "has 2 outputs"):
            run_autotvm.verify_runtime(module, [x], [right, right])

    def test_what_is_missing_is_said(self):
        done = subprocess.run([sys.executable, SCRIPTS / "compare_results.py", "none", "none"], capture_output=True, text=True, cwd=self.dir)
        self.assertEqual(done.returncode, 1)
        self.assertIn("'none' holds no results", done.stderr)


if __name__ == "__main__":
    unittest.main()
