"""Kernels for GPUs from Python, on machines without one: built, looked at, and launched on the null device."""

import os
import tempfile
import unittest

import numpy as np

# Drivers that compile for a CPU keep what they made: not between runs.
_cache = tempfile.TemporaryDirectory(prefix="tenon-opencl-")
os.environ.setdefault("POCL_CACHE_DIR", _cache.name)

import tenon
from tenon import te

NULL = "cuda -arch=null"


def vector_add():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.placeholder((n,), name="B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    s = te.create_schedule(c.op)
    block, thread = s[c].split(c.op.axis[0], factor=64)
    s[c].bind(block, te.thread_axis("blockIdx.x"))
    s[c].bind(thread, te.thread_axis("threadIdx.x"))
    return s, [a, b, c]


def on_null(array):
    return tenon.nd.array(array, tenon.nd.device(12, 0))


class VectorAdd(unittest.TestCase):
    def test_is_launched(self):
        s, args = vector_add()
        add = tenon.build(s, args, NULL, name="add")
        x = np.ones(100, "float32")
        held = [on_null(x) for _ in range(3)]
        add(*held)  # the null device computes nothing and reads as zeros
        self.assertEqual(held[2].numpy().tolist(), [0] * 100)
        made = add(*held[:2])
        self.assertEqual((made.shape, made.device), ((100,), held[0].device))
        with self.assertRaisesRegex(ValueError, "Parameter `B` expects device=null but got device=cpu"):
            add(held[0], x, held[2])

    def test_its_source(self):
        s, args = vector_add()
        add = tenon.build(s, args, NULL, name="add")
        source = add.get_source()
        self.assertIn("__global__", source)
        self.assertEqual(add.imported_modules[0].get_source(), source)
        self.assertEqual((add.type_key, add.imported_modules[0].type_key), ("llvm", "cuda"))
        self.assertIn("tn_core_device_launch", add.get_source("llvm"))
        self.assertIn("threadIdx.x", str(tenon.lower(s, args, name="add")))
        with self.assertRaisesRegex(ValueError, "no source in the form 'c'; expected cu"):
            add.get_source("c")

    def test_saved_and_loaded(self):
        s, args = vector_add()
        add = tenon.build(s, args, NULL, name="add")
        with tempfile.TemporaryDirectory() as folder:
            library, source = os.path.join(folder, "add.so"), os.path.join(folder, "add.cu")
            add.save(library)
            add.imported_modules[0].save(source)
            loaded = tenon.runtime.load_module(library)
            device = tenon.runtime.load_module(source)
            self.assertEqual(device.get_source(), add.get_source())
            loaded.import_module(device)
            self.assertEqual(loaded.imported_modules, [device])
            loaded["add"](*(on_null(np.ones(3, "float32")) for _ in range(3)))

    def test_for_cuda(self):
        s, args = vector_add()
        add = tenon.build(s, args, "cuda -arch=sm_80", name="add")
        self.assertIn("__global__", add.get_source("cuda"))
        if "ptx" not in add.imported_modules[0]._library.device_forms:
            with self.assertRaisesRegex(ValueError, "NVRTC"):
                add.get_source("ptx")
            self.skipTest("no NVRTC here")
        self.assertIn(".target sm_80", add.get_source("ptx"))
        with tempfile.TemporaryDirectory() as folder:
            for end in ("so", "ptx", "cubin", "cu"):
                add.save(os.path.join(folder, "add." + end))
            self.assertIn(".target sm_80", tenon.runtime.load_module(os.path.join(folder, "add.ptx")).get_source())

    def test_needs_a_gpu(self):
        if tenon.cuda(0).exist:
            self.skipTest("there is one here")
        with self.assertRaisesRegex(RuntimeError, "there is no device cuda:0"):
            tenon.nd.array(np.ones(3, "float32"), tenon.cuda(0))


class OpenCl(unittest.TestCase):
    """On whatever OpenCL device there is: a CPU's will do."""

    def setUp(self):
        self.device = tenon.opencl(0)
        if not self.device.exist:
            self.skipTest("no OpenCL device here")

    def put(self, *arrays):
        return [tenon.nd.array(a, self.device) for a in arrays]

    def test_vector_add(self):
        s, args = vector_add()
        add = tenon.build(s, args, "opencl", name="add")
        self.assertIn("__kernel", add.get_source())
        for n in (0, 1, 63, 64, 65, 1000):
            x, y = np.random.rand(n).astype("float32"), np.random.rand(n).astype("float32")
            with self.subTest(n=n):
                a, b, c = self.put(x, y, np.zeros_like(x))
                add(a, b, c)
                np.testing.assert_array_equal(c.numpy(), x + y)
                np.testing.assert_array_equal(add(a, b).numpy(), x + y)
        with self.assertRaisesRegex(ValueError, "expects device=opencl but got device=cpu"):
            add(x, y, x)

    def test_argmax_across_threads(self):
        """Partial pairs in the memory of a block: one scope for all outputs of a stage."""
        def best(x, y):
            wins = te.any(y[1] > x[1], te.all(y[1] == x[1], y[0] < x[0]))
            return te.select(wins, y[0], x[0]), te.select(wins, y[1], x[1])

        n = te.var("n")
        a = te.placeholder((n, 100), name="A")
        k = te.reduce_axis((0, 100), name="k")
        argmax = te.comm_reducer(best, lambda i, v: (te.max_value(i), te.min_value(v)), name="argmax")
        at, most = te.compute((n,), lambda i: argmax((k.astype("int32"), a[i, k]), axis=k), name="at")
        s = te.create_schedule(at.op)
        part, _ = s.rfactor(at, s[at].split(k, factor=16)[1])
        s[part].set_scope("shared")
        s[at].bind(at.op.axis[0], te.thread_axis("blockIdx.x"))
        s[part].compute_at(s[at], at.op.axis[0])
        s[part].bind(s[part].op.axis[0], te.thread_axis("threadIdx.x"))
        f = tenon.build(s, [a, at, most], "opencl", name="f")
        for rows in (1, 9, 31):
            x = np.random.default_rng(rows).integers(0, 50, (rows, 100)).astype("float32")
            where, value = f(*self.put(x))
            np.testing.assert_array_equal(where.numpy(), x.argmax(1))
            np.testing.assert_array_equal(value.numpy(), x.max(1))

    def test_functions_with_threads_of_their_own(self):
        """Their loops are those of a launch; by workers they are bound as those of any stage."""
        threads = """
func @work<n>(A: f32[n], out B: f32[n], out C: f32[n]) kind device {
  for j in 0..(n + 63) / 64 thread blockIdx.x {
    for i in 0..64 thread threadIdx.x {
      if j * 64 + i < n {
        B[j * 64 + i] = A[j * 64 + i] + 1f32
        C[j * 64 + i] = A[j * 64 + i] * 2f32
      }
    }
  }
}
"""
        workers = "func @work<n>(A: f32[n], out B: f32[n]) kind device { for i in 0..n parallel { B[i] = A[i] + 1f32 } }"
        n = te.var("n")
        a = te.placeholder((n,), name="A")
        b, c = te.extern([(n,), (n,)], [a], threads, name="work")
        d, e = te.extern([(n,), (n,)], [b], threads, name="work")
        sums = te.compute((n,), lambda i: c[i] + d[i] + e[i], name="sums")
        plus = te.extern((n,), [a], workers, name="work")
        both = tenon.build(te.create_schedule(sums.op), [a, sums], "opencl", name="both")
        one = tenon.build(te.create_schedule(plus.op), [a, plus], "opencl", name="one")
        for size in (0, 1, 63, 64, 65, 1009):
            x = np.arange(size, dtype="float32")
            np.testing.assert_array_equal(both(*self.put(x)).numpy(), 2 * x + (x + 2) + 2 * (x + 1))
            np.testing.assert_array_equal(one(*self.put(x)).numpy(), x + 1)

    def test_values_between_kernels(self):
        n = te.var("n", hi=1000)
        a = te.placeholder((n,), name="A")
        b = te.compute((n,), lambda i: a[i] * 2, name="B")
        c = te.compute((n,), lambda i: b[n - 1 - i] + 1, name="C")
        d = te.compute((n,), lambda i: c[n - 1 - i] + b[(i * 7) % n], name="D")
        s = te.create_schedule(d.op)
        for stage in (b, c, d):
            s[stage].bind(stage.op.axis[0], te.thread_axis("blockIdx.x"))
        f = tenon.build(s, [a, d], "opencl", name="f")
        for size in (0, 1, 64, 999):
            x = np.arange(size, dtype="float32")
            twice = 2 * x
            want = twice + 1 + twice[np.arange(size) * 7 % max(size, 1)]
            np.testing.assert_array_equal(f(*self.put(x)).numpy(), want)

    def test_shared_memory(self):
        for m in (1, 7, 8, 9, 33):
            a, b = te.placeholder((m, m), name="A"), te.placeholder((m, m), name="B")
            k = te.reduce_axis((0, m), name="k")
            c = te.compute((m, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
            s = te.create_schedule(c.op)
            held = [s.cache_read(t, "shared", [c]) for t in (a, b)]
            by, ty = s[c].split(c.op.axis[0], factor=8)
            bx, tx = s[c].split(c.op.axis[1], factor=8)
            outer, inner = s[c].split(k, factor=8)
            s[c].reorder(by, bx, ty, tx, outer, inner)
            for axis, name in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (ty, "threadIdx.y"), (tx, "threadIdx.x")):
                s[c].bind(axis, te.thread_axis(name))
            for tile in held:
                s[tile].compute_at(s[c], outer)
            x, y = (np.random.randint(-4, 5, (m, m)).astype("float32") for _ in range(2))
            with self.subTest(m=m):
                f = tenon.build(s, [a, b, c], "opencl", name="matmul")
                np.testing.assert_array_equal(f(*self.put(x, y)).numpy(), x @ y)

    def test_stages_in_shared_memory_bound_to_no_threads(self):
        for n in (1, 31, 32, 33, 97):
            a = te.placeholder((3, n), name="A")
            k, l = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, 5), name="l")
            m = te.compute((3,), lambda i: te.max(a[i, k], axis=k), name="M")
            b = te.compute((3, n), lambda i, j: te.sum((a[i, j] - m[i]) * l, axis=l), name="B")
            c = te.compute((3, n), lambda i, j: b[i, n - 1 - j] + 1, name="C")
            s = te.create_schedule(c.op)
            block, row = c.op.axis
            s[c].bind(block, te.thread_axis("blockIdx.x"))
            s[c].bind(s[c].split(row, factor=32)[1], te.thread_axis("threadIdx.x"))
            for stage in (m, b):
                s[stage].set_scope("shared")
                s[stage].compute_at(s[c], block)
            s[b].reorder(l, b.op.axis[1])
            x = np.random.randint(-9, 10, (3, n)).astype("float32")
            with self.subTest(n=n):
                got = tenon.build(s, [a, c], "opencl", name="f")(*self.put(x))
                np.testing.assert_array_equal(got.numpy(), 10 * (x - x.max(1, keepdims=True))[:, ::-1] + 1)


