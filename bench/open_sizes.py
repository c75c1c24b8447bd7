#!/usr/bin/env python3
"""Libraries with open sizes against libraries compiled for each size: how much longer a call takes.

    bench/open_sizes.py --models DIR [--only NAME …] [--build build] [--threads 1 2] [--rounds 5]

For each network one library with open sizes, and for each of some sizes one of its own; both are measured in turn in one
run. Printed are the numbers of kernels, the medians of the rounds' p50 in µs, and open / fixed (below 1: the open one is
faster); at the end the geometric mean and the largest ratio. DIR holds the networks with their weights; sizes that a model
holds inside are opened first (test/models/open_model.py, which needs the Python package onnx).
What the libraries compute is compared, too.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
# By network: the shape of each input with its open sizes, and the sizes that are measured.
NETWORKS = {
    "mlp-4-2": ({"input": "batch[1..16]x4"}, [{"batch": b} for b in (1, 2, 3, 5, 7, 8, 13, 16)]),
    "bert-tiny": ({"input_ids": "batch[1..16]xseq[1..128]", "attention_mask": "batchxseq"},
                  [{"batch": b, "seq": s} for b, s in ((1, 1), (1, 7), (1, 64), (1, 128), (4, 32), (16, 1), (16, 128))]),
    "squeezenet1_1": ({"input": "batch[1..16]x3x224x224"}, [{"batch": b} for b in (1, 2, 4)]),
    # Open as they are. Sizes: 1, a prime, around a tile of 8 rows and one of 64, the end of the range.
    "bert-base-dyn": ({"input_ids": "batch[1..4]xseq[1..128]", "attention_mask": "batchxseq"},
                      [{"batch": b, "seq": s} for b, s in ((1, 1), (1, 13), (1, 7), (1, 9), (2, 65), (4, 128))]),
    "gpt2-dyn": ({"input_ids": "1xseq[1..128]"}, [{"seq": s} for s in (1, 13, 7, 9, 65, 128)]),
    "llama-135m-dyn": ({"input_ids": "1xseq[1..128]"}, [{"seq": s} for s in (1, 13, 7, 9, 65, 128)]),
    "resnet50-dyn": ({"input": "batch[1..8]x3x224x224"}, [{"batch": b} for b in (1, 3, 7, 8)]),
}


def fixed(shape, sizes):
    """"batch[1..16]x4" at {"batch": 2}: "2x4"."""
    parts = (part.split("[")[0] for part in shape.split("x"))
    return "x".join(str(sizes.get(part, part)) for part in parts)


def draw(shapes, sizes):
    random = np.random.default_rng(0)
    arrays = {}
    for name, shape in shapes.items():
        dims = [int(d) for d in fixed(shape, sizes).split("x")]
        ids, mask = name.endswith("ids"), name.endswith("mask")
        arrays[name] = np.ones(dims, np.int64) if mask else random.integers(0, 1000, dims) if ids else \
            random.standard_normal(dims).astype(np.float32)
    return arrays


class Bench:
    def __init__(self, options, folder):
        self.tenon = options.build / "bin" / "tenon"
        self.options = options
        self.folder = folder

    def run(self, *args):
        return subprocess.run([self.tenon, *map(str, args)], check=True, capture_output=True, text=True).stdout

    def compile(self, model, shapes, name):
        """A library, and how many kernels it has."""
        library = self.folder / f"{name}.so"
        options = [word for item in shapes.items() for word in ("--shape", ":".join(item))]
        self.run("compile", model, "-o", library, "-q", *options)
        return library, len(json.loads(self.run("inspect", "--json", library))["kernels"])

    def measure(self, library, inputs, threads):
        report = self.folder / "bench.json"
        self.run("bench", library, "-i", inputs, "--threads", threads, "--duration", self.options.duration, "--json", report)
        return json.loads(report.read_text())["p50_ms"] * 1000

    def compare(self, name, model):
        shapes, all_sizes = NETWORKS[name]
        library, kernels = self.compile(model, shapes, "open")
        for sizes in all_sizes:
            own, own_kernels = self.compile(model, {i: fixed(s, sizes) for i, s in shapes.items()}, "fixed")
            inputs = self.folder / "inputs.npz"
            np.savez(inputs, **draw(shapes, sizes))
            self.run("run", own, "-i", inputs, "-o", self.folder / "outputs.npz")
            self.run("run", library, "-i", inputs, "--expect", self.folder / "outputs.npz", "--rtol", "1e-3")
            for threads in self.options.threads:
                times = [(self.measure(own, inputs, threads), self.measure(library, inputs, threads))
                         for _ in range(self.options.rounds)]
                was, now = (statistics.median(column) for column in zip(*times))
                said = " ".join(f"{k}={v}" for k, v in sizes.items())
                print(f"{name:16s} {said:18s} threads {threads}  kernels {own_kernels:3d} {kernels:3d}  fixed {was:10.2f} µs  "
                      f"open {now:10.2f} µs  open/fixed {now / was:.2f}", flush=True)
                yield now / was


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(NETWORKS))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration", type=float, default=0.3)
    options = parser.parse_args()
    os.environ.pop("TENON_NUM_THREADS", None)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, pathlib.Path(folder))
        for name in options.only:
            model = options.models / f"{name}.onnx"
            if not name.endswith("-dyn"):
                opened = bench.folder / model.name
                subprocess.run([sys.executable, ROOT / "test" / "models" / "open_model.py", model, opened], check=True)
                if model.with_suffix(".weights").exists():
                    shutil.copy(model.with_suffix(".weights"), bench.folder)
                model = opened
            ratios += bench.compare(name, model)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"open / fixed over {len(ratios)} measurements: geometric mean {mean:.3f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
