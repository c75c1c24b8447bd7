"""Tensor expressions and schedules from Python, as textbooks print them."""

import functools
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper, parser

import tenon
from tenon import te


def vector_add(n):
    a = te.placeholder((n,), name="A")
    b = te.placeholder((n,), name="B")
    return a, b, te.compute((n,), lambda i: a[i] + b[i], name="C")


def matmul(n):
    a = te.placeholder((n, n), name="A")
    b = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    return a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")


def shifted(size):
    a = te.placeholder((size,), name="A")
    b = te.compute((size,), lambda i: a[i] + 1)
    return te.create_schedule(b.op), [a, b]


def random(*shape):
    return np.random.default_rng(7).random(shape, dtype="float32")


class VectorAdd(unittest.TestCase):
    def setUp(self):
        a, b, c = vector_add(te.var("n"))
        s = te.create_schedule(c.op)
        outer, inner = s[c].split(c.op.axis[0], factor=64)
        s[c].parallel(outer)
        s[c].vectorize(inner)
        self.schedule, self.args = s, [a, b, c]
        self.add = tenon.build(s, self.args, "llvm", name="add")

    def test_every_size_and_kind_of_array(self):
        for n in (0, 1, 63, 64, 65, 1000):
            x, y, z = random(n), random(n) + 1, np.full(n, -1, "float32")
            self.add(x, y, z)
            np.testing.assert_array_equal(z, x + y)
            held = [tenon.nd.array(v, tenon.cpu(0)) for v in (x, y, np.zeros(n, "float32"))]
            self.add(*held)
            np.testing.assert_array_equal(held[2].numpy(), x + y)
            np.testing.assert_array_equal(self.add(x, held[1]).numpy(), x + y)

    def test_a_saved_library_is_loaded_by_tenon_and_by_tvm_ffi(self):
        folder = tenon.contrib.utils.tempdir()
        path = folder.relpath("add.so")
        self.add.export_library(path)
        x, y = random(10), random(10)
        for module in (tenon.runtime.load_module(path), tenon.load(path)):
            np.testing.assert_array_equal(module["add"](x, y).numpy(), x + y)
        code = f"import numpy, tvm_ffi; x = numpy.ones(3, 'float32'); m = tvm_ffi.load_module({path!r}); " \
               "z = numpy.zeros(3, 'float32'); m.add(x, x, z); m.main(x, x, z); assert (z == 2).all()"
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_an_object_is_linked_by_the_system(self):
        folder = tenon.contrib.utils.tempdir()
        self.add.save(folder.relpath("add.o"))
        tenon.contrib.cc.create_shared(folder.relpath("linked.so"), [folder.relpath("add.o")])
        x, y = random(10), random(10)
        add = tenon.runtime.load_module(folder.relpath("linked.so"))
        np.testing.assert_array_equal(add(x, y).numpy(), x + y)

    def test_texts(self):
        self.assertIn("parallel", str(tenon.lower(self.schedule, self.args, simple_mode=True)))
        self.assertIn("define", self.add.get_source())
        self.assertIn("__tvm_ffi_add", self.add.get_source("asm"))
        ir = tenon.lower(self.schedule, self.args, name="add")
        again = tenon.build(tenon.IrModule.parse(str(ir)))
        self.assertEqual(str(tenon.IrModule.parse(str(ir))), str(ir))
        np.testing.assert_array_equal(again(random(5), random(5)).numpy(), 2 * random(5))

    def test_wrong_arguments_are_exceptions(self):
        x = random(4)
        read_only = random(4)
        read_only.flags.writeable = False
        for error, message, call in (
            (TypeError, "Expected 2 arguments, or 3 with outputs, but got 1", lambda: self.add(x)),
            (ValueError, "Shape mismatch: n=4 .* B.shape\\[0\\]=3", lambda: self.add(x, x[:3])),
            (TypeError, "expected a tensor or a number but got str", lambda: self.add(x, "x")),
            (ValueError, "an output, is read-only", lambda: self.add(x, x, read_only)),
            (TypeError, "dtype", lambda: self.add(x, x.astype("int32"))),
            (TypeError, "keyword", lambda: self.add(x, b=x)),
        ):
            with self.subTest(message), self.assertRaisesRegex(error, message):
                call()


