#!/usr/bin/env python3
"""Two builds of Tenon on the same networks in one run, in turn: how much faster or slower the code of this one is.

    bench/compare_builds.py --base OTHER_BUILD --models DIR [--only NAME …] [--build build] [--threads 2] [--rounds 3]

For each network, compiled for this machine by both: the medians of the rounds' p50 in ms and base / new (above 1: the new
one is faster), likewise of the time to compile; at the end the geometric means. DIR holds networks with fixed sizes and
their weights.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import tempfile
import time


def run(tenon, *args):
    subprocess.run([tenon, *map(str, args)], check=True, capture_output=True, text=True)


def measure(tenons, model, options):
    """By build: (latency in ms, seconds to compile)."""
    latencies, compiles = ([[] for _ in tenons] for _ in range(2))
    with tempfile.TemporaryDirectory() as folder:
        libraries = [pathlib.Path(folder) / f"{i}.so" for i in range(len(tenons))]
        report = pathlib.Path(folder) / "bench.json"
        for _ in range(options.rounds):
            for i, tenon in enumerate(tenons):
                start = time.perf_counter()
                run(tenon, "compile", model, "-o", libraries[i])
                compiles[i].append(time.perf_counter() - start)
            for i, tenon in enumerate(tenons):
                run(tenon, "bench", libraries[i], "--fill", "random", "--threads", options.threads, "--duration",
                    options.duration, "--json", report)
                latencies[i].append(json.loads(report.read_text())["p50_ms"])
    return [(statistics.median(a), statistics.median(b)) for a, b in zip(latencies, compiles)]


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--duration", type=float, default=1)
    options = parser.parse_args()
    os.environ["TENON_NUM_THREADS"] = str(options.threads)
    tenons = [build / "bin" / "tenon" for build in (options.base, options.build)]
    faster, quicker = [], []
    for model in sorted(options.models.glob("*.onnx")):
        if options.only and model.stem not in options.only:
            continue
        try:
            (base, base_compile), (new, new_compile) = measure(tenons, model, options)
        except subprocess.CalledProcessError as error:
            print(f"{model.stem:24s} not compared: {error.stderr.strip().splitlines()[-1][:160]}", flush=True)
            continue
        faster.append(base / new)
        quicker.append(base_compile / new_compile)
        print(f"{model.stem:24s} base {base:9.3f} ms  new {new:9.3f} ms  base/new {faster[-1]:.3f}  "
              f"compile {base_compile:.2f} s -> {new_compile:.2f} s", flush=True)
    if faster:
        print(f"geometric mean of base / new over {len(faster)} networks: {mean(faster):.3f} running, "
              f"{mean(quicker):.3f} compiling")


if __name__ == "__main__":
    main()
