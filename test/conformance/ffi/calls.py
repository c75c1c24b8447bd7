"""Calls a compiled library from Python through tvm_ffi: calls.py CASE MODULE RUNTIME, one case per process."""

import ctypes
import os
import sys
import threading

import numpy as np

SIGNATURE = "when calling: `main(a: Tensor([n], float32), b: Tensor([n], float32))`"


def check_calls(module):
    for n in [0, 1, 2, 3, 7, 1000, 100003]:
        a = np.arange(n, dtype=np.float32)
        b = np.ones(n, np.float32)
        returned = np.from_dlpack(module.main(a, b))
        np.testing.assert_array_equal(returned, a + b)
        out = np.zeros(n, np.float32)
        assert module.main(a, b, out) is None
        np.testing.assert_array_equal(out, a + b)
    assert module.outputs(0) is None
    assert np.from_dlpack(module.outputs(1)).shape == (1, 0)
    three = module.outputs(3)
    assert [np.from_dlpack(t).shape for t in three] == [(3, 0), (3, 1), (3, 2)]
    np.testing.assert_array_equal(np.from_dlpack(three[2]).ravel(), np.arange(6))


def expect_error(kind, message, function, *args):
    try:
        function(*args)
    except kind as error:
        assert str(error) == message, str(error)
    else:
        raise AssertionError(f"no {kind.__name__}")


def check_errors(module):
    a = np.zeros(4, np.float32)
    expect_error(TypeError, "Parameter `a` expects tensor but got type_index=1\n" + SIGNATURE, module.main, 1, a)
    expect_error(ValueError, "Parameter `b` expects ndim=1 but got ndim=2\n" + SIGNATURE, module.main, a, a.reshape(2, 2))
    expect_error(ValueError, "Shape mismatch: n=4 (from a.shape[0]) but b.shape[0]=3\n" + SIGNATURE, module.main, a, a[:3])
    expect_error(TypeError, "Expects 2 or 3 arguments but got 1\n" + SIGNATURE, module.main, a)
    # The error of a worker reaches the caller's thread.
    expect_error(IndexError, "index out of range in worker 0", module.fail, 0)
    for _ in range(1000):
        try:
            module.fail(1)
        except IndexError as error:
            assert str(error) == "index out of range in worker 1"
            break
    else:
        raise AssertionError("no worker was ever idle")


def check_lifetime(module):
    """Results outlive each other and are freed: many large ones do not add up."""
    import gc

    kept = module.main(np.ones(5, np.float32), np.ones(5, np.float32))
    big = np.zeros(1 << 22, np.float32)
    for _ in range(100):
        module.main(big, big)
        gc.collect(0)
    assert max_rss_mb() < 600, max_rss_mb()
    np.testing.assert_array_equal(np.from_dlpack(kept), np.full(5, 2, np.float32))


def max_rss_mb():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def worker_threads():
    names = [open(f"/proc/self/task/{t}/comm").read().strip() for t in os.listdir("/proc/self/task")]
    return sorted(n for n in names if n.startswith("tenon-"))


def wheel_first(path, _):
    import tvm_ffi

    module = tvm_ffi.load_module(path)
    check_calls(module)
    check_errors(module)
    check_lifetime(module)
    assert worker_threads() == ["tenon-1", "tenon-2"], worker_threads()


def model_first(path, _):
    library = ctypes.CDLL(path)
    any_of = lambda i: (ctypes.c_int64 * 2)(1, i)  # TVMFFIAny holding an integer
    # Used once without TVM-FFI in the process, so that it has been looked for in vain.
    assert library["__tvm_ffi_fail"](None, any_of(0), 1, (ctypes.c_int64 * 2)()) == -1
    result = (ctypes.c_int64 * 2)()
    assert library["__tvm_ffi_outputs"](None, any_of(2), 1, result) == 0
    assert result[0] == 71
    import tvm_ffi

    module = tvm_ffi.load_module(path)
    check_calls(module)
    check_errors(module)


def private_ffi(path, _):
    """A host that has loaded libtvm_ffi for itself alone."""
    import importlib.util

    root = os.path.dirname(importlib.util.find_spec("tvm_ffi").origin)
    ffi = ctypes.CDLL(os.path.join(root, "lib", "libtvm_ffi.so"), mode=os.RTLD_LOCAL | os.RTLD_NOW)
    library = ctypes.CDLL(path)
    result = (ctypes.c_int64 * 2)()
    assert library["__tvm_ffi_fail"](None, (ctypes.c_int64 * 2)(1, 0), 1, result) == -1
    error = ctypes.c_void_p()
    ffi.TVMFFIErrorMoveFromRaised(ctypes.byref(error))
    assert error.value, "the error did not reach TVM-FFI"
    text = ctypes.cast(error.value + 24, ctypes.POINTER(ctypes.c_char_p))
    assert text[0] == b"IndexError" and text[2] == b"index out of range in worker 0"