class Schedules(unittest.TestCase):
    def check_matmul(self, schedule, args, n):
        f = tenon.build(schedule, args, "llvm")
        x, y, z = random(n, n), random(n, n) - 0.5, np.empty((n, n), "float32")
        f(x, y, z)
        np.testing.assert_allclose(z, x @ y, rtol=1e-4, atol=1e-4)

    def test_blocked_vectorized_reordered(self):
        for n in (64, 50):
            a, b, c = matmul(n)
            s = te.create_schedule(c.op)
            mo, no, mi, ni = s[c].tile(c.op.axis[0], c.op.axis[1], 32, 32)
            (kaxis,) = s[c].op.reduce_axis
            ko, ki = s[c].split(kaxis, factor=4)
            s[c].reorder(mo, no, ko, mi, ki, ni)
            s[c].vectorize(ni)
            self.check_matmul(s, [a, b, c], n)

    def test_packed_with_write_cache_in_parallel(self):
        n, bn = 64, 32
        a = te.placeholder((n, n), name="A")
        b = te.placeholder((n, n), name="B")
        k = te.reduce_axis((0, n), name="k")
        packed = te.compute((n // bn, n, bn), lambda x, y, z: b[y, x * bn + z], name="packedB")
        c = te.compute(
            (n, n), lambda m, j: te.sum(a[m, k] * packed[j // bn, k, te.indexmod(j, bn)], axis=k), name="C"
        )
        s = te.create_schedule(c.op)
        cc = s.cache_write(c, "global")
        mo, no, mi, ni = s[c].tile(c.op.axis[0], c.op.axis[1], bn, bn)
        s[cc].compute_at(s[c], no)
        mc, nc = s[cc].op.axis
        (kaxis,) = s[cc].op.reduce_axis
        ko, ki = s[cc].split(kaxis, factor=4)
        s[cc].reorder(ko, mc, ki, nc)
        s[cc].unroll(ki)
        s[cc].vectorize(nc)
        s[c].parallel(mo)
        x, y, z = s[packed].op.axis
        s[packed].vectorize(z)
        s[packed].parallel(x)
        self.check_matmul(s, [a, b, c], n)

    def test_read_cache(self):
        a, b, c = matmul(32)
        s = te.create_schedule(c.op)
        bb = s.cache_read(b, "local", [c])
        mo, mi = s[c].split(c.op.axis[0], nparts=4)
        ko, ki = s[c].split(s[c].op.reduce_axis[0], 8)
        s[c].reorder(mo, ko, ki, mi, c.op.axis[1])
        s[bb].compute_at(s[c], ko)
        self.check_matmul(s, [a, b, c], 32)

    def test_a_chain_of_caches(self):
        a, b, c = matmul(32)
        s = te.create_schedule(c.op)
        sums = s.cache_write(c, "local")
        near = s.cache_read(a, "local", [sums])
        nearer = s.cache_read(near, "register", [sums])
        io, jo, ii, ji = s[c].tile(c.op.axis[0], c.op.axis[1], 8, 8)
        s[sums].compute_at(s[c], jo)
        ko, ki = s[sums].split(s[sums].op.reduce_axis[0], 4)
        s[sums].reorder(ko, ki, *s[sums].op.axis)
        s[near].compute_at(s[sums], ko)
        s[nearer].compute_at(s[sums], ki)
        self.check_matmul(s, [a, b, c], 32)

    def test_padded_convolution(self):
        h = 16
        d = te.placeholder((h, h), name="D")
        w = te.placeholder((3, 3), name="W")
        inside = lambda i, j: te.all(i >= 1, i < h + 1, j >= 1, j < h + 1)  # noqa: E731
        p = te.compute((h + 2, h + 2), lambda i, j: te.if_then_else(inside(i, j), d[i - 1, j - 1], 0.0), name="P")
        r, c = te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 3), "c")
        o = te.compute((h, h), lambda i, j: te.sum(p[i + r, j + c] * w[r, c], axis=[r, c]), name="O")
        x, k = random(h, h), random(3, 3)
        padded = np.pad(x, 1)
        want = sum(padded[i : i + h, j : j + h] * k[i, j] for i in range(3) for j in range(3))
        for place in ("root", "inline", "at"):
            s = te.create_schedule(o.op)
            if place == "inline":
                s[p].compute_inline()
            if place == "at":
                outer, _ = s[o].split(o.op.axis[0], 4)
                s[p].compute_at(s[o], outer)
                s[o].parallel(outer)
                s[o].vectorize(o.op.axis[1])
            np.testing.assert_allclose(tenon.build(s, [d, w, o])(x, k).numpy(), want, rtol=1e-4)

    def test_softmax_by_rows(self):
        m = te.var("m")
        x = te.placeholder((m, 100), name="X")
        k1, k2 = te.reduce_axis((0, 100), "k1"), te.reduce_axis((0, 100), "k2")
        top = te.compute((m,), lambda i: te.max(x[i, k1], axis=k1), name="top")
        e = te.compute((m, 100), lambda i, j: te.exp(x[i, j] - top[i]), name="e")
        total = te.compute((m,), lambda i: te.sum(e[i, k2], axis=k2), name="total")
        y = te.compute((m, 100), lambda i, j: e[i, j] / total[i], name="Y")
        s = te.create_schedule(y.op)
        for t in (top, e, total):
            s[t].compute_at(s[y], y.op.axis[0])
        s[y].parallel(y.op.axis[0])
        v = random(7, 100)
        want = np.exp(v - v.max(1, keepdims=True))
        want /= want.sum(1, keepdims=True)
        np.testing.assert_allclose(tenon.build(s, [x, y])(v).numpy(), want, rtol=1e-5)

    def test_rfactor(self):
        n = te.var("n")
        a = te.placeholder((n, 1000), name="A")
        k = te.reduce_axis((0, 1000), name="k")
        b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
        s = te.create_schedule(b.op)
        ko, ki = s[b].split(b.op.reduce_axis[0], factor=16)
        bf = s.rfactor(b, ki)
        s[bf].compute_at(s[b], s[b].op.axis[0])
        x = random(5, 1000)
        np.testing.assert_allclose(tenon.build(s, [a, b])(x).numpy(), x.sum(1), rtol=1e-4)

    def test_inline_and_intermediate_results(self):
        n = te.var("n")
        a = te.placeholder((n,), name="A")
        b = te.compute((n,), lambda i: a[i] * 2, name="B")
        c = te.compute((n,), lambda i: te.exp(b[i]) + 1.0, name="C")
        x = random(33)
        s = te.create_schedule(c.op)
        s[b].compute_inline()
        self.assertNotIn("block B", str(tenon.lower(s, [a, c])))
        np.testing.assert_allclose(tenon.build(s, [a, c])(x).numpy(), np.exp(2 * x) + 1, rtol=1e-6)
        both = tenon.build(te.create_schedule([b.op, c.op]), [a, b, c])(x)
        np.testing.assert_array_equal(both[0].numpy(), 2 * x)
        between = tenon.build(te.create_schedule(c.op), [a, b, c])(x)
        np.testing.assert_array_equal(between[0].numpy(), 2 * x)

    def test_mistakes_are_exceptions(self):
        a, b, c = vector_add(te.var("n"))
        s = te.create_schedule(c.op)
        i = c.op.axis[0]
        s[c].split(i, 4)
        d = te.compute((8,), lambda j: c[j] * 2, name="D")
        for error, message, call in (
            (ValueError, "vectorize of 'C': 'i' is no loop of it now", lambda: s[c].vectorize(i)),
            (ValueError, "expected one of factor, nparts and factors", lambda: s[c].split(i)),
            (ValueError, "'A' has 1 dims but got 2 indices", lambda: a[1, 2]),
            (ValueError, "'B' is read but is not among the arguments", lambda: tenon.build(s, [a, c])),
            (ValueError, "has no operation 'D'", lambda: s[d]),
            (ValueError, "takes 2 variables", lambda: te.compute((8,), lambda x, y: a[x])),
            (TypeError, "`/` of integers", lambda: te.var("m") / 2),
            (TypeError, "no truth value", lambda: bool(te.var("m") < 2)),
            (ValueError, "whole body", lambda: te.sum(a[0], axis=te.reduce_axis((0, 4))) + 1),
            (ValueError, "is no reduce axis", lambda: te.sum(a[0], axis=i)),
            (ValueError, "no type 'float31'", lambda: te.placeholder((1,), "float31")),
            (ValueError, "'m' follows from the shape of no argument", lambda: tenon.build(*shifted(te.var("m") * te.var("k")))),
            (ValueError, "not an identifier of C", lambda: tenon.build(s, [a, b, c], name="a b")),
            (ValueError, "nested more than 500 deep", lambda: functools.reduce(lambda e, _: e + 1, range(600), a[0])),
            (TypeError, "integer", lambda: te.placeholder((2.5,))),
            (ValueError, "unknown", lambda: tenon.target.Target("lvm")),
        ):
            with self.subTest(message), self.assertRaisesRegex(error, message):
                call()

    def test_intermediate_results_of_every_size(self):
        for bounds in ({}, {"hi": 500}):
            for scope in ("global", "local", "register"):
                n, m = te.var("n", **bounds), te.var("m", **bounds)
                a = te.placeholder((n, m), name="A")
                b = te.compute((n, m), lambda i, j: a[i, j] * 2, name="B")
                c = te.compute((n, m), lambda i, j: b[i, j] + b[n - 1 - i, m - 1 - j], name="C")
                s = te.create_schedule(c.op)
                s[b].set_scope(scope)
                if scope == "global":
                    s[b].parallel(b.op.axis[0])
                    s[c].parallel(c.op.axis[0])
                f = tenon.build(s, [a, c], name="mirror")
                for shape in ((1, 1), (0, 3), (7, 33), (200, 500)):
                    with self.subTest(bounds=bounds, scope=scope, shape=shape):
                        x = random(*shape)
                        np.testing.assert_array_equal(f(x).numpy(), 2 * x + (2 * x)[::-1, ::-1])
                folder = tenon.contrib.utils.tempdir()
                path = folder.relpath("mirror.c")
                if bounds:
                    f.export_to_c(path)
                else:
                    with self.assertRaisesRegex(ValueError, "working memory has no bound"):
                        f.export_to_c(path)

    def test_more_memory_than_there_is(self):
        k, a = te.var("k"), te.placeholder((1,), name="A")
        one = np.ones(1, "float32")
        for shape in ((k, k), (k, k, k, k), (2**30, 2**30, 2**10), (k * 2**40, 2**30)):
            b = te.compute(shape, lambda *i: a[0] + 1, name="B")
            c = te.compute((1,), lambda i: te.select(k > 0, b[(0,) * len(shape)], 0.0), name="C")
            f = tenon.build(te.create_schedule(c.op), [k, a, c])
            if isinstance(shape[0], te.Var):
                self.assertEqual(f(3, one).numpy()[0], 2)
            for size in (2**20, 2**31, 2**62):
                with self.subTest(shape=str(shape), size=size), self.assertRaisesRegex(MemoryError, "out of memory: an arena of"):
                    f(size, one)

    def test_sizes_that_only_an_output_tells(self):
        h = te.var("h")
        a = te.placeholder((h + 2,), name="A")
        c = te.compute((h,), lambda i: a[i] + a[i + 2], name="C")
        s = te.create_schedule(c.op)
        x = np.arange(5, dtype="float32")
        for arguments, given in (([a, c], [x]), ([h, a, c], [3, x])):
            np.testing.assert_array_equal(tenon.build(s, arguments)(*given).numpy(), x[:3] + x[2:])
        square = te.placeholder((h * h,), name="A")
        d = te.compute((h,), lambda i: square[i], name="D")
        with self.assertRaisesRegex(ValueError, "the shape of 'A' has 'h' in it, which follows from the shape of no input"):
            tenon.build(te.create_schedule(d.op), [square, d])

    def test_sizes_of_extern_functions_are_those_of_their_tensors(self):
        n = te.var("n")
        a = te.placeholder((n,), name="A")
        body = "func @f<m>(A: f32[{0}], out B: f32[{0}]) kind device {{ for i in 0..{0} {{ B[i] = A[i] }} }}"
        te.extern((n,), [a], body.format("m"), name="E")
        with self.assertRaisesRegex(ValueError, "extern 'E': 'A' of @f has 4 elements along dim 0 but its tensor n"):
            te.extern((n,), [a], body.format("4").replace("<m>", ""), name="E")
        with self.assertRaisesRegex(ValueError, "'B' of @f has m elements along dim 0 but its tensor n \\+ 1"):
            te.extern((n + 1,), [a], body.format("m"), name="E")

    def test_numbers_are_passed_by_value(self):
        n, alpha = te.var("n"), te.var("alpha", "float32")
        flip, shift = te.scalar("flip", "bool"), te.scalar("shift", "int32")
        x = te.placeholder((n * 2,), name="X")
        y = te.compute((n * 2,), lambda i: te.select(flip, -1.0, 1.0) * (x[i] * alpha + shift), name="Y")
        f = tenon.build(te.create_schedule(y.op), [n, x, alpha, flip, shift, y], name="axpy")
        v = random(6)
        np.testing.assert_allclose(f(3, v, 0.5, False, -7).numpy(), v * 0.5 - 7)
        out = np.empty(6, "float32")
        f(np.int64(3), v, np.float32(0.5), np.True_, np.array(2), out)
        np.testing.assert_allclose(out, -(v * 0.5 + 2))
        for error, message, args in (
            (TypeError, "`alpha` expects float but got type_index=", (3, v, v, True, 1)),
            (TypeError, "`n` expects int but got type_index=3", (3.0, v, 1, True, 1)),
            (ValueError, "`shift` expects a value in .* but got 2147483648", (3, v, 1, True, 2**31)),
            (ValueError, "`X` expects shape\\[0\\]=.*4 but got shape\\[0\\]=6", (2, v, 1, True, 1)),
        ):
            with self.subTest(message), self.assertRaisesRegex(error, message):
                f(*args)
        folder = tenon.contrib.utils.tempdir()
        f.export_library(folder.relpath("axpy.so"))
        code = "import numpy, tvm_ffi; x = numpy.ones(6, 'float32'); z = numpy.zeros(6, 'float32'); " \
               f"m = tvm_ffi.load_module({folder.relpath('axpy.so')!r}); " \
               "m.axpy(3, x, 2.5, True, 4, z); assert (z == -6.5).all()"
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_exceptions_of_the_callers_function_pass_through(self):
        with self.assertRaises(ZeroDivisionError):
            te.compute((4,), lambda i: 1 // 0)


class Expressions(unittest.TestCase):
    def evaluate(self, element, *inputs):
        places = [te.placeholder(x.shape, x.dtype.name, f"x{k}") for k, x in enumerate(inputs)]
        out = te.compute(inputs[0].shape, lambda i: element(i, *places), name="out")
        return tenon.build(te.create_schedule(out.op), [*places, out])(*inputs).numpy()

    def test_arithmetic_follows_python_and_numpy(self):
        x = np.array([-7, -1, 0, 5, 9], "int32")
        y = np.array([2, -3, 4, -2, 5], "int32")
        f = np.linspace(-2, 2, 5).astype("float32")
        for element, want, arrays in (
            (lambda i, x, y: x[i] // y[i], x // y, (x, y)),
            (lambda i, x, y: x[i] % y[i], x % y, (x, y)),
            (lambda i, x: x[i] * 2 - 1, x * 2 - 1, (x,)),
            (lambda i, x: -x[i] & 6, -x & 6, (x,)),
            (lambda i, f: te.select(f[i] > 0, f[i], 0.5), np.where(f > 0, f, 0.5), (f,)),
            (lambda i, f: te.max(f[i], 0.25) + i, np.maximum(f, 0.25) + np.arange(5), (f,)),
            (lambda i, f: te.tanh(f[i]) / 3, np.tanh(f) / 3, (f,)),
            (lambda i, f: f[i].astype("int32"), f.astype("int32"), (f,)),
            (lambda i, x, f: x[i] + f[i], x + f, (x, f)),
            (lambda i, x: te.all(x[i] > -2, x[i] < 6), (x > -2) & (x < 6), (x,)),
        ):
            np.testing.assert_allclose(self.evaluate(element, *arrays), want, rtol=1e-6)

    def test_reductions(self):
        x = random(6, 50)
        a = te.placeholder(x.shape, name="A")
        for reduce, want in ((te.sum, x.sum(1)), (te.max, x.max(1)), (te.min, x.min(1)), (te.prod, x.prod(1))):
            k = te.reduce_axis((0, 50), "k")
            b = te.compute((6,), lambda i: reduce(a[i, k], axis=k), name="B")
            got = tenon.build(te.create_schedule(b.op), [a, b])(x).numpy()
            np.testing.assert_allclose(got, want, rtol=1e-4)

    def test_several_results_of_one_loop(self):
        x = random(4, 7)
        a = te.placeholder(x.shape, name="A")
        b, c = te.compute((4, 7), lambda i, j: (a[i, j] + 1, a[i, j] * 2), name="B")
        got = tenon.build(te.create_schedule(b.op), [a, b, c])(x)
        np.testing.assert_array_equal(got[0].numpy(), x + 1)
        np.testing.assert_array_equal(got[1].numpy(), x * 2)

    def test_a_reducer_of_ones_own(self):
        x = random(5, 40)
        a = te.placeholder(x.shape, name="A")
        k = te.reduce_axis((0, 40), "k")

        def better(old, new):
            keep = old[1] >= new[1]
            return te.select(keep, old[0], new[0]), te.select(keep, old[1], new[1])

        argmax = te.comm_reducer(better, lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax")
        index = te.const(0, "int32") + k
        at, best = te.compute((5,), lambda i: argmax((index, a[i, k]), axis=k), name="T")
        s = te.create_schedule(at.op)
        s[at].split(s[at].op.axis[0], 2)
        got = tenon.build(s, [a, at, best])(x)
        np.testing.assert_array_equal(got[0].numpy(), x.argmax(1))
        np.testing.assert_array_equal(got[1].numpy(), x.max(1))
        root = te.comm_reducer(lambda u, v: u + v * v, lambda t: te.const(0, t))
        b = te.compute((5,), lambda i: root(a[i, k], axis=k), name="B")
        got = tenon.build(te.create_schedule(b.op), [a, b])(x).numpy()
        np.testing.assert_allclose(got, (x * x).sum(1), rtol=1e-5)

    def test_scans_of_fewer_rows_than_they_begin_with(self):
        m = te.var("m")
        a = te.placeholder((m, 3), name="A")
        state = te.placeholder((m, 3), name="state")
        init = te.compute((2, 3), lambda i, j: 7.0, name="init")
        update = te.compute((m, 3), lambda t, j: state[t - 2, j] + a[t, j], name="update")
        total = te.scan(init, update, state, inputs=[a], name="total")
        f = tenon.build(te.create_schedule(total.op), [a, total])
        for rows in (0, 1, 2, 5):
            x, out = random(rows, 3), np.zeros((rows + 3, 3), "float32")
            f(x, out[:rows])
            want = np.full((rows, 3), 7, "float32")
            for t in range(2, rows):
                want[t] = want[t - 2] + x[t]
            np.testing.assert_allclose(out[:rows], want, rtol=1e-6)
            np.testing.assert_array_equal(out[rows:], 0)
        few = te.placeholder((1, 3), name="few")
        with self.assertRaisesRegex(ValueError, "scan 'short': dim 0 of the state is 1, of the first rows 'init' 2"):
            te.scan(init, te.compute((1, 3), lambda t, j: few[t - 2, j], name="u"), few, name="short")

    def test_one_value_by_a_reducer_of_ones_own(self):
        a, k = te.placeholder((1000,), name="A"), te.reduce_axis((0, 1000), name="k")
        add = te.comm_reducer(lambda x, y: x + y, lambda t: te.const(0, t), name="add")
        total = te.compute((1,), lambda i: add(a[k], axis=k), name="total")
        s = te.create_schedule(total.op)
        outer, _ = s[total].split(k, factor=8)
        s.rfactor(total, outer)
        self.assertGreaterEqual(len(s.stages), 2)
        x = np.arange(1000, dtype="float32")
        self.assertEqual(tenon.build(s, [a, total])(x).numpy()[0], x.sum())

    def test_scan(self):
        m, n = te.var("m", lo=1), te.var("n")
        a = te.placeholder((m, n), name="A")
        state = te.placeholder((m, n), name="state")
        init = te.compute((1, n), lambda _, i: a[0, i], name="init")
        update = te.compute((m, n), lambda t, i: state[t - 1, i] + a[t, i], name="update")
        total = te.scan(init, update, state, inputs=[a], name="total")
        s = te.create_schedule(total.op)
        outer, inner = s[update].split(update.op.axis[1], factor=8)
        s[update].vectorize(inner)
        sums = tenon.build(s, [a, total])
        for shape in ((1, 3), (9, 20)):
            x = random(*shape)
            np.testing.assert_allclose(sums(x).numpy(), np.cumsum(x, 0), rtol=1e-5)

    def test_sizes_with_ranges(self):
        n = te.var("n", lo=8, hi=64, step=8)
        a = te.placeholder((n,), name="A")
        b = te.compute((n,), lambda i: a[i] + 1)
        f = tenon.build(te.create_schedule(b.op), [a, b])
        np.testing.assert_array_equal(f(random(16)).numpy(), random(16) + 1)
        for size in (0, 9, 72):
            with self.assertRaises(ValueError):
                f(random(size))


class Arrays(unittest.TestCase):
    def test_dlpack_goes_both_ways_without_a_copy(self):
        source = np.arange(6, dtype="float32").reshape(2, 3)
        shared = tenon.nd.from_dlpack(source)
        source[0, 0] = 7
        self.assertEqual(shared.shape, (2, 3))
        np.testing.assert_array_equal(shared.numpy(), source)
        held = tenon.nd.array(source)
        view = np.from_dlpack(held)
        held.copyfrom(source + 1)
        np.testing.assert_array_equal(view, source + 1)
        del held
        np.testing.assert_array_equal(view, source + 1)
        self.assertEqual((tenon.cpu(0).exist, tenon.nd.empty((2,)).dtype), (True, "float32"))


class Targets(unittest.TestCase):
    def test_a_target_is_a_context(self):
        a, b, c = vector_add(8)
        with tenon.target.Target("llvm -mcpu=x86-64"):
            f = tenon.build(te.create_schedule(c.op), [a, b, c])
        self.assertIn("x86-64", str(f._library.target))
        self.assertIsNone(tenon.target.Target.current())

    def test_as_tvm_writes_them(self):
        for given, expected in (
            ({"kind": "llvm", "mcpu": "skylake-avx512"}, "llvm -mcpu=skylake-avx512"),
            ({"kind": "llvm", "mcpu": "x86-64", "mattr": ["+avx2", "+fma"], "keys": ["cpu"], "num-cores": 4}, "llvm -mcpu=x86-64 -mattr=+avx2,+fma -num-cores=4"),
            ({"kind": "llvm", "mtriple": "aarch64-linux-gnu"}, "llvm -mtriple=aarch64-linux-gnu"),
            ({"kind": "cuda", "arch": "sm_80", "host": {"kind": "llvm", "mcpu": "x86-64", "tag": "t"}}, "cuda -arch=sm_80 -host=llvm -mcpu=x86-64"),
            ("llvm -keys=cpu -mcpu=core-avx2 -link-params=0 -device=arm_cpu", "llvm -mcpu=core-avx2"),
            ("cuda -keys=cuda,gpu -arch=sm_75 -max_num_threads=1024 -host=llvm -keys=cpu -mcpu=x86-64", "cuda -arch=sm_75 -host=llvm -mcpu=x86-64"),
        ):
            self.assertEqual(tenon.target.Target(given), tenon.target.Target(expected))
        s, args = shifted(8)
        self.assertIn("target llvm", repr(tenon.build(s, args, {"kind": "llvm", "keys": ["cpu"]})))
        for message, given in (
            ("expected a text, such as \"llvm\", under 'kind' of a dict but got None", {"mcpu": "core-avx2"}),
            ("unknown option of 'llvm' '-cpu'", {"kind": "llvm", "cpu": "core-avx2"}),
            ("unknown option of 'llvm' '-keyed'", "llvm -keyed=cpu"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                tenon.target.Target(given)


class Loops(unittest.TestCase):
    def test_a_loop_that_there_is_not_is_named_with_its_tensor(self):
        a, b, c = matmul(4)
        plus = te.compute((4,), lambda i: a[i, 0] + 1, name="P")
        fixed = te.extern((4,), [], lambda _, outs: tenon.tir.call_packed("fill", outs[0]), name="F")
        for message, loop in (
            ("'A' has no loops in axis: only what te.compute makes has; of a placeholder cache_read makes a stage that copies it", lambda: a.op.axis[0]),
            ("'F' has no loops in axis: only what te.compute makes has", lambda: fixed.op.axis[0]),
            ("'B' has no loops in axis: ", lambda: te.create_schedule(c.op)[b].op.axis[-1]),
            ("'C' has 2 loops in axis, but not number 2$", lambda: c.op.axis[2]),
            ("'C' has 1 loops in reduce_axis, but not number -2$", lambda: c.op.reduce_axis[-2]),
            ("'P' has no loops in reduce_axis$", lambda: plus.op.reduce_axis[0]),
        ):
            with self.assertRaisesRegex(IndexError, message):
                loop()
        i, j = c.op.axis
        self.assertEqual((c.op.axis[-1], c.op.axis[:1], list(a.op.axis)), (j, [i], []))


class Conditions(unittest.TestCase):
    """Reductions over the elements for which a condition holds."""

    def reduced(self, reducer, x, least):
        a = te.placeholder(x.shape, x.dtype.name, name="A")
        k = te.reduce_axis((0, x.shape[1]), name="k")
        b = te.compute((x.shape[0],), lambda i: reducer(a[i, k], axis=k, where=a[i, k] > least), name="B")
        s = te.create_schedule(b.op)
        s[b].split(b.op.reduce_axis[0], factor=4)
        return tenon.build(s, [a, b])(x).numpy()

    def test_every_reducer(self):
        product = te.comm_reducer(lambda old, new: old * new, lambda dtype: te.const(1, dtype), name="product")
        for dtype in ("float32", "int32"):
            x = np.array([[1, -2, 3, 4, -5], [-1, -2, -3, -4, -5]], dtype)
            end = np.inf if dtype == "float32" else np.iinfo(dtype).max
            start = -np.inf if dtype == "float32" else np.iinfo(dtype).min
            for reducer, expected in (
                (te.sum, [8, 0]), (te.prod, [12, 1]), (product, [12, 1]), (te.max, [4, start]), (te.min, [1, end]),
            ):  # fmt: skip
                np.testing.assert_array_equal(self.reduced(reducer, x, 0), np.array(expected, dtype))

    def test_tuples(self):
        x = np.array([3, 9, 5, 9, 1], "int32")
        a = te.placeholder((5,), "int32", name="A")
        k = te.reduce_axis((0, 5), name="k")

        def larger(old, new):
            keep = old[1] >= new[1]
            return te.select(keep, old[0], new[0]), te.select(keep, old[1], new[1])

        argmax = te.comm_reducer(larger, lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")
        at, most = te.compute((1,), lambda _: argmax((k.astype("int32"), a[k]), k, where=a[k] < 9), name="T")
        at, most = tenon.build(te.create_schedule(at.op), [a, at, most])(x)
        self.assertEqual((at.numpy()[0], most.numpy()[0]), (2, 5))

    def test_mistakes(self):
        a, k = te.placeholder((5,), name="A"), te.reduce_axis((0, 5), name="k")
        reducer = te.comm_reducer(lambda old, new: old + new, lambda dtype: te.const(0, dtype), name="total")
        for message, call in (
            ("sum: got an unexpected keyword argument 'init'", lambda: te.sum(a[k], axis=k, init=1)),
            ("total: got an unexpected keyword argument 'init'", lambda: reducer(a[k], k, init=1)),
            ("sum: expected an axis of reduce_axis, .* and a condition as where=", lambda: te.sum(a[k], k, a[k] > 0)),
            ("max: expected an axis of reduce_axis, .* and a condition as where=", lambda: te.max(a[k], a[k], where=a[k] > 0)),
            ("sum: expected an expression or a number for 'where' but got str", lambda: te.sum(a[k], axis=k, where="a")),
        ):
            with self.assertRaisesRegex(TypeError, message):
                call()


class Sessions(unittest.TestCase):
    def test_a_model_runs_under_onnxruntimes_names(self):
        w = random(4, 2)
        tensor = functools.partial(helper.make_tensor_value_info, elem_type=TensorProto.FLOAT)
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Relu", ["t"], ["y"])], "g",
            [tensor("x", shape=["batch", 4])], [tensor("y", shape=["batch", 2])], [numpy_helper.from_array(w, "w")],
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        session = tenon.InferenceSession(model.SerializeToString(), shapes={"x": [3, 4]})
        (x,) = session.get_inputs()
        self.assertEqual((x.name, x.shape, x.type), ("x", [3, 4], "tensor(float)"))
        feed = random(3, 4) - 0.5
        (y,) = session.run(None, {x.name: feed})
        np.testing.assert_allclose(y, np.maximum(feed @ w, 0), rtol=1e-5, atol=1e-6)
        with self.assertRaisesRegex(ValueError, "missing"):
            session.run(None, {})
        for error, message, shapes in (
            (TypeError, "expected the sizes of 'x' in 'shapes' as a list, such as .1, 3, 224, 224., but got int", {"x": 3}),
            (TypeError, "expected the sizes of 'x' in 'shapes' as a list, .* but got str", {"x": "3x4"}),
            (TypeError, "expected a number, or a name .* for each size of 'shapes' but got None", {"x": [None, 4]}),
            (TypeError, "for each size of 'shapes' but got -1", {"x": [-1, 4]}),
            (TypeError, "for each size of 'shapes' but got 3.5", {"x": [3.5, 4]}),
            (TypeError, "expected the name of an input in 'shapes' but got int", {0: [3, 4]}),
            (TypeError, "compile: expected dict . None for 'shapes' but got list of int, int", [3, 4]),
            (ValueError, "input 'z': a shape is given for it, but the model has no such input", {"z": [3, 4]}),
            (ValueError, "is not a size", {"x": ["3..4", 4]}),
        ):
            with self.subTest(shapes=shapes), self.assertRaisesRegex(error, message):
                tenon.compile(model.SerializeToString(), shapes=shapes)
        again = tenon.compile(model, shapes={"x": (np.int64(3), 4)})
        np.testing.assert_array_equal(again(feed).numpy(), y)

    def test_what_the_command_line_takes(self):
        model = parser.parse_model('<ir_version: 10, opset_import: ["": 21]> g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }')
        x = random(2, 3) - 0.5
        with tempfile.TemporaryDirectory() as there:
            for folder in (os.path.join(there, "new", ""), there):
                made = tenon.compile(model, folder, opt_level=np.int64(3))
                np.testing.assert_array_equal(made(x).numpy(), np.maximum(x, 0))
                self.assertEqual(sorted(f for f in os.listdir(folder) if f != "new"), ["inference_example.cpp", "metadata.json", "model.so"])
        for level in (4, -1):
            for compile in (lambda level: tenon.compile(model, opt_level=level),
                            lambda level: tenon.InferenceSession(model.SerializeToString(), opt_level=level),
                            lambda level: tenon.auto_scheduler.extract_tasks(model, target="llvm", opt_level=level)):  # fmt: skip
                with self.assertRaisesRegex(ValueError, f"expected a level from 0 to 3 for 'opt_level' but got {level}"):
                    compile(level)


if __name__ == "__main__":
    unittest.main()
