#!/usr/bin/env python3
"""How good kernels are without trials and after a few, against the best of their spaces.

    bench/tuning_suite.py [--suite FILE] [--build build] [--target T] [--folder DIR] [--after-others]
                          [--trials 64] [--exhaustive 1000] [--only WORD] [--part 0:40] [--rows 0:5] [--profile P]

Every kernel of bench/tuning_suite.txt, or of another FILE (tuning_suite_gpu.txt has those for GPUs), is tuned into an empty log with --trials
candidates, failures included. Then its space is tried: equal loop IR counts once; up to --exhaustive points all of them, else so many, a quarter of them leaders
and the others of all structures alike, and then what is one knob away from the best --neighbours-of of those. At the end the best 16, the choice without trials, that after the trials and
whatever has led race once more, all against one of them, and that race alone counts: its best over each of the two choices, as percentages. So what
is compared ran within the same minute, in pairs (docs/tuning.md), and a machine that does other things gives much the same. A kernel
with a space of one point is its own best; it is counted, and the means are given without such kernels, too. Of kernels whose noise is
above --noisy two at most are left out, by name. Printed are points, kernels that these are where all were tried, and how many were tried. Last it says what a
trial takes: building a candidate, and which part of the time was not spent in timed bursts, for kernels of a millisecond and more.

With --folder everything stays there, and whoever is killed goes on where it was: rows that are done are not measured again, and logs
keep what was tried. --after-others adds a column: each kernel after --trials candidates of a log that begins with the records of all others' first
--trials, raced in the same final. --samples N, for a short look, tries so many points of each space only.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MOST_WEIGHTS = 1 << 30  # bytes of a file with nothing in it


def kernels(suite):
    for part in suite.read_text().split("\n## ")[1:]:
        name, text = part.split("\n", 1)
        yield name.strip(), text


def tune(text, log, args, *more):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "kernel.graph.txt"
        file.write_text(text)
        # Of constants only where they lie counts: kernels are measured with normally distributed operands.
        with open(pathlib.Path(folder) / "weights", "wb") as weights:
            weights.truncate(MOST_WEIGHTS)
        command = [args.build / "bin" / "tenon", "tune", file, "--log", log, "--stop-gain", "0", "--json",
                   "--candidate-time", args.seconds, "--target", args.target, *(["--profile", args.profile] if args.profile else []), *more]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout.splitlines()[-1])


def log_command(args, *words):
    done = subprocess.run([str(c) for c in (args.build / "bin" / "tenon", "log", *words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def tried(log, args):
    """How many points the log has attempts at; the first is the choice without trials, which is none."""
    if not log.exists():
        return 0
    records = [json.loads(line).get("record") for line in log_command(args, "export", log).splitlines()]
    attempts = {(r["algorithm"], r["point"]) for r in records if r and r["outcome"] != "started" and not r["message"].startswith("the same kernel as ")}
    return max(0, len(attempts) - 1)


def few(text, log, args):
    """What is found with --trials candidates; kept beside the log, which later trials go into."""
    done = log.with_suffix(".few.json")
    if not done.exists():
        # Of a session that was killed the log has the first ones.
        left = max(1, args.trials - tried(log, args))
        found = tune(text, log, args, "--trials", left)
        # Nothing else may have the name until it is whole.
        done.with_suffix(".part").write_text(json.dumps(found))
        done.with_suffix(".part").rename(done)
    return json.loads(done.read_text())


def after_others(number, text, logs, args):
    """The choice after --trials candidates where the log begins with all others' first ones."""
    log = args.folder / f"{number}.after.log"
    if not log.exists():
        part = args.folder / f"{number}.after.part.log"
        part.unlink(missing_ok=True)
        log_command(args, "merge", part, *(other for n, other in logs.items() if n != number))
        part.rename(log)
    return few(text, log, args)


def measured(number, name, text, logs, args):
    """A row of the table."""
    row = {"kernel": name, "points": 1, "distinct": 1, "covered": 1, "zero": 1.0, "few": 1.0, "noise": 0.0, "failed": 0}
    first = few(text, args.folder / f"{number}.few.log", args)
    if not first["tasks"]:
        return row
    log = args.folder / f"{number}.log"
    if not log.exists():
        part = args.folder / f"{number}.part.log"
        shutil.copy(args.folder / f"{number}.few.log", part)
        part.rename(log)
    a = first["tasks"][0]
    choices = {"zero": a["first"], "few": a["best"]}
    if args.after_others:
        choices["after"] = after_others(number, text, logs, args)["tasks"][0]["best"]
        kernel = a["kernel"]
        # Its records race in the end, too: they are of the same kernel.
        lines = args.folder / f"{number}.after.json"
        exported = log_command(args, "export", args.folder / f"{number}.after.log").splitlines()
        lines.write_text("\n".join(x for x in exported if kernel in x) + "\n")
        log_command(args, "merge", log, lines)
    limit = ["--time-limit", args.time_limit] if args.time_limit else []
    last = tune(text, log, args, "--exhaustive", args.exhaustive, "--neighbours-of", args.neighbours_of, "--finals", 16, *limit, *(["--trials", args.samples] if args.samples else []))
    b = last["tasks"][0]
    ratios = {f["point"]: f["ratio"] for f in b["finals"]}
    best = min(ratios.values())
    wall, timing = (first[k] + last[k] for k in ("seconds", "timing_seconds"))
    # Each of the two sessions builds its incumbent, too.
    built = first["trials"] + last["trials"] + 2
    row.update(build_ms=1e3 * (first["building_seconds"] + last["building_seconds"]) / built, aside=1 - timing / wall)
    row.update({key: best / ratios[choice] for key, choice in choices.items()})
    row.update(points=b["points"], distinct=b["distinct"], sample=b["sample"], covered=b["covered"], noise=max(a["noise"], b["noise"]),
               failed=first["failures"] + last["failures"], us=b["best_us"] * best, first=a["first"], best=min(ratios, key=ratios.get), choices=choices)
    return row


