#!/usr/bin/env python3
"""Small networks on a device, at sizes where something was wrong once: of nothing, of one row, of many open axes.

Usage: device_cases.py TENON [--target TARGET]… [CASE…]
needs: pip install onnx numpy, and the package tenon

Compiled by TENON, called in this process: a driver that compiles kernels reads its own library once. Without --target: opencl, where there is such a device; else the exit status is 77. What a case expects NumPy says.
"""
import argparse
import faulthandler
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tenon as tn

SKIPPED = 77
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def draw(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def model(inputs, nodes, outputs, constants=None, opset=21):
    """`inputs`: arrays by name, or (array, the shape that the model says)."""
    def info(name, value):
        array, shape = value if isinstance(value, tuple) else (value, value.shape)
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)

    graph = helper.make_graph(nodes, "g", [info(*item) for item in inputs.items()],
                              [helper.make_tensor_value_info(name, of, None) for name, of in outputs.items()],
                              [numpy_helper.from_array(np.array(v), k) for k, v in (constants or {}).items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return onnx.shape_inference.infer_shapes(made), {k: v[0] if isinstance(v, tuple) else v for k, v in inputs.items()}


REDUCTIONS = {"ReduceSum": np.sum, "ReduceProd": np.prod, "ReduceL1": lambda x, axis: np.abs(x).sum(axis),
              "ReduceL2": lambda x, axis: np.sqrt((x * x).sum(axis)), "ReduceSumSquare": lambda x, axis: (x * x).sum(axis)}


def reductions(x, axis, shape):
    nodes = [helper.make_node(op, ["x", "axis"], [f"y{i}"], keepdims=0) for i, op in enumerate(REDUCTIONS)]
    made = model({"x": (x, shape)}, nodes, {f"y{i}": TensorProto.FLOAT for i in range(len(nodes))}, {"axis": [axis]})
    return *made, {f"y{i}": f(x, axis=axis) for i, f in enumerate(REDUCTIONS.values())}


@case
def reductions_of_nothing():
    """Sums of no elements: no thread has any, and the result is what a sum begins with."""
    for rows in (1, 3, 65):
        yield reductions(draw(rows, 0), 1, [rows, 0])
        yield reductions(draw(0, rows), 0, ["n", rows])
        yield reductions(draw(rows, 0), 1, [rows, "n"])


@case
def reductions_without_results():
    yield reductions(draw(0, 7), 1, [0, 7])
    yield reductions(draw(0, 7), 1, ["n", 7])
    yield reductions(draw(5, 0, 7), 0, [5, "n", 7])


@case
def reductions_to_one_element():
    """The sum in between was in global memory that a kernel of one block had for itself."""
    for count in (1, 5, 31, 32, 33, 129):
        yield reductions(draw(1, count), 1, [1, count])
        yield reductions(draw(1, count), 1, [1, "n"])


@case
def products_along_nothing():
    x, w = draw(3, 0), draw(0, 4)
    yield *model({"x": x, "w": w}, [helper.make_node("MatMul", ["x", "w"], ["y"])], {"y": TensorProto.FLOAT}), {"y": x @ w}
    yield *model({"x": (x, [3, "n"]), "w": (w, ["n", 4])}, [helper.make_node("MatMul", ["x", "w"], ["y"])],
                 {"y": TensorProto.FLOAT}), {"y": x @ w}


@case
def rows_of_nothing():
    for shape in ([0, 5], ["n", 5]):
        x = draw(0, 5)
        nodes = [helper.make_node("Softmax", ["x"], ["y"]), helper.make_node("Exp", ["x"], ["z"])]
        yield *model({"x": (x, shape)}, nodes, {"y": TensorProto.FLOAT, "z": TensorProto.FLOAT}), {"y": x, "z": x}


@case
def many_open_axes():
    """Loops over open sizes that run as one: it was not known that their iterations are apart."""
    x = draw(2, 1, 3, 2, 5, 2)
    order = [5, 3, 1, 0, 4, 2]
    yield *model({"x": (x, list("abcdef"))}, [helper.make_node("Transpose", ["x"], ["t"], perm=order),
                                             helper.make_node("CumSum", ["t", "axis"], ["y"])], {"y": TensorProto.FLOAT},
                 {"axis": np.array(3)}), {"y": np.cumsum(x.transpose(order), 3)}


@case
def one_line_in_order():
    """Sums along the only long axis: one thread has the state to itself; what it finds is a size."""
    for shape, axis in (((9,), 0), ((1, 300), 1), ((300, 1), 0), ((1, 1, 7), 2)):
        x = draw(*shape)
        yield *model({"x": x}, [helper.make_node("CumSum", ["x", "axis"], ["y"])], {"y": TensorProto.FLOAT},
                     {"axis": np.array(axis)}), {"y": np.cumsum(x, axis)}
    x = (draw(5, 7) > 0).astype(np.float32)
    yield *model({"x": x}, [helper.make_node("NonZero", ["x"], ["y"])], {"y": TensorProto.INT64}), {"y": np.stack(np.nonzero(x))}


@case
def two_loops_of_matrices():
    """Both are kernels of one file and have loops over two axes, each with a name of its own."""
    def loop(op, of, out, by):
        body = helper.make_graph([helper.make_node(op, ["s", by], ["r"]), helper.make_node("Identity", ["go"], ["on"])], "body", [
            helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, [8, 3])
        ], [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("r", TensorProto.FLOAT, [8, 3])])
        return helper.make_node("Loop", ["count", "", of], [out], body=body)

    x, w, b = draw(8, 3), draw(8, 3) + 1, draw(8, 3)
    made = model({"x": x}, [loop("Mul", "x", "p", "w"), loop("Add", "p", "y", "b")], {"y": TensorProto.FLOAT},
                 {"count": np.array(3), "w": w, "b": b})
    yield *made, {"y": x * w**3 + 3 * b}


@case
def networks_without_inputs():
    """Nothing says which device the call is on: the first one."""
    x = draw(5, 3)
    yield *model({}, [helper.make_node("ConstantOfShape", ["shape"], ["y"], value=numpy_helper.from_array(np.array([2.5], np.float32)))],
                 {"y": TensorProto.FLOAT}, {"shape": np.array([4, 3])}), {"y": np.full((4, 3), 2.5, np.float32)}
    yield *model({}, [helper.make_node("Exp", ["x"], ["y"])], {"y": TensorProto.FLOAT}, {"x": x}), {"y": np.exp(x)}


@case
def sequences_between_kernels():
    """Parts run on the device, what happens between them on the host."""
    x, w = draw(6, 4), draw(4, 5)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("SplitToSequence", ["p", "sizes"], ["s"], axis=0),
             helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0), helper.make_node("Cast", ["most"], ["n"], to=TensorProto.INT64),
             helper.make_node("Mod", ["n", "three"], ["at"]), helper.make_node("SequenceAt", ["s", "at"], ["a"]),
             helper.make_node("SequenceErase", ["s", "at"], ["rest"]), helper.make_node("ConcatFromSequence", ["rest"], ["c"], axis=0),
             helper.make_node("Relu", ["a"], ["y"]), helper.make_node("Tanh", ["c"], ["z"])]
    sizes = [1, 2, 3]
    at = int(x.max()) % 3
    parts = np.split(x @ w, np.cumsum(sizes)[:-1])
    yield *model({"x": x}, nodes, {"y": TensorProto.FLOAT, "z": TensorProto.FLOAT},
                 {"w": w, "sizes": np.array(sizes), "three": np.array(3)}), {
                     "y": np.maximum(parts[at], 0), "z": np.tanh(np.concatenate([p for i, p in enumerate(parts) if i != at]))}


