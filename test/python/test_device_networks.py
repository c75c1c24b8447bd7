"""Networks compiled for devices: right on PoCL, with weights that are copied there once, and threads to run them."""

import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

_cache = tempfile.TemporaryDirectory(prefix="tenon-opencl-")
os.environ.setdefault("POCL_CACHE_DIR", _cache.name)

import tenon

try:
    import onnx
    import onnxruntime
except ImportError:
    onnx = onnxruntime = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = [path for path in (pathlib.Path(os.environ.get("TENON_MODELS", "/nonexistent")), ROOT / "test" / "models")
          if path.is_dir()]


class ModuleInfo(ctypes.Structure):
    """tn_module_info of tenon/kernel_abi.h: the pointers behind its two numbers."""
    _fields_ = [("abi_version", ctypes.c_uint32), ("struct_bytes", ctypes.c_uint32), ("pointers", ctypes.c_void_p * 12)]


def query(path):
    function = getattr(ctypes.CDLL(path), "__tenon_query_v5")
    function.restype = ctypes.POINTER(ModuleInfo)
    return function().contents


def uploads(path):
    """How many weights the library has copied to devices."""
    state = query(path).pointers[11]
    return ctypes.cast(state + 12, ctypes.POINTER(ctypes.c_uint32)).contents.value


