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
from onnx import TensorProto, helper

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


def add(name, nodes, inputs, calls, errors=(), wanted=None, output=(TensorProto.FLOAT, 2)):
    """`calls`: lists of arrays; `errors`: (such a list, what the error says); `wanted`: what NumPy computes, or None where it
    raises; without it ONNX Runtime's answer counts, and sizes of results depend on values."""
    cases.append(Case(name, model_of(nodes, inputs, {"y": output}), calls, errors, wanted, ["--empty-sizes"], passed_in=wanted is not None))


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
    lead = [(1,), (3,), (8,)]
    add("matmul", [node("MatMul", ["a", "b"], ["y"])], {"a": 3, "b": 3},
        [[f32(*p, m, k), f32(*q, k, n)] for p, q, (m, k, n) in itertools.product(lead, lead, [(1, 1, 1), (7, 5, 1), (1, 16, 17), (9, 8, 33)])],
        wanted=lambda a, b: a @ b, output=(TensorProto.FLOAT, 3))
    add("bias", [node("Gemm", ["a", "b", "c"], ["y"])], {"a": 2, "b": 2, "c": 2},
        [[f32(7, 5), f32(5, 33), f32(*c)] for c in [(1, 1), (7, 1), (1, 33), (7, 33)]], wanted=lambda a, b, c: a @ b + c)
    add("expand", [node("Shape", ["b"], ["s"]), node("Expand", ["a", "s"], ["y"])], {"a": 2, "b": 2},
        [[f32(*s), f32(*t)] for s, t in itertools.product(SHAPES, repeat=2)], wanted=lambda a, b: a + np.zeros_like(b))
    add("scaled_rows", [node("LayerNormalization", ["a", "b"], ["y"])], {"a": 2, "b": 1},
        [[f32(7, 33), f32(33)], [f32(7, 33), f32(1)], [f32(1, 16), f32(16)]],
        wanted=lambda a, b: (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5) * b)


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
    add("pad", [node("Pad", ["x", "pads"], ["y"])], {"x": 2, "pads": (INT64, 1)}, [[f32(7, 5), i64(1, 0, 2, 3)]],
        errors=[([f32(7, 5), i64(1, 0)], "pads")])
    add("split", [node("Split", ["x"], ["y", "z"], num_outputs=2)], {"x": 2}, [[f32(7, 5)], [f32(2, 5)], [f32(8, 1)]])
    add("boxes", [node("NonMaxSuppression", ["boxes", "scores", "most"], ["y"])], {"boxes": 3, "scores": 3, "most": (INT64, 1)},
        [[np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]]], np.float32), f32(1, 1, 3), i64(2)]],
        errors=[([f32(1, 3, 5), f32(1, 1, 3), i64(2)], "5")], output=(INT64, 2))


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


def all_cases():
    add_broadcasts()
    add_lists()
    return cases


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, all_cases, [stale_shapes]))
