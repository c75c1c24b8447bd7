"""What sessions of tenon.onnxruntime raise, beside what ONNX Runtime's raise: the same class wherever a caller could tell; and options
by what dims are for, and that nobody else reads.

Needs: pip install onnx onnxruntime."""
import sys
import unittest

import numpy as np
import onnx.parser
import onnxruntime as real
from onnx import helper, numpy_helper

import tenon.onnxruntime as ours

X = np.ones((2, 3), np.float32)
A = np.arange(4, dtype=np.float32)


def model(body, inputs="float[2, 3] x", outputs="float[2, 3] y", opset=21, change=None):
    made = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {{ {body} }}')
    if change:
        change(made)
    return made.SerializeToString()


def options(ort, **attributes):
    made = ort.SessionOptions()
    made.log_severity_level = 4
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def session(ort, data):
    return ort.InferenceSession(data, options(ort), providers=["CPUExecutionProvider"])


def load(*args, **kwargs):
    data = model(*args, **kwargs)
    return lambda ort: session(ort, data)


def run(feeds, *args, names=None):
    data = model(*args)
    return lambda ort: session(ort, data).run(names, feeds)


def add_domain(made):
    made.graph.node[0].domain = "my.own"
    made.opset_import.append(helper.make_opsetid("my.own", 1))


def bound(name, array, output="y"):
    def call(ort):
        s = session(ort, RELU)
        binding = s.io_binding()
        if name:
            binding.bind_cpu_input(name, array)
        binding.bind_output(output)
        s.run_with_iobinding(binding)
    return call


RELU = model("y = Relu(x)")
VECTOR = "float[4] x, int64[N] i"
LOADS = {
    "no file": lambda ort: session(ort, "/nowhere/model.onnx"),
    "a folder": lambda ort: session(ort, "/tmp"),
    "no bytes": lambda ort: session(ort, b""),
    "garbage": lambda ort: session(ort, b"\x00\x01garbage" * 20),
    "no model": lambda ort: ort.InferenceSession(None),
    "no graph": load("y = Relu(x)", change=lambda m: m.ClearField("graph")),
    "unknown operator": load("y = Foo(x)"),
    "operator of nobody's": load("y = Relu(x)", change=add_domain),
    "operator set 0": load("y = Relu(x)", opset=0),
    "operator set of the future": load("y = Relu(x)", opset=99),
    "unknown attribute": load("y = Relu<foo = 1>(x)"),
    "attribute missing": load("y = Concat(x, x)"),
    "attribute of another type": load("y = Concat<axis = 1.5>(x, x)"),
    "axis out of range": load("y = Softmax<axis = 7>(x)"),
    "input undefined": load("y = Relu(q)"),
    "too many inputs": load("y = Relu(x, x)"),
    "too few inputs": load("y = Add(x)"),
    "type not of the operator": load("y = Relu(x)", "bool[2, 3] x", "bool[2, 3] y"),
    "two types": load("y = Add(x, z)", "float[2, 3] x, int64[2, 3] z"),
    "two shapes": load("y = Add(x, z)", "float[2, 3] x, float[2, 4] z"),
    "element type 99": load("y = Relu(x)", change=lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 99)),
    "options of another type": lambda ort: ort.InferenceSession(RELU, 5),
}
CALLS = {
    "input missing": run({}, "y = Relu(x)"),
    "no feeds": run(None, "y = Relu(x)"),
    "another name": run({"x": X, "q": X}, "y = Relu(x)"),
    "another rank": run({"x": X[0]}, "y = Relu(x)"),
    "another shape": run({"x": X[:, :2]}, "y = Relu(x)"),
    "another type": run({"x": X.astype(np.float64)}, "y = Relu(x)"),
    "nothing": run({"x": None}, "y = Relu(x)"),
    "a text": run({"x": "abc"}, "y = Relu(x)"),
    "an object": run({"x": object()}, "y = Relu(x)"),
    "rows of two lengths": run({"x": [[1, 2, 3], [1, 2]]}, "y = Relu(x)"),
    "output of no name": run({"x": X}, "y = Relu(x)", names=["z"]),
    "output by number": run({"x": X}, "y = Relu(x)", names=[5]),
    "outputs as a text": run({"x": X}, "y = Relu(x)", names="y"),
    "options of no call": lambda ort: session(ort, RELU).run(None, {"x": X}, 5),
    "index": run({"x": A, "i": np.array([7])}, "y = Gather(x, i)", VECTOR, "float[N] y"),
    "index of elements": run({"x": A, "i": np.array([7])}, "y = GatherElements(x, i)", VECTOR, "float[N] y"),
    "length": run({"x": np.ones((4, 2), np.float32), "i": np.array([9, 1])}, "y = ReverseSequence(x, i)", "float[4, 2] x, int64[2] i", "float[4, 2] y"),
    "shape": run({"x": A, "i": np.array([3, 3])}, "y = Reshape(x, i)", "float[4] x, int64[2] i", "float[K, L] y"),
    "two sizes": run({"x": A, "z": A[:3]}, "y = Add(x, z)", "float[N] x, float[M] z", "float[K] y"),
    "size to expand to": run({"x": A, "i": np.array([3])}, "y = Expand(x, i)", "float[4] x, int64[1] i", "float[K] y"),
    "times": run({"x": A, "i": np.array([-3])}, "y = Tile(x, i)", "float[4] x, int64[1] i", "float[K] y"),
    "count": run({"x": A, "i": np.array([9])}, "y, z = TopK(x, i)", "float[4] x, int64[1] i", "float[K] y"),
    "text that is no number": run({"x": np.array(["abc"], object)}, "y = Cast<to = 1>(x)", "string[N] x", "float[N] y"),
    "place in a sequence": run({"x": A, "i": np.array(5)}, "s = SequenceConstruct(x, x)  y = SequenceAt(s, i)", "float[4] x, int64 i", "float[4] y"),
    "binding of another type": bound("x", X.astype(np.float64)),
    "binding of no input": bound(None, None),
}
def given(add, name, value=X):
    """A session of a model with the initializer c, for which options have a value of that name."""
    def change(made):
        made.graph.initializer.append(numpy_helper.from_array(2 * X, "c"))
    data = model("y = Add(x, c)", change=change)
    def call(ort):
        made = options(ort)
        add(made, name, ort.OrtValue.ortvalue_from_numpy(value))
        ort.InferenceSession(data, made, providers=["CPUExecutionProvider"])
    return call


