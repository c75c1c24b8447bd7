"""Models that exporters have written (test/models/exported), each compiled once and beside ONNX Runtime at several sizes."""

import os
import pathlib
import tempfile
import unittest

_CACHE = tempfile.TemporaryDirectory(prefix="tenon-cache-")
os.environ["TENON_CACHE_DIR"] = _CACHE.name

import numpy as np
import onnx
import onnxruntime as real
from onnx import helper

import tenon.onnxruntime as ours

real.set_default_logger_severity(4)
MODELS = pathlib.Path(__file__).resolve().parents[1] / "models" / "exported"
PLAIN = real.SessionOptions()
PLAIN.graph_optimization_level = real.GraphOptimizationLevel.ORT_DISABLE_ALL
# Without this, products of u8 and i8 saturate in 16 bits on machines with AVX2 alone.
PRECISE = real.SessionOptions()
PRECISE.add_session_config_entry("session.x64quantprecision", "1")
RNG = np.random.default_rng(0)
# Sizes by the names of dims: around 1, tiles and the size that the exporter saw.
SIZES = [1, 2, 5, 7, 16, 17, 33]


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def texts(words, count):
    return np.array([" ".join(RNG.choice(words, 3)) for _ in range(count)], dtype=object)


def open_session(path):
    options = ours.SessionOptions()
    options.log_severity_level = 3
    return ours.InferenceSession(path, options)


def path_of(name):
    return str(MODELS / f"{name}.onnx")


