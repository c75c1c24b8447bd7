"""Values that are no tensors of numbers, in Python: sessions beside ONNX Runtime, and libraries. Each case is a network with
feeds; what both sessions say of its inputs and outputs and what they give is compared, types of Python included."""

import os
import tempfile
import unittest

_CACHE = tempfile.TemporaryDirectory(prefix="tenon-cache-")
os.environ["TENON_CACHE_DIR"] = _CACHE.name

import numpy as np
import onnxruntime as real
from onnx import TensorProto, helper

import tenon
import tenon.onnxruntime as ours

real.set_default_logger_severity(4)
STRING, FLOAT, INT64, BOOL = TensorProto.STRING, TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
ML = {"domain": "ai.onnx.ml"}
node, tensor = helper.make_node, helper.make_tensor_value_info


def sequence(name, elem_type, shape=None):
    return helper.make_tensor_sequence_value_info(name, elem_type, shape)


def optional(name, elem_type, shape=None):
    return helper.make_value_info(name, helper.make_optional_type_proto(helper.make_tensor_type_proto(elem_type, shape)))


def map_type(key, value):
    return helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))


def maps(name, key, value):
    return helper.make_value_info(name, helper.make_sequence_type_proto(map_type(key, value)))


def model(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, ir_version=10, opset_imports=opsets).SerializeToString()


def session(ort, of):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(of, options, providers=["CPUExecutionProvider"])


def texts(*values):
    return np.array(values, object)


class Sessions(unittest.TestCase):
    def same(self, got, want):
        self.assertIs(type(got), type(want))
        if isinstance(want, list):
            self.assertEqual(len(got), len(want))
            for g, w in zip(got, want):
                self.same(g, w)
        elif isinstance(want, dict):
            self.assertEqual(list(got), list(want))
            for key in want:
                self.assertIs(type(got[key]), type(want[key]))
                self.assertAlmostEqual(got[key], want[key], places=5)
        elif isinstance(want, np.ndarray):
            self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
            if want.dtype == object:
                self.assertEqual(got.tolist(), want.tolist())
                self.assertTrue(all(type(text) is str for text in got.ravel()))
            else:
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)

    def both(self, of, *feeds):
        a, b = session(ours, of), session(real, of)
        for mine, theirs in ((a.get_inputs(), b.get_inputs()), (a.get_outputs(), b.get_outputs())):
            self.assertEqual([(p.name, p.type, p.shape) for p in mine], [(p.name, p.type, p.shape) for p in theirs])
        for feed in feeds:
            self.same(a.run(None, feed), b.run(None, feed))

    def test_strings(self):
        of = model([node("StringConcat", ["x", "y"], ["z"]), node("Equal", ["x", "y"], ["e"])],
                   [tensor("x", STRING, ["n", 2]), tensor("y", STRING, [2])], [tensor("z", STRING, ["n", 2]), tensor("e", BOOL, ["n", 2])])
        y = texts("b", "")
        self.both(of, {"x": texts("a", "ß", "b", "").reshape(2, 2), "y": y}, {"x": np.array([["a", "long enough"]]), "y": np.array(["b", "c"])},
                  {"x": [["a", "b"]], "y": ["", "d"]}, {"x": np.empty((0, 2), object), "y": y})

    def test_a_pipeline_of_sklearn(self):
        names = ["low", "high"]
        for labels, kind in ((names, STRING), ([3, 7], INT64)):
            of_labels = {"classlabels_strings": labels} if kind == STRING else {"classlabels_ints": labels}
            of_map = {"classlabels_strings": labels} if kind == STRING else {"classlabels_int64s": labels}
            of = model(
                [node("OneHotEncoder", ["color"], ["hot"], cats_strings=["red", "green"], **ML), node("Reshape", ["hot", "flat"], ["hot2"]),
                 node("Concat", ["x", "hot2"], ["features"], axis=1),
                 node("LinearClassifier", ["features"], ["label", "raw"], coefficients=[0.1, -0.2, 0.3, 0.4, -0.1, 0.2, -0.3, -0.4], intercepts=[0.1, -0.1],
                      post_transform="LOGISTIC", **of_labels, **ML),
                 node("Normalizer", ["raw"], ["scores"], norm="L1", **ML), node("Cast", ["label"], ["output_label"], to=kind),
                 node("ZipMap", ["scores"], ["output_probability"], **of_map, **ML)],
                [tensor("color", STRING, [None, 1]), tensor("x", FLOAT, [None, 2])],
                [tensor("output_label", kind, [None]), maps("output_probability", kind, FLOAT)], [helper.make_tensor("flat", INT64, [2], [-1, 2])])
            x = np.array([[1, 2], [-3, 4], [0.5, 0]], np.float32)
            self.both(of, {"color": texts("red", "green", "blue").reshape(3, 1), "x": x}, {"color": np.array([["green"]]), "x": x[:1]})

    def test_objects_are_the_texts_that_they_are_printed_as(self):
        of = model([node("StringConcat", ["x", "x"], ["y"])], [tensor("x", STRING, ["n"])], [tensor("y", STRING, ["n"])])
        self.both(of, {"x": texts("a", 5, None, 1.5, True)}, {"x": ["a", 7]})

    def test_sequences(self):
        of = model([node("SequenceInsert", ["s", "x"], ["t"]), node("SequenceAt", ["s", "i"], ["e"]), node("Identity", ["s"], ["same"])],
                   [sequence("s", FLOAT), tensor("x", FLOAT, ["n"]), tensor("i", INT64, [])], [sequence("t", FLOAT), sequence("same", FLOAT)])
        a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([7])
        self.both(of, {"s": [a, b], "x": b, "i": np.array(0)}, {"s": [b], "x": b, "i": np.array(-1)})

    def test_many_elements(self):
        of = model([node("ConcatFromSequence", ["s"], ["y"], axis=0)], [sequence("s", FLOAT)], [tensor("y", FLOAT, None)])
        self.both(of, {"s": [np.float32([k]) for k in range(1500)]})

    def test_maps(self):
        names = ["a", "b", "c"]
        of = model([node("DictVectorizer", ["m"], ["y"], string_vocabulary=names, **ML)],
                   [helper.make_value_info("m", map_type(STRING, FLOAT))], [tensor("y", FLOAT, [1, 3])])
        self.both(of, {"m": {"b": 1.5}}, {"m": {"c": 2.0, "a": -1.0, "b": 0.0}})
        of = model([node("DictVectorizer", ["m"], ["y"], int64_vocabulary=[5, -7, 2**40], **ML)],
                   [helper.make_value_info("m", map_type(INT64, FLOAT))], [tensor("y", FLOAT, [1, 3])])
        self.both(of, {"m": {2**40: 1.5, -7: 2.0}}, {"m": {5: 0.5, 6: 1.0}})

    def test_errors(self):
        of = model([node("SequenceLength", ["s"], ["n"]), node("StringConcat", ["x", "x"], ["y"])],
                   [sequence("s", FLOAT), tensor("x", STRING, [2])], [tensor("n", INT64, []), tensor("y", STRING, [2])])
        good = {"s": [np.float32([1])], "x": ["a", "b"]}
        mine = session(ours, of)
        for change in ({"s": np.float32([1])}, {"s": 5}, {"s": [np.array([1])]}, {"x": np.float32([1, 2])}, {"x": ["a"]}):
            with self.assertRaises(Exception) as error:
                mine.run(None, good | change)
            self.assertRegex(str(error.exception), "'?[sx]'?|tensor")
        self.same(mine.run(None, good), [np.array(1), texts("aa", "bb")])


