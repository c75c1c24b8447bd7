#!/usr/bin/env python3
"""Sizes that are open: one library for each model, called at sizes of which some are 0 and 1, beside NumPy or ONNX Runtime; and
calls whose sizes do not go together, which fail with a message and harm no later call.

Usage: onnx_open_sizes.py TENON [--levels 0 2] [--match REGEX]      needs: pip install onnx onnxruntime numpy apache-tvm-ffi
"""
import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tvm_ffi
from calls import Case, run_cases
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(0)
INT64 = TensorProto.INT64
SHAPES = [(1, 1), (1, 5), (7, 1), (7, 5), (0, 1), (1, 0), (0, 5), (17, 33)]
cases = []


def model_of(nodes, inputs, ranks, opset=21):
    """A model whose inputs, by name, are open in all axes: a rank (of floats) or (type, rank). `ranks`: of its outputs."""
    def info(name, kind, rank):
        return helper.make_tensor_value_info(name, kind, [f"{name}_{axis}" for axis in range(rank)])
    typed = {name: spec if isinstance(spec, tuple) else (TensorProto.FLOAT, spec) for name, spec in inputs.items()}
    outputs = [helper.make_tensor_value_info(name, kind, [None] * rank) for name, (kind, rank) in ranks.items()]
    graph = helper.make_graph(nodes, "open", [info(name, *spec) for name, spec in typed.items()], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def add(name, nodes, inputs, calls, errors=(), wanted=None, output=(TensorProto.FLOAT, 2), opset=21, empty=True):
    """`calls`: lists of arrays; `errors`: (such a list, what the error says); `wanted`: what NumPy computes, or None where it
    raises; without it ONNX Runtime's answer counts, and sizes of results depend on values. `empty`: whether sizes
    may be 0."""
    cases.append(Case(name, model_of(nodes, inputs, {"y": output}, opset), calls, errors, wanted, ["--empty-sizes"] if empty else [], passed_in=wanted is not None))


def i64(*values):
    return np.array(values, np.int64)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def add_broadcasts():
    node = helper.make_node
    three = [[f32(*s) for s in shapes] for shapes in itertools.product(SHAPES, repeat=3)]
    add("three", [node("Add", ["a", "b"], ["s"]), node("Mul", ["s", "c"], ["y"])], {"a": 2, "b": 2, "c": 2}, three,
        wanted=lambda a, b, c: (a + b) * c)
    add("choice", [node("Less", ["a", "b"], ["s"]), node("Where", ["s", "b", "c"], ["y"])], {"a": 2, "b": 2, "c": 2}, three[::3],
        wanted=lambda a, b, c: np.where(a < b, b, c))
    add("in_a_row", [node("Softmax", ["a"], ["s"]), node("Add", ["s", "b"], ["t"]), node("ReduceSum", ["t"], ["y"], keepdims=1)],
        {"a": 2, "b": 2}, [[f32(*s), f32(*t)] for s, t in itertools.product([s for s in SHAPES if 0 not in s], repeat=2)],
        wanted=lambda a, b: np.sum(np.exp(a - a.max(1, keepdims=True)) / np.exp(a - a.max(1, keepdims=True)).sum(1, keepdims=True) + b,
                                   keepdims=True))
    # A size chosen by another looks like that of two that broadcast, but nothing says that they go together.
    chosen = [node("Shape", ["a"], ["n"]), node("Constant", [], ["one"], value_ints=[1]), node("Constant", [], ["four"], value_ints=[4]),
              node("Equal", ["n", "one"], ["is_one"]), node("Where", ["is_one", "four", "n"], ["m"])]
    add("chosen_size", [*chosen, node("ConstantOfShape", ["m"], ["zeros"]), node("Add", ["a", "zeros"], ["y"])], {"a": 1},
        [[f32(n)] for n in (0, 1, 2, 4, 7)], output=(TensorProto.FLOAT, 1), wanted=lambda a: a if len(a) != 1 else np.repeat(a, 4))
    add("expanded_to_chosen", [*chosen, node("Expand", ["a", "m"], ["y"])], {"a": 1}, [[f32(n)] for n in (0, 1, 2, 4, 7)],
        output=(TensorProto.FLOAT, 1), wanted=lambda a: a if len(a) != 1 else np.repeat(a, 4))
    lead = [(1,), (3,), (8,)]
    add("matmul", [node("MatMul", ["a", "b"], ["y"])], {"a": 3, "b": 3},
        [[f32(*p, m, k), f32(*q, k, n)] for p, q, (m, k, n) in itertools.product(lead, lead, [(1, 1, 1), (7, 5, 1), (1, 16, 17), (9, 8, 33)])],
        wanted=lambda a, b: a @ b, output=(TensorProto.FLOAT, 3))
    add("bias", [node("Gemm", ["a", "b", "c"], ["y"])], {"a": 2, "b": 2, "c": 2},
        [[f32(7, 5), f32(5, 33), f32(*c)] for c in [(1, 1), (7, 1), (1, 33), (7, 33)]], wanted=lambda a, b, c: a @ b + c)
    add("expand", [node("Shape", ["b"], ["s"]), node("Expand", ["a", "s"], ["y"])], {"a": 2, "b": 2},
        [[f32(*s), f32(*t)] for s, t in itertools.product(SHAPES, repeat=2)], wanted=lambda a, b: a + np.zeros_like(b))
    # Proofs about the sizes of these assume conditions while they use facts.
    gated = node("LinearAttention", ["q", "k", "v", "", "decay"], ["y"], kv_num_heads=4, q_num_heads=4, update_rule="gated")
    queries = ["q", "k", "v", "decay"]
    scores = ReferenceEvaluator(model_of([gated], dict.fromkeys(queries, 3), {"y": (TensorProto.FLOAT, 3)}, 27))
    add("gated_heads", [gated], dict.fromkeys(queries, 3), [[f32(b, t, 32), f32(b, t, 32), f32(b, t, 32), -np.abs(f32(b, t, 32))]
        for b, t in [(1, 1), (2, 4), (3, 7)]], wanted=lambda *x: scores.run(None, dict(zip(queries, x)))[0], output=(TensorProto.FLOAT, 3), opset=27)
    add("scaled_rows", [node("LayerNormalization", ["a", "b"], ["y"])], {"a": 2, "b": 1},
        [[f32(7, 33), f32(33)], [f32(7, 33), f32(1)], [f32(1, 16), f32(16)]],
        wanted=lambda a, b: (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5) * b)


def add_counts_in_floats():
    """What torch writes for torch.arange(n, dtype=torch.float32): as many as an axis has."""
    node = helper.make_node
    def counted(start, delta, kind=TensorProto.FLOAT):
        real = helper.tensor_dtype_to_np_dtype(kind)
        ends = [node("Constant", [], [name], value=numpy_helper.from_array(np.array(value, real))) for name, value in (("start", start), ("delta", delta))]
        return [*ends, node("Shape", ["x"], ["sizes"], start=1), node("Squeeze", ["sizes"], ["n"]), node("Cast", ["n"], ["end"], to=kind),
                node("Range", ["start", "end", "delta"], ["steps"])]
    shapes = [(2, n) for n in (0, 1, 2, 3, 7, 8, 33)]
    add("counted_columns", [*counted(0, 1), node("Add", ["x", "steps"], ["y"])], {"x": 2}, [[f32(*s)] for s in shapes],
        wanted=lambda x: x + np.arange(x.shape[1], dtype=np.float32))
    for name, start, delta in (("odd", 1, 2), ("back", 5, -3), ("halves", 0, 0.5), ("from_half", 0.5, 1)):
        add(f"counted_{name}", [*counted(start, delta), node("Identity", ["steps"], ["y"])], {"x": 2}, [[f32(*s)] for s in shapes],
            output=(TensorProto.FLOAT, 1), wanted=lambda x, start=start, delta=delta: np.arange(start, x.shape[1], delta, dtype=np.float32))
    # What a call finds, and ends that floats do not hold, are counted by the call; so many columns cannot be.
    found = [node("NonZero", ["x"], ["places"]), *(n if n.op_type != "Shape" else node("Shape", ["places"], ["sizes"], start=1) for n in counted(0, 1))]
    add("counted_places", [*found, node("Identity", ["steps"], ["y"])], {"x": 2}, [[np.eye(3, 5, dtype=np.float32)], [np.zeros((2, 2), np.float32)]],
        output=(TensorProto.FLOAT, 1), wanted=lambda x: np.arange(np.count_nonzero(x), dtype=np.float32))
    long = [[np.zeros(n, np.uint8)] for n in (0, 1, 1001, 17_000_001)]
    hops = [n if n.op_type != "Shape" else node("Shape", ["x"], ["sizes"]) for n in counted(0, 1000)]
    add("counted_hops", [*hops, node("Identity", ["steps"], ["y"])], {"x": (TensorProto.UINT8, 1)}, long, output=(TensorProto.FLOAT, 1),
        wanted=lambda x: np.arange(0, np.float32(len(x)), 1000, dtype=np.float32))
    each = [n if n.op_type != "Shape" else node("Shape", ["x"], ["sizes"]) for n in counted(0, 1)]
    add("counted_too_many", [*each, node("ReduceMax", ["steps"], ["y"], keepdims=1)], {"x": (TensorProto.UINT8, 1)}, long[1:3],
        errors=[(long[3], "16777216")], output=(TensorProto.FLOAT, 1), wanted=lambda x: np.float32([len(x) - 1]))
    add("counted_in_f16", [*counted(0, 1, TensorProto.FLOAT16), node("Cast", ["steps"], ["y"], to=TensorProto.FLOAT)], {"x": 2},
        [[f32(*s)] for s in [*shapes, (1, 2049)]], output=(TensorProto.FLOAT, 1),
        wanted=lambda x: np.arange(np.float16(x.shape[1]), dtype=np.float32))


def add_lists():
    """Lists of parameters whose length is open."""
    node = helper.make_node
    add("nothing", [node("ReduceSum", ["x", "axes"], ["y"], keepdims=1)], {"x": 2, "axes": (INT64, 1)},
        [[f32(7, 0), i64(1)], [f32(0, 5), i64(0)], [f32(0, 0), i64(0, 1)]])
    axes = [i64(0), i64(1), i64(-1, 0), i64(0, 1), i64()]
    add("axes", [node("ReduceSum", ["x", "axes"], ["y"], keepdims=1)], {"x": 2, "axes": (INT64, 1)}, [[f32(7, 5), a] for a in axes])
    add("axes_dropped", [node("ReduceMax", ["x", "axes"], ["y"], keepdims=0)], {"x": 3, "axes": (INT64, 1)},
        [[f32(2, 7, 5), i64(a)] for a in (0, 2, -2)], errors=[([f32(2, 7, 5), i64(0, 1)], "axes")])
    add("slice", [node("Slice", ["x", "from", "to", "axes"], ["y"])],
        {"x": 2, "from": (INT64, 1), "to": (INT64, 1), "axes": (INT64, 1)},
        [[f32(7, 5), i64(1, 2), i64(6, 4), i64(0, 1)], [f32(7, 5), i64(-3), i64(9), i64(1)], [f32(7, 5), i64(), i64(), i64()]],
        errors=[([f32(7, 5), i64(1, 2), i64(6), i64(0)], "Expected")])
    add("pad", [node("Pad", ["x", "pads"], ["y"])], {"x": 2, "pads": (INT64, 1)}, [[f32(7, 5), i64(1, 0, 2, 3)], [f32(7, 5), i64(-2, 3, 1, -4)]],
        errors=[([f32(7, 5), i64(1, 0)], "pads"), ([f32(7, 5), i64(-4, 0, -4, 0)], "0")])
    for mode in ("reflect", "edge", "wrap"):
        add(f"pad_{mode}", [node("Pad", ["x", "pads"], ["y"], mode=mode)], {"x": 2, "pads": (INT64, 1)},
            [[f32(7, 5), i64(1, 0, 2, 3)], [f32(7, 5), i64(-1, 2, 3, -1)]])
        add(f"pad_known_{mode}", [node("Constant", [], ["pads"], value_ints=[-1, 2, 3, -1]), node("Pad", ["x", "pads"], ["y"], mode=mode)],
            {"x": 2}, [[f32(7, 5)], [f32(11, 4)]])
    # What fills an image up to whole windows, which its sizes say.
    ints = [node("Constant", [], [name], value_ints=value) for name, value in (("eight", [8]), ("none", [0, 0]))]
    add("pad_to_windows", [*ints, node("Shape", ["x"], ["sizes"]), node("Sub", ["none", "sizes"], ["less"]),
                           node("Mod", ["less", "eight"], ["more"]), node("Concat", ["none", "more"], ["pads"], axis=0),
                           node("Pad", ["x", "pads"], ["y"])], {"x": 2}, [[f32(7, 5)], [f32(8, 16)], [f32(1, 9)]])
    # The length of a spectrum is a quotient of a quotient.
    add("spectra", [node("Constant", [], ["step"], value_int=2), node("STFT", ["x", "step", "w"], ["y"])], {"x": 3, "w": 1},
        [[f32(b, n, 1), f32(k)] for b, n, k in ((1, 7, 3), (2, 9, 2), (3, 5, 5))], output=(TensorProto.FLOAT, 4))
    add("split", [node("Split", ["x"], ["y", "z"], num_outputs=2)], {"x": 2}, [[f32(7, 5)], [f32(2, 5)], [f32(8, 1)]])
    add("boxes", [node("NonMaxSuppression", ["boxes", "scores", "most"], ["y"])], {"boxes": 3, "scores": 3, "most": (INT64, 1)},
        [[np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]]], np.float32), f32(1, 1, 3), i64(2)]],
        errors=[([f32(1, 3, 5), f32(1, 1, 3), i64(2)], "5")], output=(INT64, 2))
    # Of nothing there are sizes, which are the call's.
    numbers = [node("Constant", [], [name], value_ints=[value]) for name, value in (("zero", 0), ("one", 1))]
    add("nothing_picked", [*numbers, node("Slice", ["x", "zero", "zero", "one"], ["rows"]), node("Shape", ["rows"], ["y"])],
        {"x": 3}, [[f32(n, 2, m)] for n, m in ((9, 5), (1, 1), (3, 0))], output=(INT64, 1))
    # What is reduced may be nothing, after calls in which it was something.
    some = [np.arange(9) % 3 > 0, np.zeros(9, bool), np.arange(9) > 6, np.zeros(9, bool)]
    for op in ("ReduceSum", "ReduceProd", "ReduceL2"):
        add(f"{op}_of_none", [node("Compress", ["x", "m"], ["rows"], axis=0), node(op, ["rows"], ["y"], keepdims=0)],
            {"x": 2, "m": (TensorProto.BOOL, 1)}, [[f32(9, 5), m] for m in some], output=(TensorProto.FLOAT, 0))
    add("unique_of_none", [node("Compress", ["x", "m"], ["rows"]), node("Unique", ["rows"], ["y"])], {"x": 1, "m": (TensorProto.BOOL, 1)},
        [[f32(9), m] for m in some], output=(TensorProto.FLOAT, 1))
    # A mask that picks twice finds as many each time.
    twice = [node("Sign", ["x"], ["sign"])]
    for name in ("a", "b"):
        twice += [node("NonZero", ["sign"], [f"at_{name}"]), node("GatherND", [name, f"to_{name}"], [f"{name}_picked"])]
        twice.insert(-1, node("Transpose", [f"at_{name}"], [f"to_{name}"]))
    add("picked_twice", [*twice, node("Sub", ["a_picked", "b_picked"], ["y"])], {"x": 1, "a": 1, "b": 1},
        [[f32(n) * (np.arange(n) % 3 > 0), f32(n), f32(n)] for n in (1, 2, 17)], output=(TensorProto.FLOAT, 1))


