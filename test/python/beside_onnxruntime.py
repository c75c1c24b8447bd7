"""What the tests of tenon.onnxruntime beside ONNX Runtime share: small models, and cases that run under both, where what comes of it is
compared, errors by their class and status. A test's file imports SameAsOnnxRuntime, to which `case` adds."""

import os
import tempfile
import unittest
import warnings

_CACHE = tempfile.TemporaryDirectory(prefix="tenon-cache-")
os.environ["TENON_CACHE_DIR"] = _CACHE.name

import numpy as np
import onnxruntime as real
from onnx import TensorProto, helper, numpy_helper

import tenon.onnxruntime as ours

real.set_default_logger_severity(4)


def model(nodes, inputs, outputs, initializers=(), opset=17, **header):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers), doc_string="of the graph")
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **header)
    return made


def info(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def two(**header):
    """o = (x + y) · w, where w may be overridden."""
    nodes = [helper.make_node("Add", ["x", "y"], ["z"], name="add"), helper.make_node("Mul", ["z", "w"], ["o"])]
    inputs = [info("x", ["n", 3]), info("y", ["n", 3]), info("w", [1])]
    w = helper.make_tensor("w", TensorProto.FLOAT, [1], [2.0])
    return model(nodes, inputs, [info("o", ["n", 3]), info("z", ["n", 3])], [w], **header).SerializeToString()


def cast(to, shape=("n",), start=TensorProto.FLOAT):
    nodes = [helper.make_node("Cast", ["x"], ["o"], to=to)]
    return model(nodes, [info("x", list(shape), start)], [info("o", list(shape), to)]).SerializeToString()


X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = X + 1


def session(ort, of=None, options=None, **more):
    if options is None:
        options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(two() if of is None else of, options, **more)


def run(ort, feeds, of=None, names=None, **more):
    return session(ort, of).run(names, feeds, **more)


def with_constant():
    w = numpy_helper.from_array(np.array([2, 3, 4], np.float32), "w")
    return model([helper.make_node("Mul", ["x", "w"], ["o"])], [info("x", ["n", 3])], [info("o", ["n", 3])], [w])


def outcome(function, ort):
    """What it returns, or the class of the error and how its message begins."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return "value", function(ort)
        except Exception as error:
            text = str(error)
            return "error", type(error).__qualname__, text.split(" : ")[:3] if text.startswith("[ONNXRuntimeError]") else ""


class SameAsOnnxRuntime(unittest.TestCase):
    def compare(self, a, b):
        if isinstance(b, np.ndarray):
            self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
            np.testing.assert_allclose(a, b, rtol=1e-5)
        elif isinstance(b, (list, tuple)):
            self.assertEqual(len(a), len(b), (a, b))
            for i, j in zip(a, b):
                self.compare(i, j)
        else:
            self.assertEqual(a, b)


def case(function, name=None):
    """A test that the function gives the same of both modules."""
    setattr(SameAsOnnxRuntime, f"test_{name or function.__name__}", lambda self: self.compare(outcome(function, ours), outcome(function, real)))
    return function
