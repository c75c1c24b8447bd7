#!/usr/bin/env python3
"""Libraries with open sizes against libraries compiled for each size: how much longer a call takes.

    bench/open_sizes.py --models DIR [--only NAME …] [--build build] [--threads 1 2] [--rounds 5]

For each network one library with open sizes, and for each of some sizes one of its own; both are measured in turn in one
run. Printed are the numbers of kernels, the medians of the rounds' p50 in µs, and open / fixed, the median of the rounds' own
(below 1: the open one is faster); at the end, for each number of threads, the geometric mean and the largest ratio. DIR holds the networks with their
weights; sizes that a model holds inside are opened first (test/models/open_model.py, which needs the Python package onnx).
The detector is in the package rapidocr-onnxruntime 1.4.4; test/models/decoder_with_past.py writes the decoder.
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
sys.path.insert(0, str(ROOT / "test" / "models"))
from distances import distance  # noqa: E402

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
    # Of text in pictures: height and width.
    "ch_PP-OCRv4_det_infer": ({"x": "1x3xh[32..960 step 32]xw[32..960 step 32]"},
                              [{"h": h, "w": w} for h, w in ((32, 32), (96, 224), (224, 288), (320, 320), (352, 608), (960, 960))]),
    # Single steps with some past, and prompts without.
    "decoder-past": ({"input_ids": "batch[1..4]xsequence_length[1..128]",
                      "past_key_values.0.key": "batchx9xpast_sequence_length[0..512]x64"},
                     [{"batch": b, "sequence_length": s, "past_sequence_length": p} for b, s, p in
                      ((1, 1, 1), (1, 1, 13), (1, 1, 63), (1, 1, 65), (1, 1, 512), (4, 1, 64), (1, 7, 13), (1, 13, 0), (2, 65, 0), (1, 128, 0))]),
}
# Sizes stand in these models, and are taken out first.
HOLD_SIZES = ("mlp-4-2", "bert-tiny", "squeezenet1_1")


def fixed(shape, sizes):
    """"batch[1..16]x4" at {"batch": 2}: "2x4"."""
    parts = (part.split("[")[0] for part in shape.split("x"))
    return "x".join(str(sizes.get(part, part)) for part in parts)


def draw(inputs):
    """Arrays for the inputs of a library whose sizes are numbers."""
    random = np.random.default_rng(0)
    arrays = {}
    for i in inputs:
        name, dims = i["name"], i["shape"]
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
        """A library, and what it says of itself."""
        library = self.folder / f"{name}.so"
        options = [word for item in shapes.items() for word in ("--shape", ":".join(item))]
        self.run("compile", model, "-o", library, "-q", *options)
        return library, json.loads(self.run("inspect", "--json", library))

    def check(self, own, other, inputs, what):
        """Both give the same, as far as the contract says of fp32."""
        for library, out in ((own, "own.npz"), (other, "other.npz")):
            self.run("run", library, "-i", inputs, "-o", self.folder / out)
        want, got = np.load(self.folder / "own.npz"), np.load(self.folder / "other.npz")
        far = distance([got[name] for name in want.files], [want[name] for name in want.files])
        if not far <= 1e-4:
            sys.exit(f"{what}: results differ by {far:.1e}")

    def measure(self, library, inputs, threads):
        report = self.folder / "bench.json"
        self.run("bench", library, "-i", inputs, "--threads", threads, "--duration", self.options.duration, "--json", report)
        return json.loads(report.read_text())["p50_ms"] * 1000

    def compare(self, name, model):
        """(threads, open / fixed) for each size."""
        shapes, all_sizes = NETWORKS[name]
        library, about = self.compile(model, shapes, "open")
        for sizes in all_sizes:
            own, own_about = self.compile(model, {i: fixed(s, sizes) for i, s in shapes.items()}, "fixed")
            inputs = self.folder / "inputs.npz"
            np.savez(inputs, **draw(own_about["functions"][0]["inputs"]))
            self.check(own, library, inputs, f"{name} at {sizes}")
            for threads in self.options.threads:
                times = [(self.measure(own, inputs, threads), self.measure(library, inputs, threads))
                         for _ in range(self.options.rounds)]
                was, now = (statistics.median(column) for column in zip(*times))
                ratio = statistics.median(b / a for a, b in times)
                said = " ".join(f"{k}={v}" for k, v in sizes.items())
                print(f"{name:22s} {said:28s} threads {threads}  kernels {len(own_about['kernels']):3d} {len(about['kernels']):3d}  "
                      f"fixed {was:10.2f} µs  open {now:10.2f} µs  open/fixed {ratio:.2f}", flush=True)
                yield threads, ratio


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
            if name in HOLD_SIZES:
                opened = bench.folder / model.name
                subprocess.run([sys.executable, ROOT / "test" / "models" / "open_model.py", model, opened], check=True)
                if model.with_suffix(".weights").exists():
                    shutil.copy(model.with_suffix(".weights"), bench.folder)
                model = opened
            ratios += bench.compare(name, model)
    for threads in options.threads:
        own = [ratio for count, ratio in ratios if count == threads]
        mean = math.exp(sum(map(math.log, own)) / len(own))
        print(f"threads {threads}: open / fixed over {len(own)} measurements: geometric mean {mean:.3f}, largest {max(own):.2f}")


if __name__ == "__main__":
    main()