class Exported(unittest.TestCase):
    def same(self, got, want, at, rtol=1e-5, atol=1e-5):
        if isinstance(want, (list, dict)):
            self.assertEqual(type(got), type(want), at)
            self.assertEqual(len(got), len(want), at)
            for key in want if isinstance(want, dict) else range(len(want)):
                self.same(got[key], want[key], at, rtol, atol)
        elif not isinstance(want, np.ndarray):
            self.assertAlmostEqual(got, want, delta=1e-5, msg=at)
        else:
            self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape), at)
            if want.dtype == object:
                self.assertEqual(got.tolist(), want.tolist(), at)
            else:
                np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=at)

    def check(self, name, cases, options=PRECISE, **tolerance):
        """One session for all cases, which are feeds by position."""
        theirs, mine = real.InferenceSession(path_of(name), options), open_session(path_of(name))
        self.assertEqual([i.name for i in mine.get_inputs()], [i.name for i in theirs.get_inputs()])
        for case in cases:
            feeds = dict(zip([i.name for i in theirs.get_inputs()], case))
            at = f"{name} {[np.shape(c) for c in case]}"
            for got, want in zip(mine.run(None, feeds), theirs.run(None, feeds), strict=True):
                self.same(got, want, at, **tolerance)
        return mine

    def check_each(self, names, make, sizes=SIZES, **more):
        for name in names:
            with self.subTest(name):
                self.check(name, [make(n) for n in sizes], **more)

    # ---- PyTorch ----

    def test_torch_attention(self):
        self.check_each(["torch_new_attention", "torch_new_functions", "torch_old_attention"], lambda n: [floats(1 + n % 3, n, 16)])

    def test_torch_names_its_dims(self):
        names = {d.dim_param for i in onnx.load(path_of("torch_new_attention")).graph.input for d in i.type.tensor_type.shape.dim}
        self.assertTrue(any(n.startswith("s") and n[1:].isdigit() for n in names), names)

    def test_torch_with_a_past(self):
        def case(n):
            batch, past = 1 + n % 2, 19 - n % 19
            return [floats(batch, n, 16), floats(batch, 2, past, 8), floats(batch, 2, past, 8)]

        self.check_each(["torch_new_past", "torch_old_past"], case)

    def test_torch_branches_and_loops(self):
        self.check_each(["torch_new_cond"], lambda n: [floats(n, 4)])
        self.check_each(["torch_new_scan"], lambda n: [floats(n, 3), floats(3)])
        self.check_each(["torch_old_branches"], lambda n: [floats(n, 4), np.array(n)])

    def test_torch_shapes(self):
        self.check_each(["torch_new_expanded", "torch_old_expanded"], lambda n: [floats(n, 2 + n % 3, 6), floats(1, 4, 6)])
        self.check_each(["torch_old_squeezed"], lambda n: [floats(3, n, 6)])
        self.check_each(["torch_new_images", "torch_old_images"], lambda n: [floats(1 + n % 2, 3, 4 * n, 3 * n + 5)])

    def test_torch_recurrent(self):
        self.check_each(["torch_new_tagger", "torch_old_tagger"], lambda n: [RNG.integers(0, 20, (1 + n % 3, n))])

    def test_torch_sizes_that_values_decide(self):
        self.check_each(["torch_new_ragged", "torch_old_ragged"], lambda n: [floats(n, 3) - (n == 5) * 9])
        cases = [[floats(1, 3, h, w), np.array(least, np.float32)]
                 for h, w, least in ((32, 40, 0.5), (57, 31, 0.52), (64, 96, 0.6), (8, 8, 0.5), (32, 32, 1), (33, 47, 0.5))]
        mine = self.check("torch_old_boxes", cases)
        found = [len(mine.run(None, dict(zip(("image", "least"), case)))[0]) for case in cases]
        self.assertTrue(0 in found and max(found) > 3, found)  # there are pictures without boxes

    # ---- TensorFlow ----

    def test_tensorflow_loops(self):
        self.check_each(["tf_running"], lambda n: [floats(n, 3), floats(3)])
        self.check_each(["tf_until"], lambda n: [floats(n, 3), np.array(1, np.float32)])
        self.check_each(["tf_mapped"], lambda n: [floats(3, n)])
        self.check_each(["tf_lstm", "tf_gru"], lambda n: [floats(1 + n % 3, n, 5)])

    def test_tensorflow_branches_and_sizes(self):
        self.check_each(["tf_branch"], lambda n: [floats(n, 4), np.array(n % 2 == 0)])
        self.check_each(["tf_ragged"], lambda n: [np.round(floats(n, 3)) - (n == 7) * 9])
        self.check_each(["tf_image"], lambda n: [floats(1 + n % 2, 4 * n, 3 * n + 5, 3)])

        def boxes(n):
            corner = RNG.random((n, 2), np.float32)
            return [np.concatenate([corner, corner + 0.3], 1), RNG.random(n, np.float32) * (n != 5)]

        self.check_each(["tf_detected"], boxes)

    # ---- scikit-learn ----

    def test_sklearn_numbers(self):
        names = ["forest", "boosted", "outliers", "vectors", "perceptron", "neighbours"]
        self.check_each([f"sklearn_{name}" for name in names], lambda n: [floats(n, 4)])

    def test_sklearn_strings(self):
        cities = ["Oslo", "Lima", "Kyōto", "Bonn"]

        def columns(n):
            return [RNG.choice(["Rome", *cities], (n, 1)).astype(object), floats(n, 1), floats(n, 1), RNG.integers(0, 4, (n, 1))]

        self.check_each(["sklearn_columns"], columns)
        self.check_each(["sklearn_ordinal"], lambda n: [RNG.choice(cities, (n, 1)).astype(object)])
        mine = open_session(path_of("sklearn_columns"))
        label, scores = mine.run(None, dict(zip([i.name for i in mine.get_inputs()], columns(3))))
        self.assertTrue(set(label) <= {"no", "yes"} and all(set(s) == {"no", "yes"} for s in scores))  # ZipMap

    # ---- Quantised ----

    def test_quantised_images(self):
        names = [f"quant_{name}" for name in ("qdq", "qdq_channels", "qoperator", "qoperator_channels")]
        for name in names:
            last = [n for n in onnx.load(path_of(name)).graph.node if n.op_type == "DequantizeLinear"][-1]
            (scale,) = (i for i in onnx.load(path_of(name)).graph.initializer if i.name == last.input[1])
            step = float(onnx.numpy_helper.to_array(scale))
            self.check_each([name], lambda n: [floats(1 + n % 3, 3, 16 + n, 40 - n)], rtol=0, atol=1.01 * step)
        self.check_each(["quant_dynamic"], lambda n: [floats(1, 3, 16 + n, 40 - n)], atol=1e-3)

    def test_quantised_rows(self):
        self.check_each(["quant_mlp_qdq", "quant_mlp_dynamic", "quant_mlp_nbits_offset"], lambda n: [floats(2, n, 32)])
        self.check_each(["quant_mlp_qdq_16"], lambda n: [floats(2, n, 32)], atol=5e-4)  # a step

    def test_weights_of_4_bits_are_exact(self):
        """What accuracy_level 4 permits (activations of bytes) is not taken: beside ONNX Runtime at level 1."""
        for name in ("quant_mlp_nbits", "quant_mlp_blocks"):
            model = onnx.load(path_of(name))
            for node in model.graph.node:
                for attribute in node.attribute:
                    if attribute.name == "accuracy_level":
                        attribute.i = 1
            theirs, mine = real.InferenceSession(model.SerializeToString(), PLAIN), open_session(path_of(name))
            for n in SIZES:
                x = {"x": floats(2, n, 32)}
                self.same(mine.run(None, x)[0], theirs.run(None, x)[0], name)

    # ---- Generating ----

    def test_a_decoder_says_the_same(self):
        """A prompt on an empty cache, then 64 greedy steps."""
        def said(ort):
            session = ort.InferenceSession(path_of("genai_decoder"))
            outputs = [o.name for o in session.get_outputs()]
            past = {i.name: np.zeros((1, 2, 0, 16), np.float32) for i in session.get_inputs() if i.name.startswith("past")}
            ids, seen, out = np.arange(5, 14)[None], 0, []
            for _ in range(65):
                seen += ids.shape[1]
                results = dict(zip(outputs, session.run(None, {"input_ids": ids, "attention_mask": np.ones((1, seen), np.int64), **past})))
                out.append(int(results["logits"][0, -1].argmax()))
                ids = np.array([out[-1:]])
                past = {name.replace("present", "past_key_values"): value for name, value in results.items() if name.startswith("present")}
            return out

        want = said(real)
        self.assertGreater(len(set(want)), 8)
        self.assertEqual(said(ours), want)

    def test_an_encoder_and_a_merged_decoder_say_the_same(self):
        """The first step has empty caches and takes the branch without."""
        def said(ort):
            encoder, decoder = (ort.InferenceSession(path_of(f"optimum_{name}")) for name in ("encoder", "decoder_merged"))
            outputs, mask = [o.name for o in decoder.get_outputs()], np.ones((1, 7), np.int64)
            (hidden,) = encoder.run(None, {"input_ids": np.array([[5, 9, 11, 30, 22, 7, 40]]), "attention_mask": mask})
            past = {i.name: np.zeros((1, 2, 0, 8), np.float32) for i in decoder.get_inputs() if i.name.startswith("past")}
            out = [0]
            for step in range(65):
                feeds = {"input_ids": np.array([out[-1:]]), "encoder_attention_mask": mask, "encoder_hidden_states": hidden,
                         "use_cache_branch": np.array([step > 0]), **past}
                results = dict(zip(outputs, decoder.run(None, feeds)))
                out.append(int(results["logits"][0, -1].argmax()))
                for name, value in results.items():
                    # Those of the encoder are what the first step said; later ones are dummies.
                    if name.startswith("present") and not (step and ".encoder." in name):
                        past[name.replace("present", "past_key_values")] = value
            return out

        want = said(real)
        self.assertGreater(len(set(want)), 5)
        self.assertEqual(said(ours), want)

    # ---- What files may look like ----

    def test_weights_beyond_two_gigabytes(self):
        """A file with a hole: weights in front of it and behind."""
        rows, hole = floats(4, 3), 2**31 + 2**29
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/w.bin", "wb") as file:
                file.write(rows.tobytes())
                file.seek(hole)
                file.write((2 * rows).tobytes())
            weights = []
            for name, offset in (("a", 0), ("b", hole)):
                w = onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=[4, 3], data_location=onnx.TensorProto.EXTERNAL)
                for key, value in (("location", "w.bin"), ("offset", offset), ("length", rows.nbytes)):
                    w.external_data.add(key=key, value=str(value))
                weights.append(w)
            value = lambda name, dims: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims)
            graph = helper.make_graph([helper.make_node("MatMul", ["x", "a"], ["y"]), helper.make_node("MatMul", ["x", "b"], ["z"])], "g",
                                      [value("x", ["n", 4])], [value("y", ["n", 3]), value("z", ["n", 3])], weights)
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), f"{folder}/m.onnx")
            mine = open_session(f"{folder}/m.onnx")
        x = floats(5, 4)
        for got, want in zip(mine.run(None, {"x": x}), (x @ rows, x @ (2 * rows))):
            self.same(got, want, "external")

    def test_every_model_is_tried(self):
        text = pathlib.Path(__file__).read_text()
        for path in MODELS.glob("*.onnx"):
            self.assertIn(path.stem.partition("_")[2], text)
            self.assertLess(path.stat().st_size, 200_000)


if __name__ == "__main__":
    unittest.main()
