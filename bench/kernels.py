#!/usr/bin/env python3
"""Kernels by themselves: what share of the machine's multiply-adds each reaches, and whether a change made one slower.

    bench/kernels.py [--build build] [--only WORD …] [--json OUT]                the table
    bench/kernels.py --base OTHER_BUILD [--build build] [--allow 0.85]           fails where one became slower than that

Kernels are those of bench/tuning_suite.txt, as planning chooses them, on one thread, each measured by `tenon tune` without
trials beyond the first. With --base the two builds take turns, so that a machine that slows down slows both; a share of
peak that dropped is a time that grew in the same run, and only what is slower in all of --rounds rounds counts.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# One of each kind, for a check that takes a minute.
SHORT = ("feed-forward up", "product 197x768x768", "resnet50 3x3 of 64", "resnet50 1x1 of 1024", "depthwise 3x3 of 144",
         "attention of 12 heads, 128")


def suite(words):
    for part in (HERE / "tuning_suite.txt").read_text().split("\n## ")[1:]:
        name, text = part.split("\n", 1)
        if not words or any(word in name for word in words):
            yield name.strip(), text


def operations(text):
    """Multiply-adds of the kernel's products, counted twice, as its shapes say; 0 where it has none."""
    shapes = {v: [int(d) for d in dims.split(",")]
              for v, dims in re.findall(r'(%\d+)(?: "[^"]*")?: \w+\[([\d, ]+)\]', text)}
    total = 0
    for out, op, arguments in re.findall(r"(%\d+)[^\n]*? = (matmul|conv|attention)\(([^)]*)\)", text):
        a = [shapes[v.strip()] for v in arguments.split(",") if v.strip() in shapes]
        results = 1
        for d in shapes[out]:
            results *= d
        if op == "matmul":
            total += 2 * results * a[0][-1]
        elif op == "conv":
            taps = 1
            for d in a[1][1:]:
                taps *= d
            total += 2 * results * taps
        else:
            total += 2 * results * a[1][-2] + 2 * results // shapes[out][-1] * a[0][-1] * a[1][-2]
    return total


def microseconds(build, text, target):
    """What the kernel takes, and how it is computed."""
    with tempfile.TemporaryDirectory() as folder:
        graph = pathlib.Path(folder) / "kernel.graph.txt"
        graph.write_text(text)
        done = subprocess.run([build / "bin" / "tenon", "tune", graph, "--log", f"{folder}/log", "--trials", "1",
                               "--stop-gain", "0", "--json", "--target", target],
                              capture_output=True, text=True, env={**os.environ, "TENON_NUM_THREADS": "1"})
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-300:])
    tasks = json.loads(done.stdout.splitlines()[-1])["tasks"]
    if not tasks:
        raise RuntimeError("there is one way to compute it, which is not timed")
    return tasks[0]["first_us"], tasks[0]["first"]


def table(options):
    rows = []
    for name, text in suite(options.only):
        try:
            time, plan = microseconds(options.build, text, options.target)
        except RuntimeError as error:
            print(f"{name:52s} not measured: {error}", flush=True)
            continue
        rate = operations(text) / time * 1e-3
        rows.append({"kernel": name, "us": time, "gflops": rate, "plan": plan})
        print(f"{name:52s} {time:10.1f} µs {rate:8.1f} GFLOP/s  {plan}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


def compare(options):
    slower = []
    for name, text in suite(options.only or SHORT):
        ratios = []
        for _ in range(options.rounds):
            base, _ = microseconds(options.base, text, options.target)
            new, _ = microseconds(options.build, text, options.target)
            ratios.append(base / new)
            if ratios[-1] >= options.allow:
                break
        print(f"{name:52s} share of peak, new over base: {' '.join(f'{r:.3f}' for r in ratios)}", flush=True)
        if max(ratios) < options.allow:
            slower.append(name)
    if slower:
        sys.exit(f"kernels that became slower than {options.allow} of the base: {'; '.join(slower)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--base", type=pathlib.Path)
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--allow", type=float, default=0.85)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    compare(options) if options.base else table(options)


if __name__ == "__main__":
    main()
