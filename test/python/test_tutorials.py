"""Tutorials of TVM as people know them, by their import lines alone made Tenon's."""

import ctypes
import unittest

import numpy as np

import tenon as tvm
from tenon import te


def random(*shape, dtype="float32"):
    return np.random.default_rng(3).random(shape).astype(dtype)


class VectorAdd(unittest.TestCase):
    """Working with operators: vector add."""

    def test_as_printed(self):
        tgt = tvm.target.Target(target="llvm", host="llvm")
        n = te.var("n")
        A = te.placeholder((n,), name="A")
        B = te.placeholder((n,), name="B")
        C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
        s = te.create_schedule(C.op)
        fadd = tvm.build(s, [A, B, C], tgt, name="myadd")
        dev = tvm.device(tgt.kind.name, 0)
        n = 1024
        a = tvm.nd.array(np.random.uniform(size=n).astype(A.dtype), dev)
        b = tvm.nd.array(np.random.uniform(size=n).astype(B.dtype), dev)
        c = tvm.nd.array(np.zeros(n, dtype=C.dtype), dev)
        fadd(a, b, c)
        tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
        s[C].parallel(C.op.axis[0])
        self.assertIn("parallel", str(tvm.lower(s, [A, B, C], simple_mode=True)))
        fadd_parallel = tvm.build(s, [A, B, C], tgt, name="myadd_parallel")
        fadd_parallel(a, b, c)
        tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
        s = te.create_schedule(C.op)
        outer, inner = s[C].split(C.op.axis[0], factor=4)
        s[C].parallel(outer)
        s[C].vectorize(inner)
        evaluator = tvm.build(s, [A, B, C], tgt, name="v").time_evaluator("v", dev, number=2)
        self.assertGreater(evaluator(a, b, c).mean, 0)
        temp = tvm.contrib.utils.tempdir()
        fadd.save(temp.relpath("myadd.o"))
        tvm.contrib.cc.create_shared(temp.relpath("myadd.so"), [temp.relpath("myadd.o")])
        fadd1 = tvm.runtime.load_module(temp.relpath("myadd.so"))
        fadd1(a, b, c)
        tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
        self.assertEqual(fadd.entry_name, "main")
        for options in ({"cc": tvm.contrib.cc.get_cc()}, {"fcompile": tvm.contrib.cc.create_shared}):
            fadd.export_library(temp.relpath("linked.so"), **options)
            tvm.testing.assert_allclose(tvm.load(temp.relpath("linked.so"))(a, b).numpy(), c.numpy())


