"""tenon.onnxruntime beside ONNX Runtime: feeds, results, sizes, what sessions say, where models come from, and the module itself."""

import pathlib
import tempfile
import threading
import unittest

from beside_onnxruntime import X, Y, SameAsOnnxRuntime, case, cast, info, model, ours, run, session, two  # noqa: F401; first, as it names the cache

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def feeds_case(name, feeds, of=None):
    case(lambda ort: run(ort, feeds, of), f"feeds_{name}")


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


if __name__ == "__main__":
    unittest.main()
