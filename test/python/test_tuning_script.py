"""examples/tuning: what the script writes, and its functions."""

import importlib.util
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
SCRIPTS = ROOT / "examples" / "tuning"
sys.path.insert(0, str(SCRIPTS))

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    onnx = None


def write_model(path):
    """Two linear layers with relu between them."""
    random = np.random.default_rng(0)
    weights = {"w1": (4, 64), "b1": (64,), "w2": (64, 2), "b2": (2,)}
    tensors = [numpy_helper.from_array(random.standard_normal(s).astype("float32"), n) for n, s in weights.items()]
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"], name="relu"),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["y"], name="second"),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [1, 4]), ("y", [1, 2])))
    graph = helper.make_graph(nodes, "layers", [x], [y], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@unittest.skipIf(onnx is None, "the script reads graphs by the package onnx")
class Script(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.model = str(self.dir / "layers.onnx")
        write_model(self.model)

    def run_script(self, name, *args):
        done = subprocess.run([sys.executable, SCRIPTS / name, *map(str, args)], capture_output=True, text=True, cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_tuned_compiled_and_compared(self):
        for name, more in (("a", []), ("b", ["--use-ansor"])):
            out = self.run_script(
                "run_autotvm.py", self.model, "--example-shape", 1, 4, "--tuning-trials", 3, "--tuning-log", f"{name}.log", "--artifacts", name, *more
            )
            self.assertRegex(out, r"layers.onnx: [\d.]+ ms ± [\d.]+, artifacts in " + name)
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
        np.testing.assert_allclose(module(x).numpy(), tenon.compile(self.model)(x).numpy(), rtol=1e-4, atol=1e-5)

    def test_parameters_are_the_weights(self):
        import run_autotvm

        weights = run_autotvm.read_weights(self.model)
        data = run_autotvm.parameter_bytes(weights)
        self.assertEqual(data[:8], (0xF7E58D4F05049CB7).to_bytes(8, "little"))
        for array in weights.values():
            self.assertIn(array.tobytes(), data)

    def test_runtimes_are_verified(self):
        import run_autotvm

        module, _ = run_autotvm.compile_onnx(self.model, run_autotvm.ExportConfig(repeat=2, warm_up=1))
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

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_networks_of_pytorch(self):
        """`module:function` by the script, modules with one input and two by its functions, and what is no network."""
        import run_autotvm
        import torch

        (self.dir / "networks.py").write_text(
            "import torch\n"
            "def words():\n"
            "    return torch.nn.Sequential(torch.nn.Embedding(50, 8), torch.nn.Linear(8, 3))\n"
            "def number():\n"
            "    return 3\n"
        )

        def run(name, *args):
            command = [sys.executable, SCRIPTS / "run_autotvm.py", name, "--artifacts", self.dir / "out", *args]
            return subprocess.run(command, capture_output=True, text=True, cwd=self.dir)

        done = run("networks:words", "--example-shape", "1", "12", "--dtype", "int64", "--tuning-trials", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        metadata = json.loads((self.dir / "out" / "metadata.json").read_text())
        self.assertEqual(metadata["inputs"], [{"name": "input0", "shape": [1, 12], "dtype": "int64"}])
        for name, args, words in (("networks:none", (), "gave no network"), ("nowhere:words", (), "cannot be imported"),
                                  ("networks:number", (), "gave int"), ("networks:words", ("--dtype", "word"), "no type 'word'")):
            done = run(name, "--example-shape", "1", "12", *args)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

        class Two(torch.nn.Module):
            def forward(self, a, b):
                return a @ b, a + 1

        inputs = [torch.randn(4, 5), torch.randn(5, 6)]
        module = run_autotvm.compile_pytorch_module(Two(), inputs)
        self.assertLess(run_autotvm.verify_runtime(module, inputs, Two()), 1e-4)
        with self.assertRaisesRegex(ValueError, "output 1 differs by"):
            run_autotvm.verify_runtime(module, inputs, lambda a, b: (a @ b, a))

    def test_what_is_missing_is_said(self):
        done = subprocess.run([sys.executable, SCRIPTS / "compare_results.py", "none", "none"], capture_output=True, text=True, cwd=self.dir)
        self.assertEqual(done.returncode, 1)
        self.assertIn("'none' holds no results", done.stderr)


if __name__ == "__main__":
    unittest.main()
