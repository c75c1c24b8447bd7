#!/usr/bin/env python3
"""Sums of narrow floats: whatever an operator adds up, in float16 or bfloat16 and at any length, is within two units in the
last place of its float64 value, that is, it was added up in a wider type and rounded once.

Usage: narrow_sums.py TENON [--levels 2 0] [--lengths 300 3000 70000] [--match REGEX] [--held inputs weights folded]
                      [--in-turn] [--jobs N] [--verbose]
needs: pip install onnx numpy apache-tvm-ffi

A row of TABLE is an operator as it is called for one length n: its node, or some nodes, its inputs and its value in float64.
Inputs are ones, and numbers drawn at random whose sums do not cancel. Each row goes three ways: with all operands as inputs of
the library, with all but the first as constants of the model, as weights are, and with nothing but constants, so that the
compiler has the answer; the second and the third at the first level alone. What a run of the whole table has not met of the
algorithms for CPUs (src/ops/algorithms.def) is a failure too.
"""
import argparse
import concurrent.futures
import itertools
import pathlib
import re
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
import run_node_tests  # noqa: E402
from dlpack import to_argument, to_numpy  # noqa: E402  (its folder is on the path now)

f64 = np.float64
TYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
MANTISSA = {"f16": (10, -14), "bf16": (7, -126)}  # bits, and the least exponent of normal numbers
ULPS = 2
MICROSOFT = "com.microsoft"
# Algorithms that take other types alone, need a unit for tiles, which few machines have, are for devices, or add nothing up.
ELSEWHERE = {"winograd_conv", "blocked_window", "tile_matmul", "tile_rows_matmul", "split_matmul", "tile_conv", "tile_attention", "doubling_scan", "selection", "radix_sort", "merge_sort", "sorted_scatter"}
HELD = ("inputs", "weights", "folded")  # what are constants: what must be, all but the first operand, all
TABLE = []


def row(name, op, inputs, value, opset=22, outputs=1, most=None, **attrs):
    """`op` is an operator, or takes the names of operands and gives nodes whose last result is the answer; `inputs(n, draw)`
    are the operands (`draw(*shape)` gives floats that become narrow; bytes are operands too, other integers are constants
    always), `value(*operands)` the float64 answer; `most`: the largest length worth its time."""
    TABLE.append((name, op, inputs, value, opset, outputs, most, attrs))


def axes(*a):
    return np.array(a, np.int64)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def normalized(x, axis, epsilon=1e-5):
    mean = x.mean(axis, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axis, keepdims=True) + epsilon)


def add_reductions():
    for name, f in {"Sum": lambda x: x.sum(1), "Mean": lambda x: x.mean(1), "L1": lambda x: abs(x).sum(1), "L2": lambda x: np.sqrt((x * x).sum(1)),
                    "SumSquare": lambda x: (x * x).sum(1), "LogSum": lambda x: np.log(x.sum(1)), "LogSumExp": lambda x: np.log(np.exp(x).sum(1))}.items():
        row(f"reduce_{name}", f"Reduce{name}", lambda n, draw: [draw(3, n), axes(1)], lambda x, _, f=f: f(x), keepdims=0)
        row(f"reduce_columns_{name}", f"Reduce{name}", lambda n, draw: [draw(1, n, 5), axes(1)], lambda x, _, f=f: f(x), keepdims=0)
    row("reduce_all", "ReduceMean", lambda n, draw: [draw(2, n)], lambda x: x.mean(), keepdims=0)
    row("reduce_Prod", "ReduceProd", lambda n, draw: [1 + (draw(2, n) - 1) * 2**-6, axes(1)], lambda x, _: x.prod(1), most=300, keepdims=0)
    row("cumsum", "CumSum", lambda n, draw: [draw(2, n), np.array(1, np.int64)], lambda x, _: x.cumsum(1))
    row("cumsum_reverse", "CumSum", lambda n, draw: [draw(n, 2), np.array(0, np.int64)], lambda x, _: x[::-1].cumsum(0)[::-1], reverse=1)
    row("sum_of_many", "Sum", lambda n, draw: [draw(4) for _ in range(n)], lambda *x: np.sum(x, 0), most=300)
    row("mean_of_many", "Mean", lambda n, draw: [draw(4) for _ in range(n)], lambda *x: np.mean(x, 0), most=300)
    row("scatter_elements", "ScatterElements", lambda n, draw: [draw(3), np.zeros(n, np.int64), draw(n)],
        lambda x, _, u: x + u.sum() * np.eye(1, 3)[0], opset=18, most=3000, reduction="add")
    row("scatter_nd", "ScatterND", lambda n, draw: [draw(3), np.zeros((n, 1), np.int64), draw(n)],
        lambda x, _, u: x + u.sum() * np.eye(1, 3)[0], opset=18, most=3000, reduction="add")


