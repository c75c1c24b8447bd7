#!/usr/bin/env python3
"""How good sketches are on computations that no algorithm of ours is for.

    PYTHONPATH=build/python bench/sketch_suite.py [--trials 64] [--more 448] [--only WORD] [--seconds 0.2] [--halide PYTHON] [--json OUT]

For each of fifteen it prints the time of what is predicted to be best (no trials), of the best after --trials, and of the best after
--more of them, with the latter over the former as percentages, and how many trials failed. Times of one kernel hang together by paired
ratios (docs/tuning.md). Then what --trials found runs in turns (peers.py) with a schedule that was written by hand before anything was
searched (sketch_hand.py) and, where --halide names the Python of an environment with the package halide, with what Halide's Adams2019
makes of the same formula (peer_halide.py): printed are their times over ours, above 1 ours is faster. All on one thread. For a quiet
machine; with --more 0 a minute for each computation.
"""

import argparse
import json
import os
import pathlib
import statistics
import tempfile

os.environ.update(TENON_NUM_THREADS="1", OMP_NUM_THREADS="1")

import numpy as np

import peer_kernels
import peers
import sketch_hand
import tenon
from tenon import auto_scheduler, te

HERE = pathlib.Path(__file__).resolve().parent


def blur(n):
    """Two passes of a separable filter."""
    a = te.placeholder((n + 4, n + 4), name="A")
    k, l = te.reduce_axis((0, 5), name="k"), te.reduce_axis((0, 5), name="l")
    rows = te.compute((n + 4, n), lambda i, j: te.sum(a[i, j + k], axis=k), name="R")
    return [a, te.compute((n, n), lambda i, j: te.sum(rows[i + l, j], axis=l), name="C")]


def stencil(n):
    a = te.placeholder((n + 2, n + 2), name="A")
    return [a, te.compute((n, n), lambda i, j: 0.2 * (a[i + 1, j + 1] + a[i, j + 1] + a[i + 2, j + 1] + a[i + 1, j] + a[i + 1, j + 2]), name="C")]


def distances(n, d):
    a, b = te.placeholder((n, d), name="A"), te.placeholder((n, d), name="B")
    k = te.reduce_axis((0, d), name="k")
    return [a, b, te.compute((n, n), lambda i, j: te.sum((a[i, k] - b[j, k]) * (a[i, k] - b[j, k]), axis=k), name="C")]


def manhattan(n, d):
    a, b = te.placeholder((n, d), name="A"), te.placeholder((d, n), name="B")
    k = te.reduce_axis((0, d), name="k")
    return [a, b, te.compute((n, n), lambda i, j: te.sum(te.abs(a[i, k] - b[k, j]), axis=k), name="C")]


def tropical(n):
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    return [a, b, te.compute((n, n), lambda i, j: te.max(a[i, k] + b[k, j], axis=k), name="C")]


def both_turned(n):
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    return [a, b, te.compute((n, n), lambda i, j: te.sum(a[k, i] * b[j, k], axis=k), name="C")]


def gram(n, m):
    a = te.placeholder((m, n), name="A")
    k = te.reduce_axis((0, m), name="k")
    return [a, te.compute((n, n), lambda i, j: te.sum(a[k, i] * a[k, j], axis=k), name="C")]


def lower_triangle(n):
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    return [a, b, te.compute((n, n), lambda i, j: te.sum(te.select(k <= i, a[i, k], 0.0) * b[k, j], axis=k), name="C")]


def bilinear(n, d):
    """x W y for each row."""
    x, w, y = te.placeholder((n, d), name="X"), te.placeholder((d, d), name="W"), te.placeholder((n, d), name="Y")
    k, l = te.reduce_axis((0, d), name="k"), te.reduce_axis((0, d), name="l")
    t = te.compute((n, d), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="T")
    return [x, w, y, te.compute((n,), lambda i: te.sum(t[i, l] * y[i, l], axis=l), name="C")]


def channels_last(n, c, o):
    a, w = te.placeholder((n + 4, n + 4, c), name="A"), te.placeholder((3, 3, c, o), name="W")
    r, s, k = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 3), name="s"), te.reduce_axis((0, c), name="k")
    return [a, w, te.compute((n, n, o), lambda y, x, f: te.sum(a[y + 2 * r, x + 2 * s, k] * w[r, s, k, f], axis=[r, s, k]), name="C")]


def volume(n, c, o):
    a, w = te.placeholder((c, n + 2, n + 2, n + 2), name="A"), te.placeholder((o, c, 3, 3, 3), name="W")
    k = te.reduce_axis((0, c), name="k")
    r, s, t = (te.reduce_axis((0, 3), name=x) for x in "rst")
    return [a, w, te.compute((o, n, n, n), lambda f, z, y, x: te.sum(a[k, z + r, y + s, x + t] * w[f, k, r, s, t], axis=[k, r, s, t]), name="C")]


def column_norms(n):
    a = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    total = te.compute((n,), lambda j: te.sum(a[k, j] * a[k, j], axis=k), name="T")
    return [a, te.compute((n,), lambda j: te.sqrt(total[j]), name="C")]


softmax = peer_kernels.kernels(te, te.all, te.if_then_else)["softmax"]


def gated(m, n):
    a, b, c = (te.placeholder((m, n), name=x) for x in "ABC")
    return [a, b, c, te.compute((m, n), lambda i, j: te.tanh(a[i, j]) * te.sigmoid(b[i, j]) + c[i, j], name="D")]