@case
def loops_that_grow_sequences():
    """A loop carries a sequence; its length, and what decides about going on, are found by the way."""
    def info(name, of, shape):
        return helper.make_tensor_value_info(name, of, shape)

    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Mul", ["v", "two"], ["next"]),
         helper.make_node("SequenceInsert", ["s", "next"], ["more"])], "body",
        [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("v", TensorProto.FLOAT, [3]),
         helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [3])],
        [info("on", TensorProto.BOOL, []), info("next", TensorProto.FLOAT, [3]),
         helper.make_tensor_sequence_value_info("more", TensorProto.FLOAT, [3])])
    x = draw(3)
    nodes = [helper.make_node("SequenceEmpty", [], ["none"], dtype=TensorProto.FLOAT),
             helper.make_node("Loop", ["count", "", "x", "none"], ["last", "all"], body=body),
             helper.make_node("ConcatFromSequence", ["all"], ["y"], axis=0, new_axis=1)]
    yield *model({"x": x}, nodes, {"y": TensorProto.FLOAT, "last": TensorProto.FLOAT},
                 {"count": np.array(4), "two": np.array(2, np.float32)}), {
                     "y": np.stack([x * 2**i for i in range(1, 5)]), "last": x * 16}


@case
def few_rows():
    """Products whose matrix is read once, by threads that meet: rows, columns and k that are no whole tiles, many columns too."""
    for rows, k, n in ((1, 520, 37), (3, 64, 5), (8, 99, 33), (1, 2, 2), (2, 16, 20011)):
        x, w = draw(rows, k), draw(k, n)
        yield *model({"x": x}, [helper.make_node("MatMul", ["x", "w"], ["y"])], {"y": TensorProto.FLOAT}, {"w": w}), {"y": x @ w}


