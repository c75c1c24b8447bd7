"""Scans: several states, what lies between a state and an update, any axis, and schedules of them."""

import unittest

import numpy as np

import tenon
from tenon import te


def random(*shape):
    return np.random.default_rng(3).integers(-4, 5, shape).astype("float32")


def smoothing():
    """Two states; the second update reads the first, and both read a tensor in between."""
    t, n = te.var("t", lo=1), te.var("n")
    x = te.placeholder((t, n), name="X")
    level, trend = te.placeholder((t, n), name="level"), te.placeholder((t, n), name="trend")
    first = te.compute((1, n), lambda _, i: x[0, i], name="first")
    flat = te.compute((1, n), lambda _, i: 1.0, name="flat")
    ahead = te.compute((t, n), lambda r, i: level[r - 1, i] + trend[r - 1, i], name="ahead")
    moved = te.compute((t, n), lambda r, i: ahead[r, i] * 0.5 + x[r, i], name="moved")
    turned = te.compute((t, n), lambda r, i: moved[r, i] - level[r - 1, i] + trend[r - 1, i] * 0.5, name="turned")
    out = te.scan([first, flat], [moved, turned], [level, trend], inputs=[x], name="smooth")
    return x, ahead, moved, turned, out


def smoothed(x):
    level, trend = np.empty_like(x), np.empty_like(x)
    level[0], trend[0] = x[0], 1
    for r in range(1, len(x)):
        level[r] = (level[r - 1] + trend[r - 1]) * np.float32(0.5) + x[r]
        trend[r] = level[r] - level[r - 1] + trend[r - 1] * np.float32(0.5)
    return level, trend


def recurrent(width=12):
    """A recurrent cell: each row a product of the one before, which is a reduction in between."""
    t, n = te.var("t", lo=1), te.var("n")
    x = te.placeholder((t, n, width), name="X")
    w = te.placeholder((width, width), name="W")
    state = te.placeholder((t, n, width), name="state")
    init = te.compute((1, n, width), lambda _, b, i: x[0, b, i], name="init")
    k = te.reduce_axis((0, width), name="k")
    product = te.compute((t, n, width), lambda r, b, i: te.sum(state[r - 1, b, k] * w[k, i], axis=k), name="product")
    update = te.compute((t, n, width), lambda r, b, i: te.max(product[r, b, i] + x[r, b, i], -8), name="update")
    return x, w, product, update, te.scan(init, update, state, inputs=[x, w], name="cells")


def cells(x, w):
    out = np.empty_like(x)
    out[0] = x[0]
    for r in range(1, len(x)):
        out[r] = np.maximum(out[r - 1] @ w + x[r], -8)
    return out


