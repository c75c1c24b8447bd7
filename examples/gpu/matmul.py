"""C = A B in fp32 on a GPU's CUDA cores.

    matmul.py [--size 4096] [--target "cuda -arch=sm_90"] [--save matmul.so] [--show]

A block of 256 threads makes 128 x 128 elements of C. Tiles of A and B, 8 steps of k at a time, go through shared memory,
which holds two of each: one is filled while the other is used, with one barrier between. Each thread keeps 8 x 8 sums in
registers, as 2 x 2 pieces of 4 x 4 (virtual threads), so that neighbouring threads read neighbouring vectors of shared
memory. The tile of A stands transposed, so that its columns are read as vectors too.
"""

import numpy as np

import tenon
from measure import arguments, build, check, seconds
from tenon import te

TILE, DEPTH, THREADS, PIECE = 128, 8, 16, 4


def schedule(n):
    a = te.placeholder((n, n), name="A")
    b = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    at = te.compute((n, n), lambda x, i: a[i, x], name="AT")
    c = te.compute((n, n), lambda i, j: te.sum(at[k, i] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    s[at].set_scope("shared")
    bs = s.cache_read(b, "shared", [c])
    al = s.cache_read(at, "local", [c])
    bl = s.cache_read(bs, "local", [c])
    cl = s.cache_write(c, "local")

    block_x, block_y = te.thread_axis("blockIdx.x"), te.thread_axis("blockIdx.y")
    thread_x, thread_y = te.thread_axis("threadIdx.x"), te.thread_axis("threadIdx.y")
    i, j = c.op.axis
    by, i = s[c].split(i, factor=TILE)
    bx, j = s[c].split(j, factor=TILE)
    vy, i = s[c].split(i, factor=TILE // 2)
    vx, j = s[c].split(j, factor=TILE // 2)
    ty, i = s[c].split(i, factor=PIECE)
    tx, j = s[c].split(j, factor=PIECE)
    s[c].reorder(by, bx, vy, vx, ty, tx, i, j)
    s[c].bind(by, block_y)
    s[c].bind(bx, block_x)
    s[c].bind(vy, te.thread_axis("vthread"))
    s[c].bind(vx, te.thread_axis("vthread"))
    s[c].bind(ty, thread_y)
    s[c].bind(tx, thread_x)
    s[c].unroll(i)
    s[c].vectorize(j)

    s[cl].compute_at(s[c], tx)
    i, j = s[cl].op.axis
    ko, ki = s[cl].split(s[cl].op.reduce_axis[0], factor=DEPTH)
    s[cl].reorder(ko, ki, i, j)
    s[cl].unroll(ki)
    s[cl].unroll(i)
    s[cl].unroll(j)
    for stage in (al, bl):
        s[stage].compute_at(s[cl], ki)
        s[stage].vectorize(s[stage].op.axis[1])
    for stage in (at, bs):
        s[stage].compute_at(s[cl], ko)

    # The block's threads load the tiles, four neighbouring elements of A and of B each.
    x, i = at.op.axis
    xo, xi = s[at].split(x, factor=4)
    ty, i = s[at].split(i, factor=TILE // THREADS)
    s[at].reorder(ty, i, xo, xi)
    s[at].bind(ty, thread_y)
    s[at].bind(s[at].fuse(i, xo), thread_x)
    s[at].vectorize(xi)
    k, j = s[bs].op.axis
    half, j = s[bs].split(j, factor=TILE // 2)
    tx, j = s[bs].split(j, factor=4)
    s[bs].reorder(k, half, tx, j)
    s[bs].bind(s[bs].fuse(k, half), thread_y)
    s[bs].bind(tx, thread_x)
    s[bs].vectorize(j)
    # The tiles of a step are loaded behind the products of the one before.
    s[cl].software_pipeline(ko, [0, 0, 1], [1, 2, 0])
    return s, [a, b, c]


def main():
    options = arguments(__doc__, size=4096)
    n = options.size
    module, device = build(*schedule(n), "matmul", options)
    if device is None:
        return
    x, y = (np.random.rand(n, n).astype("float32") for _ in range(2))
    arrays = [tenon.nd.array(v, device) for v in (x, y)] + [tenon.nd.empty((n, n), "float32", device)]
    module["matmul"](*arrays)
    check(arrays[2].numpy(), x @ y, 1e-5)
    rate = 2 * n**3 / seconds(module, "matmul", device, arrays, options.repeat)
    print(f"matmul of {n} x {n}: {rate / 1e12:.1f} TFLOP/s")


if __name__ == "__main__":
    main()
