"""Options of sessions and of runs beside ONNX Runtime."""

import os
import tempfile
import time
import unittest

from beside_onnxruntime import X, Y, SameAsOnnxRuntime, case, model, ours, real, run, session, with_constant  # noqa: F401; first, as it names the cache

import numpy as np
from onnx import TensorProto


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
def a_library_of_operators_that_is_not_there(ort):
    ort.SessionOptions().register_custom_ops_library("/nowhere/operators.so")


@case
def what_was_optimised_in_place_of_the_model(ort):
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.optimized_model_filepath = os.path.join(folder, "fast.onnx")
        x = np.ones((2, 3), np.float32)
        first = session(ort, options=options).run(None, {"x": x, "y": x})
        return first, ort.InferenceSession(options.optimized_model_filepath).run(None, {"x": x, "y": x})


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


class Alone(unittest.TestCase):
    """What ONNX Runtime does not have, or has otherwise."""

    def test_libraries_of_operators_say_what_to_do(self):
        with self.assertRaisesRegex(ours.capi.onnxruntime_pybind11_state.Fail, "'/some/operators.so' are code for .*tenon.register_operator"):
            ours.SessionOptions().register_custom_ops_library("/some/operators.so")
        with self.assertRaisesRegex(ours.capi.onnxruntime_pybind11_state.Fail, "add_external_initializers"):
            ours.RunOptions().add_active_adapter(None)

    def test_the_file_of_what_was_optimised(self):
        """Is a library; its folder has to be there."""
        options = ours.SessionOptions()
        options.optimized_model_filepath = "/nowhere/fast.onnx"
        with self.assertRaisesRegex(ours.capi.onnxruntime_pybind11_state.Fail, "cannot be written to '/nowhere/fast.onnx'"):
            session(ours, options=options)
        with tempfile.TemporaryDirectory() as folder:
            options.optimized_model_filepath = os.path.join(folder, "fast.onnx")
            session(ours, options=options)
            with open(options.optimized_model_filepath, "rb") as file:
                self.assertEqual(file.read(4), b"\x7fELF")

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

    def test_initializers_of_another_type(self):
        options = ours.SessionOptions()
        options.add_initializer("w", ours.OrtValue.ortvalue_from_numpy(np.ones(2, np.float32)))
        with self.assertRaisesRegex(Exception, r"shape \[3\] for the initializer 'w', but got data type 1 and shape \[2\]"):
            session(ours, with_constant().SerializeToString(), options)


if __name__ == "__main__":
    unittest.main()