class Matmul(unittest.TestCase):
    """How to optimize a product on a CPU."""

    M, K, N = 64, 96, 80

    def check(self, s, args):
        for level in (2, 3):
            with tvm.transform.PassContext(opt_level=level):
                func = tvm.build(s, args, target="llvm", name="mmult")
            self.assertTrue(func)
            dev = tvm.cpu(0)
            a, b = tvm.nd.array(random(self.M, self.K), dev), tvm.nd.array(random(self.K, self.N), dev)
            c = tvm.nd.array(np.zeros((self.M, self.N), "float32"), dev)
            func(a, b, c)
            tvm.testing.assert_allclose(c.numpy(), np.dot(a.numpy(), b.numpy()), rtol=1e-5)

    def test_steps(self):
        bn, kfactor = 16, 4
        k = te.reduce_axis((0, self.K), "k")
        A = te.placeholder((self.M, self.K), name="A")
        B = te.placeholder((self.K, self.N), name="B")
        C = te.compute((self.M, self.N), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="C")
        s = te.create_schedule(C.op)
        xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
        (k,) = s[C].op.reduce_axis
        ko, ki = s[C].split(k, factor=kfactor)
        s[C].reorder(xo, yo, ko, xi, ki, yi)
        s[C].vectorize(yi)
        self.check(s, [A, B, C])

        k = te.reduce_axis((0, self.K), "k")
        packedB = te.compute((self.N // bn, self.K, bn), lambda bigN, k, littleN: B[k, bigN * bn + littleN], name="packedB")
        C = te.compute(
            (self.M, self.N),
            lambda m, n: te.sum(A[m, k] * packedB[n // bn, k, tvm.tir.indexmod(n, bn)], axis=k),
            name="C",
        )
        s = te.create_schedule(C.op)
        CC = s.cache_write(C, "global")
        xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
        s[CC].compute_at(s[C], yo)
        xc, yc = s[CC].op.axis
        (k,) = s[CC].op.reduce_axis
        ko, ki = s[CC].split(k, factor=kfactor)
        s[CC].reorder(ko, xc, ki, yc)
        s[CC].unroll(ki)
        s[CC].vectorize(yc)
        s[C].parallel(xo)
        bigN, _, littleN = s[packedB].op.axis
        s[packedB].vectorize(littleN)
        s[packedB].parallel(bigN)
        s[C].pragma(xo, "auto_unroll_max_step", 16)
        s[C].pragma(xo, "unroll_explicit", True)
        self.check(s, [A, B, C])


class ConvolutionOnAGpu(unittest.TestCase):
    """How to optimize convolution on GPU."""

    def build(self, target, batch, in_channel, out_channel, in_size, tile, num_thread, step):
        kernel, pad, stride, vthread = 3, 1, 1, 2
        A = te.placeholder((in_size, in_size, in_channel, batch), name="A")
        W = te.placeholder((kernel, kernel, in_channel, out_channel), name="W")
        out_size = (in_size - kernel + 2 * pad) // stride + 1
        Apad = te.compute(
            (in_size + 2 * pad, in_size + 2 * pad, in_channel, batch),
            lambda yy, xx, cc, nn: tvm.tir.if_then_else(
                tvm.tir.all(yy >= pad, yy - pad < in_size, xx >= pad, xx - pad < in_size),
                A[yy - pad, xx - pad, cc, nn],
                tvm.tir.const(0.0, "float32"),
            ),
            name="Apad",
        )
        rc = te.reduce_axis((0, in_channel), name="rc")
        ry = te.reduce_axis((0, kernel), name="ry")
        rx = te.reduce_axis((0, kernel), name="rx")
        B = te.compute(
            (out_size, out_size, out_channel, batch),
            lambda yy, xx, ff, nn: te.sum(Apad[yy * stride + ry, xx * stride + rx, rc, nn] * W[ry, rx, rc, ff], axis=[ry, rx, rc]),
            name="B",
        )
        s = te.create_schedule(B.op)
        s[Apad].compute_inline()
        AA = s.cache_read(Apad, "shared", [B])
        WW = s.cache_read(W, "shared", [B])
        AL = s.cache_read(AA, "local", [B])
        WL = s.cache_read(WW, "local", [B])
        BL = s.cache_write(B, "local")
        block_factor = tile * num_thread
        block_x, block_y, block_z = (te.thread_axis(f"blockIdx.{d}") for d in "xyz")
        thread_x = te.thread_axis((0, num_thread), "threadIdx.x")
        thread_y = te.thread_axis((0, num_thread), "threadIdx.y")
        thread_xz = te.thread_axis((0, vthread), "vthread", name="vx")
        thread_yz = te.thread_axis((0, vthread), "vthread", name="vy")
        hi, wi, fi, ni = s[B].op.axis
        bz = s[B].fuse(hi, wi)
        by, fi = s[B].split(fi, factor=block_factor)
        bx, ni = s[B].split(ni, factor=block_factor)
        s[B].bind(bz, block_z)
        s[B].bind(by, block_y)
        s[B].bind(bx, block_x)
        tyz, fi = s[B].split(fi, nparts=vthread)
        txz, ni = s[B].split(ni, nparts=vthread)
        ty, fi = s[B].split(fi, nparts=num_thread)
        tx, ni = s[B].split(ni, nparts=num_thread)
        s[B].reorder(bz, by, bx, tyz, txz, ty, tx, fi, ni)
        s[B].bind(tyz, thread_yz)
        s[B].bind(txz, thread_xz)
        s[B].bind(ty, thread_y)
        s[B].bind(tx, thread_x)
        s[BL].compute_at(s[B], tx)
        yi, xi, fi, ni = s[BL].op.axis
        ry, rx, rc = s[BL].op.reduce_axis
        rco, rci = s[BL].split(rc, factor=step)
        s[BL].reorder(rco, ry, rx, rci, fi, ni)
        s[AA].compute_at(s[BL], rx)
        s[WW].compute_at(s[BL], rx)
        s[AL].compute_at(s[BL], rci)
        s[WL].compute_at(s[BL], rci)
        for shared in (AA, WW):
            yi, xi, ci, ni = s[shared].op.axis
            ty, ci = s[shared].split(ci, nparts=num_thread)
            tx, ni = s[shared].split(ni, nparts=num_thread)
            _, ni = s[shared].split(ni, factor=4)
            s[shared].reorder(ty, tx, yi, xi, ci, ni)
            s[shared].bind(ty, thread_y)
            s[shared].bind(tx, thread_x)
            s[shared].vectorize(ni)
        return tvm.build(s, [A, W, B], target)

    def test_as_printed(self):
        func = self.build("cuda -arch=null", 256, 256, 512, 14, 8, 8, 8)
        self.assertIn("__shared__", func.imported_modules[0].get_source())
        dev = tvm.device("opencl", 0)
        if not dev.exist:
            self.skipTest("no OpenCL device here")
        a, w = random(6, 6, 8, 16) - 0.5, random(3, 3, 8, 32) - 0.5
        func = self.build("opencl", 16, 8, 32, 6, 4, 4, 4)
        b = tvm.nd.empty((6, 6, 32, 16), "float32", dev)
        func(tvm.nd.array(a, dev), tvm.nd.array(w, dev), b)
        padded = np.pad(a, ((1, 1), (1, 1), (0, 0), (0, 0)))
        want = sum(np.einsum("yxcn,cf->yxfn", padded[i : i + 6, j : j + 6], w[i, j]) for i in range(3) for j in range(3))
        tvm.testing.assert_allclose(b, want, rtol=1e-3, atol=1e-4)


class Reduction(unittest.TestCase):
    """Reductions, on a CPU."""

    def setUp(self):
        self.n, self.m = te.var("n"), te.var("m")
        self.A = te.placeholder((self.n, self.m), name="A")
        k = te.reduce_axis((0, self.m), "k")
        self.B = te.compute((self.n,), lambda i: te.sum(self.A[i, k], axis=k), name="B")

    def test_split_and_factored(self):
        x = random(17, 100)
        s = te.create_schedule(self.B.op)
        ko, ki = s[self.B].split(self.B.op.reduce_axis[0], factor=16)
        xo, xi = s[self.B].split(self.B.op.axis[0], factor=32)
        tvm.testing.assert_allclose(tvm.build(s, [self.A, self.B])(x).numpy(), x.sum(1), rtol=1e-4)
        s = te.create_schedule(self.B.op)
        ko, ki = s[self.B].split(self.B.op.reduce_axis[0], factor=16)
        BF = s.rfactor(self.B, ki)
        s[BF].compute_at(s[self.B], s[self.B].op.axis[0])
        tvm.testing.assert_allclose(tvm.build(s, [self.A, self.B], "llvm")(x).numpy(), x.sum(1), rtol=1e-4)

    def test_two_dims_and_a_reducer_of_ones_own(self):
        n = te.var("n")
        Input = te.placeholder((n, n), name="Input")
        Filter = te.placeholder((3, 3), name="Filter")
        di, dj = te.reduce_axis((0, 3), name="di"), te.reduce_axis((0, 3), name="dj")
        Output = te.compute((n - 2, n - 2), lambda i, j: te.sum(Input[i + di, j + dj] * Filter[di, dj], axis=[di, dj]), name="Output")
        x, w = random(9, 9), random(3, 3)
        want = sum(x[i : i + 7, j : j + 7] * w[i, j] for i in range(3) for j in range(3))
        tvm.testing.assert_allclose(tvm.build(te.create_schedule(Output.op), [Input, Filter, Output])(x, w).numpy(), want, rtol=1e-5)
        m = te.var("m")
        product = te.comm_reducer(lambda x, y: x * y, lambda t: tvm.tir.const(1, dtype=t), name="product")
        A = te.placeholder((n, m), name="a")
        k = te.reduce_axis((0, m), name="k")
        B = te.compute((n,), lambda i: product(A[i, k], axis=k), name="b")
        v = random(3, 5) + 0.5
        tvm.testing.assert_allclose(tvm.build(te.create_schedule(B.op), [A, B])(v).numpy(), v.prod(1), rtol=1e-5)


class Scan(unittest.TestCase):
    """Scans."""

    def test_cumsum_and_lists(self):
        m, n = te.var("m"), te.var("n")
        X = te.placeholder((m, n), name="X")
        s_state = te.placeholder((m, n))
        s_init = te.compute((1, n), lambda _, i: X[0, i])
        s_update = te.compute((m, n), lambda t, i: s_state[t - 1, i] + X[t, i])
        s_scan = tvm.te.scan(s_init, s_update, s_state, inputs=[X])
        s = te.create_schedule(s_scan.op)
        outer, inner = s[s_update].split(s_update.op.axis[1], factor=8)
        s[s_update].vectorize(inner)
        x = random(6, 19)
        tvm.testing.assert_allclose(tvm.build(s, [X, s_scan], "llvm", name="myscan")(x).numpy(), x.cumsum(0), rtol=1e-5)
        s_state1, s_state2 = te.placeholder((m, n)), te.placeholder((m, 4))
        s_init1, s_init2 = te.compute((1, n), lambda _, i: X[0, i]), te.compute((1, 4), lambda _, i: 0.0)
        s_update1 = te.compute((m, n), lambda t, i: s_state1[t - 1, i] + X[t, i])
        s_update2 = te.compute((m, 4), lambda t, i: s_state2[t - 1, i] + s_state1[t - 1, 0])
        one, two = tvm.te.scan([s_init1, s_init2], [s_update1, s_update2], [s_state1, s_state2], inputs=[X])
        a, b = tvm.build(te.create_schedule(one.op), [X, one, two])(x)
        tvm.testing.assert_allclose(a.numpy(), x.cumsum(0), rtol=1e-5)
        tvm.testing.assert_allclose(b.numpy()[1:, 0], x.cumsum(0)[:, 0].cumsum()[:-1], rtol=1e-5)


class Tensorize(unittest.TestCase):
    """Use tensorize to leverage hardware intrinsics; its C function is one that the process has."""

    calls = []

    @classmethod
    def setUpClass(cls):
        folder = tvm.contrib.utils.tempdir()
        source, library = folder.relpath("gemv.c"), folder.relpath("gemv.so")
        with open(source, "w", encoding="ascii") as file:
            file.write("""
int gemv_update(float *cc, float *aa, float *bb, int m, int l, int stride) {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < l; ++j) cc[i] += aa[j] * bb[i * stride + j];
  return 0;
}
int gemv_reset(float *cc, int m) {
  for (int i = 0; i < m; ++i) cc[i] = 0.0;
  return 0;
}
""")
        import subprocess

        subprocess.run([tvm.contrib.cc.get_cc(), "-x", "c", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
        cls.library = ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
        cls.folder = folder

    def intrin_gemv(self, m, l, whole):
        a = te.placeholder((l,), name="a")
        b = te.placeholder((m, l), name="b")
        k = te.reduce_axis((0, l), name="k")
        c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
        Ab = tvm.tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1])
        Bb = tvm.tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("s1"), 1])
        Cb = tvm.tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1])

        def intrin_func(ins, outs):
            aa, bb = ins
            cc = outs[0]

            def _reset():
                ib = tvm.tir.ir_builder.create()
                ib.emit(tvm.tir.call_extern("int32", "gemv_reset", cc.access_ptr("w"), m))
                return ib.get()

            def _update():
                ib = tvm.tir.ir_builder.create()
                ib.emit(tvm.tir.call_extern("int32", "gemv_update", cc.access_ptr("w"), aa.access_ptr("r"), bb.access_ptr("r"), m, l, bb.strides[0]))
                return ib.get()

            def _body():
                return [_reset(), _update()]

            return _body() if whole else (_body(), _reset(), _update())

        return te.decl_tensor_intrin(c.op, intrin_func, binds={a: Ab, b: Bb, c: Cb})

    def test_as_printed(self):
        N, M, L = 32, 24, 64
        for factor, whole in ((16, False), (L, True)):
            A = te.placeholder((N, L), name="A")
            B = te.placeholder((M, L), name="B")
            k = te.reduce_axis((0, L), name="k")
            C = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
            s = te.create_schedule(C.op)
            x, y = C.op.axis
            (z,) = C.op.reduce_axis
            yo, yi = s[C].split(y, factor=8)
            if whole:
                s[C].reorder(x, yo, yi, z)
                s[C].tensorize(yi, self.intrin_gemv(8, L, whole))
            else:
                zo, zi = s[C].split(z, factor=factor)
                s[C].reorder(x, yo, zo, yi, zi)
                s[C].tensorize(yi, self.intrin_gemv(8, factor, whole))
            self.assertIn("gemv_update", str(tvm.lower(s, [A, B, C], simple_mode=True)))
            for target in ("llvm", "c"):
                func = tvm.build(s, [A, B, C], target=target, name="gemv")
                a, b = random(N, L), random(M, L)
                c = tvm.nd.array(np.zeros((N, M), "float32"), tvm.cpu(0))
                func(tvm.nd.array(a), tvm.nd.array(b), c)
                tvm.testing.assert_allclose(c.numpy(), np.dot(a, b.T), rtol=1e-3)
            with self.assertRaisesRegex(ValueError, "the code calls gemv_.*not part of it; save an object"):
                func.export_library(self.folder.relpath("none.so")) if target == "llvm" else tvm.build(s, [A, B, C]).export_library(self.folder.relpath("none.so"))