def add_sums():
    """Along an axis of any length: vectors that are whole and that are not, rows of one, and none."""
    node = helper.make_node
    lengths = (0, 1, 2, 15, 16, 17, 31, 63, 64, 65, 67, 127, 128, 129, 131, 1009)
    kinds = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE, np.int32: TensorProto.INT32, np.int64: INT64,
             np.uint32: TensorProto.UINT32, np.uint64: TensorProto.UINT64}

    def along(kind, axis, exclusive, reverse, product):
        def wanted(x):
            back = np.flip(x, axis) if reverse else x
            y = np.cumprod(back, axis, x.dtype) if product else np.cumsum(back, axis, x.dtype)
            if exclusive:
                y = np.roll(y, 1, axis)
                y[(slice(None),) * axis + (slice(0, 1),)] = product
            return (np.flip(y, axis) if reverse else y).astype(kind)
        return wanted

    def draw(kind, *shape):
        return (rng.uniform(0.9, 1.1, shape) if np.issubdtype(kind, np.floating) else rng.integers(0, 9, shape)).astype(kind)

    for (kind, elem), exclusive, reverse in itertools.product(kinds.items(), (0, 1), (0, 1)):
        if kind not in (np.float32, np.int64) and exclusive + reverse != 1:
            continue
        for op, axis, shapes in (("CumSum", 0, [(n,) for n in lengths]), ("CumSum", 1, [(m, n) for n in lengths for m in (0, 1, 3)]),
                                 ("CumSum", 0, [(m, n) for n in lengths for m in (0, 1, 5)]), ("CumSum", 1, [(2, 7, n) for n in lengths]),
                                 ("CumProd", 1, [(2, n, 3) for n in lengths[:-1]])):
            if kind not in (np.float32, np.float64) and op == "CumProd":
                continue
            rank = len(shapes[0])
            add(f"{op}_{np.dtype(kind)}_{rank}_{axis}_{exclusive}{reverse}",
                [node("Constant", [], ["axis"], value_int=axis), node(op, ["x", "axis"], ["y"], exclusive=exclusive, reverse=reverse)],
                {"x": (elem, rank)}, [[draw(kind, *s)] for s in shapes], wanted=along(kind, axis, exclusive, reverse, op == "CumProd"),
                output=(elem, rank), opset=26)


