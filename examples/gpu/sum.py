"""The sum of an array on a GPU, in two steps that meet in three ways.

    sum.py [--size 8650752] [--way two|early|one] [--target "cuda -arch=sm_90"] [--save sum.so] [--show]

528 blocks of 256 threads add up their parts; then 16 threads add 33 of these sums each, then one the 16 that are left.
The second step is a launch of its own (two), one that begins before the first has ended (early), or a part of the same
launch, whose blocks wait for each other (one).
"""

import numpy as np

import tenon
from measure import arguments, build, check, seconds
from tenon import te

BLOCKS, THREADS, AT_ONCE, GROUP = 528, 256, 4, 16
WAYS = ("two", "early", "one")


def schedule(way):
    n = te.var("n")
    a = te.placeholder((n, BLOCKS, AT_ONCE, THREADS), name="A")
    k, u = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, AT_ONCE), name="u")
    t, g = te.reduce_axis((0, THREADS // GROUP), name="t"), te.reduce_axis((0, GROUP), name="g")
    b, r = te.reduce_axis((0, BLOCKS // GROUP), name="b"), te.reduce_axis((0, GROUP), name="r")
    threads = te.compute((BLOCKS, THREADS), lambda i, j: te.sum(a[k, i, u, j], axis=[k, u]), name="threads")
    groups = te.compute((BLOCKS, GROUP), lambda i, j: te.sum(threads[i, t * GROUP + j], axis=t), name="groups")
    blocks = te.compute((BLOCKS,), lambda i: te.sum(groups[i, g], axis=g), name="blocks")
    parts = te.compute((GROUP,), lambda i: te.sum(blocks[b * GROUP + i], axis=b), name="parts")
    total = te.compute((1,), lambda i: te.sum(parts[r], axis=r), name="total")

    s = te.create_schedule(total.op)
    for stage in (threads, groups, blocks, parts, total):  # in a register, then to memory
        held = s.cache_write(stage, "local")
        s[held].unroll(held.op.reduce_axis[-1])
        s[held].compute_at(s[stage], stage.op.axis[-1])
    block = blocks.op.axis[0]
    s[blocks].bind(block, te.thread_axis("blockIdx.x"))
    for stage in (threads, groups):
        s[stage].set_scope("shared")
        s[stage].compute_at(s[blocks], block)
        s[stage].bind(stage.op.axis[1], te.thread_axis("threadIdx.x"))
    s[parts].set_scope("shared")
    s[parts].bind(parts.op.axis[0], te.thread_axis("threadIdx.x"))
    if way == "one":
        s[blocks].pragma(block, "cooperative")
    elif way == "early":
        s[parts].pragma(parts.op.axis[0], "dependent_launch")
    return s, [a, total]


def main():
    options = arguments(__doc__, size=8650752, way="one")
    if options.way not in WAYS:
        raise SystemExit(f"--way: expected one of {', '.join(WAYS)}")
    module, device = build(*schedule(options.way), "sum", options)
    if device is None:
        return
    shape = (options.size // (BLOCKS * AT_ONCE * THREADS), BLOCKS, AT_ONCE, THREADS)
    x = np.random.randint(-4, 5, shape).astype("float32")
    arrays = [tenon.nd.array(x, device), tenon.nd.empty((1,), "float32", device)]
    module["sum"](*arrays)
    check(arrays[1].numpy(), x.sum(dtype="float64"), 0)
    took = seconds(module, "sum", device, arrays, options.repeat)
    print(f"sum of {x.size} ({options.way}): {took * 1e6:.1f} us, {x.nbytes / took / 1e9:.0f} GB/s")


if __name__ == "__main__":
    main()
