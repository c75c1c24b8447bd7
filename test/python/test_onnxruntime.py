"""tenon.onnxruntime beside ONNX Runtime: each case runs under both, and what comes of it is compared, errors by their class
and status."""

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

_CACHE = tempfile.TemporaryDirectory(prefix="tenon-cache-")
os.environ["TENON_CACHE_DIR"] = _CACHE.name

import numpy as np
import onnx
import onnxruntime as real
from onnx import TensorProto, helper, numpy_helper

import tenon
import tenon.onnxruntime as ours

real.set_default_logger_severity(4)


def model(nodes, inputs, outputs, initializers=(), opset=17, **header):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers), doc_string="of the graph")
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **header)
    return made


def info(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def two(**header):
    """o = (x + y) · w, where w may be overridden."""
    nodes = [helper.make_node("Add", ["x", "y"], ["z"], name="add"), helper.make_node("Mul", ["z", "w"], ["o"])]
    inputs = [info("x", ["n", 3]), info("y", ["n", 3]), info("w", [1])]
    w = helper.make_tensor("w", TensorProto.FLOAT, [1], [2.0])
    return model(nodes, inputs, [info("o", ["n", 3]), info("z", ["n", 3])], [w], **header).SerializeToString()


def cast(to, shape=("n",), start=TensorProto.FLOAT):
    nodes = [helper.make_node("Cast", ["x"], ["o"], to=to)]
    return model(nodes, [info("x", list(shape), start)], [info("o", list(shape), to)]).SerializeToString()


X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = X + 1


def session(ort, of=None, options=None, **more):
    if options is None:
        options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(two() if of is None else of, options, **more)


def run(ort, feeds, of=None, names=None, **more):
    return session(ort, of).run(names, feeds, **more)


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def feeds_case(name, feeds, of=None):
    CASES[f"feeds_{name}"] = lambda ort: run(ort, feeds, of)


# Feeds.
feeds_case("arrays", {"x": X, "y": Y})
feeds_case("lists", {"x": X.tolist(), "y": Y})
feeds_case("strided", {"x": np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2], "y": np.asfortranarray(Y)})
feeds_case("reversed", {"x": X[::-1], "y": X[:, ::-1]})
feeds_case("of_another_type", {"x": X.astype(np.float64), "y": Y})
feeds_case("of_objects", {"x": X.astype(object), "y": Y})
feeds_case("of_another_rank", {"x": X[0], "y": Y})
feeds_case("of_another_size", {"x": X[:, :2], "y": Y})
feeds_case("missing", {"x": X})
feeds_case("unknown", {"x": X, "y": Y, "q": X})
feeds_case("one_row", {"x": X, "y": Y[:1]})
feeds_case("no_rows", {"x": X[:0], "y": Y[:0]})
feeds_case("overridden", {"x": X, "y": Y, "w": np.array([5], np.float32)})
feeds_case("overridden_by_another_size", {"x": X, "y": Y, "w": np.array([5, 6], np.float32)})
feeds_case("no_mapping", [X, Y])
for dtype in (np.float64, np.float16, np.int8, np.int64, np.uint8, np.uint64, np.bool_):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    feeds_case(f"{np.dtype(dtype).name}", {"x": np.array([0, 1, 7]).astype(dtype)}, cast(TensorProto.FLOAT, start=kind))
    feeds_case(f"to_{np.dtype(dtype).name}", {"x": np.array([0, 1, 7], np.float32)}, cast(kind))
feeds_case("scalar", {"x": np.array(3, np.float32)}, cast(TensorProto.INT64, ()))


@case
def read_only(ort):
    x = X.copy()
    x.setflags(write=False)
    return run(ort, {"x": x, "y": Y})


@case
def misaligned(ort):
    raw = bytearray(1 + X.nbytes)
    raw[1:] = X.tobytes()
    return run(ort, {"x": np.frombuffer(raw, np.float32, 6, 1).reshape(2, 3), "y": Y})