@unittest.skipUnless(tenon.opencl(0).exist and onnxruntime, "there is no OpenCL device, or no ONNX Runtime")
class DeviceNetworks(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory(prefix="tenon-networks-")
        cls.folder = pathlib.Path(cls._folder.name)

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def model(self, name):
        if (self.folder / f"{name}.made.onnx").is_file():
            return str(self.folder / f"{name}.made.onnx")
        for folder in MODELS:
            if (folder / f"{name}.onnx").is_file():
                subprocess.run([sys.executable, ROOT / "bench" / "fill_weights.py", self.folder, name, "--models", folder],
                               check=True, capture_output=True)
                return str(self.folder / f"{name}.onnx")
        self.skipTest(f"there is no model {name} here; TENON_MODELS names another folder")

    def compiled(self, name, target, precision="fp32"):
        path = str(self.folder / f"{name}.{precision}.{target.replace(' ', '_')}.so")  # a loaded library is known by its name
        tenon.compile(self.model(name), path, target=target, precision=precision)
        return path

    def inputs(self, model):
        random = np.random.default_rng(1)
        for i in onnxruntime.InferenceSession(model).get_inputs():
            shape = [d if isinstance(d, int) else 1 for d in i.shape]
            if "mask" in i.name:
                yield i.name, np.ones(shape, np.int64)
            elif "int64" in i.type:
                yield i.name, random.integers(0, 100, shape)
            else:
                yield i.name, random.standard_normal(shape).astype(np.float32)

    def check(self, name, precision="fp32", tolerance=1e-4, weights=True):
        path, model = self.compiled(name, "opencl", precision), self.model(name)
        feeds = dict(self.inputs(model))
        expected = onnxruntime.InferenceSession(model).run(None, feeds)
        function = tenon.runtime.load_module(path)["main"]
        arguments = [tenon.nd.array(value, tenon.opencl(0)) for value in feeds.values()]
        self.assertEqual(0, uploads(path))
        first = None
        for _ in range(2):
            results = function(*arguments)
            results = list(results) if isinstance(results, (list, tuple)) else [results]
            for got, want in zip(results, expected, strict=True):
                self.assertEqual(got.shape, want.shape)
                self.assertLessEqual(np.linalg.norm(got.numpy() - want), tolerance * np.linalg.norm(want))
            first = first or uploads(path)
            self.assertEqual(weights, first > 0)
            self.assertEqual(first, uploads(path))  # weights stay where they are
        return path

    def test_bert_tiny(self):
        self.check("bert-tiny")

    def test_squeezenet(self):
        self.check("squeezenet1_1")

    def test_mlp(self):
        self.check("mlp-4-2")

    def test_times_of_kernels(self):
        model, path = self.model("mlp-4-2"), str(self.folder / "timed.so")
        tenon.compile(model, path, target="opencl", time_kernels=True)
        module = tenon.runtime.load_module(path)
        arguments = [tenon.nd.array(value, tenon.opencl(0)) for _, value in self.inputs(model)]
        for calls in (1, 2):
            module["main"](*arguments)
            times = module["main_launch_times"]().numpy()
            self.assertGreater(len(times), 0)
            self.assertTrue((times[:, 0] == calls).all(), times)
            self.assertTrue((times[:, 1] > 0).all(), times)

    def test_half_precision(self):
        for precision, tolerance in (("fp16", 2e-3), ("bf16", 2e-2)):
            with self.subTest(precision):
                self.check("mlp-4-2", precision, tolerance)

    @unittest.skipUnless(onnx, "the package onnx is not here")
    def test_single_rows_of_many_matrices(self):
        w = np.random.default_rng(2).standard_normal((40, 12)).astype(np.float32)
        tensor = lambda name, *shape: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        graph = onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["x", "w"], ["y"])], "rows", [tensor("x", 17, 1, 40)],
                                       [tensor("y", 17, 1, 12)], [onnx.numpy_helper.from_array(w, "w")])
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, self.folder / "rows.made.onnx")
        self.check("rows")

    def save(self, name, inputs, nodes, outputs, constants=(), opset=17):
        graph = onnx.helper.make_graph(nodes, name, inputs, outputs, list(constants))
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8),
                  self.folder / f"{name}.made.onnx")

    def described(self, path):
        info = query(path).pointers
        size = ctypes.cast(info[1], ctypes.POINTER(ctypes.c_uint64)).contents.value
        return json.loads(ctypes.string_at(info[0], size))

    def waits(self, path):
        """In how many places a call waits for the device, and in how many of these time and again."""
        function = self.described(path)["functions"][0]
        return function.get("waits", 0), function.get("waits_in_loops", 0)

    @unittest.skipUnless(onnx, "the package onnx is not here")
    def test_loops_of_known_length(self):
        node, value, number = onnx.helper.make_node, onnx.helper.make_tensor_value_info, onnx.numpy_helper.from_array
        f32, i64, flag = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
        for steps in (1, 2, 7):
            with self.subTest(steps):
                name = f"count{steps}"
                # The state swaps its halves, so that one carried value is another's of the same iteration.
                body = onnx.helper.make_graph([
                    node("Cast", ["i"], ["number"], to=f32), node("MatMul", ["a", "w"], ["p"]), node("Add", ["p", "number"], ["q"]),
                    node("Identity", ["go"], ["on"]), node("Identity", ["a"], ["b_next"]), node("Mul", ["q", "b"], ["each"])
                ], "body", [value("i", i64, []), value("go", flag, []), value("a", f32, [3, 5]), value("b", f32, [3, 5])],
                    [value("on", flag, []), value("q", f32, [3, 5]), value("b_next", f32, [3, 5]), value("each", f32, [3, 5])])
                self.save(name, [value("x", f32, [3, 5])], [node("Loop", ["m", "", "x", "x"], ["y", "z", "all"], body=body)],
                          [value("y", f32, [3, 5]), value("z", f32, [3, 5]), value("all", f32, [steps, 3, 5])],
                          [number(np.array(steps, np.int64), "m"),
                           number(np.random.default_rng(3).standard_normal((5, 5)).astype(np.float32) / 3, "w")])
                self.assertEqual((0, 0), self.waits(self.check(name)))

    @unittest.skipUnless(onnx, "the package onnx is not here")
    def test_what_the_device_computes_decides(self):
        node, value, number = onnx.helper.make_node, onnx.helper.make_tensor_value_info, onnx.numpy_helper.from_array
        f32, i64, flag = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
        body = onnx.helper.make_graph([
            node("Mul", ["a", "two"], ["b"]), node("ReduceMax", ["b"], ["most"], keepdims=0), node("Less", ["most", "end"], ["on"])
        ], "body", [value("i", i64, []), value("go", flag, []), value("a", f32, [17])],
            [value("on", flag, []), value("b", f32, [17])])
        constants = [number(np.array(2, np.float32), "two"), number(np.array(50, np.float32), "end"), number(np.array(True), "yes")]
        self.save("until", [value("x", f32, [17])], [node("Loop", ["", "yes", "x"], ["y"], body=body)],
                  [value("y", f32, [17])], constants)
        self.assertEqual((1, 1), self.waits(self.check("until", weights=False)))
        branches = [onnx.helper.make_graph([node(op, ["x"], ["r"])], op, [], [value("r", f32, [17])]) for op in ("Exp", "Neg")]
        for sign in (-1, 1):
            name = f"branch{sign + 1}"
            self.save(name, [value("x", f32, [17])],
                      [node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Mul", ["sum", "sum"], ["square"]),
                       node("Less" if sign < 0 else "Greater", ["square", "nothing"], ["c"]),
                       node("If", ["c"], ["s"], then_branch=branches[0], else_branch=branches[1]), node("Sub", ["s", "x"], ["y"])],
                      [value("y", f32, [17])], [number(np.array(0, np.float32), "nothing")])
            self.assertEqual((1, 0), self.waits(self.check(name, weights=False)))

    @unittest.skipUnless(onnx, "the package onnx is not here")
    def test_sizes_that_the_device_finds(self):
        node, value, number = onnx.helper.make_node, onnx.helper.make_tensor_value_info, onnx.numpy_helper.from_array
        f32, i64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
        for level in (-9, 0, 0.7, 9):  # all, some, none
            name = f"above{level}"
            self.save(name, [value("x", f32, [3, 13])],
                      [node("Greater", ["x", "level"], ["c"]), node("NonZero", ["c"], ["at"]), node("Transpose", ["at"], ["rows"]),
                       node("GatherND", ["x", "rows"], ["values"]), node("Exp", ["values"], ["y"]),
                       node("ReduceSum", ["y"], ["sum"], keepdims=0)],
                      [value("at", i64, [2, "n"]), value("y", f32, ["n"]), value("sum", f32, [])],
                      [number(np.array(level, np.float32), "level")])
            self.assertEqual((1, 0), self.waits(self.check(name, weights=False)))
        # A size that the call must know before it asks for memory: k.
        self.save("most", [value("x", f32, [5, 37]), value("k", i64, [1])], [node("TopK", ["x", "k"], ["values", "places"], axis=1)],
                  [value("values", f32, [5, "k"]), value("places", i64, [5, "k"])])
        path, model = self.compiled("most", "opencl"), self.model("most")
        x = np.random.default_rng(4).standard_normal((5, 37)).astype(np.float32)
        function, place = tenon.runtime.load_module(path)["main"], tenon.opencl(0)
        for k in (1, 4, 37):
            feeds = {"x": x, "k": np.array([k])}
            for got, want in zip(function(*(tenon.nd.array(v, place) for v in feeds.values())),
                                 onnxruntime.InferenceSession(model).run(None, feeds), strict=True):
                np.testing.assert_array_equal(got.numpy(), want)

    def test_lstm(self):
        self.assertEqual((0, 0), self.waits(self.check("lstm-tagger")))

    def test_no_kernel_runs_as_one_thread(self):
        for name in ("mlp-4-2", "bert-tiny"):
            path = self.compiled(name, "opencl")
            code = pathlib.Path(path).read_bytes()  # OpenCL C stands in a library as text
            sizes = [tuple(map(int, s)) for s in
                     re.findall(rb"reqd_work_group_size\((\d+), (\d+), (\d+)\)\)\) void", code)]
            self.assertGreater(len(sizes), 2)
            self.assertGreater(min(a * b * c for a, b, c in sizes), 1)

    def test_arenas_are_as_small_as_lives_allow(self):
        for name in ("mlp-4-2", "bert-tiny", "lstm-tagger", "squeezenet1_1", "mobilenet_v2"):
            with self.subTest(name):
                described = self.described(self.compiled(name, "cuda -arch=null"))
                rows = [line.split(None, 4) for line in described["plan"].splitlines()[1:-1]]
                lives = [((int(size) + 63) // 64 * 64, int(first), int(last)) for _, size, first, last, _ in rows]
                bound = max(sum(size for size, first, last in lives if first <= step <= last) for _, step, _ in lives)
                self.assertGreater(bound, 0)
                self.assertLessEqual(described["arena_bytes"], 1.1 * bound)

    def test_the_null_device_takes_networks(self):
        function = tenon.runtime.load_module(self.compiled("mlp-4-2", "cuda -arch=null"))["main"]
        x = tenon.nd.array(np.zeros((1, 4), np.float32), "null")
        self.assertEqual((1, 2), tuple(function(x).shape))

    def test_tensors_of_another_device_are_refused(self):
        function = tenon.runtime.load_module(self.compiled("mlp-4-2", "opencl"))["main"]
        with self.assertRaisesRegex(ValueError, "expects device=opencl but got device=cpu"):
            function(np.zeros((1, 4), np.float32))


if __name__ == "__main__":
    unittest.main()