def dot(n):
    a, b = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    k = te.reduce_axis((0, n), name="k")
    return [a, b, te.compute((1,), lambda i: te.sum(a[k] * b[k], axis=k), name="C")]


SUITE = [
    (blur, (1024,)), (stencil, (1024,)), (distances, (256, 64)), (manhattan, (256, 64)), (tropical, (256,)), (both_turned, (384,)),
    (gram, (256, 1024)), (lower_triangle, (384,)), (bilinear, (64, 256)), (channels_last, (28, 32, 64)), (volume, (16, 8, 16)),
    (column_norms, (1024,)), (softmax, (256, 1000)), (gated, (512, 512)), (dot, (1 << 20,)),
]  # fmt: skip


def best_of(task, trials, before, seconds):
    """Seconds of the best; how many trials failed."""
    options = auto_scheduler.TuningOptions(
        trials, runner=auto_scheduler.LocalRunner(candidate_seconds=seconds), verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(before)]
    )
    policy = auto_scheduler.SketchPolicy(task, init_search_callbacks=[auto_scheduler.PreloadMeasuredStates(before)] if os.path.exists(before) else None)
    task.tune(options, policy)
    results = [r for _, r in auto_scheduler.load_records(before)]
    leaders = [r.costs[0] for r in results if r.error_no == 0]
    return (min(leaders) if leaders else float("nan")), sum(r.error_no != 0 for r in results), leaders


def runner(schedule, arguments, operands):
    """A built kernel as something to race, and its answer."""
    function = tenon.build(schedule, arguments, "llvm")
    answer = np.asarray(function(*operands))
    given = [*operands, peers.aligned(answer.shape, answer.dtype)]
    return peers.InProcess(lambda: function(*given)), answer


def beside(function, sizes, tuned, halide, seconds):
    """Times of the others over the tuned one's: {"hand": …, "halide": …}. Answers are compared."""
    tensors = function(*sizes)
    # As peer_halide.py draws them, for its answer is told by a mean.
    rng = np.random.default_rng(0)
    operands = [peers.aligned([int(d) for d in t.shape], np.float32) for t in tensors[:-1]]
    for operand in operands:
        operand[...] = rng.standard_normal(operand.shape)
    ours, want = runner(*tuned, operands)
    out, runners = {}, [ours]
    by_hand, answer = runner(*getattr(sketch_hand, function.__name__)(tensors), operands)
    error = np.abs(answer - want).max() / np.abs(want).max()
    if not error < 1e-4:
        raise RuntimeError(f"{function.__name__} by hand: answers differ by {error:.1e}")
    runners.append(by_hand)
    if halide:
        child = peers.Child([halide, HERE / "peer_halide.py", function.__name__, *sizes])
        mean = float(np.abs(want.astype(np.float64)).mean())
        if not abs(child.about["mean"] - mean) <= 1e-3 * mean:
            raise RuntimeError(f"{function.__name__} by Halide: answers have a mean of {child.about['mean']:g}, expected {mean:g}")
        runners.append(child)
    _, ratios = peers.race(runners, seconds=seconds)
    out.update(zip(("hand", "halide"), ratios[1:]))
    for r in runners:
        r.close()
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--more", type=int, default=448)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--halide", default="", help="a Python that has it")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    rows = []
    print(f"{'computation':<28} {'sketches':>8} {'0 µs':>10} {'few µs':>10} {'best µs':>10} {'0':>7} {'few':>7} {'failed':>6} {'hand':>6} {'Halide':>6}")
    for function, sizes in SUITE:
        if args.only not in function.__name__:
            continue
        task = auto_scheduler.SearchTask(compute_dag=auto_scheduler.ComputeDAG(function(*sizes)), target="llvm")
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log.json")
            first, _, _ = best_of(task, 1, log, args.seconds)
            some, failed, _ = best_of(task, args.trials - 1, log, args.seconds)
            tuned = task.apply_best(log)
            best, failed, _ = best_of(task, args.more, log, args.seconds) if args.more else (some, failed, [])
        name = f"{function.__name__}{sizes}".replace(" ", "")
        row = {"computation": name, "sketches": len(task.sketches(auto_scheduler.SketchPolicy(task))), "first_us": 1e6 * first, "few_us": 1e6 * some, "best_us": 1e6 * best, "failed": failed}
        trouble = ""
        try:
            row.update(beside(function, sizes, tuned, args.halide, 10 * args.seconds))
        except RuntimeError as error:
            trouble = f"  {error}"
        rows.append(row)
        others = " ".join(f"{row[x]:>6.2f}" if x in row else f"{'':>6}" for x in ("hand", "halide"))
        print(f"{name:<28} {row['sketches']:>8} {1e6 * first:>10.2f} {1e6 * some:>10.2f} {1e6 * best:>10.2f} {best / first:>7.1%} {best / some:>7.1%} {failed:>6} {others}{trouble}", flush=True)
        if args.json:
            args.json.write_text(json.dumps(rows, indent=1) + "\n")
    for what, key in (("without trials", "first_us"), (f"after {args.trials} trials", "few_us")):
        parts = [r["best_us"] / r[key] for r in rows]
        if parts:
            print(f"{what}: {statistics.mean(parts):.1%} of the best on average, {min(parts):.1%} at worst, of {len(parts)}")
    for other, least in (("hand", 0.9), ("halide", 1.0)):
        ratios = [r[other] for r in rows if other in r]
        if ratios:
            print(f"beside {other}: at least {least} on {sum(x >= least for x in ratios)} of {len(ratios)}; geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
