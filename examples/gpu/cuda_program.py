"""The compiled functions that cuda_program.cu calls.

    cuda_program.py [--target "cuda -arch=sm_90"] [--folder .]

Writes smooth.so, features.so and distances.so. Sizes that a CUDA program knows only when it runs are symbolic.
"""

import argparse
import pathlib

import tenon
from tenon import te

ROWS = 16  # of a block's threads


def smooth():
    """y[i] = the mean of x[i - 1], x[i] and x[i + 1]; at the ends the element itself counts for what is missing."""
    n = te.var("n")
    x = te.placeholder((n,), name="x")
    y = te.compute((n,), lambda i: (x[te.max(i - 1, 0)] + x[i] + x[te.min(i + 1, n - 1)]) * (1 / 3), name="y")
    s = te.create_schedule(y.op)
    block, thread = s[y].split(y.op.axis[0], factor=256)
    s[y].bind(block, te.thread_axis("blockIdx.x"))
    s[y].bind(thread, te.thread_axis("threadIdx.x"))
    return s, [x, y]


def of_rows(name, element, finish, inputs=64, outputs=16):
    """out[i, j] = finish(sum of element(x[i, k], w[j, k]) over k): a thread for each, its sum in a register."""
    n, k = te.var("n"), te.reduce_axis((0, inputs), name="k")
    x = te.placeholder((n, inputs), name="x")
    w = te.placeholder((outputs, inputs), name="w")
    total = te.compute((n, outputs), lambda i, j: te.sum(element(x[i, k], w[j, k]), axis=k), name="total")
    out = te.compute((n, outputs), lambda i, j: finish(total[i, j]), name=name)
    s = te.create_schedule(out.op)
    block, row = s[out].split(out.op.axis[0], factor=ROWS)
    s[out].bind(block, te.thread_axis("blockIdx.x"))
    s[out].bind(row, te.thread_axis("threadIdx.y"))
    s[out].bind(out.op.axis[1], te.thread_axis("threadIdx.x"))
    s[total].set_scope("local")
    s[total].compute_at(s[out], out.op.axis[1])
    return s, [x, w, out]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cuda -arch=sm_90")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("."))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    schedules = {
        "smooth": smooth(),
        "features": of_rows("features", lambda x, w: x * w, lambda total: te.max(total, 0.0)),
        "distances": of_rows("distances", lambda x, w: (x - w) * (x - w), te.sqrt),
    }
    for name, (s, tensors) in schedules.items():
        path = options.folder / f"{name}.so"
        tenon.build(s, tensors, options.target, name=name).save(str(path))
        print(f"{path}: {name}({', '.join(t.name for t in tensors)})")


if __name__ == "__main__":
    main()
