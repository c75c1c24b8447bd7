"""One kernel tuned by TVM's MetaSchedule, which then answers how long it takes (peers.py).

    peer_metaschedule.py product M K N | conv IN OUT SIZE ON | depthwise CHANNELS SIZE ON | softmax ROWS COLUMNS
        --trials 64 --folder DIR [--mcpu znver5]

For an environment with apache-tvm==0.27.0.post1, apache-tvm-ffi==0.1.14.post1, xgboost, psutil and cloudpickle. What was found stays in the folder, where
the next one finds it. One thread.
"""

import argparse
import os
import pathlib
import sys

os.environ.update(TVM_NUM_THREADS="1", OMP_NUM_THREADS="1")

import numpy as np
import tvm
from tvm import te
from tvm.s_tir import meta_schedule as ms

import peer_kernels
import peers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel", choices=["product", "conv", "depthwise", "softmax"])
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--mcpu", default="znver5")
    args = parser.parse_args()
    tensors = peer_kernels.kernels(te, tvm.tirx.all, tvm.tirx.if_then_else)[args.kernel](*args.sizes)
    module = tvm.IRModule({"main": te.create_prim_func(tensors).with_attr("global_symbol", "main")})
    target = tvm.target.Target({"kind": "llvm", "mcpu": args.mcpu, "num-cores": 1})
    library = args.folder / f"{args.kernel}-{'x'.join(map(str, args.sizes))}-{args.trials}.so"
    if not library.exists():
        work = library.with_suffix("")
        work.mkdir(parents=True, exist_ok=True)
        database = ms.tune_tir(module, target, str(work), args.trials, num_trials_per_iter=min(64, args.trials), builder=ms.builder.LocalBuilder(timeout_sec=200), num_tuning_cores=1, seed=0)
        schedule = ms.tir_integration.compile_tir(database, module, target)
        if schedule is None:
            sys.exit("none of its trials worked")
        tvm.compile(schedule.mod, target=target).export_library(str(library))
    function = tvm.runtime.load_module(str(library))["main"]
    rng = np.random.default_rng(0)
    arrays = [tvm.runtime.tensor(rng.standard_normal([int(d) for d in t.shape]).astype(np.float32)) for t in tensors]
    peers.serve(lambda: function(*arrays), {"kernel": args.kernel, "trials": args.trials})


if __name__ == "__main__":
    main()