def attention(q, k, v, mask):
    """A mask shorter than the keys leaves out the last ones; one of 1 is for all."""
    if mask.shape[1] not in (1, k.shape[2]):
        mask = np.concatenate([mask, np.full((len(mask), k.shape[2] - mask.shape[1]), -np.inf, np.float32)], 1)
    scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3]) + mask
    weights = np.exp(scores - scores.max(3, keepdims=True))
    return (weights / weights.sum(3, keepdims=True) @ v).astype(np.float32)


def add_backwards():
    """An axis that may be empty, walked from its end."""
    node = helper.make_node
    ends = [(-1, -2**63, -1), (2**31, -2**40, -1), (-1, -2**31, -2), (0, 5, -1), (5, 0, -1), (5, -100, -3), (-2, 1, -1)]
    lines = [f32(n) for n in (0, 1, 2, 5, 7)]
    for k, (start, end, step) in enumerate(ends):
        known = [node("Constant", [], [name], value_ints=[value]) for name, value in (("from", start), ("to", end), ("axes", 0), ("steps", step))]
        add(f"backwards_{k}", [*known, node("Slice", ["a", "from", "to", "axes", "steps"], ["y"])], {"a": 1}, [[x] for x in lines],
            output=(TensorProto.FLOAT, 1))
    add("backwards_by_call", [node("Slice", ["a", "from", "to", "axes", "steps"], ["y"])], {"a": 1, **{name: (INT64, 1) for name in ("from", "to", "axes", "steps")}},
        [[x, i64(start), i64(end), i64(0), i64(step)] for x in lines for start, end, step in ends], output=(TensorProto.FLOAT, 1))


