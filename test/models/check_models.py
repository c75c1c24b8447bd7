#!/usr/bin/env python3
"""Compiles models as they are and compares the libraries with ONNX Runtime, those with open sizes at five of them.

Usage: check_models.py TENON MODEL.onnx | FOLDER …          needs: onnx, onnxruntime, apache-tvm-ffi

One library each, at the compiler's defaults. All dims that a model leaves open take another size at a time: 1, a prime, around
a tile's end, and a larger one. Floats are normally distributed, masks are ones and, past the middle, zeros, other integers are
from 0 to 99. A line is a model: its open dims, how many nodes it has, how many kernels the library has, seconds of compiling,
and the largest max|a - b| / max(1, max|b|) of any output at any size. Fails where that is above 1e-4.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
import tvm_ffi
from distances import distance

SIZES = (1, 7, 15, 17, 32)
IMAGES = (1, 2, 3, 5, 8)  # of what has pixels
MOST = 1e-4


def inputs_of(graph):
    given = {t.name for t in graph.initializer}
    return [(i.name, i.type.tensor_type.elem_type, [d.dim_value or d.dim_param for d in i.type.tensor_type.shape.dim])
            for i in graph.input if i.name not in given]


def draw(rng, name, elem_type, shape):
    dtype = onnx.helper.tensor_dtype_to_np_dtype(elem_type)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    if "mask" not in name:
        return rng.integers(0, 100, shape).astype(dtype)
    mask = np.ones(shape, dtype)
    mask[..., shape[-1] // 2 + 1:] = 0
    return mask


def feeds(inputs):
    """Inputs of a call, at one size after the other."""
    params = sorted({d for _, _, dims in inputs for d in dims if isinstance(d, str)})
    sizes = IMAGES if any(len(dims) == 4 for _, _, dims in inputs) else SIZES
    rng = np.random.default_rng(0)
    for k in range(len(sizes) if params else 1):
        of = {p: sizes[(k + 2 * i) % len(sizes)] for i, p in enumerate(params)}  # not all of one size
        yield {name: draw(rng, name, kind, [of.get(d, d) for d in dims]) for name, kind, dims in inputs}


def check(tenon, path, tmp):
    graph = onnx.load(path, load_external_data=False).graph
    inputs = inputs_of(graph)
    library = tmp / f"{path.stem}.so"
    begun = time.monotonic()
    subprocess.run([tenon, "compile", path, "-o", library, "-q"], check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - begun
    about = json.loads(subprocess.run([tenon, "inspect", "--json", library], check=True, capture_output=True, text=True).stdout)
    main = tvm_ffi.load_module(str(library)).main
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    worst = 0.0
    for feed in feeds(inputs):
        got = main(*feed.values())
        got = list(got) if isinstance(got, (tvm_ffi.Array, list, tuple)) else [got]
        far = distance(map(np.from_dlpack, got), session.run(None, feed))
        worst = far if not far <= worst else worst
    library.unlink()
    said = ", ".join(sorted({str(d) for _, _, dims in inputs for d in dims if isinstance(d, str)}))
    print(f"{path.stem:22s} {said:12s} {len(graph.node):5d} nodes {len(about['kernels']):4d} kernels "
          f"{seconds:7.2f} s {worst:.2e}{'' if worst <= MOST else '  TOO FAR'}", flush=True)
    return worst <= MOST


def main():
    tenon, *given = sys.argv[1:]
    paths = [p for g in map(pathlib.Path, given) for p in (sorted(g.glob("*.onnx")) if g.is_dir() else [g])]
    with tempfile.TemporaryDirectory() as tmp:
        results = [check(tenon, p, pathlib.Path(tmp)) for p in paths]
    print(f"{sum(results)} of {len(results)} models within {MOST:g}")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
