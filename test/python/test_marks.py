"""How a loop runs is said once, of the loop as it stays; and messages call loops as whoever wrote the schedule does."""

import unittest

import numpy as np

import tenon
from tenon import te, tir


def add_one(*shape):
    a = te.placeholder(shape, name="A")
    c = te.compute(shape, lambda i, j: a[i, j] + 1, name="C")
    return te.create_schedule(c.op), a, c


class Case(unittest.TestCase):
    def refused(self, message, call):
        with self.assertRaises(ValueError) as caught:
            call()
        self.assertIn(message, str(caught.exception))


class Marks(Case):
    def test_they_come_last(self):
        marks = {
            "vectorized": lambda stage, loop: stage.vectorize(loop),
            "parallel": lambda stage, loop: stage.parallel(loop),
            "unrolled": lambda stage, loop: stage.unroll(loop),
            "bound to threadIdx.x": lambda stage, loop: stage.bind(loop, te.thread_axis("threadIdx.x")),
        }
        later = {
            "split": lambda stage, i, j: stage.split(i, 4),
            "fuse": lambda stage, i, j: stage.fuse(i, j),
            "tile": lambda stage, i, j: stage.tile(i, j, 2, 2),
            **{
                name: lambda stage, i, j, mark=mark: mark(stage, i)
                for name, mark in (("parallel", marks["parallel"]), ("vectorize", marks["vectorized"]), ("unroll", marks["unrolled"]))
            },
        }
        for how, mark in marks.items():
            for name, call in later.items():
                s, _, c = add_one(8, 8)
                i, j = c.op.axis
                mark(s[c], i)
                primitive = "split" if name == "tile" else name
                with self.subTest(how=how, then=name):
                    self.refused(f"{primitive} of 'C': loop 'i' is {how} already; how a loop runs is said once", lambda: call(s[c], i, j))
        s, a, c = add_one(8, 8)  # an order is of marked loops, too
        i, j = c.op.axis
        s[c].vectorize(j)
        s[c].parallel(i)
        s[c].pragma(i, "producer_stages", 2)
        s[c].reorder(i, j)
        np.testing.assert_array_equal(tenon.build(s, [a, c])(np.zeros((8, 8), "float32")).numpy(), np.ones((8, 8)))

    def test_a_size_that_is_not_known(self):
        n = te.var("n")
        for mark in ("vectorize", "unroll"):
            s, a, c = add_one(n, n)
            getattr(s[c], mark)(c.op.axis[1])
            self.refused("expected a constant extent, got n\n  note: split it first", lambda: tenon.lower(s, [a, c]))

    def test_sizes_without_a_name(self):
        m, n = te.var(), te.var()
        self.assertNotEqual(m.name, n.name)
        s, a, c = add_one(m, n)
        np.testing.assert_array_equal(tenon.build(s, [a, c])(np.zeros((2, 3), "float32")).numpy(), np.ones((2, 3)))
        self.refused("two sizes are called 'k'; use one, or give them names of their own", lambda: add_one(te.var("k"), te.var("k")))

    def test_steps_of_a_size(self):
        """They begin at lo."""
        for lo, good, bad in ((0, (0, 4, 8), (1, 5)), (1, (1, 5, 9), (0, 4, 8)), (4, (4, 8), (0, 5))):
            s, a, c = add_one(te.var("n", lo=lo, step=4), 2)
            f = tenon.build(s, [a, c])
            for size in good:
                self.assertEqual(f(np.zeros((size, 2), "float32")).shape, (size, 2))
            for size in bad:
                self.refused(f"but got shape[0]={size}", lambda: f(np.zeros((size, 2), "float32")))

    def test_keys_that_nothing_reads(self):
        s = tir.Schedule(te.create_prim_func(list(add_one(4, 4)[1:])))
        for name in ("C.i", "C"):
            self.refused("nothing reads the key 'pragma_unroll'; expected cooperative, dependent_launch, ", lambda: s.annotate(name, "pragma_unroll", 4))
        s.annotate("C.i", "cooperative", True)
        self.assertIn("cooperative", str(s))


