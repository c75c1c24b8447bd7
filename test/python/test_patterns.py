"""What exporters write besides operators: branches, loops, functions, names. Each is a small network in the form that an
exporter gives it, and runs beside ONNX Runtime, or, where that refuses a file that ONNX allows, beside what it means."""

import os
import tempfile
import unittest

_CACHE = tempfile.TemporaryDirectory(prefix="tenon-cache-")
os.environ["TENON_CACHE_DIR"] = _CACHE.name

import numpy as np
import onnxruntime as real
from onnx import TensorProto, helper

import tenon.onnxruntime as ours

real.set_default_logger_severity(4)
FLOAT, INT64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
node, tensor = helper.make_node, helper.make_tensor_value_info


def graph(nodes, inputs, outputs, initializers=()):
    return helper.make_graph(nodes, "g", inputs, outputs, list(initializers))


def sequence(name, elem_type=FLOAT):
    return helper.make_tensor_sequence_value_info(name, elem_type, None)


def numbers(name, kind, values, dims=None):
    return helper.make_tensor(name, kind, [len(values)] if dims is None else dims, values)


def constant(name, kind, values, dims=None):
    return node("Constant", [], [name], value=numbers(name, kind, values, dims))


X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Patterns(unittest.TestCase):
    def run_one(self, ort, of, feeds):
        options = ort.SessionOptions()
        options.log_severity_level = 4
        return ort.InferenceSession(of, options, providers=["CPUExecutionProvider"]).run(None, feeds)

    def check(self, main, *cases, functions=(), opset=18, ir=10):
        """`cases` are feeds, or pairs of feeds and what comes of them."""
        domains = {f.domain for f in functions}
        opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in sorted(domains)]
        of = helper.make_model(main, ir_version=ir, opset_imports=opsets, functions=list(functions)).SerializeToString()
        for case in cases:
            feeds, want = case if isinstance(case, tuple) else (case, None)
            if want is None:
                want = self.run_one(real, of, feeds)
            got = self.run_one(ours, of, feeds)
            self.assertEqual(len(got), len(want))
            for g, w in zip(got, want):
                self.same(g, w)

    def same(self, got, want):
        if isinstance(want, list):
            self.assertEqual(len(got), len(want))
            for g, w in zip(got, want):
                self.same(g, w)
            return
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
        if want.dtype == object:
            self.assertEqual(got.tolist(), want.tolist())
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)

    # ---- Branches ----

    def test_lists_of_more_than_a_million(self):
        # Forests have such: one list for each property of a node.
        count = (1 << 20) + 3
        main = graph([node("Constant", [], ["list"], value_ints=range(count)), node("Gather", ["list", "at"], ["y"])], [tensor("at", INT64, ["n"])],
                     [tensor("y", INT64, ["n"])])
        self.check(main, {"at": np.array([0, 1 << 20, count - 1])})

    def test_a_branch_that_gives_an_initializer(self):
        then = graph([], [], [tensor("a", FLOAT, [3])], [numbers("a", FLOAT, [1, 2, 3])])
        other = graph([node("ReduceSum", ["x", "axes"], ["b"], keepdims=0)], [], [tensor("b", FLOAT, [3])], [numbers("axes", INT64, [0])])
        main = graph([node("If", ["c"], ["z"], then_branch=then, else_branch=other), node("Mul", ["z", "x"], ["y"])],
                     [tensor("c", BOOL, []), tensor("x", FLOAT, ["n", 3])], [tensor("y", FLOAT, ["n", 3]), tensor("z", FLOAT, [3])])
        self.check(main, *({"c": np.array(c), "x": X[:n]} for c in (True, False) for n in (1, 2)))

    def test_a_branch_that_gives_strings(self):
        def branch(name, text):
            return graph([], [], [tensor(name, STRING, [1])], [numbers(name, STRING, [text])])

        main = graph([node("If", ["c"], ["z"], then_branch=branch("a", b"yes"), else_branch=branch("b", b"no"))], [tensor("c", BOOL, [])],
                     [tensor("z", STRING, [1])])
        self.check(main, {"c": np.array(True)}, {"c": np.array(False)})

    def test_a_traced_branch_that_squeezes(self):
        """torch's Squeeze of a dim that may be 1: the branches differ in rank."""
        then = graph([node("Squeeze", ["x", "one"], ["a"])], [], [tensor("a", FLOAT, None)])
        other = graph([node("Identity", ["x"], ["b"])], [], [tensor("b", FLOAT, None)])
        main = graph([constant("one", INT64, [1]), node("Shape", ["x"], ["s"]), constant("at", INT64, [1], []), node("Gather", ["s", "at"], ["d"]),
                      constant("unit", INT64, [1], []), node("Equal", ["d", "unit"], ["c"]), node("If", ["c"], ["z"], then_branch=then, else_branch=other),
                      node("Relu", ["z"], ["y"])],
                     [tensor("x", FLOAT, ["n", "m"])], [tensor("y", FLOAT, None)])
        self.check(main, {"x": X - 2}, {"x": X[:, :1] - 2})

    # ---- torch's legacy exporter ----

    def test_shapes_that_are_computed(self):
        main = graph(
            [node("Shape", ["x"], ["s"]), constant("zero", INT64, [0], []), node("Gather", ["s", "zero"], ["n"], axis=0), constant("axes", INT64, [0]),
             node("Unsqueeze", ["n", "axes"], ["n1"]), constant("minus", INT64, [-1]), node("Concat", ["n1", "minus"], ["to"], axis=0),
             node("Reshape", ["x", "to"], ["flat"]), constant("shape", INT64, [1, 6]), node("ConstantOfShape", ["shape"], ["ones"], value=numbers("v", INT64, [1])),
             constant("neg", INT64, [-1], []), node("Mul", ["ones", "neg"], ["want"]), node("Equal", ["shape6", "want"], ["is"]),
             node("Where", ["is", "ones", "shape6"], ["full"]), node("Squeeze", ["full", "axes"], ["full1"]), constant("two", INT64, [0, 2]),
             node("Slice", ["full1", "from", "until"], ["target"]), node("Expand", ["row", "target"], ["wide"]), node("Add", ["flat", "wide"], ["y"])],
            [tensor("x", FLOAT, ["n", 2, 3])], [tensor("y", FLOAT, ["n", 6])],
            [numbers("shape6", INT64, [-1, 6, 1, 1, 1, 1], [1, 6]), numbers("from", INT64, [0]), numbers("until", INT64, [2]), numbers("row", FLOAT, [1, 2, 3, 4, 5, 6], [1, 6])])
        self.check(main, {"x": np.ones((4, 2, 3), np.float32)}, {"x": np.ones((1, 2, 3), np.float32)})

    # ---- Loops of tf2onnx, whose TensorArrays are sequences ----

    def test_a_loop_that_writes_a_tensor_array(self):
        body = graph(
            [node("Identity", ["c"], ["c2"]), node("Gather", ["x", "i"], ["row"]), node("Mul", ["row", "state"], ["state2"]),
             node("SequenceInsert", ["array", "state2"], ["array2"])],
            [tensor("i", INT64, []), tensor("c", BOOL, []), tensor("state", FLOAT, ["k"]), sequence("array")],
            [tensor("c2", BOOL, []), tensor("state2", FLOAT, ["k"]), sequence("array2")])
        main = graph(
            [node("SequenceEmpty", [], ["a0"]), node("Shape", ["x"], ["s"]), constant("zero", INT64, [0], []), node("Gather", ["s", "zero"], ["trips"]),
             constant("true", BOOL, [True], []), node("Loop", ["trips", "true", "start", "a0"], ["last", "all"], body=body),
             node("ConcatFromSequence", ["all"], ["stack"], axis=0, new_axis=1), node("Transpose", ["stack"], ["y"], perm=[1, 0])],
            [tensor("x", FLOAT, ["n", "k"]), tensor("start", FLOAT, ["k"])], [tensor("y", FLOAT, ["k", "n"]), tensor("last", FLOAT, ["k"])])
        for n, k in ((2, 3), (1, 1), (5, 2)):
            self.check(main, {"x": np.full((n, k), 1.5, np.float32), "start": np.arange(k, dtype=np.float32)})

    def test_a_loop_that_reads_a_tensor_array(self):
        body = graph(
            [node("SequenceAt", ["parts", "i"], ["part"]), node("ReduceSum", ["part"], ["sum"], keepdims=0), node("Add", ["total", "sum"], ["total2"]),
             node("Less", ["total2", "limit"], ["go"])],
            [tensor("i", INT64, []), tensor("c", BOOL, []), tensor("total", FLOAT, [])], [tensor("go", BOOL, []), tensor("total2", FLOAT, []), tensor("sum", FLOAT, [])])
        main = graph(
            [node("SplitToSequence", ["x"], ["parts"], axis=0), node("SequenceLength", ["parts"], ["n"]), constant("true", BOOL, [True], []),
             constant("begin", FLOAT, [0], []), node("Loop", ["n", "true", "begin"], ["y", "sums"], body=body)],
            [tensor("x", FLOAT, ["n", 3]), tensor("limit", FLOAT, [])], [tensor("y", FLOAT, []), tensor("sums", FLOAT, [None])])
        self.check(main, *({"x": X, "limit": np.array(limit, np.float32)} for limit in (2, 5, 100)))

    def test_a_scan_whose_body_has_strings(self):
        body = graph(
            [node("Cast", ["row"], ["text"], to=STRING), node("StringConcat", ["text", "unit"], ["with"]), node("StringSplit", ["with", ], ["parts", "count"], delimiter="0"),
             node("Cast", ["count"], ["f"], to=FLOAT), node("Add", ["state", "f"], ["state2"]), node("Identity", ["state2"], ["out"])],
            [tensor("state", FLOAT, [3]), tensor("row", INT64, [3])], [tensor("state2", FLOAT, [3]), tensor("out", FLOAT, [3])], [numbers("unit", STRING, [b"kg"], [])])
        main = graph([node("Scan", ["s", "x"], ["last", "all"], body=body, num_scan_inputs=1)], [tensor("s", FLOAT, [3]), tensor("x", INT64, ["n", 3])],
                     [tensor("last", FLOAT, [3]), tensor("all", FLOAT, ["n", 3])])
        x = np.array([[10, 200, 3], [0, 5, 1000]])
        self.check(main, {"s": np.zeros(3, np.float32), "x": x}, {"s": np.ones(3, np.float32), "x": x[:1]}, opset=20)
        back = graph([node("Scan", ["s", "x"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_directions=[1], scan_output_directions=[1],
                           scan_input_axes=[1], scan_output_axes=[-1])], [tensor("s", FLOAT, [3]), tensor("x", INT64, [3, "n"])],
                     [tensor("last", FLOAT, [3]), tensor("all", FLOAT, [3, "n"])])
        self.check(back, {"s": np.zeros(3, np.float32), "x": x.T.copy()}, opset=20)

    # ---- Functions ----

    def test_functions_with_defaults_and_in_functions(self):
        scale = helper.make_function("local", "Scale", ["x"], ["y"], [constant_of_attribute("k", "by"), node("Mul", ["x", "k"], ["y"])],
                                     [helper.make_opsetid("", 18)], attribute_protos=[helper.make_attribute("by", 3.0)])
        twice = helper.make_function("local", "Twice", ["x"], ["y"], [node("Scale", ["x"], ["t"], domain="local"), refer(node("Scale", ["t"], ["y"], domain="local"), "by", "last")],
                                     [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)], attribute_protos=[helper.make_attribute("last", 0.5)])
        for attributes in ({}, {"last": 7.0}):
            main = graph([node("Twice", ["x"], ["t"], domain="local", **attributes), node("Scale", ["t"], ["y"], domain="local", by=2.0)],
                         [tensor("x", FLOAT, ["n", 3])], [tensor("y", FLOAT, ["n", 3])])
            self.check(main, ({"x": X}, [X * 3 * attributes.get("last", 0.5) * 2]), functions=[scale, twice])

    def test_functions_of_one_name(self):
        def overload(name, op):
            return helper.make_function("local", "F", ["x"], ["y"], [node(op, ["x"], ["y"])], [helper.make_opsetid("", 18)], overload=name)

        nodes = [node("F", ["x"], ["a"], domain="local", overload="neg"), node("F", ["x"], ["b"], domain="local", overload="sqrt"), node("Add", ["a", "b"], ["y"])]
        main = graph(nodes, [tensor("x", FLOAT, ["n", 3])], [tensor("y", FLOAT, ["n", 3])])
        self.check(main, ({"x": X}, [np.sqrt(X) - X]), functions=[overload("neg", "Neg"), overload("sqrt", "Sqrt")])

    def test_a_function_on_sequences(self):
        pick = helper.make_function("local", "Pick", ["s", "i"], ["y"], [node("SequenceAt", ["s", "i"], ["e"]), node("Neg", ["e"], ["y"])], [helper.make_opsetid("", 18)])
        main = graph([node("SplitToSequence", ["x"], ["s"], axis=1), node("Pick", ["s", "i"], ["y"], domain="local")],
                     [tensor("x", FLOAT, [2, 3]), tensor("i", INT64, [])], [tensor("y", FLOAT, [2, 1])])
        self.check(main, *(({"x": X, "i": np.array(i)}, [-X[:, i : i + 1]]) for i in range(3)), functions=[pick])

    # ---- Names ----

    def test_names_that_are_shadowed_three_deep(self):
        """Each graph has a `v` of its own, of another type, and reads the `w` of the outermost one."""
        def branch(nodes, out, kind=FLOAT, dims=("n",)):
            return graph(nodes, [], [tensor(out, kind, list(dims))])

        inner = branch([node("SequenceAt", ["seq", "zero"], ["v"]), node("Mul", ["v", "w"], ["r3"])], "r3")
        middle = branch([node("Add", ["v", "w"], ["u"]), node("SequenceConstruct", ["u", "w"], ["seq"]), node("If", ["c"], ["r2"], then_branch=inner,
                         else_branch=branch([node("Neg", ["u"], ["v"]), node("Identity", ["v"], ["r4"])], "r4"))], "r2")
        outer = branch([node("Exp", ["w"], ["v"]), node("If", ["c"], ["r1"], then_branch=middle, else_branch=middle)], "r1")
        main = graph([constant("zero", INT64, [0], []), node("Sqrt", ["x"], ["w"]), node("SequenceConstruct", ["x"], ["v"]), node("SequenceLength", ["v"], ["length"]),
                      node("If", ["c"], ["y"], then_branch=outer, else_branch=outer)],
                     [tensor("x", FLOAT, ["n"]), tensor("c", BOOL, [])], [tensor("y", FLOAT, ["n"]), tensor("length", INT64, [])])
        x = np.float32([1, 4, 9])
        w = np.sqrt(x)
        u = np.exp(w) + w
        self.check(main, ({"x": x, "c": np.array(True)}, [u * w, np.array(1)]), ({"x": x, "c": np.array(False)}, [-u, np.array(1)]))


def constant_of_attribute(name, attribute):
    return refer(node("Constant", [], [name]), "value_float", attribute)


def refer(made, attribute, to):
    """The node with an attribute that stands for one of its function's."""
    ref = made.attribute.add()
    ref.name, ref.ref_attr_name, ref.type = attribute, to, 1
    return made


if __name__ == "__main__":
    unittest.main()