@case
def memory_mapped(ort):
    with tempfile.NamedTemporaryFile() as file:
        file.write(X.tobytes())
        file.flush()
        return run(ort, {"x": np.memmap(file.name, np.float32, "r", shape=(2, 3)), "y": Y})


@case
def bfloat16(ort):
    import ml_dtypes

    x = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([1, 2.5, -3], ml_dtypes.bfloat16).view(np.uint16), 16)
    return x.data_type(), x.element_type(), run_values(ort, cast(TensorProto.FLOAT, start=TensorProto.BFLOAT16), x)


def run_values(ort, of, x):
    return session(ort, of).run_with_ort_values(["o"], {"x": x})[0].numpy()


# What comes back.
@case
def some_outputs(ort):
    return run(ort, {"x": X, "y": Y}, names=["z"])


@case
def outputs_in_another_order(ort):
    return run(ort, {"x": X, "y": Y}, names=["z", "o"])


def listed_twice(size=None):
    """y, z, and y once more."""
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
    outputs = [info("y", [2, 3]), info("z", [2, 3]), info("y", [2, 3])]
    return model(nodes, [info("x", [size or 2, 3])], outputs).SerializeToString()


@case
def an_output_listed_twice(ort):
    of = session(ort, listed_twice())
    return [o.name for o in of.get_outputs()], of.run(None, {"x": X}), of.run(["y", "z", "y", "y"], {"x": X}), of.run(["y"], {"x": X})


@case
def an_output_of_open_size_listed_twice(ort):
    return run(ort, {"x": X}, listed_twice("n"))


@case
def a_branch_as_an_output_twice(ort):
    either = [helper.make_graph([helper.make_node(op, ["x"], ["r"])], op, [], [info("r", [2, 3])]) for op in ("Relu", "Neg")]
    node = helper.make_node("If", ["c"], ["y"], then_branch=either[0], else_branch=either[1])
    of = model([node], [info("x", [2, 3]), info("c", [], TensorProto.BOOL)], [info("y", [2, 3])] * 2).SerializeToString()
    return [run(ort, {"x": X, "c": np.array(c)}, of) for c in (True, False)]


@case
def an_empty_list_of_outputs(ort):
    return run(ort, {"x": X, "y": Y}, names=[])


@case
def an_unknown_output(ort):
    return run(ort, {"x": X, "y": Y}, names=["nope"])


@case
def outputs_own_their_memory(ort):
    s = session(ort)
    first = s.run(None, {"x": X, "y": Y})
    kept = [r.copy() for r in first]
    s.run(None, {"x": X * 100, "y": Y})
    del s
    return [np.array_equal(a, b) for a, b in zip(first, kept)], [r.flags.writeable for r in first]


# Sizes.
@case
def many_sizes(ort):
    s = session(ort)
    return [s.run(None, {"x": np.ones((n, 3), np.float32), "y": np.ones((n, 3), np.float32)})[0].sum() for n in (1, 2, 5, 0, 17)]


@case
def one_name_for_two_sizes(ort):
    nodes = [helper.make_node("ReduceSum", ["x"], ["a"], keepdims=0), helper.make_node("ReduceSum", ["y"], ["b"], keepdims=0)]
    nodes.append(helper.make_node("Add", ["a", "b"], ["o"]))
    of = model(nodes, [info("x", ["n", 3]), info("y", ["n"])], [info("o", [])]).SerializeToString()
    s = session(ort, of)
    return s.run(None, {"x": X, "y": np.ones(5, np.float32)}), s.run(None, {"x": X, "y": np.ones(2, np.float32)})


@case
def a_branch_of_another_rank(ort):
    """What exporters make of squeeze: which branch is taken depends on a size."""
    then = helper.make_graph([helper.make_node("Squeeze", ["x", "axis"], ["t"])], "then", [], [info("t", ["a"])])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["e"])], "else", [], [info("e", ["a", "b"])])
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=1, end=2),
        helper.make_node("Equal", ["s", "one"], ["c"]),
        helper.make_node("If", ["c"], ["o"], then_branch=then, else_branch=other),
    ]
    ones = [numpy_helper.from_array(np.array([1]), n) for n in ("axis", "one")]
    of = model(nodes, [info("x", ["a", "b"])], [info("o", None)], ones).SerializeToString()
    s = session(ort, of)
    return s.run(None, {"x": X})[0], s.run(None, {"x": X[:, :1]})[0], s.run(None, {"x": X})[0]


