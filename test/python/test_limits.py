"""Calls with limits: time, memory, and a flag that another thread sets; each ends with an error, and the next call works."""

import pathlib
import tempfile
import threading
import time
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

import tenon
import tenon.onnxruntime as ort

LONG = np.array(10**15)
X = np.zeros((64, 64), np.float32)


def long_loop():
    """x / 2 + 1, n times."""
    value = helper.make_tensor_value_info
    body = [
        helper.make_node("Identity", ["go"], ["go_on"]),
        helper.make_node("MatMul", ["x_in", "w"], ["moved"]),
        helper.make_node("Div", ["moved", "two"], ["half"]),
        helper.make_node("Add", ["half", "one"], ["x_out"]),
    ]
    inputs = [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("x_in", TensorProto.FLOAT, X.shape)]
    results = [value("go_on", TensorProto.BOOL, []), value("x_out", TensorProto.FLOAT, X.shape)]
    numbers = {"w": np.eye(64, dtype=np.float32), "two": np.float32(2), "one": np.float32(1)}
    weights = [onnx.numpy_helper.from_array(np.array(v), name) for name, v in numbers.items()]
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], body=helper.make_graph(body, "body", inputs, results))
    arguments = [value("n", TensorProto.INT64, []), value("x", TensorProto.FLOAT, X.shape)]
    graph = helper.make_graph([loop], "g", arguments, [value("y", TensorProto.FLOAT, X.shape)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def growing_sequence():
    """x · x, n times, in a sequence that becomes one tensor: memory is asked for in every iteration."""
    value = helper.make_tensor_value_info
    inputs = [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, [])]
    sequence = [helper.make_tensor_sequence_value_info(n, TensorProto.FLOAT, None) for n in ("s", "s_out")]
    body = [
        helper.make_node("Identity", ["go"], ["go_on"]),
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("SequenceInsert", ["s", "square"], ["s_out"]),
    ]
    step = helper.make_graph(body, "body", [*inputs, sequence[0]], [value("go_on", TensorProto.BOOL, []), sequence[1]])
    nodes = [
        helper.make_node("SequenceEmpty", [], ["none"]),
        helper.make_node("Loop", ["n", "", "none"], ["all"], body=step),
        helper.make_node("ConcatFromSequence", ["all"], ["y"], axis=0),
    ]
    arguments = [value("n", TensorProto.INT64, []), value("x", TensorProto.FLOAT, X.shape)]
    graph = helper.make_graph(nodes, "g", arguments, [value("y", TensorProto.FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def doubling_strings(times):
    """A string that is joined to itself, times over: 2^(times + 1) bytes."""
    nodes = [helper.make_node("StringConcat", [f"s{i}", f"s{i}"], [f"s{i + 1}"]) for i in range(times)]
    result = helper.make_tensor_value_info(f"s{times}", TensorProto.STRING, [1])
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("s0", TensorProto.STRING, [1])], [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def loop_without_kernels():
    """A sequence that gets a tensor and loses it, n times: no iteration runs a kernel."""
    value = helper.make_tensor_value_info
    inputs = [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, [])]
    sequence = [helper.make_tensor_sequence_value_info(n, TensorProto.FLOAT, None) for n in ("s", "s_out")]
    body = [helper.make_node("SequenceInsert", ["s", "x"], ["longer"]), helper.make_node("SequenceErase", ["longer"], ["s_out"])]
    step = helper.make_graph(body, "body", [*inputs, sequence[0]], [value("go", TensorProto.BOOL, []), sequence[1]])
    nodes = [
        helper.make_node("SequenceConstruct", ["x"], ["one"]),
        helper.make_node("Loop", ["n", "", "one"], ["all"], body=step),
        helper.make_node("SequenceLength", ["all"], ["y"]),
    ]
    arguments = [value("n", TensorProto.INT64, []), value("x", TensorProto.FLOAT, X.shape)]
    graph = helper.make_graph(nodes, "g", arguments, [value("y", TensorProto.INT64, [])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.model = str(pathlib.Path(cls.folder.name) / "loop.onnx")
        onnx.save(long_loop(), cls.model)
        library = str(pathlib.Path(cls.folder.name) / "loop.so")
        tenon.compile(cls.model, library)
        cls.main = tenon.load(library).entry_func

    def works(self, f):
        np.testing.assert_allclose(f(np.array(3), X).numpy(), np.full_like(X, 1.75))

    def test_time(self):
        for threads in (1, 2, 4):
            with self.subTest(threads):
                begin = time.monotonic()
                with self.assertRaisesRegex(RuntimeError, "longer than it may"):
                    self.main.limited(threads, max_seconds=0.2)(LONG, X)
                self.assertLess(0.1, time.monotonic() - begin)
                self.works(self.main.limited(threads, max_seconds=1000))
                self.works(self.main)

    def test_time_inside_of_a_kernel(self):
        """One product that takes long ends between parts of its loop."""
        model, library = (str(pathlib.Path(self.folder.name) / f"product.{kind}") for kind in ("onnx", "so"))
        value, size = helper.make_tensor_value_info, 3072
        arguments = [value(name, TensorProto.FLOAT, [size, size]) for name in "ab"]
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["a", "b"], ["c"])], "g", arguments, [value("c", TensorProto.FLOAT, [size, size])]
        )
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), model)
        tenon.compile(model, library)
        main = tenon.load(library).entry_func
        a = np.ones((size, size), np.float32)
        for threads in (1, 2):
            with self.subTest(threads):
                whole, cut = [], []
                for _ in range(3):
                    begin = time.monotonic()
                    main.limited(threads)(a, a)
                    whole.append(time.monotonic() - begin)
                    begin = time.monotonic()
                    with self.assertRaisesRegex(RuntimeError, "longer than it may"):
                        main.limited(threads, max_seconds=min(whole) / 20)(a, a)
                    cut.append(time.monotonic() - begin)
                self.assertLess(min(cut), 0.6 * min(whole))
        np.testing.assert_array_equal(main.limited(1, max_seconds=1000)(a, a).numpy(), np.full_like(a, size))

    def test_flag(self):
        for threads in (1, 2, 4):
            with self.subTest(threads):
                flag = tenon.StopFlag()
                limited = self.main.limited(threads, stop=flag)
                threading.Timer(0.2, flag.set).start()
                with self.assertRaisesRegex(RuntimeError, "the call was stopped"):
                    limited(LONG, X)
                with self.assertRaisesRegex(RuntimeError, "the call was stopped"):  # nor does a new one begin
                    limited(np.array(1), X)
                flag.clear()
                self.works(limited)

    def test_memory(self):
        for most in (100, X.nbytes):  # the output alone takes the second
            with self.assertRaisesRegex(MemoryError, "more memory than the call may have"):
                self.main.limited(max_bytes=most)(np.array(3), X)
        self.works(self.main.limited(max_bytes=1 << 30))
        self.works(self.main)

    def test_memory_in_a_loop(self):
        """Wherever in the loop memory is refused, the call fails, keeps nothing, and the next one works."""
        model, library = (str(pathlib.Path(self.folder.name) / f"sequence.{kind}") for kind in ("onnx", "so"))
        onnx.save(growing_sequence(), model)
        tenon.compile(model, library)
        main = tenon.load(library).entry_func
        n, x = np.array(10), np.full_like(X, 3)
        outcomes, after = set(), []
        for _ in range(3):
            for most in range(1, 40 * X.nbytes, X.nbytes // 8):
                try:
                    np.testing.assert_array_equal(main.limited(max_bytes=most)(n, x).numpy(), np.full((640, 64), 9))
                    outcomes.add("works")
                except MemoryError:
                    outcomes.add("fails")
            after.append(resident_bytes())
        self.assertEqual(outcomes, {"works", "fails"})
        self.assertLess(after[2] - after[1], 20 * X.nbytes)
        np.testing.assert_array_equal(main(n, x).numpy(), np.full((640, 64), 9))

    def compiled(self, name, model):
        path, library = (str(pathlib.Path(self.folder.name) / f"{name}.{kind}") for kind in ("onnx", "so"))
        onnx.save(model, path)
        tenon.compile(path, library)
        return tenon.load(library).entry_func

    def test_memory_of_strings(self):
        """Strings count as the call's memory: one that doubles forty times ends at the bound, and not with the machine's memory."""
        text = np.array(["ab"], object)
        main = self.compiled("strings_40", doubling_strings(40))
        with self.assertRaises(MemoryError):
            main.limited(max_bytes=1 << 24)(text)
        short = self.compiled("strings_4", doubling_strings(4))
        self.assertEqual(list(short.limited(max_bytes=1 << 24)(text)), ["ab" * 16])

    def test_time_without_kernels(self):
        main = self.compiled("no_kernels", loop_without_kernels())
        with self.assertRaisesRegex(RuntimeError, "longer than it may"):
            main.limited(max_seconds=0.2)(LONG, X)
        self.assertEqual(int(main(np.array(3), X).numpy()), 1)

    def test_terminate(self):
        session = ort.InferenceSession(self.model)
        options = ort.RunOptions()

        def runs():
            np.testing.assert_allclose(session.run(None, {"n": np.array(3), "x": X}, options)[0], np.full_like(X, 1.75))

        runs()
        threading.Timer(0.3, setattr, (options, "terminate", True)).start()
        with self.assertRaisesRegex(Exception, "terminate flag"):
            session.run(None, {"n": LONG, "x": X}, options)
        options.terminate = False
        runs()


if __name__ == "__main__":
    unittest.main()
