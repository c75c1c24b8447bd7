#!/usr/bin/env python3
"""How good kernels are without trials and after a few, against the best of their spaces.

    bench/tuning_suite.py [--suite FILE] [--build build] [--target T] [--trials 64] [--exhaustive 1000] [--only WORD] [--log FILE] [--profile P]

Every kernel of bench/tuning_suite.txt, or of another FILE (tuning_suite_gpu.txt has those for GPUs), is tuned into an empty log: first with --trials candidates, then with so many more that
--exhaustive points have been tried. At the end the best 16, whatever has led, the choice without trials and that after the trials
race once more, all against one of them, and that race alone counts: its best over each of the two choices, as percentages. So what
is compared ran within the same minute, in pairs (docs/tuning.md), and a machine that does other things gives much the same. A kernel
with a space of one point is its own best; it is counted, and the means are given without such kernels, too. Kernels whose noise is
above --noisy are named and left out. A second run with the same --log starts from what the others have taught. Last it says what a
trial takes: building a candidate, and which part of the time was not spent in timed bursts, for kernels of a millisecond and more.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def kernels(suite):
    for part in suite.read_text().split("\n## ")[1:]:
        name, text = part.split("\n", 1)
        yield name.strip(), text


def tune(text, log, args, *more):
    with tempfile.NamedTemporaryFile("w", suffix=".graph.txt") as file:
        file.write(text)
        file.flush()
        command = [args.build / "bin" / "tenon", "tune", file.name, "--log", log, "--stop-gain", "0", "--json",
                   "--candidate-time", args.seconds, "--target", args.target, *(["--profile", args.profile] if args.profile else []), *more]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout.splitlines()[-1])


def measured(name, text, log, args):
    """A row of the table."""
    row = {"kernel": name, "points": 1, "zero": 1.0, "few": 1.0, "noise": 0.0, "failed": 0}
    first = tune(text, log, args, "--trials", args.trials)
    if not first["tasks"]:
        return row
    limit = ["--time-limit", args.time_limit] if args.time_limit else []
    last = tune(text, log, args, "--trials", max(1, args.exhaustive - args.trials), "--finals", 16, *limit)
    a, b = first["tasks"][0], last["tasks"][0]
    ratios = {f["point"]: f["ratio"] for f in b["finals"]}
    best = min(ratios.values())
    wall, timing = (first[k] + last[k] for k in ("seconds", "timing_seconds"))
    # Each of the two sessions builds its incumbent, too.
    built = first["trials"] + last["trials"] + 2
    row.update(build_ms=1e3 * (first["building_seconds"] + last["building_seconds"]) / built, aside=1 - timing / wall)
    row.update(points=a["points"], tried=first["trials"] + last["trials"], zero=best / ratios[a["first"]], few=best / ratios[a["best"]],
               noise=max(a["noise"], b["noise"]), failed=first["failures"] + last["failures"], us=b["best_us"] * best,
               first=a["first"], after=a["best"], best=min(ratios, key=ratios.get))
    return row


def summary(rows, args):
    quiet = [r for r in rows if r["noise"] <= args.noisy]
    for r in rows:
        if r not in quiet:
            print(f"left out, for its noise of {r['noise']:.1%}: {r['kernel']}")
    for of, what in ((quiet, "kernels"), ([r for r in quiet if r["points"] > 1], "of these with a choice")):
        for key, when in (("zero", "without trials"), ("few", f"after {args.trials} trials")):
            if of:
                parts = [r[key] for r in of]
                print(f"{len(of)} {what}, {when}: {statistics.mean(parts):.1%} of the best on average, {min(parts):.1%} at worst")


def costs(rows):
    built = [r["build_ms"] for r in rows if "build_ms" in r]
    if built:
        print(f"building a candidate: {statistics.mean(built):.0f} ms on average, {max(built):.0f} ms at most, of {len(built)} kernels")
    long = [r["aside"] for r in rows if r.get("us", 0) >= 1000]
    if long:
        print(f"not in timed bursts: {statistics.mean(long):.1%} of the time on average, {max(long):.1%} at most, of {len(long)} kernels of a millisecond and more")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=pathlib.Path, default=HERE / "tuning_suite.txt")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--exhaustive", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=0.5, help="for timing one candidate, at most")
    parser.add_argument("--time-limit", default="", help="for what comes after the first --trials, as 30s")
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="0:40", help="kernels of these numbers, as 0:20")
    parser.add_argument("--log", default="")
    parser.add_argument("--profile", default="")
    parser.add_argument("--noisy", type=float, default=0.03)
    parser.add_argument("--json", type=pathlib.Path, help="takes the rows")
    args = parser.parse_args()
    rows = []
    print(f"{'kernel':<44} {'points':>6} {'tried':>6} {'µs':>10} {'0':>7} {'few':>7} {'noise':>7} {'failed':>6}  without trials | best")
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, text) in enumerate(kernels(args.suite)):
            low, high = map(int, args.part.split(":"))
            if args.only not in name or not low <= number < high:
                continue
            try:
                r = measured(name, text, args.log or f"{folder}/{number}.log", args)
            except RuntimeError as error:
                print(f"{name:<44} {error}")
                continue
            rows.append(r)
            print(f"{name:<44} {r['points']:>6} {r.get('tried', 0):>6} {r.get('us', 0):>10.2f} {r['zero']:>7.1%} {r['few']:>7.1%} {r['noise']:>7.2%} "
                  f"{r['failed']:>6}  {r.get('first', 'one way')} | {r.get('best', '')}", flush=True)
            if args.json:
                args.json.write_text(json.dumps(rows, indent=1) + "\n")
    summary(rows, args)
    costs(rows)


if __name__ == "__main__":
    sys.exit(main())
