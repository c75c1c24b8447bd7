#!/usr/bin/env python3
"""Writes references/MODEL.npz for the models of test/models: seeded inputs and what ONNX Runtime makes of them.

usage: make_references.py                     needs numpy, onnx, onnxruntime
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def draw(value, random):
    tensor = value.type.tensor_type
    shape = [dim.dim_value for dim in tensor.shape.dim]
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    if "mask" in value.name:
        return np.ones(shape, dtype)
    if dtype.kind in "iu":
        return random.integers(0, 1000, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, ROOT / "bench" / "fill_weights.py", folder], check=True)
        for path in sorted(pathlib.Path(folder).glob("*.onnx")):
            model = onnx.load(path, load_external_data=False)
            weights = {tensor.name for tensor in model.graph.initializer}
            random = np.random.default_rng(0)
            feeds = {v.name: draw(v, random) for v in model.graph.input if v.name not in weights}
            session = onnxruntime.InferenceSession(str(path))
            names = [output.name for output in session.get_outputs()]
            results = dict(zip(names, session.run(None, feeds)))
            arrays = {f"in/{name}": array for name, array in feeds.items()}
            arrays |= {f"out/{name}": array for name, array in results.items()}
            np.savez_compressed(HERE / "references" / f"{path.stem}.npz", **arrays)


if __name__ == "__main__":
    main()
