#!/usr/bin/env python3
"""Single operators of odd shapes beside ONNX Runtime, one thread: where is something many times slower?

    bench/odd_shapes.py [--build build] [--seed 1] [--count 100] [--worst 15] [--target "llvm -mcpu=core-avx2"]

Products, batched and with one matrix, convolutions of all kinds, transposed ones, pools, softmax and layer norm, of sizes that
few tiles divide, are drawn by the seed, compiled without tuning and timed in turn with ONNX Runtime (the least of two medians
of each). Printed are those with the largest ratio, Tenon's time over ONNX Runtime's, and the geometric mean. --target compiles for
less than this machine has; ONNX Runtime then still uses all of it. Needs onnx and onnxruntime.
"""
import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIDES = (1, 2, 3, 5, 7, 10, 13, 17, 21, 31, 33, 50, 63, 65, 85, 100, 127, 197, 257, 300)
CHANNELS = (1, 3, 7, 8, 12, 16, 20, 24, 30, 32, 40, 48, 64, 72, 96, 100)
IMAGES = (5, 7, 9, 13, 14, 19, 20, 28, 33, 40, 56)
KINDS = ("product", "product", "gemm", "batched", "batched", "conv", "conv", "depthwise", "grouped", "transposed", "pool", "softmax", "norm")


def draw(pick, numbers):
    """(what, nodes, shapes of inputs, weights)"""
    node, side, channels, image = helper.make_node, lambda: pick.choice(SIDES), lambda: pick.choice(CHANNELS), lambda: pick.choice(IMAGES)
    weight = lambda *shape: (numbers.standard_normal(shape) / 10).astype(np.float32)
    kind = pick.choice(KINDS)
    if kind in ("product", "gemm"):
        m, n, k = side(), side(), side()
        what = f"{kind} {m} x {n} x {k}"
        if kind == "product":
            return what, [node("MatMul", ["x", "w"], ["y"])], {"x": [m, k]}, {"w": weight(k, n)}
        return what, [node("Gemm", ["x", "w", "b"], ["t"], transB=1), node("Relu", ["t"], ["y"])], {"x": [m, k]}, {"w": weight(n, k), "b": weight(n)}
    if kind == "batched":
        b, m, n, k, transposed = pick.choice((1, 4, 8, 12)), side(), side(), pick.choice((8, 20, 32, 40, 64, 80)), pick.random() < 0.5
        turn = [node("Transpose", ["w"], ["u"], perm=[0, 2, 1])] if transposed else []
        return (f"{b} products {m} x {n} x {k}{', transposed' if transposed else ''}", [*turn, node("MatMul", ["x", "u" if transposed else "w"], ["y"])],
                {"x": [b, m, k], "w": [b, n, k] if transposed else [b, k, n]}, {})
    if kind in ("conv", "depthwise", "grouped", "transposed"):
        depth, maps, k, stride, group = channels(), channels(), pick.choice((1, 3, 3, 5)), pick.choice((1, 1, 2)), 1
        if kind == "depthwise":
            maps = group = depth
        if kind == "grouped":
            group = pick.choice((2, 4))
            depth, maps = depth * group, maps * group
        size = [image(), image()]
        w = weight(depth, maps, k, k) if kind == "transposed" else weight(maps, depth // group, k, k)
        name = "ConvTranspose" if kind == "transposed" else "Conv"
        conv = node(name, ["x", "w", "b"], ["t"], pads=[k // 2] * 4, strides=[stride] * 2, group=group)
        return (f"{kind} {depth} to {maps}, {k} x {k}, stride {stride}, on {size[0]} x {size[1]}, {group} groups", [conv, node("Relu", ["t"], ["y"])],
                {"x": [1, depth, *size]}, {"w": w, "b": weight(maps)})
    if kind == "pool":
        depth, size, name = channels(), image(), pick.choice(("MaxPool", "AveragePool"))
        return f"{name} of {depth} on {size}", [node(name, ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)], {"x": [1, depth, size, size]}, {}
    rows, length = pick.choice((1, 8, 100, 1000)), side()
    if kind == "softmax":
        return f"softmax {rows} x {length}", [node("Softmax", ["x"], ["y"], axis=-1)], {"x": [rows, length]}, {}
    return (f"layer norm {rows} x {length}", [node("LayerNormalization", ["x", "s", "b"], ["y"], axis=-1)], {"x": [rows, length]},
            {"s": weight(length), "b": weight(length)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--worst", type=int, default=15)
    parser.add_argument("--target", default="llvm")
    args = parser.parse_args()
    tenon, pick, numbers, rows = args.build / "bin" / "tenon", random.Random(args.seed), np.random.default_rng(args.seed), []
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model, library, report = folder / "m.onnx", folder / "m.so", folder / "bench.json"
        for _ in range(args.count):
            what, nodes, shapes, weights = draw(pick, numbers)
            infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
            graph = helper.make_graph(nodes, "g", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                                      [numpy_helper.from_array(w, n) for n, w in weights.items()])
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
            subprocess.run([tenon, "compile", model, "-o", library, "-q", "--target", args.target], check=True)
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            inputs = {n: numbers.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
            ours, theirs = [], []
            for _ in range(2):
                subprocess.run([tenon, "bench", library, "--threads", "1", "--duration", "0.06", "--json", report], check=True, capture_output=True)
                ours.append(json.loads(report.read_text())["p50_ms"] * 1000)
                times, end = [], time.perf_counter() + 0.06
                while time.perf_counter() < end:
                    begin = time.perf_counter()
                    session.run(None, inputs)
                    times.append(1e6 * (time.perf_counter() - begin))
                theirs.append(statistics.median(times))
            rows.append((min(ours) / min(theirs), min(ours), min(theirs), what))
    for ratio, ours, theirs, what in sorted(rows, reverse=True)[:args.worst]:
        print(f"{ratio:6.2f}  Tenon {ours:9.1f} µs  ONNX Runtime {theirs:9.1f} µs  {what}")
    print(f"geometric mean of {len(rows)}: {math.exp(statistics.mean(math.log(r[0]) for r in rows)):.2f}")


if __name__ == "__main__":
    main()
