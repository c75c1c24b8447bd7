#!/usr/bin/env python3
"""Write the weights files that stripped model graphs refer to, and copy the graphs beside them.

Usage: fill_weights.py OUT_DIR [MODEL …] [--models DIR]      needs numpy

DIR (default: test/models of this checkout) holds pairs MODEL.onnx and MODEL.weights.json; the latter lists each stripped
tensor with its dtype, shape, mean, standard deviation and place in the file. Tensors are drawn from a normal
distribution seeded by their names, so every machine gets the same bytes.
"""
import argparse
import json
import pathlib
import shutil
import zlib

import numpy as np


def fill(spec: dict, path: pathlib.Path) -> None:
    with open(path, "wb") as file:
        file.truncate(spec["bytes"])
        for tensor in spec["tensors"]:
            random = np.random.default_rng(zlib.crc32(tensor["name"].encode()))
            values = random.standard_normal(tensor["shape"], dtype=np.float32)
            values = values * np.float32(tensor["std"]) + np.float32(tensor["mean"])
            file.seek(tensor["offset"])
            file.write(values.astype(tensor["dtype"]).tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="MODEL")
    parser.add_argument("--models", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent / "test" / "models")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.names or sorted(p.name.removesuffix(".weights.json") for p in args.models.glob("*.weights.json")):
        spec = json.loads((args.models / f"{name}.weights.json").read_text())
        fill(spec, args.out / spec["file"])
        shutil.copyfile(args.models / f"{name}.onnx", args.out / f"{name}.onnx")
        print(f"{name}: {spec['bytes'] >> 20} MiB in {len(spec['tensors'])} tensors")


if __name__ == "__main__":
    main()