def add_bounds():
    """What is cut, masked or padded by sizes of other inputs."""
    node = helper.make_node
    difference = [node("Shape", ["a"], ["s"], end=1), node("Shape", ["b"], ["t"], end=1), node("Sub", ["s", "t"], ["d"])]
    zero = node("Constant", [], ["zero"], value_ints=[0])
    lengths = [(7, 2), (2, 7), (4, 4), (1, 2), (7, 0), (0, 7)]
    add("to_difference", [*difference, zero, node("Slice", ["a", "zero", "d"], ["y"])], {"a": 2, "b": 2},
        [[f32(m, 3), f32(n, 1)] for m, n in lengths])
    add("from_difference", [*difference, node("Slice", ["a", "d", "s"], ["y"])], {"a": 2, "b": 2},
        [[f32(m, 3), f32(n, 1)] for m, n in lengths])
    masks = [(5, 9), (5, 4), (5, 1), (1, 9), (1, 1)]
    add("mask", [node("Attention", ["q", "k", "v", "m"], ["y"])], {"q": 4, "k": 4, "v": 4, "m": 2},
        [[f32(2, 3, 5, 8), f32(2, 3, 9, 8), f32(2, 3, 9, 4), f32(*m)] for m in masks],
        errors=[([f32(2, 3, 5, 8), f32(2, 3, 9, 8), f32(2, 3, 9, 4), f32(5, 10)], "Expected")], wanted=attention,
        output=(TensorProto.FLOAT, 4), opset=23)