class AutoUnroll(Case):
    def lowered(self, steps, explicit=None, at=0, shape=(64, 4, 8)):
        a = te.placeholder(shape, name="A")
        k = te.reduce_axis((0, shape[2]), "k")
        c = te.compute(shape[:2], lambda i, j: te.sum(a[i, j, k], axis=k), name="C")
        s = te.create_schedule(c.op)
        s[c].pragma([*c.op.axis, k][at], "auto_unroll_max_step", steps)
        if explicit is not None:
            s[c].pragma(c.op.axis[0], "unroll_explicit", explicit)
        x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
        np.testing.assert_array_equal(tenon.build(s, [a, c])(x).numpy(), x.sum(2))
        return str(tenon.lower(s, [a, c]))

    def test_inner_loops_first(self):
        counts = [(7, 0), (8, 1), (40, 2), (10**6, 3)]
        for steps, want in counts:
            with self.subTest(steps=steps):
                # The sum's start is a loop nest of its own where it is moved in front of the reduction.
                text = self.lowered(steps)
                found = sum(f"C.{loop}" in line and "unrolled" in line for loop in ("i ", "j ", "k ") for line in text.splitlines())
                self.assertEqual(found > 0, want > 0, text)
                self.assertEqual("for C.k in 0..8 unrolled" in text, want > 0, text)

    def test_where_it_is_asked_for(self):
        self.assertIn("for C.k in 0..8 unrolled", self.lowered(8, at=2))
        self.assertNotIn("C.j in 0..4 unrolled", self.lowered(10**6, at=2))
        self.assertIn("for C.k in 0..8 unrolled", self.lowered(10**6, shape=(1, 4, 8)))  # C.i is not there

    def test_left_to_others(self):
        self.assertNotIn("unrolled", self.lowered(10**6, explicit=False))
        self.assertIn("unrolled", self.lowered(10**6, explicit=True))

    def test_mistakes(self):
        s, _, c = add_one(4, 4)
        with self.assertRaisesRegex(TypeError, "expected a number of steps for auto_unroll_max_step"):
            s[c].pragma(c.op.axis[0], "auto_unroll_max_step", "many")
        self.refused("nothing reads the key 'nonsense'", lambda: s[c].pragma(c.op.axis[0], "nonsense", 1))


class Words(Case):
    def test_loops_are_called_as_they_were_made(self):
        k = te.reduce_axis((0, 64), name="k")
        a = te.placeholder((8, 64), name="A")
        c = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="C")
        s = te.create_schedule(c.op)
        ko, ki = s[c].split(k, factor=16)
        kio, kii = s[c].split(ki, factor=4)
        s[c].parallel(kio)
        with self.assertRaises(ValueError) as caught:
            tenon.lower(s, [a, c])
        message = str(caught.exception)
        self.assertIn("k.inner.outer", message)
        self.assertNotIn("C.k", message)

    def test_two_of_one_name(self):
        a = te.placeholder((8, 8), name="A")
        b = te.compute((8, 8), lambda i, j: a[i, j] + 1, name="B")
        c = te.compute((8, 8), lambda i, j: b[i, j] + 1, name="C")
        s = te.create_schedule(c.op)
        for t in (b, c):
            s[t].vectorize(t.op.axis[1])
        outer, _ = s[c].split(c.op.axis[0], 4)
        s[c].vectorize(outer)
        self.refused("C.j", lambda: tenon.lower(s, [a, c]))

    def test_what_passes_say(self):
        def lowered(name, fast):
            s, a, c = add_one(9000, 8)
            _, inner = s[c].split(c.op.axis[0], 3000)
            _, inner = s[c].split(inner, 2000)
            if fast:
                s[c].split(inner, 400)
            s[c].unroll(s[c].leaf_iter_vars[-2])
            s[c].unroll(c.op.axis[1])
            return tenon.lower(s, [a, c], name)

        def says(built, *remarks):
            self.assertEqual([r.rpartition(":")[0] for r in built.remarks], list(remarks))

        slow, fast = lowered("slow", False), lowered("fast", True)
        of_slow = ["slow: loop i.inner.inner is not unrolled"] * 2  # the full ones, and the rest
        of_fast = ["fast: loop i.inner.inner.inner is not unrolled"]
        says(tenon.build(slow), *of_slow)
        says(tenon.build(fast), *of_fast)
        both = tenon.build(tenon.IRModule({"slow": slow, "fast": fast})).remarks
        self.assertEqual([r.rpartition(":")[0] for r in both[:2]], [of_fast[0], of_slow[0]])

    def test_a_loop_that_is_gone(self):
        s, _, c = add_one(8, 8)
        outer, _ = s[c].split(c.op.axis[0], 4)
        s[c].split(outer, 2)
        self.refused("split of 'C': 'i.outer' is no loop of it now; its loops are i.outer.outer, i.outer.inner, i.inner, j", lambda: s[c].split(outer, 2))
        self.refused("'i.outer' is a loop that a schedule made: it has no value in expressions", lambda: outer + 1)

    def test_the_nearest_of_its_kind(self):
        s, a, c = add_one(8, 8)
        s[c].tensorize(c.op.axis[0], "ptx.wgmma.m64n256k16.f16")
        self.refused("did you mean ptx.wgmma.", lambda: tenon.lower(s, [a, c]))


