#!/usr/bin/env python3
"""Operators that draw numbers: their distributions, and that a seed says what is drawn.

Usage: random_draws.py TENON      needs: pip install onnx numpy apache-tvm-ffi

The specification leaves the generator open, so what is tested is what any one promises: the range, mean and variance, that
neighbours have nothing to do with each other, that equal seeds give equal numbers and others give others, that a dropout's mask
says what was dropped.
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import helper

TENON = sys.argv.pop(1)
COUNT = 200_003


class Draws(unittest.TestCase):
    def run_node(self, op, inputs=(), outputs=("o0",), opset=22, level=2, constants=(), **attrs):
        import tvm_ffi

        names = [f"i{k}" for k in range(len(inputs))]
        info = lambda n, x: helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        given = [k for k in range(len(inputs)) if k not in constants]
        graph = helper.make_graph([helper.make_node(op, names, list(outputs), **attrs)], "draws", [info(names[k], inputs[k]) for k in given],
                                  [helper.make_empty_tensor_value_info(o) for o in outputs], [onnx.numpy_helper.from_array(inputs[k], names[k]) for k in constants])
        with tempfile.TemporaryDirectory() as folder:
            model, library = pathlib.Path(folder) / "m.onnx", pathlib.Path(folder) / "m.so"
            model.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString())
            done = subprocess.run([TENON, "compile", model, "-o", library, f"-O{level}"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            out = tvm_ffi.load_module(str(library)).main(*(inputs[k] for k in given))
            out = list(out) if isinstance(out, (tvm_ffi.Array, list, tuple)) else [out]
            arrays = [np.from_dlpack(x).copy() for x in out]
        return arrays if len(arrays) > 1 else arrays[0]

    def assert_even(self, u):
        """Uniform in [0, 1): by moments, by tenths, and no neighbour tells of the next."""
        n, x = u.size, u.astype(np.float64)
        self.assertTrue((x >= 0).all() and (x < 1).all())
        self.assertLess(abs(x.mean() - 0.5), 5 * (1 / 12 / n) ** 0.5)
        tenths = np.histogram(x, 10, (0, 1))[0]
        self.assertLess(((tenths - n / 10) ** 2 / (n / 10)).sum(), 40)  # chi square of 9 degrees
        for lag in (1, 2, 7, 64):
            self.assertLess(abs(np.corrcoef(x[lag:], x[:-lag])[0, 1]), 5 / n**0.5)

    def test_uniform(self):
        for dtype, kind in ((1, np.float32), (11, np.float64)):
            u = self.run_node("RandomUniform", shape=[COUNT], dtype=dtype, seed=1.0)
            self.assertEqual((u.dtype, u.shape), (kind, (COUNT,)))
            self.assert_even(u)
        u = self.run_node("RandomUniformLike", [np.zeros((7, 11), np.float16)], low=-2.0, high=6.0, dtype=1, seed=2.0)
        self.assertEqual((u.dtype, u.shape), (np.float32, (7, 11)))
        self.assertTrue((u >= -2).all() and (u < 6).all() and u.min() < -1 and u.max() > 5)
        self.assertEqual(self.run_node("RandomUniform", shape=[0, 3]).shape, (0, 3))

    def test_normal(self):
        for dtype in (1, 11):
            x = self.run_node("RandomNormal", shape=[COUNT], dtype=dtype, mean=3.0, scale=2.0, seed=1.0).astype(np.float64)
            z = (x - 3) / 2
            self.assertLess(abs(z.mean()), 5 / COUNT**0.5)
            self.assertLess(abs(z.var() - 1), 10 / COUNT**0.5)
            self.assertLess(abs((z**4).mean() - 3), 0.2)
            self.assertLess(abs((z < -1.6448536).mean() - 0.05), 0.004)

    def test_normal_like(self):
        x = self.run_node("RandomNormalLike", [np.zeros((7, 1100), np.float16)], mean=3.0, scale=2.0, dtype=11, seed=1.0)
        self.assertEqual((x.dtype, x.shape), (np.float64, (7, 1100)))
        self.assertLess(abs((x.mean() - 3) / 2), 5 / x.size**0.5)
        self.assertLess(abs((x / 2).var() - 1), 10 / x.size**0.5)
        self.assertEqual(self.run_node("RandomNormalLike", [np.zeros((0, 3), np.float32)]).shape, (0, 3))

    def test_seeds(self):
        draw = lambda **attrs: self.run_node("RandomUniform", shape=[1000], **attrs)
        np.testing.assert_array_equal(draw(seed=1.0), draw(seed=1.0, level=0))
        self.assertLess((draw(seed=1.0) == draw(seed=2.0)).mean(), 0.01)
        self.assertFalse((draw() == 0).all())

    def test_bernoulli(self):
        p = np.repeat(np.array([0, 0.1, 0.5, 1], np.float32), 50_000).reshape(4, -1)
        for dtype, kind in ((None, np.float32), (9, bool), (11, np.float64), (7, np.int64)):
            x = self.run_node("Bernoulli", [p], seed=3.0, **({} if dtype is None else {"dtype": dtype}))
            self.assertEqual(x.dtype, kind)
            self.assertLess(abs(x.astype(np.float64).mean(1) - p[:, 0]).max(), 0.01)
            self.assertEqual(set(np.unique(x).tolist()), {0, 1})

    def test_multinomial(self):
        shares = np.array([[0.5, 0.2, 0.3], [0, 0, 1]])
        with np.errstate(divide="ignore"):
            x = self.run_node("Multinomial", [(np.log(shares) + 4).astype(np.float32)], sample_size=50_000, seed=1.0, dtype=7)
        self.assertEqual((x.dtype, x.shape), (np.int64, (2, 50_000)))
        found = np.stack([np.bincount(row, minlength=3) / 50_000 for row in x])
        self.assertLess(abs(found - shares).max(), 0.01)

    def test_dropout(self):
        x = np.arange(1, COUNT + 1, dtype=np.float32)
        for ratio in (0.0, 0.25, 0.75):
            for constants in ((), (1, 2)):
                y, mask = self.run_node("Dropout", [x, np.array(ratio, np.float32), np.array(True)], ("y", "mask"), constants=constants, seed=5)
                self.assertEqual(mask.dtype, bool)
                self.assertLess(abs(mask.mean() - (1 - ratio)), 0.01)
                np.testing.assert_allclose(y, np.where(mask, x / np.float32(1 - ratio), 0), rtol=1e-6)
        y, mask = self.run_node("Dropout", [x, np.array(0.75, np.float32), np.array(False)], ("y", "mask"), seed=5)
        self.assertTrue(mask.all())
        np.testing.assert_array_equal(y, x)
        y = self.run_node("Dropout", [x.astype(np.float16)[:9], np.array(0.5, np.float16), np.array(True)], ("y",), seed=5)
        self.assertTrue(set((y / x[:9]).tolist()) <= {0.0, 2.0})


if __name__ == "__main__":
    unittest.main()
