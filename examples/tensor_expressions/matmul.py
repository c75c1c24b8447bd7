"""A matrix product made fast step by step. Each step is the one before with one thing changed.

    matmul.py [--size 1024] [--repeat 5] [--show STEP]

prints the rate of each step, the median of the repeats, and its share of what the cores it uses could do at most, which is
measured with a loop of multiply-adds on registers. The last two steps use all cores. docs/tutorial.md says why each step
helps; matmul.cc is this program in C++.
"""

import argparse
import os

import numpy as np

import tenon
from tenon import te

WIDTH = 64  # columns of a block of C, and of a panel of B: four vectors of AVX-512
ROWS = 6  # rows of C whose sums are kept in registers: 24 of the 32


def product(n):
    """C = A B, and its schedule with nothing said."""
    a = te.placeholder((n, n), name="A")
    b = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_schedule(c.op), [a, b, c]


def naive(n):
    return product(n)


def tile(s, c):
    """The loops of a block of C: outer, then inner ones."""
    io, jo, ii, ji = s[c].tile(c.op.axis[0], c.op.axis[1], WIDTH, WIDTH)
    ko, ki = s[c].split(s[c].op.reduce_axis[0], factor=4)
    return io, jo, ko, ki, ii, ji


def blocked(n):
    """A block of C at a time, so that what it needs of A and B stays in the caches."""
    s, args = product(n)
    c = args[2]
    io, jo, ko, ki, ii, ji = tile(s, c)
    s[c].reorder(io, jo, ko, ki, ii, ji)
    return s, args


def vectorized(n):
    """The innermost loop runs along rows: vector operations for its elements."""
    s, args = product(n)
    c = args[2]
    io, jo, ko, ki, ii, ji = tile(s, c)
    s[c].reorder(io, jo, ko, ki, ii, ji)
    s[c].vectorize(ji)
    return s, args


def reordered(n):
    """ki inside ii: four steps of the sums of a row while they are at hand."""
    s, args = product(n)
    c = args[2]
    io, jo, ko, ki, ii, ji = tile(s, c)
    s[c].reorder(io, jo, ko, ii, ki, ji)
    s[c].vectorize(ji)
    return s, args


