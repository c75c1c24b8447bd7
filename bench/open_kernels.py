#!/usr/bin/env python3
"""Kernels of an open size, tuned, against the same kernels tuned for each size.

    bench/open_kernels.py --folder DIR [--only WORD] [--trials 64] [--sizes 1 17 64 128] [--build build]

Each kernel is a small ONNX model with a size n between 1 and 128. One library has n open, and is tuned at the --sizes that --shape-weights
names, with --trials candidates for each of them; for each size there is a library of its own, tuned with --trials. Open and fixed
run in turns (peers.py) on one thread. Printed are microseconds of the fixed one and open / fixed: at most 1.1 is what is asked for.
What they compute is compared, too. Logs stay in --folder: killed, it goes on. Needs numpy, onnx and apache-tvm-ffi; a quiet machine.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

os.environ.update(TENON_NUM_THREADS="1")

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import peers
from tuning_peers import check, tenon_runner

HERE = pathlib.Path(__file__).resolve().parent


def model(nodes, x, weights, y):
    """`x`, `y`: dims, of which "n" is open."""
    rng = np.random.default_rng(0)
    constants = [numpy_helper.from_array(rng.standard_normal(dims).astype(np.float32), name) for name, dims in weights.items()]
    value = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    graph = helper.make_graph(nodes, "kernel", [value("x", x)], [value("y", y)], constants)
    out = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    onnx.checker.check_model(out)
    return out


# By name: a model, and its input's shape.
KERNELS = {
    "product nx768x768": (lambda: model([helper.make_node("MatMul", ["x", "w"], ["y"])], ["n", 768], {"w": (768, 768)}, ["n", 768]), ("n", 768)),
    "product nx3072x768": (lambda: model([helper.make_node("MatMul", ["x", "w"], ["y"])], ["n", 3072], {"w": (3072, 768)}, ["n", 768]), ("n", 3072)),
    "convolution 3x3 of 32 on nx28": (
        lambda: model([helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])], [1, 32, "n", 28], {"w": (32, 32, 3, 3)}, [1, 32, "n", 28]),
        (1, 32, "n", 28),
    ),
    "softmax of n rows of 768": (lambda: model([helper.make_node("Softmax", ["x"], ["y"])], ["n", 768], {}, ["n", 768]), ("n", 768)),
    "softmax of 64 rows of n": (lambda: model([helper.make_node("Softmax", ["x"], ["y"])], [64, "n"], {}, [64, "n"]), (64, "n")),
    "layer norm of n rows of 768": (
        lambda: model([helper.make_node("LayerNormalization", ["x", "w", "b"], ["y"])], ["n", 768], {"w": (768,), "b": (768,)}, ["n", 768]),
        ("n", 768),
    ),
}  # fmt: skip


def tenon(args, *words):
    done = subprocess.run([str(w) for w in (args.build / "bin" / "tenon", *words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def library(args, path, stem, shape, weights, trials):
    """Tuned and compiled."""
    log, out, done = (args.folder / f"{stem}.{kind}" for kind in ("log", "so", "tuned"))
    how = ["--target", "llvm -num-cores=1", "--shape", f"x:{shape}", *(f"--shape-weights=n={n}" for n in weights)]
    if not done.exists():
        tenon(args, "tune", path, "--log", log, "--trials", trials, "--candidate-time", args.seconds, "-q", *how)
        done.write_text(str(trials))
    tenon(args, "compile", path, "-o", out, "--log", log, *how)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=0.3, help="for timing one candidate, at most")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 17, 64, 128])
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    print(f"{'kernel':<32} {'n':>5} {'fixed µs':>10} {'open/fixed':>10}")
    for name, (make, shape) in KERNELS.items():
        if args.only not in name:
            continue
        stem = name.replace(" ", "-")
        path = args.folder / f"{stem}.onnx"
        onnx.save(make(), path)
        text = lambda n: "x".join(str(n) if d == "n" else str(d) for d in shape)
        opened = library(args, path, f"{stem}.open", text("n[1..128]"), args.sizes, args.trials * len(args.sizes))
        for n in args.sizes:
            fixed = library(args, path, f"{stem}.{n}", text(n), [], args.trials)
            rng = np.random.default_rng(n)
            feeds = {"x": rng.standard_normal([n if d == "n" else d for d in shape]).astype(np.float32)}
            ours, ask = tenon_runner(fixed, feeds)
            others, ask_others = tenon_runner(opened, feeds)
            check(f"{name} at {n}", ask_others(), ask())
            seconds, ratios = peers.race([ours, others], seconds=2)
            rows.append({"kernel": name, "n": n, "us": 1e6 * seconds[0], "ratio": ratios[1]})
            print(f"{name:<32} {n:>5} {1e6 * seconds[0]:>10.2f} {ratios[1]:>10.3f}", flush=True)
            if args.json:
                args.json.write_text(json.dumps(rows, indent=1) + "\n")
    if rows:
        print(f"at most 1.1 on {sum(r['ratio'] <= 1.1 for r in rows)} of {len(rows)}; most {max(r['ratio'] for r in rows):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
