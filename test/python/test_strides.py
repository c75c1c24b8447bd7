"""Strides that people give to buffers: of arguments (build's binds) and of the operands of intrinsics."""

import unittest

import numpy as np

import tenon
from tenon import te, tir

TARGETS = ("llvm", "c")
m, n = te.var("m"), te.var("n")
A = te.placeholder((m, n), name="A")
B = te.placeholder((m, n), name="B")
C = te.compute((m, n), lambda i, j: A[i, j] * 2 + B[i, j], name="C")


def numbers(*shape):
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def built(strides, target="llvm", schedule=lambda s: None, tensors=(A, B, C)):
    s = te.create_schedule(tensors[-1].op)
    schedule(s)
    first = tensors[0]
    return tenon.build(s, list(tensors), target, binds={first: tir.decl_buffer(first.shape, first.dtype, strides=strides)})


class OfArguments(unittest.TestCase):
    def equal(self, f, a):
        b = numbers(*a.shape)[::-1].copy()
        np.testing.assert_array_equal(f(a, b).numpy(), a * 2 + b)

    def test_rows_apart(self):
        for target in TARGETS:
            f = built([te.var("row"), 1], target)
            for shape in ((0, 3), (3, 0), (1, 1), (1, 7), (5, 1), (7, 13)):
                self.equal(f, numbers(*shape))
                self.equal(f, numbers(shape[0], 2 * shape[1] + 3)[:, 2 : 2 + shape[1]])
                self.equal(f, numbers(2 * shape[0] + 1, shape[1])[: 2 * shape[0] : 2])
            with self.assertRaisesRegex(ValueError, r"`A` expects strides\[1\]=1 but got strides\[1\]=3"):
                f(numbers(4, 3).T, numbers(3, 4))

    def test_elements_apart(self):
        for target in TARGETS:
            f = built([te.var("row"), te.var("column")], target)
            for shape in ((0, 3), (1, 1), (2, 5), (7, 13)):
                self.equal(f, numbers(*shape[::-1]).T)
                self.equal(f, numbers(3 * shape[0], 2 * shape[1])[::3, ::2])
            self.equal(f, np.lib.stride_tricks.as_strided(numbers(5), (4, 5), (0, 4)))  # one row, four times
            with self.assertRaisesRegex(ValueError, r"`A` expects strides\[0\] at least 0 but got strides\[0\]=-5"):
                f(numbers(4, 5)[::-1], numbers(4, 5))

    def test_numbers(self):
        f = built([16, 1])
        self.equal(f, numbers(3, 16)[:, :5])
        self.equal(f, numbers(1, 5))  # along one element nothing is apart
        with self.assertRaisesRegex(ValueError, r"`A` expects strides\[0\]=16 but got strides\[0\]=5"):
            f(numbers(3, 5), numbers(3, 5))

    def test_one_variable_for_both(self):
        s, row = te.create_schedule(C.op), te.var("row")
        binds = {t: tir.decl_buffer(t.shape, t.dtype, strides=[row, 1]) for t in (A, B)}
        f = tenon.build(s, [A, B, C], binds=binds)
        x, y = numbers(3, 8)[:, :5], numbers(3, 8)[:, 3:]
        np.testing.assert_array_equal(f(x, y).numpy(), x * 2 + y)
        with self.assertRaisesRegex(ValueError, r"`B` expects strides\[0\]=8 but got strides\[0\]=5"):
            f(x, y.copy())
        self.assertIn("A: f32[m, n] strides (row, 1)", str(tenon.lower(s, [A, B, C], binds=binds)))

    def test_scheduled(self):
        def fast(s):
            i, j = s[C].op.axis
            outer, inner = s[C].split(j, factor=4)
            s[C].vectorize(inner)
            s[C].parallel(i)

        def cached(s):
            s.cache_read(A, "local", [C])

        for schedule in (fast, cached):
            for strides in ([te.var("row"), 1], [te.var("row"), te.var("column")]):
                f = built(strides, schedule=schedule)
                for shape in ((1, 1), (3, 3), (3, 4), (3, 5), (7, 13)):
                    self.equal(f, numbers(shape[0], 2 * shape[1])[:, : shape[1]])

    def test_memory_that_an_output_shares(self):
        f = built([te.var("row"), 1])
        memory = numbers(4, 8)
        with self.assertRaisesRegex(ValueError, "`C`"):
            f(memory[:, :4], numbers(4, 4), memory.reshape(-1)[16:].reshape(4, 4))
        f(memory[:2, :4], numbers(2, 4), memory.reshape(-1)[16:24].reshape(2, 4))

    def test_refused(self):
        s = te.create_schedule(C.op)
        for strides, message in (
            ([1], "'A': expected 2 strides but got 1"),
            ([te.var("row") * 2, 1], "'A': a stride is a number or a variable but one is"),
            ([-1, 1], "'A': a stride is a number or a variable but one is -1"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                built(strides)
        with self.assertRaisesRegex(ValueError, "'C' is an output, which has no strides of its own"):
            tenon.build(s, [A, B, C], binds={C: tir.decl_buffer(C.shape, C.dtype, strides=[te.var("row"), 1])})
        other = te.placeholder((m, n), name="other")
        with self.assertRaisesRegex(ValueError, "binds: 'other' is not among the arguments"):
            tenon.lower(s, [A, B, C], binds={other: tir.decl_buffer(other.shape, other.dtype, strides=[te.var("row"), 1])})


class OfOperands(unittest.TestCase):
    """An intrinsic of 4 x 4 that adds the double of one tile to another."""

    def intrinsic(self, name, strides):
        a, b = te.placeholder((4, 4), name="a"), te.placeholder((4, 4), name="b")
        c = te.compute((4, 4), lambda i, j: a[i, j] * 2 + b[i, j], name="c")
        buffer = tir.decl_buffer(a.shape, a.dtype, name="a", strides=strides)

        def body(ins, outs):
            ib = tir.ir_builder.create()
            with ib.for_range(0, 4, "i") as i:
                with ib.for_range(0, 4, "j") as j:
                    ib.emit(outs[0].vstore([i, j], ins[0].vload([i, j]) * 2 + ins[1].vload([i, j])))
            return ib.get()

        return te.decl_tensor_intrin(c.op, body, name, binds={a: buffer})

    def scheduled(self, intrinsic, turned):
        x = te.placeholder((16, 16), name="X")
        y = te.placeholder((16, 16), name="Y")
        z = te.compute((16, 16), lambda i, j: (x[j, i] if turned else x[i, j]) * 2 + y[i, j], name="Z")
        s = te.create_schedule(z.op)
        i, j = z.op.axis
        io, ii = s[z].split(i, factor=4)
        jo, ji = s[z].split(j, factor=4)
        s[z].reorder(io, jo, ii, ji)
        s[z].tensorize(ii, intrinsic)
        return tenon.build(s, [x, y, z])

    def test_variables(self):
        both = self.intrinsic("twice_plus.both", [te.var("s0"), te.var("s1")])
        a, b = numbers(16, 16), numbers(16, 16)[::-1].copy()
        np.testing.assert_array_equal(self.scheduled(both, True)(a, b).numpy(), a.T * 2 + b)
        np.testing.assert_array_equal(self.scheduled(both, False)(a, b).numpy(), a * 2 + b)
        rows = self.intrinsic("twice_plus.rows", [te.var("s0"), 1])
        np.testing.assert_array_equal(self.scheduled(rows, False)(a, b).numpy(), a * 2 + b)
        with self.assertRaisesRegex(ValueError, "elements of X are 16 apart in dimension 0 of the tile, intrinsic twice_plus.rows expects 1"):
            self.scheduled(rows, True)

    def test_numbers(self):
        a, b = numbers(16, 16), numbers(16, 16)[::-1].copy()
        wide = self.intrinsic("twice_plus.wide", [16, 1])
        np.testing.assert_array_equal(self.scheduled(wide, False)(a, b).numpy(), a * 2 + b)
        narrow = self.intrinsic("twice_plus.narrow", [8, 1])
        with self.assertRaisesRegex(ValueError, "elements of X are 16 apart in dimension 0 of the tile, intrinsic twice_plus.narrow expects 8"):
            self.scheduled(narrow, False)

    def test_refused(self):
        with self.assertRaisesRegex(ValueError, "'a': expected 2 strides but got 1"):
            self.intrinsic("twice_plus.short", [1])
        with self.assertRaisesRegex(ValueError, r"'a': a stride is a number or a variable but strides\[0\] is"):
            self.intrinsic("twice_plus.sum", [te.var("s") + 1, 1])


if __name__ == "__main__":
    unittest.main()
