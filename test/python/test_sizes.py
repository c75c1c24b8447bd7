"""No sizes that a call is given make a kernel read outside its tensors, divide by zero or end the process."""

import unittest

import numpy as np

import tenon
from tenon import te

TARGETS = ["llvm", "c"]


def ones(*shape):
    return np.ones(shape, "float32")


def built(args, output, target="llvm", change=None):
    s = te.create_schedule(output.op)
    if change:
        change(s)
    return tenon.build(s, [*args, output], target)


def text(sizes, parameters, body):
    source = f"func @f<{sizes}>({parameters}) {{exported: true}} {{\n{body}\n}}"
    return tenon.build(tenon.IrModule.parse(source))


class Accesses(unittest.TestCase):
    def setUp(self):
        self.n, self.m = te.var("n"), te.var("m")
        self.A = te.placeholder((self.n,), name="A")

    def refused(self, message, f, *args):
        with self.assertRaisesRegex(ValueError, message):
            f(*args)

    def test_loops_over_another_size(self):
        B = te.placeholder((self.m,), name="B")
        C = te.compute((self.m,), lambda i: B[i] + self.A[i], name="C")

        def split(s):
            o, i = s[C].split(C.op.axis[0], factor=16)
            s[C].vectorize(i)
            s[C].parallel(o)

        for target in TARGETS:
            with self.subTest(target=target):
                add = built([self.A, B], C, target, split)
                self.assertEqual(add(ones(12), ones(10)).shape, (10,))
                self.assertEqual(add(ones(0), ones(0)).shape, (0,))
                self.refused(r"A\[vi\] along dim 0 takes the value m - 1=1999999, but the dim has n=10 elements",
                             add, ones(10), ones(2_000_000))
                self.refused("m - 1=10, but the dim has n=10", add, ones(10), ones(11))

    def test_reductions_over_another_size(self):
        k, l = te.var("k"), te.var("l")
        P, Q = te.placeholder((self.n, k), name="P"), te.placeholder((l, self.m), name="Q")
        r = te.reduce_axis((0, k), name="r")
        R = te.compute((self.n, self.m), lambda i, j: te.sum(P[i, r] * Q[r, j], axis=r), name="R")
        product = built([P, Q], R)
        np.testing.assert_array_equal(np.from_dlpack(product(ones(3, 4), ones(4, 5))), np.full((3, 5), 4))
        self.refused("along dim 0 takes the value k - 1=4, but the dim has l=4 elements", product, ones(3, 5), ones(4, 5))

    def test_guarded_reads(self):
        C = te.compute((self.m,), lambda i: te.select(i >= 3, self.A[i - 3], 0.0), name="C")
        shift = built([self.m, self.A], C)
        self.assertEqual(shift(10, ones(7)).shape, (10,))
        self.assertEqual(shift(2, ones(0)).shape, (2,))
        self.refused("takes the value m - 4=6, but the dim has n=6", shift, 10, ones(6))

    def test_indices_that_neither_rise_nor_fall(self):
        for target in TARGETS:
            with self.subTest(target=target):
                k = te.var("k")
                C = te.compute((self.m,), lambda i: self.A[(i * i) % k], name="C")
                take = built([self.m, k, self.A], C, target)
                self.assertEqual(take(10, 7, ones(5)).shape, (10,))  # squares modulo 7 are 0, 1, 2 and 4
                self.refused(r"takes the value .* % k=4, but the dim has n=4 elements at .*=2", take, 10, 7, ones(4))
                self.assertEqual(take(2, 7, ones(2)).shape, (2,))
                D = te.compute((self.m,), lambda i: te.select(i > 0, self.A[self.n + 1 - i], 0.0), name="D")
                back = built([self.m, self.A], D, target)
                self.assertEqual(back(1, ones(3)).shape, (1,))
                self.refused("but the dim has n=3 elements at .*=1", back, 3, ones(3))
                E = te.compute((self.m,), lambda i: self.A[te.select(i < 3, i, 7 - i)], name="E")
                fold = built([self.m, self.A], E, target)
                self.assertEqual(fold(8, ones(5)).shape, (8,))
                self.refused("takes the value .*=4, but the dim has n=4", fold, 8, ones(4))
                self.refused("takes the value .*=-1", fold, 9, ones(5))

    def test_numbers_in_indices(self):
        off = te.scalar("off", "int32")
        C = te.compute((self.m,), lambda i: self.A[i + off], name="C")
        take = built([self.m, off, self.A], C)
        self.assertEqual(take(5, 2, ones(7)).shape, (5,))
        self.refused("Index out of range", take, 5, 3, ones(7))
        self.refused("Index out of range: .* takes the value .*=-1", take, 5, -1, ones(7))

    def test_schedules_keep_what_is_required(self):
        C = te.compute((self.m,), lambda i: self.A[i], name="C")
        t = tenon.tir.Schedule(te.create_prim_func([self.m, self.A, C]))
        t.split(t.get_loops("C")[0], [None, 7])
        f = tenon.build(tenon.IrModule.parse(str(t.module)) if hasattr(t, "module") else t)
        self.assertEqual(f(7, ones(8)).shape, (7,))
        self.refused("takes the value m - 1=7, but the dim has n=7", f, 8, ones(7))

    def test_loop_text(self):
        f = text("n, m", "A: f32[n], out B: f32[m]", "for i in 0..m { B[i] = A[i] }")
        f(ones(5), ones(5))
        self.refused("m - 1=499, but the dim has n=5", f, ones(5), ones(500))
        with self.assertRaisesRegex(ValueError, r"A\[i \+ n\] along dim 0: the index takes the value"):
            text("n, m", "A: f32[n], out B: f32[m]", "for i in 0..m { B[i] = A[i + n] }")

    def test_extern_functions(self):
        body = "func @g<n, m>(A: f32[n], out B: f32[m]) kind device {\n  for i in 0..m { B[i] = A[i + 1] }\n}"
        f = built([self.m, self.A], te.extern((self.m,), [self.A], body, name="B"))
        self.assertEqual(f(5, ones(6)).shape, (5,))
        self.refused(r"A\[i \+ 1\] along dim 0 in @g takes the value m=5, but the dim has n=5", f, 5, ones(5))
        outside = te.extern((self.n,), [self.A], body.replace("m", "n").replace("<n, n>", "<n>"), name="B")
        with self.assertRaisesRegex(ValueError, r"function 'g': A\[i \+ 1\] along dim 0: the index takes the value n"):
            te.create_schedule(outside.op)