def one(made, name, value):
    made.add_initializer(name, value)


def external(made, name, value):
    made.add_external_initializers([name], [value])


def value_of(*args):
    return lambda ort: ort.OrtValue.ortvalue_from_numpy(*args)


def bits_as(dtype, number):
    return lambda ort: ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(4, dtype), number)


VALUES = {
    "a value for no initializer": given(one, "d"),
    "an external value for no initializer": given(external, "d"),
    "complex numbers": value_of(np.zeros(2, np.complex64)),
    "long numbers": value_of(np.zeros(2, np.longdouble)),
    "times": value_of(np.zeros(2, "datetime64[s]")),
    "memory for texts": lambda ort: ort.OrtValue.ortvalue_from_shape_and_type([2], np.dtype(object)),
    "memory for a type of no number": lambda ort: ort.OrtValue.ortvalue_from_shape_and_type([2], 99),
    "bits": bits_as(np.uint16, 16),
    "bits of another width": bits_as(np.uint16, 1),
    "bits of nothing": bits_as(np.uint16, 0),
    "an arena": lambda ort: ort.OrtArenaCfg({"max_mem": 5}).max_mem,
    "an arena of another entry": lambda ort: ort.OrtArenaCfg({"most": 5}),
    "libraries": lambda ort: ort.preload_dlls(directory=""),
}
OPTIONS = {
    "no such attribute": lambda ort: setattr(ort.SessionOptions(), "foo", 1),
    "a text for a number": lambda ort: setattr(ort.SessionOptions(), "intra_op_num_threads", "a"),
    "a number for a choice": lambda ort: setattr(ort.SessionOptions(), "graph_optimization_level", 99),
    "a number for a flag": lambda ort: setattr(ort.SessionOptions(), "enable_profiling", 0.0),
    "nothing for a flag": lambda ort: setattr(ort.RunOptions(), "terminate", None),
    "entry that is not there": lambda ort: ort.SessionOptions().get_session_config_entry("foo"),
    "entry of no name": lambda ort: ort.SessionOptions().add_session_config_entry("", "1"),
    "entry of a long name": lambda ort: ort.RunOptions().add_run_config_entry("a" * 2000, "1"),
}


