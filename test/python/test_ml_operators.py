"""Operators of ai.onnx.ml, and those of ai.onnx on strings, beside ONNX Runtime: one node a case, or a few."""

import itertools
import os
import tempfile
import unittest

_CACHE = tempfile.TemporaryDirectory(prefix="tenon-cache-")
os.environ["TENON_CACHE_DIR"] = _CACHE.name

import numpy as np
import onnxruntime as real
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tenon.onnxruntime as ours

real.set_default_logger_severity(4)
STRING, FLOAT, DOUBLE, INT64, INT32 = TensorProto.STRING, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32
TYPE_OF = {"f4": FLOAT, "f8": DOUBLE, "i8": INT64, "i4": INT32, "O": STRING}


def type_of(array):
    return TYPE_OF[array.dtype.str.lstrip("<|")]


def texts(*values):
    return np.array(values, object)


def map_of(key, value):
    return helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))


class Operators(unittest.TestCase):
    def both(self, op, feeds, outputs, domain="ai.onnx.ml", version=3, tolerance=1e-5, types=(), **attributes):
        """`outputs` are their element types; dims of inputs are open. `types`: of inputs that are no arrays."""
        names = [f"y{i}" for i in range(len(outputs))]
        node = helper.make_node(op, list(feeds), names, domain=domain, **attributes)
        inputs = [helper.make_value_info(name, types[name]) if name in types
                  else helper.make_tensor_value_info(name, type_of(x), [f"{name}{d}" for d in range(x.ndim)]) for name, x in feeds.items()]
        graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info(n, t, None) for n, t in zip(names, outputs)])
        opsets = [helper.make_opsetid("", 21)] + ([helper.make_opsetid(domain, version)] if domain else [])
        of = helper.make_model(graph, ir_version=10, opset_imports=opsets).SerializeToString()
        results = []
        for ort in (ours, real):
            options = ort.SessionOptions()
            options.log_severity_level = 4
            results.append(ort.InferenceSession(of, options, providers=["CPUExecutionProvider"]).run(None, feeds))
        for got, want in zip(*results):
            self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape), (op, attributes))
            if want.dtype == object:
                self.assertEqual(got.tolist(), want.tolist(), (op, attributes))
            else:
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=f"{op} {attributes}")
        return results[0]

    # ---- Support vector machines ----

    def machine(self, per_class, kernel, features=3, seed=0):
        draw = np.random.default_rng(seed)
        vectors, classes = sum(per_class), len(per_class)
        return {"kernel_type": kernel, "kernel_params": [0.3, 0.1, 2.0], "vectors_per_class": per_class,
                "support_vectors": draw.normal(size=vectors * features).astype(np.float32).tolist(),
                "coefficients": draw.normal(size=(classes - 1) * vectors).astype(np.float32).tolist(),
                "rho": draw.normal(size=classes * (classes - 1) // 2).astype(np.float32).tolist()}

    def rows(self, n=17, features=3):
        return np.random.default_rng(5).normal(size=(n, features)).astype(np.float32)

    def test_svm_regressor(self):
        for kernel, one_class in itertools.product(("LINEAR", "POLY", "RBF", "SIGMOID"), (0, 1)):
            machine = self.machine([4, 3], kernel)
            del machine["vectors_per_class"]
            machine["rho"] = machine["rho"][:1]
            for n in (1, 17):
                self.both("SVMRegressor", {"x": self.rows(n)}, [FLOAT], n_supports=7, one_class=one_class, **machine)
        self.both("SVMRegressor", {"x": self.rows()}, [FLOAT], n_supports=0, coefficients=[0.5, -1.0, 2.0], rho=[0.25], kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0])

    def test_svm_classifier(self):
        for per_class, kernel in itertools.product(([3, 4], [2, 3, 4], [1, 2, 2, 3, 1]), ("LINEAR", "POLY", "RBF", "SIGMOID")):
            machine = self.machine(per_class, kernel, seed=len(per_class))
            for n in (1, 17):
                self.both("SVMClassifier", {"x": self.rows(n)}, [INT64, FLOAT], classlabels_ints=list(range(5, 5 + len(per_class))), **machine)
            self.both("SVMClassifier", {"x": self.rows()}, [STRING, FLOAT], classlabels_strings=list("abcde")[: len(per_class)], **machine)

    def test_svm_probabilities(self):
        for per_class in ([3, 4], [2, 3, 4], [1, 2, 2, 3, 1]):
            machine = self.machine(per_class, "RBF", seed=len(per_class))
            pairs = len(machine["rho"])
            draw = np.random.default_rng(9)
            prob = {"prob_a": (-np.abs(draw.normal(size=pairs)) - 0.5).tolist(), "prob_b": draw.normal(size=pairs).tolist()}
            labels = list(range(len(per_class)))
            _, p = self.both("SVMClassifier", {"x": self.rows()}, [INT64, FLOAT], classlabels_ints=labels, tolerance=1e-4, **prob, **machine)
            np.testing.assert_allclose(p.sum(1), 1, rtol=1e-4)

    def test_svm_linear(self):
        """Without support vectors. ONNX Runtime labels all rows of two classes alike; ONNX's own evaluator does not."""
        x = self.rows()
        for classes in (2, 3):
            node = helper.make_node("SVMClassifier", ["x"], ["l", "s"], domain="ai.onnx.ml", classlabels_ints=list(range(classes)), rho=[0.125] * classes,
                                    coefficients=np.random.default_rng(3).normal(size=3 * classes).tolist(), kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0])
            graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", FLOAT, ["n", 3])],
                                      [helper.make_tensor_value_info("l", INT64, ["n"]), helper.make_tensor_value_info("s", FLOAT, ["n", classes])])
            of = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)])
            options = ours.SessionOptions()
            options.log_severity_level = 4
            label, scores = ours.InferenceSession(of.SerializeToString(), options).run(None, {"x": x})
            want_label, want_scores = ReferenceEvaluator(of).run(None, {"x": x})
            np.testing.assert_array_equal(label, want_label)
            np.testing.assert_allclose(scores, want_scores, rtol=1e-5, atol=1e-5)

    # ---- Encoders ----

    def test_label_encoder(self):
        lists = {"strings": (["a", "b", "c"], texts("b", "z", "a")), "int64s": ([1, -2, 3], np.array([-2, 9, 1])),
                 "floats": ([0.5, 1.5, 2.5], np.float32([1.5, 2.5, 7]))}
        defaults = {"strings": {"default_string": "none"}, "int64s": {"default_int64": -9}, "floats": {"default_float": 2.25}}
        kinds = {"strings": STRING, "int64s": INT64, "floats": FLOAT}
        for key, value in itertools.product(lists, lists):
            attributes = {f"keys_{key}": lists[key][0], f"values_{value}": lists[value][0]}
            for default in ({}, defaults[value]):
                self.both("LabelEncoder", {"x": lists[key][1]}, [kinds[value]], version=2, **attributes, **default)

    def test_label_encoder_of_tensors(self):
        def of(kind, values):
            return helper.make_tensor("t", kind, [len(values)], [v.encode() if isinstance(v, str) else v for v in values])

        for (key, keys, x), (value, values) in itertools.product(
            ((STRING, ["a", "b"], texts("b", "c")), (INT64, [4, 5], np.array([5, 6])), (DOUBLE, [0.5, 1.5], np.array([1.5, 2.0]))),
            ((STRING, ["x", "y"]), (INT64, [7, 8]), (FLOAT, [0.25, 0.75]), (DOUBLE, [0.1, 0.2]))):
            if (key, value) in ((STRING, DOUBLE), (INT64, DOUBLE), (DOUBLE, FLOAT), (DOUBLE, INT64)):
                continue  # which ONNX Runtime has not
            self.both("LabelEncoder", {"x": x}, [value], version=4, keys_tensor=of(key, keys), values_tensor=of(value, values),
                      default_tensor=of(value, values[:1]))

    def test_category_mapper(self):
        cats = {"cats_strings": ["a", "b"], "cats_int64s": [3, 9]}
        self.both("CategoryMapper", {"x": texts("b", "q", "a").reshape(3, 1)}, [INT64], **cats, default_int64=-5)
        self.both("CategoryMapper", {"x": np.array([[9], [1], [3]])}, [STRING], **cats, default_string="?")

    def test_one_hot_encoder(self):
        for x in (np.array([1, 5, 9]), np.array([[1.0, 2.0], [5.0, 1.0]], np.float32), np.array([[1.0]])):
            self.both("OneHotEncoder", {"x": x}, [FLOAT], cats_int64s=[1, 2, 5], zeros=1)
        self.both("OneHotEncoder", {"x": texts("b", "", "z").reshape(1, 3)}, [FLOAT], cats_strings=["", "a", "b"])

    # ---- On numbers ----

    def test_imputer(self):
        x = np.array([[1, np.nan, -1], [np.nan, 5, -1]], np.float32)
        for values in ([2.5], [1.0, 2.0, 3.0]):
            self.both("Imputer", {"x": x}, [FLOAT], imputed_value_floats=values, replaced_value_float=float("nan"))
            self.both("Imputer", {"x": x}, [FLOAT], imputed_value_floats=values, replaced_value_float=-1.0)
            self.both("Imputer", {"x": np.array([[1, 7, 3], [7, 7, 0]])}, [INT64], imputed_value_int64s=[int(v) for v in values], replaced_value_int64=7)

    def test_normalizer(self):
        for norm, kind in itertools.product(("MAX", "L1", "L2"), (np.float32, np.float64, np.int64, np.int32)):
            self.both("Normalizer", {"x": np.array([[1, -2, 3], [0, 0, 0], [-4, -5, -1]], kind)}, [FLOAT], norm=norm)

    def test_feature_vectorizer(self):
        feeds = {"a": np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), "b": np.array([[5.0], [6.0]], np.float32)}
        self.both("FeatureVectorizer", feeds, [FLOAT], inputdimensions=[2, 1])
        self.both("FeatureVectorizer", {"a": np.array([[1, 2], [3, 4]])}, [FLOAT], inputdimensions=[2])

    def test_scaler_and_binarizer(self):
        for kind in (np.float32, np.float64, np.int64, np.int32):
            x = np.array([[1, -2, 3], [4, 5, -6]], kind)
            self.both("Scaler", {"x": x}, [FLOAT], offset=[0.5, 1.0, -1.0], scale=[2.0, 0.5, 1.5])
            self.both("Scaler", {"x": x}, [FLOAT], offset=[0.5], scale=[2.0])
        self.both("Binarizer", {"x": np.array([[0.5, 0.6], [-1, 7]], np.float32)}, [FLOAT], threshold=0.5)

    def test_array_feature_extractor(self):
        for x in (np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(6).reshape(2, 3), texts(*"abcdef").reshape(2, 3)):
            self.both("ArrayFeatureExtractor", {"x": x, "i": np.array([2, 0])}, [type_of(x)])
            self.both("ArrayFeatureExtractor", {"x": x, "i": np.array([[1]])}, [type_of(x)])

    def test_linear(self):
        x = self.rows()
        for post in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
            for targets in (1, 2):
                self.both("LinearRegressor", {"x": x}, [FLOAT], targets=targets, coefficients=[0.5, -1, 2.0, 1, 0, -1][: 3 * targets],
                          intercepts=[0.5, -0.5][:targets], post_transform=post if targets > 1 else "NONE")
            for classes in (2, 3):
                self.both("LinearClassifier", {"x": x}, [INT64, FLOAT], classlabels_ints=list(range(classes)), post_transform=post,
                          coefficients=np.random.default_rng(1).normal(size=3 * classes).tolist(), intercepts=[0.1, -0.2, 0.3][:classes])
        # More coefficients than features: the first ones count (onnxruntime/datasets/logreg_iris.onnx is such a file).
        self.both("LinearClassifier", {"x": x}, [INT64, FLOAT], classlabels_ints=[0, 1, 2], post_transform="LOGISTIC",
                  coefficients=np.random.default_rng(1).normal(size=15).tolist(), intercepts=[0.1, -0.2, 0.3])

    # ---- Trees ----

    def grown(self, rng, targets_of_trees, uneven, prefix, several=False, modes=("BRANCH_LEQ",), features=4):
        """Attributes of trees that were grown leaf by leaf, the k-th for targets_of_trees[k]; of several targets some leaves give nothing."""
        lists = {k: [] for k in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
        given = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}
        for tree, target in enumerate(targets_of_trees):
            ways, leaves = {}, [0]
            for _ in range(int(rng.integers(0, 9 if uneven else 4)) if uneven or tree else 3):
                leaf = leaves.pop(-1 if uneven else 0)  # one path grows, or all do
                ways[leaf] = (len(ways) * 2 + 1, len(ways) * 2 + 2)
                leaves += ways[leaf]
            for i in range(2 * len(ways) + 1):
                yes, no = ways.get(i, (0, 0))
                row = (tree, i, int(rng.integers(features)), str(rng.choice(modes)) if i in ways else "LEAF", float(rng.normal()) * (i in ways), yes, no, int(rng.integers(2)))
                for name, value in zip(lists, row):
                    lists[name].append(value)
            for i in leaves[: len(leaves) - (len(leaves) > 3 and max(targets_of_trees) > 0)]:
                for t in {target, (target + 1) % (max(targets_of_trees) + 1)} if several else {target}:
                    for name, value in zip(given, (tree, i, t, float(rng.normal()))):
                        given[name].append(value)
        return {f"nodes_{k}": v for k, v in lists.items()} | {f"{prefix}_{k}": v for k, v in given.items()}

    def test_forests(self):
        # Trees of one depth and of several, each for a target of its own or not, as many for each target or not.
        rng = np.random.default_rng(5)
        of_trees = {"one": [0] * 7, "turns": [0, 1, 2] * 4, "some": [2, 0, 2, 0], "more of one": [0, 1, 1, 2, 1]}
        for (_, of_tree), uneven, several, rows in itertools.product(of_trees.items(), (False, True), (False, True), (0, 1, 5)):
            if rows != 5 and (several or not uneven):
                continue
            x = rng.normal(size=(rows, 4)).astype(np.float32)
            x[rng.random(x.shape) < 0.1] = np.nan
            modes = ("BRANCH_LEQ",) if rows != 5 else ("BRANCH_LEQ", "BRANCH_GT", "BRANCH_LT", "BRANCH_GTE")
            for how in ("SUM", "AVERAGE", "MIN", "MAX")[:: 1 + several] if rows == 5 else ("MIN",) if rows == 0 else ("SUM",):
                forest = self.grown(rng, of_tree, uneven, "target", several, modes)
                self.both("TreeEnsembleRegressor", {"x": x}, [FLOAT], n_targets=max(of_tree) + 1, aggregate_function=how, **forest)
            forest = self.grown(rng, of_tree, uneven, "class", several, modes)
            labels, base = (list(range(max(of_tree) + 1)), {"base_values": [0.25, -0.5, 0.125]}) if max(of_tree) else ([0, 1], {})
            self.both("TreeEnsembleClassifier", {"x": x}, [INT64, FLOAT], classlabels_int64s=labels, post_transform="SOFTMAX" if base else "LOGISTIC", **base, **forest)

    def test_a_node_that_is_given_twice(self):
        forest = self.grown(np.random.default_rng(0), [0, 0], True, "target")
        forest["nodes_nodeids"][1] = 0
        with self.assertRaises(Exception) as caught:
            self.both("TreeEnsembleRegressor", {"x": self.rows()}, [FLOAT], n_targets=1, **forest)
        self.assertIn("node 0 of tree 0 is defined twice", str(caught.exception))

    # ---- Maps ----

    # ONNX Runtime's Python takes few kinds of maps; what it does not take is compared with what is meant.

    def alone(self, op, m, map_type, kind, want, **attributes):
        graph = helper.make_graph([helper.make_node(op, ["m"], ["y"], domain="ai.onnx.ml", **attributes)], "g", [helper.make_value_info("m", map_type)],
                                  [helper.make_tensor_value_info("y", kind, None)])
        of = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)])
        options = ours.SessionOptions()
        options.log_severity_level = 4
        (got,) = ours.InferenceSession(of.SerializeToString(), options).run(None, {"m": m})
        self.assertEqual((got.shape, got.tolist()), ((1, len(want)), [want]))

    def test_dict_vectorizer(self):
        for key, keys in ((STRING, ["a", "b", "c"]), (INT64, [4, -1, 2])):
            vocabulary = {"string_vocabulary" if key == STRING else "int64_vocabulary": keys}
            self.both("DictVectorizer", {"m": {keys[2]: 2.0, keys[1]: 1.5}}, [FLOAT], types={"m": map_of(key, FLOAT)}, **vocabulary)
            for value, values, nothing in ((DOUBLE, [0.1, 0.2], 0), (INT64, [3, 2**40], 0), (STRING, ["x", "a longer one"], "")):
                self.alone("DictVectorizer", dict(zip(keys[1:], values)), map_of(key, value), value, [nothing, *values], **vocabulary)

    def test_cast_map(self):
        m = {7: 1.5, 0: -2.0, 3: 0.25}
        for to, kind in (("TO_FLOAT", FLOAT), ("TO_INT64", INT64)):
            self.both("CastMap", {"m": m}, [kind], types={"m": map_of(INT64, FLOAT)}, cast_to=to, map_form="DENSE")
            self.both("CastMap", {"m": m}, [kind], types={"m": map_of(INT64, FLOAT)}, cast_to=to, map_form="SPARSE", max_map=9)
        m = {7: "15", -1: "2", 3: "-4"}
        for to, kind, cast in (("TO_FLOAT", FLOAT, float), ("TO_INT64", INT64, int), ("TO_STRING", STRING, str)):
            self.alone("CastMap", m, map_of(INT64, STRING), kind, [cast(m[k]) for k in sorted(m)], cast_to=to, map_form="DENSE")
            self.alone("CastMap", m, map_of(INT64, STRING), kind, [cast(m.get(k, "0")) for k in range(5)], cast_to=to, map_form="SPARSE", max_map=5)

    # ---- ai.onnx on strings ----

    def test_trees_of_features_that_a_call_has_not(self):
        def array(values, dtype):
            return numpy_helper.from_array(np.array(values, dtype))

        tree = helper.make_node(
            "TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, tree_roots=[0], nodes_featureids=[2], nodes_truenodeids=[0],
            nodes_falsenodeids=[1], nodes_trueleafs=[1], nodes_falseleafs=[1], leaf_targetids=[0, 0], nodes_modes=array([0], np.uint8),
            nodes_splits=array([0.5], np.float32), leaf_weights=array([1, 2], np.float32),
        )  # fmt: skip
        info = helper.make_tensor_value_info
        graph = helper.make_graph([tree], "g", [info("x", FLOAT, ["rows", "features"])], [info("y", FLOAT, None)])
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 5)]
        of = helper.make_model(graph, ir_version=10, opset_imports=opsets).SerializeToString()
        for ort in (ours, real):
            session = ort.InferenceSession(of)
            for features in (3, 5):
                self.assertEqual(session.run(None, {"x": np.eye(2, features, 2, dtype=np.float32)})[0].tolist(), [[2], [1]])
            with self.assertRaises(Exception) as caught:
                session.run(None, {"x": np.ones((2, 2), np.float32)})
            self.assertIn("[ONNXRuntimeError] : 1 : FAIL", str(caught.exception))

    def test_unique(self):
        x = texts("b", "a", "ß", "b", "", "aa", "a")
        for attributes in ({"sorted": 1}, {"sorted": 0}, {}):
            self.both("Unique", {"x": x}, [STRING, INT64, INT64, INT64], domain="", **attributes)
        self.both("Unique", {"x": texts("b", "a", "b", "c", "a", "c").reshape(3, 2)}, [STRING, INT64], domain="", axis=0)

    def test_n_grams(self):
        attributes = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "ngram_counts": [0, 3], "ngram_indexes": [0, 1, 2, 3, 4],
                      "pool_strings": ["a", "b", "c", "a", "b", "c", "a"]}
        for x in (texts("a", "b", "c", "a", "q"), texts("a"), texts("c", "x", "a", "b", "a", "b").reshape(2, 3)):
            for mode in ("TF", "IDF", "TFIDF"):
                self.both("TfIdfVectorizer", {"x": x}, [FLOAT], domain="", **(attributes | {"mode": mode, "weights": [1.0, 0.5, 2.0, 3.0, 0.25]}))
        numbers = attributes | {"pool_int64s": [1, 2, 3, 1, 2, 3, 1]}
        del numbers["pool_strings"]
        for x in (np.array([1, 2, 3, 1, 9]), np.array([[3, 0, 1, 2], [0, 0, 0, 0]], np.int32)):
            self.both("TfIdfVectorizer", {"x": x}, [FLOAT], domain="", **numbers)


if __name__ == "__main__":
    unittest.main()
