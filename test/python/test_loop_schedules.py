"""Schedules of loop IR, their traces, and intrinsics of one's own, from Python."""

import subprocess
import unittest

import numpy as np

import tenon
from tenon import te, tir

MATMUL = """
func @matmul(A: f32[16, 64], B: f32[64, 16], out C: f32[16, 16]) {exported: true} {
  for i in 0..16, j in 0..16, k in 0..64 {
    block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) fp: contract {
      reads A[vi, vk], B[vk, vj]; writes C[vi, vj]
      init { C[vi, vj] = 0 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    }
  }
}
"""

DOT4 = """
func @dot4<a, b, c>(A: f32[4, 4] strides (a, 1), B: f32[4, 4] strides (b, 1), out C: f32[4, 4] strides (c, 1)) kind device {
  for i in 0..4, k in 0..4 {
    for j in 0..4 vectorized {
      C[i, j] = C[i, j] + A[i, k] * B[k, j]
    }
  }
}
"""

DOT4_MEANING = """
func @dot4<a, b, c>(A: f32[4, 4] strides (a, 1), B: f32[4, 4] strides (b, 1), out C: f32[4, 4] strides (c, 1)) kind device {
  for i in 0..4, j in 0..4, k in 0..4 {
    block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) fp: contract {
      reads A[vi, vk], B[vk, vj], C[vi, vj]; writes C[vi, vj]
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    }
  }
}
"""


def tensors(m, n, k):
    a = te.placeholder((m, k), name="A")
    b = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    return a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")


def small(*shape):
    return np.random.default_rng(3).integers(-4, 5, shape).astype("float32")


def check(test, built, m, n, k):
    x, y = small(m, k), small(k, n)
    np.testing.assert_array_equal(built(x, y).numpy(), x @ y)