@case
def a_branch_that_fits_no_size_of_the_call(ort):
    """Which one is taken an input says."""

    def branch(rows):
        shape = helper.make_node("Constant", [], [f"s{rows}"], value_ints=[rows, 3])
        node = helper.make_node("Reshape", ["x", f"s{rows}"], [f"r{rows}"])
        total = helper.make_node("ReduceSum", [f"r{rows}"], [f"t{rows}"], keepdims=0)
        return helper.make_graph([shape, node, total], f"of_{rows}", [], [info(f"t{rows}", [])])

    nodes = [
        helper.make_node("Equal", ["which", "two"], ["c"]),
        helper.make_node("If", ["c"], ["o"], then_branch=branch(2), else_branch=branch(5)),
    ]
    inputs = [info("x", ["n", "m"]), info("which", [], TensorProto.INT64)]
    of = model(nodes, inputs, [info("o", [])], [numpy_helper.from_array(np.array(2), "two")]).SerializeToString()
    s = session(ort, of)
    return [s.run(None, {"x": np.ones((rows, 3), np.float32), "which": np.array(rows)})[0] for rows in (2, 5, 2)]


@case
def a_state_of_one_batch(ort):
    rng = np.random.default_rng(0)
    given = {"w": (1, 15, 4), "r": (1, 15, 5), "h": (1, 1, 5)}
    constants = [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in given.items()]
    gru = helper.make_node("GRU", ["x", "w", "r", "", "", "h"], ["o"], hidden_size=5)
    of = model([gru], [info("x", [3, "b", 4])], [info("o", [3, 1, "b", 5])], constants).SerializeToString()
    return session(ort, of).run(None, {"x": rng.standard_normal((3, 1, 4)).astype(np.float32)})


@case
def an_input_of_unknown_rank(ort):
    of = model([helper.make_node("Neg", ["x"], ["o"])], [info("x", None)], [info("o", None)]).SerializeToString()
    s = session(ort, of)
    return [s.run(None, {"x": x})[0] for x in (X, X[0], np.array(3, np.float32))]


# What a session says.
@case
def inputs(ort):
    s = session(ort)
    of = lambda args: [(a.name, a.shape, a.type) for a in args]
    return of(s.get_inputs()), of(s.get_outputs()), of(s.get_overridable_initializers())


@case
def unnamed_dims(ort):
    of = cast(TensorProto.INT32, (None, "", 3))
    return [i.shape for i in session(ort, of).get_inputs()]


@case
def types(ort):
    kinds = [TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.UINT16, TensorProto.BOOL, TensorProto.BFLOAT16]
    return [session(ort, cast(k)).get_outputs()[0].type for k in kinds]


@case
def metadata(ort):
    m = onnx.load_from_string(two(producer_name="p", producer_version="3", doc_string="words", domain="d", model_version=7))
    helper.set_model_props(m, {"stride": "32", "names": "{0: 'a'}"})
    meta = session(ort, m.SerializeToString()).get_modelmeta()
    return (
        meta.producer_name, meta.graph_name, meta.domain, meta.description, meta.graph_description, meta.version,
        sorted(meta.custom_metadata_map.items()),
    )  # fmt: skip


@case
def no_metadata(ort):
    meta = session(ort).get_modelmeta()
    return meta.producer_name, meta.description, meta.custom_metadata_map


@case
def providers(ort):
    s = session(ort, providers=["CUDAExecutionProvider", ("CPUExecutionProvider", {})])
    s.set_providers(["CPUExecutionProvider"])
    return s.get_providers(), s.get_provider_options()


@case
def providers_with_options(ort):
    s = session(ort, providers=["CPUExecutionProvider"], provider_options=[{}])
    return s.get_providers(), s.get_provider_options()


