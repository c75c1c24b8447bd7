"""Runs the libraries that examples/gpu saves, on a machine with a GPU, and measures them beside PyTorch.

    gpu_libraries.py FOLDER        FOLDER holds libtenon_runtime.so and add.so, matmul.so, softmax.so, copy.so (any of them)

needs PyTorch and nothing of Tenon but the runtime. Each kernel's answer is compared with PyTorch's in float64 first; times
are those between events on the GPU's default stream, the least of several runs. Prints a line per kernel and "ok".
"""

import ctypes
import os
import sys
import time

import torch

REPEAT = 20
CUDA = 2


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Any(ctypes.Structure):
    _fields_ = [("type_index", ctypes.c_int32), ("padding", ctypes.c_int32), ("pointer", ctypes.c_void_p)]


DL_TENSOR_POINTER = 7  # of an Any


class Library:
    """The first function of a library, called with PyTorch's tensors of float32."""

    def __init__(self, runtime, path):
        self.runtime = runtime
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(runtime.tn_module_load(path.encode(), ctypes.byref(module)))
        self._check(runtime.tn_module_get_function(module, b"main", ctypes.byref(self.function)))

    def _check(self, status):
        if status != 0:
            self.runtime.tn_last_error.restype = ctypes.c_char_p
            raise RuntimeError(self.runtime.tn_last_error(None).decode())

    def bind(self, *tensors):
        """A call with these tensors, made ready."""
        views, args = [], (Any * len(tensors))()
        for arg, t in zip(args, tensors):
            shape = (ctypes.c_int64 * t.ndim)(*t.shape)
            view = DLTensor(t.data_ptr(), CUDA, t.device.index or 0, t.ndim, 2, 32, 1, shape, None, 0)
            views.append((view, shape, t))
            arg.type_index, arg.pointer = DL_TENSOR_POINTER, ctypes.addressof(view)
        result, call, count = Any(), self.runtime.tn_call, len(tensors)

        def run(keep=views):
            self._check(call(self.function, None, args, count, ctypes.byref(result)))

        return run


def seconds(call):
    """The least time of a call, of groups of REPEAT calls in a row."""
    call()
    best = float("inf")
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(REPEAT):
            call()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / 1e3 / REPEAT)
    return best


def random(*shape):
    return torch.rand(*shape, device="cuda", dtype=torch.float32) - 0.5


def report(name, ours, theirs, work, unit, peer):
    share = 100 * theirs / ours
    print(f"{name}: {work / ours:.1f} {unit}, {peer} {work / theirs:.1f} {unit}: {share:.0f} %", flush=True)


def close(name, got, wanted, tolerance):
    error = ((got.double() - wanted).abs().max() / wanted.abs().max()).item()
    assert error <= tolerance, f"{name}: off by {error}"


def run_add(library):
    for n in (1, 1023, 1025, 1 << 26):
        x, y, z = random(n), random(n), random(n)
        call = library.bind(x, y, z)
        call()
        assert torch.equal(z, x + y), f"add of {n} is wrong"
    copy = copy_seconds(3 * 4 * n)
    report("add", seconds(call), copy, 3 * 4 * n / 1e9, "GB/s", "copy")


def copy_seconds(total):
    """Of a copy that reads and writes so many bytes together."""
    source, target = torch.empty(total // 8, device="cuda"), torch.empty(total // 8, device="cuda")
    return seconds(lambda: target.copy_(source))


def run_copy(library):
    x, y = random(1 << 27), random(1 << 27)
    call = library.bind(x, y)
    call()
    assert torch.equal(x, y), "copy is wrong"
    report("copy", seconds(call), copy_seconds(8 << 27), (8 << 27) / 1e9, "GB/s", "copy")


def run_softmax(library):
    x, y = random(32768, 4096) * 20, random(32768, 4096)
    call = library.bind(x, y)
    call()
    close("softmax", y, torch.softmax(x.double(), 1), 1e-5)
    report("softmax", seconds(call), copy_seconds(8 * x.numel()), 8 * x.numel() / 1e9, "GB/s", "copy")


def run_matmul(library):
    n = 4096
    x, y, z = random(n, n), random(n, n), random(n, n)
    torch.backends.cuda.matmul.allow_tf32 = False
    call = library.bind(x, y, z)
    call()
    close("matmul", z, x.double() @ y.double(), 1e-5)
    theirs = seconds(lambda: torch.mm(x, y, out=z))
    report("matmul", seconds(call), theirs, 2 * n**3 / 1e12, "TFLOP/s", "cuBLAS")


def main():
    folder = sys.argv[1]
    runtime = ctypes.CDLL(os.path.join(folder, "libtenon_runtime.so"))
    print(torch.cuda.get_device_name(0), torch.version.cuda, flush=True)
    random(1)
    runs = {"add": run_add, "copy": run_copy, "softmax": run_softmax, "matmul": run_matmul}
    failed = False
    for name, run in runs.items():
        path = os.path.join(folder, name + ".so")
        if not os.path.exists(path):
            continue
        try:
            start = time.perf_counter()
            library = Library(runtime, path)
            print(f"{name}: loaded in {1e3 * (time.perf_counter() - start):.2f} ms", flush=True)
            run(library)
        except (RuntimeError, AssertionError) as error:
            failed = True
            print(f"{name}: {error}", flush=True)
    print("failed" if failed else "ok")
    sys.exit(failed)


if __name__ == "__main__":
    main()
