"""Matrix products of bytes and of bfloat16 numbers by the dot-product units of AVX-512, or in the tiles of AMX, by
tensorize.

    low_precision.py [--size 1024] [--repeat 5] [--show STEP] [--tiles]

prints the rate of each product and how many times it is the peak of 32-bit multiply-adds on the same cores. On a machine
without the units the same programs run as plain code: slowly, with the same results. docs/tutorial.md says how it works;
low_precision.cc is this program in C++.
"""

import argparse
import os

import numpy as np

import tenon
from matmul import make_probe, measure
from tenon import te

ROWS, WIDTH = 4, 64  # of C: the sums that are kept in registers
LANES = 16  # 32-bit sums in a register


def packing(n, group, dtype, panel_dtype):
    """panels[j / 16, k / group, j % 16, k % group] = B[k, j]: what the unit takes at once lies together."""
    b = te.placeholder((n, n), dtype=dtype, name="B")
    panels = te.compute(
        (n // LANES, n // group, LANES, group),
        lambda p, q, j, k: b[q * group + k, p * LANES + j].astype(panel_dtype),
        name="panels",
    )
    s = te.create_schedule(panels.op)
    s[panels].parallel(panels.op.axis[0])
    return s, [b, panels]


def product(n, a, group, dtype, result):
    """C = A B, B in panels."""
    panels = te.placeholder((n // LANES, n // group, LANES, group), dtype=dtype, name="panels")
    k = te.reduce_axis((0, n), name="k")
    element = lambda k, j: panels[j // LANES, k // group, j % LANES, k % group]
    c = te.compute(
        (n, n), lambda i, j: te.sum(a[i, k].astype(result) * element(k, j).astype(result), axis=k), name="C"
    )
    return panels, c


def tensorize(s, c, group, intrinsic):
    """As in matmul.py, but what adds to 16 sums is one instruction."""
    sums = s.cache_write(c, "register")
    io, jo, ii, ji = s[c].tile(c.op.axis[0], c.op.axis[1], ROWS, WIDTH)
    s[sums].compute_at(s[c], jo)
    i, j = s[sums].op.axis
    ko, ki = s[sums].split(s[sums].op.reduce_axis[0], factor=group)
    vector, lane = s[sums].split(j, factor=LANES)
    s[sums].reorder(ko, i, vector, lane, ki)
    s[sums].unroll(i)
    s[sums].unroll(vector)
    s[sums].vectorize(lane)  # for the zeros in the beginning
    s[sums].tensorize(lane, intrinsic)
    s[c].vectorize(ji)
    s[c].parallel(io)


def in_tiles(n, a, group, dtype, result, load_rows, load_columns, product, store):
    """C = A B in tiles of 16 rows of 64 bytes. Four tiles of sums, two of A and two of B are what the machine has; what
    moves a tile is an intrinsic as what multiplies two of them is."""
    width = 16 * group  # of a tile of A
    panels = te.placeholder((n // LANES, n // group, LANES, group), dtype=dtype, name="panels")
    rows = te.compute(
        (n // 16, n // width, 16, width), lambda p, q, i, k: a[p * 16 + i, q * width + k], name="rows"
    )
    columns = te.compute(
        (n // 16, n // width, 16, 16, group), lambda p, q, r, j, k: panels[p, q * 16 + r, j, k], name="columns"
    )
    q, k = te.reduce_axis((0, n // width), name="q"), te.reduce_axis((0, width), name="k")

    def element(p, r, i, j):
        x, y = rows[p, q, i, k], columns[r, q, k // group, j, k % group]
        return te.sum(x.astype(result) * y.astype(result), axis=[q, k])

    sums = te.compute((n // 16, n // 16, 16, 16), element, name="sums")
    c = te.compute((n, n), lambda i, j: sums[i // 16, j // 16, i % 16, j % 16], name="C")

    s = te.create_schedule(c.op)
    io, jo, ii, ji = s[c].tile(c.op.axis[0], c.op.axis[1], 32, 32)
    it, i = s[c].split(ii, factor=16)
    jt, j = s[c].split(ji, factor=16)
    s[c].reorder(io, jo, it, jt, i, j)
    s[c].unroll(it)
    s[c].unroll(jt)
    s[c].tensorize(i, store)
    s[c].parallel(io)
    s[sums].set_scope("tile")
    s[sums].compute_at(s[c], jo)
    p, r, x, y = sums.op.axis
    s[sums].reorder(q, p, r, x, y, k)
    s[sums].unroll(p)  # a tile's number is part of the instruction
    s[sums].unroll(r)
    s[sums].tensorize(x, product)
    for tile, load in ((rows, load_rows), (columns, load_columns)):
        s[tile].set_scope("tile")
        s[tile].compute_at(s[sums], q)
        s[tile].unroll(tile.op.axis[0])
        s[tile].tensorize(tile.op.axis[2], load)
    return s, panels, c


def int8(n, tiles):
    """Bytes without a sign times bytes with one, summed in 32 bits: exact."""
    a = te.placeholder((n, n), dtype="uint8", name="A")
    if tiles:
        by = ("x86.tileloadd.u8", "x86.tileloadd.i8.groups", "x86.tdpbusd", "x86.tilestored.i32")
        s, panels, c = in_tiles(n, a, 4, "int8", "int32", *by)
        return s, [a, panels, c]
    panels, c = product(n, a, 4, "int8", "int32")
    s = te.create_schedule(c.op)
    tensorize(s, c, 4, "x86.vpdpbusd.512.row")
    return s, [a, panels, c]


def bf16(n, tiles):
    """32-bit floats whose factors are rounded to bfloat16: half the memory, three digits."""
    a = te.placeholder((n, n), name="A")
    half = te.compute((n, n), lambda i, k: a[i, k].astype("bfloat16"), name="half")
    if tiles:
        by = ("x86.tileloadd.bf16", "x86.tileloadd.bf16.groups", "x86.tdpbf16ps", "x86.tilestored.f32")
        s, panels, c = in_tiles(n, half, 2, "bfloat16", "float32", *by)
    else:
        panels, c = product(n, half, 2, "bfloat16", "float32")
        s = te.create_schedule(c.op)
        tensorize(s, c, 2, "x86.vdpbf16ps.512.row")
    s[half].vectorize(s[half].split(half.op.axis[1], factor=LANES)[1])
    s[half].parallel(half.op.axis[0])
    return s, [a, panels, c]


STEPS = [int8, bf16]


def main():
    parser = argparse.ArgumentParser(description="matrix products in low precision")
    parser.add_argument("--size", type=int, default=1024, help=f"rows and columns, a multiple of {WIDTH}")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--show", choices=[f.__name__ for f in STEPS], help="print a product's loops instead")
    parser.add_argument("--tiles", action="store_true", help="as with AMX, whatever this machine has")
    options = parser.parse_args()
    n = options.size
    tiles = options.tiles or {"amx-int8", "amx-bf16"} <= set(tenon.target.Target("llvm").features)
    if options.show:
        print(tenon.lower(*globals()[options.show](n, tiles)))
        return
    random = np.random.default_rng(1)
    cores = int(os.environ.get("TENON_NUM_THREADS", len(os.sched_getaffinity(0))))
    probe = make_probe(cores)
    print(f"{n} x {n}, fp32 peak {probe():.1f} GFLOP/s on {cores} cores\n\n{'type':12}{'ms':>9}{'GOP/s':>10}{'x peak':>9}")
    for step in STEPS:
        if step is int8:
            x = random.integers(0, 256, (n, n), dtype="uint8")
            y = random.integers(-128, 128, (n, n), dtype="int8")
            pack = tenon.build(*packing(n, 4, "int8", "int8"))
        else:
            x, y = (random.random((n, n), dtype="float32") for _ in range(2))
            pack = tenon.build(*packing(n, 2, "float32", "bfloat16"))
        panels = pack(y)  # once: weights
        z = np.empty((n, n), "int32" if step is int8 else "float32")
        f = tenon.build(*step(n, tiles))
        f(x, panels, z)
        np.testing.assert_allclose(z, x.astype("float64") @ y.astype("float64"), rtol=0 if step is int8 else 1e-2)
        seconds, times = measure(f, (x, panels, z), probe, options.repeat)
        print(f"{step.__name__:12}{seconds * 1e3:9.2f}{2 * n**3 / seconds / 1e9:10.1f}{times:9.1f}", flush=True)


if __name__ == "__main__":
    main()