def packed_product(n):
    """C = A B, with B copied into panels that are read in order."""
    a = te.placeholder((n, n), name="A")
    b = te.placeholder((n, n), name="B")
    panels = te.compute((n // WIDTH, n, WIDTH), lambda p, x, y: b[x, p * WIDTH + y], name="panels")
    s, c = product_with_panels(n, a, panels)
    p, x, y = panels.op.axis
    s[panels].reorder(x, p, y)  # reads rows of B as they lie
    s[panels].vectorize(y)
    return s, [a, b, c], panels


def product_with_panels(n, a, panels):
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * panels[j // WIDTH, k, j % WIDTH], axis=k), name="C")
    return te.create_schedule(c.op), c


def packed(n):
    s, args, _ = packed_product(n)
    c = args[2]
    io, jo, ko, ki, ii, ji = tile(s, c)
    s[c].reorder(io, jo, ko, ii, ki, ji)
    s[c].vectorize(ji)
    return s, args


def keep_sums(s, c):
    """The sums of a few rows stay in registers and are written once. The loop over groups of rows."""
    sums = s.cache_write(c, "register")
    io, jo, ii, ji = s[c].tile(c.op.axis[0], c.op.axis[1], ROWS, WIDTH)
    s[sums].compute_at(s[c], jo)
    i, j = s[sums].op.axis
    (k,) = s[sums].op.reduce_axis
    s[sums].reorder(k, i, j)
    s[sums].unroll(i)
    s[sums].vectorize(j)
    s[c].vectorize(ji)
    return io


def cached(n):
    s, args, _ = packed_product(n)
    keep_sums(s, args[2])
    return s, args


def parallel(n):
    """Rows of C are divided over the cores, and so are those of B that are packed."""
    s, args, panels = packed_product(n)
    s[args[2]].parallel(keep_sums(s, args[2]))
    s[panels].parallel(panels.op.axis[1])
    return s, args


def prepacked(n):
    """B comes as panels: what a network does with its weights."""
    a = te.placeholder((n, n), name="A")
    panels = te.placeholder((n // WIDTH, n, WIDTH), name="panels")
    s, c = product_with_panels(n, a, panels)
    s[c].parallel(keep_sums(s, c))
    return s, [a, panels, c]


STEPS = [naive, blocked, vectorized, reordered, packed, cached, parallel, prepacked]


def make_probe(cores):
    """A function that gives what these cores do at most, in GFLOP/s: multiply-adds on eight vectors in registers each."""
    lanes, count, steps = 16, 8, 400000
    x = te.placeholder((steps,), name="X")
    y = te.placeholder((count * lanes,), name="Y")
    k = te.reduce_axis((0, steps), name="k")
    z = te.compute((cores, count * lanes), lambda core, i: te.sum(x[k] * y[i], axis=k), name="Z")
    s = te.create_schedule(z.op)
    sums = s.cache_write(z, "register")
    s[sums].compute_at(s[z], z.op.axis[0])
    s[z].parallel(z.op.axis[0])
    vectors, lane = s[sums].split(s[sums].op.axis[1], factor=lanes)
    s[sums].reorder(s[sums].op.reduce_axis[0], vectors, lane)
    s[sums].unroll(vectors)
    s[sums].vectorize(lane)
    arrays = [np.ones(v, "float32") for v in (steps, count * lanes, (cores, count * lanes))]
    run = tenon.build(s, [x, y, z]).time_evaluator("main", number=1, repeat=3)
    return lambda: 2 * steps * cores * count * lanes / min(run(*arrays).results) / 1e9


def measure(f, arrays, probe, repeat):
    """Seconds a call, and the share of the peak at that time: clocks change, so both are measured in turn."""
    call = f.time_evaluator("main", number=1, repeat=1)
    seconds, shares = [], []
    for _ in range(repeat):
        peak = probe()
        seconds.append(call(*arrays).mean)
        shares.append(2 * len(arrays[0]) ** 3 / seconds[-1] / 1e9 / max(peak, probe()))
        if seconds[-1] > 1:
            break
    return np.median(seconds), np.median(shares)


def main():
    parser = argparse.ArgumentParser(description="a matrix product made fast step by step")
    parser.add_argument("--size", type=int, default=1024, help=f"rows and columns, a multiple of {WIDTH}")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--show", choices=[f.__name__ for f in STEPS], help="print a step's loops instead")
    options = parser.parse_args()
    n = options.size
    if options.show:
        print(tenon.lower(*globals()[options.show](n)))
        return
    x, y = (np.random.default_rng(i).random((n, n), dtype="float32") for i in (1, 2))
    z = np.empty((n, n), "float32")
    cores = int(os.environ.get("TENON_NUM_THREADS", len(os.sched_getaffinity(0))))
    one, all_cores = make_probe(1), make_probe(cores)
    print(f"{n} x {n}, peak {one():.1f} GFLOP/s on one core, {all_cores():.1f} on {cores}\n")
    print(f"{'step':12}{'ms':>9}{'GFLOP/s':>10}{'of peak':>9}")
    for step in STEPS:
        f = tenon.build(*step(n))
        second = y if step is not prepacked else np.ascontiguousarray(y.reshape(n, n // WIDTH, WIDTH).swapaxes(0, 1))
        f(x, second, z)
        np.testing.assert_allclose(z, x @ y, rtol=1e-3)
        probe = all_cores if step in (parallel, prepacked) else one
        seconds, share = measure(f, (x, second, z), probe, options.repeat)
        print(f"{step.__name__:12}{seconds * 1e3:9.2f}{2 * n**3 / seconds / 1e9:10.1f}{share:9.0%}", flush=True)


if __name__ == "__main__":
    main()