@case
def reduced_results():
    """What is reduced is a result of the network, too: one kernel stores it and reduces it, along each axis, from rows of one element on."""
    for shape, axis in (((1, 1), 1), ((6, 7), 1), ((65, 8), 1), ((9, 5), 0), ((2, 31, 3), 1), ((1, 200, 16), 2), ((3, 33), 1), ((129,), 0),
                        ((2, 5, 130), 2), ((2, 1500), 1), ((20000, 4), 1)):
        x, state = draw(*shape), draw(*shape)[..., ::-1].copy()
        nodes = [helper.make_node("Mul", ["x", "state"], ["new"]),
                 helper.make_node("Add", ["new", "x"], ["read"])]
        nodes += [helper.make_node(op, ["read", "axis"], [f"y{i}"], keepdims=i % 2)
                  for i, op in enumerate(("ReduceSum", "ReduceMax", "ReduceLogSumExp"))]
        new = x * state
        read = new + x
        for i, want in enumerate((read.sum(axis), read.max(axis, keepdims=True), np.log(np.exp(read).sum(axis)))):
            made = model({"x": x, "state": state}, [*nodes[:2], nodes[2 + i]], {"new": TensorProto.FLOAT, f"y{i}": TensorProto.FLOAT},
                         {"axis": [axis]})
            yield *made, {"new": new, f"y{i}": want}


@case
def small_sums():
    """A norm's sums in each block of the product that reads it; and a product's element in each row of what is reduced and given out."""
    for m, k, n in ((1, 2, 1), (1, 64, 33), (2, 31, 64), (3, 257, 16), (8, 128, 40), (1, 1000, 100)):
        x, w, scale, bias = draw(m, k), draw(k + 1, n)[1:], draw(k + 2)[2:], draw(k + 3)[3:]
        squares = [helper.make_node("Mul", ["x", "x"], ["xx"]), helper.make_node("ReduceMean", ["xx", "axis"], ["ss"]),
                   helper.make_node("Sqrt", ["ss"], ["s"]), helper.make_node("Div", ["x", "s"], ["normed"])]
        layer = [helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["normed"])]
        centred = x - x.mean(1, keepdims=True)
        normed = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * scale + bias
        for nodes, rows in ((squares, x / np.sqrt((x * x).mean(1, keepdims=True))), (layer, normed)):
            multiply = helper.make_node("MatMul", ["normed", "w"], ["product"])
            add = helper.make_node("Add", ["product", "x0"], ["y"])
            x0 = draw(m, n)
            made = model({"x": x, "x0": x0}, [*nodes, multiply, add], {"y": TensorProto.FLOAT},
                         {"w": w, "axis": [1], **({"scale": scale, "bias": bias} if nodes is layer else {})})
            yield *made, {"y": rows @ w + x0}
    for rows, states, inside in ((1, 2, 3), (33, 16, 48), (65, 8, 7), (7, 40, 33), (300, 16, 5)):
        t, w, state, out = draw(1, inside), draw(inside, rows), draw(1, rows, states), draw(1, 1, states + 1)[..., 1:]
        nodes = [helper.make_node("MatMul", ["t", "w"], ["d"]), helper.make_node("Softplus", ["d"], ["p"]),
                 helper.make_node("Unsqueeze", ["p", "last"], ["step"]), helper.make_node("Mul", ["step", "state"], ["new"]),
                 helper.make_node("Mul", ["new", "out"], ["read"]), helper.make_node("ReduceSum", ["read", "last"], ["y"], keepdims=0)]
        new = np.log1p(np.exp(t @ w))[..., None] * state
        yield *model({"t": t, "state": state, "out": out}, nodes, {"new": TensorProto.FLOAT, "y": TensorProto.FLOAT},
                     {"w": w, "last": [2]}), {"new": new, "y": (new * out).sum(2)}


def ordered(x, axis, most, largest):
    """Places of a row's first elements: NaN counts as the largest, -0 as 0, and what is equal stands as it stood."""
    known = np.unique(np.where(np.isnan(x), 0, x) if x.dtype.kind == "f" else x)
    rank = np.searchsorted(known, x)
    if x.dtype.kind == "f":
        rank = np.where(np.isnan(x), len(known), rank)
    return np.take(np.argsort(-rank if largest else rank, axis=axis, kind="stable"), np.arange(most), axis=axis)


