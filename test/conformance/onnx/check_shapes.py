#!/usr/bin/env python3
"""The importer's shape inference against ONNX's own, tensor by tensor, over whole models.

Usage: check_shapes.py ONNX_TO_GRAPH MODEL.onnx …      needs: pip install onnx
Tensors are matched by name. Types must agree, and dims wherever both sides are numbers.
"""
import re
import sys
import subprocess

import onnx

NAMES = {1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64", 12: "u32", 13: "u64"}


def onnx_types(path: str) -> dict:
    model = onnx.shape_inference.infer_shapes(onnx.load(path, load_external_data=False), data_prop=True)
    types = {}
    for info in [*model.graph.value_info, *model.graph.input, *model.graph.output]:
        tensor = info.type.tensor_type
        if tensor.HasField("shape"):
            dims = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
            types[info.name] = (NAMES.get(tensor.elem_type), dims)
    return types


def split_dims(text: str) -> list:
    """At commas outside brackets: dims may be min(a, b)."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()] if text else []


def our_types(text: str) -> dict:
    types = {}
    for name, dtype, dims in re.findall(r"%\d+ \"((?:[^\"\\]|\\.)*)\": (\w+)\[([^\]]*)\]", text):
        types[name] = (dtype, [int(d) if d.isdigit() else None for d in split_dims(dims)])
    return types


def main() -> int:
    tool, paths = sys.argv[1], sys.argv[2:]
    wrong = 0
    for path in paths:
        run = subprocess.run([tool, path], capture_output=True, text=True)
        if run.returncode:
            print(f"{path}: {run.stdout.splitlines()[1][:300]}")
            wrong += 1
            continue
        theirs, ours = onnx_types(path), our_types(run.stdout)
        both = [name for name in theirs if name in ours]
        differ = []
        for name in both:
            (a, x), (b, y) = theirs[name], ours[name]
            if a != b or len(x) != len(y) or any(p != q for p, q in zip(x, y) if p is not None and q is not None):
                differ.append(f"  {name}: {b}{y}, ONNX says {a}{x}")
        sharper = sum(None in theirs[name][1] and None not in ours[name][1] for name in both)
        print(f"{path}: {len(both)} tensors compared, {len(differ)} differ, {sharper} known here only", *differ[:10], sep="\n")
        wrong += bool(differ)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
