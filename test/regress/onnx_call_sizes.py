#!/usr/bin/env python3
"""Sizes, axes and positions that come with the call: one library for each model, called with many of them, beside ONNX
Runtime; and calls that no size fits, which fail with a message and harm no later call.

Usage: onnx_call_sizes.py TENON [--levels 0 2] [--match REGEX]      needs: pip install onnx onnxruntime numpy apache-tvm-ffi
"""
import itertools
import sys

import numpy as np
from calls import Case, run_cases
from onnx import TensorProto, helper

rng = np.random.default_rng(0)
FAR = 2**62
cases = []


def add(name, op, inputs, calls, errors=(), opset=21, dtype=TensorProto.FLOAT, **attrs):
    """A model of one node. `inputs`: shapes, the first of random floats, the others of i64 or (type, shape), None where one is
    left out; `calls`: what is passed for the others, in turn, and for the first one if that is (type, shape); `errors`: (what is
    passed, what the error says)."""
    names = ["" if shape is None else f"i{k}" for k, shape in enumerate(inputs)]
    infos = [helper.make_tensor_value_info(n, dtype if k == 0 and not isinstance(shape, tuple) else TensorProto.INT64 if not isinstance(shape, tuple) else shape[0],
                                           shape if not isinstance(shape, tuple) else shape[1])
             for k, (n, shape) in enumerate(zip(names, inputs)) if shape is not None]
    outputs = {"y": dtype} | ({"where": TensorProto.INT64} if op == "TopK" else {})
    node = helper.make_node(op, names, list(outputs), **attrs)
    graph = helper.make_graph([node], name, infos, [helper.make_tensor_value_info(*o, None) for o in outputs.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)

    def feeds(call):
        return list(call) if isinstance(inputs[0], tuple) else [rng.standard_normal(inputs[0]).astype(np.float32), *call]
    cases.append(Case(name, model, [feeds(call) for call in calls], [(feeds(call), says) for call, says in errors]))


def i64(*values):
    return np.array(values, np.int64)


def add_movement():
    add("reshape", "Reshape", [[4, 6], [3]], [(i64(2, 3, 4),), (i64(24, 1, 1),), (i64(-1, 3, 2),), (i64(0, -1, 2),), (i64(4, 0, 1),)],
        errors=[((i64(5, 2, 2),), "Expected"), ((i64(-7, 2, 2),), "Expected the size"), ((i64(7, -1, 1),), "Expected")])
    add("reshape_empty", "Reshape", [[0, 6], [2]], [(i64(6, 0),), (i64(0, 5),)], allowzero=1)
    bounds = [-FAR, -8, -7, -3, -1, 0, 1, 3, 6, 7, 8, FAR]
    steps = [-FAR, -7, -2, -1, 1, 2, 5, FAR]
    add("slice", "Slice", [[7, 3], [1], [1], [1], [1]],
        [(i64(a), i64(b), i64(0), i64(s)) for a, b, s in itertools.product(bounds, bounds, steps)] + [(i64(-1), i64(0), i64(-1), i64(-1))])
    add("slice_two", "Slice", [[7, 13], [2], [2], [2]], [(i64(1, 2), i64(5, -2), i64(0, 1)), (i64(0, 0), i64(0, 1), i64(-1, 0))],
        errors=[((i64(0, 0), i64(1, 1), i64(0, 2)), "expected elements of 'i3' in -2..=1, but got 2")])
    add("expand", "Expand", [[3, 1], [3]], [(i64(2, 3, 5),), (i64(1, 1, 1),), (i64(0, 3, 1),), (i64(2, 1, 17),)],
        errors=[((i64(2, 4, 1),), "Expected")])
    add("tile", "Tile", [[2, 3], [2]], [(i64(1, 1),), (i64(3, 2),), (i64(0, 5),), (i64(17, 1),)])
    for mode, least in (("constant", -1), ("edge", 0), ("reflect", 0), ("wrap", 0)):
        pads = [i64(*p) for p in itertools.product([least, 0, 2], repeat=4)]
        add(f"pad_{mode}", "Pad", [[4, 5], [4]], [(p,) for p in pads], mode=mode)
    # Nothing is done 2^45 times.
    add("constant_of_nothing", "ConstantOfShape", [(TensorProto.INT64, [3])], [(i64(2, 3, 4),), (i64(2**20, 2**25, 0),), (i64(0, 5, 2**40),)])

    def number(*values):
        return tuple(np.array(v, np.int64) for v in values)
    add("range", "Range", [(TensorProto.INT64, [])] * 3, [number(0, 7, 2), number(10, 0, -3), number(5, 5, 1), number(3, 9, -1)],
        errors=[(number(0, 5, 0), "Expected the size"), (number(-2**63, 2**63 - 1, 1), "Expected the size"), (number(2**63 - 1, -2**63, -1), "Expected the size")],
        dtype=TensorProto.INT64)
    def real(*values):
        return tuple(np.array(v, np.float32) for v in values)
    add("range_of_floats", "Range", [(TensorProto.FLOAT, [])] * 3, [real(0, 2, 0.5), real(1, -1, -0.75), real(0, 5, np.inf)],
        errors=[(real(0, 5, 0), "Expected the size"), (real(0, 5, np.nan), "Expected the size"), (real(np.nan, 5, 1), "Expected the size"),
                (real(0, np.inf, 1), "Expected the size")])
    add("squeeze", "Squeeze", [[1, 4, 1], [1]], [(i64(0),), (i64(2),), (i64(-1),), (i64(-3),)], errors=[((i64(1),), "Expected")])
    add("unsqueeze", "Unsqueeze", [[3, 4], [2]], [(i64(0, 1),), (i64(3, 0),), (i64(-1, 1),), (i64(-1, -2),)], errors=[((i64(0, 4),), "in -4..=3, but got 4")])


def add_others():
    for kind in ("Sum", "Max", "Mean", "Prod", "L2", "LogSumExp"):
        for keepdims in (0, 1):
            add(f"reduce_{kind}_{keepdims}", f"Reduce{kind}", [[3, 4, 5], [2]], [(i64(0, 1),), (i64(2, 0),), (i64(-1, 1),)],
                opset=18, keepdims=keepdims)
    add("reduce_one", "ReduceSum", [[17, 31], [1]], [(i64(0),), (i64(1),), (i64(-1),)], errors=[((i64(2),), "in -2..=1, but got 2")])
    add("reduce_twice", "ReduceSum", [[17, 31], [2]], [(i64(0, 1),)])
    add("topk", "TopK", [[3, 11], [1]], [(i64(1),), (i64(11),), (i64(5),)], errors=[((i64(-1),), "Expected the size"), ((i64(12),), "Expected")])
    add("center", "CenterCropPad", [[5, 8], [2]], [(i64(5, 8),), (i64(2, 9),), (i64(8, 3),), (i64(1, 1),)], opset=18)
    for mode in ("nearest", "linear", "cubic"):
        add(f"resize_{mode}", "Resize", [[1, 2, 5, 7], None, None, [4]], [(i64(1, 2, h, w),) for h, w in ((5, 7), (1, 1), (10, 13), (3, 20))],
            opset=18, mode=mode)
        add(f"resize_scales_{mode}", "Resize", [[1, 2, 5, 7], None, (TensorProto.FLOAT, [4])],
            [(np.array([1, 1, a, b], np.float32),) for a, b in ((1, 1), (2, 0.6), (0.5, 3.1))],
            errors=[((np.array([1, 1, scale, 2], np.float32),), "no finite numbers above 0") for scale in (0, -1, np.nan, np.inf)],
            opset=18, mode=mode, coordinate_transformation_mode="asymmetric" if mode == "nearest" else "half_pixel",
            nearest_mode="floor")


def all_cases():
    add_movement()
    add_others()
    return cases


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, all_cases))
