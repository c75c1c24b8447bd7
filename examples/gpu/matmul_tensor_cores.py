"""C = A B in fp16 on a GPU's tensor cores, summed in fp32, as schedules of tensors.

    matmul_tensor_cores.py [--size 4096] [--wgmma 1] [--target "cuda -arch=sm_90"] [--save FILE] [--show]

By mma.sync, from sm_80 on: a block of 8 warps makes 128 x 256 elements, each warp 64 x 64 of them in its registers. Tiles of
A and B, 32 steps of k at a time, are copied to shared memory by cp.async while those of up to three tiles before are used;
rows there are padded by 16 bytes, so that ldmatrix, which reads eight rows at once, meets no bank twice. Fragments are
loaded one product ahead, those of the next tile too.

By wgmma, on sm_90a (--wgmma 1): each of two warpgroups makes 64 x 256 elements, a third one keeps the copy engine busy up to
four steps of 64 ahead, and the products read both factors from shared memory.

Stages in the scope "fragment" are registers of a warp (of a warpgroup), and what is tensorized says which lane has which
element. matmul_fp16.py and matmul_wgmma.py do the same by steps on loop IR.
"""

import numpy as np

import tenon
from measure import arguments, build, check, seconds
from tenon import te

LANES = 32
CHUNK = 8  # elements in 16 bytes
BAND = 8  # blocks run in bands, which share most of what they read


def product(n):
    a = te.placeholder((n, n), name="A", dtype="float16")
    b = te.placeholder((n, n), name="B", dtype="float16")
    k = te.reduce_axis((0, n), name="k")
    term = lambda i, j: a[i, k].astype("float32") * b[k, j].astype("float32")
    total = te.compute((n, n), lambda i, j: te.sum(term(i, j), axis=k), name="total")
    c = te.compute((n, n), lambda i, j: total[i, j].astype("float16"), name="C")
    return a, b, total, c


def across(stage, i, j, warps):
    """The block's threads take 16 bytes each, as often as it takes; the loop over these."""
    rest, *own, part = stage.split(stage.fuse(i, j), factors=[None, *warps, LANES, CHUNK])
    stage.unroll(rest)
    for loop, axis in zip(own, "yzx"):
        stage.bind(loop, te.thread_axis(f"threadIdx.{axis}"))
    return part


def load_fragments(stage, intrinsic):
    io, jo, i, _ = stage.tile(*stage.op.axis, 16, 16)
    stage.unroll(io)
    stage.unroll(jo)
    stage.tensorize(i, intrinsic)


def store(c, shared, tile, warps):
    """The result leaves through shared memory, for a lane has two elements of a row and memory takes whole lines. The
    loop over the warps along x of what fills it."""
    by, bx, i, j = c.tile(*c.op.axis, *tile)
    c.bind(by, te.thread_axis("blockIdx.y"))
    c.bind(bx, te.thread_axis("blockIdx.x"))
    c.vectorize(across(c, i, j, warps))
    shared.compute_at(c, bx)
    shared.storage_align(shared.op.axis[0], 16, 8)
    wy, i = shared.split(shared.op.axis[0], nparts=warps[0])
    wx, j = shared.split(shared.op.axis[1], nparts=warps[1])
    shared.reorder(wy, wx, i, j)
    shared.bind(wy, te.thread_axis("threadIdx.y"))
    shared.bind(wx, te.thread_axis("threadIdx.z"))
    shared.vectorize(j)
    return wx


def by_mma(n, tile=(128, 256), depth=32, warps=(2, 4), stages=4):
    a, b, total, c = product(n)
    s = te.create_schedule(c.op)
    s[total].set_scope("fragment")
    out = s.cache_write(c, "shared")
    tiles = [s.cache_read(t, "shared", total) for t in (a, b)]
    left, right = (s.cache_read(t, "fragment", total) for t in tiles)

    s[total].compute_at(s[out], store(s[c], s[out], tile, warps))
    io, i = s[total].split(total.op.axis[0], factor=16)
    jo, j = s[total].split(total.op.axis[1], factor=8)
    ko, k, kk = s[total].split(total.op.reduce_axis[0], factors=[None, depth // 16, 16])
    s[total].reorder(ko, k, io, jo, i, j, kk)
    for loop in (k, io, jo):
        s[total].unroll(loop)
    s[total].tensorize(i, "ptx.mma.m16n8k16.f16")
    for fragments, intrinsic in ((left, "ptx.ldmatrix.a.f16"), (right, "ptx.ldmatrix.b.trans.f16")):
        s[fragments].compute_at(s[total], k)
        load_fragments(s[fragments], intrinsic)
    for t in tiles:
        s[t].compute_at(s[total], ko)
        s[t].tensorize(across(s[t], *t.op.axis, warps), "ptx.cp.async.copy.f16")
        s[t].storage_align(t.op.axis[0], 16, 8)
    # Per step of k: its loads, and the product of the step before. Per tile: copies of B and A; then its steps but the
    # last, the first loads of the next tile, and the last product.
    s[total].software_pipeline(k, [0, 0, 1], [0, 1, 2])
    s[total].partition(k, [1, depth // 16])
    s[total].software_pipeline(ko, [0, 0, stages - 2, stages - 1, stages - 1], [0, 1, 3, 2, 4])
    return s, [a, b, c]


def by_wgmma(n, columns=256, groups=2, stages=4):
    a, b, total, c = product(n)
    s = te.create_schedule(c.op)
    s[total].set_scope("fragment")
    tiles = [s.cache_read(t, "shared", total) for t in (a, b)]

    band, by, group, i = s[c].split(c.op.axis[0], factors=[None, min(BAND, n // groups // 64), groups, 64])
    bx, j = s[c].split(c.op.axis[1], factor=columns)
    s[c].reorder(band, bx, by, group, i, j)
    s[c].bind(s[c].fuse(band, bx, by), te.thread_axis("blockIdx.x"))
    s[c].bind(group, te.thread_axis("threadIdx.y"))
    s[c].vectorize(j)

    s[total].compute_at(s[c], group)
    i, j = total.op.axis
    ko, k = s[total].split(total.op.reduce_axis[0], factor=64)
    s[total].reorder(ko, i, j, k)
    s[total].tensorize(i, f"ptx.wgmma.m64n{columns}k64.f16")
    s[total].pragma(ko, "producer_stages", stages)
    for t in tiles:
        s[t].compute_at(s[total], ko)
        io, jo, i, j = s[t].tile(*t.op.axis, 64, 64)
        s[t].tensorize(i, "ptx.tma.copy.64x64.f16")
    return s, [a, b, c]


def main():
    options = arguments(__doc__, size=4096, wgmma=0)
    n = options.size
    name = "matmul_wgmma" if options.wgmma else "matmul_mma"
    module, device = build(*(by_wgmma if options.wgmma else by_mma)(n), name, options)
    if device is None:
        return
    x, y = ((np.random.rand(n, n) - 0.5).astype("float16") for _ in range(2))
    arrays = [tenon.nd.array(v, device) for v in (x, y)] + [tenon.nd.empty((n, n), "float16", device)]
    module[name](*arrays)
    check(arrays[2].numpy().astype("float32"), x.astype("float32") @ y.astype("float32"), 1e-3)
    rate = 2 * n**3 / seconds(module, name, device, arrays, options.repeat)
    print(f"{name} of {n} x {n}: {rate / 1e12:.1f} TFLOP/s")


if __name__ == "__main__":
    main()