class LoopSchedules(unittest.TestCase):
    def blocked(self, s):
        i0, i1 = s.split("i", [None, 4])
        j0, j1 = s.split("j", [-1, 8])
        s.reorder(i0, j0, "k", i1, j1)
        cache = s.cache_write("C", "C", "register")
        s.reverse_compute_at(cache, j0)
        s.decompose_reduction("C", "k")
        s.vectorize(j1)
        s.unroll(i1)
        s.parallel(i0)

    def test_a_matmul_step_by_step(self):
        s = tir.Schedule(MATMUL)
        self.assertEqual(s.get_loops("C"), ["i", "j", "k"])
        self.assertEqual(s.get_reduce_loops("C"), ["k"])
        self.assertEqual(s.get_extent("k"), 64)
        self.blocked(s)
        check(self, tenon.build(s), 16, 16, 64)
        check(self, tenon.build(s.mod, target="llvm"), 16, 16, 64)

    def test_a_trace_is_text_json_and_code_and_replays(self):
        s = tir.Schedule(MATMUL)
        self.blocked(s)
        for trace in (s.trace, tir.Trace.parse(str(s.trace)), tir.Trace.from_json(s.trace.as_json())):
            again = tir.Schedule(MATMUL)
            again.replay(trace)
            self.assertEqual(str(again), str(s))
            self.assertEqual(str(again.trace), str(s.trace))
        names = {}
        exec(s.trace.as_python(), names)  # pylint: disable=exec-used
        again = tir.Schedule(MATMUL)
        names["apply"](again)
        self.assertEqual(str(again), str(s))
        self.assertIn('s.Split("i", {-1, 4});  // i.0, i.1', s.trace.as_cpp())
        wider = tir.Schedule(MATMUL.replace("16", "48"))
        wider.replay(s.trace)
        check(self, tenon.build(wider), 48, 48, 64)

    def test_a_failed_replay_changes_nothing(self):
        s = tir.Schedule(MATMUL)
        before = str(s)
        with self.assertRaisesRegex(ValueError, "no loop is named|nothing"):
            s.replay('i.0, i.1 = split("i", [-1, 4])\nparallel("nothing")')
        self.assertEqual(str(s), before)
        self.assertEqual(len(s.trace), 0)

    def test_errors_name_primitive_block_loop_and_reason(self):
        s = tir.Schedule(MATMUL)
        with self.assertRaisesRegex(ValueError, r"vectorize\(k\) of block C: loop k runs over its reduction"):
            s.vectorize("k")
        with self.assertRaisesRegex(ValueError, "split"):
            s.split("z", [1, -1])
        s.split("i", [4, 4])  # the schedule goes on
        self.assertEqual(s.get_loops("C"), ["i.0", "i.1", "j", "k"])

    def test_choices(self):
        s = tir.Schedule(MATMUL)
        self.assertEqual(s.decide("rows", [2, 4, 8], 4), 4)
        self.assertEqual(s.sample_categorical("unroll", [0, 1], [0.25, 0.75]), 1)
        self.assertEqual(s.sample_perfect_tile("columns", "j", 2, 8), [2, 8])
        s.split("i", [-1, "$rows"])
        s.split("j", ["$columns.0", "$columns.1"])
        self.assertEqual(s.trace.decisions, {"rows": 4, "unroll": 1, "columns.0": 2, "columns.1": 8})
        other = tir.Schedule(MATMUL)
        other.use_decisions({"rows": 8, "columns.0": 4, "columns.1": 4})
        other.replay(s.trace)
        self.assertEqual([other.get_extent(l) for l in other.get_loops("C")], [2, 8, 4, 4, 64])

    def test_layouts_and_padding(self):
        s = tir.Schedule(te.create_prim_func(tensors(6, 12, 8)))
        self.assertIn("A.pad", s.pad_einsum("C", [4, 4, 4]))
        copy = s.cache_read("C", "B", "global")
        s.transform_layout("B.global", lambda r, c: (c // 4, r, c % 4))
        s.compute_root(copy)
        s.storage_align("A.pad", 0, 32, 8)
        check(self, tenon.build(s), 6, 12, 8)

    def test_pipelines(self):
        s = tir.Schedule(MATMUL)
        k0, k1 = s.split("k", [-1, 8])
        s.reorder(k0, "i", "j", k1)
        block = s.cache_read("C", "B", "shared")
        s.compute_at(block, k0)
        twin = s.copy()
        self.assertEqual(s.double_buffer(block), "k.0.pipe")
        self.assertEqual(twin.software_pipeline(k0, [0, 1], [0, 1]), "k.0.pipe")
        for schedule in (s, twin):
            check(self, tenon.build(schedule), 16, 16, 64)

    def test_outline_specialize_annotate(self):
        s = tir.Schedule(MATMUL)
        s.annotate("i", "dependent_launch", False)
        name = s.outline("j", "row")
        self.assertIn("func @" + name, str(s))
        check(self, tenon.build(s), 16, 16, 64)


class Intrinsics(unittest.TestCase):
    def description(self):
        return tensors(4, 4, 4)

    def test_loop_text_on_loops(self):
        tir.TensorIntrin.register("dot4", DOT4_MEANING, DOT4)
        s = tir.Schedule(MATMUL)
        i0, i1 = s.split("i", [-1, 4])
        j0, j1 = s.split("j", [-1, 4])
        k0, k1 = s.split("k", [-1, 4])
        s.reorder(i0, j0, k0, i1, j1, k1)
        s.decompose_reduction("C", k0)
        s.tensorize(i1, "dot4")
        self.assertIn("vectorized", str(s))
        check(self, tenon.build(s), 16, 16, 64)

    def test_tensors_on_tensors(self):
        dot = tir.TensorIntrin.register("tile4", self.description())
        for m, n, k in ((8, 12, 16), (8, 8, 4), (4, 4, 4)):
            a, b, c = tensors(m, n, k)
            s = te.create_schedule(c.op)
            x, y = c.op.axis
            (r,) = c.op.reduce_axis
            xo, yo, xi, yi = s[c].tile(x, y, 4, 4)
            ro, ri = s[c].split(r, factor=4)
            s[c].reorder(xo, yo, ro, xi, yi, ri)
            s[c].tensorize(xi, dot)
            self.assertIn("call @tile4", str(tenon.lower(s, [a, b, c])))
            check(self, tenon.build(s, [a, b, c]), m, n, k)

    def test_an_implementation_that_does_not_compute_it_is_refused(self):
        wrong = """
func @wrong<A_stride0, B_stride0, C_stride0>(A: f32[4, 4] strides (A_stride0, 1), B: f32[4, 4] strides (B_stride0, 1), out C: f32[4, 4] strides (C_stride0, 1)) kind device {
  for i in 0..4, j in 0..4 {
    C[i, j] = A[i, j] * B[i, j]
  }
}
"""
        with self.assertRaisesRegex(ValueError, "computes something else than the description"):
            tir.TensorIntrin.register("wrong", self.description(), wrong)

    def test_what_does_not_match_is_refused(self):
        a, b, c = tensors(8, 8, 8)
        tir.TensorIntrin.register("tile4", self.description())
        s = te.create_schedule(c.op)
        x, y = c.op.axis
        xo, xi = s[c].split(x, factor=2)
        s[c].tensorize(xi, "tile4")
        with self.assertRaisesRegex(ValueError, "tensorize.*tile4.*does not compute"):
            tenon.lower(s, [a, b, c])
        with self.assertRaisesRegex(ValueError, "no intrinsic is named"):
            t = te.create_schedule(c.op)
            t[c].tensorize(c.op.axis[0], "nothing")
            tenon.lower(t, [a, b, c])


class TensorSchedules(unittest.TestCase):
    def test_every_way_to_split(self):
        a, b, c = tensors(16, 30, 8)
        s = te.create_schedule(c.op)
        parts = s[c].split(c.op.axis[1], factors=[2, None, 4])
        self.assertEqual(len(parts), 3)
        s[c].vectorize(parts[2])
        check(self, tenon.build(s, [a, b, c]), 16, 30, 8)

    def test_pad_tensorize_and_align(self):
        a, b, c = tensors(6, 10, 7)
        tile = tir.TensorIntrin.register("tile4", tensors(4, 4, 4))
        s = te.create_schedule(c.op)
        padded, a_pad, b_pad = s.pad_einsum(c, [4, 4, 4])
        xo, yo, xi, yi = s[padded].tile(*padded.op.axis, 4, 4)
        ro, ri = s[padded].split(padded.op.reduce_axis[0], factor=4)
        s[padded].reorder(xo, yo, ro, xi, yi, ri)
        s[padded].tensorize(xi, tile)
        s[b_pad].storage_align(b_pad.op.axis[0], 16, 4)
        check(self, tenon.build(s, [a, b, c]), 6, 10, 7)

    def test_double_buffer_and_prefetch(self):
        a, b, c = tensors(16, 16, 64)
        s = te.create_schedule(c.op)
        cache = s.cache_read(b, "shared", [c])
        x, y = c.op.axis
        ro, ri = s[c].split(c.op.reduce_axis[0], factor=8)
        s[c].reorder(ro, x, y, ri)
        s[cache].compute_at(s[c], ro)
        s[cache].double_buffer()
        text = str(tenon.lower(s, [a, b, c]))
        self.assertIn("f32[2, 8, 16] in shared", text)
        check(self, tenon.build(s, [a, b, c]), 16, 16, 64)
        t = te.create_schedule(c.op)
        t[c].prefetch(a, c.op.axis[0], 1)
        self.assertIn("prefetch", str(tenon.lower(t, [a, b, c])))
        check(self, tenon.build(t, [a, b, c]), 16, 16, 64)

    def test_rolling_buffer(self):
        a = te.placeholder((66,), name="A")
        b = te.compute((66,), lambda i: a[i] * a[i], name="B")
        c = te.compute((64,), lambda j: b[j] + b[j + 1] + b[j + 2], name="C")
        s = te.create_schedule(c.op)
        outer, _ = s[c].split(c.op.axis[0], factor=16)
        s[b].compute_at(s[c], outer)
        s[b].rolling_buffer()
        self.assertIn("f32[18]", str(tenon.lower(s, [a, c])))
        x = small(66)
        want = x**2
        np.testing.assert_array_equal(tenon.build(s, [a, c])(x).numpy(), want[:-2] + want[1:-1] + want[2:])

    def test_consumers_move_to_producers(self):
        a = te.placeholder((64, 32), name="A")
        b = te.compute((64, 32), lambda i, j: a[i, j] * 2, name="B")
        c = te.compute((64, 32), lambda i, j: b[i, j] + 1, name="C")
        x = small(64, 32)
        for how in ("at", "inline"):
            s = te.create_schedule(c.op)
            if how == "at":
                s[c].reverse_compute_at(s[b], b.op.axis[0])
                s[c].vectorize(c.op.axis[1])
            else:
                s[c].reverse_compute_inline()
            np.testing.assert_array_equal(tenon.build(s, [a, c])(x).numpy(), x * 2 + 1)

    def test_the_rest_on_tensors(self):
        a, b, c = tensors(16, 16, 64)
        s = te.create_schedule(c.op)
        ax = s[c].transform_block_layout(lambda i, j, k: (j, i, k))
        s[c].partition(ax[0], [4])
        check(self, tenon.build(s, [a, b, c]), 16, 16, 64)
        t = te.create_schedule(c.op)
        t[c].decompose_reduction(c.op.axis[1])
        t[c].outline(c.op.axis[1], "row")
        self.assertIn("call @row", str(tenon.lower(t, [a, b, c])))
        check(self, tenon.build(t, [a, b, c]), 16, 16, 64)
        n = te.var("n", lo=1, hi=64)
        p = te.placeholder((n,), name="P")
        q = te.compute((n,), lambda i: p[i] + 1, name="Q")
        u = te.create_schedule(q.op)
        u.specialize(n == 8)
        self.assertIn("if n == 8", str(tenon.lower(u, [p, q])))
        for size in (8, 5):
            np.testing.assert_array_equal(tenon.build(u, [p, q])(small(size)).numpy(), small(size) + 1)

    def test_traces_of_tensors_serve_other_sizes(self):
        a, b, c = tensors(16, 16, 64)
        s = te.create_schedule(c.op)
        s.use_decisions({"tile": 8})
        tile = s.decide("tile", [4, 8], 4)
        self.assertEqual(tile, 8)
        self.assertEqual(s.sample_perfect_tile("j", c.op.axis[1], 2, 4), [4, 4])
        xo, xi = s[c].split(c.op.axis[0], factor=tile)
        s[c].parallel(xo)
        for m, n, k in ((16, 16, 64), (20, 16, 7)):
            again = tir.Schedule(te.create_prim_func(tensors(m, n, k)))
            again.replay(s.trace)
            check(self, tenon.build(again), m, n, k)

    def test_threads_of_a_cpu(self):
        a, b, c = tensors(16, 16, 64)
        s = te.create_schedule(c.op)
        s[c].bind(c.op.axis[0], te.thread_axis("threadIdx.x"))
        with self.assertRaisesRegex(ValueError, r"bind\(.*threadIdx.x\): target 'llvm' has no threads of a GPU; use parallel"):
            tenon.build(s, [a, b, c], "llvm")
        t = te.create_schedule(c.op)
        t[c].bind(c.op.axis[0], te.thread_axis("vthread"))
        check(self, tenon.build(t, [a, b, c], "llvm"), 16, 16, 64)

    def test_certain_reads_outside_are_diagnosed(self):
        n = te.var("n")
        for size in (16, n):
            a = te.placeholder((size,), name="A")
            b = te.compute((size,), lambda i: a[i + 1], name="B")
            with self.assertRaisesRegex(ValueError, "compute 'B': it reads 'A' outside: index 0 of A\\[i \\+ 1\\]"):
                te.create_schedule(b.op)
            c = te.compute((size,), lambda i: te.select(i + 1 < size, a[i + 1], 0), name="C")
            x = small(16)
            got = tenon.build(te.create_schedule(c.op), [a, c])(x).numpy()
            np.testing.assert_array_equal(got, np.append(x[1:], 0))

    def test_extern(self):
        square = """
func @square<n>(A: f32[n], out B: f32[n], out C: f32[n]) kind device {
  for i in 0..n {
    B[i] = A[i] * A[i]
    C[i] = A[i] + 1f32
  }
}
"""
        n = te.var("n", hi=1000)
        a = te.placeholder((n,), name="A")
        before = te.compute((n,), lambda i: a[i] * 2, name="D")
        b, c = te.extern([(n,), (n,)], [before], square, name="square")
        total = te.compute((n,), lambda i: b[i] + c[i], name="E")
        s = te.create_schedule(total.op)
        s[total].parallel(s[total].split(total.op.axis[0], factor=4)[0])
        x = small(10)
        np.testing.assert_array_equal(tenon.build(s, [a, total])(x).numpy(), 4 * x * x + 2 * x + 1)
        with self.assertRaisesRegex(ValueError, "the parameters of @square are not"):
            te.extern((n,), [a], square, name="square")


class Outputs(unittest.TestCase):
    def setUp(self):
        n = te.var("n")
        self.folder = tenon.contrib.utils.tempdir()
        a = te.placeholder((n,), name="A")
        self.args = [a, te.compute((n,), lambda i: a[i] + 1, name="B")]
        self.twice = [a, te.compute((n,), lambda i: a[i] * 2, name="B")]

    def build(self, args, *more, **named):
        return tenon.build(te.create_schedule(args[1].op), args, *more, **named)

    def test_target_c(self):
        f = self.build(self.args, "c", name="add_one")
        self.assertIn("__tvm_ffi_add_one", f.get_source())
        np.testing.assert_array_equal(f(small(5)).numpy(), small(5) + 1)
        f.export_library(self.folder.relpath("c.so"))
        np.testing.assert_array_equal(tenon.load(self.folder.relpath("c.so"))(small(5)).numpy(), small(5) + 1)

    def test_several_objects_in_one_library(self):
        for name, args in (("add_one", self.args), ("twice", self.twice)):
            self.build(args, name=name).save(self.folder.relpath(name + ".o"))
        library = self.folder.relpath("both.so")
        tenon.contrib.cc.create_shared(library, [self.folder.relpath("add_one.o"), self.folder.relpath("twice.o")])
        both = tenon.runtime.load_module(library)
        np.testing.assert_array_equal(both["add_one"](small(5)).numpy(), small(5) + 1)
        np.testing.assert_array_equal(both["twice"](small(5)).numpy(), small(5) * 2)

    def test_loop_ir_takes_the_name_that_is_given(self):
        a = te.placeholder((8,), name="A")
        b = te.compute((8,), lambda i: a[i] + 1, name="B")
        one, two = te.create_prim_func([a, b]), tenon.lower(te.create_schedule(b.op), [a, b], name="two")
        x = small(8)
        for inputs in (one, two, tir.Schedule(one), {"llvm": [tir.Schedule(one)]}):
            built = tenon.build(inputs, [a, b], name="add")
            np.testing.assert_array_equal(built["add"](x).numpy(), x + 1)
            self.assertIn("Module of add,", repr(built))
        self.assertIn("Module of two,", repr(tenon.build(two)))
        self.assertEqual(tenon.lower(tir.Schedule(one), [a, b], name="add").functions, ["add"])
        for name, message in (
            ("add", "'name' is for a module of one function, but there are main, two; .* names each"),
            ("two", "'name' is for a module of one function, but there are main, two"),
            ("", "the name '' is not an identifier of C"),
        ):
            with self.assertRaisesRegex(ValueError, f"build: {message}"):
                tenon.build([one, two], name=name)

    def test_a_function_of_c(self):
        cube = """
func @cube<n>(A: f32[n], out B: f32[n]) kind device {
  for i in 0..n {
    let y = extern<f32>("my_cube", A[i])
    B[i] = y
  }
}
"""
        a = self.args[0]
        b = te.extern(a.shape, [a], cube, name="cube")
        f = tenon.build(te.create_schedule(b.op), [a, b], name="cubes")
        with self.assertRaisesRegex(ValueError, "the code calls my_cube, which is not part of it; save an object"):
            f(small(3))
        f.save(self.folder.relpath("f.o"))
        with open(self.folder.relpath("cube.c"), "w", encoding="utf-8") as source:
            source.write("static int calls;\nfloat my_cube(float x) { return ++calls <= 5 ? x * x * x : -1; }")
        compiler = tenon.contrib.cc.get_cc()
        subprocess.run([compiler, "-x", "c", "-fPIC", "-c", source.name, "-o", self.folder.relpath("cube.o")], check=True)
        library = self.folder.relpath("cubes.so")
        tenon.contrib.cc.create_shared(library, [self.folder.relpath("f.o"), self.folder.relpath("cube.o")])
        np.testing.assert_array_equal(tenon.load(library)(small(5)).numpy(), small(5) ** 3)

    def test_tar(self):
        self.build(self.args).save(self.folder.relpath("f.tar"))
        f = tenon.runtime.load_module(self.folder.relpath("f.tar"))
        np.testing.assert_array_equal(f(small(5)).numpy(), small(5) + 1)

    def test_hosts(self):
        f = self.build(self.args, target_host="llvm")
        np.testing.assert_array_equal(f(small(5)).numpy(), small(5) + 1)
        self.assertIn("-host=llvm", str(tenon.target.Target("cuda -arch=sm_90", host="llvm -mcpu=x86-64-v3")))
        with self.assertRaisesRegex(ValueError, "target_host: expected a CPU"):
            self.build(self.args, "llvm", target_host="cuda")


if __name__ == "__main__":
    unittest.main()