def add_products():
    row("matmul", "MatMul", lambda n, draw: [draw(2, n), draw(n, 3)], lambda a, b: a @ b)
    row("matmul_blocks", "MatMul", lambda n, draw: [draw(33, n), draw(n, 40)], lambda a, b: a @ b, most=3000)
    row("matmul_vector", "MatMul", lambda n, draw: [draw(n), draw(n, 17)], lambda a, b: a @ b)
    row("matmul_batch", "MatMul", lambda n, draw: [draw(2, 3, n), draw(2, n, 5)], lambda a, b: a @ b)
    row("gemm_alpha", "Gemm", lambda n, draw: [draw(n, 4), draw(n, 19), draw(19)], lambda a, b, c: a.T @ b * 0.25 + c, transA=1, alpha=0.25)
    row("gemm", "Gemm", lambda n, draw: [draw(4, n), draw(19, n), draw(19)], lambda a, b, c: a @ b.T + c, transB=1)
    row("einsum", "Einsum", lambda n, draw: [draw(2, n), draw(3, n)], lambda a, b: a @ b.T, equation="ij,kj->ik")
    row("einsum_sum", "Einsum", lambda n, draw: [draw(2, n)], lambda a: a.sum(1), equation="ij->i")
    row("conv_1x1", "Conv", lambda n, draw: [draw(1, n, 3, 3), draw(4, n, 1, 1)], lambda x, w: np.einsum("bchw,mcij->bmhw", x, w))
    row("conv_3x3", "Conv", lambda n, draw: [draw(1, n // 10, 5, 5), draw(4, n // 10, 3, 3), draw(4)],
        lambda x, w, b: np.einsum("bcijkl,mckl->bmij", np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3)), w) + b[:, None, None])
    row("conv_1d", "Conv", lambda n, draw: [draw(1, 1, n + 2), draw(2, 1, n)],
        lambda x, w: np.einsum("bcij,mcj->bmi", np.lib.stride_tricks.sliding_window_view(x, w.shape[2], 2), w), most=3000)
    row("conv_depthwise", "Conv", lambda n, draw: [draw(1, 16, n + 1), draw(16, 1, n)],
        lambda x, w: np.stack([np.correlate(a, b[0], "valid") for a, b in zip(x[0], w)])[None], most=3000, group=16)
    row("conv_transpose", "ConvTranspose", lambda n, draw: [draw(1, n, 2), draw(n, 3, 2)],
        lambda x, w: sum(np.pad(np.einsum("bcs,cm->bms", x, w[:, :, k]), ((0, 0), (0, 0), (k, 1 - k))) for k in range(2)), most=3000)