@case
def an_unknown_provider(ort):
    return session(ort).set_providers(["Nope"])


# Where a model comes from.
@case
def from_a_path(ort):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "m.onnx"
        file.write_bytes(two())
        return [ort.InferenceSession(f).run(None, {"x": X, "y": Y}) for f in (file, str(file))]


@case
def no_file(ort):
    return ort.InferenceSession("/nowhere/model.onnx")


@case
def no_model(ort):
    return session(ort, b"no model at all")


@case
def no_bytes(ort):
    return session(ort, b"")


@case
def a_number(ort):
    return session(ort, 3)


@case
def an_unknown_operator(ort):
    nodes = [helper.make_node("Nope", ["x"], ["o"], domain="elsewhere")]
    m = model(nodes, [info("x", [1])], [info("o", [1])])
    m.opset_import.append(helper.make_opsetid("elsewhere", 1))
    try:
        session(ort, m.SerializeToString())
    except Exception as error:
        return "Nope" in str(error)


# Options of sessions.
@case
def options_by_default(ort):
    options = ort.SessionOptions()
    names = [n for n in dir(ours.SessionOptions()) if not n.startswith("_") and not callable(getattr(options, n))]
    return [(n, repr(getattr(options, n))) for n in sorted(names)]


@case
def run_options_by_default(ort):
    options = ort.RunOptions()
    names = [n for n in dir(ours.RunOptions()) if not n.startswith("_") and not callable(getattr(options, n))]
    return [(n, repr(getattr(options, n))) for n in sorted(names)]


@case
def all_attributes(ort):
    """Every one of ONNX Runtime's is there, by the type of its value."""
    options = ort.SessionOptions()
    names = [n for n in dir(real.SessionOptions()) if not n.startswith("_") and not callable(getattr(real.SessionOptions(), n))]
    return [type(getattr(options, n)).__name__ for n in names]


@case
def config_entries(ort):
    options = ort.SessionOptions()
    options.add_session_config_entry("a.b", "1")
    return options.get_session_config_entry("a.b")


@case
def a_missing_config_entry(ort):
    return ort.SessionOptions().get_session_config_entry("nope")


@case
def a_missing_run_config_entry(ort):
    return ort.RunOptions().get_run_config_entry("nope")


@case
def an_unknown_attribute(ort):
    ort.SessionOptions().nope = 1


@case
def an_attribute_of_another_type(ort):
    ort.SessionOptions().intra_op_num_threads = "many"


@case
def threads_and_levels(ort):
    results = []
    for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_BASIC):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = level
        results.append(session(ort, options=options).run(None, {"x": X, "y": Y}))
    return results


@case
def free_dimensions(ort):
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("n", 2)
    s = session(ort, options=options)
    return [i.shape for i in s.get_inputs()], s.run(None, {"x": X, "y": Y})


@case
def another_size_than_the_override(ort):
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("n", 3)
    return session(ort, options=options).run(None, {"x": X, "y": Y})


def with_constant():
    w = numpy_helper.from_array(np.array([2, 3, 4], np.float32), "w")
    return model([helper.make_node("Mul", ["x", "w"], ["o"])], [info("x", ["n", 3])], [info("o", ["n", 3])], [w])


@case
def given_initializers(ort):
    options = ort.SessionOptions()
    kept = ort.OrtValue.ortvalue_from_numpy(np.array([10, 20, 30], np.float32))
    options.add_initializer("w", kept)
    return session(ort, with_constant().SerializeToString(), options).run(None, {"x": X})


@case
def given_external_initializers(ort):
    """Whose file is not there."""
    m = with_constant()
    w = m.graph.initializer[0]
    w.ClearField("raw_data")
    w.data_location = TensorProto.EXTERNAL
    w.external_data.add(key="location", value="nowhere.bin")
    options = ort.SessionOptions()
    options.add_external_initializers(["w"], [ort.OrtValue.ortvalue_from_numpy(np.array([7, 8, 9], np.float32))])
    return session(ort, m.SerializeToString(), options).run(None, {"x": X})