def turned(*pragma):
    """A stage with a block for each element, and one whose blocks read those of others; `pragma` is the second's."""
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i] * 2, name="B")
    c = te.compute((64,), lambda i: b[63 - i], name="C")
    s = te.create_schedule(c.op)
    for stage in (b, c):
        s[stage].bind(stage.op.axis[0], te.thread_axis("blockIdx.x"))
    if pragma:
        s[c].pragma(c.op.axis[0], *pragma)
    return s, [a, c]


class LaunchAttributes(unittest.TestCase):
    """Stages that hand data from block to block."""

    def test_cooperative(self):
        source = tenon.build(*turned("cooperative"), NULL, name="f").get_source()
        self.assertIn(" f(", source)
        self.assertIn("\n  tn_sync_grid();", source)
        with self.assertRaisesRegex(ValueError, "loop '.*' is cooperative, but opencl has no launches whose blocks wait"):
            tenon.build(*turned("cooperative"), "opencl", name="f")
        source = tenon.build(*turned("cooperative", False), NULL, name="f").get_source()
        self.assertIn(" f_1(", source)

    def test_dependent_launch(self):
        source = tenon.build(*turned("dependent_launch"), NULL, name="f").get_source()
        first, second = source.split(" f_0(")[1].split(" f_1(")
        self.assertIn("launch_dependents()", first)
        self.assertIn("griddepcontrol_wait()", second)
        with self.assertRaisesRegex(ValueError, "dependent_launch needs sm_90, but the target is sm_80"):
            tenon.build(*turned("dependent_launch"), "cuda -arch=sm_80", name="f")

    def clusters(self, blocks):
        n = te.var("n")
        a = te.placeholder((n, blocks), name="A")
        b = te.compute((n, blocks), lambda i, j: a[i, j] * 2, name="B")
        c = te.compute((n, blocks), lambda i, j: b[i, blocks - 1 - j], name="C")
        s = te.create_schedule(c.op)
        s[c].bind(c.op.axis[0], te.thread_axis("blockIdx.x"))
        s[b].compute_at(s[c], c.op.axis[0])
        for stage in (b, c):
            s[stage].bind(stage.op.axis[1], te.thread_axis("clusterCtaIdx.x"))
        return s, [a, c]

    def test_clusters(self):
        f = tenon.build(*self.clusters(4), NULL, name="f")
        self.assertIn("\n  tn_sync_cluster();", f.get_source())
        f(on_null(np.ones((3, 4), "float32")))
        with self.assertRaisesRegex(ValueError, "loop '.*' over clusterCtaIdx.x makes clusters of 9 blocks: at most 8"):
            tenon.build(*self.clusters(9), NULL, name="f")
        with self.assertRaisesRegex(ValueError, "clusters of blocks need sm_90, but the target is sm_80"):
            tenon.build(*self.clusters(4), "cuda -arch=sm_80", name="f")


class Refused(unittest.TestCase):
    def test_not_data_that_crosses_blocks(self):
        source = tenon.build(*turned(), NULL, name="f").get_source()  # in two launches
        self.assertIn("f_0(", source)
        self.assertIn("f_1(", source)

    def test_too_many_threads(self):
        a = te.placeholder((4096,), name="A")
        b = te.compute((4096,), lambda i: a[i] * 2, name="B")
        s = te.create_schedule(b.op)
        s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
        with self.assertRaisesRegex(ValueError, "4096 threads per block, but the target null has at most 1024"):
            tenon.build(s, [a, b], NULL)


if __name__ == "__main__":
    unittest.main()
