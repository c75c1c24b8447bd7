"""A long sum, which is one chain of additions until rfactor makes several of it.

    reduction.py [--size 4194304] [--repeat 20]

prints the time of each step and the rate at which it reads. docs/tutorial.md says why each step helps; reduction.cc is
this program in C++.
"""

import argparse

import numpy as np

import tenon
from tenon import te

LANES = 128  # sums side by side: eight vectors of AVX-512
PARTS = 64  # pieces that the cores share


def total(n):
    """B = the sum of A, and its schedule with nothing said."""
    a = te.placeholder((n,), name="A")
    k = te.reduce_axis((0, n), name="k")
    b = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="B")
    return te.create_schedule(b.op), a, b


def naive(n):
    s, a, b = total(n)
    return s, [a, b]


def lanes(n):
    """Sums of every 128th element, then their sum: vectors, whose additions do not wait for each other."""
    s, a, b = total(n)
    add_in_vectors(s, b)
    return s, [a, b]


def add_in_vectors(s, tensor):
    """Each element of the tensor from sums of its own, in registers."""
    _, lane = s[tensor].split(s[tensor].op.reduce_axis[0], factor=LANES)
    sums = s.rfactor(tensor, lane, factor_axis=-1)
    s[sums].compute_at(s[tensor], s[tensor].op.axis[-1])
    s[sums].set_scope("register")
    lane = s[sums].op.axis[-1]
    s[sums].reorder(s[sums].op.reduce_axis[0], lane)
    s[sums].vectorize(lane)


def parallel(n):
    """Pieces of the tensor, each summed by one core as before, then the sum of the pieces' sums."""
    s, a, b = total(n)
    part, _ = s[b].split(b.op.reduce_axis[0], nparts=PARTS)
    pieces = s.rfactor(b, part, factor_axis=-1)
    add_in_vectors(s, pieces)
    s[pieces].parallel(s[pieces].op.axis[-1])
    return s, [a, b]


STEPS = [naive, lanes, parallel]


def main():
    parser = argparse.ArgumentParser(description="a long sum")
    parser.add_argument("--size", type=int, default=1 << 22, help=f"elements, a multiple of {LANES * PARTS}")
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args()
    n = options.size
    x = np.random.default_rng(1).random(n, dtype="float32")
    z = np.empty(1, "float32")
    print(f"{n} elements\n\n{'step':12}{'ms':>9}{'GB/s':>9}")
    for step in STEPS:
        f = tenon.build(*step(n))
        f(x, z)
        np.testing.assert_allclose(z, x.sum(dtype="float64"), rtol=1e-4 if step is not naive else 1e-2)
        seconds = f.time_evaluator("main", number=1, repeat=options.repeat)(x, z).median
        print(f"{step.__name__:12}{seconds * 1e3:9.3f}{4 * n / seconds / 1e9:9.1f}")


if __name__ == "__main__":
    main()
