#!/usr/bin/env python3
"""Networks with values that are no tensors of numbers: strings, sequences, optional values, maps; models of ai.onnx.ml.

Usage: onnx_values.py TENON      needs: pip install onnx onnxruntime numpy apache-tvm-ffi
What a case expects is ONNX Runtime's answer, or what Python's own strings and patterns say.
"""
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance" / "onnx"))
from values import differ, from_call, own, to_call  # noqa: E402

TENON = pathlib.Path(sys.argv.pop(1)).resolve()
STRING, FLOAT, INT64, BOOL = TensorProto.STRING, TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node, tensor = helper.make_node, helper.make_tensor_value_info


def sequence(name, elem_type, shape):
    return helper.make_tensor_sequence_value_info(name, elem_type, shape)


def texts(*values):
    return own(np.array(values, object))


class Values(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.count = 0

    def compile(self, nodes, inputs, outputs, initializers=(), opset=21):
        graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
        self.model = helper.make_model(graph, ir_version=10,
                                       opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)])
        return self.compile_bytes(self.model.SerializeToString())

    def compile_bytes(self, data):
        import tvm_ffi

        Values.count += 1
        path = pathlib.Path(self.folder.name) / f"{self.count}.onnx"
        path.write_bytes(data)
        run = subprocess.run([TENON, "compile", path, "-o", path.with_suffix(".so")], capture_output=True, text=True)
        self.said = run.stderr
        if run.returncode != 0:
            self.assertEqual(run.returncode, 1, run.stderr)
            return None
        return tvm_ffi.load_module(str(path.with_suffix(".so"))).main

    def check(self, main, inputs, want):
        self.assertIsNotNone(main, self.said)
        got = main(*(to_call(x) for x in inputs))
        got = list(got) if len(want) > 1 else [got]
        for g, w in zip(got, want):
            def compare(a, b):
                if a.dtype != b.dtype or a.shape != b.shape:
                    return f"{a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
                return None if np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True) else f"{a}, expected {b}"
            self.assertIsNone(differ(from_call(g, w), w, compare))

    def reference(self, feeds):
        session = onnxruntime.InferenceSession(self.model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, feeds)

    # ---- Sequences ----

    def test_a_branch_in_a_map_gives_other_sizes(self):
        info = [tensor("o", FLOAT, None)]
        twice = helper.make_graph([node("Concat", ["e", "e"], ["o"], axis=0)], "twice", [], info)
        once = helper.make_graph([node("Neg", ["e"], ["o"])], "once", [], info)
        body = helper.make_graph([node("If", ["p"], ["r"], then_branch=twice, else_branch=once)], "body", [tensor("e", FLOAT, ["n"])], [tensor("r", FLOAT, ["m"])])
        main = self.compile([node("SequenceMap", ["s"], ["y"], body=body)], [sequence("s", FLOAT, ["n"]), tensor("p", BOOL, [])], [sequence("y", FLOAT, None)])
        s = [np.float32([1, 2, 3]), np.float32([4]), np.float32([])]
        self.check(main, [s, np.array(True)], [[np.concatenate([x, x]) for x in s]])
        self.check(main, [s, np.array(False)], [[-x for x in s]])

    def test_from_a_sequence_to_kernels_and_back(self):
        main = self.compile([node("SequenceConstruct", ["a", "b"], ["s"]), node("SequenceAt", ["s", "i"], ["e"]), node("Mul", ["e", "a"], ["y"]),
                             node("SequenceInsert", ["s", "y"], ["t"]), node("SequenceLength", ["t"], ["n"])],
                            [tensor("a", FLOAT, ["k"]), tensor("b", FLOAT, ["k"]), tensor("i", INT64, [])],
                            [tensor("y", FLOAT, None), sequence("t", FLOAT, None), tensor("n", INT64, [])])
        for size in (1, 7, 8, 9, 31):
            a, b = np.arange(size, dtype=np.float32), np.full(size, 3, np.float32)
            for i, e in ((0, a), (1, b), (-1, b), (-2, a)):
                self.check(main, [a, b, np.array(i)], [e * a, [a, b, e * a], np.array(3)])
        for i in (2, -3):  # an error of the call, and the next one works
            with self.assertRaisesRegex(IndexError, "is not in a sequence of 2"):
                main(*(to_call(x) for x in (a, b, np.array(i))))
        self.check(main, [a, b, np.array(0)], [a * a, [a, b, a * a], np.array(3)])
        with self.assertRaisesRegex(TypeError, "Expected 3 arguments"):
            main(to_call(a))

    def test_what_is_wrong_with_an_argument(self):
        """Parts rely on what is checked where values enter: each of these fails, with the argument's name, and the next call works."""
        main = self.compile([node("Relu", ["a"], ["r"]), node("SequenceConstruct", ["r", "b"], ["s"]), node("SequenceAt", ["s", "i"], ["e"]),
                             node("Mul", ["e", "r"], ["y"])],
                            [tensor("a", FLOAT, ["k", 4]), tensor("b", FLOAT, ["k", 4]), tensor("i", INT64, [])], [tensor("y", FLOAT, None)])
        a, b, i = np.arange(12, dtype=np.float32).reshape(3, 4), np.full((3, 4), 3, np.float32), np.array(0)
        bytes_of = np.zeros(a.nbytes + 64, np.uint8)
        start = -bytes_of.ctypes.data % 64 + 2
        crooked = bytes_of[start:start + a.nbytes].view(np.float32).reshape(a.shape)
        crooked[:] = a
        huge = np.zeros((0, 1), np.float32)
        huge = np.lib.stride_tricks.as_strided(huge, (1 << 47, 0), (0, 4))
        for position, given, kind, said in (
                (0, a.astype(np.float64), TypeError, "argument `a`: expected dtype=float32 but got dtype=float64"),
                (1, a.view(np.int32), TypeError, "argument `b`: expected dtype=float32 but got dtype=int32"),
                (0, a[0], ValueError, "Parameter `a` expects ndim=2 but got ndim=1"),
                (0, a[:, :3].copy(), ValueError, r"Parameter `a` expects shape\[1\]=4 but got shape\[1\]=3"),
                (0, np.asfortranarray(a), ValueError, r"argument `a`: expected compact strides, strides\[1\]=1 but got 3"),
                (1, np.repeat(b, 2, 1)[:, ::2], ValueError, r"argument `b`: expected compact strides, strides\[1\]=1 but got 2"),
                (0, crooked, ValueError, "argument `a`: expected data aligned to 4 bytes but its address modulo 4 is 2"),
                (1, crooked, ValueError, "argument `b`: expected data aligned"),
                (0, huge, ValueError, "argument `a`: a tensor has a negative dim, too many dims or too many elements")):
            args = [a, b, i]
            args[position] = given
            with self.assertRaisesRegex(kind, said):
                main(*(to_call(x) for x in args))
            self.check(main, [a, b, i], [a * a])

    def test_branches_of_sizes_that_the_model_does_not_tie(self):
        """A graph has no such branches; a network with values of other kinds has them as steps, as one without has."""
        yes = helper.make_graph([node("Add", ["x", "x"], ["p"])], "yes", [], [tensor("p", FLOAT, None)])
        no = helper.make_graph([node("Add", ["x", "z"], ["q"])], "no", [], [tensor("q", FLOAT, None)])
        main = self.compile([node("Optional", ["x"], ["o"]), node("OptionalHasElement", ["o"], ["has"]), node("And", ["has", "c"], ["d"]),
                             node("If", ["d"], ["y"], then_branch=yes, else_branch=no)],
                            [tensor("c", BOOL, []), tensor("x", FLOAT, [1, "s"]), tensor("z", FLOAT, [1, "t"])], [tensor("y", FLOAT, None)])
        for s, t in ((3, 3), (1, 5), (7, 1)):
            x, z = np.arange(s, dtype=np.float32)[None], np.full((1, t), 3, np.float32)
            self.check(main, [np.array(True), x, z], [x + x])
            self.check(main, [np.array(False), x, z], [x + z])

    def test_strings_of_an_image(self):
        main = self.compile([node("GridSample", ["x", "g"], ["y"], mode="nearest", align_corners=1)],
                            [tensor("x", STRING, ["n", "c", "h", "w"]), tensor("g", FLOAT, ["n", "p", "q", 2])], [tensor("y", STRING, ["n", "c", "p", "q"])])
        x = texts(*"abcdef").reshape(1, 1, 2, 3)
        grid = np.array([[[[-1, -1], [1, 1], [0, -1], [1.9, 0]]]], np.float32)
        self.check(main, [x, grid], [texts("a", "f", "b", "").reshape(1, 1, 1, 4)])
        self.assertIsNone(self.compile([node("GridSample", ["x", "g"], ["y"], mode="linear", name="mix")],
                                       [tensor("x", STRING, [1, 1, 2, 3]), tensor("g", FLOAT, [1, 1, 1, 2])], [tensor("y", STRING, None)]))
        self.assertIn("node 'mix' (GridSample)", self.said)

    def test_what_is_taken_out_of_a_sequence(self):
        main = self.compile([node("SequenceConstruct", ["a", "b", "a"], ["s"]), node("SequenceErase", ["s", "i"], ["t"]), node("SequenceErase", ["t"], ["u"])],
                            [tensor("a", FLOAT, ["k"]), tensor("b", FLOAT, ["n"]), tensor("i", INT64, [])], [sequence("t", FLOAT, None), sequence("u", FLOAT, None)])
        a, b = np.arange(5, dtype=np.float32), np.full(2, 3, np.float32)
        for i, left in ((0, [b, a]), (1, [a, a]), (2, [a, b]), (-1, [a, b]), (-3, [b, a])):
            self.check(main, [a, b, np.array(i)], [left, left[:1]])
        with self.assertRaisesRegex(IndexError, "is not in a sequence of 3"):
            main(to_call(a), to_call(b), to_call(np.array(3)))

    def test_a_loop_that_grows_what_it_carries(self):
        body = helper.make_graph(
            [node("Concat", ["x", "x1"], ["x2"], axis=0), node("SequenceInsert", ["s", "x2"], ["s2"]), node("Identity", ["c"], ["c2"]),
             node("ReduceSum", ["x2"], ["sum"], keepdims=0)],
            "body", [tensor("i", INT64, []), tensor("c", BOOL, []), tensor("x", FLOAT, ["r"]), sequence("s", FLOAT, None)],
            [tensor("c2", BOOL, []), tensor("x2", FLOAT, ["r2"]), sequence("s2", FLOAT, None), tensor("sum", FLOAT, [])])
        main = self.compile([node("SequenceEmpty", [], ["s0"], dtype=FLOAT), node("Loop", ["m", "", "x1", "s0"], ["x9", "s9", "sums"], body=body)],
                            [tensor("m", INT64, []), tensor("x1", FLOAT, ["n"])],
                            [tensor("x9", FLOAT, ["k"]), sequence("s9", FLOAT, None), tensor("sums", FLOAT, ["m"])])
        x = np.arange(3, dtype=np.float32)
        for trips in (0, 1, 4):
            steps = [np.tile(x, k + 2) for k in range(trips)]
            self.check(main, [np.array(trips), x], [np.tile(x, trips + 1), steps, np.array([s.sum() for s in steps], np.float32)])

    def test_few_bits_are_bytes_of_a_call(self):
        """The library says so itself: whoever makes its arguments by what it says makes those that it takes."""
        for kind, said in ((TensorProto.UINT4, "uint8"), (TensorProto.INT2, "int8"), (TensorProto.FLOAT4E2M1, "uint8"),
                           (TensorProto.FLOAT8E8M0, "float8_e8m0fnu"), (TensorProto.FLOAT8E5M2, "float8_e5m2")):
            main = self.compile([node("Optional", ["x"], ["o"]), node("OptionalGetElement", ["o"], ["e"]), node("Transpose", ["e"], ["y"])],
                                [tensor("x", kind, [3, 5])], [tensor("y", kind, None)], opset=28)
            library = pathlib.Path(self.folder.name) / f"{self.count}.so"
            told = subprocess.run([TENON, "inspect", library], capture_output=True, text=True, check=True).stdout
            self.assertRegex(told, rf"x +{said} 3 x 5\n")
            self.assertRegex(told, rf"y +{said} ")
            run = subprocess.run([TENON, "run", library, "--fill", "random"], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(f"y: {said} 5x3", run.stdout)
            if not said.startswith("float"):
                x = np.arange(15).reshape(3, 5).astype(said) % 2
                self.check(main, [x], [x.T])

    def test_few_bits_in_branches_and_loops(self):
        """What branches give, loops carry and scans collect is of the type that goes in: casts of it say what it is."""
        for kind, dtype in ((TensorProto.UINT4, np.uint8), (TensorProto.INT2, np.int8)):
            info = [tensor("o", kind, None)]
            same = helper.make_graph([node("Identity", ["x"], ["o"])], "same", [], info)
            turned = helper.make_graph([node("Identity", ["z"], ["o"])], "turned", [], info)
            step = helper.make_graph([node("Identity", ["row"], ["next"]), node("Identity", ["state"], ["seen"])], "step",
                                     [tensor("state", kind, [5]), tensor("row", kind, [5])], [tensor("next", kind, [5]), tensor("seen", kind, [5])])
            turn = helper.make_graph([node("Identity", ["go"], ["on"]), node("Identity", ["z"], ["b"])], "turn",
                                     [tensor("i", INT64, []), tensor("go", BOOL, []), tensor("a", kind, [3, 5])], [tensor("on", BOOL, []), tensor("b", kind, [3, 5])])
            main = self.compile([node("If", ["p"], ["c"], then_branch=same, else_branch=turned), node("Cast", ["c"], ["chosen"], to=TensorProto.INT32),
                                 node("Scan", ["s", "x"], ["l", "r"], body=step, num_scan_inputs=1), node("Cast", ["l"], ["last"], to=TensorProto.INT32),
                                 node("Cast", ["r"], ["rows"], to=TensorProto.INT32),
                                 node("Loop", ["n", "", "x"], ["t"], body=turn), node("Cast", ["t"], ["carried"], to=TensorProto.INT32)],
                                [tensor("p", BOOL, []), tensor("x", kind, [3, 5]), tensor("z", kind, [3, 5]), tensor("s", kind, [5]), tensor("n", INT64, [])],
                                [tensor(name, TensorProto.INT32, None) for name in ("chosen", "last", "rows", "carried")], opset=25)
            x = (np.arange(15) % 2).astype(dtype).reshape(3, 5)
            z, s = 1 - x, x[0] * 0
            for p, n in ((True, 0), (False, 3)):
                want = [x if p else z, x[-1], np.stack([s, x[0], x[1]]), x if n == 0 else z]
                self.check(main, [np.array(p), x, z, s, np.array(n)], [w.astype(np.int32) for w in want])

    def test_shapes_of_unknown_length(self):
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        shape = tensor("s", INT64, ["r"])
        main = self.compile([node("Reshape", ["x", "s"], ["t"]), node("Neg", ["t"], ["y"])],
                            [tensor("x", FLOAT, ["n", 4]), shape], [tensor("y", FLOAT, None)])
        for s in ([12], [-1], [2, 6], [0, -1], [3, 1, 4], [1, 2, 1, 3, 1, 2]):
            sizes = [d or n for d, n in zip(s, [3, 4] + [0] * len(s))]
            self.check(main, [x, np.array(s)], [-x.reshape(sizes)])
        with self.assertRaisesRegex(ValueError, "not possible with s of length 7"):
            main(to_call(x), to_call(np.ones(7, np.int64)))
        with self.assertRaises(ValueError):
            main(to_call(x), to_call(np.array([5, 5])))
        self.check(main, [x, np.array([4, 3])], [-x.reshape(4, 3)])
        # What is computed of it; a result that is read at all lengths, and one behind it.
        main = self.compile([node("Concat", ["s", "two"], ["s2"], axis=0), node("Expand", ["x", "s2"], ["t"]), node("ReduceSum", ["t"], ["y"], keepdims=0),
                             node("Mul", ["y", "y"], ["z"])],
                            [tensor("x", FLOAT, ["n", 1]), shape], [tensor("z", FLOAT, None), tensor("t", FLOAT, None)],
                            [helper.make_tensor("two", INT64, [1], [2])])
        column = x[:, :1].copy()
        for s in ([], [1], [3], [5, 1], [2, 5, 3]):
            t = np.broadcast_to(column, np.broadcast_shapes((3, 1), (*s, 2)))
            self.check(main, [column, np.array(s, np.int64)], [t.sum() ** 2, t])
        main = self.compile([node("ConstantOfShape", ["s"], ["y"], value=helper.make_tensor("v", FLOAT, [1], [2.5]))], [shape], [tensor("y", FLOAT, None)])
        for s in ([], [0], [7], [2, 0], [2, 3, 1]):
            self.check(main, [np.array(s, np.int64)], [np.full(s, 2.5, np.float32)])

    def test_tensors_without_elements(self):
        main = self.compile([node("SplitToSequence", ["x", "sizes"], ["s"], axis=0), node("SequenceAt", ["s", "i"], ["e"]), node("Add", ["e", "e"], ["f"]),
                             node("ConcatFromSequence", ["s"], ["y"], axis=0)],
                            [tensor("x", FLOAT, ["n", 2]), tensor("sizes", INT64, ["k"]), tensor("i", INT64, [])],
                            [tensor("f", FLOAT, None), tensor("y", FLOAT, None)])
        x = np.arange(10, dtype=np.float32).reshape(5, 2)
        for i in range(3):
            self.check(main, [x, np.array([2, 0, 3]), np.array(i)], [2 * np.split(x, [2, 2])[i], x])
        for sizes in ([2, 2], [6], [-1, 6], [5, 2 ** 62, 2 ** 62]):
            with self.assertRaisesRegex(ValueError, "expected sizes that add up to 5"):
                main(*(to_call(v) for v in (x, np.array(sizes), np.array(0))))

    def test_results_are_no_arguments(self):
        main = self.compile([node("Identity", ["s"], ["t"]), node("Optional", ["x"], ["o"]), node("OptionalGetElement", ["o"], ["y"])],
                            [sequence("s", FLOAT, [2]), tensor("x", FLOAT, [2])], [sequence("t", FLOAT, None), tensor("y", FLOAT, [2])])
        a, x = np.ones(2, np.float32), np.zeros(2, np.float32)
        t, y = main(to_call([a, a]), to_call(x))
        a[:], x[:] = 5, 5
        self.assertEqual([np.from_dlpack(t[0]).tolist(), np.from_dlpack(y).tolist()], [[1, 1], [0, 0]])

    # ---- Strings ----

    def test_strings_move_and_compare(self):
        values = helper.make_tensor("words", STRING, [3], [b"", "ß".encode(), b"other words, longer ones"])
        main = self.compile([node("Gather", ["words", "i"], ["g"]), node("Concat", ["g", "x"], ["c"], axis=0), node("Equal", ["c", "word"], ["e"]),
                             node("StringConcat", ["c", "word"], ["y"])],
                            [tensor("i", INT64, ["k"]), tensor("x", STRING, ["n"]), tensor("word", STRING, [])],
                            [tensor("y", STRING, None), tensor("e", BOOL, None)], [values])
        x = texts("a", "ß", "with\0NUL", "")
        for word in ("ß", "", "with\0NUL", "other words, longer ones"):
            c = texts("other words, longer ones", "", *x)
            self.check(main, [np.array([2, 0]), x, texts(word).reshape(())], [texts(*(s + word for s in c)), np.array([s == word for s in c])])

    def test_places_without_a_string_hold_the_empty_one(self):
        x = texts("a", "", "ccc", "ß", "a", "zz").reshape(2, 3)
        n, k = [tensor("x", STRING, ["n", "k"])], [tensor("y", STRING, None)]
        self.check(self.compile([node("Pad", ["x", "p"], ["y"])], n, k, [helper.make_tensor("p", INT64, [4], [1, 0, 0, 2])]),
                   [x], [own(np.pad(x, ((1, 0), (0, 2)), constant_values=""))])
        self.check(self.compile([node("Pad", ["x", "p", "v"], ["y"])], [*n, tensor("v", STRING, [])], k, [helper.make_tensor("p", INT64, [4], [1, -1, 0, 2])]),
                   [x, texts("v").reshape(())], [own(np.pad(x[:, 1:], ((1, 0), (0, 2)), constant_values="v"))])
        self.check(self.compile([node("Trilu", ["x"], ["y"], upper=0)], n, k), [x], [texts("a", "", "", "ß", "a", "").reshape(2, 3)])
        self.check(self.compile([node("CenterCropPad", ["x", "s"], ["y"])], n, k, [helper.make_tensor("s", INT64, [2], [4, 2])]),
                   [x], [own(np.pad(x[:, :2], ((1, 1), (0, 0)), constant_values=""))])
        self.check(self.compile([node("NonZero", ["x"], ["y"])], n, [tensor("y", INT64, None)]), [x], [np.array(np.nonzero(x != ""))])
        blank = texts(*[""] * 4).reshape(2, 2)
        self.check(self.compile([node("NonZero", ["x"], ["y"])], n, [tensor("y", INT64, None)]), [blank], [np.zeros((2, 0), np.int64)])

    def test_strings_are_put_among_others(self):
        x = texts("a", "", "ccc", "ß", "a", "zz").reshape(2, 3)
        new = texts("u", "", "w").reshape(1, 3)
        inputs = [tensor("x", STRING, [2, 3]), tensor("i", INT64, None), tensor("u", STRING, [1, 3])]
        for op, opset, i, options in (("ScatterElements", 18, np.array([[1, 0, 1]]), {"axis": 0}), ("Scatter", 10, np.array([[1, 0, 1]]), {"axis": 0}),
                                      ("ScatterND", 18, np.array([[1]]), {})):
            inputs[1] = tensor("i", INT64, i.shape)
            main = self.compile([node(op, ["x", "i", "u"], ["y"], **options)], inputs, [tensor("y", STRING, [2, 3])], opset=opset)
            self.check(main, [x, i, new], [own(self.reference({"x": x, "i": i, "u": new})[0])])
        feeds = {"i": np.array([0, 2]), "d": np.array(3), "v": texts("", "on")}
        main = self.compile([node("OneHot", ["i", "d", "v"], ["y"])], [tensor("i", INT64, [2]), tensor("d", INT64, []), tensor("v", STRING, [2])],
                            [tensor("y", STRING, None)])
        self.check(main, list(feeds.values()), [own(self.reference(feeds)[0])])

    def test_cast_like(self):
        one, of = np.array([1], np.float32), [tensor("t", STRING, [2]), tensor("f", FLOAT, [1])]
        main = self.compile([node("CastLike", ["t", "f"], ["y"]), node("CastLike", ["y", "t"], ["z"]), node("CastLike", ["t", "z"], ["same"])],
                            of, [tensor("y", FLOAT, [2]), tensor("z", STRING, [2]), tensor("same", STRING, [2])])
        self.check(main, [texts("1.5", "-2"), one], [np.array([1.5, -2], np.float32), texts("1.5", "-2"), texts("1.5", "-2")])

    def test_splitting_is_pythons(self):
        for delimiter in (None, ",", "--"):
            for most in (None, 0, 1, 2):
                attributes = {k: v for k, v in (("delimiter", delimiter), ("maxsplit", most)) if v is not None}
                main = self.compile([node("StringSplit", ["x"], ["y", "n"], **attributes)], [tensor("x", STRING, ["k"])],
                                    [tensor("y", STRING, None), tensor("n", INT64, None)])
                x = texts("a,b", " a  b c ", "", "a--b--", ",", "one", "\ttab\nline  ")
                want = [s.split(delimiter, -1 if most is None else most) for s in x]
                wide = max(map(len, want))
                self.check(main, [x], [texts(*(w + [""] * (wide - len(w)) for w in want)).reshape(len(x), wide), np.array([len(w) for w in want])])

    def test_patterns_are_those_of_re(self):
        x = texts("", "a", "aaa", "ab", "abab", "a.b", "xyz-123", "foo@bar.com", "ÄÖ", "line\nline", "A1_", "  ", "aXb")
        for pattern in ("", "a*", "(ab)+", "a|ab", "[^a-c]+", "a\\.b", "\\w+-\\d{3}", "[\\w.]+@\\w+\\.(com|org)", "..", ".+", "(?s).+", "(?i)a[A-Z]?b",
                        "^a$", "(a?){3}a{0,3}", "a{2,}", "\\b\\w+\\b", "[[:alpha:]]+[0-9]_", "\\s*", "(?:a|b)*?", "\\x41.*"):
            main = self.compile([node("RegexFullMatch", ["x"], ["y"], pattern=pattern)], [tensor("x", STRING, ["k"])], [tensor("y", BOOL, ["k"])])
            of_re = pattern.replace("[:alpha:]", "a-zA-Z")
            self.check(main, [x], [np.array([re.fullmatch(of_re, s, re.ASCII) is not None for s in x])])

    def test_patterns_take_linear_time(self):
        main = self.compile([node("RegexFullMatch", ["x"], ["y"], pattern="(a*)*(a|aa)+b")], [tensor("x", STRING, [1])], [tensor("y", BOOL, [1])])
        self.check(main, [texts("a" * 200_000)], [np.array([False])])
        self.check(main, [texts("a" * 200_000 + "b")], [np.array([True])])

    def test_bad_patterns(self):
        for pattern in ("(", "a)", "[a", "*", "(?=a)", "\\1", "a{2000}", "((a{900}){900}){900}", "\\"):
            self.assertIsNone(self.compile([node("RegexFullMatch", ["x"], ["y"], pattern=pattern)], [tensor("x", STRING, [1])], [tensor("y", BOOL, [1])]))
            self.assertIn("the pattern has", self.said)

    def test_numbers_and_strings(self):
        main = self.compile([node("Cast", ["x"], ["t"], to=STRING), node("Cast", ["t"], ["i"], to=INT64), node("Cast", ["s"], ["f"], to=FLOAT)],
                            [tensor("x", INT64, ["n"]), tensor("s", STRING, ["m"])], [tensor("t", STRING, None), tensor("i", INT64, None), tensor("f", FLOAT, None)])
        x = np.array([0, -5, 2 ** 63 - 1, -2 ** 63])
        s = texts("1", "-2.5e3", "NaN", "INF", "-INF", ".5")
        self.check(main, [x, s], [texts(*map(str, x)), x, np.array([float(v) for v in s], np.float32)])
        with self.assertRaisesRegex(ValueError, "string 'one' is no number"):
            main(to_call(x), to_call(texts("one")))

    def test_bad_strings(self):
        import tvm_ffi

        main = self.compile([node("StringConcat", ["x", "x"], ["y"])], [tensor("x", STRING, [2])], [tensor("y", STRING, [2])])
        with self.assertRaisesRegex(TypeError, "expected a tensor of strings"):
            main(to_call(np.zeros(2, np.float32)))
        with self.assertRaisesRegex(ValueError, "as many strings as the shape says"):
            main(tvm_ffi.Array([tvm_ffi.Array([2]), tvm_ffi.Array(["a"])]))
        self.check(main, [texts("a", "b")], [texts("aa", "bb")])
        bad = helper.make_tensor("w", STRING, [1], [b"\xff\xfe"])
        self.assertIsNone(self.compile([node("StringConcat", ["x", "w"], ["y"])], [tensor("x", STRING, [1])], [tensor("y", STRING, [1])], [bad]))
        self.assertIn("expected UTF-8", self.said)

    # ---- Models of ai.onnx.ml ----

    def test_a_pipeline_of_strings_to_maps(self):
        ml = {"domain": "ai.onnx.ml"}
        main = self.compile(
            [node("LabelEncoder", ["color"], ["code"], keys_strings=["red", "green", "blue"], values_floats=[1.0, 2.0, 3.0], default_float=-1.0, **ml),
             node("OneHotEncoder", ["color"], ["hot"], cats_strings=["red", "blue"], **ml), node("Squeeze", ["hot", "one"], ["hot2"]),
             node("Imputer", ["x"], ["full"], imputed_value_floats=[0.5, 1.5], replaced_value_float=float("nan"), **ml),
             node("Scaler", ["full"], ["scaled"], offset=[0.1, 0.2], scale=[2.0, 3.0], **ml),
             node("Concat", ["scaled", "code", "hot2"], ["features"], axis=1),
             node("LinearClassifier", ["features"], ["label", "scores"], coefficients=[0.1 * (k - 7) for k in range(15)], intercepts=[0.0, 0.1, -0.1],
                  classlabels_strings=["low", "middle", "high"], post_transform="SOFTMAX", **ml),
             node("ZipMap", ["scores"], ["maps"], classlabels_strings=["low", "middle", "high"], **ml)],
            [tensor("color", STRING, ["n", 1]), tensor("x", FLOAT, ["n", 2])], [tensor("label", STRING, ["n"]), tensor("scores", FLOAT, ["n", 3])],
            [helper.make_tensor("one", INT64, [1], [1])])
        color = texts("red", "blue", "green", "unknown").reshape(4, 1)
        x = np.array([[1, 2], [np.nan, 4], [5, np.nan], [-3, 0]], np.float32)
        label, scores = self.reference({"color": color, "x": x})
        self.check(main, [color, x], [own(label), scores])
        maps = helper.make_value_info("maps", helper.make_sequence_type_proto(helper.make_map_type_proto(STRING, helper.make_tensor_type_proto(FLOAT, None))))
        self.model.graph.output.append(maps)
        main = self.compile_bytes(self.model.SerializeToString())
        self.assertIsNotNone(main, self.said)
        got = main(to_call(color), to_call(x))[2]
        got = [dict(zip([str(s) for s in m[0][1]], np.from_dlpack(m[1]).tolist())) for m in got]
        want = self.reference({"color": color, "x": x})[2]
        for g, w in zip(got, want, strict=True):
            self.assertEqual(g.keys(), w.keys())
            np.testing.assert_allclose([g[k] for k in w], list(w.values()), rtol=1e-5)

    def trees(self, **more):
        return {"nodes_treeids": [0, 0, 0, 1, 1, 1], "nodes_nodeids": [0, 1, 2, 0, 1, 2], "nodes_featureids": [0, 0, 0, 1, 0, 0],
                "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.5, 0.0, 0.0, -1.0, 0.0, 0.0],
                "nodes_truenodeids": [1, 0, 0, 1, 0, 0], "nodes_falsenodeids": [2, 0, 0, 2, 0, 0], "domain": "ai.onnx.ml", **more}

    def test_trees(self):
        x = np.array([[0, 0], [0.5, -1], [1, -2], [np.nan, 3]], np.float32)
        every = {"target_treeids": [0, 0, 0, 0, 1, 1, 1, 1], "target_nodeids": [1, 1, 2, 2] * 2, "target_ids": [0, 1] * 4,
                 "target_weights": [1.0, 2.0, 3.0, 4.0, -5.0, 6.0, 7.0, 8.5]}
        weights = {"target_treeids": [0, 0, 1, 1], "target_nodeids": [1, 2, 1, 2]}
        parts = weights | {"target_ids": [0, 1, 1, 1], "target_weights": [-1.0, -2.0, -0.5, 1.5]}  # leaves without a part in a target
        for how, given in itertools.product(("SUM", "AVERAGE", "MIN", "MAX"), (every, parts)):
            main = self.compile([node("TreeEnsembleRegressor", ["x"], ["y"], n_targets=2, aggregate_function=how,
                                      **({"base_values": [0.25, 0.5]} if given is every else {}), **self.trees(**given))],
                                [tensor("x", FLOAT, ["n", 2])], [tensor("y", FLOAT, ["n", 2])])
            self.check(main, [x], self.reference({"x": x}))
        one = weights | {"target_ids": [0] * 4, "target_weights": [1.0, -2.0, 0.5, 1.0]}  # one class has all the weights
        for labels, of_classes in ((["no", "yes"], one), (["no", "yes", "never"], every | {"target_weights": [0.05, 0.45, 0.35, 0.15, 0.125, 0.375, 0.3, 0.2]})):
            for post in ("NONE", "LOGISTIC"):
                classes = {k.replace("target", "class"): v for k, v in of_classes.items()}
                main = self.compile([node("TreeEnsembleClassifier", ["x"], ["l", "p"], classlabels_strings=labels, post_transform=post, **self.trees(**classes))],
                                    [tensor("x", FLOAT, ["n", 2])], [tensor("l", STRING, ["n"]), tensor("p", FLOAT, ["n", "c"])])
                label, p = self.reference({"x": x})
                self.check(main, [x], [own(label), p])

    def test_trees_that_are_none(self):
        weights = {"target_treeids": [0], "target_nodeids": [1], "target_ids": [0], "target_weights": [1.0]}
        for change, said in (({"nodes_truenodeids": [0, 0, 0, 1, 0, 0]}, "form a cycle"), ({"nodes_falsenodeids": [9, 0, 0, 2, 0, 0]}, "node ids"),
                             ({"nodes_featureids": [2, 0, 0, 1, 0, 0]}, "features below 2"), ({"target_nodeids": [7]}, "which there is not"),
                             ({"target_ids": [3]}, "results below 1"), ({"nodes_values": [0.5]}, "nodes_values")):
            self.assertIsNone(self.compile([node("TreeEnsembleRegressor", ["x"], ["y"], n_targets=1, **self.trees(**weights) | change)],
                                           [tensor("x", FLOAT, ["n", 2])], [tensor("y", FLOAT, ["n", 1])]))
            self.assertIn(said, self.said)


if __name__ == "__main__":
    unittest.main()