class Texts(unittest.TestCase):
    def test_of_axes(self):
        s, _, c = add_one(8, 8)
        outer, _ = s[c].split(c.op.axis[0], 4)
        texts = [str(loop) for loop in (c.op.axis[0], outer, te.thread_axis("threadIdx.x"), te.reduce_axis((2, 4), "k"))]
        self.assertEqual(texts, ["i", "i.outer", "threadIdx.x", "k"])

    def test_of_every_object(self):
        s, a, c = add_one(8, 8)
        f = tenon.build(s, [a, c], name="f")
        g = s.create_group(outputs=c, inputs=a)
        buffer = tir.decl_buffer((4,), name="B")
        objects = [
            f, f["f"], f.runtime_module, f._library, f.inputs[0], f.time_evaluator("f", number=1)(np.zeros((8, 8), "float32")), te.Expr(1), te.var("z"), a,
            c.op, c.op.axis[0], s, s[c], s.trace, g, tir.Schedule(te.create_prim_func([a, c])), tenon.cpu(0), tenon.contrib.utils.tempdir(),
            tenon.target.Target("llvm"), tenon.lower(s, [a, c]), tenon.nd.empty((2,)), buffer, tir.ir_builder.create(), tir.ir_builder.create().get(),
            tir.call_extern("int32", "f", 1), buffer.access_ptr("r"), tenon.transform.PassContext(), tenon._tenon.Tuple([a[0, 0]]), tenon.runtime.DeviceModule(path="f.cl"),
        ]  # fmt: skip
        for value in objects:
            with self.subTest(type(value).__name__):
                self.assertNotIn(" at 0x", repr(value))
                self.assertTrue(repr(value))


class Caches(unittest.TestCase):
    def test_all_outputs_of_an_operation(self):
        n = te.var("n")
        a = te.placeholder((n, 40), name="A")
        k = te.reduce_axis((0, 40), "k")
        both = te.comm_reducer(lambda x, y: (x[0] + y[0], x[1] * y[1]), lambda t, u: (te.const(0, t), te.const(1, u)))
        for reduces in (True, False):
            if reduces:
                b, c = te.compute((n,), lambda i: both((a[i, k], a[i, k] + 0.5), axis=k), name="B")
            else:
                b, c = te.compute((n,), lambda i: (a[i, 0] + a[i, 39], a[i, 1] * 2), name="B")
            s = te.create_schedule(b.op)
            near, too = s.cache_write([b, c], "local")
            outer, inner = s[b].split(s[b].op.axis[0], factor=8)
            s[near].compute_at(s[b], outer)
            s[b].parallel(outer)
            s[b].vectorize(inner)
            f = tenon.build(s, [a, b, c])
            for size in (0, 1, 7, 8, 9, 31):
                x = np.random.default_rng(size).random((size, 40), dtype="float32")
                one, two = f(x)
                want = (x.sum(1), (x + 0.5).prod(1)) if reduces else (x[:, 0] + x[:, 39], x[:, 1] * 2)
                np.testing.assert_allclose(one.numpy(), want[0], rtol=1e-4)
                np.testing.assert_allclose(two.numpy(), want[1], rtol=1e-4)

    def test_mistakes(self):
        a = te.placeholder((4,), name="A")
        b, c = te.compute((4,), lambda i: (a[i], a[i] + 1), name="B")
        d = te.compute((4,), lambda i: b[i] + c[i], name="D")
        s = te.create_schedule(d.op)
        for message, tensors in (
            ("of no tensors", []), ("'B.v0' and 'D': they are not of one operation", [b, d]), ("buffer B.v0 is named twice", [b, b]),
        ):  # fmt: skip
            with self.assertRaisesRegex(ValueError, message):
                s.cache_write(tensors, "local")
        self.assertEqual([t.name for t in s.cache_write([d], "local")], ["D.local"])


if __name__ == "__main__":
    unittest.main()
