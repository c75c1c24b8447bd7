"""Values and bindings beside ONNX Runtime."""

import threading
import unittest

from beside_onnxruntime import X, Y, SameAsOnnxRuntime, case, ours, real, session  # noqa: F401; first, as it names the cache

import numpy as np
from onnx import TensorProto


# Values and bindings.
@case
def values(ort):
    v = ort.OrtValue.ortvalue_from_numpy(X)
    return (
        v.data_type(), v.shape(), v.device_name(), v.element_type(), v.is_tensor(), v.has_value(), v.tensor_size_in_bytes(),
        v.numpy(), v.is_sparse_tensor(), v.is_tensor_sequence(), np.asarray(v), v.__dlpack_device__(), type(v.data_ptr()),
    )  # fmt: skip


@case
def values_of_a_shape(ort):
    v = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    v.update_inplace(X)
    w = ort.OrtValue.ortvalue_from_shape_and_type([2], TensorProto.INT64)
    return v.numpy(), w.data_type(), w.shape()


@case
def run_with_values(ort):
    v = {n: ort.OrtValue.ortvalue_from_numpy(a) for n, a in {"x": X, "y": Y}.items()}
    return [r.numpy() for r in session(ort).run_with_ort_values(["o"], v)]


@case
def binding(ort):
    s = session(ort)
    io = s.io_binding()
    io.bind_cpu_input("x", X)
    io.bind_ortvalue_input("y", ort.OrtValue.ortvalue_from_numpy(Y))
    io.bind_output("z")
    io.bind_output("o", "cpu")
    io.synchronize_inputs()
    s.run_with_iobinding(io)
    io.synchronize_outputs()
    return io.copy_outputs_to_cpu(), [o.shape() for o in io.get_outputs()]


@case
def binding_to_memory(ort):
    s = session(ort)
    io = s.io_binding()
    out = np.zeros((2, 3), np.float32)
    io.bind_input("x", "cpu", 0, np.float32, X.shape, X.ctypes.data)
    io.bind_cpu_input("y", Y)
    io.bind_output("o", "cpu", 0, np.float32, out.shape, out.ctypes.data)
    s.run_with_iobinding(io)
    kept = ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32))
    io.bind_ortvalue_output("o", kept)
    x = X * 2
    io.bind_cpu_input("x", x)
    s.run_with_iobinding(io)
    return out, kept.numpy()


def bound_to(ort, first, second):
    s = session(ort)
    io = s.io_binding()
    io.bind_cpu_input("x", X)
    io.bind_cpu_input("y", Y)
    for name, out in (("o", first), ("z", second)):
        io.bind_output(name, "cpu", 0, np.float32, out.shape, out.ctypes.data)
    s.run_with_iobinding(io)
    return first, second


@case
def binding_to_memory_beside(ort):
    memory = np.zeros((5, 3), np.float32)
    return bound_to(ort, memory[3:], memory[1:3]), memory


@case
def binding_beneath_the_interface(ort):
    """As programs reach through to the bindings: a device of numbers, values on it, the session within."""
    state = __import__(ort.__name__ + ".capi._pybind_state", fromlist=["*"])
    s, device = session(ort), state.OrtDevice(state.OrtDevice.cpu(), state.OrtDevice.default_memory(), 0)
    io = s.io_binding()
    x, y = (state.OrtValue.ortvalue_from_numpy(a, device) for a in (X, Y))
    io._iobinding.bind_ortvalue_input("x", x)
    io.bind_ortvalue_input("y", ort.OrtValue(y))
    io._iobinding.bind_output("o", device)
    z = state.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, device)
    io._iobinding.bind_ortvalue_output("z", z)
    s._sess.run_with_iobinding(io._iobinding, None)
    of = lambda metas: [(m.name, m.type, m.shape) for m in metas]
    kept = ort.OrtValue.ortvalue_from_numpy(X)
    return (
        [o.numpy() for o in io._iobinding.get_outputs()], z.numpy(), of(s._inputs_meta), of(s._outputs_meta), s._model_meta.graph_name,
        device.device_id(), device.device_type(), kept._ortvalue.numpy(), ort.OrtValue(kept._ortvalue).shape(),
    )  # fmt: skip


