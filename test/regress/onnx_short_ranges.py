#!/usr/bin/env python3
"""Open sizes of few values: about as many as a vector or a tile has elements, or as many rows as a block.

Usage: onnx_short_ranges.py TENON
needs: pip install apache-tvm-ffi onnx numpy

A loop of at most one turn is none, or one of an extent that is no number: both were refused where registers or tiles have
to be counted. Compiled for machines of all widths, called on this one.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import tvm_ffi
from onnx import TensorProto, helper, numpy_helper

HERE, TARGETS = "llvm", ["llvm -mcpu=sapphirerapids", "llvm -mcpu=core-avx2", "llvm -mcpu=x86-64", "llvm -mcpu=neoverse-n1"]
DEPTH = 32


def model(weight):
    """Attention of x with itself, and a product behind it."""
    node = helper.make_node
    nodes = [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("MatMul", ["x", "t"], ["dots"]),
             node("Softmax", ["dots"], ["weights"]), node("MatMul", ["weights", "x"], ["mixed"]),
             node("MatMul", ["mixed", "w"], ["p"]), node("Relu", ["p"], ["y"]), node("Softmax", ["dots"], ["z"], axis=1)]
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, "n", DEPTH])]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "z")]
    graph = helper.make_graph(nodes, "short", infos, outputs, [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)


def expected(x, weight):
    dots = x @ x.swapaxes(1, 2)
    return np.maximum(softmax(dots, 2) @ x @ weight, 0), softmax(dots, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tenon", type=pathlib.Path)
    tenon, wrong, count = str(parser.parse_args().tenon.resolve()), [], 0
    random = np.random.default_rng(1)
    weight = random.standard_normal((DEPTH, 48)).astype(np.float32) / 8
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        onnx.save(model(weight), folder / "m.onnx")
        for least in (0, 1):
            for most in (1, 4, 8, 16, 17, 32):
                for target in [HERE, *TARGETS]:
                    count += 1
                    library = folder / f"{least}-{most}.so"
                    done = subprocess.run([tenon, "compile", folder / "m.onnx", "-o", library, "-q", "--verify-each", "--target", target,
                                           "--shape", f"x:2xn[{least}..{most}]x{DEPTH}"], capture_output=True, text=True)
                    if done.returncode != 0:
                        wrong.append(f"{target}, {least}..{most}: {done.stderr}")
                        continue
                    if target != HERE:
                        continue
                    call = tvm_ffi.load_module(str(library)).main
                    for n in sorted({least, 1, most - 1, most} - set(range(least))):
                        x = random.standard_normal((2, n, DEPTH)).astype(np.float32) / 2
                        for got, want in zip(call(x), expected(x, weight)):
                            got = np.from_dlpack(got)
                            if got.shape != want.shape or not np.allclose(got, want, rtol=1e-4, atol=1e-5):
                                wrong.append(f"{least}..{most} at {n}: {np.abs(got - want).max(initial=0)} away, or of another shape")
    print("\n".join(wrong) + f"\n{count - len(wrong)} of {count} are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