def add_windows():
    node = helper.make_node
    image = (TensorProto.FLOAT, 4)
    for name, more in {"transposed": {}, "transposed_same": {"auto_pad": "SAME_UPPER"}, "transposed_shape": {"output_shape": [9, 9]}}.items():
        add(name, [node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], **more)], {"x": 4, "w": 4},
            [[f32(2, 3, 4, 4), f32(3, 2, 3, 3)], [f32(1, 1, 4, 4), f32(1, 1, 2, 4)]], errors=[([f32(2, 3, 4, 4), f32(4, 2, 3, 3)], "Expected")],
            output=image)
    sizes = [f32(1, 2, h, w) for h, w in [(1, 1), (2, 3), (5, 4), (6, 6), (7, 8), (9, 17)]]
    for side in ("SAME_UPPER", "SAME_LOWER"):
        how = {"auto_pad": side, "strides": [2, 3], "kernel_shape": [3, 4]}
        add(f"conv_{side}", [node("Conv", ["x", "w"], ["y"], **how)], {"x": 4, "w": 4}, [[x, f32(3, 2, 3, 4)] for x in sizes], output=image)
        for op, more in (("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1}), ("LpPool", {"p": 3})):
            add(f"{op}{len(more)}_{side}", [node(op, ["x"], ["y"], **how, **more)], {"x": 4}, [[x] for x in sizes], output=image)
        # Padding that is none at some sizes, windows smaller than their steps, kernels of any size.
        halves = {"auto_pad": side, "strides": [2, 2]}
        for op in ("MaxPool", "AveragePool"):
            add(f"halves_{op}_{side}", [node(op, ["x"], ["y"], kernel_shape=[2, 3], **halves)], {"x": 4}, [[x] for x in sizes], output=image)
        for order in (0, 1):
            places = [node("MaxPool", ["x"], ["most", "y"], kernel_shape=[3, 3], storage_order=order, **halves)]
            add(f"places{order}_{side}", places, {"x": 4}, [[f32(2, *x.shape[1:])] for x in sizes], output=(INT64, 4))
        add(f"open_kernel_{side}", [node("Conv", ["x", "w"], ["y"], **halves)], {"x": 4, "w": 4},
            [[x, f32(3, 2, *k)] for x in sizes for k in ((1, 1), (2, 3), (5, 4))], output=image)
        quantised = [node("ConvInteger", ["x", "w", "zero"], ["s"], **halves), node("Cast", ["s"], ["y"], to=TensorProto.FLOAT)]
        add(f"bytes_{side}", quantised, {"x": (TensorProto.UINT8, 4), "w": (TensorProto.INT8, 4), "zero": (TensorProto.UINT8, 0)},
            [[rng.integers(0, 255, x.shape).astype(np.uint8), rng.integers(-99, 99, (3, 2, 3, 3)).astype(np.int8), np.array(77, np.uint8)] for x in sizes],
            output=image)
    for pads in ([0, 0, 0, 0], [1, 0, 1, 2]):
        add(f"rounded_up{pads[3]}", [node("LpPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 3], pads=pads, ceil_mode=1)], {"x": 4},
            [[x] for x in sizes if min(x.shape[2] + sum(pads[::2]), x.shape[3] + sum(pads[1::2])) >= 3], output=image)
    for side, (shape, images) in itertools.product(("NOTSET", "SAME_UPPER", "SAME_LOWER"), [([9, 9], [(4, 4), (5, 4)]), ([16, 17], [(8, 8)])]):
        add(f"shape{shape[0]}_{side}", [node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], output_shape=shape, auto_pad=side)],
            {"x": 4, "w": 4}, [[f32(1, 2, h, w), f32(2, 3, 3, 3)] for h, w in images], output=image)


def add_frames():
    """Frames longer than the sizes that plans are made for, of which there are fewer than none; and means over the first elements of rows
    that may be shorter, which a loop carries along."""
    node = helper.make_node
    constants = [node("Constant", [], [name], value=numpy_helper.from_array(value)) for name, value in
                 (("w", f32(32, 1, 300) / 300), ("one", i64(1)), ("zero", i64(0)), ("most", i64(240)), ("m", f32(151, 40) / 300), ("window", f32(300) / 300), ("hop", np.array(40)), ("last", i64(-1)))]
    constants.append(node("Concat", ["a", "b"], ["both"], axis=1))
    samples = [[f32(b, 7), f32(b, n)] for b, n in ((1, 293), (2, 294), (3, 770))]
    add("frames_of_a_convolution", [*constants, node("Unsqueeze", ["both", "one"], ["x"]), node("Conv", ["x", "w"], ["y"])],
        {"a": 2, "b": 2}, samples, output=(TensorProto.FLOAT, 3), empty=False)
    add("frames_of_a_transform", [*constants, node("STFT", ["both", "hop", "window"], ["s"]), node("ReduceSumSquare", ["s", "last"], ["p"], keepdims=0),
                                  node("MatMul", ["p", "m"], ["y"])],
        {"a": 2, "b": 2}, samples, output=(TensorProto.FLOAT, 3), empty=False)
    body = helper.make_graph([node("Identity", ["before"], ["after"]), node("Identity", ["before"], ["row"])], "body",
                             [helper.make_tensor_value_info("before", TensorProto.FLOAT, ["b", 240]), helper.make_tensor_value_info("here", TensorProto.FLOAT, ["k"])],
                             [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b", 240]) for name in ("after", "row")])
    add("means_of_short_rows", [*constants[:-1], node("Slice", ["a", "zero", "most", "one"], ["first"]),
                                node("Scan", ["first", "x"], ["left", "rows"], num_scan_inputs=1, body=body),
                                node("ReduceMean", ["rows", "last"], ["y"], keepdims=0)],
        {"a": 2, "x": 2}, [[f32(2, n), f32(3, 4)] for n in (240, 250)], empty=False)


def add_images():
    """Networks of images whose height and width are the call's: tiles of rows are cut wherever these end."""
    def constants(**tensors):
        return [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(t, name)) for name, t in tensors.items()]

    node = helper.make_node
    weights = constants(w=f32(20, 3, 3, 3) / 8, b=f32(20), d=f32(20, 1, 5, 5) / 8, p=f32(17, 20, 1, 1) / 8, q=f32(9, 40, 3, 3) / 8)
    body = [node("Conv", ["x", "w", "b"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["r"]),
            node("Conv", ["r", "d"], ["e"], group=20, pads=[2, 2, 2, 2]), node("Add", ["e", "r"], ["s"])]
    fixed = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"])
    sizes = [f32(n, 3, h, w) for n, h, w in [(1, 1, 1), (1, 2, 3), (2, 7, 15), (1, 13, 16), (1, 9, 17), (1, 33, 31), (3, 16, 64)]]
    ends = {"maps": [node("Conv", ["s", "p"], ["y"])], "pool": [node("MaxPool", ["s"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])],
            "mean": [node("GlobalAveragePool", ["s"], ["y"])], "turned": [node("Transpose", ["s"], ["y"], perm=[0, 3, 1, 2])],
            "to_space": [node("DepthToSpace", ["s"], ["y"], blocksize=2)],
            "joined": [node("Concat", ["r", "s"], ["both"], axis=1), node("Conv", ["both", "q"], ["y"], pads=[1, 1, 1, 1])],
            "transposed": [node("ConvTranspose", ["s", "t"], ["y"], strides=[2, 2])]}
    for name, end in ends.items():
        more = constants(t=f32(20, 4, 2, 2) / 8) if name == "transposed" else []
        add(f"images_{name}", [*weights, *more, *body, *end], {"x": 4}, [[x] for x in sizes], output=(TensorProto.FLOAT, 4))
        cases[-1].model.graph.input[0].CopyFrom(fixed)


def add_resizes():
    """Sizes that are no whole quotients of open ones."""
    node = helper.make_node
    images = [[f32(1, 1, h, w)] for h, w in [(6, 8), (7, 5), (4, 4), (1, 3)]]
    scales = node("Constant", [], ["scales"], value=numpy_helper.from_array(np.array([1, 1, 1.5, 0.7], np.float32)))
    sizes = node("Constant", [], ["sizes"], value=numpy_helper.from_array(i64(7, 9)))
    add("odd_scales", [scales, node("Resize", ["x", "", "scales"], ["y"], mode="linear")], {"x": 4}, images, output=(TensorProto.FLOAT, 4))
    for policy in ("not_larger", "not_smaller"):
        add(policy, [sizes, node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear", axes=[2, 3], keep_aspect_ratio_policy=policy)],
            {"x": 4}, images, output=(TensorProto.FLOAT, 4))


def add_grams():
    """n-grams that skip, of rows of any length."""
    grams = helper.make_node("TfIdfVectorizer", ["x"], ["y"], mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=3,
                             ngram_counts=[0, 2], ngram_indexes=[0, 1, 2, 3], pool_int64s=[2, 3, 2, 3, 5, 2])
    add("grams", [grams], {"x": (INT64, 2)}, [[rng.integers(2, 6, (3, n))] for n in (1, 2, 3, 5, 6, 13)])

    # What says a run of words again is forbidden; sequences shorter than a run forbid nothing.
    def unrepeated(words, scores, n=3):
        out = scores.copy()
        for row, said in enumerate(words):
            for at in range(len(said) - n + 1):
                if list(said[at:at + n - 1]) == list(said[len(said) - n + 1:]):
                    out[row, said[at + n - 1]] = -np.inf
        return out
    block = helper.make_node("NGramRepeatBlock", ["words", "scores"], ["y"], domain="com.microsoft", ngram_size=3)
    for empty in (True, False):
        add(f"repeats_of_words_{empty}", [block], {"words": (INT64, 2), "scores": 2},
            [[rng.integers(0, 3, (rows, length)), f32(rows, 4)] for rows in (1, 3) for length in (0, 1, 2, 3, 4, 17) if empty or length],
            wanted=unrepeated, empty=empty)


def stale_shape(tenon, declared, folder):
    path, library = folder / "stale.onnx", folder / "stale.so"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, declared)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "stale", [x], [y])
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString())
    done = subprocess.run([tenon, "compile", path, "-o", library], capture_output=True, text=True)
    says = "output 'y': warning: expected the shape"
    if done.returncode != 0 or says not in done.stderr or "but it is [2, 3]" not in done.stderr:
        return [f"expected a warning, but got status {done.returncode}: {done.stderr[-200:]}"]
    got = np.from_dlpack(tvm_ffi.load_module(str(library)).main(f32(2, 3))).shape
    return [] if got == (2, 3) else [f"expected the shape of the input, but got {got}"]


def stale_shapes(tenon):
    """Shapes that a model declares of its outputs and that are wrong: a warning, and the computed ones."""
    wrong = []
    for declared in ([3, 2], ["n"]):
        with tempfile.TemporaryDirectory() as folder:
            wrong += stale_shape(tenon, declared, pathlib.Path(folder))
    return wrong


def formulas(tenon):
    """A size that is a sum of others is a fact; what is no sum of sizes that inputs have is a name; "" is none at all."""
    wrong = []

    def library_of(folder, name, past, now, whole):
        path, library = folder / f"{name}.onnx", folder / f"{name}.so"
        dims = {"past": [past], "now": [now], "whole": [whole]}
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in dims.items()]
        nodes = [helper.make_node("Concat", ["past", "now"], ["both"], axis=0), helper.make_node("Add", ["both", "whole"], ["y"])]
        graph = helper.make_graph(nodes, "sums", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None])])
        path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString())
        subprocess.run([tenon, "compile", path, "-o", library, "-q", "--empty-sizes"], check=True)
        return tvm_ffi.load_module(str(library)).main

    def holds(main, sizes, fits):
        feeds = [f32(n) for n in sizes]
        try:
            good = np.allclose(np.from_dlpack(main(*feeds)), np.concatenate(feeds[:2]) + feeds[2])
        except ValueError:
            good = None
        if good is not (True if fits else None):
            wrong.append(f"{sizes}: expected {'an answer' if fits else 'an error'}")

    for name, sizes, calls in [("sum", ("p", "n", "p + n"), {(3, 4, 7): True, (0, 4, 4): True, (3, 4, 6): False, (3, 4, 1): False}),
                               ("name", ("p", "n", "p + q"), {(3, 4, 7): True, (3, 4, 1): True, (3, 4, 6): False}),  # nobody has q
                               ("multiples", ("p", "p*2", "3*p"), {(2, 4, 6): True, (2, 3, 5): False}),
                               ("nothing", ("", "?", ""), {(3, 4, 7): True, (3, 5, 1): True, (3, 4, 6): False})]:
        with tempfile.TemporaryDirectory() as folder:
            main = library_of(pathlib.Path(folder), name, *sizes)
            for call, fits in calls.items():
                holds(main, call, fits)
    return wrong


