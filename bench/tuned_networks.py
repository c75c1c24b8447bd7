#!/usr/bin/env python3
"""What a tuned network takes, against the sum of what its kernels take at their best, and against itself untuned.

    bench/tuned_networks.py --models DIR --folder DIR [--only NAME …] [--time-limit 5m] [--threads 1] [--build build]

Each network of --models (bench/fill_weights.py makes weights) is tuned into a log in --folder and compiled by it. Of a kernel that was
tuned, its best time by itself counts, as often as it is launched; of one that leaves nothing open, what it takes in the network, timed
alone (`tenon compile --time-kernels`): these are not what tuning is about, and are the same on both sides. Printed are the network's time, the sum, sum / network
(1: nothing is lost between kernels), the part of the sum that was tuned, and tuned / untuned, raced in pairs by the session.
Killed, it goes on where it was: logs keep what was tried, and rows that are done are read again. For a quiet machine.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def tenon(args, *words):
    done = subprocess.run([str(w) for w in (args.build / "bin" / "tenon", *words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def bench(args, library, seconds):
    out = args.folder / "bench.json"
    tenon(args, "bench", library, "--threads", args.threads, "--duration", seconds, "--json", out)
    return json.loads(out.read_text())


def tuned(model, args, how):
    """The session's last word. Of one that was killed the log has what it did; the race of the whole is in the session that ends."""
    kept = args.folder / f"{model.stem}.session.json"
    if not kept.exists():
        out = tenon(args, "tune", model, "--log", args.folder / f"{model.stem}.log", "--time-limit", args.time_limit, "--candidate-time", args.seconds, "--json", *how)
        kept.write_text(out.splitlines()[-1])
    return json.loads(kept.read_text())


def row(model, args):
    how = ["--target", f"llvm -num-cores={args.threads}"]
    log = args.folder / f"{model.stem}.log"
    session = tuned(model, args, how)
    plain, timed = args.folder / f"{model.stem}.so", args.folder / f"{model.stem}.timed.so"
    tenon(args, "compile", model, "-o", plain, "--log", log, *how)
    tenon(args, "compile", model, "-o", timed, "--log", log, "--time-kernels", *how)
    # Nodes that records are about; equal kernels have one record each.
    nodes = {t["node"] for t in json.loads(tenon(args, "inspect", plain, "--json"))["tuning"]}
    kernels = {t["name"]: t["launches"] * t["best_us"] for t in session["tasks"] if t["best_us"] > 0}
    networks, others = [], []
    for _ in range(args.rounds):
        networks.append(1e3 * bench(args, plain, 1)["min_ms"])
        once = bench(args, timed, 1)
        rest = [k for k in once["kernels"] if re.match(r"node '([^']*)'", k["node"]).group(1) not in nodes]
        others.append(sum(k["us"] for k in rest) / once["runs"])
    best, other = sum(kernels.values()), min(others)
    race = session["network"] or {}
    # The race of the whole has the clock that kernels have, a thread's own, and the wall's is for sessions without one.
    network = race["untuned_us"] * race["ratio"] if race.get("kept") else min(networks)
    return {"network": model.stem, "us": network, "kernels": len(kernels), "tuned_us": best, "other_us": other, "share": (best + other) / network,
            "of_untuned": race.get("ratio"), "kept": race.get("kept"), "trials": session["trials"], "stopped": session["stopped"], "noise": race.get("noise")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--time-limit", default="5m")
    parser.add_argument("--seconds", type=float, default=0.5, help="for timing one candidate, at most")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    print(f"{'network':<24} {'µs':>10} {'sum µs':>10} {'sum/network':>11} {'tuned part':>10} {'of untuned':>10} {'noise':>7} {'trials':>6}")
    for model in sorted(args.models.glob("*.onnx")):
        if args.only and model.stem not in args.only:
            continue
        kept = args.folder / f"{model.stem}.row.json"
        try:
            r = json.loads(kept.read_text()) if kept.exists() else row(model, args)
        except RuntimeError as error:
            print(f"{model.stem:<24} {error}")
            continue
        kept.write_text(json.dumps(r))
        rows.append(r)
        ratio, noise = (f"{r[k]:.3f}" if r[k] is not None else "" for k in ("of_untuned", "noise"))
        whole = r["tuned_us"] + r["other_us"]
        print(f"{r['network']:<24} {r['us']:>10.1f} {whole:>10.1f} {r['share']:>11.3f} {r['tuned_us'] / whole:>10.1%} {ratio:>10} {noise:>7} {r['trials']:>6}"
              f"{'' if r['kept'] in (True, None) else '  the untuned plan stays'}", flush=True)
    if rows:
        print(f"sum / network: at least 0.97 on {sum(r['share'] >= 0.97 for r in rows)} of {len(rows)}, least {min(r['share'] for r in rows):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
