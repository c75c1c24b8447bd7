#!/usr/bin/env python3
"""Small models at the edges of the operators' meaning, through the whole compiler: empty tensors, scalars, bool, integer
division, NaN and infinities, casts out of range, negative indices, forms of old operator sets, sizes around vectors and
tiles; and models that once made the compiler fail.

Usage: onnx_cases.py TENON [--levels 0 1 2] [--in-turn] [--match REGEX]      needs: pip install onnx onnxruntime numpy apache-tvm-ffi
A case that states no expected outputs is compared with ONNX Runtime.
"""
import argparse
import collections
import faulthandler
import pathlib
import re
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
import contrib_cases  # noqa: E402
import formula_cases  # noqa: E402
import run_node_tests  # noqa: E402
import version_cases  # noqa: E402

f32, f64, i8, i32, i64, u8 = np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8
NAN, INF = np.nan, np.inf
rng = np.random.default_rng(0)
one_thread = onnxruntime.SessionOptions()
one_thread.intra_op_num_threads = 1
cases = []


def rand(*shape, dtype=f32):
    dtype = np.dtype(dtype)
    if dtype == bool:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -50, 50, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def empty(*shape, dtype=f32):
    return np.zeros(shape, dtype)


def ints(*values, dtype=i64):
    return np.array(values, dtype)


def floats(*values):
    return np.array(values, f32)


def scalar(value, dtype=f32):
    return np.array(value, dtype)


def add(name, nodes, inputs, outputs=1, constants=(), opset=21, expect=None):
    """A case. `nodes` read i0, i1, … (those listed in `constants` are initializers) and write o0, o1, …"""
    cases.append((name, nodes, inputs, outputs, constants, opset, expect))


def one(name, op, inputs, outputs=1, constants=(), opset=21, expect=None, attributes={}, **attrs):
    """A case of one node. An input that is None is left out; `outputs` may be their names, "" where one is left out. `attributes` are those that
    are called as parameters of this."""
    names = ["" if x is None else f"i{k}" for k, x in enumerate(inputs)]
    results = [f"o{k}" for k in range(outputs)] if isinstance(outputs, int) else outputs
    node = helper.make_node(op, names, results, **attrs, **attributes)
    add(name, [node], inputs, len([r for r in results if r]), constants, opset, expect)


def add_empty_tensors():
    one("empty_add", "Add", [empty(0, 3), rand(1, 3)])
    one("empty_relu", "Relu", [empty(0)])
    for m, k, n in ((0, 3, 2), (2, 0, 3), (2, 3, 0)):
        one(f"empty_matmul_{m}_{k}_{n}", "MatMul", [rand(m, k), rand(k, n)], expect=[rand(m, k) @ rand(k, n) * 0 if 0 in (m, n) else empty(m, n)])
    one("empty_matmul_batch", "MatMul", [empty(0, 2, 3), rand(3, 4)])
    one("empty_gemm", "Gemm", [empty(0, 4), rand(4, 3), rand(3)])
    bias = rand(3)
    one("empty_gemm_depth", "Gemm", [empty(2, 0), empty(0, 3), bias], expect=[np.stack([bias, bias])])
    for kind, value in (("Sum", 0), ("Prod", 1), ("Max", -INF), ("Min", INF), ("Mean", NAN), ("L2", 0), ("LogSumExp", -INF)):
        one(f"empty_reduce_{kind}", f"Reduce{kind}", [empty(2, 0, 3), ints(1)], constants=(1,), expect=[np.full((2, 1, 3), value, f32)])
        one(f"no_rows_reduce_{kind}", f"Reduce{kind}", [empty(0, 5), ints(1)], constants=(1,), keepdims=0, expect=[empty(0)])
    one("empty_reduce_max_int", "ReduceMax", [empty(2, 0, dtype=i32), ints(1)], constants=(1,), expect=[np.full((2, 1), -2**31, i32)])
    one("empty_concat", "Concat", [empty(0, 3), rand(2, 3)], axis=0)
    one("empty_concat_inner", "Concat", [rand(2, 0), rand(2, 3), rand(2, 0)], axis=1)
    one("empty_slice", "Slice", [rand(4, 5), ints(3), ints(1), ints(0)], constants=(1, 2, 3))
    one("empty_softmax", "Softmax", [empty(3, 0)])
    one("empty_softmax_rows", "Softmax", [empty(0, 3)])
    one("empty_transpose", "Transpose", [empty(0, 2)], perm=[1, 0])
    one("empty_conv", "Conv", [empty(0, 3, 5, 5), rand(4, 3, 3, 3)])
    one("empty_global_pool", "GlobalAveragePool", [empty(0, 3, 4, 4)])
    one("empty_layer_norm", "LayerNormalization", [empty(0, 4), rand(4), rand(4)])
    one("empty_batch_norm", "BatchNormalization", [empty(0, 3, 2), rand(3), rand(3), rand(3), abs(rand(3))])
    one("empty_gather", "Gather", [rand(3, 4), empty(0, dtype=i64)])
    one("empty_gather_of_empty", "Gather", [empty(0, 4), empty(0, dtype=i64)])
    one("empty_gather_nd", "GatherND", [rand(3, 4), empty(0, 2, dtype=i64)])
    one("empty_gather_elements", "GatherElements", [rand(3, 4), empty(0, 4, dtype=i64)])
    one("empty_reshape", "Reshape", [empty(2, 0), ints(0, 5)], constants=(1,), allowzero=1)
    one("empty_expand", "Expand", [rand(1, 3), ints(0, 3)], constants=(1,))
    one("empty_where", "Where", [empty(0, dtype=bool), rand(1), rand(1)])
    one("empty_split", "Split", [rand(4, 2), ints(0, 4)], outputs=2, constants=(1,), axis=0)
    one("empty_pad", "Pad", [empty(0, 2), ints(1, 0, 1, 0)], constants=(1,))
    one("empty_max_pool", "MaxPool", [empty(0, 2, 4, 4)], kernel_shape=[2, 2])
    one("empty_tile", "Tile", [rand(2, 3), ints(0, 1)], constants=(1,))
    one("empty_resize", "Resize", [empty(0, 1, 2, 2), None, floats(1, 1, 2, 2)], constants=(2,), expect=[empty(0, 1, 4, 4)])


    for m, k, n in ((0, 3, 2), (2, 0, 3), (2, 3, 0), (0, 0, 5), (1, 0, 1)):
        one(f"empty_matmul_known_{m}_{k}_{n}", "MatMul", [rand(m, k), rand(k, n)], constants=(1,), expect=[np.zeros((m, n), f32)])
        bias = rand(n)
        one(f"empty_gemm_known_{m}_{k}_{n}", "Gemm", [rand(m, k), rand(k, n), bias], constants=(1, 2), expect=[np.zeros((m, n), f32) + bias])
    for name, x, w, b in (("batch", (0, 3, 5, 5), (4, 3, 3, 3), 4), ("channels", (1, 3, 5, 5), (0, 3, 3, 3), 0), ("depth", (2, 0, 5, 5), (4, 0, 3, 3), 4)):
        expect = [np.zeros((x[0], w[0], 3, 3), f32)]
        for constants in ((), (1, 2)):
            one(f"empty_conv_{name}_{len(constants)}", "Conv", [rand(*x), rand(*w), empty(b)], constants=constants, expect=expect)