def huge_sizes(tenon):
    """Sizes and offsets beyond 2^31 where nobody gave a range: memory that is only read, and that is zeros but for one place."""
    byte, node = TensorProto.UINT8, helper.make_node
    nodes = [node("Gather", ["x", "at"], ["taken"]), node("ReduceMax", ["x"], ["most"], keepdims=0),
             node("Slice", ["x", "from", "to"], ["part"]), node("Shape", ["x"], ["shape"])]
    lists = [helper.make_tensor_value_info(name, INT64, dims) for name, dims in [("at", ["k"]), ("from", [1]), ("to", [1])]]
    outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in
               [("taken", byte), ("most", byte), ("part", byte), ("shape", INT64)]]
    graph = helper.make_graph(nodes, "huge", [helper.make_tensor_value_info("x", byte, ["n"]), *lists], outputs)
    with tempfile.TemporaryDirectory() as folder:
        path, library = pathlib.Path(folder, "m.onnx"), pathlib.Path(folder, "m.so")
        path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString())
        subprocess.run([tenon, "compile", path, "-o", library, "-q"], check=True)
        main = tvm_ffi.load_module(str(library)).main
    x = np.zeros(2**31 + 11, np.uint8)
    x[2**31 + 5] = 7
    got = [np.from_dlpack(y).tolist() for y in main(x, i64(2**31 + 5, -1), i64(2**31 + 3), i64(2**31 + 8))]
    return [] if got == [[7, 0], 7, [0, 0, 7, 0, 0], [2**31 + 11]] else [f"got {got}"]


