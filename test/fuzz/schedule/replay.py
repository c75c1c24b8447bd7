"""Calls the libraries that `schedule_fuzz --through cuda --out FOLDER` wrote, and compares with what they must answer.

    replay.py FOLDER RUNTIME [--device cuda|opencl] [--most N]

needs libtenon_runtime.so (RUNTIME) and a device's driver, nothing else. Equal means every element, the signs of zeros and
the bits of NaNs aside; on CUDA also that nothing around a tensor is touched. Prints each difference with the seed that made
it, and at the end how many functions were right. Exit status: 0 all right, 1 not, 77 there is no such device.
"""

import argparse
import ctypes
import glob
import json
import os
import struct
import sys

DEVICES = {"cuda": 2, "opencl": 4}  # as DLPack numbers them
GUARD = 256  # bytes before and after each tensor
CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
FORMATS = {
    "float16": "e", "float32": "f", "float64": "d", "int8": "b", "int16": "h", "int32": "i", "int64": "q",
    "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q", "bool": "?", "bfloat16": "H",
}  # fmt: skip
TENSOR_POINTER = 7  # the type of an argument


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Argument(ctypes.Structure):
    _fields_ = [("type_index", ctypes.c_int32), ("padding", ctypes.c_int32), ("pointer", ctypes.c_void_p)]


class Failure(Exception):
    pass


class Runtime:
    def __init__(self, path, device):
        self.library = ctypes.CDLL(path)
        self.library.tn_last_error.restype = ctypes.c_char_p
        self.library.tn_tensor_free.argtypes = [ctypes.c_void_p]
        self.library.tn_module_get_function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.library.tn_call.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p]
        for copy in (self.library.tn_tensor_copy_from_bytes, self.library.tn_tensor_copy_to_bytes):
            copy.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64]
        self.device = Device(DEVICES[device], 0)

    def check(self, status):
        if status != 0:
            raise Failure(self.library.tn_last_error(None).decode())


class Memory:
    """Bytes on the device, with a margin on both sides where a tensor can point between."""

    def __init__(self, runtime, given):
        self.runtime, self.size = runtime, len(given)
        self.margin = GUARD if runtime.device.type == DEVICES["cuda"] else 0
        self.tensor = ctypes.c_void_p()
        shape = (ctypes.c_int64 * 1)(self.size + 2 * self.margin)
        runtime.check(
            runtime.library.tn_tensor_make(DataType(1, 8, 1), 1, shape, runtime.device, ctypes.byref(self.tensor))
        )
        edge = b"\xa5" * self.margin
        self.before = edge + given + edge
        runtime.check(runtime.library.tn_tensor_copy_from_bytes(self.tensor, self.before, len(self.before)))

    def pointer(self):
        header = 24  # of an object of TVM-FFI
        return DLTensor.from_address(self.tensor.value + header).data + self.margin

    def read(self):
        out = ctypes.create_string_buffer(len(self.before))
        self.runtime.check(self.runtime.library.tn_tensor_copy_to_bytes(self.tensor, out, len(self.before)))
        end = self.margin + self.size
        if out.raw[: self.margin] != self.before[: self.margin] or out.raw[end:] != self.before[end:]:
            raise Failure("something beside a tensor was written")
        return out.raw[self.margin : end]

    def free(self):
        self.runtime.library.tn_tensor_free(self.tensor)


def data_type(name):
    kind = name.rstrip("0123456789")
    return DataType(CODES[kind], int(name[len(kind) :] or 8), 1)


def difference(dtype, got, want):
    """The first element that differs, in words; None where none does."""
    if got == want:
        return None
    for i, (a, b) in enumerate(zip(struct.iter_unpack("<" + FORMATS[dtype], got), struct.iter_unpack("<" + FORMATS[dtype], want))):
        if a != b and not (a[0] != a[0] and b[0] != b[0]):
            return f"element {i} is {a[0]}, expected {b[0]}"
    return None


def run_call(runtime, function, call, data):
    tensors = call["tensors"]
    memory = [Memory(runtime, data[t["given"][0] :][: t["given"][1]]) for t in tensors]
    views, args = [], (Argument * len(tensors))()
    for arg, t, m in zip(args, tensors, memory):
        shape = (ctypes.c_int64 * len(t["shape"]))(*t["shape"])
        view = DLTensor(m.pointer(), runtime.device, len(t["shape"]), data_type(t["dtype"]), shape, None, 0)
        views.append((view, shape))
        arg.type_index, arg.pointer = TENSOR_POINTER, ctypes.addressof(view)
    result = Argument()
    runtime.check(runtime.library.tn_call(function, None, args, len(tensors), ctypes.byref(result)))
    try:
        for t, m in zip(tensors, memory):
            wrong = difference(t["dtype"], m.read(), data[t["want"][0] :][: t["want"][1]])
            if wrong:
                raise Failure(f"{t['name']}: {wrong}")
    finally:
        for m in memory:
            m.free()


def run_library(runtime, path, most):
    with open(path + ".json", encoding="utf-8") as file:
        functions = json.load(file)["functions"][:most]
    with open(path + ".bin", "rb") as file:
        data = file.read()
    module, right = ctypes.c_void_p(), 0
    runtime.check(runtime.library.tn_module_load((path + ".so").encode(), ctypes.byref(module)))
    for entry in functions:
        function = ctypes.c_void_p()
        try:
            runtime.check(
                runtime.library.tn_module_get_function(module, entry["name"].encode(), ctypes.byref(function))
            )
            for call in entry["calls"]:
                run_call(runtime, function, call, data)
            right += 1
        except Failure as failure:
            dims = " ".join(f"{k} = {v}" for k, v in call["dims"].items())
            print(f"--seed {entry['name'][1:]} --count 1: {dims}: {failure}", flush=True)
    return right, len(functions)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("runtime")
    parser.add_argument("--device", choices=DEVICES, default="cuda")
    parser.add_argument("--most", type=int, default=1 << 30, help="functions of each library")
    options = parser.parse_args()
    runtime = Runtime(os.path.abspath(options.runtime), options.device)
    if runtime.library.tn_device_count(runtime.device.type) == 0:
        print(f"skipped: there is no device of {options.device} here")
        return 77
    right = count = 0
    for path in sorted(glob.glob(os.path.join(glob.escape(options.folder), "[0-9]*.json"))):
        good, of = run_library(runtime, os.path.abspath(path)[: -len(".json")], options.most)
        right, count = right + good, count + of
    print(f"{right} of {count} functions are right")
    return 0 if right == count and count > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