def add_positions_of_nan():
    x = np.array([[1, NAN, 2], [NAN, 0, NAN], [0, 0, 0], [-INF, INF, -INF], [NAN, NAN, NAN]])
    for dtype in (f32, f64, np.float16):
        for op in ("ArgMax", "ArgMin"):
            kind = np.nanargmax if op == "ArgMax" else np.nanargmin
            for last in (0, 1):
                rows = []
                for row in x.astype(dtype):
                    there = np.flatnonzero(np.isnan(row))
                    there = there if there.size else np.flatnonzero(row == row[kind(row)])
                    rows.append([there[-1 if last else 0]])
                one(f"nan_{op}_{np.dtype(dtype).name}_{last}", op, [x.astype(dtype)], axis=1, select_last_index=last, expect=[np.array(rows)])
            for n in (1, 2, 8, 16, 17, 33, 127):
                row = rand(3, n).astype(dtype)
                row[1, n // 2:] = NAN
                row[2, -1] = NAN
                one(f"nan_{op}_{np.dtype(dtype).name}_of_{n}", op, [row], axis=1, expect=[getattr(np, op.lower())(row, 1)[:, None]])


def add_scalars_and_bool():
    one("scalar_add", "Add", [scalar(1.5), scalar(2)])
    one("scalar_gather", "Gather", [rand(4), scalar(-1, i64)])
    one("scalar_index", "Gather", [rand(4, 3), scalar(2, i64)], axis=1)
    one("scalar_reduce", "ReduceSum", [scalar(3.0)], expect=[scalar(3)])
    one("scalar_reshape", "Reshape", [rand(1, 1), empty(0, dtype=i64)], constants=(1,))
    one("scalar_unsqueeze", "Unsqueeze", [scalar(2.0), ints(0, 1)], constants=(1,))
    one("scalar_where", "Where", [scalar(True, bool), scalar(1.0), scalar(2.0)])
    one("scalar_dot", "MatMul", [rand(5), rand(5)])
    one("vector_matrix", "MatMul", [rand(5), rand(5, 3)])
    one("batch_vector", "MatMul", [rand(4, 2, 5), rand(5)])
    one("scalar_expand", "Expand", [scalar(2.0), ints(2, 3)], constants=(1,))
    one("scalar_shape", "Shape", [scalar(2.0)])
    one("scalar_clip", "Clip", [scalar(2.0), scalar(0.0), scalar(1.0)])
    for op in ("And", "Or", "Xor", "Equal"):
        one(f"bool_{op}", op, [rand(3, 5, dtype=bool), rand(5, dtype=bool)])
    one("bool_not", "Not", [rand(17, dtype=bool)])
    c, a, b = rand(4, 1, dtype=bool), rand(4, 5, dtype=bool), rand(1, 5, dtype=bool)
    one("bool_where", "Where", [c, a, b], expect=[np.where(c, a, b)])
    one("bool_gather", "Gather", [rand(4, 5, dtype=bool), ints(-1, 0)])
    one("bool_concat", "Concat", [rand(3, 2, dtype=bool), rand(3, 5, dtype=bool)], axis=1)
    one("bool_transpose", "Transpose", [rand(7, 9, dtype=bool)], perm=[1, 0])
    one("bool_pad", "Pad", [rand(3, 3, dtype=bool), ints(1, 0, 0, 2)], constants=(1,))
    x = rand(6, 7, dtype=bool)
    one("bool_slice_back", "Slice", [x, ints(-1), ints(-100), ints(1), ints(-2)], constants=(1, 2, 3, 4), expect=[x[:, ::-2]])
    one("bool_reduce_max", "ReduceMax", [x, ints(1)], constants=(1,), expect=[x.any(1, keepdims=True)])
    one("bool_reduce_min", "ReduceMin", [x, ints(1)], constants=(1,), expect=[x.all(1, keepdims=True)])


def add_integers():
    for dtype in (i32, i64):
        low, n = np.iinfo(dtype).min, np.dtype(dtype).name
        a = np.array([7, -7, 7, -7, 5, low, low, 0], dtype)
        b = np.array([2, 2, -2, -2, 0, -1, 1, 0], dtype)
        one(f"div_{n}", "Div", [a, b], expect=[np.array([3, -3, -3, 3, 0, low, low, 0], dtype)])
        a, b = np.array([7, -7, 7, -7, 5, low, 0], dtype), np.array([3, 3, -3, -3, 0, -1, 5], dtype)
        one(f"mod_{n}", "Mod", [a, b], expect=[np.array([1, 2, -2, -1, 0, 0, 0], dtype)])
        one(f"fmod_{n}", "Mod", [a, b], fmod=1, expect=[np.array([1, -1, 1, -1, 0, 0, 0], dtype)])
        for by in (7, 8, -8, -7):
            x = rand(100, dtype=dtype) * 1000
            one(f"div_{n}_by_{by}", "Div", [x, scalar(by, dtype)], constants=(1,), expect=[np.trunc(x / by).astype(dtype)])
            one(f"mod_{n}_by_{by}", "Mod", [x, scalar(by, dtype)], constants=(1,), expect=[np.mod(x, dtype(by))])
        one(f"div_{n}_by_0", "Div", [rand(20, dtype=dtype), scalar(0, dtype)], constants=(1,), expect=[empty(20, dtype=dtype)])
        # Once an expression of 2^31 nodes to all that walk it as a tree.
        a, b = np.array([2, -3, 1, -1, 0, 7, -1, 5, 3], dtype), np.array([10, 3, -5, -3, 0, 2, -4, -1, 19], dtype)
        one(f"pow_{n}", "Pow", [a, b], expect=[np.array([1024, -27, 1, -1, 1, 49, 1, 0, 3**19], dtype)])
        x = rand(30, dtype=dtype)
        one(f"pow_{n}_by_3", "Pow", [x, scalar(3, dtype)], constants=(1,), expect=[x**3])
        one(f"pow_{n}_by_5", "Pow", [x, scalar(5, dtype)], constants=(1,), expect=[x**5])
        one(f"matmul_{n}", "MatMul", [rand(5, 7, dtype=dtype), rand(7, 3, dtype=dtype)])
        one(f"clip_{n}", "Clip", [rand(19, dtype=dtype), scalar(-5, dtype), scalar(5, dtype)])
        for kind in ("Sum", "Max", "Min", "Mean"):
            one(f"reduce_{kind}_{n}", f"Reduce{kind}", [rand(5, 11, dtype=dtype), ints(1)], constants=(1,))
        one(f"relu_{n}", "Relu", [np.array([low, -1, 0, 1], dtype)], expect=[np.array([0, 0, 0, 1], dtype)])
    one("div_u8", "Div", [ints(200, 7, 5, dtype=u8), ints(3, 0, 255, dtype=u8)], expect=[ints(66, 0, 0, dtype=u8)])
    one("neg_lowest", "Neg", [ints(-2**31, 5, dtype=i32)], expect=[ints(-2**31, -5, dtype=i32)])
    one("abs_lowest", "Abs", [ints(-2**31, -5, dtype=i32)], expect=[ints(-2**31, 5, dtype=i32)])
    one("max_pool_u8", "MaxPool", [rand(1, 2, 7, 7, dtype=u8)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])


def add_nan_and_infinity():
    a, b = floats(NAN, 1, -1, INF, -INF, 0, -0.0, NAN), floats(1, NAN, NAN, NAN, 2, NAN, -3, NAN)
    one("nan_max", "Max", [a, b], expect=[np.maximum(a, b)])
    one("nan_min", "Min", [a, b], expect=[np.minimum(a, b)])
    one("nan_relu", "Relu", [a], expect=[np.maximum(a, 0)])
    clipped = [np.clip(a, -0.5, 0.5)]
    one("nan_clip", "Clip", [a, scalar(-0.5), scalar(0.5)], expect=clipped)
    one("nan_clip_constant", "Clip", [a, scalar(-0.5), scalar(0.5)], constants=(1, 2), expect=clipped)
    one("nan_clip_attributes", "Clip", [a], opset=7, min=-0.5, max=0.5, expect=clipped)
    rows = floats(1, NAN, 2, 3, 4, 5, -INF, -INF, -INF).reshape(3, 3)
    one("nan_reduce_max", "ReduceMax", [rows, ints(1)], constants=(1,), expect=[rows.max(1, keepdims=True)])
    one("nan_reduce_min", "ReduceMin", [rows, ints(1)], constants=(1,), expect=[rows.min(1, keepdims=True)])
    for op in ("Sigmoid Tanh Exp Log Sqrt Erf HardSwish HardSigmoid Softplus Floor Ceil Round Sign Neg Abs Reciprocal IsNaN "
               "IsInf Sin Cos Elu LeakyRelu Selu Softsign Celu").split():
        one(f"nan_{op}", op, [a])
    large = floats(100, -100, 88, 89, 1e4, -1e4, -88, -104, 1e-30, -1e-30, 1e38, -1e38)
    for op in ("Sigmoid", "Tanh", "Exp", "Erf", "HardSwish", "Softplus"):
        one(f"large_{op}", op, [large])
    for op in ("Equal", "Less", "GreaterOrEqual"):
        one(f"nan_{op}", op, [a, b])
    one("nan_softmax", "Softmax", [np.array([[1, NAN, 2], [1, 2, 3], [INF, 1, 2], [-INF, -INF, -INF], [-INF, 1, 2]], f32)])
    one("large_log_softmax", "LogSoftmax", [np.array([[1, 2, 3], [-INF, 1, 2], [1e4, 0, -1e4]], f32)])
    x = np.array([[1, 2, 3], [-INF, -INF, -INF], [1e4, 1e4, 0], [INF, 1, 2]], f32)
    one("large_log_sum_exp", "ReduceLogSumExp", [x, ints(1)], constants=(1,), expect=[floats(3.407606, -INF, 1e4 + np.log(2), INF).reshape(4, 1)])
    a, b = floats(0, 0, -1, -8, INF, -INF, NAN, 1, 2, 0, -2, 4), floats(0, -1, INF, 1 / 3, 0, 3, 0, NAN, -INF, 2, 3, 0.5)
    one("nan_pow", "Pow", [a, b], expect=[np.power(a, b)])
    a, b = floats(1e8, -1e8, 7.5, -7.5, 3, 0, -0.0, 1e7, -3, 5), floats(3, 3, 2, 2, INF, 5, 5, 0.1, INF, -INF)
    one("fmod_float", "Mod", [a, b], fmod=1, expect=[np.fmod(a, b)])
    one("mod_float", "Mod", [a, b], opset=28, expect=[np.mod(a, b)])


def saturated(x, dtype):
    info = np.iinfo(dtype)
    def element(v):
        if np.isnan(v):
            return 0
        return info.max if v >= info.max else info.min if v <= info.min else int(v)
    return np.array([element(float(v)) for v in x], dtype)


def add_windows_of_nan():
    """A window of nothing but NaN gives NaN, others their largest number, in every algorithm."""
    for name, shape, attrs in (("plain", (1, 1, 4, 4), {}), ("blocked", (1, 32, 6, 6), {}), ("padded", (1, 16, 5, 5), {"pads": [1, 1, 1, 1]}),
                               ("strided", (2, 3, 7, 9), {"strides": [2, 2]}), ("ceil", (1, 8, 5, 5), {"strides": [2, 2], "ceil_mode": 1})):
        for kind in ("all", "some"):
            x = rand(*shape)
            x[..., :3, :3] = NAN if kind == "all" else x[..., :3, :3]
            x[..., -1, -1] = NAN
            padded = np.full(shape[:2] + tuple(d + 2 * ("pads" in attrs) + ("ceil_mode" in attrs) for d in shape[2:]), NAN, f32)
            at = 1 if "pads" in attrs else 0
            padded[..., at:at + shape[2], at:at + shape[3]] = x
            windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 2), (2, 3))
            step = attrs.get("strides", [1, 1])
            windows = windows[:, :, ::step[0], ::step[1]]
            if "ceil_mode" not in attrs:
                n = [(d + 2 * at - 2) // s + 1 for d, s in zip(shape[2:], step)]
                windows = windows[:, :, :n[0], :n[1]]
            one(f"max_pool_nan_{name}_{kind}", "MaxPool", [x], opset=12, kernel_shape=[2, 2], expect=[np.nanmax(windows, (-1, -2))], **attrs)
    one("max_pool_nan_indices", "MaxPool", [np.full((1, 1, 3, 3), NAN, f32)], outputs=2, opset=12, kernel_shape=[2, 2],
        expect=[np.full((1, 1, 2, 2), NAN, f32), ints([[0, 1], [3, 4]]).reshape(1, 1, 2, 2)])
    one("global_max_pool_nan", "GlobalMaxPool", [np.full((1, 4, 3, 3), NAN, f32)], expect=[np.full((1, 4, 1, 1), NAN, f32)])


def add_subnormal_weights():
    """Weights below f32's normal numbers are zeros; those that are no numbers stay what they are."""
    w = rand(33, 19)
    w[::2, ::3] = 1e-39 * np.sign(w[::2, ::3])
    w[1::4, 1::5] = 1e-20
    one("subnormal_product", "MatMul", [rand(5, 33), w], constants=(1,))
    one("subnormal_left_factor", "MatMul", [w, rand(19, 3)], constants=(0,))
    scale = np.where(np.arange(33) % 2, 1e-20, 1).astype(f32)
    scaled = [helper.make_node("Mul", ["i1", "i2"], ["w"]), helper.make_node("MatMul", ["i0", "w"], ["o0"])]
    add("subnormal_scaled_product", scaled, [rand(4, 33), w, scale.reshape(33, 1)], constants=(1, 2))
    one("subnormal_conv", "Conv", [rand(1, 19, 6, 6), np.broadcast_to(w[:, :, None, None], (33, 19, 3, 3)).copy()], constants=(1,), pads=[1, 1, 1, 1])
    odd = w.copy()
    odd[3, 2], odd[4, 5] = NAN, -INF
    x = rand(2, 33)
    one("subnormal_product_of_nan", "MatMul", [x, odd], constants=(1,), expect=[(x.astype(f64) @ odd.astype(f64)).astype(f32)])


def add_integer_convolutions():
    """Zero points of both operands, for all maps or each, known or with the call; what is outside of the input is none."""
    def conv(x, w, zx, zw, pads=(0, 0, 0, 0), stride=1, dilation=1, group=1):
        x = np.pad(x.astype(i64) - zx, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
        w = w.astype(i64) - np.reshape(zw, (-1, 1, 1, 1))
        maps, depth, high, wide = w.shape
        rows, columns = ((x.shape[2 + i] - dilation * (k - 1) - 1) // stride + 1 for i, k in enumerate((high, wide)))
        y = np.zeros((x.shape[0], maps, rows, columns), i64)
        for m in range(maps):
            first = m // (maps // group) * depth
            for r, c in np.ndindex(high, wide):
                window = x[:, first:first + depth, r * dilation:, c * dilation:][:, :, :stride * (rows - 1) + 1:stride, :stride * (columns - 1) + 1:stride]
                y[:, m] += np.tensordot(w[m, :, r, c], window, (0, 1))
        return y.astype(i32)

    draw = np.random.default_rng(7)
    forms = [((1, 5, 6, 7), (9, 5, 3, 3), {"pads": [1, 0, 2, 1]}), ((2, 16, 5, 5), (33, 16, 1, 1), {}), ((1, 4, 9, 8), (6, 2, 3, 2), {"group": 2, "pads": [1, 1, 1, 1]}),
             ((1, 3, 8, 9), (16, 3, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}), ((1, 17, 7, 7), (8, 17, 3, 3), {"dilations": [2, 2], "pads": [2, 2, 2, 2]})]
    for number, (of_x, of_w, attrs) in enumerate(forms):
        given = {"pads": attrs.get("pads", (0,) * 4), "stride": attrs.get("strides", [1])[0], "dilation": attrs.get("dilations", [1])[0], "group": attrs.get("group", 1)}
        for kind_x, kind_w, each, fixed in ((u8, u8, False, False), (u8, u8, True, True), (u8, i8, True, False), (i8, i8, False, True), (i8, u8, False, False)):
            x, w = (draw.integers(np.iinfo(k).min, np.iinfo(k).max + 1, s).astype(k) for k, s in ((kind_x, of_x), (kind_w, of_w)))
            zx = scalar(draw.integers(np.iinfo(kind_x).min, np.iinfo(kind_x).max), kind_x)
            zw = draw.integers(np.iinfo(kind_w).min, np.iinfo(kind_w).max, of_w[0] if each else ()).astype(kind_w)
            one(f"conv_integer_{number}_{np.dtype(kind_x).name}_{np.dtype(kind_w).name}_{'each' if each else 'all'}", "ConvInteger", [x, w, zx, zw], constants=(1, 2, 3) if fixed else (1, 3),
                expect=[conv(x, w, int(zx), zw.astype(i64), **given)], **attrs)
        one(f"conv_integer_{number}_weights_alone", "ConvInteger", [x, w, None, zw], constants=(1, 3), expect=[conv(x, w, 0, zw.astype(i64), **given)], **attrs)


def add_far_ends():
    """Steps and bounds at the ends of 64 bits."""
    most, least = 2**63 - 1, -2**63
    for name, start, end, step in (("long", 0, most, most), ("longer", 3, most, 2**62), ("back", -1, least, least), ("back_long", -2, least, -most)):
        x = rand(5, 3)
        one(f"slice_step_{name}", "Slice", [x, ints(start), ints(end), ints(0), ints(step)], constants=(1, 2, 3, 4), expect=[x[start:end:step] if abs(step) < most else x[[start]]])
    for name, start, end, step in (("top", most - 5, most, 2), ("bottom", least + 5, least, -3), ("across", least, most, 2**62), ("back", most, least, least),
                                   ("down", most, least, -2**62)):
        want = [v for v in range(start, end, step)]
        one(f"range_{name}", "Range", [scalar(start, i64), scalar(end, i64), scalar(step, i64)], constants=(0, 1, 2), expect=[np.array(want, i64)])
    one("nan_attribute", "LeakyRelu", [floats(-1, 2)], alpha=NAN, expect=[floats(NAN, 2)])
    one("nan_epsilon", "LayerNormalization", [rand(2, 4), rand(4)], epsilon=NAN, expect=[np.full((2, 4), NAN, f32)])


def add_exact_transforms():
    """What is left of a transform of float64 beside NumPy's, a million times: nothing, but of factors that are of float32."""
    for n in (7, 13, 30):
        x = rand(1, n, 1, dtype=f64)
        z = np.fft.fft(x[0, :, 0])
        want = np.stack([z.real, z.imag], 1)[None]
        add(f"dft_f64_{n}", [helper.make_node("DFT", ["i0"], ["z"]), helper.make_node("Sub", ["z", "i1"], ["d"]), helper.make_node("Mul", ["d", "i2"], ["o0"])],
            [x, want, np.array(1e6)], expect=[np.zeros((1, n, 2))])


def add_narrow_casts():
    every = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(f32)  # and so all that narrow types round to even
    x = np.concatenate([every, every * f32(1.0001), (rng.standard_normal(5003) * 100).astype(f32)])
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"):
        dtype = np.dtype(getattr(ml_dtypes, name))
        to, info = helper.np_dtype_to_tensor_dtype(dtype), ml_dtypes.finfo(dtype)
        one(f"cast_to_{name}", "Cast", [x], to=to, saturate=0, expect=[x.astype(dtype)])
        most = np.clip(x, f32(info.min), f32(info.max)).astype(dtype)
        one(f"cast_to_{name}_saturated", "Cast", [x], to=to, expect=[most])
        codes = np.arange(2**info.bits, dtype=u8).view(dtype)
        one(f"cast_from_{name}", "Cast", [codes], to=onnx.TensorProto.FLOAT, expect=[codes.astype(f32)])
        one(f"move_{name}", "Transpose", [codes.reshape(4, -1)], perm=[1, 0], expect=[codes.reshape(4, -1).T])
        one(f"constant_{name}", "Cast", [codes], constants=(0,), to=onnx.TensorProto.FLOAT, expect=[codes.astype(f32)])
        one(f"filled_{name}", "ConstantOfShape", [ints(2, 3)], opset=25, value=numpy_helper.from_array(codes[3:4]), expect=[np.full((2, 3), codes[3])])
        if info.bits == 8:
            one(f"bits_of_{name}", "BitCast", [codes], opset=26, to=onnx.TensorProto.UINT8, expect=[codes.view(u8)])
            one(f"bits_as_{name}", "BitCast", [codes.view(u8)], opset=26, to=to, expect=[codes])
    for name in ("int4", "uint4", "int2", "uint2"):
        dtype = np.dtype(getattr(ml_dtypes, name))
        to, x = helper.np_dtype_to_tensor_dtype(dtype), np.arange(-128, 128)
        one(f"cast_to_{name}", "Cast", [x.astype(i32)], to=to, expect=[x.astype(np.int8).astype(dtype)])
        one(f"cast_from_{name}", "Cast", [x.astype(np.int8).view(dtype)], to=onnx.TensorProto.INT32, expect=[x.astype(np.int8).astype(dtype).astype(i32)])
        for size in (0, 1, 7):
            some = x[100:100 + size].astype(np.int8).astype(dtype)
            one(f"constant_{name}_{size}", "Cast", [some], constants=(0,), to=onnx.TensorProto.FLOAT, expect=[some.astype(f32)])
        few = np.arange(0, 2**int(name[-1])).astype(np.int8).astype(dtype)
        turned = name[1:] if name[0] == "u" else "u" + name
        other = few.astype(np.int8).astype(np.dtype(getattr(ml_dtypes, turned)))
        one(f"bits_of_{name}", "BitCast", [few], opset=26, to=helper.np_dtype_to_tensor_dtype(other.dtype), expect=[other])
        one(f"filled_{name}", "ConstantOfShape", [ints(2, 3)], opset=25, value=numpy_helper.from_array(few[3:4]), expect=[np.full((2, 3), few[3])])


def add_casts():
    x = np.tile(floats(1e20, -1e20, INF, -INF, NAN, 2.9, -2.9, 255.9, -0.5, 2147483520.0, 3e9, -3e9, 0), 3)
    for dtype in (np.int8, u8, np.int16, np.uint16, i32, np.uint32, i64, np.uint64):
        to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        one(f"cast_f32_{np.dtype(dtype).name}", "Cast", [x], to=to, expect=[saturated(x, dtype)])
    one("cast_f32_bool", "Cast", [x], to=onnx.TensorProto.BOOL, expect=[x != 0])
    wide = ints(2**40 + 5, -2**33 - 1, -1, 2**31)
    one("cast_i64_i32", "Cast", [wide], to=onnx.TensorProto.INT32, expect=[wide.astype(i32)])
    one("cast_i32_u8", "Cast", [ints(300, -1, 128, dtype=i32)], to=onnx.TensorProto.UINT8, expect=[ints(44, 255, 128, dtype=u8)])
    one("cast_f64_f32", "Cast", [np.array([1e300, -1e300, 1e-300, 0.1])], to=onnx.TensorProto.FLOAT)
    kinds = (bool, np.float16, f32, f64, np.int8, u8, np.int16, np.uint16, i32, np.uint32, i64, np.uint64)
    for source in kinds:
        x = np.abs(rand(37, dtype=source)) if source != bool else rand(37, dtype=bool)
        for target in kinds:
            to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
            one(f"cast_{np.dtype(source).name}_{np.dtype(target).name}", "Cast", [x], to=to, expect=[x.astype(target)])


def add_indices():
    one("gather_negative", "Gather", [rand(5, 6, 7), ints(-1, 0, -5, 4)], axis=0)
    one("gather_negative_i32", "Gather", [rand(5, 6, 7), ints(-1, 0, -6, 5, dtype=i32)], axis=1)
    one("gather_negative_axis", "Gather", [rand(5, 6, 7), ints(-7, 6, 0)], axis=-1)
    one("gather_constant", "Gather", [rand(5, 6, 7), ints(-1, 2)], constants=(1,), axis=1)
    one("gather_elements_negative", "GatherElements", [rand(3, 4), ints(-1, 0, 1, -3, 2, 2).reshape(3, 2)], axis=0)
    one("gather_nd_negative", "GatherND", [rand(4, 5, 6), ints(-1, -1, 0, 2, 3, -5).reshape(3, 2)])
    one("gather_nd_batch", "GatherND", [rand(2, 5, 6), ints(1, -1, 0, 4).reshape(2, 2, 1)], batch_dims=1)


def add_old_operator_sets():
    for axis in (0, 1, 2, -1):
        one(f"softmax_11_axis_{axis}", "Softmax", [rand(2, 3, 4)], opset=11, axis=axis)
    one("log_softmax_7", "LogSoftmax", [rand(2, 3, 4)], opset=7)
    one("clip_11", "Clip", [rand(9), scalar(0)], opset=11)
    one("clip_7", "Clip", [rand(9)], opset=7, min=-0.3)
    one("slice_7", "Slice", [rand(5, 6, 7)], opset=7, starts=[1, -3], ends=[1000, -1], axes=[0, 2])
    one("slice_10_back", "Slice", [rand(5, 6, 7), ints(-1, 2), ints(-2**63, 100), ints(0, -1), ints(-2, 3)], constants=(1, 2, 3, 4), opset=10)
    one("slice_11_i32", "Slice", [rand(5, 6), ints(0, dtype=i32), ints(2**31 - 1, dtype=i32)], constants=(1, 2), opset=11)
    one("squeeze_11", "Squeeze", [rand(1, 3, 1)], opset=11, axes=[-1])
    one("unsqueeze_11", "Unsqueeze", [rand(3)], opset=11, axes=[0, -1])
    one("reduce_sum_11", "ReduceSum", [rand(3, 4, 5)], opset=11, axes=[1, -1], keepdims=0)
    one("reduce_mean_11", "ReduceMean", [rand(3, 4, 5)], opset=11)
    one("pad_7_crop", "Pad", [rand(3, 4)], opset=7, pads=[1, -1, 2, 0], value=1.5)
    one("pad_9_reflect", "Pad", [rand(3, 4)], opset=9, pads=[2, 1, 1, 3], mode="reflect")
    one("pad_18_axes", "Pad", [rand(3, 4), ints(2, 1), scalar(7), ints(-1)], constants=(1, 2, 3), opset=18)
    one("upsample_9", "Upsample", [rand(1, 2, 3, 4), floats(1, 1, 2, 3)], constants=(1,), opset=9)
    one("upsample_9_linear", "Upsample", [rand(1, 2, 3, 4), floats(1, 1, 2, 2)], constants=(1,), opset=9, mode="linear")
    one("resize_10", "Resize", [rand(1, 2, 6, 4), floats(1, 1, 0.5, 2)], constants=(1,), opset=10)
    one("split_7", "Split", [rand(6, 5)], outputs=3, opset=7, axis=0)
    one("split_11", "Split", [rand(6, 5)], outputs=2, opset=11, axis=-1, split=[2, 3])
    one("split_18", "Split", [rand(7, 5)], outputs=3, opset=18, axis=0, num_outputs=3)
    one("batch_norm_7", "BatchNormalization", [rand(2, 3, 4, 5), rand(3), rand(3), rand(3), abs(rand(3))], opset=7)
    one("batch_norm_9", "BatchNormalization", [rand(2, 3), rand(3), rand(3), rand(3), abs(rand(3))], opset=9, constants=(1, 2, 3, 4))
    one("gemm_7", "Gemm", [rand(4, 3), rand(5, 4), rand(5)], opset=7, transA=1, transB=1, alpha=0.5, beta=2.0)
    one("dropout_7", "Dropout", [rand(5)], opset=7)
    one("flatten_9", "Flatten", [rand(2, 3, 4)], opset=9, axis=2)
    one("arg_min_11", "ArgMin", [rand(5, 7)], opset=11, axis=-1, keepdims=0)


def add_several_results():
    one("topk", "TopK", [rand(3, 17), ints(5)], outputs=2, constants=(1,))
    one("topk_smallest_middle_axis", "TopK", [rand(2, 9, 5), ints(4)], outputs=2, constants=(1,), axis=1, largest=0)
    one("topk_equal_ones", "TopK", [ints(3, 1, 3, 3, 1, 2), ints(6)], outputs=2, constants=(1,))
    one("topk_of_a_scalar_axis", "TopK", [rand(4, 1), ints(1)], outputs=2, constants=(1,))
    one("topk_none", "TopK", [rand(4, 3), ints(0)], outputs=2, constants=(1,), expect=[empty(4, 0), empty(4, 0, dtype=i64)])
    one("topk_nan_is_largest", "TopK", [floats(1, NAN, INF, -INF, NAN, 2), ints(6)], outputs=2, constants=(1,),
        expect=[floats(NAN, NAN, INF, 2, 1, -INF), ints(1, 4, 2, 5, 0, 3)])
    one("topk_nan_is_not_smallest", "TopK", [floats(1, NAN, INF, -INF, NAN, 2), ints(6)], outputs=2, constants=(1,), largest=0,
        expect=[floats(-INF, 1, 2, INF, NAN, NAN), ints(3, 0, 5, 2, 1, 4)])
    one("topk_10", "TopK", [rand(2, 70), ints(3)], outputs=2, constants=(1,), opset=10)
    # The values go on in the same kernel, the places leave it.
    add("topk_and_more", [helper.make_node("TopK", ["i0", "i1"], ["v", "o1"]), helper.make_node("Exp", ["v"], ["e"]),
                          helper.make_node("Mul", ["e", "i2"], ["o0"])], [rand(4, 12), ints(3), rand(3)], outputs=2, constants=(1,))
    add("topk_values_alone", [helper.make_node("TopK", ["i0", "i1"], ["v", "unread"]), helper.make_node("Neg", ["v"], ["o0"])],
        [rand(4, 12), ints(3)], constants=(1,))


def add_integer_contractions():
    for a, b in ((u8, u8), (u8, i8), (i8, i8)):
        kind = f"{np.dtype(a).name}_{np.dtype(b).name}"
        x, w = rand(5, 7, dtype=a), rand(7, 6, dtype=b)
        product = lambda za, zb: (x.astype(i32) - za) @ (w.astype(i32) - zb)
        one(f"matmul_integer_{kind}", "MatMulInteger", [x, w], expect=[product(0, 0)])
        one(f"matmul_integer_{kind}_scalars", "MatMulInteger", [x, w, scalar(3, a), scalar(5, b)], expect=[product(3, 5)])
        rows, columns = rand(5, dtype=a), rand(6, dtype=b)
        one(f"matmul_integer_{kind}_columns", "MatMulInteger", [x, w, scalar(3, a), columns], constants=(1, 2, 3),
            expect=[product(3, columns.astype(i32))])
        one(f"matmul_integer_{kind}_rows", "MatMulInteger", [x, w, rows, columns], constants=(3,),
            expect=[product(rows.astype(i32)[:, None], columns.astype(i32))])
    x, w = rand(2, 3, 4, 9, dtype=u8), rand(9, 5, dtype=i8)
    one("matmul_integer_batches", "MatMulInteger", [x, w, scalar(7, u8), scalar(-2, i8)], expect=[(x.astype(i32) - 7) @ (w.astype(i32) + 2)])
    one("matmul_integer_vector", "MatMulInteger", [x[0, 0, 0], w, scalar(7, u8), scalar(0, i8)], constants=(3,),
        expect=[(x[0, 0, 0].astype(i32) - 7) @ w.astype(i32)])
    one("matmul_integer_largest", "MatMulInteger", [np.full((2, 600), 255, u8), np.full((600, 2), 127, i8)],
        expect=[np.full((2, 2), 255 * 127 * 600, i32)])
    # Weights are arranged for the machine's unit: sizes around a register tile, a vector and a group of four.
    for m, k, n in ((1, 1, 2), (1, 64, 33), (5, 3, 16), (7, 4, 17), (13, 97, 40), (33, 65, 49)):
        for a, b in ((u8, i8), (u8, u8), (i8, i8), (i8, u8)):
            ends = lambda t: (np.iinfo(t).min, np.iinfo(t).max + 1)
            x, w = rng.integers(*ends(a), (m, k)).astype(a), rng.integers(*ends(b), (k, n)).astype(b)
            za, zb = rng.integers(*ends(a)).astype(a), rng.integers(*ends(b), n).astype(b)
            kind = f"matmul_integer_weights_{np.dtype(a).name}_{np.dtype(b).name}_{m}_{k}_{n}"
            exact = (x.astype(i64) - za) @ (w.astype(i64) - zb)
            one(kind, "MatMulInteger", [x, w, scalar(za, a), zb], constants=(1, 2, 3), expect=[exact.astype(i32)])
            one(f"{kind}_plain", "MatMulInteger", [x, w], constants=(1,), expect=[x.astype(i32) @ w.astype(i32)])
    x, w, zero = rand(2, 3, 5, 30, dtype=u8), rand(30, 18, dtype=i8), scalar(100, u8)
    one("matmul_integer_weights_batches", "MatMulInteger", [x, w, zero], constants=(1, 2), expect=[(x.astype(i32) - 100) @ w.astype(i32)])
    for name, x in (("values", rand(5, 30)), ("zeros", np.zeros((3, 4), f32)), ("positive", abs(rand(40))), ("scalar", scalar(-2.5))):
        one(f"dynamic_quantize_{name}", "DynamicQuantizeLinear", [x], outputs=3)
    for m, b, zero in ((1, i8, 0), (9, i8, 0), (9, u8, 131)):
        add(f"quantised_linear_{m}_{np.dtype(b).name}",
            [helper.make_node("DynamicQuantizeLinear", ["i0"], ["q", "scale", "zero"]),
             helper.make_node("MatMulInteger", ["q", "i1", "zero", "i2"], ["p"]), helper.make_node("Cast", ["p"], ["f"], to=1),
             helper.make_node("Mul", ["scale", "i3"], ["scales"]), helper.make_node("Mul", ["f", "scales"], ["d"]),
             helper.make_node("Add", ["d", "i4"], ["e"]), helper.make_node("Relu", ["e"], ["o0"])],
            [rand(m, 70), rng.integers(0, 127, (70, 45)).astype(b), scalar(zero, b), abs(rand(45)) * f32(0.01), rand(45)], constants=(1, 2, 3, 4))
    x, w = rand(2, 4, 8, 7, dtype=u8), rand(6, 4, 3, 3, dtype=u8)
    for name, more in (("plain", []), ("input", [scalar(11, u8)]), ("both", [scalar(11, u8), scalar(9, u8)])):
        one(f"conv_integer_{name}", "ConvInteger", [x, w, *more], constants=(1, 3), pads=[1, 0, 1, 2], strides=[2, 1])
    for c, m, k, size in ((1, 2, 1, 1), (3, 17, 3, 9), (16, 16, 3, 7), (20, 33, 1, 5)):
        a, b, zero = rng.integers(0, 256, (2, c, size, size)).astype(u8), rng.integers(-128, 128, (m, c, k, k)).astype(i8), scalar(77, u8)
        one(f"conv_integer_weights_{c}_{m}_{k}", "ConvInteger", [a, b, zero], constants=(1,), pads=[k // 2] * 4)
        one(f"conv_integer_weights_{c}_{m}_{k}_strides", "ConvInteger", [a, b, zero], constants=(1, 2), strides=[2, 1])
        one(f"conv_integer_weights_{c}_{m}_{k}_plain", "ConvInteger", [a, b], constants=(1,), pads=[k // 2, 0, 0, k // 2])
    add("quantised_conv", [helper.make_node("DynamicQuantizeLinear", ["i0"], ["q", "scale", "zero"]),
                           helper.make_node("ConvInteger", ["q", "i1", "zero"], ["p"], pads=[1, 1, 1, 1]), helper.make_node("Cast", ["p"], ["f"], to=1),
                           helper.make_node("Mul", ["f", "scale"], ["d"]), helper.make_node("Relu", ["d"], ["o0"])],
        [rand(1, 20, 6, 6), rng.integers(-128, 128, (18, 20, 3, 3)).astype(i8)], constants=(1,))
    channels = rand(6, dtype=u8)
    padded = np.pad(x.astype(i64) - 11, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    exact = np.einsum("bcijkl,mckl->bmij", windows, w.astype(i64) - channels.astype(i64)[:, None, None, None])
    one("conv_integer_channels", "ConvInteger", [x, w, scalar(11, u8), channels], pads=[1, 1, 1, 1], expect=[exact.astype(i32)])
    one("conv_integer_groups", "ConvInteger", [rand(1, 4, 6, 6, dtype=u8), rand(4, 2, 3, 3, dtype=u8)], group=2)


def add_quantised_networks():
    """An image, quantised, through convolutions, by channel too, maxima, a residual and a concatenation. Scales are powers of two: nothing is rounded
    but the bytes, and every order of sums gives the same."""
    one_scale = scalar(0.25)
    for channels, maps, size, signed in ((1, 16, 5, False), (3, 20, 9, False), (4, 33, 7, True), (5, 16, 17, False), (17, 24, 1, True)):
        t = i8 if signed else u8
        nodes, inputs = [], [np.round(rand(1, channels, size, size) * 8) / 4]

        def constant(value):
            inputs.append(value)
            return f"i{len(inputs) - 1}"

        def quantised(x, scale, zero):
            with_scale = [constant(scalar(scale)), constant(scalar(zero, t))]
            nodes.append(helper.make_node("QuantizeLinear", [x, *with_scale], [f"{x}_q"]))
            nodes.append(helper.make_node("DequantizeLinear", [f"{x}_q", *with_scale], [f"{x}_d"]))
            return f"{x}_d"

        def conv(x, y, shape, **attrs):
            parts = [constant(rng.integers(-127, 128, shape).astype(i8)), constant(one_scale), constant(scalar(0, i8))]
            nodes.append(helper.make_node("DequantizeLinear", parts, [f"{y}_w"]))
            nodes.append(helper.make_node("Conv", [x, f"{y}_w"], [y], **attrs))

        x = quantised("i0", 0.25, 3)
        conv(x, "a", (maps, channels, 3, 3), pads=[1] * 4)
        nodes.append(helper.make_node("Relu", ["a"], ["b"]))
        b = quantised("b", 2.0, 0)
        nodes.append(helper.make_node("MaxPool", [b], ["c"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4))
        c = quantised("c", 2.0, 0)
        conv(c, "e", (maps, 1, 3, 3), pads=[1] * 4, group=maps)
        e = quantised("e", 32.0, 11)
        conv(e, "f", (maps, maps, 1, 1))
        f = quantised("f", 512.0, 1)
        nodes.append(helper.make_node("Add", [f, e], ["g"]))
        g = quantised("g", 256.0, -2 if signed else 7)
        conv(g, "h", (maps, maps, 1, 1))
        h = quantised("h", 2048.0, 4)
        nodes.append(helper.make_node("Concat", [h, g], ["j"], axis=1))
        nodes.append(helper.make_node("Add", [g, g], ["o1"]))
        quantised("j", 1024.0, 5)
        nodes[-1].output[0] = "o0"
        add(f"quantised_network_{channels}_{maps}_{size}_{np.dtype(t).name}", nodes, inputs, outputs=2, constants=range(1, len(inputs)),
            expect=reference_of(nodes, inputs))


def reference_of(nodes, inputs):
    """What the operators' definitions say, by the package's evaluator of them."""
    model = model_of(nodes, inputs, 2, range(1, len(inputs)), 21)
    return ReferenceEvaluator(model).run(None, {"i0": inputs[0]})


def to_bf16(x):
    """Rounded to the nearest bf16, ties to even."""
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(f32)


def add_found_by_random_networks():
    """What random networks made the compiler fail at."""
    f16, node = np.float16, helper.make_node
    # On halves, a maximum with a constant whose result two remainders surround became a call of fmaxf, which libraries have not got.
    x = rng.integers(-9, 9, 33).astype(f16)
    rest = np.fmod(x, f16(4))
    add("max_of_halves", [node("Mod", ["i0", "i1"], ["a"], fmod=1), node("Max", ["a", "i2"], ["b"]), node("Mod", ["a", "b"], ["o0"], fmod=1)],
        [x, scalar(4, f16), scalar(1, f16)], constants=(1, 2), expect=[np.fmod(rest, np.maximum(rest, f16(1)))])
    for maps, channels, width in ((8, 4, 1), (9, 9, 2), (33, 1, 1)):  # rows of one element, which have no vectors
        one(f"conv_to_width_1_{maps}_{channels}", "Conv", [rand(3, channels, width), rand(maps, channels, width)])
    # Sizes that a narrow integer would hold or not as a tensor's elements decide.
    add("narrow_size_by_values", [node("Compress", ["i0", "i1"], ["a"]), node("Shape", ["a"], ["b"]), node("Cast", ["b"], ["o0"], to=5)],
        [rand(9), rng.integers(0, 2, 9).astype(bool)])
    parts = [node("SplitToSequence", ["i0"], ["s"]), node("ConcatFromSequence", ["s"], ["a"], axis=0), node("Split", ["a", "i1"], ["o0", "o1"])]
    x = rand(16, 2)
    add("split_of_unknown_size", parts, [x, ints(3, 13)], 2, constants=(1,), expect=[x[:3], x[3:]])


def add_narrow_sums():
    """Sums of f16 are taken in f32 and rounded once: 4096 ones and a half would stand still at 2048."""
    f16 = np.float16
    ones = np.full((1, 4097), 1, f16)
    one("sum_f16", "ReduceSum", [ones, ints(1)], constants=(1,), expect=[np.full((1, 1), 4096, f16)])
    one("mean_f16", "ReduceMean", [ones, ints(1)], constants=(1,), expect=[np.full((1, 1), 1, f16)])
    one("l2_f16", "ReduceL2", [np.full((1, 300), 30, f16), ints(1)], constants=(1,), expect=[np.full((1, 1), 300**0.5 * 30).astype(f16)])
    one("matmul_f16", "MatMul", [ones, ones.T.copy()], expect=[np.full((1, 1), 4096, f16)])
    # Sums of small integers are exact in f32, whatever their order, and round once.
    x, w = (rng.integers(-8, 9, shape).astype(f16) for shape in ((1, 64, 5, 5), (2, 64, 3, 3)))
    one("softmax_f16", "Softmax", [np.zeros((2, 4096), f16)], expect=[np.full((2, 4096), 1 / 4096, f16)])
    # NumPy has no bf16, so conversions stand around.
    cast = lambda a, to, out: helper.make_node("Cast", [a], [out], to=to)
    add("matmul_bf16", [cast("i0", 16, "a"), cast("i1", 16, "b"), helper.make_node("MatMul", ["a", "b"], ["c"]), cast("c", 1, "o0")],
        [np.full((2, 4097), 1, f32), np.full((4097, 3), 1, f32)], expect=[np.full((2, 3), 4096, f32)])
    # Products of small integers are exact in any order and rounding; odd depths end in half a pair.
    for m, k, n in ((1, 1, 2), (3, 33, 17), (17, 64, 40), (18, 65, 16)):
        a, b = (rng.integers(-8, 9, shape).astype(f32) for shape in ((m, k), (k, n)))
        add(f"matmul_bf16_{m}_{k}_{n}", [cast("i0", 16, "a"), cast("i1", 16, "b"), helper.make_node("MatMul", ["a", "b"], ["c"]), cast("c", 1, "o0")],
            [a, b], constants=(1,), expect=[to_bf16(a @ b)])
    add("sum_bf16", [cast("i0", 16, "a"), helper.make_node("ReduceSum", ["a", "i1"], ["c"]), cast("c", 1, "o0")], [np.full((2, 1000), 1, f32), ints(1)],
        constants=(1,), expect=[np.full((2, 1), 1000, f32)])
    exact = np.einsum("bcijkl,mckl->bmij", np.lib.stride_tricks.sliding_window_view(x.astype(f64), (3, 3), (2, 3)), w.astype(f64))
    one("conv_f16", "Conv", [x, w], expect=[exact.astype(f16)])


def info(name, array):
    array = np.asarray(array)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def graph(nodes, inputs=(), outputs=(), constants=None):
    """A graph of an attribute; inputs and outputs are (name, an array like it)."""
    constants = [numpy_helper.from_array(np.asarray(x), name) for name, x in (constants or {}).items()]
    return helper.make_graph(nodes, "inner", [info(*x) for x in inputs], [info(*x) for x in outputs], constants)


def branches(condition, then_graph, else_graph, outputs=("o0",)):
    return helper.make_node("If", [condition], list(outputs), then_branch=then_graph, else_branch=else_graph)


def add_branches():
    node = helper.make_node
    x, like = rand(3, 20), rand(3, 20)
    for taken in (True, False):
        yes, name = scalar(taken, bool), str(taken).lower()
        # The branches differ, read values of the graph around them, and have weights of their own.
        scaled = graph([node("MatMul", ["t", "w"], ["m"]), node("Softmax", ["m"], ["r"])], outputs=[("r", like)], constants={"w": rand(20, 20)})
        moved = graph([node("Add", ["i1", "b"], ["s"]), node("Sigmoid", ["s"], ["u"]), node("Mul", ["u", "t"], ["r"])], outputs=[("r", like)],
                      constants={"b": rand(20)})
        add(f"if_{name}", [node("Exp", ["i1"], ["t"]), branches("i0", scaled, moved, ["c"]), node("Add", ["c", "t"], ["o0"])], [yes, x])
        add(f"if_known_{name}", [node("Exp", ["i1"], ["t"]), branches("i0", scaled, moved, ["c"]), node("Add", ["c", "t"], ["o0"])], [yes, x], constants=(0,))
        # Only the branch that is taken need fit.
        shorter = graph([node("ReduceSum", ["i1"], ["r"], keepdims=0)], outputs=[("r", f32(0))])
        add(f"if_known_of_other_types_{name}", [branches("i0", *((scaled, shorter) if taken else (shorter, moved)), ["c"]), node("Exp", ["i1"], ["t"]), node("Neg", ["c"], ["o0"])],
            [yes, x], constants=(0,))
        # Values of the graph around it given back as they are, both results of one, and one result used twice.
        through = graph([node("Identity", ["i1"], ["r"]), node("Identity", ["i2"], ["s"])], outputs=[("r", like), ("s", like)])
        crossed = graph([node("Identity", ["i2"], ["r"]), node("Neg", ["r"], ["s"])], outputs=[("r", like), ("s", like)])
        add(f"if_gives_back_{name}", [branches("i0", through, crossed, ["o0", "o1"])], [yes, x, like], outputs=2)
        # Nested, reading names two graphs further out; a condition of rank 1.
        inner = graph([branches("i3", graph([node("Relu", ["i1"], ["p"])], outputs=[("p", like)]), graph([node("Mul", ["i1", "q"], ["p"])], outputs=[("p", like)]), ["v"]),
                       node("Neg", ["v"], ["r"])], outputs=[("r", like)])
        add(f"if_nested_{name}", [node("Tanh", ["i2"], ["q"]), branches("i0", inner, graph([node("Abs", ["q"], ["r"])], outputs=[("r", like)]))],
            [ints(taken, dtype=bool), x, like, scalar(not taken, bool)])
        # Feature maps in blocks with halos on both sides of a branch and in it.
        image, weights = rand(1, 16, 9, 9), rand(16, 16, 3, 3) / 12
        conv = lambda a, w, r: node("Conv", [a, w], [r], pads=[1, 1, 1, 1])
        inside = graph([conv("a", "w2", "k"), node("Relu", ["k"], ["r"])], outputs=[("r", image)], constants={"w2": rand(16, 16, 3, 3) / 12})
        add(f"if_convolutions_{name}", [conv("i1", "i2", "a"), conv("a", "i2", "z"), branches("i0", inside, graph([node("Sigmoid", ["a"], ["r"])], outputs=[("r", image)]), ["c"]),
                                        conv("c", "i2", "d"), node("Add", ["d", "z"], ["o0"])], [yes, image, weights], constants=(2,))


def loop_node(inputs, outputs, nodes, carried, more=(), condition="go", constants=None):
    """A Loop whose body reads n, c and the carried values a0, a1, … and gives `condition` and b0, b1, …, then `more`."""
    body = graph(nodes, [("n", scalar(0, i64)), ("c", scalar(True, bool)), *((f"a{k}", x) for k, x in enumerate(carried))],
                 [(condition, scalar(True, bool)), *((f"b{k}", x) for k, x in enumerate(carried)), *more], constants)
    return helper.make_node("Loop", list(inputs), list(outputs), body=body)


def add_loops():
    node = helper.make_node
    x, w = rand(3, 20) / 4, rand(20, 20) / 9  # which shrinks
    step = [node("MatMul", ["a0", "i2"], ["m"]), node("Tanh", ["m"], ["b0"])]
    go_on = node("Identity", ["c"], ["go"])
    for count in (0, 1, 6):
        counted = loop_node(["i0", "", "i1"], ["o0", "o1"], [go_on, *step, node("Cast", ["n"], ["f"], to=1), node("Add", ["b0", "f"], ["s"])], [x], [("s", x)])
        if count:
            add(f"loop_{count}", [counted], [scalar(count, i64), x, w], outputs=2, constants=(0, 2))
        add(f"loop_while_{count}", [loop_node(["i0", "", "i1"], ["o0"], [go_on, *step], [x])], [scalar(count, i64), x, w], constants=(2,))
        bounded = [*step, node("ReduceL2", ["b0"], ["l"], keepdims=0), node("Greater", ["l", "least"], ["go"])]
        add(f"loop_until_{count}", [loop_node(["", "i0", "i1"], ["o0"], bounded, [x], constants={"least": f32(0.5)})], [scalar(count > 0, bool), x, w])
        both = [*bounded, node("Add", ["a1", "n"], ["b1"])]
        add(f"loop_until_or_{count}", [loop_node(["i0", "i3", "i1", "i4"], ["o0", "o1"], both, [x, scalar(0, i64)], constants={"least": f32(0.2)})],
            [scalar(count, i64), x, w, scalar(True, bool), scalar(5, i64)], outputs=2)
    # What is collected lies where a view of it is an output: rows of the one are none of the other.
    row = rand(5)
    running = node("Scan", ["i0", "i1"], ["o0", "all"], num_scan_inputs=1,
                   body=graph([node("Add", ["s", "r"], ["s1"]), node("Identity", ["s1"], ["z"])], [("s", row), ("r", row)], [("s1", row), ("z", row)]))
    add("scan_collects_through_a_view", [running, node("Unsqueeze", ["all", "i2"], ["o1"])], [row, rand(4, 5), ints(0)], outputs=2, constants=(2,))
    # One value is several results of a body, which ONNX Runtime computes of loops alone.
    twice = node("Scan", ["i0", "i1"], ["o0", "o1"], num_scan_inputs=1,
                 body=graph([node("Add", ["s", "r"], ["s1"])], [("s", row), ("r", row)], [("s1", row), ("s1", row)]))
    rows = rand(4, 5)
    add("scan_gives_one_value_twice", [twice], [row, rows], outputs=2, expect=[row + rows.sum(0, dtype=f32), row + np.cumsum(rows, 0, dtype=f32)])
    sides = [graph([node(op, ["i1"], ["v"])], [], [("v", row), ("v", row)]) for op in ("Neg", "Abs")]
    add("if_gives_one_value_twice", [node("If", ["i0"], ["o0", "o1"], then_branch=sides[0], else_branch=sides[1])], [scalar(True, bool), row],
        outputs=2, expect=[-row, -row])
    # Fibonacci: each carried value becomes another's.
    fib = loop_node(["i0", "", "i1", "i2"], ["o0", "o1", "o2"], [go_on, node("Add", ["a0", "a1"], ["b1"]), node("Identity", ["a1"], ["b0"])],
                    [scalar(0), scalar(1)], [("a0", scalar(0))])
    add("loop_changes_places", [fib], [scalar(9, i64), scalar(0), scalar(1)], outputs=3, constants=(0,))
    # A loop with a branch with a loop; names of every graph around.
    inmost = loop_node(["k", "", "a0"], ["p"], [node("Identity", ["c"], ["go2"]), node("Mul", ["a0_2", "h"], ["b0"])], [x], condition="go2")
    del inmost.attribute[0].g.input[:]
    inmost.attribute[0].g.input.extend([info("n2", scalar(0, i64)), info("c2", scalar(True, bool)), info("a0_2", x)])
    inmost.attribute[0].g.node[0].input[0] = "c2"
    inmost.attribute[0].g.node[1].output[0] = "b0_2"
    inmost.attribute[0].g.output[1].name = "b0_2"
    branch = branches("flag", graph([inmost], outputs=[("p", x)], constants={"k": scalar(2, i64)}), graph([node("Add", ["a0", "h"], ["p2"])], outputs=[("p2", x)]), ["b0"])
    nested = loop_node(["i0", "", "i1"], ["o0"], [go_on, node("Cast", ["n"], ["odd"], to=6), node("Mod", ["odd", "two"], ["r"]), node("Cast", ["r"], ["flag"], to=9), branch], [x],
                       constants={"two": scalar(2, i32)})
    add("loop_of_branches_of_loops", [node("Sin", ["i1"], ["h"]), nested], [scalar(5, i64), x], constants=(0,))
    # The state as a feature map; what no iteration changes is computed outside; a carried value nobody reads.
    image = rand(1, 8, 6, 6)
    conv = [go_on, node("Conv", ["a0", "i2", "i3"], ["v"], pads=[1, 1, 1, 1]), node("Relu", ["v"], ["b0"]), node("Neg", ["a1"], ["b1"])]
    add("loop_convolution", [loop_node(["i0", "", "i1", "i1"], ["o0", "unread"], conv, [image, image])], [scalar(3, i64), image, rand(8, 8, 3, 3) / 9, rand(8)], constants=(2, 3))
    # A local function with a branch, called twice.
    add("if_in_a_function", [node("Choose", ["i0", "i1"], ["t"], domain="local"), node("Choose", ["i2", "t"], ["o0"], domain="local")],
        [scalar(True, bool), x, scalar(False, bool)])


def add_windows():
    one("average_pool_ceil", "AveragePool", [rand(1, 2, 7, 6)], opset=10, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], ceil_mode=1, count_include_pad=1)
    one("max_pool_same_lower", "MaxPool", [rand(1, 2, 7, 6)], opset=8, kernel_shape=[3, 3], auto_pad="SAME_LOWER", strides=[2, 2])
    one("max_pool_dilated", "MaxPool", [rand(1, 2, 9, 9)], opset=12, kernel_shape=[3, 2], dilations=[2, 3], strides=[2, 1], ceil_mode=1)
    one("max_pool_indices", "MaxPool", [rand(2, 3, 9, 9)], outputs=2, opset=12, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 0, 1, 1])
    one("max_pool_indices_column_major", "MaxPool", [rand(2, 3, 9, 7)], outputs=2, opset=12, kernel_shape=[3, 3], strides=[2, 2], storage_order=1)
    one("max_pool_indices_of_negatives", "MaxPool", [-abs(rand(1, 1, 5, 5)) - 1], outputs=2, opset=12, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    one("max_pool_1d", "MaxPool", [rand(2, 3, 17)], opset=12, kernel_shape=[4], strides=[3])
    one("average_pool_3d", "AveragePool", [rand(2, 3, 5, 6, 7)], opset=12, kernel_shape=[2, 3, 2], pads=[1, 1, 1, 0, 1, 0])
    for n, c, o, g, k, s, d, p, h in ((1, 3, 16, 1, 3, 2, 1, 1, 15), (2, 17, 5, 1, 1, 1, 1, 0, 7), (1, 16, 32, 1, 3, 1, 1, 1, 8),
                                      (1, 16, 16, 16, 3, 1, 1, 1, 9), (1, 24, 24, 24, 5, 2, 1, 2, 13), (2, 8, 12, 4, 3, 1, 2, 2, 9),
                                      (1, 1, 1, 1, 1, 1, 1, 0, 1), (1, 32, 64, 2, 3, 2, 1, 1, 14), (1, 6, 9, 3, 2, 3, 1, 0, 10),
                                      (1, 15, 30, 15, 3, 1, 1, 1, 6),
                                      # Rows as long as there are maps: such a row's halo was once read as the padding of maps.
                                      (1, 5, 20, 1, 3, 1, 1, 1, 20), (1, 20, 20, 20, 3, 1, 1, 1, 20)):
        for constants in ((), (1, 2)):
            one(f"conv_c{c}_o{o}_g{g}_k{k}_s{s}_d{d}{'_constant' if constants else ''}", "Conv", [rand(n, c, h, h + 1), rand(o, c // g, k, k), rand(o)],
                constants=constants, group=g, strides=[s, s], dilations=[d, d], pads=[p] * 4)
    one("conv_1d", "Conv", [rand(2, 3, 18), rand(4, 3, 5), rand(4)], constants=(1, 2), pads=[2, 2], strides=[2])
    for w, k, s, d, g in ((1, 1, 1, 1, 1), (15, 3, 1, 1, 1), (16, 3, 1, 2, 2), (17, 5, 2, 1, 4), (64, 1, 1, 1, 1), (65, 3, 3, 1, 2), (131, 4, 1, 1, 1)):
        one(f"conv_1d_w{w}_k{k}_s{s}_d{d}_g{g}", "Conv", [rand(2, 8, w), rand(12, 8 // g, k), rand(12)], constants=(1, 2), group=g, strides=[s],
            dilations=[d], pads=[d * (k - 1) // 2, d * k // 2])
    for d in (7, 12):  # of most taps, most meets padding
        arrays = [rng.integers(-8, 9, shape).astype(f32) for shape in ((1, 96, 14, 13), (160, 96, 3, 3), (160,))]
        one(f"conv_wide_d{d}", "Conv", arrays, constants=(1, 2), pads=[d] * 4, dilations=[d, d])
    one("conv_3d_strided", "Conv", [rand(1, 6, 5, 7, 19), rand(9, 2, 3, 2, 3)], constants=(1,), group=3, strides=[2, 1, 2], pads=[1, 0, 2, 1, 1, 0])
    one("conv_3d", "Conv", [rand(1, 3, 5, 6, 7), rand(4, 3, 2, 3, 2)], constants=(1,))
    for d, s in ((6, 1), (4, 2), (3, 1)):
        one(f"conv_cropped_d{d}_s{s}", "Conv", [rand(1, 5, 4, 5), rand(20, 5, 3, 3), rand(20)], constants=(1, 2), dilations=[d, d], pads=[d] * 4,
            strides=[s, s])
    one("conv_uneven_pads", "Conv", [rand(1, 3, 8, 7), rand(4, 3, 3, 4)], constants=(1,), pads=[0, 2, 1, 1])
    for mode in ("nearest", "linear", "cubic"):
        for rule in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
            for height, width in ((7, 11), (3, 1)):
                one(f"resize_{mode}_{rule}_{height}", "Resize", [rand(1, 2, 5, 6), None, None, ints(1, 2, height, width)], constants=(3,), mode=mode,
                    coordinate_transformation_mode=rule)


def add_found_sizes():
    node = helper.make_node
    x = rand(113, 79)
    # The bound takes the whole input to find, so it is found while the call runs; that of the small one before.
    for name, data in (("large", x), ("small", x[:7, :5])):
        add(f"slice_from_{name}", [node("ArgMax", ["i0"], ["at"], axis=0, keepdims=0), node("Slice", ["at", "i1", "i2"], ["row"]),
                                   node("Slice", ["i0", "row", "i3"], ["o0"])],
            [data, ints(0), ints(1), ints(2**40)], constants=(1, 2, 3))
    # A size that follows from one that is found while the call runs, and one that follows from that.
    picked = np.array([0, 3, 0, 0, 5, 7], f32)
    add("range_of_nonzero", [node("NonZero", ["i0"], ["at"]), node("Shape", ["at"], ["size"]), node("Slice", ["size", "i1", "i2"], ["count"]),
                             node("ReduceMax", ["at", "i3"], ["last"], keepdims=0), node("Range", ["i4", "last", "i5"], ["o0"]),
                             node("Concat", ["count", "i6"], ["both"], axis=0), node("Expand", ["o0", "both"], ["o1"])],
        [picked, ints(1), ints(2), ints(0, 1), scalar(0, i64), scalar(1, i64), ints(1)], outputs=2, constants=(1, 2, 3, 4, 5, 6),
        opset=18, expect=[np.arange(5), np.broadcast_to(np.arange(5), (3, 5))])
    # Sizes of sizes: the second is found when the first is known.
    add("size_of_size", [node("ConstantOfShape", ["i0"], ["ones"], value=numpy_helper.from_array(ints(2))),
                         node("ReduceSum", ["ones"], ["sum"], keepdims=0), node("Reshape", ["sum", "i1"], ["list"]),
                         node("ConstantOfShape", ["list"], ["o0"])],
        [ints(3), ints(1)], constants=(1,), expect=[np.zeros(6, f32)])
    # Pads as PyTorch's exporter makes them: pairs, of which an element of the list was taken for a row.
    for name, constants in (("known", (1, 2)), ("by_call", (2,))):
        add(f"pads_of_pairs_{name}", [node("Transpose", ["i1"], ["t"], perm=[1, 0]), node("Reshape", ["t", "i2"], ["pads"]),
                                      node("Pad", ["i0", "pads"], ["o0"], mode="reflect")],
            [rand(1, 70), np.array([[0, 0], [0, 64]]), ints(-1)], constants=constants)


def add_sizes():
    # A row of exactly one vector (8 or 16 lanes) once had no reduction loop to schedule.
    for m, n in ((1, 1), (7, 13), (16, 16), (3, 8), (17, 31), (64, 65), (127, 1), (1, 129)):
        at = f"_{m}_{n}"
        one("softmax" + at, "Softmax", [rand(m, n)])
        one("softmax_columns" + at, "Softmax", [rand(m, n)], axis=0)
        one("layer_norm" + at, "LayerNormalization", [rand(m, n), rand(n), rand(n)])
        one("layer_norm_2" + at, "LayerNormalization", [rand(2, m, n), rand(m, n)], axis=1)
        one("transpose" + at, "Transpose", [rand(m, n)], perm=[1, 0])
        one("concat" + at, "Concat", [rand(3, m), rand(3, n), rand(3, 1)], axis=1)
        one("reduce_rows" + at, "ReduceSum", [rand(m, n), ints(0)], constants=(1,))
        one("reduce_columns" + at, "ReduceMax", [rand(m, n), ints(1)], constants=(1,), keepdims=0)
        one("matmul" + at, "MatMul", [rand(m, n), rand(n, m)])
        one("matmul_constant" + at, "MatMul", [rand(5, m, n), rand(n, 33)], constants=(1,))
        one("gemm_transposed" + at, "Gemm", [rand(m, n), rand(19, n), rand(19)], constants=(1, 2), transB=1)
        one("cumsum" + at, "CumSum", [rand(m, n), scalar(0, i64)], constants=(1,))
        one("arg_max" + at, "ArgMax", [rand(m, n)], axis=0)
        one("broadcast" + at, "Add", [rand(m, 1), rand(1, n)])
        one("global_pool" + at, "GlobalAveragePool", [rand(2, 5, m, n)])
        x = rand(m, n)
        one("slice_back" + at, "Slice", [x, ints(m, n), ints(-2**60, -2**60), ints(0, 1), ints(-1, -3)], constants=(1, 2, 3, 4), expect=[x[::-1, ::-3]])
        one("expand" + at, "Expand", [rand(m, 1), ints(2, 1, n)], constants=(1,))


def add_graphs():
    # As a tree, each of these is 2^40 nodes.
    squares = [helper.make_node("Mul", [f"t{k}" if k else "i0"] * 2, ["o0" if k == 39 else f"t{k + 1}"]) for k in range(40)]
    add("squares_of_squares", squares, [floats(0, 1, 1.0000001)], expect=[floats(0, 1, INF)])
    picks = [helper.make_node("Less", ["i0", "i1"], ["c"])]
    for k in range(40):
        x = f"t{k}" if k else "i0"
        picks += [helper.make_node("Neg", [x], [f"n{k}"]),
                  helper.make_node("Where", ["c", x, f"n{k}"], ["o0" if k == 39 else f"t{k + 1}"])]
    add("choices_of_choices", picks, [rand(17), rand(17)])


def model_of(nodes, inputs, outputs, constants, opset):
    def info(k):
        return helper.make_tensor_value_info(f"i{k}", helper.np_dtype_to_tensor_dtype(inputs[k].dtype), inputs[k].shape)
    given = [k for k, x in enumerate(inputs) if x is not None]
    graph = helper.make_graph(nodes, "case", [info(k) for k in given if k not in constants],
                              [helper.make_empty_tensor_value_info(f"o{k}") for k in range(outputs)],
                              [numpy_helper.from_array(inputs[k], f"i{k}") for k in given if k in constants])
    imports, functions = [helper.make_opsetid("", opset)], []
    if any(n.domain == "local" for n in nodes):
        relu, neg = (helper.make_graph([helper.make_node(op, ["v"], ["r"])], op, [], [helper.make_tensor_value_info("r", 1, None)]) for op in ("Relu", "Neg"))
        functions = [helper.make_function("local", "Choose", ["f", "v"], ["y"], [branches("f", relu, neg, ["y"])], imports)]
        imports = [*imports, helper.make_opsetid("local", 1)]
    if any(n.domain == contrib_cases.DOMAIN for n in nodes):
        imports = [*imports, helper.make_opsetid(contrib_cases.DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, functions=functions)


def peer(model):
    """ONNX Runtime's session. Its products of u8 and i8 saturate in 16 bits on machines with AVX2 alone, unless it is to be precise, and then it
    does not take those of i8 and i8, which never do."""
    if any(t.data_type == onnx.TensorProto.INT8 for t in model.graph.initializer):
        precise = onnxruntime.SessionOptions()
        precise.intra_op_num_threads = 1
        precise.add_session_config_entry("session.x64quantprecision", "1")
        try:
            return onnxruntime.InferenceSession(model.SerializeToString(), precise)
        except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
            pass
    return onnxruntime.InferenceSession(model.SerializeToString(), one_thread)


class Case:
    """As run_node_tests.Case."""
    rtol, atol, shapes = 2e-5, 1e-5, ()

    def __init__(self, name, nodes, inputs, outputs, constants, opset, expect):
        self.name, self.op = name, nodes[-1].op_type
        self.model = model_of(nodes, inputs, outputs, constants, opset)
        feeds = {f"i{k}": x for k, x in enumerate(inputs) if x is not None and k not in constants}
        self.inputs = list(feeds.values())
        if expect is None:
            try:
                expect = peer(self.model).run(None, feeds)
            except Exception as error:
                raise ValueError(f"{name} must state its outputs: {error}") from error
        self.outputs = [np.asarray(x) for x in expect]
        if name.startswith("ms_"):
            self.rtol, self.atol = contrib_cases.tolerance(name, self.outputs)
        del self.model.graph.output[:]
        for k, x in enumerate(self.outputs):
            self.model.graph.output.append(helper.make_tensor_value_info(f"o{k}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape))

    def sizes(self):
        return [(self.inputs, self.outputs)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("--levels", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--in-turn", action="store_true", help="each case at one of the levels, instead of at all")
    parser.add_argument("--match", default=".")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    faulthandler.dump_traceback_later(run_node_tests.STANDSTILL_SECONDS, repeat=True)
    onnxruntime.set_default_logger_severity(4)
    with np.errstate(all="ignore"):
        for section in (add_empty_tensors, add_scalars_and_bool, add_integers, add_nan_and_infinity, add_windows_of_nan, add_subnormal_weights, add_integer_convolutions, add_far_ends, add_exact_transforms, add_casts, add_narrow_casts, add_indices,
                        add_old_operator_sets, add_several_results, add_integer_contractions, add_quantised_networks, add_narrow_sums,
                        add_found_by_random_networks,
                        add_branches, add_loops, add_windows, add_sizes, add_found_sizes, add_graphs):
            section()
        formula_cases.add_all(one, rand, ints)
        contrib_cases.add_all(one, rand)
        version_cases.add_all(one, rand, ints, add, branches)
        add_positions_of_nan()
        chosen = [Case(*case) for case in cases if re.search(args.match, case[0])]
        with tempfile.TemporaryDirectory() as tmp:
            runs = [(case, level) for case in chosen
                    for level in ([run_node_tests.one_of(args.levels, case.name)] if args.in_turn else args.levels)]
            results = run_node_tests.run_all(args.tenon, runs, "llvm", args.jobs, pathlib.Path(tmp))
    for r in results:
        if r.status == "refused":
            print(f"{r.case.name} -O{r.level}: {r.reason}")
    passed = collections.Counter(r.status for r in results)["passed"]
    print(f"{passed} passed, {len(results) - passed} failed, 0 skipped")
    return 0 if passed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