def add_many():
    """More kernels than an expression may be deep, as wide as ten sizes of which none is known to be the largest."""
    node = helper.make_node
    steps, ends = [node("Constant", [], ["w"], value=numpy_helper.from_array(f32(64, 64)))], []
    for name in (f"x{k}" for k in range(10)):
        for i in range(100):
            steps += [node("MatMul", [name if i == 0 else f"{name}_{i}", "w"], [f"{name}_{i}_s"]), node("Softmax", [f"{name}_{i}_s"], [f"{name}_{i + 1}"])]
        ends.append(f"{name}_100")
    add("many_kernels", [*steps, node("Concat", ends, ["y"], axis=0)], {f"x{k}": 2 for k in range(10)},
        [[f32(k % 3 + more, 64) for k in range(10)] for more in (0, 1, 17)])


def add_rows():
    """Rows about as long as a vector or a part of a sum; several axes at once; the first of several that are equal."""
    node, sizes = helper.make_node, [1, 3, 15, 16, 17, 64, 65, 127, 4097]
    rows = [f32(2, n) for n in sizes]
    ties = [rng.integers(0, 3, (3, n)).astype(np.float32) for n in sizes]
    for x in ties[2:]:
        x[1, -2:] = np.nan
    for kind, of in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
        add(f"{kind}_rows", [node(kind, ["a"], ["y"], axis=1, keepdims=0)], {"a": 2}, [[x] for x in rows + ties], output=(INT64, 1),
            wanted=lambda a, of=of: of(a, axis=1))
    for kind, of in (("ReduceMax", np.max), ("ReduceSum", np.sum), ("ReduceMin", np.min)):
        add(f"{kind}_rows", [node("Constant", [], ["last"], value_ints=[1]), node(kind, ["a", "last"], ["y"], keepdims=0)], {"a": 2},
            [[x] for x in rows + ties], output=(TensorProto.FLOAT, 1), wanted=lambda a, of=of: of(a, axis=1))
        add(f"{kind}_of_all", [node("Exp", ["a"], ["e"]), node(kind, ["e"], ["y"], keepdims=0)], {"a": 3},
            [[f32(*s) / 4] for s in ((1, 1, 1), (3, 5, 7), (17, 16, 65), (127, 17, 65), (2, 1, 8191))], output=(TensorProto.FLOAT, 0),
            wanted=lambda a, of=of: of(np.exp(a)))
        add(f"{kind}_of_maps", [node("Constant", [], ["space"], value_ints=[2, 3]), node(kind, ["a", "space"], ["y"])], {"a": 4},
            [[f32(2, 3, *s)] for s in ((1, 1), (7, 7), (1, 64), (5, 13), (33, 129))], output=(TensorProto.FLOAT, 4),
            wanted=lambda a, of=of: of(a, axis=(2, 3), keepdims=True))
    for k in (1, 3, 8):
        for largest in (0, 1):
            first = node("Constant", [], ["k"], value_ints=[k])
            add(f"topk_{k}_{largest}", [first, node("TopK", ["a", "k"], ["v", "y"], axis=1, largest=largest)], {"a": 2},
                [[x] for x in rows + ties if x.shape[1] >= k and not np.isnan(x).any()], output=(INT64, 2))