class Extern(unittest.TestCase):
    """External tensor functions."""

    def test_a_function_of_python(self):
        @tvm.register_func("tvm.contrib.my_tvm_addone")
        def my_tvm_addone(x, y):
            self.assertEqual((x.shape, x.dtype), ((7,), "float32"))
            tvm.nd.array(x.numpy() + 1).copyto(y)

        try:
            n = te.var("n")
            A = te.placeholder((n,), name="A")
            B = te.extern(A.shape, [A], lambda ins, outs: tvm.tir.call_packed("tvm.contrib.my_tvm_addone", ins[0], outs[0]), name="C")
            s = te.create_schedule(B.op)
            f = tvm.build(s, [A, B], "llvm")
            a = tvm.nd.array(np.arange(7, dtype=A.dtype))
            b = tvm.nd.array(np.zeros(7, dtype=B.dtype))
            f(a, b)
            tvm.testing.assert_allclose(b.numpy(), a.numpy() + 1, rtol=1e-5)
            self.assertIs(tvm.get_global_func("tvm.contrib.my_tvm_addone"), my_tvm_addone)
            with self.assertRaisesRegex(ValueError, "is a function 'tvm.contrib.my_tvm_addone' already"):
                tvm.register_func("tvm.contrib.my_tvm_addone", print)

            @tvm.register_func("tvm.contrib.my_tvm_addone", override=True)
            def fails(x, y):
                raise KeyError("of the user")

            with self.assertRaisesRegex(KeyError, "of the user"):
                f(a, b)
        finally:
            tvm.registry.remove_global_func("tvm.contrib.my_tvm_addone")
        with self.assertRaisesRegex(ValueError, "there is no function 'tvm.contrib.my_tvm_addone'; register_func"):
            f(a, b)
        self.assertIsNone(tvm.get_global_func("nothing", allow_missing=True))

    def test_numbers_to_a_function_of_python(self):
        seen = []
        tvm.register_func("numbers", lambda *args: seen.append([v.numpy().tolist() if isinstance(v, tvm.nd.NDArray) else v for v in args]))
        try:
            n = te.var("n")
            A = te.placeholder((n, 2), "int16", name="A")
            B = te.extern((n,), [A], lambda ins, outs: tvm.tir.call_packed("numbers", ins[0], 3, True, -2.5, n, outs[0]), dtype="float64", name="B")
            tvm.build(te.create_schedule(B.op), [A, B])(np.array([[1, 2], [3, 4]], "int16"), np.array([7.0, 8.0]))
        finally:
            tvm.registry.remove_global_func("numbers")
        self.assertEqual(seen, [[[[1, 2], [3, 4]], 3, 1, -2.5, 2, [7.0, 8.0]]])

    def test_statements(self):
        def body(ins, outs):
            ib = tvm.tir.ir_builder.create()
            a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
            total = ib.allocate("float32", (1,), name="total", scope="local")
            total[0] = 0.0
            with ib.for_range(0, n, name="i") as i:
                with ib.if_scope(i % 2 == 0):
                    total[0] = total[0] + a[i]
                with ib.else_scope():
                    total[0] = total[0] - a[i]
                half = ib.let("half", total[0] / 2)
                b[i] = half + te.exp(half) * 0.0
            return ib.get()

        n = te.var("n")
        A = te.placeholder((n,), name="A")
        B = te.extern((n,), [A], body, name="alternating")
        for target in ("llvm", "c"):
            f = tvm.build(te.create_schedule(B.op), [A, B], target, name="f")
            for size in (0, 1, 2, 7):
                x = random(size)
                want = np.cumsum(x * np.where(np.arange(size) % 2 == 0, 1, -1)) / 2
                tvm.testing.assert_allclose(f(x).numpy(), want, rtol=1e-5, atol=1e-6)

    def test_functions_of_c_that_the_process_has(self):
        def body(ins, outs):
            ib = tvm.tir.ir_builder.create()
            a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
            with ib.for_range(0, n) as i, ib.for_range(0, 3, name="j") as j:
                b[i * 3 + j] = tvm.tir.call_extern("float32", "cbrtf", a[i, j])
            return ib.get()

        n = te.var("n")
        A = te.placeholder((n, 3), name="A")
        B = te.extern((n, 3), [A], body, name="cubic")
        x = random(5, 3)
        for target in ("llvm", "c"):
            tvm.testing.assert_allclose(tvm.build(te.create_schedule(B.op), [A, B], target, name="f")(x).numpy(), np.cbrt(x), rtol=1e-5)


