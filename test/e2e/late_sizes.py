"""Networks with sizes that depend on values: a node counts, and what follows is as large as it found. Needs onnx and onnxruntime."""
import subprocess

import sys

import numpy as np

from networks import BOOL, FLOAT, INT32, INT64, OnnxCase, graph, info, node


class LateSizes(OnnxCase):
    def masks(self, *shape):
        x = self.random.standard_normal(shape).astype(np.float32)
        one = np.zeros(shape, np.float32)
        one.flat[-1] = 3
        return [np.where(x > 0, x, 0), np.zeros(shape, np.float32), np.ones(shape, np.float32), one]

    def find(self, rank):
        return graph([node("NonZero", ["x"], ["found"])], [info("x", FLOAT, *(5, 7, 3)[:rank])], [info("found", INT64, rank, "n")], {})

    def test_what_is_found_is_an_output(self):
        for rank in (1, 2, 3):
            self.write(self.find(rank))
            self.check([{"x": x} for x in self.masks(*(5, 7, 3)[:rank])])

    def test_other_types_are_searched(self):
        for kind, dtype in ((BOOL, bool), (INT32, np.int32), (INT64, np.int64)):
            self.write(graph([node("NonZero", ["x"], ["found"])], [info("x", kind, 4, 6)], [info("found", INT64, 2, "n")], {}))
            self.check([{"x": (x * 4).astype(dtype)} for x in self.masks(4, 6)])

    def test_what_follows_has_that_size(self):
        """Rows that are gathered, multiplied, normalised; a second search in what came of the first; a size that is only counted."""
        nodes = [node("ReduceMax", ["x"], ["top"], axes=[1], keepdims=0), node("Relu", ["top"], ["kept"]), node("NonZero", ["kept"], ["rows"]),
                 node("Transpose", ["rows"], ["places"]), node("GatherND", ["x", "places"], ["picked"]), node("MatMul", ["picked", "w"], ["m"]),
                 node("Add", ["m", "bias"], ["a"]), node("Softmax", ["a"], ["y"]), node("Greater", ["a", "half"], ["big"]), node("NonZero", ["big"], ["where"]),
                 node("ReduceSum", ["y", "axis"], ["total"], keepdims=0), node("Shape", ["rows"], ["shape"])]
        self.write(graph(nodes, [info("x", FLOAT, 9, 33)],
                         [info("y", FLOAT, "n", 20), info("where", INT64, 2, "m"), info("total", FLOAT, 20), info("shape", INT64, 2)],
                         {"w": self.weight(33, 20), "bias": self.weight(20), "half": np.float32(0.5), "axis": np.array([0], np.int64)}))
        x = self.random.standard_normal((9, 33)).astype(np.float32)
        few = x.copy()
        few[2:] = -1
        self.check([{"x": x}, {"x": few}, {"x": -np.abs(x)}])

    def test_the_size_of_the_input_may_be_open(self):
        self.write(graph([node("NonZero", ["x"], ["found"])], [info("x", FLOAT, "rows", 4)], [info("found", INT64, 2, "n")], {}))
        self.check([{"x": x} for rows in (1, 6) for x in self.masks(rows, 4)])

    def test_the_size_may_be_found_in_a_branch(self):
        then = graph([node("NonZero", ["x"], ["f"]), node("ReduceSum", ["f"], ["s"], keepdims=0)], [], [info("s", INT64)], {})
        other = graph([node("Identity", ["none"], ["z"])], [], [info("z", INT64)], {"none": np.int64(0)})
        self.write(graph([node("If", ["c"], ["r"], then_branch=then, else_branch=other)], [info("c", BOOL), info("x", FLOAT, 5)], [info("r", INT64)], {}))
        self.check([{"c": np.array(c), "x": np.array([0, 1, 0, 2, 3], np.float32)} for c in (True, False)])

    def test_the_caller_cannot_bring_the_outputs(self):
        self.write(self.find(2))
        self.tenon("compile", self.path("net.onnx"), "-o", self.path("net.so"))
        program = ("import numpy, sys, tvm_ffi; m = tvm_ffi.load_module(sys.argv[1]);"
                   "m.main(*[tvm_ffi.from_dlpack(numpy.zeros(s, t)) for s, t in [((5, 7), 'float32'), ((2, 0), 'int64')]])")
        done = subprocess.run([sys.executable, "-c", program, self.path("net.so")],
                              capture_output=True, text=True)
        self.assertIn("the sizes of outputs depend on values", done.stderr)
        self.tenon("bench", self.path("net.so"), "--duration", "0.01")

    def test_what_cannot_be_is_an_error_that_says_why(self):
        self.write(self.find(2))
        _, said = self.tenon("compile", self.path("net.onnx"), "-o", self.path("net.c"), status=1)
        self.assertIn("depend on values", said)


