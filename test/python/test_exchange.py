"""Tensors of frameworks whose types tell their DLPack exchange functions (DLPack 1.2), and these frameworks' streams."""

import ctypes
import unittest

import numpy as np

import tenon
from tenon import te

CPU, NULL = 1, 12


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


VIEW = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Api(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p), ("allocate", ctypes.c_void_p),
        ("to_managed", ctypes.c_void_p), ("from_managed", ctypes.c_void_p), ("view", VIEW), ("stream", STREAM),
    ]  # fmt: skip


def capsule(api):
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(ctypes.addressof(api), b"dlpack_exchange_api", None)


def view(holder, out):
    holder.views += 1
    if holder.array is None:
        return -1
    t, a = out.contents, holder.array
    t.data, t.device_type, t.device_id, t.ndim = a.ctypes.data - 4 * holder.skipped, holder.device, 0, a.ndim
    t.code, t.bits, t.lanes, t.byte_offset = 2, 32, 1, 4 * holder.skipped
    t.shape = holder.shape = (ctypes.c_int64 * a.ndim)(*a.shape)
    t.strides = None
    return 0


asked = []  # for streams


def stream(device_type, device_id, out):
    asked.append((device_type, device_id))
    out[0] = Holder.stream
    return 0 if Holder.stream != -1 else 1


_api = Api(1, 3, None, None, None, None, VIEW(view), STREAM(stream))
_newer = Api(2, 0, ctypes.addressof(_api), None, None, None, VIEW(), STREAM())
_none = Api(2, 0, None, None, None, None, VIEW(), STREAM())


class Holder:
    __dlpack_c_exchange_api__ = capsule(_api)
    stream = None

    def __init__(self, array, device=CPU, skipped=0):
        self.array, self.device, self.skipped, self.views = array, device, skipped, 0


class NewerHolder(Holder):
    __dlpack_c_exchange_api__ = capsule(_newer)


class UnreadableHolder(Holder):
    __dlpack_c_exchange_api__ = capsule(_none)

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def build(target):
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    s = te.create_schedule(b.op)
    if target.startswith("cuda"):
        s[b].bind(b.op.axis[0], te.thread_axis("blockIdx.x"))
    return tenon.build(s, [a, b], target, name="twice")


class Exchange(unittest.TestCase):
    def test_asarray_is_the_memory(self):
        x = tenon.nd.array(np.arange(6, dtype="float32"))
        view = np.asarray(x)
        view[0] = 7
        self.assertEqual(x.numpy()[0], 7)
        self.assertFalse(np.shares_memory(np.array(x), view))
        self.assertFalse(np.shares_memory(x.numpy(), view))
        self.assertEqual(np.asarray(x, "float64").tolist(), [7, 1, 2, 3, 4, 5])
        with self.assertRaisesRegex(ValueError, "float32 on cpu.* as float64 without a copy"):
            x.__array__("float64", copy=False)
        del x
        self.assertEqual(view.tolist(), [7, 1, 2, 3, 4, 5])

    def test_views_are_taken(self):
        twice = build("llvm")
        for kind in (Holder, NewerHolder):
            with self.subTest(kind.__name__):
                memory = np.arange(8, dtype="float32")
                x, y = kind(memory[3:], skipped=3), kind(np.zeros(5, "float32"))
                twice(x, y)
                np.testing.assert_array_equal(y.array, 2 * memory[3:])
                self.assertEqual((x.views, y.views), (1, 1))

    def test_without_one_that_is_read_dlpack_serves(self):
        x = UnreadableHolder(np.arange(5, dtype="float32"))
        np.testing.assert_array_equal(build("llvm")(x).numpy(), 2 * x.array)
        self.assertEqual(x.views, 0)

    def test_failures(self):
        twice = build("llvm")
        with self.assertRaisesRegex(TypeError, "this __main__.Holder has no view"):
            twice(Holder(None))
        with self.assertRaisesRegex(ValueError, "expects device=cpu but got device=null"):
            twice(Holder(np.zeros(3, "float32"), NULL))

    def test_work_is_queued_on_the_frameworks_stream(self):
        twice = build("cuda -arch=null")
        x, y = Holder(np.ones(5, "float32"), NULL), Holder(np.ones(5, "float32"), NULL)
        asked.clear()
        twice(x, y)
        self.assertEqual(asked, [(NULL, 0)])
        try:
            Holder.stream = 0x1000
            twice(x, y)
            Holder.stream = -1
            with self.assertRaisesRegex(RuntimeError, "the device's stream is not known"):
                twice(x, y)
        finally:
            Holder.stream = None


if __name__ == "__main__":
    unittest.main()
