#!/usr/bin/env python3
"""Compiles models as they are, with their sizes open, and compares one library with ONNX Runtime at five sizes.

Usage: check_open_sizes.py TENON MODEL.onnx | FOLDER …          needs: onnx, onnxruntime, apache-tvm-ffi

Of a folder those models are taken whose inputs have symbolic dims. All dims take another size at a time: 1, a prime, around
a tile's end, and larger ones. Floats are normally distributed, masks are ones, other integers are from 0 to 99. Fails where
max|a - b| is above 1e-4 · max(1, max|b|) for any output.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import tvm_ffi

SIZES = (1, 7, 15, 17, 32)
IMAGES = (1, 2, 3, 5, 8)  # of what has pixels


def open_inputs(path):
    graph = onnx.load(path, load_external_data=False).graph
    given = {t.name for t in graph.initializer}
    inputs = [(i.name, i.type.tensor_type.elem_type, [d.dim_value or d.dim_param for d in i.type.tensor_type.shape.dim])
              for i in graph.input if i.name not in given]
    return inputs if any(isinstance(d, str) for _, _, dims in inputs for d in dims) else None


def draw(rng, name, elem_type, shape):
    dtype = onnx.helper.tensor_dtype_to_np_dtype(elem_type)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return np.ones(shape, dtype) if "mask" in name else rng.integers(0, 100, shape).astype(dtype)


def check(tenon, path, tmp):
    inputs = open_inputs(path)
    library = tmp / f"{path.stem}.so"
    subprocess.run([tenon, "compile", path, "-o", library], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    main = tvm_ffi.load_module(str(library)).main
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    params = sorted({d for _, _, dims in inputs for d in dims if isinstance(d, str)})
    worst, rng = 0.0, np.random.default_rng(0)
    for k in range(len(SIZES)):
        sizes = IMAGES if any(len(dims) == 4 for _, _, dims in inputs) else SIZES
        of = {p: sizes[(k + 2 * i) % len(sizes)] for i, p in enumerate(params)}  # not all of one size
        feed = {name: draw(rng, name, kind, [of.get(d, d) for d in dims]) for name, kind, dims in inputs}
        got = main(*feed.values())
        got = list(got) if isinstance(got, (tvm_ffi.Array, list, tuple)) else [got]
        for a, b in zip(got, session.run(None, feed), strict=True):
            a = np.from_dlpack(a)
            assert a.shape == b.shape, f"{of}: {a.shape}, expected {b.shape}"
            if b.size:
                worst = max(worst, float(np.max(np.abs(a - b)) / max(1, np.max(np.abs(b)))))
    print(f"{path.name:30s} {', '.join(params):30s} {worst:.2e}", flush=True)
    return worst <= 1e-4


def main():
    tenon, *given = sys.argv[1:]
    paths = [p for g in map(pathlib.Path, given) for p in (sorted(g.glob("*.onnx")) if g.is_dir() else [g])]
    with tempfile.TemporaryDirectory() as tmp:
        results = [check(tenon, p, pathlib.Path(tmp)) for p in paths if open_inputs(p)]
    if not results:
        print("no model with open sizes")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
