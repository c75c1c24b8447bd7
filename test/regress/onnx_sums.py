#!/usr/bin/env python3
"""Sums along rows and down columns, of what is computed of their operands, and products of matrices and vectors, at sizes about
vectors, strips and parts of rows; of known rows and of open ones; beside ONNX Runtime. Small whole numbers have sums without a rounding.

Usage: onnx_sums.py TENON [--levels 0 2] [--match REGEX]      needs: pip install onnx onnxruntime numpy apache-tvm-ffi
"""
import sys

import numpy as np
from calls import Case, run_cases
from onnx import TensorProto, helper

rng = np.random.default_rng(0)
cases = []
ROWS_AND_COLUMNS = [(0, 5), (1, 1), (1, 33), (3, 16), (15, 17), (16, 15), (17, 255), (31, 8), (127, 31), (128, 32), (129, 67), (257, 1), (300, 1025),
                    (131, 8193)]


def value(name, dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def add(name, nodes, inputs, calls, constants=()):
    graph = helper.make_graph(nodes, name, [value(n, dims) for n, dims in inputs], [value("z", None)], list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    cases.append(Case(name, model, [[rng.integers(-4, 5, shape).astype(np.float32) for shape in call] for call in calls], []))


def reduce(kind, axes, operand):
    return [helper.make_node("Constant", [], ["axes"], value_ints=axes), helper.make_node(kind, [operand, "axes"], ["z"], keepdims=0)]


def add_sums():
    product = [helper.make_node("Mul", ["x", "y"], ["p"])]
    for rows, columns in ROWS_AND_COLUMNS:
        for axis in (0, 1):
            size = f"{rows}x{columns}_{axis}"
            add(f"products_{size}", product + reduce("ReduceSum", [axis], "p"), [("x", [rows, columns]), ("y", [rows, columns])], [[(rows, columns)] * 2])
            add(f"plain_{size}", reduce("ReduceSum", [axis], "x"), [("x", [rows, columns])], [[(rows, columns)]])
    absolute = [helper.make_node("Abs", ["x"], ["p"])]
    for shape, axes in (((2, 129, 35), [1]), ((129, 3, 35), [0, 1]), ((1, 1, 256, 40), [2]), ((256, 1, 1, 40), [0]), ((130, 3, 5), [0]), ((4, 130, 7, 9), [1]),
                        ((4, 20, 7, 9), [0, 2, 3]), ((3, 17, 5), [1]), ((1, 257), [0, 1])):
        for kind in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp"):
            add(f"{kind}_{'x'.join(map(str, shape))}_{'_'.join(map(str, axes))}", absolute + reduce(kind, axes, "p"), [("x", shape)], [[shape]])
    for axis in (0, 1):
        add(f"open_rows_{axis}", product + reduce("ReduceSum", [axis], "p"), [("x", ["n", 67]), ("y", ["n", 67])], [[(n, 67)] * 2 for n in (1, 2, 127, 128, 129, 1000)])
        add(f"open_columns_{axis}", product + reduce("ReduceSum", [axis], "p"), [("x", [200, "n"]), ("y", [200, "n"])], [[(200, n)] * 2 for n in (1, 15, 16, 17, 300)])


def add_products():
    sizes = [(1, 1, 1), (1, 0, 5), (1, 17, 33), (1, 129, 15), (1, 256, 257), (16, 33, 1), (33, 257, 1), (129, 16, 1)]
    for m, k, n in sizes:
        for batch in ((), (3,)):
            for transposed in (False, True) if k else (False,):  # ONNX Runtime leaves what a turned matrix of nothing gives as it was
                b = (*batch, n, k) if transposed else (*batch, k, n)
                turn = [helper.make_node("Transpose", ["y"], ["t"], perm=[*range(len(batch)), len(batch) + 1, len(batch)])] if transposed else []
                add(f"product_{len(batch)}_{m}x{k}x{n}{'_t' * transposed}", [*turn, helper.make_node("MatMul", ["x", "t" if transposed else "y"], ["z"])],
                    [("x", (*batch, m, k)), ("y", b)], [[(*batch, m, k), b]])
    add("shared_matrix", [helper.make_node("MatMul", ["x", "y"], ["z"])], [("x", (5, 1, 17)), ("y", (17, 33))], [[(5, 1, 17), (17, 33)]])
    add("turned_left", [helper.make_node("Gemm", ["x", "y", "c"], ["z"], transA=1)], [("x", (33, 20)), ("y", (33, 1)), ("c", (1,))], [[(33, 20), (33, 1), (1,)]])
    column = helper.make_tensor("w", TensorProto.FLOAT, [100, 1], rng.standard_normal(100).astype(np.float32))
    add("constant_column", [helper.make_node("MatMul", ["x", "w"], ["z"])], [("x", ["n", 100])], [[(n, 100)] for n in (1, 2, 16, 33)], [column])
    add("open_column", [helper.make_node("MatMul", ["x", "y"], ["z"])], [("x", ["m", "k"]), ("y", ["k", 1])], [[(m, k), (k, 1)] for m, k in ((1, 1), (5, 17), (33, 300))])


def add_gathered():
    table = helper.make_tensor("t", TensorProto.FLOAT, [37, 35], rng.integers(-4, 5, 37 * 35).astype(np.float32))
    for shape in ((1, 1), (7, 5), (3, 130), (0, 4), (4, 0)):
        rows = rng.integers(-37, 37, shape)
        index = helper.make_tensor("i", TensorProto.INT64, shape, rows.flatten())
        bags = [helper.make_node("Gather", ["t", "i"], ["r"]), helper.make_node("Mul", ["r", "x"], ["p"])]
        for axis in (0, 1, 2):
            add(f"gathered_{shape[0]}x{shape[1]}_{axis}", bags + reduce("ReduceSum", [axis], "p"), [("x", [*shape, 1])], [[(*shape, 1)]], [table, index])


def all_cases():
    add_sums()
    add_gathered()
    add_products()
    return cases


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, all_cases))
