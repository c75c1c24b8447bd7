#!/usr/bin/env python3
"""Single operators of odd shapes beside ONNX Runtime, one thread: where is something many times slower, refused or wrong?

    bench/odd_shapes.py [--build build] [--seed 1] [--each 4] [--kinds conv1d,gemm] [--open] [--worst 15] [--target "llvm -mcpu=core-avx2"]

Models of one operator or a few, of sizes that few tiles divide, are drawn by the seed (operator_shapes.py has their kinds),
compiled without tuning and timed in turn with ONNX Runtime (the least of two medians of each). Printed are what was refused or
differs by more than rounding, those with the largest ratio, Tenon's time over ONNX Runtime's, whose call from Python takes 5 to
10 us of it, and the geometric mean. --open leaves all sizes of floats open that are not 1. --target compiles for less than
this machine has; ONNX Runtime then still uses all of it. Needs onnx and onnxruntime.
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
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from operator_shapes import KINDS, Draw

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 0.05
NEWER = {"Attention": 23, "Swish": 24, "RMSNormalization": 23}


def model_of(drawn, is_open):
    def info(name, value):
        shape = [f"{name}{axis}" if is_open and n > 1 and name != "i" else n for axis, n in enumerate(value.shape)]
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape)
    outputs = [onnx.ValueInfoProto(name=o) for node in drawn.nodes for o in node.output if o in ("y", "z", "u")]
    graph = helper.make_graph(drawn.nodes, "g", [info(*i) for i in drawn.inputs.items()], outputs,
                              [numpy_helper.from_array(w, n) for n, w in drawn.weights.items()])
    opset = max([21, *(NEWER.get(node.op_type, 0) for node in drawn.nodes)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def is_near(got, want):
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if want.dtype.kind in "iub":
        return bool(np.max(np.abs(got.astype(np.float64) - want), initial=0) <= (1 if want.dtype.itemsize == 1 else 0))
    tolerance = 1e-2 if want.dtype.itemsize == 2 else 1e-4
    return np.allclose(got, want, rtol=tolerance, atol=tolerance * max(1, np.max(np.abs(want[np.isfinite(want)]), initial=0)), equal_nan=True)


class Beside:
    """Tenon and ONNX Runtime, one beside the other."""
    def __init__(self, build, target, folder):
        self.tenon, self.target, self.folder = build / "bin" / "tenon", target, folder
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads, self.options.log_severity_level = 1, 4

    def run(self, *args):
        return subprocess.run([self.tenon, *args], capture_output=True, text=True)

    def compare(self, drawn, is_open):
        """(what is wrong, medians of Tenon and of ONNX Runtime in us); no medians where ONNX Runtime takes no such model."""
        path, library, report = self.folder / "m.onnx", self.folder / "m.so", self.folder / "bench.json"
        model = model_of(drawn, is_open)
        onnx.save(model, path)
        try:
            session = onnxruntime.InferenceSession(path, self.options, providers=["CPUExecutionProvider"])
            wanted = session.run(None, drawn.inputs)
        except Exception:  # its own kinds, of which there are many
            return None, None
        done = self.run("compile", path, "-o", library, "-q", "--target", self.target)
        if done.returncode:
            return f"refused: {done.stderr.strip()[:300] or done.returncode}", None
        inputs = []
        for name, value in drawn.inputs.items():
            np.save(self.folder / f"{name}.npy", value)
            inputs += ["--input", f"{name}={self.folder}/{name}.npy"]
        done = self.run("run", library, "-o", self.folder / "out.npz", *inputs)
        if done.returncode:
            return f"fails: {done.stderr.strip()[:300] or done.returncode}", None
        got = np.load(self.folder / "out.npz")
        wrong = [o.name for o, want in zip(model.graph.output, wanted) if not is_near(got[o.name], want)]
        ours, theirs = [], []
        for _ in range(2):
            self.run("bench", library, "--threads", "1", "--duration", str(SECONDS), "--json", report, *inputs)
            ours.append(json.loads(report.read_text())["p50_ms"] * 1000)
            times, end = [], time.perf_counter() + SECONDS
            while time.perf_counter() < end:
                begin = time.perf_counter()
                session.run(None, drawn.inputs)
                times.append(1e6 * (time.perf_counter() - begin))
            theirs.append(statistics.median(times))
        return f"differs in {wrong}" if wrong else None, (min(ours), min(theirs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=4, help="models of each kind")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--worst", type=int, default=15)
    parser.add_argument("--target", default="llvm")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        beside = Beside(args.build, args.target, pathlib.Path(name))
        for kind in args.kinds.split(","):
            for i in range(args.each):
                key = zlib.crc32(f"{kind}{i}{args.seed}".encode())
                drawn = Draw(random.Random(key), np.random.default_rng(key))
                what = KINDS[kind](drawn)
                wrong, times = beside.compare(drawn, args.open)
                if wrong:
                    print(f"{kind} {i}: {what}: {wrong}", flush=True)
                if times:
                    rows.append((times[0] / times[1], *times, f"{kind} {i}: {what}"))
    for ratio, ours, theirs, what in sorted(rows, reverse=True)[:args.worst]:
        print(f"{ratio:6.2f}  Tenon {ours:9.1f} us  ONNX Runtime {theirs:9.1f} us  {what}")
    print(f"geometric mean of {len(rows)}: {math.exp(statistics.mean(math.log(r[0]) for r in rows)):.2f}")


if __name__ == "__main__":
    main()