def raised(call, ort):
    try:
        call(ort)
    except Exception as error:
        return type(error).__name__
    return "nothing"


class Kinds(unittest.TestCase):
    def check(self, cases):
        for name, call in cases.items():
            with self.subTest(name):
                self.assertEqual(raised(call, ours), raised(call, real))

    def test_loading(self):
        self.check(LOADS)

    def test_calls(self):
        self.check(CALLS)

    def test_options(self):
        self.check(OPTIONS)

    def test_values(self):
        self.check(VALUES)


class Arguments(unittest.TestCase):
    def test_a_name_that_is_nearly_tenons_is_refused(self):
        for name, meant in (("shape", "shapes"), ("precison", "precision"), ("optlevel", "opt_level"), ("Target", "target"), ("n_jobs", "jobs")):
            with self.assertRaisesRegex(TypeError, f"'{name}'; is '{meant}' meant"):
                ours.InferenceSession(RELU, options(ours), **{name: None})

    def test_others_are_onnx_runtimes(self):
        for given in ({"enable_fallback": True, "disabled_optimizers": ["a"]}, {"read_config_from_model": 1}, {"session_options": None, "nobodys": 1}):
            for ort in (ours, real):
                (y,) = ort.InferenceSession(RELU, options(ort), providers=["CPUExecutionProvider"], **given).run(None, {"x": X})
                np.testing.assert_array_equal(y, X)


class Attributes(unittest.TestCase):
    def test_names_and_defaults(self):
        for kind in ("SessionOptions", "RunOptions"):
            theirs, mine = getattr(real, kind)(), getattr(ours, kind)()
            names = [n for n in dir(theirs) if not n.startswith("_")]
            self.assertEqual([n for n in names if not hasattr(mine, n)], [])
            for name in names:
                value = getattr(theirs, name)
                if not callable(value):
                    own = getattr(mine, name)
                    self.assertEqual(getattr(own, "name", own), getattr(value, "name", value), name)

    def test_dims_by_denotation(self):
        def denote(made):
            for dim, text in zip(made.graph.input[0].type.tensor_type.shape.dim, ("DATA_BATCH", "DATA_CHANNEL", "DATA_FEATURE")):
                dim.denotation = text
        data = model("y = Relu(x)", "float[N, C, 3] x", "float[N, C, 3] y", change=denote)
        shapes = []
        for ort in (real, ours):
            made = options(ort)
            made.add_free_dimension_override_by_denotation("data_batch", 2)
            made.add_free_dimension_override_by_denotation("DATA_CHANNEL", 5)
            made.add_free_dimension_override_by_denotation("DATA_FEATURE", 3)
            s = ort.InferenceSession(data, made, providers=["CPUExecutionProvider"])
            shapes.append(s.get_inputs()[0].shape)
            self.assertEqual(s.run(None, {"x": np.ones((2, 5, 3), np.float32)})[0].shape, (2, 5, 3))
            with self.assertRaises(ort.capi.onnxruntime_pybind11_state.InvalidArgument):
                s.run(None, {"x": np.ones((1, 5, 3), np.float32)})
        self.assertEqual(shapes[0], shapes[1])

    def test_loading_can_be_canceled(self):
        made = options(ours)
        made.set_load_cancellation_flag(True)
        with self.assertRaises(ours.capi.onnxruntime_pybind11_state.ModelLoadCanceled):
            ours.InferenceSession(RELU, made)


if __name__ == "__main__":
    real.set_default_logger_severity(4)
    sys.exit(unittest.main())