@case
def binding_memory_beneath_the_interface(ort):
    state = __import__(ort.__name__ + ".capi._pybind_state", fromlist=["*"])
    s, device = session(ort), state.OrtDevice(state.OrtDevice.cpu(), state.OrtDevice.default_memory(), 0)
    io, out = s.io_binding(), np.zeros((2, 3), np.float32)
    io._iobinding.bind_input("x", device, np.float32, [2, 3], X.ctypes.data)
    io._iobinding.bind_input("y", Y)
    io._iobinding.bind_output("o", device, np.float32, [2, 3], out.ctypes.data)
    s.run_with_iobinding(io)
    return out


def bound_to_another(ort, shape, dtype):
    s = session(ort)
    io = s.io_binding()
    io.bind_cpu_input("x", X)
    io.bind_cpu_input("y", Y)
    io.bind_ortvalue_output("o", ort.OrtValue.ortvalue_from_shape_and_type(shape, dtype))
    s.run_with_iobinding(io)


case(lambda ort: bound_to_another(ort, [2, 3], np.float64), "binding_to_another_type")
case(lambda ort: bound_to_another(ort, [3, 3], np.float32), "binding_to_another_shape")


@case
def names_of_numbers(ort):
    values = (ort.GraphOptimizationLevel.ORT_ENABLE_ALL, ort.ExecutionMode.ORT_PARALLEL, ort.ExecutionOrder.DEFAULT)
    return [(str(v), v.name, v.value) for v in values]


@case
def a_severity_that_is_none(ort):
    ort.set_default_logger_severity(9)


@case
def binding_through_a_vector(ort):
    state = __import__(ort.__name__ + ".capi._pybind_state", fromlist=["*"])
    feeds, fetches = state.OrtValueVector(), state.OrtValueVector()
    for a in (X, Y):
        feeds.push_back(ort.OrtValue.ortvalue_from_numpy(a)._ortvalue if ort is real else ort.OrtValue.ortvalue_from_numpy(a))
    device = ort.OrtDevice.make("cpu", 0)
    devices = [device._get_c_device() if ort is real else device] * 2
    session(ort).run_with_ortvaluevector(ort.RunOptions(), ["x", "y"], feeds, ["z", "o"], fetches, devices)
    return [v.numpy() for v in fetches], len(fetches), fetches.element_type_at(0), [np.from_dlpack(v) for v in fetches]


@case
def sparse_values(ort):
    device = ort.OrtDevice.make("cpu", 0)
    values, index = np.array([1, 2], np.float32), np.array([0, 5], np.int64)
    coo = ort.SparseTensor.sparse_coo_from_numpy(np.array([2, 3]), values, index, device)
    csr = ort.SparseTensor.sparse_csr_from_numpy(np.array([2, 3]), values, np.array([0, 2]), np.array([0, 1, 2]), device)
    view = csr.as_csrc_view()
    told = [(t.values(), list(t.dense_shape()), t.data_type(), int(t.format().value), t.device_name().lower()) for t in (coo, csr)]
    return told, coo.as_coo_view().indices(), view.inner(), view.outer()


@case
def binding_an_unknown_input(ort):
    session(ort).io_binding().bind_cpu_input("nope", X)


@case
def binding_no_outputs(ort):
    s = session(ort)
    io = s.io_binding()
    io.bind_cpu_input("x", X)
    io.bind_cpu_input("y", Y)
    s.run_with_iobinding(io)


@case
def run_async(ort):
    done, results = threading.Event(), []

    def callback(outputs, data, error):
        results.append((outputs, data, error))
        done.set()

    session(ort).run_async(None, {"x": X, "y": Y}, callback, 7)
    return done.wait(60), results


class Alone(unittest.TestCase):
    """What ONNX Runtime does otherwise."""

    def test_outputs_bound_to_one_memory(self):
        memory = np.zeros((4, 3), np.float32)
        for first, second in ((memory[:2], memory[:2]), (memory[:2], memory[1:3]), (memory[1:3], memory[:2])):
            with self.assertRaisesRegex(ours.capi.onnxruntime_pybind11_state.InvalidArgument, "memory of their own, but '[oz]' and '[oz]' overlap"):
                bound_to(ours, first, second)
        self.assertFalse(memory.any())


if __name__ == "__main__":
    unittest.main()