class Intrinsics(unittest.TestCase):
    """Intrinsics and math functions."""

    def test_math(self):
        n = te.var("n")
        A = te.placeholder((n,), name="A")
        x = random(9)
        for f, want in (
            (lambda i: te.exp(A[i]), np.exp(x)),
            (lambda i: tvm.tir.exp(A[i]), np.exp(x)),
            (lambda i: tvm.tir.call_intrin("float32", "tir.exp", A[i]), np.exp(x)),
            (lambda i: tvm.tir.if_then_else(tvm.tir.all(A[i] > 0.25, A[i] < 0.75), A[i], tvm.tir.const(0, "float32")), np.where((x > 0.25) & (x < 0.75), x, 0)),
            (lambda i: tvm.tir.Select(tvm.tir.any(A[i] > 0.5, i == 0), tvm.tir.Cast("float32", i), tvm.tir.FloatImm("float32", 2)), None),
            (lambda i: tvm.tir.min(tvm.tir.max(A[i], 0.25), tvm.tir.max_value("float32")), np.maximum(x, 0.25)),
        ):
            B = te.compute((n,), f, name="B")
            got = tvm.build(te.create_schedule(B.op), [A, B], "llvm")(x).numpy()
            tvm.testing.assert_allclose(got, np.where((x > 0.5) | (np.arange(9) == 0), np.arange(9), 2) if want is None else want, rtol=1e-5)


