"""Values that are used twice at every step, for 60 steps: work grows with the steps, not with the ways through them.

Nothing is timed: where something takes every way, it never ends.
"""
import unittest

import numpy as np

import tenon
from tenon import te

STEPS = 60
TARGETS = ["llvm", "c"]


def twice(step, steps=STEPS):
    def element(x):
        for _ in range(steps):
            x = step(x)
        return x

    return element


STEP = {
    "arithmetic": lambda x: x * 0.5 + x * 0.25,
    "choices": lambda x: te.select(x > 0.5, x * 0.5, x + 0.25),
    "functions": lambda x: te.exp(x) - x,
    "remainders": lambda x: te.fmod(x * 3 + x, 1.7),
    "powers": lambda x: te.power(x * x + 1, x * 0.125),
}


def vectorized(s, B):
    o, i = s[B].split(B.op.axis[0], factor=8)
    s[B].vectorize(i)
    s[B].parallel(o)


class Sharing(unittest.TestCase):
    def test_steps_as_scalars_and_as_vectors(self):
        n = te.var("n")
        A = te.placeholder((n,), name="A")
        x = np.linspace(0, 1, 19, dtype=np.float32)
        for name, step in STEP.items():
            element = twice(step, 30 if name == "powers" else STEPS)
            B = te.compute((n,), lambda i: element(A[i]), name="B")
            got = []
            # A C compiler takes its time with long source, be it straight.
            for target in TARGETS if name in ("arithmetic", "choices") else TARGETS[:1]:
                for how in (None, vectorized):
                    with self.subTest(name=name, target=target, vectorized=how is not None):
                        s = te.create_schedule(B.op)
                        if how:
                            how(s, B)
                        got.append(np.from_dlpack(tenon.build(s, [A, B], target)(x)))
                        np.testing.assert_allclose(got[-1], got[0], rtol=1e-3, atol=1e-6)

    def test_reductions(self):
        n = te.var("n")
        A = te.placeholder((n, 12), name="A")
        r = te.reduce_axis((0, 12), name="r")
        element = twice(STEP["arithmetic"])
        B = te.compute((n,), lambda i: te.sum(element(A[i, r]), axis=r), name="B")
        s = te.create_schedule(B.op)
        o, i = s[B].split(B.op.reduce_axis[0], factor=4)
        s.rfactor(B, o)
        f = tenon.build(s, [A, B], "llvm")
        np.testing.assert_allclose(np.from_dlpack(f(np.ones((3, 12), np.float32))), np.full(3, 12 * 0.75**STEPS), rtol=1e-4)

    def test_indices(self):
        n, m = te.var("n"), te.var("m")
        A = te.placeholder((n,), name="A")
        B = te.compute((m,), lambda i: A[twice(lambda x: (x * x + x) % 7, 5)(i)], name="B")
        f = tenon.build(te.create_schedule(B.op), [m, A, B], "llvm")
        at = np.arange(5)
        for _ in range(5):
            at = (at * at + at) % 7
        a = np.arange(7, dtype=np.float32)
        np.testing.assert_array_equal(np.from_dlpack(f(5, a)), a[at])


if __name__ == "__main__":
    unittest.main()
