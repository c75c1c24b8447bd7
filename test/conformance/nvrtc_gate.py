#!/usr/bin/env python3
"""What NVIDIA's compiler says of the kernels that networks become: for each architecture and precision no register may spill,
and nothing may be warned of (products that wait for each other, among others), but where KNOWN says why.

Usage: nvrtc_gate.py TENON [--arch sm_90a]…
needs: NVRTC (TENON_NVRTC, or where docs/targets.md says), no GPU; numpy, onnx. Without NVRTC the exit status is 77.

Each network has the operators that a family of rules is for, at sizes that rules for large and for small ones take.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SKIPPED = 77
ARCHS = ("sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_103", "sm_110", "sm_120", "sm_121")
PRECISIONS = ("fp32", "fp16", "bf16")
KNOWN = {}  # (network, precision, architecture): why its kernels may spill


class Chain:

    def __init__(self, *shape):
        self.rng, self.shape, self.now, self.nodes, self.weights = np.random.default_rng(1), shape, "x", [], []

    def weight(self, *shape):
        self.weights.append(numpy_helper.from_array(self.rng.standard_normal(shape).astype(np.float32), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def then(self, op, *operands, **attrs):
        self.nodes.append(helper.make_node(op, [self.now, *operands], [f"v{len(self.nodes)}"], **attrs))
        self.now = self.nodes[-1].output[0]
        return self

    def save(self, path):
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
                                  [helper.make_tensor_value_info(self.now, TensorProto.FLOAT, None)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def products():
    chain = Chain(512, 768)
    for k, n in ((768, 3072), (3072, 768), (768, 17)):
        chain.then("Gemm", chain.weight(k, n), chain.weight(n)).then("Gelu")
    return chain


def windows():
    chain = Chain(1, 3, 56, 56)
    chain.then("Conv", chain.weight(64, 3, 7, 7), pads=[3] * 4, strides=[2, 2]).then("Relu")
    chain.then("Conv", chain.weight(128, 64, 3, 3), pads=[1] * 4).then("Relu")
    chain.then("Conv", chain.weight(128, 1, 3, 3), pads=[1] * 4, group=128).then("Relu")
    return chain.then("Conv", chain.weight(64, 128, 1, 1)).then("MaxPool", kernel_shape=[3, 3]).then("GlobalAveragePool")


def rows():
    chain = Chain(64, 2048)
    chain.then("LayerNormalization", chain.weight(2048), chain.weight(2048), axis=-1).then("Softmax", axis=-1)
    return chain.then("ReduceMean", keepdims=1)


def few_rows():
    chain = Chain(1, 2048)
    chain.then("LayerNormalization", chain.weight(2048), chain.weight(2048), axis=-1)
    for k, n in ((2048, 4096), (4096, 1000)):
        chain.then("Gemm", chain.weight(k, n), chain.weight(n)).then("Relu")
    return chain


def attention():
    chain = Chain(1, 12, 128, 64)
    query = chain.now
    chain.then("Transpose", perm=[0, 1, 3, 2])
    chain.nodes.append(helper.make_node("MatMul", [query, chain.now], ["scores"]))
    chain.now = "scores"
    chain.then("Mul", chain.weight(1)).then("Softmax", axis=-1)
    return chain.then("MatMul", query)


def scan():
    """A state of 64 x 16 through 32 steps, each of which has a row of decays."""
    info = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)  # noqa: E731
    body = helper.make_graph([
        helper.make_node("Mul", ["state", "decay"], ["kept"]),
        helper.make_node("Add", ["kept", "row"], ["next"]),
        helper.make_node("ReduceSum", ["next"], ["y"], keepdims=1)
    ], "body", [info("state", 64, 16), info("decay", 64, 16), info("row", 64, 1)], [info("next", 64, 16), info("y", 1, 1)])
    chain = Chain(32, 64, 1)
    delta, state = chain.now, chain.weight(64, 16)
    chain.then("Mul", chain.weight(64, 16)).then("Exp")
    chain.nodes.append(helper.make_node("Scan", [state, chain.now, delta], ["last", "all"], num_scan_inputs=2, body=body))
    chain.now = "last"
    return chain


NETWORKS = {"products": products, "few_rows": few_rows, "windows": windows, "rows": rows, "attention": attention, "scan": scan}


def said_of(tenon, folder, name, target, precision):
    """What the compiler says of kernels, a line each; None where there is no NVRTC for that."""
    result = subprocess.run([tenon, "compile", f"{name}.onnx", "-o", "n.so", "-v", "--target", target, "--precision", precision],
                            cwd=folder, capture_output=True, text=True,
                            env=dict(os.environ, TENON_CACHE_DIR=str(folder / "cache")))
    if result.returncode != 0:
        if "NVRTC" in result.stderr:
            return None
        raise RuntimeError(f"{name} for {target}: {result.stderr.strip()[:300]}")
    return [line for line in result.stdout.splitlines() if "spill" in line or "arning" in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tenon", type=pathlib.Path)
    parser.add_argument("--arch", action="append")
    args = parser.parse_args()
    tenon, wrong, count = str(args.tenon.resolve()), 0, 0
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = pathlib.Path(name_of_folder)
        for name, make in NETWORKS.items():
            make().save(folder / f"{name}.onnx")
        for arch in args.arch or ARCHS:
            for name in NETWORKS:
                for precision in PRECISIONS:
                    said = said_of(tenon, folder, name, f"cuda -arch={arch}", precision)
                    if said is None:
                        print(f"there is no NVRTC that makes {arch}")
                        break
                    count += 1
                    if said and (name, precision, arch) not in KNOWN:
                        wrong += 1
                        print(f"{name} in {precision} for {arch}:", *said, sep="\n  ", flush=True)
    print(f"{count - wrong} of {count} compile without spills and warnings")
    return 1 if wrong else 0 if count else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
