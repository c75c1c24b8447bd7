"""What is wrong with a schedule for a GPU, with a device or a file of device code is said in the user's words."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import numpy as np

import tenon
from tenon import te

axis = te.thread_axis
TOOL = pathlib.Path(tenon.__file__).parents[2] / "bin" / "tenon"


def add_one(*shape):
    a = te.placeholder(shape, name="A")
    c = te.compute(shape, lambda *i: a[i] + 1, name="C")
    return te.create_schedule(c.op), a, c


def bound(shape, axes, target="opencl", name="main"):
    s, a, c = add_one(*shape)
    for loop, thread in axes:
        s[c].bind(c.op.axis[loop], thread)
    return tenon.build(s, [a, c], target, name=name)


def text(body, target="opencl", parameters="A: f32[4], out C: f32[4]", dims=""):
    return tenon.build(tenon.IrModule.parse(f"func @f{dims}({parameters}) {{exported: true}} {{\n{body}\n}}"), target=target)


class Case(unittest.TestCase):
    def refused(self, message, function, kind=ValueError):
        with self.assertRaises(kind) as caught:
            function()
        self.assertIn(message, str(caught.exception))


class Bindings(Case):
    def test_an_axis_with_a_size_takes_loops_of_it(self):
        bound((64,), [(0, axis((0, 64), "threadIdx.x"))])
        bound((64,), [(0, axis(64, "threadIdx.x"))])
        bound((te.var("n"),), [(0, axis((0, te.var("n")), "blockIdx.x"))])
        self.refused("the axis threadIdx.x has 32 threads, but the loop has 64 iterations", lambda: bound((64,), [(0, axis((0, 32), "threadIdx.x"))]))
        self.refused("has 32 threads, but the loop has n iterations", lambda: bound((te.var("n"),), [(0, axis((0, 32), "threadIdx.x"))]))
        bound((1,), [(0, axis((0, 32), "threadIdx.x"))])
        self.refused("a domain that begins at 0 but got 1", lambda: axis((1, 32), "threadIdx.x"))

    def test_a_bind_of_another_stage_is_named(self):
        """Tiles that threads load beside each other, in memory of each of them alone, as C's loops are bound alike."""
        a, b = te.placeholder((64, 64), name="A"), te.placeholder((64, 64), name="B")
        k = te.reduce_axis((0, 64), name="k")
        c = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
        s = te.create_schedule(c.op)
        tiles = [s.cache_read(t, scope, [c]) for t, scope in ((a, "shared"), (b, "local"))]
        by, ty = s[c].split(c.op.axis[0], factor=8)
        bx, tx = s[c].split(c.op.axis[1], factor=8)
        ko, ki = s[c].split(k, factor=8)
        s[c].reorder(by, bx, ko, ty, tx, ki)
        for loop, name in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (ty, "threadIdx.y"), (tx, "threadIdx.x")):
            s[c].bind(loop, axis(name))
        for tile in tiles:
            s[tile].compute_at(s[c], ko)
            y, x = s[tile].op.axis
            s[tile].bind(y, axis("threadIdx.x"))
            s[tile].bind(x, axis("threadIdx.y"))
        self.refused("bind(ax0, threadIdx.x) of block C: it uses B.local outside loop ax0", lambda: tenon.lower(s, [a, b, c]))

    def test_grids_beyond_what_cuda_has(self):
        axes = [(0, axis("blockIdx.y")), (1, axis("threadIdx.x"))]
        self.refused("65536 blocks along blockIdx.y, but the target sm_80 has at most 65535", lambda: bound((65536, 4), axes, "cuda -arch=sm_80"))
        self.assertIn("__global__", bound((65535, 4), axes, "cuda -arch=null").get_source())
        self.refused("65 threads along threadIdx.z", lambda: bound((65, 4), [(0, axis("threadIdx.z"))], "cuda -arch=sm_80"))
        self.assertIn("__kernel", bound((65536, 4), axes, "opencl").get_source())

    def test_limits_name_their_option(self):
        axes = [(0, axis("threadIdx.x"))]
        self.refused("512 threads per block, but the target opencl has at most 256 (its option -max_threads_per_block)", lambda: bound((512,), axes))
        bound((512,), axes, "opencl -max_threads_per_block=512")

    def test_what_is_bound_already(self):
        self.refused("loop 'i0' is bound to threadIdx.x already; how a loop runs is said once", lambda: bound((8,), [(0, axis("threadIdx.x")), (0, axis("blockIdx.x"))]))
        self.refused("inside loop i0, which is bound to blockIdx.x already", lambda: bound((8, 8), [(i, axis("blockIdx.x")) for i in (0, 1)]))
        self.refused("within a nest an axis is bound once", lambda: bound((8, 8), [(i, axis("threadIdx.x")) for i in (0, 1)]))

    def test_reductions_need_rfactor(self):
        k = te.reduce_axis((0, 64), name="k")
        a = te.placeholder((8, 64), name="A")
        c = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="C")
        s = te.create_schedule(c.op)
        s[c].bind(k, axis("blockIdx.x"))
        self.refused("rfactor first makes partial results", lambda: tenon.build(s, [a, c], "opencl"))

    def test_a_cpu_has_no_threads(self):
        axes = [(0, axis("blockIdx.x")), (1, axis("threadIdx.x"))]
        with self.assertRaises(ValueError) as caught:
            bound((8, 8), axes, "llvm")
        message = str(caught.exception)
        self.assertEqual((message.count("\n"), message.count("target 'llvm' has no threads")), (0, 1), message)

    def test_a_pragma_that_nothing_reads(self):
        s, _, c = add_one(8)
        self.refused("nothing reads the key 'nonsense'; expected cooperative, dependent_launch, assume_independent, producer_stages", lambda: s[c].pragma(c.op.axis[0], "nonsense", 1))
        s[c].pragma(c.op.axis[0], "producer_stages", 2)


