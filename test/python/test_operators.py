"""Operators of one's own: nodes of a domain that nobody knows, computed by expressions, loop IR, C and Python."""

import os
import subprocess
import tempfile
import unittest
import unittest.mock

import numpy as np
import onnx
from onnx import TensorProto, helper

import tenon
from tenon import te, tir

SCALE = """
func @scale<n, m>(x: f32[n, m], out y: f32[n, m], alpha: f32) kind device {
  for i in 0..n {
    for j in 0..m {
      y[i, j] = x[i, j] * alpha
    }
  }
}
"""


def save(path, op, attributes=None, inputs=("e",), outputs=("s",), shape=("n", 8), types=(TensorProto.FLOAT,), after="Relu"):
    """exp, the node, and something behind it."""
    names = [f"x{i}" for i in range(len(inputs))]
    nodes = [helper.make_node("Exp" if t == TensorProto.FLOAT else "Identity", [x], [e]) for x, e, t in zip(names, inputs, types)]
    nodes.append(helper.make_node(op, list(inputs), list(outputs), domain="my.domain", name="mine", **(attributes or {})))
    ends = [f"y{i}" for i in range(len(outputs))]
    nodes += [helper.make_node(after, [s], [y]) for s, y in zip(outputs, ends)]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(x, t, list(shape)) for x, t in zip(names, types)],
        [helper.make_tensor_value_info(y, TensorProto.FLOAT, None) for y in ends],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("my.domain", 1)])
    model.ir_version = 9
    onnx.save(model, path)