def summary(rows, args):
    noisy = sorted((r for r in rows if r["noise"] > args.noisy), key=lambda r: -r["noise"])
    quiet = [r for r in rows if r not in noisy[:2]]
    for r in noisy[:2]:
        print(f"left out, for its noise of {r['noise']:.1%}: {r['kernel']}")
    for r in noisy[2:]:
        print(f"counted in spite of its noise of {r['noise']:.1%}: {r['kernel']}")
    print(f"{sum(r['covered'] for r in rows)} kernels tried, of spaces of {sum(r['points'] for r in rows)} points")
    for of, what in ((quiet, "kernels"), ([r for r in quiet if r["points"] > 1], "of these with a choice")):
        for key, when in (("zero", "without trials"), ("few", f"after {args.trials} trials"), ("after", f"after {args.trials} trials and the others'")):
            parts = [r[key] for r in of if key in r]
            if parts:
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
    parser.add_argument("--neighbours-of", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=0.5, help="for timing one candidate, at most")
    parser.add_argument("--time-limit", default="", help="for the space of each kernel, as 30s")
    parser.add_argument("--samples", type=int, default=0, help="of each space, at most; 0: what --exhaustive says")
    parser.add_argument("--after-others", action="store_true", help="a column after what the other kernels of --part have taught")
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="0:40", help="kernels of these numbers, as 0:20")
    parser.add_argument("--rows", default="", help="of --part, the kernels whose spaces are tried here; other processes may do others in the same --folder at the same time")
    parser.add_argument("--folder", type=pathlib.Path, help="keeps logs and rows; what it has is not measured again")
    parser.add_argument("--profile", default="")
    parser.add_argument("--noisy", type=float, default=0.03)
    parser.add_argument("--json", type=pathlib.Path, help="takes the rows")
    args = parser.parse_args()
    if args.folder:
        args.folder.mkdir(parents=True, exist_ok=True)
        return run(args)
    with tempfile.TemporaryDirectory() as folder:
        args.folder = pathlib.Path(folder)
        return run(args)


def conditions(args):
    """Rows that were measured under others are not taken for these."""
    return {k: str(v) for k, v in vars(args).items() if k not in ("only", "part", "rows", "folder", "json", "noisy", "build")}


def run(args):
    low, high = map(int, args.part.split(":"))
    suite = {n: k for n, k in enumerate(kernels(args.suite)) if args.only in k[0] and low <= n < high}
    logs = {}
    if args.after_others:
        for number, (name, text) in suite.items():
            if few(text, args.folder / f"{number}.few.log", args)["tasks"]:
                logs[number] = args.folder / f"{number}.few.log"
    rows = []
    print(f"{'kernel':<44} {'points':>6} {'equal once':>10} {'tried':>6} {'µs':>10} {'0':>7} {'few':>7} {'after':>7} {'noise':>7} {'failed':>6}  without trials | best")
    first, end = map(int, (args.rows or args.part).split(":"))
    for number, (name, text) in suite.items():
        if not first <= number < end:
            continue
        kept = args.folder / f"{number}.row.json"
        try:
            done = json.loads(kept.read_text()) if kept.exists() else None
            if not done or done["conditions"] != conditions(args):
                done = {"row": measured(number, name, text, logs, args), "conditions": conditions(args)}
                kept.write_text(json.dumps(done))
        except RuntimeError as error:
            print(f"{name:<44} {error}")
            continue
        r = done["row"]
        rows.append(r)
        after = f"{r['after']:.1%}" if "after" in r else ""
        print(f"{name:<44} {r['points']:>6} {r['distinct'] or '':>10} {r['covered']:>6} {r.get('us', 0):>10.2f} {r['zero']:>7.1%} {r['few']:>7.1%} {after:>7} {r['noise']:>7.2%} "
              f"{r['failed']:>6}  {r.get('first', 'one way')} | {r.get('best', '')}", flush=True)
        if args.json:
            args.json.write_text(json.dumps(rows, indent=1) + "\n")
    summary(rows, args)
    costs(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