@case
def weights_in_memory(ort):
    """Files of a model's weights that are given, not read."""
    answers = []
    for numbers in ([7, 8, 9], [1, 2, 3]):
        m = with_constant()
        w = m.graph.initializer[0]
        w.ClearField("raw_data")
        w.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "folder/w.bin"), ("offset", "4"), ("length", "12")):
            w.external_data.add(key=key, value=value)
        content = np.array([0, *numbers, 5], np.float32).tobytes()
        options = ort.SessionOptions()
        options.add_external_initializers_from_files_in_memory(["folder/w.bin"], [content], [len(content)])
        answers.append(session(ort, m.SerializeToString(), options).run(None, {"x": X}))
    return answers


@case
def profiling(ort):
    import json

    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = folder + "/trace"
        s = session(ort, options=options)
        s.run(None, {"x": X, "y": Y})
        path = s.end_profiling()
        events = json.loads(open(path).read())
        names = {e["name"] for e in events}
        kernels = [e for e in events if e["cat"] == "Node"]
        run = next(e for e in events if e["name"] == "model_run")
        inside = all(e["ts"] >= run["ts"] and e["dur"] <= run["dur"] + 1 for e in kernels)
        started = os.path.basename(path).startswith("trace_"), {"session_initialization", "model_run"} <= names
        return *started, len(kernels) > 0, inside


@case
def terminate(ort):
    options = ort.RunOptions()
    options.terminate = True
    s = session(ort)
    try:
        s.run(None, {"x": X, "y": Y}, options)
    except Exception:
        return "refused"


@case
def run_options(ort):
    options = ort.RunOptions()
    options.log_severity_level = 3
    options.add_run_config_entry("a", "b")
    return run(ort, {"x": X, "y": Y}, run_options=options), options.get_run_config_entry("a")


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


CASES["binding_to_another_type"] = lambda ort: bound_to_another(ort, [2, 3], np.float64)
CASES["binding_to_another_shape"] = lambda ort: bound_to_another(ort, [3, 3], np.float32)


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


# The module.
@case
def enumerations(ort):
    kinds = (ort.GraphOptimizationLevel, ort.ExecutionMode, ort.ExecutionOrder, ort.OrtMemType, ort.OrtAllocatorType)
    return [sorted((n, int(m)) for n, m in k.__members__.items()) for k in kinds]


@case
def functions(ort):
    ort.set_default_logger_severity(4)
    ort.set_seed(3)
    ort.disable_telemetry_events()
    return ort.get_device(), "CPUExecutionProvider" in ort.get_available_providers(), type(ort.get_version_string()), ort.__version__


@case
def exceptions(ort):
    state = ort.capi.onnxruntime_pybind11_state
    names = [n for n in dir(ours.capi.onnxruntime_pybind11_state) if isinstance(getattr(state, n, None), type)]
    return [n for n in names if issubclass(getattr(state, n), Exception)], state.Fail.__mro__[-3:]


@case
def devices(ort):
    d = ort.OrtDevice.make("cpu", 0)
    return d.device_type(), d.device_id()


@case
def subclasses(ort):
    class Mine(ort.InferenceSession):
        def __init__(self, path, **more):
            super().__init__(path, **more)
            self.extra = 1

        def run(self, names, feeds, run_options=None):
            return [r + self.extra for r in super().run(names, feeds, run_options)]

    return Mine(two()).run(["o"], {"x": X, "y": Y})