class Memory(Case):
    def test_shared_outside_of_blocks(self):
        s, a, c = add_one(1024)
        s.cache_read(a, "shared", [c])
        block, thread = s[c].split(c.op.axis[0], factor=64)
        s[c].bind(block, axis("blockIdx.x"))
        s[c].bind(thread, axis("threadIdx.x"))
        self.refused("compute_at puts what fills it into the block", lambda: tenon.build(s, [a, c], "opencl"))

    def test_shared_of_unknown_size(self):
        n = te.var("n")
        a = te.placeholder((8, n), name="A")
        c = te.compute((8, n), lambda i, j: a[i, n - 1 - j], name="C")
        s = te.create_schedule(c.op)
        tile = s.cache_read(a, "shared", [c])
        s[c].bind(c.op.axis[0], axis("blockIdx.x"))
        s[tile].compute_at(s[c], c.op.axis[0])
        self.refused("'A.shared' in shared has a size that is not constant: expected a tile", lambda: tenon.build(s, [a, c], "opencl"))

    def test_arrays_of_threads(self):
        body = "for i in 0..n parallel {\nalloc S: f32[%s] in local\nfor k in 0..%s { S[k] = A[i] }\nC[i] = S[index(I[i])]\n}"
        parameters = "A: f32[n], I: i32[n], out C: f32[n]"
        self.refused("buffer 'S' in local has the size n, which is not constant", lambda: text(body % ("n", "n"), parameters=parameters, dims="<n>"))
        self.refused("f32[70000], has more than 256 KiB", lambda: text(body % (70000, 70000), parameters=parameters, dims="<n>"))

    def test_shared_of_each_thread(self):
        body = "for i in 0..4 thread threadIdx.x {\nalloc S: f32[1] in shared\nS[0] = A[i]\nC[i] = S[0]\n}"
        self.refused("or the alloc outside of the loop over threads, where it is the block's", lambda: text(body))

    def test_too_much_is_a_memory_error(self):
        self.refused("out of memory", lambda: tenon.nd.empty((1 << 55,)), MemoryError)
        if tenon.opencl(0).exist:
            self.refused("out of memory on opencl:0", lambda: tenon.nd.empty((1 << 44,), "float32", "opencl"), MemoryError)