def no_ffi(path, runtime):
    """Through our own runtime, without TVM-FFI in the process."""
    library = ctypes.CDLL(runtime)
    library.tn_last_error.restype = ctypes.c_char_p
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert library.tn_module_load(path.encode(), ctypes.byref(module)) == 0
    assert library.tn_module_get_function(module, b"fail", ctypes.byref(function)) == 0
    result = (ctypes.c_int64 * 2)()
    assert library.tn_call(function, None, (ctypes.c_int64 * 2)(1, 0), 1, result) == -1
    assert library.tn_last_error(None) == b"index out of range in worker 0"
    assert "tvm_ffi" not in open("/proc/self/maps").read()


def shared_pool(path, runtime):
    """Two libraries use the pool of the one runtime that is loaded, privately."""
    import shutil
    import tempfile

    import tvm_ffi

    ctypes.CDLL(runtime, mode=os.RTLD_LOCAL)
    with tempfile.TemporaryDirectory() as folder:
        other = shutil.copy(path, os.path.join(folder, "other.so"))
        modules = [tvm_ffi.load_module(path), tvm_ffi.load_module(other)]
    for module in modules:
        check_calls(module)
        check_errors(module)
    assert worker_threads() == ["tenon-1", "tenon-2"], worker_threads()


def many(path, _):
    """Without a runtime in the process libraries share the workers of the first, and go when nobody needs them."""
    import gc
    import shutil
    import tempfile

    import tvm_ffi

    with tempfile.TemporaryDirectory() as folder:
        def load(name):
            return tvm_ffi.load_module(shutil.copy(path, os.path.join(folder, name)), keep_module_alive=False)

        first = load("first.so")
        modules = [load(f"{i}.so") for i in range(20)]
        for module in modules:
            check_calls(module)
        assert worker_threads() == ["tenon-1", "tenon-2"], worker_threads()
        kept = modules[3].main(np.ones(5, np.float32), np.ones(5, np.float32))
        mapped = lambda name: os.path.join(folder, name) in open("/proc/self/maps").read()
        del first
        gc.collect()
        assert mapped("first.so")  # others use its workers
        del modules[1:], module
        gc.collect()
        assert mapped("0.so") and mapped("first.so") and not any(mapped(f"{i}.so") for i in range(1, 20))
        np.testing.assert_array_equal(np.from_dlpack(kept), np.full(5, 2, np.float32))
        del kept
        check_calls(modules[0])
        modules.clear()
        gc.collect()
        assert not mapped("0.so") and not mapped("first.so")
        assert worker_threads() == []
        # Errors of shared workers reach who called; tvm_ffi keeps a module that has raised one.
        for module in [load("first.so"), load("second.so")]:
            check_errors(module)
        assert worker_threads() == ["tenon-1", "tenon-2"], worker_threads()


def recompiled(path, _):
    """A library that is replaced under its path is the new one where nothing of the old is left, else the old one."""
    import gc
    import shutil
    import tempfile

    import tvm_ffi

    load = lambda name: tvm_ffi.load_module(name, keep_module_alive=False)
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "model.so")
        other = os.path.join(os.path.dirname(path), "named.so")
        shutil.copy(path, name)
        module = load(name)
        check_calls(module)
        os.remove(name)
        shutil.copy(other, name)
        assert load(name).implements_function("main")  # the loader knows the path
        del module
        gc.collect()
        module = load(name)
        assert not module.implements_function("main") and module.implements_function("named")


def fork(path, _):
    import tvm_ffi

    module = tvm_ffi.load_module(path)
    check_calls(module)
    for _ in range(3):
        child = os.fork()
        if child == 0:
            check_calls(module)
            check_errors(module)
            os._exit(0 if worker_threads() == ["tenon-1", "tenon-2"] else 1)
        assert os.waitpid(child, 0)[1] == 0
    check_calls(module)


def threads(path, _):
    import tvm_ffi

    module = tvm_ffi.load_module(path)
    failures = []

    def work():
        try:
            for _ in range(5):
                check_calls(module)
                expect_error(IndexError, "index out of range in worker 0", module.fail, 0)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures, failures


if __name__ == "__main__":
    CASES = [wheel_first, model_first, private_ffi, no_ffi, shared_pool, many, recompiled, fork, threads]
    {case.__name__: case for case in CASES}[sys.argv[1]](*sys.argv[2:])