class Divisors(unittest.TestCase):
    def test_sizes_of_zero(self):
        n, m = te.var("n"), te.var("m")
        A = te.placeholder((n,), name="A")
        for target in TARGETS:
            with self.subTest(target=target):
                C = te.compute((n,), lambda i: A[(i * 7) % n], name="C")
                turned = built([A], C, target, lambda s: s[C].parallel(C.op.axis[0]))
                self.assertEqual(turned(ones(0)).shape, (0,))
                self.assertEqual(turned(ones(5)).shape, (5,))
                D = te.compute((m,), lambda i: A[i % n], name="D")
                ring = built([m, A], D, target)
                self.assertEqual(ring(10, ones(3)).shape, (10,))
                self.assertEqual(ring(0, ones(0)).shape, (0,))
                with self.assertRaisesRegex(ValueError, "n=0"):
                    ring(10, ones(0))
                E = te.compute((m,), lambda i: (i // n).astype("int64"), name="E")
                rows = built([m, n], E, target)
                self.assertEqual(rows(4, 2).shape, (4,))
                with self.assertRaisesRegex(ValueError, "Division by zero: vi / n at n=0"):
                    rows(4, 0)


class Shapes(unittest.TestCase):
    """Sizes that follow from shapes which are expressions."""

    def test_one_size_in_a_shape(self):
        f = text("n", "A: f32[2 * n + 1], out B: i32[n]", "for i in 0..n { B[i] = i32(i) }")
        self.assertEqual(f(ones(7)).shape, (3,))
        f(ones(7), np.empty(3, "int32"))
        for wrong in [0, 6]:
            with self.assertRaisesRegex(ValueError, rf"expects shape\[0\]=2 \* n \+ 1 for some n but got shape\[0\]={wrong}"):
                f(ones(wrong))
        with self.assertRaisesRegex(ValueError, r"n=3 \(from A.shape\[0\]\) but B.shape\[0\]=4"):
            f(ones(7), np.empty(4, "int32"))

    def test_one_size_in_the_shapes_of_tensors(self):
        n, m = te.var("n"), te.var("m")
        A, D = te.placeholder((2 * n + 1,), name="A"), te.placeholder((m + n,), name="D")
        for target in TARGETS:
            with self.subTest(target=target):
                f = built([A], te.compute((2 * n + 1,), lambda i: A[i] + n, name="B"), target)
                np.testing.assert_array_equal(f(ones(7)), np.full(7, 4))
                for wrong in [0, 6]:
                    with self.assertRaisesRegex(ValueError, rf"expects shape\[0\]=2 \* n \+ 1 for some n but got shape\[0\]={wrong}"):
                        f(ones(wrong))
                g = built([A, D], te.compute((m,), lambda i: D[i + n] + A[0], name="C"), target)
                self.assertEqual(g(ones(5), ones(6)).shape, (4,))
                with self.assertRaisesRegex(ValueError, "m at least 0|m of shape"):
                    g(ones(5), ones(1))

    def test_sizes_that_later_arguments_tell(self):
        f = text("n", "A: f32[n + 1], C: f32[n], out B: i32[n]", "for i in 0..n { B[i] = i32(i) }")
        self.assertEqual(f(ones(4), ones(3)).shape, (3,))
        with self.assertRaisesRegex(ValueError, r"`A` expects shape\[0\]=n \+ 1=5 but got shape\[0\]=4"):
            f(ones(4), ones(4))
        g = text("n, m", "A: f32[n * 3], D: f32[m + n], out C: i32[m, 1]", "for i in 0..m { C[i, 0] = i32(n) }")
        np.testing.assert_array_equal(np.from_dlpack(g(ones(6), ones(5))), [[2]] * 3)
        with self.assertRaisesRegex(ValueError, "m of shape.0.=m . n at least 0 but got m=-1"):
            g(ones(6), ones(1))

    def test_sizes_that_nothing_tells(self):
        with self.assertRaisesRegex(ValueError, "function 'f': the size 'n' follows from the shape of no argument"):
            text("n, m", "A: f32[n * m], out C: i32[m + n]", "for i in 0..m { C[i] = 0i32 }")


class Errors(unittest.TestCase):
    def test_messages_of_c_libraries_arrive(self):
        n = te.var("n")
        A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
        add = built([A, B], te.compute((n,), lambda i: A[i] + B[i], name="C"), "c")
        with self.assertRaisesRegex(ValueError, r"Shape mismatch: n=5 \(from A.shape\[0\]\) but B.shape\[0\]=7"):
            add(ones(5), ones(7))


if __name__ == "__main__":
    unittest.main()
