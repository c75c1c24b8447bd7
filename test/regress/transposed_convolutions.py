#!/usr/bin/env python3
"""Transposed convolutions of all kinds: one by one axis to three, groups, steps, paddings, sizes that are open.

Usage: transposed_convolutions.py TENON
needs: pip install apache-tvm-ffi onnx numpy

They are convolutions of their phases where sizes are known well enough, and products and sums of windows elsewhere. What
is right is the definition: each element adds the kernel, times itself, to the image.
"""
import argparse
import itertools
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import tvm_ffi
from onnx import TensorProto, helper, numpy_helper

COUNT = 60


def expected(x, w, bias, strides, dilations, pads, more, group):
    n = x.ndim - 2
    whole = [(x.shape[2 + a] - 1) * strides[a] + (w.shape[2 + a] - 1) * dilations[a] + 1 + more[a] for a in range(n)]
    image = np.zeros((x.shape[0], w.shape[1] * group, *whole))
    depth, maps = w.shape[0] // group, w.shape[1]
    for tap in itertools.product(*(range(k) for k in w.shape[2:])):
        places = tuple(slice(t * d, t * d + (size - 1) * s + 1, s) for t, d, s, size in zip(tap, dilations, strides, x.shape[2:]))
        for g in range(group):
            taps = w[(slice(g * depth, (g + 1) * depth), slice(None), *tap)]
            image[(slice(None), slice(g * maps, (g + 1) * maps), *places)] += np.einsum("bc...,cm->bm...", x[:, g * depth:(g + 1) * depth], taps)
    cut = tuple(slice(pads[a], whole[a] - pads[n + a]) for a in range(n))
    return image[(slice(None), slice(None), *cut)] + bias.reshape(-1, *[1] * n)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tenon", type=pathlib.Path)
    tenon, wrong, phases = str(parser.parse_args().tenon.resolve()), [], 0
    draw, numbers = random.Random(3), np.random.default_rng(3)
    normal = lambda *shape: numbers.standard_normal(shape).astype(np.float32)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for number in range(COUNT):
            n, group = draw.choice((1, 2, 2, 2, 3)), draw.choice((1, 1, 2, 3))
            depth, maps = group * draw.choice((1, 2, 5, 8)), draw.choice((1, 3, 8))
            kernel, strides = [draw.choice((1, 2, 3, 4, 5)) for _ in range(n)], [draw.choice((1, 1, 2, 2, 3)) for _ in range(n)]
            dilations = [draw.choice((1, 1, 1, 2)) for _ in range(n)]
            more = [draw.randrange(max(pair)) if draw.random() < 0.3 else 0 for pair in zip(strides, dilations)]
            least = [draw.choice((1, 4, 7, 12)) for _ in range(n)]
            reach = [(k - 1) * d for k, d in zip(kernel, dilations)]
            pads = [draw.randrange(r + 1) for r in reach] + [draw.randrange(r + 1) for r in reach]
            for a in range(n):  # something is left at the least size
                room = (least[a] - 1) * strides[a] + reach[a] + more[a]
                pads[a] = min(pads[a], room)
                pads[n + a] = min(pads[n + a], room - pads[a])
            is_open = draw.random() < 0.5
            dims = [1, depth, *((f"d{a}" if is_open else size) for a, size in enumerate(least))]
            w, bias = normal(depth, maps, *kernel), normal(maps * group)
            node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], strides=strides, dilations=dilations, pads=pads, output_padding=more, group=group)
            graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
                                      [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(w, "w"), numpy_helper.from_array(bias, "b")])
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "m.onnx")
            what = f"{number}: {node.attribute}".replace("\n", " ")
            shape = ["--shape", f"x:1x{depth}x" + "x".join(f"d{a}[{size}..{size + 9}]" for a, size in enumerate(least))] if is_open else []
            library = folder / f"{number}.so"
            done = subprocess.run([tenon, "compile", folder / "m.onnx", "-o", library, "-q", "--verify-each", "--print-after", "import", *shape],
                                  capture_output=True, text=True)
            phases += " = conv(" in done.stdout + done.stderr
            if done.returncode != 0:
                wrong.append(f"{what}: {done.stderr}")
                continue
            call = tvm_ffi.load_module(str(library)).main
            for further in (0, 1, 6) if is_open else (0,):
                x = normal(1, depth, *(size + further for size in least))
                got, want = np.from_dlpack(call(x)), expected(x, w, bias, strides, dilations, pads, more, group)
                if got.shape != want.shape or not np.allclose(got, want, rtol=1e-4, atol=1e-4):
                    wrong.append(f"{what} at {x.shape}: {got.shape} for {want.shape}, or other numbers")
    if not COUNT // 4 <= phases <= COUNT * 3 // 4:
        wrong.append(f"expected some of both kinds, but {phases} have convolutions")
    print("\n".join(wrong) + f"\n{COUNT - len(wrong)} of {COUNT} are right, {phases} by convolutions")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