class Libraries(unittest.TestCase):
    def build(self, of):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            with open(path, "wb") as file:
                file.write(of)
            return tenon.compile(path)

    def test_values_in_and_out(self):
        ml = [node("ZipMap", ["p"], ["m"], classlabels_strings=["no", "yes"], **ML)]
        main = self.build(model(
            [node("StringConcat", ["x", "x"], ["y"]), node("SequenceInsert", ["s", "p"], ["t"]), node("Optional", ["p"], ["o"]), *ml],
            [tensor("x", STRING, ["n"]), sequence("s", FLOAT), tensor("p", FLOAT, ["k", 2])],
            [tensor("y", STRING, ["n"]), sequence("t", FLOAT), optional("o", FLOAT), maps("m", STRING, FLOAT)]))
        p = np.float32([[0.25, 0.75]])
        y, t, o, m = main(np.array(["a", "bc"]), [p], p)
        self.assertEqual(y.tolist(), ["aa", "bcbc"])
        self.assertEqual([a.numpy().tolist() for a in t], [p.tolist(), p.tolist()])
        self.assertEqual(o.numpy().tolist(), p.tolist())
        self.assertEqual(m, [{"no": 0.25, "yes": 0.75}])

    def test_none(self):
        main = self.build(model([node("OptionalHasElement", ["o"], ["h"])], [optional("o", FLOAT, ["n"])], [tensor("h", BOOL, [])]))
        self.assertEqual([bool(main(v).numpy()) for v in (None, np.float32([1]), [1.5])], [False, True, True])

    def test_a_map(self):
        of = model([node("CastMap", ["m"], ["y"], cast_to="TO_FLOAT", map_form="DENSE", **ML)],
                   [helper.make_value_info("m", map_type(INT64, STRING))], [tensor("y", FLOAT, [1, None])])
        main = self.build(of)
        self.assertEqual(main({5: "2.5", -1: "1"}).numpy().tolist(), [[1, 2.5]])
        self.assertEqual(main({}).numpy().tolist(), [[]])
        for bad in ([1], {"a": "1"}, {1: 5}):
            with self.assertRaisesRegex(TypeError, "input 'm': "):
                main(bad)
        with self.assertRaisesRegex(TypeError, "expected 1 arguments"):
            main()


if __name__ == "__main__":
    unittest.main()
