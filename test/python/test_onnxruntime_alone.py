"""What tenon.onnxruntime does that ONNX Runtime does not, or does otherwise: where it takes its name, its cache, models that never run, compiled
libraries, and types of elements that NumPy lacks."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from beside_onnxruntime import X, Y, cast, info, model, ours, real, run, session, two  # first: it names the cache

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import tenon


class Alone(unittest.TestCase):
    """What ONNX Runtime does not have, or has otherwise."""

    def test_numbers_are_fed(self):
        of = cast(TensorProto.INT64, ())
        for x in (3.0, np.float32(3), True):
            self.assertEqual(run(ours, {"x": x if not isinstance(x, bool) else 1}, of)[0], np.int64(x if x is not True else 1))

    def test_registers_where_it_is_absent(self):
        script = """
import sys
sys.modules.pop("onnxruntime", None)
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "onnxruntime" and "tenon.onnxruntime" not in sys.modules: raise ModuleNotFoundError(name)
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "onnxruntime" else find(name, *more)
import tenon.onnxruntime
import onnxruntime
from onnxruntime import InferenceSession
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from onnxruntime.capi import _pybind_state
assert onnxruntime is tenon.onnxruntime and InferenceSession is tenon.InferenceSession
try:
    import onnxruntime.quantization
except ModuleNotFoundError: pass
else: raise AssertionError
"""
        subprocess.run([sys.executable, "-c", script], check=True)

    def test_leaves_the_real_one_alone(self):
        script = "import tenon.onnxruntime, onnxruntime; assert onnxruntime is not tenon.onnxruntime"
        subprocess.run([sys.executable, "-c", script], check=True)

    def test_runs_programs(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write("import onnxruntime, sys; print(onnxruntime.get_build_info(), sys.argv[1])")
            file.flush()
            command = [sys.executable, "-m", "tenon.onnxruntime", file.name, "word"]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.assertEqual(said, f"Tenon {tenon.__version__} word\n")

    def test_says_once_that_it_compiles(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.onnx")
            pathlib.Path(path).write_bytes(two())
            command = [sys.executable, "-c", "import sys, tenon; tenon.InferenceSession(sys.argv[1])", path]
            environment = {**os.environ, "TENON_CACHE_DIR": folder}
            said = [subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stderr for _ in range(2)]
        self.assertEqual(said, ["tenon: compiling net.onnx, which is kept for the next time\n", ""])

    def test_empty_caches_share_a_library(self):
        """One for calls without a past, of any other size, beside the one for calls with a past."""
        of = model([helper.make_node("Concat", ["past", "x"], ["o"], axis=1)], [info("past", ["b", "p", 3]), info("x", ["b", "n", 3])], [info("o", ["b", "t", 3])])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "grows.onnx")
            pathlib.Path(path).write_bytes(of.SerializeToString())
            program = "import sys, numpy as np, tenon; s = tenon.InferenceSession(sys.argv[1])\n"
            program += "for b, p, n in ((1, 0, 5), (1, 0, 7), (2, 0, 1), (1, 5, 1), (2, 6, 1)):\n"
            program += "    assert s.run(None, {'past': np.ones((b, p, 3), 'f'), 'x': np.ones((b, n, 3), 'f')})[0].shape == (b, p + n, 3)"
            subprocess.run([sys.executable, "-c", program, path], check=True, env={**os.environ, "TENON_CACHE_DIR": folder}, capture_output=True)
            self.assertEqual(len(list(pathlib.Path(folder).rglob("*.so"))), 2)

    def test_runs_without_a_cache(self):
        environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "TENON_CACHE_DIR")}
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(two())
            file.flush()
            program = "import sys, numpy as np, tenon; x = np.ones((2, 3), 'f')\n"
            program += "print(tenon.InferenceSession(sys.argv[1]).run(['o'], {'x': x, 'y': x})[0].sum())"
            command = [sys.executable, "-c", program, file.name]
            said = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        self.assertEqual(said, "24.0\n")

    def test_models_that_never_run_are_refused(self):
        """When the session is made, also where sizes are open, since no sizes mend them."""
        node, i64 = helper.make_node, TensorProto.INT64
        x, o, i = info("x", ["n"]), info("o", ["n"]), info("i", ["n"], i64)
        for name, nodes, inputs in (
            ("attribute", [node("Relu", ["x"], ["o"], slope=0.5)], [x]),
            ("axis", [node("Softmax", ["x"], ["o"], axis=5)], [x]),
            ("types", [node("Add", ["x", "i"], ["o"])], [x, i]),
            ("inputs", [node("Relu", ["x", "x"], ["o"])], [x]),
        ):
            for ort in (ours, real):
                with self.subTest(f"{name} {ort.__name__}"), self.assertRaises(Exception) as caught:
                    session(ort, model(nodes, inputs, [o]).SerializeToString())
                self.assertIn("[ONNXRuntimeError]", str(caught.exception))
        # What sizes mend waits for them.
        tiles = model([node("Reshape", ["x", "s"], ["o"])], [x], [info("o", [2, 3])], [numpy_helper.from_array(np.array([2, 3]), "s")])
        self.assertEqual(run(ours, {"x": np.zeros(6, np.float32)}, tiles.SerializeToString())[0].shape, (2, 3))

    def test_errors_of_bytes_name_no_file(self):
        for of in (b"nonsense", model([helper.make_node("Relu", ["x"], ["o"], slope=0.5)], [info("x", [2])], [info("o", [2])]).SerializeToString()):
            with self.assertRaises(Exception) as caught:
                session(ours, of)
            self.assertIn("the model given as bytes", str(caught.exception))
            self.assertNotIn("/tenon-", str(caught.exception))

    def test_dims_of_inputs_and_outputs(self):
        of = model([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Concat", ["x", "x"], ["z"], axis=0), helper.make_node("Identity", ["u"], ["v"])],
                   [info("x", ["batch size", 3]), info("u", [None, -1])], [info("y", ["batch size", 3]), info("z", None), info("v", ["a", "b"])])
        s = session(ours, of.SerializeToString())
        self.assertEqual([p.shape for p in s.get_inputs()], [["batch size", 3], [None, None]])
        self.assertEqual([p.shape for p in s.get_outputs()], [["batch size", 3], [None, 3], ["a", "b"]])

    def test_what_is_left_out_says_so(self):
        import importlib

        for name, says in (("quantization", "quantised models are run"), ("backend", "tenon.onnx_backend"), ("datasets", "no example models"), ("tools", "tenon inspect"),
                           ("transformers", "fused while they are compiled"), ("register_execution_provider_library", "only provider")):
            with self.assertRaisesRegex(ModuleNotFoundError, says):
                importlib.import_module(f"tenon.onnxruntime.{name}")
            with self.assertRaisesRegex(AttributeError, says):
                getattr(ours, name)
        with self.assertRaisesRegex(AttributeError, "has no attribute 'nonsense'"):
            ours.nonsense  # noqa: B018
        self.assertFalse(isinstance(1, ours.SparseTensor))
        ours.OrtMemoryInfo("Cpu", ours.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ours.OrtMemType.DEFAULT)

    def test_an_interrupt_ends_compiling(self):
        """Soon, and the session is made when it is asked for again."""
        program = """if True:
            import os, signal, sys, threading, time, numpy as np, tenon
            import onnx
            from onnx import helper, numpy_helper, TensorProto
            nodes, weights = [], []
            for k in range(300):
                weights.append(numpy_helper.from_array(np.ones((3 + k, 4 + k), "f"), f"w{k}"))
                nodes += [helper.make_node("MatMul", [f"x{k}", f"w{k}"], [f"m{k}"]), helper.make_node("Softmax", [f"m{k}"], [f"x{k + 1}"])]
            graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x0", 1, ["n", 3])], [helper.make_tensor_value_info("x300", 1, ["n", 303])], weights)
            made = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
            threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
            begin = time.monotonic()
            try:
                tenon.InferenceSession(made)
                print("made")
            except KeyboardInterrupt:
                print("interrupted", time.monotonic() - begin)
            """
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "TENON_CACHE_DIR": folder})
            self.assertEqual(list(pathlib.Path(folder).glob("*.so")), [])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("interrupted", done.stdout)

    def test_elements_that_numpy_lacks(self):
        """Arrays of ml_dtypes, and their bits, as inputs; the same type comes back."""
        import ml_dtypes

        for name in ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2", "uint2"):
            with self.subTest(name):
                dtype = np.dtype(getattr(ml_dtypes, name))
                kind = helper.np_dtype_to_tensor_dtype(dtype)
                nodes = [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT)]
                of = model(nodes, [info("x", ["n", 3], kind)], [info("t", [3, "n"], kind), info("f", ["n", 3])], opset=25)
                of.ir_version = 13
                x = np.array([[1, 0.5, 2], [1, 1, 0.25]], np.float32).astype(dtype)
                s = session(ours, of.SerializeToString())
                for given in (x, x[::-1], x[:1], x.view(f"u{dtype.itemsize}")):
                    t, f = s.run(None, {"x": given})
                    want = given.view(dtype)
                    self.assertEqual(t.dtype, dtype)
                    np.testing.assert_array_equal(t.astype(np.float32), want.T.astype(np.float32))
                    np.testing.assert_array_equal(f, want.astype(np.float32))

    def test_libraries(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.so")
            tenon.compile(two(), path)
            s = tenon.InferenceSession(path)
            self.assertEqual([i.shape for i in s.get_inputs()], [["n", 3], ["n", 3]])
            np.testing.assert_array_equal(s.run(["o"], {"x": X, "y": Y})[0], (X + Y) * 2)
            with self.assertRaises(ours.capi.onnxruntime_pybind11_state.Fail):
                s.run(None, {"x": X, "y": Y[:1]})

    def test_many_inputs(self):
        names = [f"x{i}" for i in range(70)]
        of = model([helper.make_node("Sum", names, ["o"])], [info(n, [2]) for n in names], [info("o", [2])])
        feeds = {n: np.full(2, i, np.float32) for i, n in enumerate(names)}
        np.testing.assert_array_equal(run(ours, feeds, of.SerializeToString())[0], [2415, 2415])


if __name__ == "__main__":
    unittest.main()
