#!/usr/bin/env python3
"""Networks compiled with `--precision fp16` and `bf16` against the same in fp32: what is narrowed between kernels must not
change what a kernel reads around it.

Usage: half_precision.py TENON [--target TARGET]… [--device DEVICE]
needs: pip install onnx numpy

Each case is a chain of operators; sizes are small and odd, and borders on every side matter. Errors are norm-wise, and
those of the border, where a kernel that reads what nobody wrote shows, are looked at by themselves. On CPUs the chains whose sizes are
numbers are also compiled as networks in f16, whose answers are as far from the same numbers in f32 as one rounding, or a few, make them.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WITHIN = {"fp16": 2e-3, "bf16": 2e-2}
IN_HALVES = 1.25 * 2.0**-12  # rounding once makes 0.8 of 2^-12; the factors of a last product with few rows are rounded, too
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Network:
    """A chain of operators from x on; weights are drawn."""

    def __init__(self, *shape, said=None):
        """`said`: the shape that the model says, where that has open sizes."""
        self.rng = np.random.default_rng(1)
        self.said = said or shape
        self.shape, self.now, self.nodes, self.weights = shape, "x", [], []

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        values = self.rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def then(self, op, *operands, **attrs):
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [self.now, *operands], [out], **attrs))
        self.now = out
        return self

    def conv(self, maps, channels, kernel, group=1, pad=None, **attrs):
        pad = kernel // 2 if pad is None else pad
        return self.then("Conv", self.weight(maps, channels // group, kernel, kernel), self.weight(maps), group=group,
                         pads=[pad] * 4, **attrs)

    def in_halves(self, dtype):
        """With weights of f16, as numbers of another type."""
        made = Network(*self.shape)
        made.nodes, made.now = self.nodes, self.now
        made.weights = [numpy_helper.from_array(numpy_helper.to_array(w).astype(np.float16).astype(dtype), w.name) for w in self.weights]
        return made

    def save(self, path, kind=TensorProto.FLOAT):
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", kind, self.said)],
                                  [helper.make_tensor_value_info(self.now, kind, None)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


@case
def depthwise_behind_conv():
    return Network(1, 8, 9, 7).conv(32, 8, 1).then("Relu").conv(32, 32, 3, group=32)


@case
def depthwise_with_strides():
    return Network(1, 3, 15, 15).conv(20, 3, 3).then("Relu").conv(20, 20, 5, group=20, strides=[2, 2]).then("Relu").conv(8, 20, 1)


@case
def grouped_behind_conv():
    return Network(1, 6, 8, 8).conv(24, 6, 1).then("Relu").conv(24, 24, 3, group=4)


@case
def windows_behind_windows():
    return Network(2, 5, 10, 11).conv(16, 5, 3).then("Relu").conv(16, 16, 3).then("Relu").conv(33, 16, 3)


@case
def pools_between():
    chain = Network(1, 4, 13, 13).conv(16, 4, 3)
    chain.then("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    chain.conv(16, 16, 3, group=16)
    return chain.then("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]).conv(8, 16, 3)


@case
def depthwise_three_times():
    chain = Network(1, 16, 5, 5)
    for _ in range(3):
        chain.conv(16, 16, 3, group=16).then("Relu").conv(16, 16, 1)
    return chain


@case
def steps_of_many_products():
    chain = Network(3, 192)
    for k, n in ((192, 64), (64, 320), (320, 17)):
        chain.then("Gemm", chain.weight(n, k), chain.weight(n), transB=1)
    return chain


@case
def positions_of_an_open_size():
    """Positions times frequencies, as decoders turn their heads: the range became 16 bits with its views, and did not compile; positions and
    angles in 16 bits are wrong from 2,048 on."""
    chain = Network(3000, 8, said=["n", 8])
    ints = {"zero": np.array(0), "one": np.array(1), "first": np.array([0]), "second": np.array([1]), "empty": np.array([], np.int64)}
    chain.weights += [numpy_helper.from_array(v.astype(np.int64), k) for k, v in ints.items()]
    chain.weights.append(numpy_helper.from_array((10000.0**(-np.arange(8) / 8)).astype(np.float32)[None], "frequencies"))
    node = helper.make_node
    chain.nodes += [node("Shape", ["x"], ["sizes"]), node("Slice", ["sizes", "first", "second"], ["rows"]),
                    node("Reshape", ["rows", "empty"], ["n"]), node("Range", ["zero", "n", "one"], ["range"]),
                    node("Unsqueeze", ["range", "second"], ["column"]), node("Cast", ["column"], ["positions"], to=TensorProto.FLOAT),
                    node("MatMul", ["positions", "frequencies"], ["angles"]), node("Cos", ["angles"], ["cos"]),
                    node("Sin", ["angles"], ["sin"])]
    return chain.then("MatMul", chain.weight(8, 8)).then("Mul", "cos").then("Add", "sin").then("MatMul", chain.weight(8, 24))


@case
def rows_of_a_table_that_multiplies_too():
    """A language model's table of words: its rows are looked up, and its columns are the last product's."""
    chain = Network(5, 7, said=["n", 7])
    table = chain.weight(600, 512)
    chain.weights.append(numpy_helper.from_array(np.float32(100), "hundred"))
    chain.then("Abs").then("Mul", "hundred").then("Cast", to=TensorProto.INT64)
    chain.nodes += [helper.make_node("Gather", [table, chain.now], ["words"]), helper.make_node("Transpose", [table], ["turned"])]
    chain.now = "words"
    chain.then("Add", chain.weight(7, 512)).then("LayerNormalization", chain.weight(512), chain.weight(512))
    return chain.then("MatMul", "turned")


def run(tenon, folder, *args):
    result = subprocess.run([tenon, *args], cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"tenon {' '.join(args)}: {result.stderr.strip()[:300]}")


def results(tenon, folder, precision, target, device):
    run(tenon, folder, "compile", "n.onnx", "-o", "n.so", "-q", "--precision", precision, "--target", target)
    run(tenon, folder, "run", "n.so", "-i", "x.npz", "-o", "y.npz", *(["--device", device] if device else []))
    with np.load(folder / "y.npz") as arrays:
        return arrays[arrays.files[0]].astype(np.float64)


def distance_in_halves(tenon, folder, network):
    """Of the network in f16 from the same one in f32."""
    x = np.random.default_rng(0).standard_normal(network.shape).astype(np.float16)
    answers = []
    for dtype, kind, how in ((np.float32, TensorProto.FLOAT, "exact"), (np.float16, TensorProto.FLOAT16, "fp32")):
        network.in_halves(dtype).save(folder / "n.onnx", kind)
        np.savez(folder / "x.npz", x=x.astype(dtype))
        answers.append(results(tenon, folder, how, "llvm", None))
    return error(answers[1], answers[0])


def border(x):
    """The outermost cells of the last two axes."""
    inner = np.zeros(x.shape, bool)
    if x.ndim == 4:
        inner[..., 1:-1, 1:-1] = True
    return x[~inner]


def error(got, want):
    return np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-30)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tenon", type=pathlib.Path)
    parser.add_argument("--target", action="append", help="default: this machine, and x86-64 where it is one")
    parser.add_argument("--device")
    args = parser.parse_args()
    tenon, wrong = str(args.tenon.resolve()), 0
    for name, make in CASES.items():
        with tempfile.TemporaryDirectory() as name_of_folder:
            folder = pathlib.Path(name_of_folder)
            network = make()
            network.save(folder / "n.onnx")
            np.savez(folder / "x.npz", x=np.random.default_rng(0).standard_normal(network.shape).astype(np.float32))
            want = results(tenon, folder, "exact", "llvm", None)
            for target in args.target or ["llvm"]:
                for precision, within in WITHIN.items():
                    got = results(tenon, folder, precision, target, args.device)
                    errors = error(got, want), error(border(got), border(want))
                    if not max(errors) <= within:  # a NaN is wrong too
                        wrong += 1
                        print(f"{name} {precision} on {target}: {errors[0]:.1e}, at the border {errors[1]:.1e}; allowed {within:.0e}")
            if not args.device and network.said == network.shape:
                far = distance_in_halves(tenon, folder, network)
                if not far <= IN_HALVES:
                    wrong += 1
                    print(f"{name} in f16: {far:.1e}; allowed {IN_HALVES:.1e}")
    print(f"{len(CASES)} networks, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
