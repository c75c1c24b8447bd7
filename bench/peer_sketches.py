"""One kernel by Tenon's sketches alone, as the user of auto_scheduler has it, which then answers how long it takes (peers.py).

    peer_sketches.py product M K N | conv IN OUT SIZE ON | depthwise CHANNELS SIZE ON | softmax ROWS COLUMNS
        --trials 2000 --folder DIR

Needs the Python package in PYTHONPATH. What was tried stays in the folder: whoever is killed goes on where it was, and what is done answers
at once. One thread.
"""

import argparse
import os
import pathlib

os.environ.update(TENON_NUM_THREADS="1", OMP_NUM_THREADS="1")

import numpy as np

import peer_kernels
import peers
import tenon
from tenon import auto_scheduler, te


def tried(log):
    return sum(1 for _ in auto_scheduler.load_records(str(log))) if log.exists() else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel", choices=["product", "conv", "depthwise", "softmax"])
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=0.2, help="for timing one candidate, at most")
    args = parser.parse_args()
    tensors = peer_kernels.kernels(te, te.all, te.if_then_else)[args.kernel](*args.sizes)
    task = auto_scheduler.SearchTask(compute_dag=auto_scheduler.ComputeDAG(tensors), target="llvm -num-cores=1")
    args.folder.mkdir(parents=True, exist_ok=True)
    log = args.folder / f"sketches-{args.kernel}-{'x'.join(map(str, args.sizes))}.json"
    left = args.trials - tried(log)
    if left > 0:
        before = [auto_scheduler.PreloadMeasuredStates(str(log))] if log.exists() else None
        options = auto_scheduler.TuningOptions(
            left, runner=auto_scheduler.LocalRunner(candidate_seconds=args.seconds), verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(str(log))]
        )
        task.tune(options, auto_scheduler.SketchPolicy(task, init_search_callbacks=before))
    function = tenon.build(*task.apply_best(str(log)), "llvm -num-cores=1")
    rng = np.random.default_rng(0)
    operands = [peers.aligned([int(d) for d in t.shape], np.float32) for t in tensors[:-1]]
    for operand in operands:
        operand[...] = rng.standard_normal(operand.shape)
    result = peers.aligned([int(d) for d in tensors[-1].shape], np.float32)
    peers.serve(lambda: function(*operands, result), {"kernel": args.kernel, "trials": tried(log)})


if __name__ == "__main__":
    main()
