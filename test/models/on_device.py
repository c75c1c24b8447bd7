#!/usr/bin/env python3
"""Networks on a device beside ONNX Runtime, in small sizes: all that a GPU would run, on OpenCL's CPU device where there is no GPU.

Usage: on_device.py TENON MODEL.onnx | FOLDER … [--target opencl] [--precision fp32]
needs: onnx, onnxruntime, numpy, apache-tvm-ffi, the package tenon

Sizes that a model fixes become smaller where the graph can be computed so: images of 64 x 64, texts of 16 tokens. Open ones are 7.
Floats are normally distributed, masks are ones and, past the middle, zeros, other integers are from 0 to 99. A line is a model: its
inputs, launches, waits, seconds of compiling and of the first call, and the largest max|a - b| / max(1, max|b|) of any output.
Fails where that is above 1e-4 (fp32).
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from distances import distance

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance" / "onnx"))
from dlpack import as_bytes  # noqa: E402

OPEN, IMAGE, TOKENS = 7, 64, 16
MOST = {"fp32": 1e-4}


def inputs_of(graph):
    given = {t.name for t in graph.initializer}
    return [i for i in graph.input if i.name not in given]


def small(model):
    """The model with smaller inputs; every type that it says of other values is gone."""
    small = onnx.ModelProto()
    small.CopyFrom(model)
    for i in inputs_of(small.graph):
        dims = i.type.tensor_type.shape.dim
        for axis, d in enumerate(dims):
            if not d.dim_value:
                d.dim_value = OPEN
            elif len(dims) == 4 and axis > 1:
                d.dim_value = min(d.dim_value, IMAGE)
            elif len(dims) == 2 and axis == 1:
                d.dim_value = min(d.dim_value, TOKENS)
    for o in small.graph.output:
        o.type.tensor_type.ClearField("shape")
    del small.graph.value_info[:]
    return small


def only_open(model):
    """The model with the sizes that it fixes."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for i in inputs_of(model.graph):
        for d in i.type.tensor_type.shape.dim:
            d.dim_value = d.dim_value or OPEN
    return model


def draw(graph):
    rng, feed = np.random.default_rng(0), {}
    for i in inputs_of(graph):
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
        if dtype.kind == "f":
            feed[i.name] = rng.standard_normal(shape).astype(dtype)
        elif "mask" in i.name:
            feed[i.name] = np.ones(shape, dtype)
            feed[i.name][..., shape[-1] // 2 + 1:] = 0
        else:
            feed[i.name] = rng.integers(0, 100, shape).astype(dtype)
    return feed


def expected(path, models):
    """The first of the models that ONNX Runtime computes, its inputs and outputs."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for model in models:
        onnx.save(model, path)
        feed = draw(model.graph)
        try:
            return feed, onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, feed)
        except Exception as error:  # of its own kinds: a size that the graph does not take
            said = error
    raise said


def check(args, source, tmp):
    import tenon

    model = onnx.load(source, load_external_data=False)
    path, library = tmp / source.name, tmp / f"{source.stem}.so"
    for name in {entry.value for t in model.graph.initializer for entry in t.external_data if entry.key == "location"}:
        shutil.copy(source.parent / name, tmp / name)  # links of any kind are refused
    feed, want = expected(path, [small(model), only_open(model)])
    begun = time.monotonic()
    subprocess.run([args.tenon, "compile", path, "-o", library, "-q", "--target", args.target, "--precision", args.precision], check=True,
                   stdout=subprocess.DEVNULL)
    compiled = time.monotonic()
    about = json.loads(subprocess.run([args.tenon, "inspect", "--json", library], check=True, capture_output=True, text=True).stdout)
    place = (tenon.opencl if args.target.startswith("opencl") else tenon.cuda)(0)
    main = tenon.runtime.load_module(str(library))["main"]
    given = [tenon.nd.array(as_bytes(x), place) for x in feed.values()]
    begun_call = time.monotonic()
    got = main(*given)
    results = list(got) if len(want) > 1 else [got]
    far = distance([a.numpy().view(b.dtype) for a, b in zip(results, want, strict=True)], want)
    called = time.monotonic()
    sizes = ["x".join(map(str, x.shape)) or "scalar" for x in feed.values()]
    sizes = ", ".join(sizes[:3]) + (f", and {len(sizes) - 3} more" if len(sizes) > 3 else "")
    launches = sum(k["launches"] for k in about["kernels"])
    print(f"| {source.stem} | {sizes} | {launches} | {about['functions'][0].get('waits', 0)} | {compiled - begun:.1f} | "
          f"{called - begun_call:.1f} | {far:.1e} |", flush=True)
    library.unlink()
    path.unlink()
    return far <= MOST.get(args.precision, np.inf)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tenon", type=pathlib.Path)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--target", default="opencl")
    parser.add_argument("--precision", default="fp32")
    args = parser.parse_args()
    args.tenon = args.tenon.resolve()
    paths = [p for g in args.models for p in (sorted(g.glob("*.onnx")) if g.is_dir() else [g])]
    print("| model | inputs | launches | waits | compiled, s | first call, s | error |\n|---|---|---|---|---|---|---|")
    right = 0
    for path in paths:
        with tempfile.TemporaryDirectory() as tmp:
            try:
                right += check(args, path, pathlib.Path(tmp))
            except Exception as error:  # the others are wanted, too
                print(f"| {path.stem} | {type(error).__name__}: {str(error).splitlines()[0][:150]} |", flush=True)
    print(f"{right} of {len(paths)}")
    return 0 if paths and right == len(paths) else 1


if __name__ == "__main__":
    sys.exit(main())
