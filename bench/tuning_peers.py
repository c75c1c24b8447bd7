#!/usr/bin/env python3
"""The best that tuning found of each kernel beside ONNX Runtime, and beside MetaSchedule on six of them.

    bench/tuning_suite.py --log LOG                                     # first: finds them
    bench/tuning_peers.py --log LOG [--metaschedule PYTHON] [--only WORD] [--trials 64] [--json OUT]

Every kernel of bench/tuning_suite.txt becomes an ONNX model of so many copies of it, each on inputs of its own, that a call takes a
fifth of a millisecond, what calling takes aside. Weights are constants for everybody; inputs and results are row-major. Tenon's library
is compiled by the log, ONNX Runtime reads the same file; both run on one thread, in turns (peers.py). Printed are microseconds of one
kernel and the peers' times over Tenon's: above 1 Tenon is faster. --metaschedule names the Python of an environment that has
apache-tvm==0.27.0.post1, apache-tvm-ffi==0.1.14.post1, xgboost, psutil and cloudpickle; it tunes six kernels, whose weights are operands, with 64 trials
each (ten minutes together), and keeps what it found in --folder. --sketches 2000 puts the best of so many trials of Tenon's own sketches beside the
same six (peer_sketches.py; hours, and killed it goes on where it was). Needs numpy, onnx, onnxruntime and apache-tvm-ffi here; a quiet
machine.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

os.environ.update(TENON_NUM_THREADS="1", OMP_NUM_THREADS="1")

import numpy as np
import onnx
import onnxruntime
import tvm_ffi

import graph_models
import peers
from tuning_suite import HERE, kernels

# Of the suite, those that MetaSchedule tunes too: what peer_metaschedule.py calls them.
SIX = {
    "product 512x64x512": "product 512 64 512",
    "bert-base attention output 128x768x768": "product 128 768 768",
    "resnet50 3x3 of 64 on 56": "conv 64 64 3 56",
    "resnet50 1x1 of 1024 to 256 on 14": "conv 1024 256 1 14",
    "depthwise 3x3 of 144 on 56": "depthwise 144 3 56",
    "softmax of 1536 rows of 128": "softmax 1536 128",
}


def tenon_runner(library, feeds):
    """Results go where the first call's went, as ONNX Runtime's do."""
    # Not unloaded while its function is called.
    module = tvm_ffi.load_module(str(library))
    arguments = []
    for value in feeds.values():
        arguments.append(peers.aligned(value.shape, value.dtype))
        arguments[-1][...] = value
    main = module.main
    made = main(*map(tvm_ffi.from_dlpack, arguments))
    made = list(made) if isinstance(made, (list, tuple)) or type(made).__name__ == "Array" else [made]
    results = [peers.aligned(r.shape, r.dtype) for r in map(np.from_dlpack, made)]
    given = [tvm_ffi.from_dlpack(x) for x in [*arguments, *results]]

    def call(kept=(module, arguments)):
        main(*given)
        return results

    return peers.InProcess(lambda: main(*given)), call


def ort_runner(path, feeds):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    for out in session.get_outputs():
        kind = np.dtype(np.int32 if out.type == "tensor(int32)" else np.float32)
        binding.bind_ortvalue_output(out.name, onnxruntime.OrtValue.ortvalue_from_shape_and_type(out.shape, kind, "cpu"))
    return peers.InProcess(lambda: session.run_with_iobinding(binding)), lambda: session.run(None, feeds)


def check(name, got, want):
    for a, b in zip(got, want, strict=True):
        error = np.abs(a.astype(np.float64) - b).max() / max(np.abs(b).max(), 1e-30)
        if not error < 1e-4:
            raise RuntimeError(f"{name}: answers differ by {error:.1e}")


def row(name, text, args, folder):
    # What one takes, to know how many make a call.
    microseconds = None
    for copies in (1, None):
        if copies is None:
            copies = min(64, max(1, round(200 / microseconds)))
            if copies == 1:
                break
        model, feeds = graph_models.model(text, copies)
        path, library = folder / f"{copies}.onnx", folder / f"{copies}.so"
        onnx.save(model, path)
        command = [args.build / "bin" / "tenon", "compile", path, "-o", library, "--target", args.target, *(["--log", args.log] if args.log else [])]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        ours, ask = tenon_runner(library, feeds)
        theirs, ask_them = ort_runner(path, feeds)
        check(name, ask(), ask_them())
        microseconds = 1e6 * min(ours.time(1) for _ in range(5))
    seconds, ratios = peers.race([ours, theirs], seconds=args.seconds)
    out = {"kernel": name, "copies": copies, "us": 1e6 * seconds[0] / copies, "onnxruntime": ratios[1]}
    others = {}
    if name in SIX and args.metaschedule:
        others["metaschedule"] = [args.metaschedule, HERE / "peer_metaschedule.py", *SIX[name].split(), "--trials", args.trials]
    if name in SIX and args.sketches:
        others["sketches"] = [sys.executable, HERE / "peer_sketches.py", *SIX[name].split(), "--trials", args.sketches]
    if others and copies > 1:  # theirs is one
        model, feeds = graph_models.model(text, 1)
        ours, _ = tenon_runner(folder / "1.so", feeds)
    for peer, command in others.items():
        environment = {**os.environ, "PYTHONPATH": str(args.build / "python")} if peer == "sketches" else None
        child = peers.Child([*command, "--folder", args.folder], env=environment)
        out[peer] = peers.race([ours, child], seconds=args.seconds)[1][1]
        child.close()
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=pathlib.Path, default=HERE / "tuning_suite.txt")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--log", default="", help="of tuning; without one kernels are as planning chooses")
    parser.add_argument("--metaschedule", default="", help="a Python that has apache-tvm")
    parser.add_argument("--trials", type=int, default=64, help="of MetaSchedule")
    parser.add_argument("--sketches", type=int, default=0, help="trials of Tenon's own sketches, which know no algorithm; 0: not beside them")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path.home() / ".cache" / "tenon-peers")
    parser.add_argument("--seconds", type=float, default=2.0, help="for one race")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    rows = []
    print(f"{'kernel':<44} {'µs':>10} {'ONNX Runtime':>13} {'MetaSchedule':>13} {'sketches':>9}")
    for name, text in kernels(args.suite):
        if args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                r = row(name, text, args, pathlib.Path(folder))
            except (RuntimeError, ValueError) as error:
                print(f"{name:<44} {error}")
                continue
        rows.append(r)
        meta, sketches = (f"{r[x]:.2f}" if x in r else "" for x in ("metaschedule", "sketches"))
        print(f"{name:<44} {r['us']:>10.2f} {r['onnxruntime']:>13.2f} {meta:>13} {sketches:>9}", flush=True)
        if args.json:
            args.json.write_text(json.dumps(rows, indent=1) + "\n")
    for peer, least in (("onnxruntime", 1.0), ("metaschedule", 0.97), ("sketches", 0.97)):
        ratios = [r[peer] for r in rows if peer in r]
        if ratios:
            print(f"{peer}: at least {least} on {sum(x >= least for x in ratios)} of {len(ratios)}; geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    sys.exit(main())
