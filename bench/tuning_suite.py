#!/usr/bin/env python3
"""How good kernels are without trials and after a few, against the best of their spaces.

    bench/tuning_suite.py [--build build] [--target T] [--trials 64] [--exhaustive 1000] [--only WORD] [--log FILE]

Every kernel of bench/tuning_suite.txt is tuned into an empty log: first with --trials candidates, then with so many more that
--exhaustive points have been tried. For each it prints its time where planning chose without trials, after the trials, and
the best that was found, with best / time as percentages, and its noise against itself. Times of one kernel hang together by
paired ratios (docs/tuning.md), so percentages say more than the microseconds. A second run with the same --log starts from
what the others have taught. For a quiet machine: nothing here is right while something else runs.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def kernels():
    for part in (HERE / "tuning_suite.txt").read_text().split("\n## ")[1:]:
        name, text = part.split("\n", 1)
        yield name.strip(), text


def tune(tenon, text, log, args, trials):
    with tempfile.NamedTemporaryFile("w", suffix=".graph.txt") as file:
        file.write(text)
        file.flush()
        command = [tenon, "tune", file.name, "--log", log, "--trials", str(trials), "--stop-gain", "0", "--json",
                   "--target", args.target]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--exhaustive", type=int, default=1000)
    parser.add_argument("--only", default="")
    parser.add_argument("--log", default="")
    args = parser.parse_args()
    tenon = args.build / "bin" / "tenon"
    zero, few = [], []
    print(f"{'kernel':<48} {'points':>6} {'0 µs':>10} {'few µs':>10} {'best µs':>10} {'0':>7} {'few':>7} {'noise':>7} {'failed':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, text) in enumerate(kernels()):
            if args.only not in name:
                continue
            log = args.log or f"{folder}/{number}.log"
            try:
                first = tune(tenon, text, log, args, args.trials)
                last = tune(tenon, text, log, args, args.exhaustive) if args.exhaustive > args.trials else first
            except RuntimeError as error:
                print(f"{name:<48} {error}")
                continue
            if not first["tasks"]:
                print(f"{name:<48} leaves nothing open")
                continue
            a, b = first["tasks"][0], last["tasks"][0]
            best = b["best_us"]
            failed = first["failures"] + (last["failures"] if last is not first else 0)
            print(f"{name:<48} {a['points']:>6} {a['first_us']:>10.2f} {a['best_us']:>10.2f} {best:>10.2f} "
                  f"{best / a['first_us']:>7.1%} {best / a['best_us']:>7.1%} {a['noise']:>7.2%} {failed:>6}", flush=True)
            zero.append(best / a["first_us"])
            few.append(best / a["best_us"])
    for what, parts in [("without trials", zero), (f"after {args.trials} trials", few)]:
        if parts:
            print(f"{what}: {statistics.mean(parts):.1%} of the best on average, {min(parts):.1%} at worst, of {len(parts)} kernels")


if __name__ == "__main__":
    sys.exit(main())
