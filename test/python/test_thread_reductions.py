"""Reductions whose loops are bound to the threads of a block, on whatever OpenCL device there is: a CPU's will do."""

import unittest

import numpy as np

import tenon
from tenon import te

TARGET = "opencl -max_threads_per_block=1024"
NULL = "cuda -arch=null"


def values(*shape):
    return np.random.default_rng(5).integers(-4, 5, shape).astype("float32")


def axis(name):
    return te.thread_axis(name)


class ThreadReductions(unittest.TestCase):
    def setUp(self):
        self.device = tenon.opencl(0)

    def check(self, s, args, inputs, wants):
        """Compiled for CUDA, and run by OpenCL where there is a device. Small integers: sums are exact in any order."""
        source = tenon.build(s, args, NULL, name="f").get_source()
        self.assertEqual("__syncthreads" in source, "__launch_bounds__(1)" not in source)
        if not self.device.exist:
            self.skipTest("no OpenCL device here")
        f = tenon.build(s, args, TARGET, name="f")
        for arrays, want in zip(inputs, wants):
            got = f(*[tenon.nd.array(a, self.device) for a in arrays])
            for one, expected in zip(got if isinstance(got, (list, tuple)) else [got], want):
                np.testing.assert_array_equal(one.numpy(), expected)

    def rows(self, *extents):
        n = te.var("n")
        a = te.placeholder((n, *extents), name="A")
        loops = [te.reduce_axis((0, e), f"k{i}") for i, e in enumerate(extents)]
        b = te.compute((n,), lambda i: te.sum(a[(i, *loops)], axis=loops), name="B")
        return n, a, loops, b

    def sums(self, s, a, b, *extents):
        arrays = [values(rows, *extents) for rows in (0, 1, 3, 17)]
        self.check(s, [a, b], [(x,) for x in arrays], [(x.sum(tuple(range(1, x.ndim))),) for x in arrays])

    def test_any_number_of_threads_and_any_extent(self):
        for threads in (2, 3, 5, 8, 32, 33, 70, 257):
            for extent in (1, threads - 1, threads, threads + 1, 3 * threads + 1, 101):
                with self.subTest(threads=threads, extent=extent):
                    _, a, (k,), b = self.rows(extent)
                    s = te.create_schedule(b.op)
                    _, inner = s[b].split(k, factor=threads)
                    s[b].bind(b.op.axis[0], axis("blockIdx.x"))
                    s[b].bind(inner, axis("threadIdx.x"))
                    self.sums(s, a, b, extent)

    def test_an_open_extent(self):
        n, m = te.var("n"), te.var("m")
        a = te.placeholder((n, m), name="A")
        k = te.reduce_axis((0, m), "k")
        b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
        for threads_first in (False, True):
            s = te.create_schedule(b.op)
            outer, inner = s[b].split(k, factor=16)
            block, row = s[b].split(b.op.axis[0], factor=4)
            if threads_first:
                s[b].reorder(inner, outer)
            s[b].bind(block, axis("blockIdx.x"))
            s[b].bind(row, axis("threadIdx.y"))
            s[b].bind(inner, axis("threadIdx.x"))
            arrays = [values(*shape) for shape in ((1, 1), (4, 15), (5, 16), (7, 17), (13, 100), (3, 0))]
            self.check(s, [a, b], [(x,) for x in arrays], [(x.sum(1),) for x in arrays])

    def test_several_axes_and_a_factored_reduction(self):
        for first, second in ((3, 7), (4, 8), (5, 64)):
            for rfactor in (False, True):
                _, a, (k0, k1), b = self.rows(first, second)
                s = te.create_schedule(b.op)
                outer, inner = s[b].split(k1, factor=3)
                if rfactor:
                    part = s.rfactor(b, inner)
                    s[b].bind(s[b].op.reduce_axis[0], axis("threadIdx.x"))
                    s[part].compute_at(s[b], s[b].op.reduce_axis[0])
                    s[part].bind(s[part].op.reduce_axis[0], axis("threadIdx.y"))
                else:
                    s[b].bind(k0, axis("threadIdx.y"))
                    s[b].bind(inner, axis("threadIdx.x"))
                s[b].bind(s[b].op.axis[0], axis("blockIdx.x"))
                with self.subTest(extents=(first, second), rfactor=rfactor):
                    self.sums(s, a, b, first, second)

    def test_softmax_in_a_block(self):
        """Every thread needs what the threads found together: it is in memory of each, or of all."""
        n, width = te.var("n"), 70
        a = te.placeholder((n, width), name="A")
        k, l = te.reduce_axis((0, width), "k"), te.reduce_axis((0, width), "l")
        top = te.compute((n,), lambda i: te.max(a[i, k], axis=k), name="top")
        total = te.compute((n,), lambda i: te.sum(a[i, l] - top[i], axis=l), name="total")
        out = te.compute((n, width), lambda i, j: (a[i, j] - top[i]) * 2 + total[i], name="out")
        for scope in ("shared", "local"):
            s = te.create_schedule(out.op)
            row, column = out.op.axis
            s[out].bind(row, axis("blockIdx.x"))
            s[out].bind(s[out].split(column, factor=32)[1], axis("threadIdx.x"))
            for stage, loop in ((top, k), (total, l)):
                s[stage].compute_at(s[out], row)
                s[stage].bind(s[stage].split(loop, factor=32)[1], axis("threadIdx.x"))
                s[stage].set_scope(scope)
            arrays = [values(rows, width) for rows in (1, 5)]
            rest = [x - x.max(1, keepdims=True) for x in arrays]
            with self.subTest(scope=scope):
                self.check(s, [a, out], [(x,) for x in arrays], [(2 * r + r.sum(1, keepdims=True),) for r in rest])

    def argmax(self, first):
        def best(x, y):
            if first:
                keep = x[1] >= y[1]
                return te.select(keep, x[0], y[0]), te.select(keep, x[1], y[1])
            wins = te.any(y[1] > x[1], te.all(y[1] == x[1], y[0] < x[0]))
            return te.select(wins, y[0], x[0]), te.select(wins, y[1], x[1])

        n = te.var("n")
        a = te.placeholder((n, 100), name="A")
        k = te.reduce_axis((0, 100), name="k")
        start = (lambda i, v: (te.const(-1, i), te.min_value(v))) if first else (lambda i, v: (te.max_value(i), te.min_value(v)))
        reducer = te.comm_reducer(best, start, name="argmax")
        at, most = te.compute((n,), lambda i: reducer((k.astype("int32"), a[i, k]), axis=k), name="at")
        return a, k, at, most

    def test_tuples(self):
        for first in (False, True):
            for threads in (7, 16):
                a, k, at, most = self.argmax(first)
                s = te.create_schedule(at.op)
                s[at].bind(at.op.axis[0], axis("blockIdx.x"))
                # Ties go to whoever comes first where each thread has neighbours.
                parts = s[at].split(k, nparts=threads) if first else s[at].split(k, factor=threads)
                s[at].bind(parts[0 if first else 1], axis("threadIdx.x"))
                arrays = [values(rows, 100) for rows in (1, 9)]
                with self.subTest(first=first, threads=threads):
                    self.check(s, [a, at, most], [(x,) for x in arrays], [(x.argmax(1), x.max(1)) for x in arrays])

    def test_an_order_that_matters(self):
        a, k, at, most = self.argmax(first=True)
        s = te.create_schedule(at.op)
        s[at].bind(s[at].split(k, factor=16)[1], axis("threadIdx.x"))
        with self.assertRaisesRegex(ValueError, "bind.*its combiner depends on the order.*only its outermost reduce loop, k.outer, leaves"):
            tenon.lower(s, [a, at, most])

    def test_who_stores(self):
        for where, source in ((0, "threadIdx_x == 0"), (3, "threadIdx_x == 3")):
            n, a, (k,), b = self.rows(40)
            s = te.create_schedule(b.op)
            s[b].bind(b.op.axis[0], axis("blockIdx.x"))
            tx = axis("threadIdx.x")
            s[b].bind(s[b].split(k, factor=8)[1], tx)
            s[b].set_store_predicate(tx.var.equal(where))
            self.assertIn(source, tenon.build(s, [a, b], NULL).get_source())
            self.sums(s, a, b, 40)
        for condition, message in (
            (tx.var.equal(8), "there is no thread for which threadIdx.x == 8 holds"),
            (axis("blockIdx.x").var < 1, "elements that it computes would not be stored"),
        ):
            s = te.create_schedule(b.op)
            s[b].bind(b.op.axis[0], axis("blockIdx.x"))
            s[b].bind(s[b].split(k, factor=8)[1], tx)
            s[b].set_store_predicate(condition)
            with self.assertRaisesRegex(ValueError, f"set_store_predicate.*{message}"):
                tenon.lower(s, [a, b])

    def test_refusals(self):
        _, a, (k,), b = self.rows(40)
        for name in ("blockIdx.x", "vthread"):
            s = te.create_schedule(b.op)
            s[b].bind(s[b].split(k, factor=8)[1], axis(name))
            with self.assertRaisesRegex(ValueError, "loop k0.inner runs over its reduction"):
                tenon.lower(s, [a, b])
        with self.assertRaisesRegex(ValueError, "the thread axis 'threadIdx.x' is no value: schedules bind loops to it"):
            te.compute((4,), lambda i: axis("threadIdx.x") + i)


if __name__ == "__main__":
    unittest.main()