def first(x, axis, most, largest, shape=None):
    at = ordered(x, axis, most, largest)
    nodes = [helper.make_node("TopK", ["x", "k"], ["y", "at"], axis=axis, largest=largest)]
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    return *model({"x": (x, shape or x.shape)}, nodes, {"y": kind, "at": TensorProto.INT64}, {"k": [most]}), {
        "y": np.take_along_axis(x, at, axis), "at": at}


def numbers(kind, *shape):
    """Many that are equal, both zeros, and what there is beyond all numbers."""
    draw = np.random.default_rng(2)
    if kind[0] != "f":
        x, limits = draw.integers(0, 50, shape).astype(kind), np.iinfo(kind)
        x.flat[::7], x.flat[3::7] = limits.max, limits.min
        return x
    x = np.round(draw.standard_normal(shape) * 20).astype(kind)
    x.flat[::5] *= -0.0
    x.flat[7::11], x.flat[3::17], x.flat[5::19], x.flat[9::29] = np.nan, np.inf, -np.inf, -np.nan
    return x


@case
def first_of_many():
    """Tiles and merged runs, at sizes around them; those that many threads compare all pairs of as well."""
    for size in (1, 2, 65, 2503, 4095, 4096, 4097, 10007):
        yield first(numbers("f4", size), 0, size, size % 2)
        yield first(numbers("f4", size), 0, min(size, 7), 1)
    for kind in ("f2", "f8", "i8", "i4", "i1", "u1", "i2", "u2", "u4", "u8"):
        yield first(numbers(kind, 3, 4100), 1, 4100, 1)
        yield first(numbers(kind, 4100, 3), 0, 40, 0)
    yield first(numbers("f4", 2, 3, 4100, 2), 2, 4100, 1)
    yield first(numbers("f4", 3, 1500), 1, 20, 1, ["n", "m"])
    yield first(numbers("f4", 0, 5000), 1, 20, 1, ["n", 5000])


@case
def updates_of_many():
    draw = np.random.default_rng(3)
    combine = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum, "none": lambda _, u: u}
    for reduction, apply in combine.items():
        for size, steps, width in ((5000, 4097, 1), (3, 20011, 1), (4099, 4096, 5)):
            if reduction == "none" and steps > size:  # the operator says nothing of one place twice
                continue
            x, updates = np.round(draw.standard_normal((2, max(size, steps), width)) * 4).astype(np.float32)
            x, updates = x[:size], np.sign(updates[:steps]) if reduction == "mul" else updates[:steps]
            at = draw.permutation(size)[:steps] if reduction == "none" else draw.integers(0, size, steps)
            want = x.copy()
            for j, i in enumerate(at):
                want[i] = apply(want[i], updates[j])
            node = helper.make_node("ScatterND", ["x", "at", "u"], ["y"], reduction=reduction)
            yield *model({"x": x, "at": at.reshape(-1, 1), "u": updates}, [node], {"y": TensorProto.FLOAT}), {"y": want}


def compiled(compiler, target, made, folder):
    """The library's path."""
    onnx.save(made, folder / "n.onnx")
    result = subprocess.run([compiler, "compile", "n.onnx", "-o", "n.so", "-q", "--empty-sizes", "--target", target],
                            cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"tenon compile: {result.stderr.strip()[:300]}")
    return folder / "n.so"


def check(compiler, target, place, made, inputs, want):
    with tempfile.TemporaryDirectory() as folder:
        main = tn.runtime.load_module(str(compiled(compiler, target, made, pathlib.Path(folder))))["main"]
        returned = main(*(tn.nd.array(x, place) for x in inputs.values()))
        outputs = [output.name for output in made.graph.output]
        got = dict(zip(outputs, [returned] if len(outputs) == 1 else returned, strict=True))
        for key, expected in want.items():
            value = got[key].numpy()
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5, err_msg=key)
            assert value.shape == expected.shape, f"{key}: {value.shape} instead of {expected.shape}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tenon", type=pathlib.Path)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--target", action="append")
    args = parser.parse_args()
    faulthandler.enable()
    compiler, wrong, count = str(args.tenon.resolve()), 0, 0
    for target in args.target or ["opencl"]:
        place = tn.device(target.split()[0])
        if not place.exist:
            print(f"there is no {place}")
            return SKIPPED
        for name, make in CASES.items():
            if args.cases and name not in args.cases:
                continue
            for number, (made, inputs, want) in enumerate(make()):
                count += 1
                try:
                    check(compiler, target, place, made, inputs, want)
                except (*tn.TVMError, AssertionError) as error:
                    wrong += 1
                    print(f"{name} {number} for {target}: {' '.join(str(error).split())[:300]}", flush=True)
    print(f"{count - wrong} of {count} are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
