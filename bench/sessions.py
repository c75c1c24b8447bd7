#!/usr/bin/env python3
"""Models as programs use them: sessions of Tenon beside ONNX Runtime's, in one process, taking turns.

    PYTHONPATH=build/python bench/sessions.py MODEL.onnx|FOLDER … [--threads 1 2] [--seconds 1] [--free 64] [--json OUT]

Needs numpy and onnxruntime. Of each model: seconds until the first answer (Tenon compiles for what is open; TENON_CACHE_DIR says where
that is kept), the median of calls in ms with so many threads, and ONNX Runtime's over Tenon's; above 1 Tenon is faster. Free sizes
are 1 where they stand first or are named after a batch, else --free; values are normal floats, or zeros and ones. A model that ONNX Runtime does not
run with these inputs is passed over and counted; one that Tenon alone refuses is named, and makes the exit status 1. Models are
printed slowest first.
"""
import argparse
import json
import math
import pathlib
import statistics
import sys
import time

import numpy as np
import onnxruntime

import tenon.onnxruntime  # beside the real one, which was imported first

KINDS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int64)": np.int64,
         "tensor(int32)": np.int32, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(bool)": np.bool_}


def drawn(session, free):
    """An array for each input; None where one is of another kind."""
    draw, feeds = np.random.default_rng(0), {}
    for item in session.get_inputs():
        if item.type not in KINDS:
            return None
        dtype = KINDS[item.type]
        shape = [d if isinstance(d, int) and d > 0 else 1 if i == 0 or "batch" in str(d).lower() else free
                 for i, d in enumerate(item.shape)]
        real = np.issubdtype(dtype, np.floating)
        feeds[item.name] = (draw.standard_normal(shape) if real else draw.integers(0, 2, shape)).astype(dtype)
    return feeds


def opened(engine, path, threads):
    options = engine.SessionOptions()
    options.intra_op_num_threads = threads
    if engine is onnxruntime:
        options.log_severity_level = 4
    return engine.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def in_turn(calls, seconds):
    """Medians in ms: each calls for a tenth of the time, then the next does."""
    times = {name: [] for name in calls}
    for _ in range(10):
        for name, call in calls.items():
            time.sleep(0.05)  # until the other's workers no longer wait for more
            end = time.perf_counter() + seconds / 10
            while True:
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
                if times[name][-1] + start > end:
                    break
    return {name: statistics.median(values) * 1e3 for name, values in times.items()}


def measure(path, args):
    """{what was measured}; a string where there is nothing to compare."""
    engines = {"tenon": tenon.onnxruntime, "ort": onnxruntime}
    row = {"model": path.name}
    for threads in args.threads:
        sessions, feeds, first = {}, None, {}
        for name in ("ort", "tenon"):
            start = time.perf_counter()
            try:
                sessions[name] = opened(engines[name], path, threads)
                if feeds is None:
                    drawing = time.perf_counter()
                    feeds = drawn(sessions[name], args.free)
                    start += time.perf_counter() - drawing
                    if feeds is None:
                        return "inputs that are no numbers"
                sessions[name].run(None, feeds)
            except Exception as error:
                if name == "ort":
                    return f"ONNX Runtime: {str(error).splitlines()[0][:120]}"
                return {**row, "refused": f"{str(error)[:300]}"}
            first[name] = time.perf_counter() - start
        row.setdefault("first", first)
        times = in_turn({name: (lambda s=s: s.run(None, feeds)) for name, s in sessions.items()}, args.seconds)
        row[threads] = {**times, "ratio": times["ort"] / times["tenon"]}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=1, help="of each engine, for each number of threads")
    parser.add_argument("--free", type=int, default=64)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    paths = [p for given in args.models for p in (sorted(given.rglob("*.onnx")) if given.is_dir() else [given])]
    rows, passed_over = [], 0
    for path in paths:
        row = measure(path, args)
        if isinstance(row, str):
            passed_over += 1
            print(f"{path.name}: passed over, {row}", flush=True)
            continue
        rows.append(row)
        said = row.get("refused") or "  ".join(f"{row[t]['ratio']:.2f}" for t in args.threads)
        print(f"{path.name}: {said}", flush=True)
    refused = [row for row in rows if "refused" in row]
    rows = sorted((row for row in rows if "refused" not in row), key=lambda row: min(row[t]["ratio"] for t in args.threads))
    for row in rows:
        cells = "   ".join(f"{row[t]['tenon']:9.3f} {row[t]['ort']:9.3f} {row[t]['ratio']:6.2f}" for t in args.threads)
        print(f"{row['model'][:44]:44} first {row['first']['tenon']:6.2f} {row['first']['ort']:6.2f} s   {cells}")
    for t in args.threads:
        ratios = [row[t]["ratio"] for row in rows]
        if ratios:
            print(f"threads {t}: geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f}, least {min(ratios):.2f}, of {len(ratios)} models")
    print(f"{passed_over} passed over, {len(refused)} refused by Tenon alone")
    if args.json:
        args.json.write_text(json.dumps({"rows": rows, "refused": refused}, indent=1))
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