class Variables(unittest.TestCase):
    def test_of_loop_ir(self):
        n, scale = tvm.tir.Var("n", "int32"), tvm.tir.Var("scale", "float32")
        self.assertEqual((n.dtype, scale.dtype, tvm.tir.SizeVar("m", "int32").dtype), ("int64", "float32", "int64"))
        A = te.placeholder((n,), name="A")
        B = te.compute((n,), lambda i: A[i] * scale, name="B")
        self.assertEqual(tvm.build(te.create_schedule(B.op), [A, scale, B])(random(3), 2.0).shape, (3,))


class Tuples(unittest.TestCase):
    """Compute and reduce with tuple inputs."""

    def test_argmax_and_pairs(self):
        def fcombine(x, y):
            return tvm.tir.Select((x[1] >= y[1]), x[0], y[0]), tvm.tir.Select((x[1] >= y[1]), x[1], y[1])

        def fidentity(t0, t1):
            return tvm.tir.const(-1, t0), tvm.te.min_value(t1)

        argmax = te.comm_reducer(fcombine, fidentity, name="argmax")
        m, n = te.var("m"), te.var("n")
        idx = te.placeholder((m, n), name="idx", dtype="int32")
        val = te.placeholder((m, n), name="val", dtype="int32")
        k = te.reduce_axis((0, n), "k")
        T0, T1 = te.compute((m,), lambda i: argmax((idx[i, k], val[i, k]), axis=k), name="T")
        f = tvm.build(te.create_schedule(T0.op), [idx, val, T0, T1])
        at, best = f(np.tile(np.arange(5, dtype="int32"), (2, 1)), np.array([[1, 9, 3, 9, 0], [5, 4, 3, 2, 1]], "int32"))
        self.assertEqual((at.numpy().tolist(), best.numpy().tolist()), ([1, 0], [9, 5]))

    def test_groups(self):
        n = te.var("n")
        A = te.placeholder((n, 8), name="A")
        B = te.compute((n, 8), lambda i, j: A[i, j] * 2, name="B")
        C = te.compute((n, 8), lambda i, j: B[i, j] + 1, name="C")
        D = te.compute((n, 8), lambda i, j: C[i, j] * C[i, 7 - j], name="D")
        s = te.create_schedule(D.op)
        g = s.create_group(outputs=C, inputs=A, include_inputs=True)
        self.assertEqual([stage.op.name for stage in g.stages], ["B", "C"])
        g.compute_at(s[D], D.op.axis[0])
        x = random(3, 8)
        tvm.testing.assert_allclose(tvm.build(s, [A, D])(x).numpy(), (2 * x + 1) * (2 * x + 1)[:, ::-1], rtol=1e-5)