class Names(Case):
    def test_words_of_languages(self):
        for name in ("__global__", "image2d_t", "float", "half4"):
            for target in ("opencl", "cuda -arch=null"):
                a = te.placeholder((64,), name=name)
                c = te.compute((64,), lambda i: a[i] + 1, name="C")
                s = te.create_schedule(c.op)
                s[c].bind(c.op.axis[0], axis("threadIdx.x"))
                with self.subTest(name=name, target=target):
                    add = tenon.build(s, [a, c], target)
                    if target == "opencl" and tenon.opencl(0).exist:
                        self.assertEqual(add(tenon.nd.array(np.ones(64, "float32"), "opencl")).numpy().tolist(), [2.0] * 64)
        axes = [(0, axis("threadIdx.x"))]
        self.refused("identifier that OpenCL C does not use itself", lambda: bound((8,), axes, "opencl", "image2d_t"))
        self.refused("identifier that CUDA C++ does not use itself", lambda: bound((8,), axes, "cuda -arch=null", "__global__"))

    def test_a_function_that_is_called(self):
        x = te.placeholder((8,), name="X")
        body = "func @hist(A: f32[8], out B: f32[8]) kind device { for i in 0..8 { B[i] = A[i] } }"
        h = te.extern((8,), [x], body, name="hist")
        self.refused("the name 'hist' of the build is that of a function that it calls", lambda: tenon.build(te.create_schedule(h.op), [x, h], name="hist"))

    def test_functions_that_there_are(self):
        s, a, c = add_one(8)
        add = tenon.build(s, [a, c], name="add")
        self.refused("the module has no function 'sub'; it has add", lambda: add["sub"])
        self.refused("expected at least 1 for 'number' and 'repeat' but got 0 and 1", lambda: add.time_evaluator("add", number=0))

    def test_a_size_that_nothing_uses(self):
        self.refused("nothing uses the size 'n'", lambda: text("for i in 0..4 { C[i] = A[i] }", "llvm", dims="<n>"))

    def test_devices(self):
        self.refused("there is no device 'foo'; expected cpu, cuda or opencl", lambda: tenon.nd.device("foo", 0))
        self.refused("there is no device 'foo'", lambda: tenon.nd.array(np.zeros(3), "foo"))
        self.refused("expected Device | str | None for 'device' but got int", lambda: tenon.nd.array(np.zeros(3), 7), TypeError)
        self.assertEqual(tenon.nd.device("cuda:1"), tenon.cuda(1))
        self.assertEqual(tenon.nd.array([1.0], "cpu").device, tenon.cpu())


