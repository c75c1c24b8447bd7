#!/usr/bin/env python3
"""Ranks and lengths that only the call knows: lists of sizes or axes whose length is found among values, results of any rank,
and ranges of sizes in networks that are programs. One library for each model, called at many sizes, beside NumPy or ONNX Runtime.

Usage: onnx_ranks.py TENON [--levels 0 2] [--match REGEX]      needs: pip install onnx onnxruntime numpy apache-tvm-ffi
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from calls import Case, run_cases
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(0)
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node
cases = []


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


def ones(*flags):
    return np.array(flags, np.float32)


def add(name, nodes, inputs, calls, wanted=None, errors=(), options=("--empty-sizes",), **constants):
    """`inputs`: type and dims by name; the result `y` has any rank."""
    graph = helper.make_graph(nodes, "ranks", [helper.make_tensor_value_info(n, kind, dims) for n, (kind, dims) in inputs.items()],
                              [helper.make_tensor_value_info("y", FLOAT, None)],
                              [numpy_helper.from_array(np.array(value), key) for key, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    cases.append(Case(name, model, calls, errors, wanted, list(options), passed_in=False))


def add_found_lengths():
    """The list is made of what nodes find, in the middle of what would be one part."""
    places = [node("NonZero", ["x"], ["found"]), node("Squeeze", ["found", "first"], ["at"])]
    flags = [ones(0, 1, 1), ones(0, 0, 1), ones(0, 0, 0), ones(1, 1, 1), ones(0, 1, 0, 1, 0, 0, 1)]
    add("found_shape", [*places, node("ConstantOfShape", ["at"], ["y"])], {"x": (FLOAT, ["n"])}, [[x] for x in flags],
        lambda x: np.zeros(np.flatnonzero(x), np.float32), first=i64(0))
    add("found_expand", [*places, node("Add", ["at", "one"], ["sizes"]), node("Expand", ["a", "sizes"], ["b"]), node("Relu", ["b"], ["y"])],
        {"x": (FLOAT, ["n"]), "a": (FLOAT, [1])}, [[x, f32(1)] for x in flags[:4]],
        lambda x, a: np.maximum(np.broadcast_to(a, np.flatnonzero(x) + 1) if x.any() else a, 0), first=i64(0), one=i64(1))
    add("found_reshape", [node("Shape", ["a"], ["shape"]), node("Compress", ["shape", "c"], ["kept"], axis=0),
                          node("Concat", ["kept", "rest"], ["sizes"], axis=0), node("Reshape", ["a", "sizes"], ["y"])],
        {"a": (FLOAT, ["n", 2, 3]), "c": (BOOL, [3])}, [[f32(4, 2, 3), np.array(c)] for c in ([True, False, False], [True, True, False], [False] * 3)],
        lambda a, c: a.reshape([*np.array(a.shape)[c], -1]), rest=i64(-1))
    # Not the vector that is there decides, but what is made of it.
    add("distinct_sizes", [node("Unique", ["x"], ["sizes"]), node("Reshape", ["a", "sizes"], ["y"])],
        {"x": (INT64, ["n"]), "a": (FLOAT, ["k"])}, [[i64(2, 3, 2), f32(6)], [i64(4, 4), f32(4)]], lambda x, a: a.reshape(np.unique(x)))
    add("gathered_sizes", [node("Gather", ["s", "i"], ["sizes"]), node("Reshape", ["a", "sizes"], ["b"]), node("Add", ["b", "b"], ["y"])],
        {"a": (FLOAT, ["n"]), "s": (INT64, ["k"]), "i": (INT64, ["j"])},
        [[f32(6), i64(2, 3, 1), i64(0, 1)], [f32(6), i64(2, 3, 1), i64(0, 2, 1)]], lambda a, s, i: 2 * a.reshape(s[i]))
    # Two of them, one behind the other.
    add("twice", [*places, node("Add", ["at", "one"], ["sizes"]), node("Expand", ["a", "sizes"], ["b"]), node("Shape", ["b"], ["shape"]),
                  node("Compress", ["shape", "c"], ["few"], axis=0), node("ConstantOfShape", ["few"], ["y"])],
        {"x": (FLOAT, [3]), "a": (FLOAT, [1]), "c": (BOOL, ["k"])},
        [[ones(0, 1, 1), f32(1), np.array([True, False])], [ones(1, 1, 1), f32(1), np.array([True, False, True])]],
        lambda x, a, c: np.zeros((np.flatnonzero(x) + 1)[c], np.float32), first=i64(0), one=i64(1))


def add_axes():
    """How many axes go or come is known to the call."""
    add("squeezed", [node("Squeeze", ["a", "axes"], ["y"])], {"a": (FLOAT, [1, "n", 1]), "axes": (INT64, ["k"])},
        [[f32(1, 3, 1), i64(*axes)] for axes in ([0], [0, 2], [-1])], lambda a, axes: a.squeeze(tuple(axes)))
    add("unsqueezed", [node("Unsqueeze", ["a", "axes"], ["y"])], {"a": (FLOAT, ["n"]), "axes": (INT64, ["k"])},
        [[f32(3), i64(0)], [f32(3), i64(0, 2)], [f32(1), i64(0, 1, -1)]])
    add("reduced", [node("ReduceSum", ["a", "axes"], ["y"], keepdims=0)], {"a": (FLOAT, ["n", 2, 3]), "axes": (INT64, ["k"])},
        [[f32(4, 2, 3), i64(*axes)] for axes in ([0], [0, 2], [1, -1], [0, 1, 2])], lambda a, axes: a.sum(tuple(axes)))


def add_squeezes():
    """Which axes are of 1 is known to the call."""
    shapes = [(1, 1, 1), (2, 3, 4), (1, 3, 4), (2, 1, 4), (2, 3, 1), (1, 3, 1), (0, 1, 4), (1, 0, 3)]
    for name, nodes in {"alone": [node("Squeeze", ["x"], ["y"])],
                        "inside": [node("Exp", ["x"], ["e"]), node("Squeeze", ["e"], ["s"]), node("Neg", ["s"], ["y"])],
                        "twice": [node("Squeeze", ["x"], ["s"]), node("Add", ["s", "b"], ["t"]), node("Squeeze", ["t"], ["y"])]}.items():
        wanted = {"alone": lambda x: x.squeeze(), "inside": lambda x: -np.exp(x.squeeze()), "twice": lambda x: (x.squeeze() + 1).squeeze()}[name]
        add(f"squeeze_{name}", nodes, {"x": (FLOAT, ["a", "b", "c"])}, [[f32(*shape)] for shape in shapes], wanted, b=np.ones(1, np.float32))
    add("squeeze_some", [node("Squeeze", ["x"], ["s"]), node("Relu", ["s"], ["y"])], {"x": (FLOAT, ["n", 1, 4])}, [[f32(1, 1, 4)], [f32(3, 1, 4)]],
        lambda x: np.maximum(x.squeeze(), 0))


def add_unknown_ranks():
    """Inputs of which nobody says a rank."""
    add("any_rank", [node("Relu", ["x"], ["r"]), node("ReduceSum", ["r", "last"], ["y"])], {"x": (FLOAT, None)},
        [[f32(*shape)] for shape in [(3,), (2, 3), (1, 2, 3), (0, 4), (2, 1, 3, 2)]], lambda x: np.maximum(x, 0).sum(-1, keepdims=True),
        [([np.array(3, np.float32)], "")], last=i64(-1))
    add("two_ranks", [node("Add", ["x", "z"], ["y"])], {"x": (FLOAT, None), "z": (FLOAT, None)},
        [[f32(3), f32(2, 3)], [f32(2, 1), f32(1)], [f32(1, 2, 3), f32(3)]], lambda x, z: x + z)
    w = f32(3, 2, 3)
    add("one_rank_fits", [node("Conv", ["x", "w"], ["y"])], {"x": (FLOAT, None)}, [[f32(1, 2, 5)], [f32(2, 2, 3)]],
        lambda x: sum(np.einsum("ncl,mc->nml", x[:, :, k:x.shape[2] - 2 + k], w[:, :, k]) for k in range(3)), [([f32(1, 2, 5, 5)], "")], w=w)


def add_scalars():
    """What must be one element may be declared as a list of open length: that it is one is a fact."""
    names = {"start": (FLOAT, ["p"]), "end": (FLOAT, [1]), "step": (FLOAT, ["q"])}
    add("range", [node("Range", ["start", "end", "step"], ["y"])], names, [[ones(0), ones(5), ones(0.5)], [ones(3), ones(5), ones(1)]],
        lambda start, end, step: np.arange(start[0], end[0], step[0], np.float32), [([ones(0, 1), ones(5), ones(1)], "")])
    body = helper.make_graph([node("Add", ["sum_in", "x"], ["sum_out"]), node("Identity", ["go"], ["go_on"])], "body",
                             [helper.make_tensor_value_info(n, kind, dims) for n, kind, dims in [("i", INT64, []), ("go", BOOL, []), ("sum_in", FLOAT, ["n"])]],
                             [helper.make_tensor_value_info("go_on", BOOL, []), helper.make_tensor_value_info("sum_out", FLOAT, ["n"])])
    add("trips", [node("Loop", ["trip", "", "x"], ["y"], body=body)], {"trip": (INT64, ["k"]), "x": (FLOAT, ["n"])},
        [[i64(3), f32(2)], [i64(0), f32(5)]], lambda trip, x: x * (1 + trip[0]))
    add("added_up", [node("CumSum", ["x", "axis"], ["y"])], {"x": (FLOAT, ["n", "m"]), "axis": (INT64, ["k"])},
        [[f32(3, 4), i64(0)], [f32(1, 4), i64(-1)]], lambda x, axis: np.cumsum(x, axis[0]))


def add_ranges():
    """Ranges of sizes hold in networks that are programs, whether kernels read the input or steps alone."""
    parts = [node("SplitToSequence", ["a"], ["parts"], axis=0), node("SequenceAt", ["parts", "zero"], ["y"])]
    add("range_of_parts", parts, {"a": (FLOAT, ["n", 4])}, [[f32(n, 4)] for n in (2, 4, 8)], lambda a: a[:1],
        [([f32(10, 4)], "in 2..=8"), ([f32(3, 4)], "multiples of 2")], ["--shape", "a:n[2..8 step 2]x4"], zero=np.int64(0))


def runs(tenon):
    """`tenon run` of a library whose result has a rank that the call decides."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        case = next(c for c in cases if c.name == "gathered_sizes")
        (folder / "m.onnx").write_bytes(case.model.SerializeToString())
        np.savez(folder / "in.npz", **dict(zip("asi", case.calls[1])))
        for command in (["compile", "m.onnx", "-o", "m.so", "-q"], ["run", "m.so", "-i", "in.npz", "-o", "out.npz"],
                        ["bench", "m.so", "-i", "in.npz", "--repeat", "3"]):
            done = subprocess.run([pathlib.Path(tenon).absolute(), *command], cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                return [f"tenon {command[0]}: {done.stderr.strip()}"]
        shape = np.load(folder / "out.npz")["y"].shape
        return [] if shape == (2, 1, 3) else [f"expected (2, 1, 3), but got {shape}"]


def all_cases():
    if not cases:
        add_found_lengths()
        add_axes()
        add_squeezes()
        add_unknown_ranks()
        add_scalars()
        add_ranges()
    return cases


if __name__ == "__main__":
    all_cases()
    sys.exit(run_cases(__doc__, all_cases, [runs]))