class Modules(unittest.TestCase):
    def test_several_in_one_library(self):
        n = te.var("n")
        A = te.placeholder((n,), name="A")

        def lowered(name, f):
            B = te.compute((n,), lambda i: f(A[i]), name="B")
            return tvm.lower(te.create_schedule(B.op), [A, B], name=name)

        one, two = lowered("one", lambda v: v + 1), lowered("two", lambda v: v * 2)
        x = random(4)
        for modules in ([one, two], {"llvm": [one, two]}, {"llvm": tvm.IRModule.joined([one, two])}):
            lib = tvm.build(modules)
            tvm.testing.assert_allclose(lib["one"](x).numpy(), x + 1)
            tvm.testing.assert_allclose(lib["two"](x).numpy(), x * 2)
        self.assertEqual(tvm.build([one, tvm.tir.Schedule(two)]).get_function("one")(x).numpy()[0], x[0] + 1)
        with self.assertRaisesRegex(ValueError, "two of the modules have a function 'one'"):
            tvm.build([one, lowered("one", lambda v: v * 3)])
        with self.assertRaisesRegex(NotImplementedError, "a library is for one target"):
            tvm.build({"llvm": one, "c": two})
        with self.assertRaisesRegex(TypeError, "for 'inputs' but got list of IrModule, int"):
            tvm.build([one, 5])

    def test_functions_by_name(self):
        n = te.var("n")
        A = te.placeholder((n,), name="A")

        def func(f):  # all are called main
            return te.create_prim_func([A, te.compute((n,), lambda i: f(A[i]), name="B")])

        add, twice = func(lambda v: v + 1), func(lambda v: v * 2)
        mod = tvm.IRModule({"add": add, tvm.ir.GlobalVar("twice"): twice})
        self.assertEqual([gv.name_hint for gv in mod.get_global_vars()], ["add", "twice"])
        self.assertEqual(mod.get_global_var("twice"), tvm.ir.GlobalVar("twice"))
        self.assertIn("func @twice", str(mod["twice"]))
        self.assertNotIn("func @add", str(mod["twice"]))
        sch = tvm.tir.Schedule(mod, "add")
        (i,) = sch.get_loops(sch.get_block("B"))
        outer, inner = sch.split(i, factors=[None, 4])
        sch.vectorize(inner)
        sch.work_on("twice")
        sch.parallel(sch.get_loops("B")[0])
        x = random(5)
        for lib in (tvm.build(mod, target="llvm"), tvm.build(sch.mod, target="c"), tvm.build(sch, target="llvm")):
            tvm.testing.assert_allclose(lib["add"](x).numpy(), x + 1)
            tvm.testing.assert_allclose(lib["twice"](x).numpy(), x * 2)
        mod["add"] = func(lambda v: v - 1)
        mod.update_func(mod.get_global_var("twice"), func(lambda v: v * 3))
        mod["main"] = add
        lib = tvm.build(mod)
        for name, want in (("add", x - 1), ("twice", x * 3), ("main", x + 1)):
            tvm.testing.assert_allclose(lib[name](x).numpy(), want)
        self.assertTrue("main" in mod and "other" not in mod)
        self.assertEqual(tvm.IRModule().functions, [])
        self.assertEqual(tvm.IRModule.from_expr(add.with_attr("global_symbol", "plus")).functions, ["plus"])
        H = te.compute((n,), lambda i: A[i] / 2, name="H")
        half = tvm.lower(te.create_schedule(H.op), [A, H], name="any")
        tvm.testing.assert_allclose(tvm.build(tvm.IRModule({"half": half}))["half"](x).numpy(), x / 2)

    def test_functions_that_are_none(self):
        A = te.placeholder((4,), name="A")
        add = te.create_prim_func([A, te.compute((4,), lambda i: A[i] + 1, name="B")])
        mod = tvm.IRModule({"add": add})
        for kind, message, call in (
            (ValueError, "the module has no function 'sub'; it has add", lambda: mod["sub"]),
            (ValueError, "which function to schedule must be said: the module has add, main", lambda: tvm.tir.Schedule(tvm.IRModule({"add": add, "main": add}))),
            (ValueError, "which function to add must be said", lambda: tvm.IRModule({"x": tvm.IRModule({"add": add, "main": add})})),
            (TypeError, "expected loop IR, of te.create_prim_func or lower, for 'functions' but got int", lambda: tvm.IRModule({"add": 5})),
            (TypeError, "expected names, texts or ir.GlobalVar's, for 'functions' but got int", lambda: tvm.IRModule({5: add})),
            (TypeError, "expected functions by their names, a dict for 'functions' but got list", lambda: tvm.IRModule([add])),
            (NotImplementedError, 'a function has "global_symbol", its name, and no tir.other', lambda: add.with_attr("tir.other", 1)),
        ):
            with self.assertRaisesRegex(kind, message):
                call()

    def test_loop_schedules_by_number(self):
        A, B = te.placeholder((16, 16), name="A"), te.placeholder((16, 16), name="B")
        k = te.reduce_axis((0, 16), "k")
        C = te.compute((16, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
        func = te.create_prim_func([A, B, C])
        sch = tvm.tir.Schedule(func)
        block = sch.get_block("C")
        i, j, k = sch.get_loops(block)
        jo, ji = sch.split(j, factors=[None, 4])
        local = sch.cache_read(block, 1, "local")
        sch.compute_at(local, jo)
        out = sch.cache_write(block, 0, "local")
        sch.reverse_compute_at(out, jo)
        self.assertEqual((sch.get_reads(local), sch.get_writes(out)), (["B"], ["C"]))
        sch.set_scope(local, 0, "register")
        self.assertIn("B.local: f32[16, 16] in register", str(sch))
        with self.assertRaisesRegex(ValueError, "block C has no buffer 5 among those that it reads, which are A, B"):
            sch.cache_read(block, 5, "local")
        x, y = random(16, 16), random(16, 16)
        tvm.testing.assert_allclose(tvm.build(sch.mod)(x, y).numpy(), x @ y, rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
