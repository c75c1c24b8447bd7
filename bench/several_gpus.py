#!/usr/bin/env python3
"""Networks on every GPU of a machine: the same bits on each, and what they hold of a device's memory beside PyTorch.

    bench/several_gpus.py --tenon build/bin/tenon --models DIR [--only bert-base,…] [--precisions fp32,fp16] [--calls 200]

needs: CUDA devices of one kind, torch, onnx, numpy, apache-tvm-ffi

DIR holds the models with their weights. Each is compiled once, for sm_90a. Then

1. one process calls it on each GPU in turn, and on all of them at once from two threads each, every thread on a stream of its own;
2. a process for each GPU, which sees that one alone, calls it there;

and all of them must give the bits of the first. At last each is called in a process of its own (`tenon bench`), and PyTorch's
operators on the same graph, replayed as a CUDA graph and by themselves, in two more; the most that the driver says is taken of the
first GPU while they run, context included, less what is taken before.
"""
import argparse
import ctypes
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import gpu_networks
import running

MODELS = ["bert-base", "resnet50", "mobilenet_v2", "bert-tiny"]


def inputs_of(model, device):
    import torch

    return [torch.from_numpy(v).to(device) for v in running.draw(model)[0].values()]


def call_on(function, model, device, outputs, calls):
    """The digest of what calls on a stream of this thread's own give, or which one differs from the first."""
    import torch

    with torch.cuda.device(device), torch.cuda.stream(torch.cuda.Stream(device)):
        inputs, digest = inputs_of(model, device), None
        results = [torch.full(shape, 7, dtype=dtype, device=device) for shape, dtype in outputs]
        for i in range(calls):
            function(*inputs, *results)
            if i % 20 and i + 1 < calls:
                continue
            torch.cuda.current_stream().synchronize()
            now = hashlib.sha256(b"".join(r.cpu().numpy().tobytes() for r in results)).hexdigest()
            if digest not in (None, now):
                return f"call {i} differs from the first"
            digest = now
    return digest


def outputs_of(model):
    import torch

    graph = gpu_networks.Graph(model, torch.float32)
    return [(tuple(r.shape), r.dtype) for r in graph(*inputs_of(model, "cuda"))]


def everywhere(library, model, calls):
    """Digests by where they were made, in this process."""
    import torch
    import tvm_ffi

    function = tvm_ffi.load_module(str(library))["main"]
    outputs, found = outputs_of(model), {}
    devices = [torch.device("cuda", i) for i in range(torch.cuda.device_count())]
    for device in devices:
        found[str(device)] = call_on(function, model, device, outputs, calls)

    def at_once(device, place):
        found[place] = call_on(function, model, device, outputs, calls)

    if len(devices) > 1:
        threads = []
        for device in devices:
            for i in range(2):
                place = f"{device} beside others, thread {i}"
                found[place] = "nothing came"
                threads.append(threading.Thread(target=at_once, args=(device, place)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return found


def taken():
    """Bytes of the first GPU that the driver says are in use."""
    out = subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True)
    return int(out.stdout.split()[0]) << 20


def most_taken(command):
    before, most = taken(), 0
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while child.poll() is None:
        most = max(most, taken())
    if child.returncode:
        raise SystemExit(f"{command[:3]}: {child.stderr.read()[-400:]}")
    return most - before


def pytorch(model, precision, replay):
    import torch

    torch.backends.cudnn.benchmark = True
    dtype = gpu_networks.TYPES[precision]
    with torch.inference_mode():
        graph = gpu_networks.Graph(model, dtype)
        inputs = [v.to(dtype) if v.is_floating_point() else v for v in inputs_of(model, "cuda")]
        call = (lambda: graph(*inputs)) if not replay else gpu_networks.replayed(lambda: graph(*inputs))
        end = time.monotonic() + 3
        while time.monotonic() < end:
            call()
            torch.cuda.synchronize()


def context_alone():
    """A context, and nothing in it."""
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    if driver.cuInit(0) or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
        raise SystemExit("no context")
    time.sleep(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", default="build/bin/tenon")
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--precisions", default="fp32,fp16")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--library", help=argparse.SUPPRESS)
    options = parser.parse_args()
    own = [sys.executable, __file__, "--models", str(options.models)]
    if options.child in ("eager", "graph"):
        return pytorch(str(options.models / f"{options.only}.onnx"), options.precisions, options.child == "graph")
    if options.child == "context":
        return context_alone()
    if options.child == "one":
        return print(*everywhere(options.library, str(options.models / f"{options.only}.onnx"), options.calls).values())
    import torch

    count = torch.cuda.device_count()
    print(f"{count} x {torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print(f"a context alone takes {most_taken([*own, '--child', 'context']) >> 20} MiB")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only.split(","):
            for precision in options.precisions.split(","):
                model, library = str(options.models / f"{name}.onnx"), pathlib.Path(folder) / f"{name}-{precision}.so"
                shapes = running.shape_words(model)
                subprocess.run([options.tenon, "compile", model, "-o", library, "--target", "cuda -arch=sm_90a", "--precision", precision, "-q",
                                *shapes], check=True)
                found = everywhere(library, model, options.calls)
                for i in range(count):
                    child = subprocess.run([*own, "--child", "one", "--library", str(library), "--only", name, "--calls", str(options.calls)],
                                           env={**os.environ, "CUDA_VISIBLE_DEVICES": str(i)}, capture_output=True, text=True)
                    found[f"alone on {i}"] = child.stdout.strip() or child.stderr[-300:]
                equal = len(set(found.values())) == 1
                failed |= not equal
                ours = most_taken([options.tenon, "bench", str(library), "--device", "cuda:0", "--duration", "3"])
                graph, eager = (most_taken([*own, "--child", way, "--only", name, "--precisions", precision]) for way in ("graph", "eager"))
                print(f"{name} {precision}: {len(found)} places, {'equal' if equal else found}; memory {ours >> 20} MiB, PyTorch's graph "
                      f"{graph >> 20} MiB, {ours / graph:.2f}; eager {eager >> 20} MiB, {ours / eager:.2f}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