class Code(Case):
    def test_files_that_are_none(self):
        with tempfile.TemporaryDirectory() as folder:
            for end in ("ptx", "cubin", "cu", "cl"):
                path = os.path.join(folder, "f." + end)
                with self.subTest(end):
                    self.refused(path, lambda: tenon.runtime.load_module(path), FileNotFoundError)
                    for content in (b"", bytes(range(256)) * 3):
                        pathlib.Path(path).write_bytes(content)
                        self.refused(f"cannot load '{path}': it is no", lambda: tenon.runtime.load_module(path))
            add = bound((64,), [(0, axis("threadIdx.x"))], "cuda -arch=null")
            add.save(os.path.join(folder, "add.cu"))
            self.assertEqual(tenon.runtime.load_module(os.path.join(folder, "add.cu")).get_source(), add.get_source())

    def test_source_for_what_nvrtc_does_not_make(self):
        old = bound((64,), [(0, axis("threadIdx.x"))], "jetson-nano -host=llvm")
        self.assertIn("__global__", old.get_source())
        if "ptx" not in old.imported_modules[0]._library.device_forms:
            self.refused("NVRTC", lambda: old.get_source("ptx"))
            self.refused("NVRTC", lambda: old.save("never.so"))

    def test_what_the_compiler_did_by_itself(self):
        s, a, c = add_one(1000)
        s[c].parallel(c.op.axis[0])
        remarks = tenon.build(s, [a, c], "opencl").remarks
        self.assertEqual(len(remarks), 1)
        self.assertIn("no loop is bound; the iterations of its parallel loops are threads, in blocks of 128", remarks[0])

    def test_stages_that_bind_nothing(self):
        a = te.placeholder((1000, 16), name="A")
        b = te.compute((1000, 16), lambda i, j: a[i, j] * 2, name="B")
        c = te.compute((1000, 16), lambda i, j: b[i, j] + 1, name="C")

        def build(schedule, target="opencl"):
            s = te.create_schedule(c.op)
            schedule(s)
            return tenon.build(s, [a, c], target)

        def bind(s):
            outer, inner = s[c].split(c.op.axis[0], factor=64)
            s[c].bind(outer, axis("blockIdx.x"))
            s[c].bind(inner, axis("threadIdx.x"))

        for target in ("opencl", "cuda -arch=null"):
            both = build(lambda s: None, target)
            self.assertEqual(both.remarks[:2], [f"main_{i}: no loop of '{x}' is bound; its outer loops are made parallel" for i, x in enumerate("BC")])
            self.assertEqual(both.get_source().count("* 128 + threadIdx_x"), 2)
            attached = build(lambda s: s[b].compute_at(s[c], c.op.axis[0]), target)
            self.assertIn("main_kernel: no loop of 'B', 'C' is bound", attached.remarks[0])
            self.assertRegex(attached.get_source(), r"float B\[16\];")
            forgotten = build(bind, target)
            self.assertIn("main_0: no loop of 'B' is bound", forgotten.remarks[0])
            self.assertNotIn("'C'", "".join(forgotten.remarks))
        gpu = tenon.opencl(0)
        def one_block(s):
            s[c].bind(c.op.axis[1], axis("threadIdx.x"))

        for schedule in (lambda s: None, lambda s: s[b].compute_at(s[c], c.op.axis[0]), bind, one_block) if gpu.exist else ():
            x = np.arange(16000, dtype="float32").reshape(1000, 16)
            out = tenon.nd.empty((1000, 16), "float32", gpu)
            build(schedule)(tenon.nd.array(x, gpu), out)
            np.testing.assert_array_equal(out.numpy(), x * 2 + 1)
        self.assertEqual(build(one_block).get_source().count("__kernel"), 2)  # all of B is there before C begins

    def test_a_stage_that_binds_nothing_beside_one_that_binds_threads(self):
        a = te.placeholder((8, 16), name="A")
        b = te.compute((8, 16), lambda i, j: a[i, j] * 2, name="B")
        c = te.compute((8, 16), lambda i, j: b[i, 15 - j] + 1, name="C")

        def build(target):
            s = te.create_schedule(c.op)
            s[c].bind(c.op.axis[1], axis("threadIdx.x"))
            return tenon.build(s, [a, b, c], target)

        for target in ("opencl", "cuda -arch=null"):
            built = build(target)
            self.assertEqual(built.remarks, ["main_kernel: no loop of 'B' is bound, as others of the kernel are; one thread does it"])
            self.assertEqual(built.get_source().count("if (threadIdx_x == 0) {"), 1)
            self.assertEqual(len(re.findall(r"^  (barrier|__syncthreads)\(", built.get_source(), re.MULTILINE)), 1)
        gpu = tenon.opencl(0)
        if gpu.exist:
            x = np.arange(128, dtype="float32").reshape(8, 16)
            y, z = (tenon.nd.empty((8, 16), "float32", gpu) for _ in "BC")
            build("opencl")(tenon.nd.array(x, gpu), y, z)
            np.testing.assert_array_equal(y.numpy(), x * 2)
            np.testing.assert_array_equal(z.numpy(), (x * 2)[:, ::-1] + 1)

    def test_a_stage_of_one_thread(self):
        a, k = te.placeholder((1000,), name="A"), te.reduce_axis((0, 1000), name="k")
        total = te.compute((), lambda: te.sum(a[k], axis=k), name="total")
        remarks = tenon.build(te.create_schedule(total.op), [a, total], "opencl").remarks
        self.assertEqual(len(remarks), 2)
        for remark, block in zip(remarks, ("total.init", "total")):
            self.assertIn(f"no loop of '{block}' is bound; one thread does everything (its outermost loop does not run over elements)", remark)

    @unittest.skipUnless(TOOL.exists(), "no command line beside the package")
    def test_the_command_line_takes_libraries_of_kernels(self):
        n = te.var("n")
        a, b = (te.placeholder((n,), name=x) for x in "AB")
        c = te.compute((n,), lambda i: a[i] + b[i], name="C")

        def run(*args, status=0):
            done = subprocess.run([TOOL, *args], capture_output=True, text=True, timeout=100)
            self.assertEqual(done.returncode, status, done.stderr)
            return done.stdout + done.stderr

        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "add.so")
            tenon.build(te.create_schedule(c.op), [a, b, c], name="add").export_library(library)
            out = run("inspect", library)
            self.assertIn("dim n: at least 0 in steps of 1", out)
            self.assertNotIn("kernels:", out)
            self.assertIn("C: float32 5", run("run", library, "--shape", "A:5", "--fill", "ones"))
            self.assertIn("give it with --shape A:SIZES", run("run", library, "--fill", "ones", status=1))
            self.assertIn("--shape B:6: the input is float32 n, n = 5", run("run", library, "--shape", "A:5", "--shape", "B:6", "--fill", "ones", status=1))


if __name__ == "__main__":
    unittest.main()