@case
def threads_share_a_session(ort):
    s = session(ort)
    results = [None] * 8

    def work(i):
        x = np.full((i + 1, 3), i, np.float32)
        results[i] = [s.run(["o"], {"x": x, "y": x})[0].sum() for _ in range(50)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def outcome(function, ort):
    """What it returns, or the class of the error and how its message begins."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return "value", function(ort)
        except Exception as error:
            text = str(error)
            return "error", type(error).__qualname__, text.split(" : ")[:3] if text.startswith("[ONNXRuntimeError]") else ""


# Where more is taken than ONNX Runtime takes, or another error is raised than one of its own mistakes.
MORE = {"terminate"}


class SameAsOnnxRuntime(unittest.TestCase):
    def compare(self, a, b):
        if isinstance(b, np.ndarray):
            self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
            np.testing.assert_allclose(a, b, rtol=1e-5)
        elif isinstance(b, (list, tuple)):
            self.assertEqual(len(a), len(b), (a, b))
            for i, j in zip(a, b):
                self.compare(i, j)
        else:
            self.assertEqual(a, b)


for name, function in CASES.items():

    def test(self, function=function):
        self.compare(outcome(function, ours), outcome(function, real))

    setattr(SameAsOnnxRuntime, f"test_{name}", test)


class Alone(unittest.TestCase):
    """What ONNX Runtime does not have, or has otherwise."""

    def test_numbers_are_fed(self):
        of = cast(TensorProto.INT64, ())
        for x in (3.0, np.float32(3), True):
            self.assertEqual(run(ours, {"x": x if not isinstance(x, bool) else 1}, of)[0], np.int64(x if x is not True else 1))

    def test_registers_where_it_is_absent(self):
        script = """
import sys
sys.modules.pop("onnxruntime", None)
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "onnxruntime" and "tenon.onnxruntime" not in sys.modules: raise ModuleNotFoundError(name)
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "onnxruntime" else find(name, *more)
import tenon.onnxruntime
import onnxruntime
from onnxruntime import InferenceSession
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from onnxruntime.capi import _pybind_state
assert onnxruntime is tenon.onnxruntime and InferenceSession is tenon.InferenceSession
try:
    import onnxruntime.quantization
except ModuleNotFoundError: pass
else: raise AssertionError
"""
        subprocess.run([sys.executable, "-c", script], check=True)

    def test_leaves_the_real_one_alone(self):
        script = "import tenon.onnxruntime, onnxruntime; assert onnxruntime is not tenon.onnxruntime"
        subprocess.run([sys.executable, "-c", script], check=True)

    def test_runs_programs(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write("import onnxruntime, sys; print(onnxruntime.get_build_info(), sys.argv[1])")
            file.flush()
            command = [sys.executable, "-m", "tenon.onnxruntime", file.name, "word"]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.assertEqual(said, f"Tenon {tenon.__version__} word\n")

    def test_says_once_that_it_compiles(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.onnx")
            pathlib.Path(path).write_bytes(two())
            command = [sys.executable, "-c", "import sys, tenon; tenon.InferenceSession(sys.argv[1])", path]
            environment = {**os.environ, "TENON_CACHE_DIR": folder}
            said = [subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stderr for _ in range(2)]
        self.assertEqual(said, ["tenon: compiling net.onnx, which is kept for the next time\n", ""])

    def test_empty_caches_share_a_library(self):
        """One for calls without a past, of any other size, beside the one for calls with a past."""
        of = model([helper.make_node("Concat", ["past", "x"], ["o"], axis=1)], [info("past", ["b", "p", 3]), info("x", ["b", "n", 3])], [info("o", ["b", "t", 3])])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "grows.onnx")
            pathlib.Path(path).write_bytes(of.SerializeToString())
            program = "import sys, numpy as np, tenon; s = tenon.InferenceSession(sys.argv[1])\n"
            program += "for b, p, n in ((1, 0, 5), (1, 0, 7), (2, 0, 1), (1, 5, 1), (2, 6, 1)):\n"
            program += "    assert s.run(None, {'past': np.ones((b, p, 3), 'f'), 'x': np.ones((b, n, 3), 'f')})[0].shape == (b, p + n, 3)"
            subprocess.run([sys.executable, "-c", program, path], check=True, env={**os.environ, "TENON_CACHE_DIR": folder}, capture_output=True)
            self.assertEqual(len(list(pathlib.Path(folder).rglob("*.so"))), 2)

    def test_runs_without_a_cache(self):
        environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "TENON_CACHE_DIR")}
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(two())
            file.flush()
            program = "import sys, numpy as np, tenon; x = np.ones((2, 3), 'f')\n"
            program += "print(tenon.InferenceSession(sys.argv[1]).run(['o'], {'x': x, 'y': x})[0].sum())"
            command = [sys.executable, "-c", program, file.name]
            said = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        self.assertEqual(said, "24.0\n")

    def test_models_that_never_run_are_refused(self):
        """When the session is made, also where sizes are open, since no sizes mend them."""
        node, i64 = helper.make_node, TensorProto.INT64
        x, o, i = info("x", ["n"]), info("o", ["n"]), info("i", ["n"], i64)
        for name, nodes, inputs in (
            ("attribute", [node("Relu", ["x"], ["o"], slope=0.5)], [x]),
            ("axis", [node("Softmax", ["x"], ["o"], axis=5)], [x]),
            ("types", [node("Add", ["x", "i"], ["o"])], [x, i]),
            ("inputs", [node("Relu", ["x", "x"], ["o"])], [x]),
        ):
            for ort in (ours, real):
                with self.subTest(f"{name} {ort.__name__}"), self.assertRaises(Exception) as caught:
                    session(ort, model(nodes, inputs, [o]).SerializeToString())
                self.assertIn("[ONNXRuntimeError]", str(caught.exception))
        # What sizes mend waits for them.
        tiles = model([node("Reshape", ["x", "s"], ["o"])], [x], [info("o", [2, 3])], [numpy_helper.from_array(np.array([2, 3]), "s")])
        self.assertEqual(run(ours, {"x": np.zeros(6, np.float32)}, tiles.SerializeToString())[0].shape, (2, 3))

    def test_errors_of_bytes_name_no_file(self):
        for of in (b"nonsense", model([helper.make_node("Relu", ["x"], ["o"], slope=0.5)], [info("x", [2])], [info("o", [2])]).SerializeToString()):
            with self.assertRaises(Exception) as caught:
                session(ours, of)
            self.assertIn("the model given as bytes", str(caught.exception))
            self.assertNotIn("/tenon-", str(caught.exception))

    def test_dims_of_inputs_and_outputs(self):
        of = model([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Concat", ["x", "x"], ["z"], axis=0), helper.make_node("Identity", ["u"], ["v"])],
                   [info("x", ["batch size", 3]), info("u", [None, -1])], [info("y", ["batch size", 3]), info("z", None), info("v", ["a", "b"])])
        s = session(ours, of.SerializeToString())
        self.assertEqual([p.shape for p in s.get_inputs()], [["batch size", 3], [None, None]])
        self.assertEqual([p.shape for p in s.get_outputs()], [["batch size", 3], [None, 3], ["a", "b"]])

    def test_profiles(self):
        with tempfile.TemporaryDirectory() as folder:
            for ort in (ours, real):
                options = ort.SessionOptions()
                options.enable_profiling, options.profile_file_prefix = True, os.path.join(folder, "p")
                s = session(ort, options=options)
                self.assertLess(abs(s.get_profiling_start_time_ns() - time.time_ns()), 60e9)
                path = s.end_profiling()
                self.assertTrue(os.path.exists(path))
                self.assertEqual(s.end_profiling(), "")

    def test_what_is_left_out_says_so(self):
        import importlib

        for name, says in (("quantization", "quantised models are run"), ("backend", "tenon.onnx_backend"), ("datasets", "no example models"), ("tools", "tenon inspect")):
            with self.assertRaisesRegex(ModuleNotFoundError, says):
                importlib.import_module(f"tenon.onnxruntime.{name}")
            with self.assertRaisesRegex(AttributeError, says):
                getattr(ours, name)
        with self.assertRaisesRegex(AttributeError, "has no attribute 'nonsense'"):
            ours.nonsense  # noqa: B018
        self.assertFalse(isinstance(1, ours.SparseTensor))
        ours.OrtMemoryInfo("Cpu", ours.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ours.OrtMemType.DEFAULT)
        options = ours.SessionOptions()
        options.optimized_model_filepath = "/tmp/never.onnx"
        with self.assertWarnsRegex(UserWarning, "optimized_model_filepath"):
            session(ours, options=options)

    def test_an_interrupt_ends_compiling(self):
        """Soon, and the session is made when it is asked for again."""
        program = """if True:
            import os, signal, sys, threading, time, numpy as np, tenon
            import onnx
            from onnx import helper, numpy_helper, TensorProto
            nodes, weights = [], []
            for k in range(300):
                weights.append(numpy_helper.from_array(np.ones((3 + k, 4 + k), "f"), f"w{k}"))
                nodes += [helper.make_node("MatMul", [f"x{k}", f"w{k}"], [f"m{k}"]), helper.make_node("Softmax", [f"m{k}"], [f"x{k + 1}"])]
            graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x0", 1, ["n", 3])], [helper.make_tensor_value_info("x300", 1, ["n", 303])], weights)
            made = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
            threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
            begin = time.monotonic()
            try:
                tenon.InferenceSession(made)
                print("made")
            except KeyboardInterrupt:
                print("interrupted", time.monotonic() - begin)
            """
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "TENON_CACHE_DIR": folder})
            self.assertEqual(list(pathlib.Path(folder).glob("*.so")), [])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("interrupted", done.stdout)

    def test_elements_that_numpy_lacks(self):
        """Arrays of ml_dtypes, and their bits, as inputs; the same type comes back."""
        import ml_dtypes

        for name in ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2", "uint2"):
            with self.subTest(name):
                dtype = np.dtype(getattr(ml_dtypes, name))
                kind = helper.np_dtype_to_tensor_dtype(dtype)
                nodes = [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT)]
                of = model(nodes, [info("x", ["n", 3], kind)], [info("t", [3, "n"], kind), info("f", ["n", 3])], opset=25)
                of.ir_version = 13
                x = np.array([[1, 0.5, 2], [1, 1, 0.25]], np.float32).astype(dtype)
                s = session(ours, of.SerializeToString())
                for given in (x, x[::-1], x[:1], x.view(f"u{dtype.itemsize}")):
                    t, f = s.run(None, {"x": given})
                    want = given.view(dtype)
                    self.assertEqual(t.dtype, dtype)
                    np.testing.assert_array_equal(t.astype(np.float32), want.T.astype(np.float32))
                    np.testing.assert_array_equal(f, want.astype(np.float32))

    def test_outputs_bound_to_one_memory(self):
        memory = np.zeros((4, 3), np.float32)
        for first, second in ((memory[:2], memory[:2]), (memory[:2], memory[1:3]), (memory[1:3], memory[:2])):
            with self.assertRaisesRegex(ours.capi.onnxruntime_pybind11_state.InvalidArgument, "memory of their own, but '[oz]' and '[oz]' overlap"):
                bound_to(ours, first, second)
        self.assertFalse(memory.any())

    def test_libraries(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.so")
            tenon.compile(two(), path)
            s = tenon.InferenceSession(path)
            self.assertEqual([i.shape for i in s.get_inputs()], [["n", 3], ["n", 3]])
            np.testing.assert_array_equal(s.run(["o"], {"x": X, "y": Y})[0], (X + Y) * 2)
            with self.assertRaises(ours.capi.onnxruntime_pybind11_state.Fail):
                s.run(None, {"x": X, "y": Y[:1]})

    def test_many_inputs(self):
        names = [f"x{i}" for i in range(70)]
        of = model([helper.make_node("Sum", names, ["o"])], [info(n, [2]) for n in names], [info("o", [2])])
        feeds = {n: np.full(2, i, np.float32) for i, n in enumerate(names)}
        np.testing.assert_array_equal(run(ours, feeds, of.SerializeToString())[0], [2415, 2415])

    def test_initializers_of_another_type(self):
        options = ours.SessionOptions()
        options.add_initializer("w", ours.OrtValue.ortvalue_from_numpy(np.ones(2, np.float32)))
        with self.assertRaisesRegex(Exception, r"shape \[3\] for the initializer 'w', but got data type 1 and shape \[2\]"):
            session(ours, with_constant().SerializeToString(), options)


if __name__ == "__main__":
    unittest.main()