def add_algorithms():
    """Products and convolutions of sizes that some algorithm is for."""
    def windows(x, w, pad, step=1):
        x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        x = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::step, ::step]
        return np.tensordot(x, w, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)
    for m in (1, 2, 5):
        row(f"matmul_few_{m}", "MatMul", lambda n, draw, m=m: [draw(m, n), draw(n, 200)], lambda a, b: a @ b, most=3000)
    row("matmul_square", "MatMul", lambda n, draw: [draw(128, n), draw(n, 160)], lambda a, b: a @ b, most=3000)
    row("matmul_chain", lambda a, b, c: [helper.make_node("MatMul", [a, b], ["t"]), helper.make_node("Add", ["t", c], ["o0"])],
        lambda n, draw: [draw(24, n), draw(n, 48), draw(48)], lambda a, b, c: a @ b + c, most=3000)
    row("einsum_three", "Einsum", lambda n, draw: [draw(2, n), draw(n, n) / n, draw(n)], lambda a, b, c: a @ b @ c, most=300, equation="ij,jk,k->i")
    row("conv_tiles", "Conv", lambda n, draw: [draw(1, n // 9, 32, 32), draw(32, n // 9, 3, 3)], lambda x, w: windows(x, w, 1), most=3000, pads=[1] * 4)
    row("conv_strides", "Conv", lambda n, draw: [draw(1, n // 9, 17, 17), draw(32, n // 9, 3, 3)], lambda x, w: windows(x, w, 1, 2), most=3000,
        pads=[1] * 4, strides=[2, 2])
    row("conv_points", "Conv", lambda n, draw: [draw(1, n, 14, 14), draw(48, n, 1, 1)], lambda x, w: windows(x, w, 0), most=3000)
    row("conv_first", "Conv", lambda n, draw: [draw(1, 3, n // 30 + 6, 20), draw(16, 3, n // 30, 10)], lambda x, w: windows(x, w, 0), most=3000)
    row("conv_images", "Conv", lambda n, draw: [draw(1, 16, n // 20 + 9, 28), draw(16, 1, n // 20, 20)],
        lambda x, w: np.concatenate([windows(x[:, c:c + 1], w[c:c + 1], 0) for c in range(16)], 1), most=3000, group=16)
    row("conv_groups", "Conv", lambda n, draw: [draw(1, 2 * (n // 9), 6, 6), draw(4, n // 9, 3, 3)],
        lambda x, w: np.concatenate([windows(a, b, 0) for a, b in zip(np.split(x, 2, 1), np.split(w, 2))], 1), most=3000, group=2)
    row("deform_conv", "DeformConv", lambda n, draw: [draw(1, n // 9, 4, 4), draw(2, n // 9, 3, 3), draw(1, 18, 2, 2) * 0],
        lambda x, w, _: windows(x, w, 0), most=300, kernel_shape=[3, 3])
    row("average_pool_images", "AveragePool", lambda n, draw: [draw(1, 32, n // 20 + 3, 23)],
        lambda x: np.lib.stride_tricks.sliding_window_view(x, (x.shape[2] - 3, 20), (2, 3)).mean((-2, -1)), most=3000, kernel_shape=lambda n: [n // 20, 20])


def add_joined():
    """What reads concatenated operands without their being in one place."""
    def joined(axis, *then):
        return lambda *names: [helper.make_node("Concat", names[:2], ["t"], axis=axis),
                               *(helper.make_node(op, ["t", *names[2:]], ["o0"], **attrs) for op, attrs in then)]
    halves = lambda n, draw: [draw(2, n // 2), draw(2, n - n // 2)]
    cat = lambda a, b: np.concatenate([a, b], 1)
    row("joined_sum", joined(1, ("ReduceSum", {"keepdims": 0})), lambda n, draw: [*halves(n, draw), axes(1)], lambda a, b, _: cat(a, b).sum(1))
    row("joined_softmax", joined(1, ("Softmax", {})), halves, lambda a, b: softmax(cat(a, b)))
    row("joined_layer_norm", joined(1, ("LayerNormalization", {})), lambda n, draw: [*halves(n, draw), draw(n)], lambda a, b, s: normalized(cat(a, b), 1) * s)
    row("joined_matmul", joined(1, ("MatMul", {})), lambda n, draw: [*halves(n, draw), draw(n, 24)], lambda a, b, w: cat(a, b) @ w, most=3000)
    maps = lambda n, draw: [draw(1, n // 2, 5, 5), draw(1, n - n // 2, 5, 5)]
    row("joined_conv", joined(1, ("Conv", {})), lambda n, draw: [*maps(n, draw), draw(8, n, 1, 1)], lambda a, b, w: np.einsum("bchw,mcij->bmhw", cat(a, b), w), most=3000)
    row("joined_pool", joined(2, ("GlobalAveragePool", {})), lambda n, draw: [draw(1, 3, n // 10, 5), draw(1, 3, n // 10, 5)],
        lambda a, b: np.concatenate([a, b], 2).mean((2, 3), keepdims=True))
    row("joined_instance_norm", joined(2, ("InstanceNormalization", {})), lambda n, draw: [draw(1, 3, n // 2), draw(1, 3, n // 2), draw(3), draw(3)],
        lambda a, b, s, c: normalized(np.concatenate([a, b], 2), 2) * s[:, None] + c[:, None])


def triangle(n, o):
    """The weights of n elements in element o of two."""
    return np.maximum(0, 1 - abs((np.arange(n) + 0.5) * 2 / n - o - 0.5))


def add_windows():
    row("average_pool", "AveragePool", lambda n, draw: [draw(1, 2, n + 3)], lambda x: np.lib.stride_tricks.sliding_window_view(x, x.shape[2] - 3, 2).mean(-1),
        most=3000, kernel_shape=lambda n: [n])
    row("global_average_pool", "GlobalAveragePool", lambda n, draw: [draw(1, 3, n // 10, 10)], lambda x: x.mean((2, 3), keepdims=True))
    row("lp_pool", "LpPool", lambda n, draw: [draw(1, 2, n + 3)], lambda x: np.sqrt((np.lib.stride_tricks.sliding_window_view(x, x.shape[2] - 3, 2) ** 2).sum(-1)),
        opset=18, most=3000, kernel_shape=lambda n: [n], p=2)
    row("global_lp_pool", "GlobalLpPool", lambda n, draw: [draw(1, 3, n)], lambda x: np.sqrt((x * x).sum(2, keepdims=True)), p=2)
    row("lrn", "LRN", lambda n, draw: [draw(1, n, 2, 2)], lambda x: x / (1 + np.stack([(x[:, max(0, c - 149):c + 151] ** 2).sum(1) for c in range(x.shape[1])], 1) * 0.5 / 300) ** 0.75,
        most=300, size=300, alpha=0.5, beta=0.75)
    row("resize_down", "Resize", lambda n, draw: [draw(1, 1, n, 2), None, None, np.array([1, 1, 2, 2])],
        lambda x, _, s, n: np.stack([(x[0, 0] * w[:, None] / w.sum()).sum(0) for w in (triangle(x.shape[2], o) for o in range(2))])[None, None],
        most=3000, mode="linear", antialias=1, exclude_outside=1)


def add_normalizations():
    row("softmax", "Softmax", lambda n, draw: [draw(2, n)], softmax)
    row("softmax_columns", "Softmax", lambda n, draw: [draw(n, 5)], lambda x: softmax(x, 0), axis=0)
    row("log_softmax", "LogSoftmax", lambda n, draw: [draw(2, n)], lambda x: np.log(softmax(x)))
    row("layer_norm", "LayerNormalization", lambda n, draw: [draw(2, n), draw(n), draw(n)], lambda x, s, b: normalized(x, 1) * s + b)
    row("rms_norm", "RMSNormalization", lambda n, draw: [draw(2, n), draw(n)], lambda x, s: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * s, opset=23)
    row("instance_norm", "InstanceNormalization", lambda n, draw: [draw(1, 3, n), draw(3), draw(3)], lambda x, s, b: normalized(x, 2) * s[:, None] + b[:, None])
    row("group_norm", "GroupNormalization", lambda n, draw: [draw(1, 4, n), draw(4), draw(4)],
        lambda x, s, b: normalized(x.reshape(1, 2, -1), 2).reshape(x.shape) * s[:, None] + b[:, None], num_groups=2)
    row("lp_norm", "LpNormalization", lambda n, draw: [draw(2, n)], lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)), opset=22)
    row("mean_variance", "MeanVarianceNormalization", lambda n, draw: [draw(1, 2, n, 1)],
        lambda x: (x - x.mean((0, 2, 3), keepdims=True)) / np.sqrt(((x - x.mean((0, 2, 3), keepdims=True)) ** 2).mean((0, 2, 3), keepdims=True) + 1e-9))
    row("batch_norm_training", "BatchNormalization", lambda n, draw: [draw(n, 2), draw(2), draw(2), draw(2), draw(2)],
        lambda x, s, b, m, v: [normalized(x, 0) * s + b, m * 0.5 + x.mean(0) * 0.5, v * 0.5 + x.var(0) * 0.5], outputs=3, training_mode=1, momentum=0.5)
    row("cross_entropy", "SoftmaxCrossEntropyLoss", lambda n, draw: [draw(n, 3), np.arange(n) % 3],
        lambda x, t: -np.log(softmax(x, 1))[np.arange(len(t)), t].mean())
    row("cross_entropy_classes", "SoftmaxCrossEntropyLoss", lambda n, draw: [draw(2, n), np.array([0, n - 1])],
        lambda x, t: -np.log(softmax(x, 1))[np.arange(len(t)), t].mean())
    row("negative_log", "NegativeLogLikelihoodLoss", lambda n, draw: [draw(n, 3), np.arange(n) % 3], lambda x, t: -x[np.arange(len(t)), t].mean())


def add_attention():
    def attention(q, k, v):
        return softmax(q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])) @ v

    def causal(q, k, v):
        scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
        return softmax(np.where(np.tri(*scores.shape[2:]) > 0, scores, -np.inf)) @ v

    def step(q, k, v, past_k, past_v):
        k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
        return [attention(q, k.repeat(2, 1), v.repeat(2, 1)), k, v]
    row("attention_keys", "Attention", lambda n, draw: [draw(1, 1, 3, 8), draw(1, 1, n, 8), draw(1, 1, n, 5)], attention, opset=23)
    row("attention_heads", "Attention", lambda n, draw: [draw(1, 1, 3, n) - 1, draw(1, 1, 4, n) - 1, draw(1, 1, 4, 5)], attention, opset=23, most=3000)
    row("attention_tokens", "Attention", lambda n, draw: [draw(1, 2, n, 16), draw(1, 2, n, 16), draw(1, 2, n, 16)], attention, opset=23, most=300)


    row("attention_causal", "Attention", lambda n, draw: [draw(1, 2, n, 8), draw(1, 2, n, 8), draw(1, 2, n, 8)], causal, opset=23, most=300, is_causal=1)
    row("attention_step", "Attention", lambda n, draw: [draw(1, 4, 1, 16), draw(1, 2, 1, 16), draw(1, 2, 1, 16), None, draw(1, 2, n, 16), draw(1, 2, n, 16)],
        lambda q, k, v, _, a, b: step(q, k, v, a, b), opset=23, outputs=3, most=3000)
    row("attention_bias", "Attention", lambda n, draw: [draw(1, 2, 3, 8), draw(1, 2, n, 8), draw(1, 2, n, 8), draw(3, n)],
        lambda q, k, v, m: softmax(q @ k.swapaxes(2, 3) / np.sqrt(8) + m) @ v, opset=23, most=3000)
    row("ms_attention", "MultiHeadAttention", lambda n, draw: [draw(1, 2, 16), draw(1, n, 16), draw(1, n, 16)],
        lambda *x: joined_heads(attention(*(split_heads(a, 2) for a in x))), most=3000, domain=MICROSOFT, num_heads=2)
    row("ms_grouped_step", "GroupQueryAttention",
        lambda n, draw: [draw(1, 1, 64), draw(1, 1, 32), draw(1, 1, 32), draw(1, 2, n, 16), draw(1, 2, n, 16), np.array([n], np.int32), np.array(n + 1, np.int32)],
        lambda q, k, v, a, b, *_: [joined_heads(step(split_heads(q, 4), split_heads(k, 2), split_heads(v, 2), a, b)[0]),
                                   *step(split_heads(q, 4), split_heads(k, 2), split_heads(v, 2), a, b)[1:]],
        outputs=3, most=3000, domain=MICROSOFT, num_heads=4, kv_num_heads=2)


def split_heads(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def joined_heads(x):
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, w, r):
    h = c = np.zeros((x.shape[1], r.shape[2]))
    for t in x:
        i, o, f, g = np.split(t @ w[0].T + h @ r[0].T, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    return [None, h[None], c[None]]


def gru(x, w, r):
    h = np.zeros((x.shape[1], r.shape[2]))
    (rz, rr, rh), n = np.split(r[0], 3), r.shape[2]
    for t in x:
        z, reset, g = np.split(t @ w[0].T, 3, 1)
        z, reset = sigmoid(z + h @ rz.T), sigmoid(reset + h @ rr.T)
        h = (1 - z) * np.tanh(g + (reset * h) @ rh.T) + z * h
    return [None, h[None]]


def rnn(x, w, r):
    h = np.zeros((x.shape[1], r.shape[2]))
    for t in x:
        h = np.tanh(t @ w[0].T + h @ r[0].T)
    return [None, h[None]]


def add_recurrent():
    for name, gates, value, outputs in (("LSTM", 4, lstm, 3), ("GRU", 3, gru, 2), ("RNN", 1, rnn, 2)):
        row(f"{name}_inputs", name, lambda n, draw, g=gates: [draw(2, 2, n), draw(1, 3 * g, n) / n, draw(1, 3 * g, 3)], value, outputs=outputs, most=3000, hidden_size=3)
        row(f"{name}_states", name, lambda n, draw, g=gates: [draw(2, 1, 4), draw(1, n * g, 4) / 4, draw(1, n * g, n) / n], value, outputs=outputs, most=300,
            hidden_size=lambda n: n)


def add_quantized():
    def codes(draw, *shape):
        return (draw(*shape) * 100).astype(np.uint8)

    def dequantized(op, **attrs):
        return lambda a, s, b, t: [helper.make_node("DequantizeLinear", [a, s], ["x"]), helper.make_node("DequantizeLinear", [b, t], ["y"]),
                                   helper.make_node(op, ["x", "y"], ["o0"], **attrs)]
    # Scales of powers of two, so that dequantised numbers are exact.
    step = lambda draw: np.array(2.0**-7)
    row("dequantized_matmul", dequantized("MatMul"), lambda n, draw: [codes(draw, 3, n), step(draw), codes(draw, n, 40), step(draw)], lambda a, s, b, t: (a * s) @ (b * t))
    row("dequantized_conv", dequantized("Conv"), lambda n, draw: [codes(draw, 1, n, 6, 6), step(draw), codes(draw, 16, n, 1, 1), step(draw)],
        lambda a, s, b, t: np.einsum("bchw,mcij->bmhw", a * s, b * t), most=3000)
    row("dequantized_weights", lambda a, b, t: [helper.make_node("DequantizeLinear", [b, t], ["y"]), helper.make_node("MatMul", [a, "y"], ["o0"])],
        lambda n, draw: [draw(3, n), codes(draw, n, 40), step(draw)], lambda a, b, t: a @ (b * t))
    row("matmul_integer_to_float", "MatMulIntegerToFloat", lambda n, draw: [codes(draw, 3, n), codes(draw, n, 40), np.array(0.007), np.array(0.011)],
        lambda a, b, s, t: (a @ b) * s * t, domain=MICROSOFT)
    nibbles = lambda draw, k: 9 + (draw(40, -(-k // 32), 32) * 4).astype(np.uint8)

    def blocks(a, b, s):
        w = np.stack([b.astype(int) % 16, b.astype(int) // 16], 3).reshape(*b.shape[:2], 32) - 8
        return a @ (w * s.reshape(40, -1)[:, :, None]).reshape(40, -1)[:, :a.shape[1]].T
    for m in (1, 4):
        row(f"matmul_bits_{m}", "MatMulNBits", lambda n, draw, m=m: [draw(m, n), (lambda q: q[:, :, ::2] + 16 * q[:, :, 1::2])(nibbles(draw, n)), draw(40, -(-n // 32)) / 8],
            blocks, domain=MICROSOFT, K=lambda n: n, N=40, bits=4, block_size=32)


def add_others():
    row("cumsum_exclusive", "CumSum", lambda n, draw: [draw(3, n, 2), np.array(1, np.int64)], lambda x, _: x.cumsum(1) - x, most=3000, exclusive=1)
    row("cumprod", "CumProd", lambda n, draw: [1 + (draw(2, n) - 1) * 2**-6, np.array(1, np.int64)], lambda x, _: x.cumprod(1), opset=26, most=300)
    row("dft", "DFT", lambda n, draw: [draw(1, n, 1), None, np.array(1, np.int64)],
        lambda x, *_: (lambda y: np.stack([y.real, y.imag], 2))(np.fft.fft(x[:, :, 0])), most=3000)
    row("col2im", "Col2Im", lambda n, draw: [draw(1, n // 2, n - n // 2 + 1), np.array([1, n]), np.array([1, n // 2])],
        lambda x, *_: sum(np.pad(x[:, k], ((0, 0), (k, x.shape[1] - 1 - k))) for k in range(x.shape[1]))[:, None, None], most=300)
    row("fused_matmul", "FusedMatMul", lambda n, draw: [draw(n, 3), draw(5, n)], lambda a, b: a.T @ b.T * 0.5, domain=MICROSOFT, transA=1, transB=1, alpha=0.5)
    row("skip_layer_norm", "SkipLayerNormalization", lambda n, draw: [draw(1, 2, n), draw(1, 2, n), draw(n), draw(n)],
        lambda x, y, s, b: normalized(x + y, 2) * s + b, domain=MICROSOFT, epsilon=1e-5)
    row("skip_rms_norm", "SkipSimplifiedLayerNormalization", lambda n, draw: [draw(1, 2, n), draw(1, 2, n), draw(n)],
        lambda x, y, s: (x + y) / np.sqrt(((x + y) ** 2).mean(2, keepdims=True) + 1e-5) * s, domain=MICROSOFT, epsilon=1e-5)


def draws(kind, seed):
    rng = np.random.default_rng(seed)
    if kind == "ones":
        return lambda *shape: np.ones(shape)
    return lambda *shape: rng.uniform(0.5, 1.5, shape)


class Case:
    """What run_node_tests compiles: a folder's case, here made of a row."""

    def __init__(self, entry, n, kind, type_name, held, seed):
        name, self.op, inputs, value, opset, count, _, attrs = entry
        self.dtype, self.type_name = TYPES[type_name], type_name
        self.name = f"{name}_{type_name}_{n}_{held}_{kind}"
        # What is drawn is f64 and becomes narrow; indices and scales are what they are.
        arrays = [x.astype(self.dtype) if x is not None and x.dtype == f64 else x for x in inputs(n, draws(kind, seed))]
        exact = value(*(None if x is None else x.astype(f64) if x.dtype == self.dtype else x if x.dtype.kind in "iu" and x.dtype != np.uint8 else x.astype(f64)
                        for x in arrays))
        exact = exact if isinstance(exact, list) else [exact]
        self.exact = [np.asarray(x) for x in exact if x is not None]
        self.outputs = [x.astype(np.float32).astype(self.dtype) for x in self.exact]
        names = ["" if x is None else f"i{i}" for i, x in enumerate(arrays)]
        values = {i: x for i, x in zip(names, arrays) if i}
        operands = [i for i, x in values.items() if x.ndim and x.dtype in (self.dtype, np.uint8)]
        kept = {"inputs": operands, "weights": operands[:1], "folded": []}[held]
        self.has_weights = len(operands) > 1
        info = lambda i, x: helper.make_tensor_value_info(i, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        out_names = [f"o{i}" if exact[i] is not None else "" for i in range(count)]
        if callable(self.op):
            nodes = self.op(*names)
        else:
            nodes = [helper.make_node(self.op, names, out_names, **{k: a(n) if callable(a) else a for k, a in attrs.items()})]
        graph = helper.make_graph(nodes, "sums", [info(i, values[i]) for i in kept], [info(i, x) for i, x in zip(filter(None, out_names), self.outputs)],
                                  [numpy_helper.from_array(x, i) for i, x in values.items() if i not in kept])
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)], ir_version=10)
        self.inputs = [values[i] for i in kept]
        self.shapes = ("--emit", "graph")

    def distance(self, got):
        """The largest distance from float64, in units in the last place."""
        worst = 0.0
        bits, least = MANTISSA[self.type_name]
        for g, e, o in zip(got, self.exact, self.outputs, strict=True):
            g, o = g.astype(f64), o.astype(f64)
            assert g.shape == e.shape, f"shape {g.shape}, expected {e.shape}"
            # Differences that cancel are as exact as what they are of: a sixteenth of the largest counts.
            size = np.maximum(abs(e), np.max(abs(e), initial=0) / 16)
            unit = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(size, 1e-300))), least) - bits)
            far = np.where(g == o, 0, abs(g - e) / unit)  # infinities too
            worst = max(worst, float(np.max(np.where(np.isnan(far), np.inf, far), initial=0)))
        return worst


def measure(library, case):
    import tvm_ffi

    main = tvm_ffi.load_module(library).main
    out = main(*(to_argument(x) for x in case.inputs))
    out = list(out) if isinstance(out, (tvm_ffi.Array, list, tuple)) else [out]
    return case.distance([to_numpy(x, case.dtype) for x in out])


def algorithms():
    """Those for CPUs: what a plan of a kernel calls them."""
    table = (pathlib.Path(__file__).resolve().parents[2] / "src" / "ops" / "algorithms.def").read_text()
    names = (re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("mat_mul", "matmul") for name in re.findall(r"^TN_ALGORITHM\(k(\w+)\)", table, re.M))
    return {name for name in names if not name.startswith(("warp_", "group_", "thread_"))}


def check(args, entry, n, type_name, held, level, met):
    """Compiles a row once, or for each kind of numbers where they are constants: how many of its answers are wrong, and of how many."""
    wrong, library, kinds = 0, None, ("ones", "random")
    with tempfile.TemporaryDirectory() as tmp:
        for kind in kinds:
            with np.errstate(all="ignore"):
                case = Case(entry, n, kind, type_name, held, n)
            if held == "weights" and not case.has_weights:
                return 0, 0
            said, seconds = "", 0.0
            if library is None or held != "inputs":
                r = run_node_tests.compile_case(args.tenon, case, level, "llvm", pathlib.Path(tmp))
                said, seconds, library = r.reason, r.seconds, pathlib.Path(tmp) / f"{case.name}.O{level}.so"
                graph = library.with_name(library.name + ".graph.txt")
                if graph.exists():
                    met.update(re.findall(r'plan "(\w+)', graph.read_text()))
            if not said:
                far = measure(str(library), case)
                said = "" if far <= ULPS else f"{far:.3g} units in the last place from float64"
            if args.verbose or said:
                print(f"{case.name} -O{level}: {said or f'{far:.2f}'} ({seconds:.2f} s)", flush=True)
            wrong += bool(said)
    return wrong, len(kinds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("--levels", type=int, nargs="*", default=[2, 0], help="the first at every length, the others at the first length")
    parser.add_argument("--lengths", type=int, nargs="*", default=[300, 3000, 70000])
    parser.add_argument("--match", default=".", help="regular expression: names of rows with their lengths, like cumsum_300")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--in-turn", action="store_true", help="each row at a length in one of the types, chosen by the commit, instead of in both")
    parser.add_argument("--held", nargs="*", choices=HELD, default=HELD)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for section in (add_reductions, add_products, add_algorithms, add_joined, add_windows, add_normalizations, add_attention, add_recurrent, add_quantized, add_others):
        section()
    met, jobs = set(), []
    for entry in TABLE:
        for n in args.lengths:
            if n > (entry[6] or n) or not re.search(args.match, f"{entry[0]}_{n}"):
                continue
            # Constants of 70,000 elements are no kernel of their own.
            ways = [h for h in args.held if h != "folded" or n < 70000]
            row = f"{entry[0]}_{n}"
            types = list(TYPES)
            if args.in_turn:
                types = types[:1] if run_node_tests.a_share([row], 2) else types[1:]
            for type_name, held in itertools.product(types, ways):
                levels = args.levels[:1] if n > args.lengths[0] or held != "inputs" else args.levels
                jobs += [(entry, n, type_name, held, level) for level in levels]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        counts = list(pool.map(lambda job: check(args, *job, met), jobs))
    failed, total = (sum(column) for column in zip(*counts))
    print(f"{total - failed} passed, {failed} failed, 0 skipped; algorithms: {' '.join(sorted(met))}")
    missing = algorithms() - ELSEWHERE - met if args.match == "." and min(args.lengths) <= 300 else set()
    if missing:
        print("no row meets", *sorted(missing))
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