def add_products():
    """Operands that are both computed, with what they share among places, turned or not."""
    node, sizes = helper.make_node, [(1, 1, 1), (1, 16, 17), (7, 5, 3), (8, 64, 64), (65, 17, 33), (17, 0, 5), (13, 31, 1)]
    for turn_a, turn_b in itertools.product((0, 1), repeat=2):
        def turned(a, turn):
            return a.swapaxes(-1, -2) if turn else a
        add(f"gemm_{turn_a}{turn_b}", [node("Gemm", ["a", "b"], ["y"], transA=turn_a, transB=turn_b)], {"a": 2, "b": 2},
            [[f32(*turned(np.zeros((m, k)), turn_a).shape), f32(*turned(np.zeros((k, n)), turn_b).shape)] for m, k, n in sizes],
            wanted=lambda a, b, ta=turn_a, tb=turn_b: turned(a, ta) @ turned(b, tb))
        nodes = [node("Transpose", ["a"], ["at"], perm=[0, 2, 1])] * turn_a + [node("Transpose", ["b"], ["bt"], perm=[0, 2, 1])] * turn_b
        add(f"batched_{turn_a}{turn_b}", [*nodes, node("MatMul", ["at" if turn_a else "a", "bt" if turn_b else "b"], ["y"])], {"a": 3, "b": 3},
            [[f32(p, *turned(np.zeros((m, k)), turn_a).shape), f32(q, *turned(np.zeros((k, n)), turn_b).shape)]
             for (m, k, n), (p, q) in itertools.product(sizes, ((1, 1), (5, 5), (5, 1), (1, 3)))],
            wanted=lambda a, b, ta=turn_a, tb=turn_b: turned(a, ta) @ turned(b, tb), output=(TensorProto.FLOAT, 3))
    for ranks in ((2, 3), (4, 2), (4, 3), (3, 4)):
        lead = {2: (), 3: (4,), 4: (2, 4)}
        add(f"ranks_{ranks[0]}_{ranks[1]}", [node("MatMul", ["a", "b"], ["y"])], {"a": ranks[0], "b": ranks[1]},
            [[f32(*lead[ranks[0]], m, k), f32(*lead[ranks[1]], k, n)] for m, k, n in sizes], wanted=lambda a, b: a @ b,
            output=(TensorProto.FLOAT, max(ranks)))
    # Rows of three axes, each of which may be empty, do not stand on one axis.
    weight = node("Constant", [], ["w"], value=numpy_helper.from_array(f32(5, 33)))
    add("rows_on_axes", [weight, node("MatMul", ["a", "w"], ["y"])], {"a": 4}, [[f32(*p, 5)] for p in itertools.product((0, 1, 3, 17), repeat=3)],
        output=(TensorProto.FLOAT, 4))


def add_grouped():
    """Convolutions without a direct form: of groups, along one axis and three, at sizes about a vector's."""
    for name, maps, depth, kernel, group, stride, pads, dilation in (
            ("g4", 12, 2, (3, 3), 4, 1, 1, 1), ("g8_stride", 16, 3, (3, 3), 8, 2, 1, 1), ("g2_even", 10, 4, (2, 4), 2, 1, 0, 1),
            ("g2_line", 6, 3, (5,), 2, 2, 2, 1), ("line", 9, 4, (3,), 1, 1, 2, 2), ("cube", 8, 3, (3, 3, 3), 1, 1, 1, 1),
            ("cube_stride", 5, 2, (1, 3, 2), 1, 2, 1, 1)):
        rank, w = len(kernel), f32(maps, depth, *kernel) / 4
        conv = helper.make_node("Conv", ["x", "w"], ["c"], group=group, strides=[stride] * rank, pads=[pads] * 2 * rank, dilations=[dilation] * rank)
        sides = [(n,) + (n + 3,) * (rank - 1) for n in (5, 15, 16, 17, 31)] + [(6,) * (rank - 1) + (n,) for n in (32, 33, 65)]
        info = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", depth * group, *(f"s{i}" for i in range(rank))])
        graph = helper.make_graph([conv, helper.make_node("Relu", ["c"], ["y"])], name, [info],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * (rank + 2))], [numpy_helper.from_array(w, "w")])
        cases.append(Case(f"conv_{name}", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10),
                          [[f32(n, depth * group, *s)] for n, s in itertools.product((1, 3), sides)]))


def all_cases():
    add_broadcasts()
    add_many()
    add_counts_in_floats()
    add_lists()
    add_backwards()
    add_sums()
    add_bounds()
    add_windows()
    add_frames()
    add_images()
    add_grams()
    add_resizes()
    add_rows()
    add_products()
    add_grouped()
    return cases


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, all_cases, [stale_shapes, formulas, huge_sizes]))
