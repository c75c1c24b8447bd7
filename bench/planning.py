#!/usr/bin/env python3
"""What planning takes of compiling: its time, the whole time, and the share, for each network.

    bench/planning.py --models DIR [--only NAME …] [--build build] [--rounds 3]

Planning is the passes fuse and plan_groups; times are medians, on one thread, so that they add up. DIR holds networks and
their weights (bench/fill_weights.py).
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import tempfile


def measure(tenon, model):
    """(milliseconds of planning, of all); None where it does not compile"""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([tenon, "compile", model, "-o", pathlib.Path(folder) / "out.so", "--time-passes", "--jobs", "1"],
                              capture_output=True, text=True)
    if done.returncode:
        return None
    planning = sum(float(ms) for ms in re.findall(r"^(?:fuse|plan_groups) +\d+ +([\d.]+)$", done.stdout, re.MULTILINE))
    return planning, 1e3 * float(re.search(r"compiled in ([\d.]+)", done.stdout)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{'network':<24} {'planning, ms':>12} {'all, ms':>10} {'share':>7}")
    for model in sorted(options.models.glob("*.onnx")):
        if options.only and model.stem not in options.only:
            continue
        rounds = [measure(options.build / "bin" / "tenon", model) for _ in range(options.rounds)]
        if None in rounds:
            print(f"{model.stem:<24} does not compile")
            continue
        planning, whole = (statistics.median(times) for times in zip(*rounds))
        print(f"{model.stem:<24} {planning:>12.1f} {whole:>10.0f} {planning / whole:>7.2%}", flush=True)


if __name__ == "__main__":
    main()