class Operators(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.model = os.path.join(self.folder.name, "model.onnx")
        self.known = []

    def tearDown(self):
        for name in self.known:
            tenon.remove_operator("my.domain", name)

    def register(self, name, define):
        tenon.register_operator("my.domain", name, define)
        self.known.append(name)

    def run_model(self, *inputs, **options):
        library = os.path.join(self.folder.name, "model.so")
        tenon.compile(self.model, library, **options)
        results = tenon.load(library)(*inputs)
        return [np.asarray(r) for r in (results if isinstance(results, (list, tuple)) else [results])]

    def inputs(self, n):
        return np.linspace(-1, 1, n * 8, dtype=np.float32).reshape(n, 8)

    def test_an_expression(self):
        asked = []

        def swish(node):
            (x,) = node.inputs
            asked.append((node.name, node.num_outputs, node.attributes, [str(x.dtype), len(x.shape)]))
            beta = node.attributes.get("beta", 1.0)
            return te.compute(x.shape, lambda *i: x[i] * te.sigmoid(x[i] * beta), name="y")

        self.register("Swish", swish)
        save(self.model, "Swish", {"beta": 0.5, "mode": "up", "sizes": [1, 2]})
        for n in (0, 1, 7, 16, 33):
            x = self.inputs(n)
            (y,) = self.run_model(x, shapes={"x0": ["n[0..64]", 8]})
            e = np.exp(x)
            np.testing.assert_allclose(y, e / (1 + np.exp(-0.5 * e)), rtol=1e-5)
        self.assertEqual(asked[0], ("mine", 1, {"beta": 0.5, "mode": "up", "sizes": [1, 2]}, ["float32", 2]))

    def test_a_reduction_with_two_results(self):
        def stats(node):
            (x,) = node.inputs
            rows, columns = x.shape
            k = te.reduce_axis((0, columns), name="k")
            mean = te.compute((rows,), lambda i: te.sum(x[i, k] / 8.0, axis=k), name="mean")
            j = te.reduce_axis((0, columns), name="j")
            most = te.compute((rows,), lambda i: te.max(x[i, j] - mean[i], axis=j), name="most")
            return [mean, most]

        self.register("Stats", stats)
        save(self.model, "Stats", outputs=("a", "b"))
        x = self.inputs(5)
        mean, most = self.run_model(x)
        np.testing.assert_allclose(mean, np.exp(x).mean(1), rtol=1e-5)
        np.testing.assert_allclose(most, np.exp(x).max(1) - np.exp(x).mean(1), rtol=1e-4, atol=1e-6)

    def test_results_that_nobody_reads(self):
        def both(node):
            (x,) = node.inputs
            y = te.compute(x.shape, lambda *i: x[i] * 2.0, name="y")
            return [te.compute(x.shape, lambda *i: x[i] + 1.0, name="z"), y]

        self.register("Both", both)
        save(self.model, "Both")
        x = self.inputs(5)
        np.testing.assert_allclose(self.run_model(x)[0], np.exp(x) + 1, rtol=1e-6)

    def test_a_schedule_of_ones_own(self):
        def double(node):
            (x,) = node.inputs
            y = te.compute(x.shape, lambda i, j: x[i, j] * 2.0, name="y")
            s = te.create_schedule(y.op)
            s[y].parallel(y.op.axis[0])
            s[y].vectorize(y.op.axis[1])
            return tenon.lower(s, [x, y], name="double")

        self.register("Double", double)
        save(self.model, "Double")
        x = self.inputs(9)
        np.testing.assert_allclose(self.run_model(x)[0], 2 * np.exp(x), rtol=1e-6)

    def test_functions_by_type_and_rank(self):
        other = SCALE.replace("@scale", "@scale_ints").replace("f32[", "i32[").replace("* alpha", "* i32(alpha)")
        self.register("Scale", SCALE + other)
        save(self.model, "Scale", {"alpha": 3.0})
        x = self.inputs(4)
        np.testing.assert_allclose(self.run_model(x)[0], 3 * np.exp(x), rtol=1e-6)

    def test_a_function_of_python(self):
        @tenon.register_func("test_operators.halve", override=True)
        def halve(x, y):
            y.copyfrom(x.numpy() / 2)

        def define(node):
            (x,) = node.inputs
            return te.extern(x.shape, [x], lambda ins, outs: tir.call_packed("test_operators.halve", ins[0], outs[0]), name="y")

        self.register("Halve", define)
        save(self.model, "Halve")
        x = self.inputs(3)
        np.testing.assert_allclose(self.run_model(x)[0], np.exp(x) / 2, rtol=1e-6)

    def test_a_c_function_of_the_process(self):
        def define(node):
            (x,) = node.inputs

            def body(ins, outs):
                ib = tir.ir_builder.create()
                a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
                with ib.for_range(0, x.shape[0], name="i") as i:
                    with ib.for_range(0, 8, name="j") as j:
                        b[i, j] = tir.call_extern("float32", "cbrtf", a[i, j])
                return ib.get()

            return te.extern(x.shape, [x], body, name="y")

        self.register("Root", define)
        save(self.model, "Root")
        x = self.inputs(3)
        np.testing.assert_allclose(self.run_model(x)[0], np.cbrt(np.exp(x)), rtol=1e-5)

    def test_sizes_that_follow(self):
        def pairs(node):
            a, b = node.inputs
            n, m = a.shape
            return te.compute((n * 2, m), lambda i, j: te.if_then_else(i < n, a[te.min(i, n - 1), j], b[te.max(i - n, 0), j]), name="y")

        self.register("Pairs", pairs)
        save(self.model, "Pairs", inputs=("e", "f"), types=(TensorProto.FLOAT,) * 2)
        x = self.inputs(3)
        (y,) = self.run_model(x, x + 1)
        np.testing.assert_allclose(y, np.exp(np.concatenate([x, x + 1])), rtol=1e-5)

    def test_sessions_and_their_cache(self):
        def times(factor):
            def define(node):
                (x,) = node.inputs
                return te.compute(x.shape, lambda *i: x[i] * factor, name="y")

            return define

        save(self.model, "Times")
        x = self.inputs(2)
        with unittest.mock.patch.dict(os.environ, {"TENON_CACHE_DIR": self.folder.name}):
            for factor in (2.0, 5.0):  # the cache knows them apart
                tenon.register_operator("my.domain", "Times", times(factor))
                (y,) = tenon.InferenceSession(self.model).run(None, {"x0": x})
                np.testing.assert_allclose(y, factor * np.exp(x), rtol=1e-6)
        self.known.append("Times")

    def test_it_comes_before_what_there_is(self):
        tenon.register_operator("", "Relu", lambda node: te.compute(node.inputs[0].shape, lambda *i: node.inputs[0][i] + 1.0, name="y"))
        try:
            self.register("Scale", SCALE)
            save(self.model, "Scale", {"alpha": 1.0})
            x = self.inputs(2)
            np.testing.assert_allclose(self.run_model(x)[0], np.exp(x) + 1, rtol=1e-6)
        finally:
            tenon.remove_operator("", "Relu")

    def test_every_level(self):
        self.register("Scale", SCALE)
        save(self.model, "Scale", {"alpha": 4.0})
        x = self.inputs(6)
        for level in range(4):
            np.testing.assert_allclose(self.run_model(x, opt_level=level)[0], 4 * np.exp(x), rtol=1e-6)

    def test_for_gpus(self):
        def softplus(node):
            (x,) = node.inputs
            return te.compute(x.shape, lambda *i: te.log(1.0 + te.exp(x[i])), name="y")

        self.register("Plus", softplus)
        save(self.model, "Plus")
        tenon.compile(self.model, os.path.join(self.folder.name, "gpu.so"), target="opencl")

    def test_among_convolutions(self):
        """Where maps lie in blocks, with borders, and in 16 bits, the operator has them plain."""

        def double(node):
            (x,) = node.inputs
            self.assertEqual(str(x.dtype), "float32")
            return te.compute(x.shape, lambda *i: x[i] * 2.0, name="y")

        self.register("Double", double)
        draw = np.random.default_rng(1)
        weights = [draw.standard_normal((16, c, 3, 3)).astype(np.float32) / 8 for c in (3, 16, 16)]

        def model(domain):
            conv = dict(pads=[1, 1, 1, 1])
            two = [] if domain else ["two"]
            nodes = [
                helper.make_node("Conv", ["x", "w0"], ["a"], **conv),
                helper.make_node("Double" if domain else "Mul", ["a"] + two, ["b"], domain=domain, name="mine"),
                helper.make_node("Conv", ["b", "w1"], ["c"], **conv),
                helper.make_node("Add", ["c", "b"], ["d"]),
                helper.make_node("Conv", ["d", "w2"], ["y"], **conv),
            ]
            constants = [onnx.numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)]
            constants += [onnx.numpy_helper.from_array(np.float32(2), "two")] if not domain else []
            value = helper.make_tensor_value_info
            graph = helper.make_graph(
                nodes, "g", [value("x", TensorProto.FLOAT, [1, 3, 9, 11])], [value("y", TensorProto.FLOAT, None)], constants
            )
            made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("my.domain", 1)])
            made.ir_version = 9
            onnx.save(made, self.model)

        x = draw.standard_normal((1, 3, 9, 11)).astype(np.float32)
        model("")
        (expected,) = self.run_model(x)
        model("my.domain")
        for level in range(4):
            np.testing.assert_allclose(self.run_model(x, opt_level=level)[0], expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(self.run_model(x, precision="fp16")[0], expected, rtol=0.05, atol=0.05)

    def refused(self, *parts, **options):
        with self.assertRaises((ValueError, RuntimeError)) as caught:
            self.run_model(self.inputs(2), **options)
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def test_what_is_refused(self):
        save(self.model, "Scale", {"alpha": 3.0})
        self.refused("operator 'Scale' of domain 'my.domain' is not supported")
        self.register("Scale", SCALE.replace("alpha", "beta"))
        self.refused("node 'mine'", "expected the attribute 'beta', which is a parameter of @scale")
        tenon.register_operator("my.domain", "Scale", SCALE.replace(", alpha: f32", "").replace("* alpha", "* 2f32"))
        self.refused("attribute 'alpha' is no parameter of @scale")
        tenon.register_operator("my.domain", "Scale", SCALE.replace("f32[n, m]", "f64[n, m]").replace("* alpha", "* f64(alpha)"))
        self.refused("no function of the operator takes f32[n, 8]", "@scale takes f64[n, m]")
        tenon.register_operator("my.domain", "Scale", SCALE.replace("<n, m>", "<n: 1..=4, m: 16..=32>"))
        self.refused("expected a size in 16..=32 for 'm' of @scale, but got 8")
        for access, instead, says in (
            ("y[i, j] =", "y[i + 100000000, j] =", "y[i + 100000000, j] along dim 0: the index takes the value"),
            ("y[i, j] =", "y[i - 1, j] =", "the index takes the value -1"),
            ("x[i, j]", "x[i, j + 1]", "x[i, j + 1] along dim 1: the index takes the value"),
            ("x[i, j]", "x[i, 8]", "x[i, 8] along dim 1"),
        ):
            tenon.register_operator("my.domain", "Scale", SCALE.replace(access, instead))
            self.refused("node 'mine'", says)
        tenon.register_operator("my.domain", "Scale", lambda node: [1, 2][5])
        self.refused("node 'mine'", "IndexError")
        tenon.register_operator("my.domain", "Scale", lambda node: 3)
        self.refused("gives a tensor, several, or a function of loop IR, not int")
        for broken, why in [
            ("func @f(x: f32[2]) kind device {\n}", "has no result"),
            ("func @f<n>(x: f32[2], out y: f32[n]) kind device { y[0] = 1f32 }", "does not follow from an input's shape"),
            ("nonsense", "expected"),
        ]:
            with self.assertRaises(ValueError) as caught:
                tenon.register_operator("my.domain", "Other", broken)
            self.assertIn(why, str(caught.exception))

    def test_ranges_are_checked_at_the_call(self):
        self.register("Scale", SCALE.replace("<n, m>", "<n: 1..=4, m>"))
        save(self.model, "Scale", {"alpha": 1.0})
        self.run_model(self.inputs(4))
        with self.assertRaises(ValueError):
            self.run_model(self.inputs(5))
        tenon.register_operator("my.domain", "Scale", SCALE.replace("x[i, j]", "x[3, j]"))
        self.run_model(self.inputs(4))
        with self.assertRaises(ValueError):
            self.run_model(self.inputs(3))

    def test_the_command_line(self):
        tool = os.environ.get("TENON_TOOL")
        if not tool:
            self.skipTest("TENON_TOOL is not set")
        save(self.model, "Scale", {"alpha": 3.0})
        source = os.path.join(self.folder.name, "scale.tir")
        with open(source, "w") as f:
            f.write(SCALE.replace("y[i, j] = x[i, j] * alpha", 'let v = extern<f32>("my_scale", x[i, j], alpha)\n      y[i, j] = v'))
        with open(os.path.join(self.folder.name, "my_scale.c"), "w") as f:
            f.write("#include <math.h>\nfloat my_scale(float x, float a) { return fmaf(x, a, 0.0f); }\n")
        subprocess.run(["cc", "-O2", "-fPIC", "-c", "my_scale.c"], cwd=self.folder.name, check=True)
        command = [tool, "compile", self.model, "-o", os.path.join(self.folder.name, "m.so"), "--custom-op", f"my.domain::Scale={source}"]
        failed = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("the code calls my_scale, which is not part of it", failed.stderr)
        subprocess.run(command + ["--link", os.path.join(self.folder.name, "my_scale.o")], check=True, capture_output=True)
        x = self.inputs(3)
        y = np.asarray(tenon.load(os.path.join(self.folder.name, "m.so"))(x))
        np.testing.assert_allclose(y, 3 * np.exp(x), rtol=1e-6)
        for wrong in ("my.domain::Scale", "=x.tir", "a::b=", "my.domain::Scale=/nowhere.tir"):
            failed = subprocess.run(command[:-1] + [wrong], capture_output=True, text=True)
            self.assertIn(failed.returncode, (1, 2), wrong)
            self.assertIn("--custom-op" if "nowhere" not in wrong else "/nowhere.tir", failed.stderr)


if __name__ == "__main__":
    unittest.main()
