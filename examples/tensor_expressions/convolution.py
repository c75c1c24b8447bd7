"""A convolution of an image in NHWC order, made fast in four steps.

    convolution.py [--size 56] [--channels 64] [--repeat 5] [--show STEP]

prints the rate of each step and its share of what the cores it uses could do at most. docs/tutorial.md says why each step
helps; convolution.cc is this program in C++.
"""

import argparse
import os

import numpy as np

import tenon
from matmul import make_probe
from tenon import te

KERNEL = 3  # rows and columns of the filter; the image gets a border of zeros of one pixel
CHANNELS = 32  # output channels of a tile: two vectors of AVX-512
PIXELS = 8  # neighbours in a row whose sums are kept in registers


def convolution(size, channels):
    """Output channels are last in the weights too, so that vectors run along them."""
    image = te.placeholder((size, size, channels), name="image")
    weights = te.placeholder((KERNEL, KERNEL, channels, channels), name="weights")
    inside = lambda y, x: (y >= 1) & (y <= size) & (x >= 1) & (x <= size)
    padded = te.compute(
        (size + 2, size + 2, channels),
        lambda y, x, c: te.select(inside(y, x), image[y - 1, x - 1, c], 0.0),
        name="padded",
    )
    r = te.reduce_axis((0, KERNEL), name="r")
    q = te.reduce_axis((0, KERNEL), name="q")
    c = te.reduce_axis((0, channels), name="c")
    out = te.compute(
        (size, size, channels),
        lambda y, x, o: te.sum(padded[y + r, x + q, c] * weights[r, q, c, o], axis=[r, q, c]),
        name="out",
    )
    s = te.create_schedule(out.op)
    s[padded].vectorize(padded.op.axis[2])
    return s, [image, weights, out], padded


def naive(size, channels):
    return convolution(size, channels)[:2]


def vectorized(size, channels):
    """Output channels innermost: one value of the image times a vector of weights."""
    s, args, _ = convolution(size, channels)
    out = args[2]
    y, x, o = out.op.axis
    s[out].reorder(y, x, *out.op.reduce_axis, o)
    s[out].vectorize(o)
    return s, args


def keep_sums(s, out):
    """The sums of a few pixels and channels stay in registers while all of the filter is added."""
    sums = s.cache_write(out, "register")
    y, x, o = out.op.axis
    xo, xi = s[out].split(x, factor=PIXELS)
    oo, oi = s[out].split(o, factor=CHANNELS)
    s[out].reorder(y, oo, xo, xi, oi)
    s[out].vectorize(oi)
    s[sums].compute_at(s[out], xo)
    _, pixel, channel = s[sums].op.axis
    s[sums].reorder(*s[sums].op.reduce_axis, pixel, channel)
    s[sums].unroll(pixel)
    s[sums].vectorize(channel)
    return y


def cached(size, channels):
    s, args, _ = convolution(size, channels)
    keep_sums(s, args[2])
    return s, args


def parallel(size, channels):
    """Rows are divided over the cores."""
    s, args, padded = convolution(size, channels)
    s[args[2]].parallel(keep_sums(s, args[2]))
    s[padded].parallel(padded.op.axis[0])
    return s, args


STEPS = [naive, vectorized, cached, parallel]


def reference(image, weights):
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)))
    size = len(image)
    return sum(padded[r : r + size, q : q + size] @ weights[r, q] for r in range(KERNEL) for q in range(KERNEL))


def main():
    parser = argparse.ArgumentParser(description="a convolution made fast step by step")
    parser.add_argument("--size", type=int, default=56, help="rows and columns of the image")
    parser.add_argument("--channels", type=int, default=64, help=f"of input and output, a multiple of {CHANNELS}")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--show", choices=[f.__name__ for f in STEPS], help="print a step's loops instead")
    options = parser.parse_args()
    size, channels = options.size, options.channels
    if options.show:
        print(tenon.lower(*globals()[options.show](size, channels)))
        return
    random = np.random.default_rng(1)
    x = random.random((size, size, channels), dtype="float32")
    w = random.random((KERNEL, KERNEL, channels, channels), dtype="float32")
    z = np.empty_like(x)
    cores = int(os.environ.get("TENON_NUM_THREADS", len(os.sched_getaffinity(0))))
    flops = 2 * size**2 * channels**2 * KERNEL**2
    print(f"{size} x {size}, {channels} channels, {cores} cores\n\n{'step':12}{'ms':>9}{'GFLOP/s':>10}{'of peak':>9}")
    for step in STEPS:
        f = tenon.build(*step(size, channels))
        f(x, w, z)
        np.testing.assert_allclose(z, reference(x, w), rtol=1e-3)
        peak = make_probe(cores if step is parallel else 1)()
        seconds = f.time_evaluator("main", number=1, repeat=options.repeat)(x, w, z).median
        rate = flops / seconds / 1e9
        print(f"{step.__name__:12}{seconds * 1e3:9.2f}{rate:10.1f}{rate / peak:9.0%}")


if __name__ == "__main__":
    main()
