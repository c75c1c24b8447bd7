"""Schedules of tensors as templates, and reductions of tuples in parts."""

import unittest

import numpy as np

import tenon
from tenon import te


def matmul(m, n, k):
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    return a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")


def values(*shape):
    return np.random.default_rng(1).integers(-3, 4, shape).astype("float32")


class Templates(unittest.TestCase):
    def template(self, size=12, decisions=None):
        a, b, c = matmul(size, size, size)
        s = te.create_schedule(c.op)
        if decisions:
            s.use_decisions(decisions)
        i, j = c.op.axis
        (k,) = c.op.reduce_axis
        s.decide("rows", [1, 2, 4], 4)
        s.sample_categorical("lanes", [4, 8], [0.25, 0.75])
        s.sample_perfect_tile("k", k, 2, 4)
        io, jo, ii, ji = s[c].tile(i, j, "$rows", "$lanes")
        ko, ki = s[c].split(k, factors=["$k.0", "$k.1"])
        s[c].reorder(io, jo, ko, ki, ii, ji)
        s[c].vectorize(ji)
        return s, [a, b, c]

    def product(self, built, size=12):
        x, y = values(size, size), values(size, size)
        np.testing.assert_array_equal(built(x, y).numpy(), x @ y)

    def test_choices_are_steps_of_the_trace(self):
        s, args = self.template()
        self.assertEqual(s.trace.decisions, {"rows": 4, "lanes": 8, "k.0": 3, "k.1": 4})
        text = str(s.trace)
        self.assertIn('4 = decide("rows", [1, 2, 4], 4)', text)
        self.assertIn('split("C.i", ["-1", "$rows"])', text)
        self.assertIn('split("C.k", ["$k.0", "$k.1"])', text)
        self.assertIn('s.Split("C.i", {"-1", "$rows"});', s.trace.as_cpp())
        self.assertIn('s.split("C.i", ["-1", "$rows"])', s.trace.as_python())
        self.product(tenon.build(s, args))

    def test_a_trace_replays_with_other_choices_and_sizes(self):
        s, args = self.template()
        for trace in (s.trace, s.trace.as_json(), str(s.trace)):
            for size, rows in ((12, 2), (20, 1)):
                a, b, c = matmul(size, size, size)
                t = tenon.tir.Schedule(te.create_prim_func([a, b, c]))
                t.use_decisions({"rows": rows, "lanes": 4, "k.0": size // 2, "k.1": 2})
                t.replay(trace)
                self.assertEqual(t.trace.decisions, {"rows": rows, "lanes": 4, "k.0": size // 2, "k.1": 2})
                self.assertEqual(t.get_extent("C.j.1"), 4)
                self.product(tenon.build(t), size)

    def test_a_trace_is_a_program(self):
        s, _ = self.template(decisions={"rows": 2})
        names = {}
        exec(s.trace.as_python(), names)  # pylint: disable=exec-used
        a, b, c = matmul(12, 12, 12)
        t = tenon.tir.Schedule(te.create_prim_func([a, b, c]))
        t.use_decisions({"rows": 1})
        names["apply"](t)
        self.assertEqual(t.trace.decisions["rows"], 1)
        self.product(tenon.build(t))

    def test_every_number_may_be_a_choice(self):
        a = te.placeholder((64,), name="A")
        b = te.compute((64,), lambda i: a[i] + 1, name="B")
        s = te.create_schedule(b.op)
        s.decide("parts", [4, 8], 8)
        s.decide("ahead", [1, 2], 2)
        s.decide("cut", [3, 5], 5)
        outer, inner = s[b].split(b.op.axis[0], nparts="$parts")
        s[b].prefetch(a, outer, "$ahead")
        s[b].partition(inner, ["$cut"])
        x = values(64)
        np.testing.assert_array_equal(tenon.build(s, [a, b])(x).numpy(), x + 1)
        text = str(s.trace)
        for choice in ('["$parts", "-1"]', '"$ahead"', '["$cut"]'):
            self.assertIn(choice, text)
        a, b, c = matmul(5, 6, 7)
        s = te.create_schedule(c.op)
        s.decide("pad", [4, 8], 8)
        s.pad_einsum(c, ["$pad", 4, 1])
        x, y = values(5, 7), values(7, 6)
        np.testing.assert_array_equal(tenon.build(s, [a, b, c])(x, y).numpy(), x @ y)
        self.assertIn('["$pad", "4", "1"]', str(s.trace))

    def test_mistakes(self):
        a, b, c = matmul(4, 4, 4)
        s = te.create_schedule(c.op)
        with self.assertRaisesRegex(ValueError, 'split of \'C\': expected a number or "\\$" and the name of a choice, but "\\$rows" is none'):
            s[c].split(c.op.axis[0], factor="$rows")
        s.decide("rows", [0, 2], 0)
        with self.assertRaisesRegex(ValueError, "the factor of 'i' is at least 1 but is 0"):
            s[c].split(c.op.axis[0], factor="$rows")


SIZES = (1, 7, 8, 9, 31, 64)


def argmax(n, ties):
    a = te.placeholder((3, n), name="A")
    k = te.reduce_axis((0, n), name="k")

    def first(old, new):
        keep = old[1] >= new[1]
        return te.select(keep, old[0], new[0]), te.select(keep, old[1], new[1])

    def least(old, new):
        wins = te.any(new[1] > old[1], te.all(new[1] == old[1], new[0] < old[0]))
        return te.select(wins, new[0], old[0]), te.select(wins, new[1], old[1])

    reducer = te.comm_reducer(least if ties else first, lambda i, v: (te.max_value(i) if ties else te.const(-1, i), te.min_value(v)))
    at, best = te.compute((3,), lambda i: reducer((k.astype("int32"), a[i, k]), axis=k), name="T")
    return a, at, best


class TuplesInParts(unittest.TestCase):
    def test_argmax_gives_ties_to_the_same_index(self):
        for target in ("llvm", "c"):
            for n in SIZES if target == "llvm" else (9,):
                x = values(3, n)  # many are equal
                for inner in (False, True):
                    a, at, best = argmax(n, ties=inner)
                    s = te.create_schedule(at.op)
                    ko, ki = s[at].split(at.op.reduce_axis[0], factor=8)
                    parts = s.rfactor(at, ki if inner and n > 8 else ko) if n > 1 else ()
                    if parts:
                        self.assertEqual([p.dtype for p in parts], ["int32", "float32"])
                        s[parts[0]].compute_at(s[at], s[at].op.axis[0])
                    got = tenon.build(s, [a, at, best], target)(x)
                    np.testing.assert_array_equal(got[0].numpy(), x.argmax(1))
                    np.testing.assert_array_equal(got[1].numpy(), x.max(1))

    def test_parts_may_be_vectors(self):
        a, at, best = argmax(64, ties=True)
        s = te.create_schedule(at.op)
        _, ki = s[at].split(at.op.reduce_axis[0], factor=8)
        part, _ = s.rfactor(at, ki)
        s[part].reorder(s[part].op.reduce_axis[0], s[part].op.axis[0])
        s[part].vectorize(s[part].op.axis[0])
        s[part].compute_at(s[at], s[at].op.axis[0])
        x = values(3, 64)
        got = tenon.build(s, [a, at, best])(x)
        np.testing.assert_array_equal(got[0].numpy(), x.argmax(1))

    def test_an_order_that_matters_is_kept_or_refused(self):
        a, at, best = argmax(64, ties=False)
        s = te.create_schedule(at.op)
        _, ki = s[at].split(at.op.reduce_axis[0], factor=8)
        with self.assertRaisesRegex(ValueError, "rfactor.* of block T: its combiner depends on the order of what it combines"):
            s.rfactor(at, ki)

    def test_mean_and_variance(self):
        for n in SIZES:
            a = te.placeholder((2, n), name="A")
            k = te.reduce_axis((0, n), name="k")

            def merge(old, new):
                count = old[0] + new[0]
                delta = new[1] - old[1]
                share = te.select(count > 0, new[0] / te.max(count, 1.0), 0.0)
                return count, old[1] + delta * share, old[2] + new[2] + delta * delta * old[0] * share

            welford = te.comm_reducer(merge, lambda *types: tuple(te.const(0, t) for t in types), name="welford")
            out = te.compute((2,), lambda i: welford((te.const(1.0, "float32"), a[i, k], te.const(0.0, "float32")), axis=k), name="W")
            s = te.create_schedule(out[0].op)
            if n > 8:
                _, ki = s[out[0]].split(k, factor=8)
                parts = s.rfactor(out[0], ki)
                self.assertEqual(len(parts), 3)
            x = np.random.default_rng(2).random((2, n), dtype="float32") + 100
            count, mean, squares = (r.numpy() for r in tenon.build(s, [a, *out])(x))
            np.testing.assert_array_equal(count, [n, n])
            np.testing.assert_allclose(mean, x.mean(1), rtol=1e-5)
            np.testing.assert_allclose(squares / n, x.astype("float64").var(1), rtol=1e-2, atol=1e-4)

    def test_what_has_no_identity_or_is_no_combination(self):
        a = te.placeholder((64,), name="A")
        k = te.reduce_axis((0, 64), name="k")
        for combine, start, message in (
            (lambda x, y: (x[0] + y[0], x[1] + y[1]), 1, "its init is no identity: combined with itself it gives another value"),
            (lambda x, y: (x[0] + y[0] * a[0], x[1]), 0, "its body is not one update"),
        ):
            reducer = te.comm_reducer(combine, lambda *t: tuple(te.const(start, v) for v in t))
            out = te.compute((1,), lambda i: reducer((a[k], a[k]), axis=k), name="T")
            s = te.create_schedule(out[0].op)
            outer, _ = s[out[0]].split(k, factor=8)
            with self.assertRaisesRegex(ValueError, f"rfactor.* of block T: {message}"):
                s.rfactor(out[0], outer)


if __name__ == "__main__":
    unittest.main()
