"""C = A B in fp16 by the units of sm_90, summed in fp32: the copy engine and products of warpgroups.

    matmul_wgmma.py [--size 4096] [--target "cuda -arch=sm_90a"] [--save matmul_wgmma.so] [--show]

A block makes 128 x 256 elements of C, 64 x 256 of them by each of two warpgroups, in their registers. Tiles of A and B, 64
steps of k at a time, are brought to shared memory by the copy engine, which a third warpgroup keeps busy up to four steps
ahead; the products read both factors there. Where elements of the tiles lie, and what waits for what, follows from the
operations. Blocks run in bands of eight times 128 rows, so that those under way share most of what they read.
"""

import numpy as np

import tenon
from matmul_fp16 import product
from measure import arguments, build, check, seconds
from tenon import te, tir

ROWS, COLUMNS, DEPTH = 64, 256, 64  # of a product
GROUPS = 2
STAGES = 4
BAND = 8


def copy_tile(s, block):
    """Boxes of 64 x 64."""
    i, j = s.get_loops(block)[-2:]
    io, ii = s.split(i, [None, 64])
    jo, ji = s.split(j, [None, 64])
    s.reorder(io, jo, ii, ji)
    s.tensorize(ii, "ptx.tma.copy.64x64.f16")


def schedule(n, columns=COLUMNS, groups=GROUPS, stages=STAGES):
    s = tir.Schedule(te.create_prim_func(product(n), "matmul_wgmma"))
    s.set_scope("total", "fragment")
    i, j, k = s.get_loops("total")
    band, block_y, group, ii = s.split(i, [None, min(BAND, n // groups // ROWS), groups, ROWS])
    block_x, jj = s.split(j, [None, columns])
    ko, kk = s.split(k, [None, DEPTH])
    s.reorder(band, block_x, block_y, group, ko, ii, jj, kk)
    block = s.fuse(band, block_x, block_y)
    s.reverse_compute_at("C", group)
    s.vectorize(s.get_loops("C")[-1])
    tiles = [s.cache_read("total", name, "shared") for name in ("A", "B")]
    s.bind(block, "blockIdx.x")
    s.bind(group, "threadIdx.y")
    for tile in tiles:
        s.compute_at(tile, ko)
        copy_tile(s, tile)
    s.decompose_reduction("total", ko)
    s.tensorize(ii, f"ptx.wgmma.m64n{columns}k64.f16")
    s.annotate(ko, "producer_stages", stages)
    return s.mod


def main():
    options = arguments(__doc__, size=4096)
    n = options.size
    module, device = build(schedule(n), None, "matmul_wgmma", options)
    if device is None:
        return
    x, y = ((np.random.rand(n, n) - 0.5).astype("float16") for _ in range(2))
    arrays = [tenon.nd.array(v, device) for v in (x, y)] + [tenon.nd.empty((n, n), "float16", device)]
    module["matmul_wgmma"](*arrays)
    check(arrays[2].numpy().astype("float32"), x.astype("float32") @ y.astype("float32"), 1e-3)
    rate = 2 * n**3 / seconds(module, "matmul_wgmma", device, arrays, options.repeat)
    print(f"fp16 matmul of {n} x {n}: {rate / 1e12:.1f} TFLOP/s")


if __name__ == "__main__":
    main()
