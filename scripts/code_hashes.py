#!/usr/bin/env python3
"""Says where the code that Tenon generates has changed.

usage: code_hashes.py [--build build] [--models DIR] [--only NAME …] [--kernels] [--update] [--keep DIR]

Compiles every network of DIR (default: test/models) for fixed targets and compares hashes of the loop IR and of the code,
for the C target of its source, with those of test/hashes/networks.json; --kernels adds the CUDA and OpenCL sources of the
kernels in examples/gpu (it needs the Python package: build/python). --update writes what is found, for a change that means
to change code: its commit says why. --keep leaves the texts in a folder, to be compared line by line.

Weights decide nothing here, so their files are holes of zeros. Networks that have no hash yet are only reported.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
HASHES = ROOT / "test" / "hashes"
TARGETS = {
    "x86-64-v3": "llvm -mcpu=x86-64-v3",
    "x86-64-v4": "llvm -mcpu=x86-64-v4",
    "cortex-a72": "llvm -mcpu=cortex-a72",
    "c": "c",
    "wasm32": "llvm -mtriple=wasm32-unknown-unknown",
}
GPU_TARGETS = {"cuda": "cuda -arch=sm_90a -host=llvm -mcpu=x86-64", "opencl": "opencl -max_shared_memory_per_block=48K -host=llvm -mcpu=x86-64"}
# Kernels by the module of examples/gpu that schedules them, for what runs on any GPU and for NVIDIA's alone.
PORTABLE = {
    "vector_add": "m.schedule()",
    "matmul": "m.schedule(1024)",
    "softmax": "m.schedule(256, 4096)",
    "reduction": "m.schedule(256, 4096)",
    "convolution": "m.schedule(1, 28, 128)",
}
NVIDIA = {
    "matmul_fp16": "(m.schedule(1024), None)",
    "matmul_wgmma": "(m.schedule(1024), None)",
    "matmul_tensor_cores": "m.by_wgmma(1024)",
}


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def with_holes(model, folder):
    """A copy of the model beside files of weights that hold nothing."""
    shutil.copy(model, folder)
    table = model.with_suffix("").with_suffix(".weights.json")
    if table.exists():
        weights = json.loads(table.read_text())
        with open(folder / weights["file"], "wb") as file:
            file.truncate(weights["bytes"])
    return folder / model.name


def compile_network(tenon, model, target, keep):
    """Hashes by kind of text, or the reason why there are none."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = with_holes(model, folder)
        output = folder / "out"
        source = target == "c"
        output = output.with_suffix(".c" if source else ".wasm" if target == "wasm32" else ".so")
        command = [tenon, "compile", path, "-o", output, "--target", TARGETS[target], "--jobs", "1"]
        command += ["--emit", "loop" if source else "loop,asm"]
        if source:
            command += ["--format", "c", "--params", "separate"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode:
            lines = done.stderr.splitlines()
            return next((line for line in lines if "error: " in line), done.stderr).split("error: ")[-1]
        texts = {"loop": output.with_name(output.name + ".loop.txt")}
        if source:
            texts["source"] = output
        else:
            texts["code"] = output.with_name(output.name + ".s")
        if keep:
            for kind, text in texts.items():
                shutil.copy(text, keep / f"{model.stem}.{target}.{kind}")
        return {kind: digest(text) for kind, text in texts.items()}


def networks(options):
    models = sorted(options.models.glob("*.onnx"))
    models = [m for m in models if not options.only or m.stem in options.only]
    jobs = [(m, t) for m in models for t in TARGETS]
    tenon = options.build / "bin" / "tenon"
    found = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {pool.submit(compile_network, tenon, m, t, options.keep): (m.stem, t) for m, t in jobs}
        for run, (model, target) in runs.items():
            found[f"{model} {target}"] = run.result()
    return found


def kernels(options):
    """Sources of GPU kernels; each example is a process of its own, since they import each other by name."""
    program = (
        "import importlib, sys, tenon\n"
        "m = importlib.import_module(sys.argv[1])\n"
        "made = eval(sys.argv[2])\n"
        "print(tenon.build(*made, sys.argv[3], name='f').get_source())\n")
    environment = dict(os.environ, PYTHONPATH=f"{options.build / 'python'}:{ROOT / 'examples' / 'gpu'}")
    found = {}
    for kind, target in GPU_TARGETS.items():
        for name, make in {**PORTABLE, **(NVIDIA if kind == "cuda" else {})}.items():
            done = subprocess.run([options.python, "-c", program, name, make, target], env=environment,
                                  capture_output=True, text=True)
            key = f"{name} {kind}"
            if done.returncode:
                found[key] = done.stderr.strip().splitlines()[-1]
                continue
            found[key] = {"source": hashlib.sha256(done.stdout.encode()).hexdigest()[:16]}
            if options.keep:
                (options.keep / f"{name}.{kind}").write_text(done.stdout)
    return found


def compare(found, file, update):
    """Prints what differs; the number of differences."""
    known = json.loads(file.read_text()) if file.exists() else {}
    wrong = 0
    for key, hashes in found.items():
        if isinstance(hashes, str):
            if key in known:
                wrong += 1
            print(f"{key}: does not compile: {hashes.splitlines()[0][:160]}")
            continue
        for kind, value in hashes.items():
            if key not in known:
                print(f"{key}: {kind} has no hash yet")
            elif known[key].get(kind) != value:
                wrong += 1
                print(f"{key}: {kind} changed")
    if update:
        known.update({key: h for key, h in found.items() if isinstance(h, dict)})
        file.parent.mkdir(exist_ok=True)
        lines = [f"{json.dumps(key)}: {json.dumps(known[key])}" for key in sorted(known)]
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return 0
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "test" / "models")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    found = networks(options)
    wrong = compare(found, HASHES / "networks.json", options.update)
    if options.kernels:
        sources = kernels(options)
        found.update(sources)
        wrong += compare(sources, HASHES / "kernels.json", options.update)
    compiled = sum(isinstance(h, dict) for h in found.values())
    print(f"code_hashes: {compiled} of {len(found)} compiled, {wrong} changed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
