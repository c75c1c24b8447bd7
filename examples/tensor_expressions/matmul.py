"""A matrix product made fast step by step. Each step is the one before with one thing changed.

    matmul.py [--size 512] [--threads N] [--show STEP]

prints the rate of each step and its share of what the cores used could do at most, which is measured with a
loop of multiply-adds on registers. Only `parallel` uses more than one core.
"""

import argparse
import os

import numpy as np

import tenon
from tenon import te

BLOCK = 32


def product(n):
    """C = A B, and its schedule with nothing said."""
    a = te.placeholder((n, n), name="A")
    b = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_schedule(c.op), [a, b, c]


def naive(n):
    return product(n)


def blocked(n):
    """A block of C at a time, so that what it needs of A and B stays in the caches."""
    s, args = product(n)
    c = args[2]
    io, jo, ii, ji = s[c].tile(c.op.axis[0], c.op.axis[1], BLOCK, BLOCK)
    ko, ki = s[c].split(s[c].op.reduce_axis[0], factor=4)
    s[c].reorder(io, jo, ko, ki, ii, ji)
    return s, args


def vectorized(n):
    """The innermost loop runs along rows: one vector operation for its elements."""
    s, args = product(n)
    c = args[2]
    io, jo, ii, ji = s[c].tile(c.op.axis[0], c.op.axis[1], BLOCK, BLOCK)
    ko, ki = s[c].split(s[c].op.reduce_axis[0], factor=4)
    s[c].reorder(io, jo, ko, ki, ii, ji)
    s[c].vectorize(ji)
    return s, args


def reordered(n):
    """ki inside ii: four steps of the sum on a row while it is at hand."""
    s, args = product(n)
    c = args[2]
    io, jo, ii, ji = s[c].tile(c.op.axis[0], c.op.axis[1], BLOCK, BLOCK)
    ko, ki = s[c].split(s[c].op.reduce_axis[0], factor=4)
    s[c].reorder(io, jo, ko, ii, ki, ji)
    s[c].vectorize(ji)
    return s, args


def packed_product(n):
    """C = A B, with B copied into panels that are read in order."""
    a = te.placeholder((n, n), name="A")
    b = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    panels = te.compute((n // BLOCK, n, BLOCK), lambda p, x, y: b[x, p * BLOCK + y], name="panels")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * panels[j // BLOCK, k, j % BLOCK], axis=k), name="C")
    s = te.create_schedule(c.op)
    s[panels].vectorize(panels.op.axis[2])
    return s, [a, b, c], panels


def packed(n):
    s, args, _ = packed_product(n)
    c = args[2]
    io, jo, ii, ji = s[c].tile(c.op.axis[0], c.op.axis[1], BLOCK, BLOCK)
    ko, ki = s[c].split(s[c].op.reduce_axis[0], factor=4)
    s[c].reorder(io, jo, ko, ii, ki, ji)
    s[c].vectorize(ji)
    return s, args


def cached(n):
    """The sums of a few rows are kept in registers and written once."""
    s, args, panels = packed_product(n)
    add_cache(s, args[2])
    return s, args


def add_cache(s, c):
    sums = s.cache_write(c, "register")
    io, jo, ii, ji = s[c].tile(c.op.axis[0], c.op.axis[1], 4, BLOCK)
    s[sums].compute_at(s[c], jo)
    i, j = s[sums].op.axis
    (k,) = s[sums].op.reduce_axis
    s[sums].reorder(k, i, j)
    s[sums].vectorize(j)
    s[sums].unroll(i)
    s[c].vectorize(ji)
    return io


def parallel(n):
    """Rows are divided over the cores, and so are the panels."""
    s, args, panels = packed_product(n)
    s[args[2]].parallel(add_cache(s, args[2]))
    s[panels].parallel(panels.op.axis[0])
    return s, args


STEPS = [naive, blocked, vectorized, reordered, packed, cached, parallel]


def peak_of_one_core():
    """GFLOP/s of multiply-adds on eight vectors in registers."""
    lanes, count, steps = 16, 8, 100000
    x = te.placeholder((steps,), name="X")
    y = te.placeholder((count * lanes,), name="Y")
    k = te.reduce_axis((0, steps), name="k")
    z = te.compute((count * lanes,), lambda i: te.sum(x[k] * y[i], axis=k), name="Z")
    s = te.create_schedule(z.op)
    sums = s.cache_write(z, "register")
    vectors, lane = s[sums].split(s[sums].op.axis[0], factor=lanes)
    s[sums].reorder(s[sums].op.reduce_axis[0], vectors, lane)
    s[sums].unroll(vectors)
    s[sums].vectorize(lane)
    probe = tenon.build(s, [x, y, z])
    arrays = [np.ones(v, "float32") for v in (steps, count * lanes, count * lanes)]
    best = probe.time_evaluator("main", number=5, repeat=10)(*arrays).min
    return 2 * steps * count * lanes / best / 1e9


def main():
    parser = argparse.ArgumentParser(description="a matrix product made fast step by step")
    parser.add_argument("--size", type=int, default=512, help="rows and columns, a multiple of 32")
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
    peak = peak_of_one_core()
    print(f"{n} x {n}, peak {peak:.1f} GFLOP/s a core, {cores} cores\n")
    print(f"{'step':12}{'ms':>9}{'GFLOP/s':>10}{'of peak':>9}")
    for step in STEPS:
        f = tenon.build(*step(n), target="llvm")
        f(x, y, z)
        np.testing.assert_allclose(z, x @ y, rtol=1e-3)
        seconds = f.time_evaluator("main", number=1, repeat=options.repeat)(x, y, z).min
        rate = 2 * n**3 / seconds / 1e9
        share = rate / (peak * (cores if step is parallel else 1))
        print(f"{step.__name__:12}{seconds * 1e3:9.2f}{rate:10.1f}{share:9.0%}")


if __name__ == "__main__":
    main()
