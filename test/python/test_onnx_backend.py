"""tenon.onnx_backend by ONNX's own runner, on the node tests of some operators and all models of its other sets that need no
download, and by hand."""

import os
import tempfile
import unittest

_CACHE = tempfile.TemporaryDirectory(prefix="tenon-cache-")
os.environ["TENON_CACHE_DIR"] = _CACHE.name

import numpy as np
import onnx
import onnx.backend.test
from onnx import TensorProto, helper

import tenon.onnx_backend as backend

suite = onnx.backend.test.BackendTest(backend, __name__)
for operators in (
    "add", "concat_1d", "conv_", "gemm", "matmul", "reduce_sum_keepdims", "relu", "softmax_axis", "slice", "top_k",
    "gather", "lstm", "layer_normalization_2d", "nonzero", "unique_sorted", "reshape_", "resize_upsample_sizes",
):  # fmt: skip
    suite.include(f"^test_{operators}")
suite.exclude("training|bfloat16|string")
# Attention and others are judged by their own lists, in test/conformance.
globals().update({name: case for name, case in suite.test_cases.items() if "Node" in name})
# What PyTorch wrote, the simple ones, and the nine real networks, whose weights are constants that the files spell out in short.
others = onnx.backend.test.BackendTest(backend, __name__).exclude("_cuda$|gradient").test_cases
globals().update({name: case for name, case in others.items() if "Real" in name or "Simple" in name or "PyTorch" in name})


class ByHand(unittest.TestCase):
    def test_run_node(self):
        x = np.array([[1, -2], [3, 4]], np.float32)
        (y,) = backend.run_node(helper.make_node("Relu", ["x"], ["y"]), [x])
        np.testing.assert_array_equal(y, np.maximum(x, 0))
        node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
        result = backend.run_node(node, [x, np.array([1])], opset_version=13)
        np.testing.assert_array_equal(result.y, x.sum(1))

    def test_run_model(self):
        graph = helper.make_graph(
            [helper.make_node("Sub", ["a", "b"], ["c"])],
            "g",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n"]) for n in "ab"],
            [helper.make_tensor_value_info("c", TensorProto.FLOAT, ["n"])],
        )
        model = helper.make_model(graph)
        a, b = np.float32([5, 7]), np.float32([1, 2])
        for feeds in ([a, b], {"b": b, "a": a}):
            np.testing.assert_array_equal(backend.run_model(model, feeds).c, [4, 5])
        with self.assertRaisesRegex(ValueError, "at most 2 inputs but got 3"):
            backend.prepare(model).run([a, b, a])

    def test_devices(self):
        self.assertTrue(backend.supports_device("CPU"))
        self.assertFalse(backend.supports_device("CUDA:1"))
        with self.assertRaisesRegex(ValueError, "expected the device CPU"):
            backend.prepare(helper.make_model(helper.make_graph([], "g", [], [])), "CUDA")

    def test_bad_models(self):
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [], [])
        with self.assertRaises(Exception):
            backend.prepare(helper.make_model(graph))


if __name__ == "__main__":
    unittest.main()
