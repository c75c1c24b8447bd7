"""C = A B in fp16 on a GPU's tensor cores, summed in fp32 (sm_80 and later).

    matmul_fp16.py [--size 4096] [--target "cuda -arch=sm_90"] [--save matmul_fp16.so] [--show]

A block of 8 warps makes 128 x 256 elements of C, each warp 64 x 64 of them in its registers. Tiles of A and B, 32 steps of
k at a time, are copied to shared memory by `cp.async` while those of up to three tiles before are used; rows there are
padded by 16 bytes, so that `ldmatrix`, which reads eight rows at once, meets no bank twice. Fragments are loaded one
product ahead, those of the next tile too: tensor cores never wait at a barrier for loads. The result leaves through shared
memory, for a lane has two elements of a row and memory takes whole lines.
"""

import numpy as np

import tenon
from measure import arguments, build, check, seconds
from tenon import te, tir

ROWS, COLUMNS, DEPTH = 128, 256, 32  # of a block
WARPS_Y, WARPS_X = 2, 4
STAGES = 4


def product(n):
    a = te.placeholder((n, n), name="A", dtype="float16")
    b = te.placeholder((n, n), name="B", dtype="float16")
    k = te.reduce_axis((0, n), name="k")
    term = lambda i, j: a[i, k].astype("float32") * b[k, j].astype("float32")
    total = te.compute((n, n), lambda i, j: te.sum(term(i, j), axis=k), name="total")
    c = te.compute((n, n), lambda i, j: total[i, j].astype("float16"), name="C")
    return [a, b, c]


def across(s, block, warps):
    """The block's threads take 16 bytes each, as often as it takes; the loop over these."""
    tile = s.fuse(*s.get_loops(block)[-2:])
    rest, y, x, lane, part = s.split(tile, [None, *warps, 32, 8])
    s.bind(y, "threadIdx.y")
    s.bind(x, "threadIdx.z")
    s.bind(lane, "threadIdx.x")
    s.unroll(rest)
    return part


def load_fragments(s, block, intrinsic):
    i, j = s.get_loops(block)[-2:]
    io, ii = s.split(i, [None, 16])
    jo, ji = s.split(j, [None, 16])
    s.reorder(io, jo, ii, ji)
    s.tensorize(ii, intrinsic)
    s.unroll(io)
    s.unroll(jo)


def schedule(n, rows=ROWS, columns=COLUMNS, depth=DEPTH, warps=(WARPS_Y, WARPS_X), stages=STAGES):
    s = tir.Schedule(te.create_prim_func(product(n), "matmul_fp16"))
    s.set_scope("total", "fragment")
    i, j, k = s.get_loops("total")
    block_y, warp_y, i, ii = s.split(i, [None, warps[0], rows // warps[0] // 16, 16])
    block_x, warp_x, j, jj = s.split(j, [None, warps[1], columns // warps[1] // 8, 8])
    ko, k, kk = s.split(k, [None, depth // 16, 16])
    s.reorder(block_y, block_x, warp_y, warp_x, ko, k, i, j, ii, jj, kk)
    out = s.cache_write("C", "C", "shared")
    s.reverse_compute_at("C", warp_x)
    s.reverse_compute_at(out, block_x)
    tile_a = s.cache_read("total", "A", "shared")
    tile_b = s.cache_read("total", "B", "shared")
    left = s.cache_read("total", tile_a, "fragment")
    right = s.cache_read("total", tile_b, "fragment")
    for block in (right, left):
        s.compute_at(block, k)
    for loop, axis in ((block_y, "blockIdx.y"), (block_x, "blockIdx.x"), (warp_y, "threadIdx.y"), (warp_x, "threadIdx.z")):
        s.bind(loop, axis)
    s.decompose_reduction("total", ko)
    # Per step of k: its loads, and the product of the step before. The first loads become a statement of the loop over tiles.
    k = s.software_pipeline(k, [0, 0, 1], [0, 1, 2])
    s.partition(k, [1, depth // 16])
    for block in (tile_b, tile_a):
        s.compute_at(block, ko)
    # Copies of B and A; then the tile's steps but the last, the first loads of the next tile, and the last product.
    s.software_pipeline(ko, [0, 0, stages - 2, stages - 1, stages - 1], [0, 1, 3, 2, 4])
    for tile in (tile_a, tile_b):
        s.storage_align(tile, 1, 16, 8)
        s.tensorize(across(s, tile, warps), "ptx.cp.async.copy.f16")
    for part in ("p0", "p1"):
        load_fragments(s, f"{left}.{part}", "ptx.ldmatrix.a.f16")
        load_fragments(s, f"{right}.{part}", "ptx.ldmatrix.b.trans.f16")
    for part in ("p1", "p2"):
        k, i, j, ii = s.get_loops(f"total.{part}")[-6:-2]
        s.tensorize(ii, "ptx.mma.m16n8k16.f16")
        for loop in (k, i, j):
            s.unroll(loop)
    s.vectorize(s.get_loops("C")[-1])
    s.storage_align(out, 0, 16, 8)
    s.vectorize(across(s, out, warps))
    return s.mod


def main():
    options = arguments(__doc__, size=4096)
    n = options.size
    module, device = build(schedule(n), None, "matmul_fp16", options)
    if device is None:
        return
    x, y = ((np.random.rand(n, n) - 0.5).astype("float16") for _ in range(2))
    arrays = [tenon.nd.array(v, device) for v in (x, y)] + [tenon.nd.empty((n, n), "float16", device)]
    module["matmul_fp16"](*arrays)
    check(arrays[2].numpy().astype("float32"), x.astype("float32") @ y.astype("float32"), 1e-3)
    rate = 2 * n**3 / seconds(module, "matmul_fp16", device, arrays, options.repeat)
    print(f"fp16 matmul of {n} x {n}: {rate / 1e12:.1f} TFLOP/s")


if __name__ == "__main__":
    main()
