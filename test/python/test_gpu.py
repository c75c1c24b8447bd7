"""Kernels for GPUs from Python, on machines without one: built, looked at, and launched on the null device."""

import os
import tempfile
import unittest

import numpy as np

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
        self.assertEqual(add.imported_modules[0].type_key, "cuda")
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


class Refused(unittest.TestCase):
    def test_not_data_that_crosses_blocks(self):
        a = te.placeholder((64,), name="A")
        b = te.compute((64,), lambda i: a[i] * 2, name="B")
        c = te.compute((64,), lambda i: b[63 - i], name="C")
        s = te.create_schedule(c.op)
        for stage in (b, c):
            s[stage].bind(stage.op.axis[0], te.thread_axis("blockIdx.x"))
        source = tenon.build(s, [a, c], NULL, name="f").get_source()  # in two launches
        self.assertIn("f_0(", source)
        self.assertIn("f_1(", source)

    def test_too_many_threads(self):
        a = te.placeholder((4096,), name="A")
        b = te.compute((4096,), lambda i: a[i] * 2, name="B")
        s = te.create_schedule(b.op)
        s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
        with self.assertRaisesRegex(ValueError, "4096 threads per block, but null has at most 1024"):
            tenon.build(s, [a, b], NULL)


if __name__ == "__main__":
    unittest.main()