class Scans(unittest.TestCase):
    SHAPES = ((1, 3), (2, 1), (5, 8), (7, 17))

    def test_several_states(self):
        for target in ("llvm", "c"):
            x, _, _, _, out = smoothing()
            f = tenon.build(te.create_schedule(out[0].op), [x, *out], target)
            for shape in self.SHAPES:
                values = random(*shape)
                for got, want in zip(f(values), smoothed(values)):
                    np.testing.assert_array_equal(got.numpy(), want)

    def check_smoothing(self, schedule):
        x, ahead, moved, turned, out = smoothing()
        s = te.create_schedule(out[0].op)
        schedule(s, ahead, moved, turned, out[0])
        f = tenon.build(s, [x, *out])
        for shape in self.SHAPES:
            values = random(*shape)
            for got, want in zip(f(values), smoothed(values)):
                np.testing.assert_array_equal(got.numpy(), want)

    def test_steps_of_a_row_have_loops_of_their_own(self):
        def split(s, ahead, moved, turned, out):
            for step in (moved, turned):
                outer, inner = s[step].split(step.op.axis[1], factor=4)
                s[step].vectorize(inner)
            s[ahead].vectorize(s[ahead].split(ahead.op.axis[1], factor=8)[1])

        def parallel(s, ahead, moved, turned, out):
            for step in (ahead, moved, turned):
                s[step].parallel(s[step].split(step.op.axis[1], factor=4)[0])

        def between(s, ahead, moved, turned, out):
            s[ahead].compute_at(s[out], out.op.scan_axis)

        for schedule in (split, parallel, between):
            with self.subTest(schedule.__name__):
                self.check_smoothing(schedule)

    def test_what_reads_the_state_in_the_loops_that_write_it(self):
        x, ahead, moved, turned, out = smoothing()
        s = te.create_schedule(out[0].op)
        s[ahead].compute_at(s[moved], moved.op.axis[1])
        level, trend = tenon.build(s, [x, *out], "llvm")(data := random(7, 5))
        want = smoothed(data)
        np.testing.assert_allclose(np.from_dlpack(level), want[0], rtol=1e-5)
        np.testing.assert_allclose(np.from_dlpack(trend), want[1], rtol=1e-5)

    def test_a_reduction_in_between(self):
        def plain(s, x, w, product, update, out):
            pass

        def tiled(s, x, w, product, update, out):
            b, i = product.op.axis[1:]
            (k,) = product.op.reduce_axis
            io, ii = s[product].split(i, factor=4)
            s[product].reorder(b, io, k, ii)
            s[product].vectorize(ii)
            s[product].parallel(b)

        def weights_in_the_row(s, x, w, product, update, out):
            copy = s.cache_read(w, "global", [product])
            s[copy].compute_at(s[out], out.op.scan_axis)

        for schedule in (plain, tiled, weights_in_the_row):
            with self.subTest(schedule.__name__):
                x, w, product, update, out = recurrent()
                s = te.create_schedule(out.op)
                schedule(s, x, w, product, update, out)
                f = tenon.build(s, [x, w, out])
                for steps, batch in ((1, 2), (4, 1), (5, 3)):
                    values, weights = random(steps, batch, 12), np.sign(random(12, 12))
                    np.testing.assert_array_equal(f(values, weights).numpy(), cells(values, weights))

    def test_along_another_axis(self):
        for axis in (0, 1, 2):
            dims = [te.var(f"d{d}") if d != axis else te.var("n", lo=1) for d in range(3)]
            a = te.placeholder(dims, name="A")
            state = te.placeholder(dims, name="state")
            one = [1 if d == axis else dims[d] for d in range(3)]
            init = te.compute(one, lambda *i: a[i], name="init")

            def before(i, axis=axis):
                return tuple(v - 1 if d == axis else v for d, v in enumerate(i))

            update = te.compute(dims, lambda *i: state[before(i)] + a[i], name="update")
            total = te.scan(init, update, state, inputs=[a], name="total", axis=axis)
            s = te.create_schedule(total.op)
            self.assertEqual(s[total].leaf_iter_vars[0], total.op.scan_axis)
            last = [v for d, v in enumerate(update.op.axis) if d != axis][-1]
            s[update].vectorize(s[update].split(last, factor=4)[1])
            f = tenon.build(s, [a, total])
            for size in ((1, 1, 1), (3, 4, 5)):
                x = random(*size)
                np.testing.assert_array_equal(f(x).numpy(), np.cumsum(x, axis))

    def test_rows_of_independent_columns_may_run_in_parallel(self):
        m, n = te.var("m", lo=1), te.var("n")
        a = te.placeholder((m, n), name="A")
        state = te.placeholder((m, n), name="state")
        init = te.compute((1, n), lambda _, i: a[0, i], name="init")
        update = te.compute((m, n), lambda t, i: state[t - 1, i] + a[t, i], name="update")
        total = te.scan(init, update, state, name="total")
        s = te.create_schedule(total.op)
        outer, inner = s[update].split(update.op.axis[1], factor=16)
        s[update].reorder(outer, total.op.scan_axis, inner)
        s[update].parallel(outer)
        f = tenon.build(s, [a, total])
        for shape in ((1, 1), (9, 50)):
            x = random(*shape)
            np.testing.assert_array_equal(f(x).numpy(), np.cumsum(x, 0))

    def test_what_is_refused(self):
        x, ahead, moved, turned, out = smoothing()
        s = te.create_schedule(out[0].op)
        s[out[0]].parallel(out[0].op.scan_axis)
        with self.assertRaisesRegex(ValueError, "parallel.*loop smooth.row runs over an ordered variable"):
            tenon.lower(s, [x, *out])
        s = te.create_schedule(out[0].op)
        s[ahead].compute_inline()
        with self.assertRaisesRegex(ValueError, "compute_inline.* of block ahead: block moved writes smooth.v0, which it reads, later"):
            tenon.lower(s, [x, *out])
        s = te.create_schedule(out[0].op)
        with self.assertRaisesRegex(ValueError, "split of 'moved': 'r' is no loop of it now"):
            s[moved].split(moved.op.axis[0], factor=2)
        with self.assertRaisesRegex(ValueError, "'ahead' is no scan"):
            ahead.op.scan_axis
        n = 4
        state = te.placeholder((n, n), name="state")
        init = te.compute((1, n), lambda _, i: 0.0, name="init")
        rows = te.compute((n, n), lambda t, i: state[t - 1, i], name="rows")
        for update, message in (
            (te.compute((n, n), lambda t, i: rows[t - 1, i], name="u"), "'u' reads row t - 1 of 'rows' while it computes row t"),
            (te.compute((n, n), lambda t, i: state[t, i], name="u"), "'u' reads row t of 'state' while it computes row t"),
            (te.compute((n, n), lambda t, i: te.compute((3,), lambda j: state[j, 0], name="part")[0], name="u"),
             "'part' reads a state, so dim 0 of it has as many rows as the state"),
        ):  # fmt: skip
            with self.assertRaisesRegex(ValueError, f"scan 'scan': {message}"):
                te.scan(init, update, state)
        with self.assertRaisesRegex(ValueError, "scan 'scan': there is no axis -1"):
            te.scan(init, rows, state, axis=-1)


if __name__ == "__main__":
    unittest.main()
