import os
import re
import shutil
import struct
import subprocess

import numpy as np

import harness
from harness import Case, ROOT, INPUT, reference


class Machines(Case):
    """Libraries for other machines, under their emulators."""

    TARGETS = {"aarch64": "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", "riscv64": "llvm -mtriple=riscv64-linux-gnu",
               "wasm32": "llvm -mtriple=wasm32-unknown-unknown"}

    def machines(self):
        there = {arch: os.environ[f"TENON_REMOTE_{arch}"] for arch in self.TARGETS if f"TENON_REMOTE_{arch}" in os.environ}
        if not there:
            self.skipTest("no emulator, or no runtime core for what it emulates")
        return there

    def call(self, runner, library, arrays, outputs, name="__tvm_ffi_main"):
        """Calls a function there (test/remote/runner.c); its outputs, or the message of its failure."""
        request = struct.pack("<II", 1, len(name)) + name.encode() + struct.pack("<II", len(arrays) + len(outputs), 0)
        for array in [*arrays, *(np.zeros_like(a) for a in outputs)]:
            code = {"f": 2, "i": 0, "u": 1, "b": 6}[array.dtype.kind]
            data = np.ascontiguousarray(array).tobytes()
            request += struct.pack(f"<II{array.ndim}qQ", code | array.dtype.itemsize << 11 | 1 << 16, array.ndim,
                                   *array.shape, len(data)) + data
        done = subprocess.run([*runner.split(), library], input=request, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        if struct.unpack("<i", done.stdout[:4])[0]:
            return done.stdout[8:].decode()
        at, results = 4 + sum(a.nbytes for a in arrays), []
        for want in outputs:
            results.append(np.frombuffer(done.stdout[at:at + want.nbytes], want.dtype).reshape(want.shape))
            at += want.nbytes
        return results

    def check(self, arch, runner, model, inputs, outputs, *args):
        library = self.compile(model, f"{arch}.so", "--target", self.TARGETS[arch], *args)
        got = self.call(runner, library, list(inputs.values()), list(outputs.values()))
        for have, want in zip(got, outputs.values(), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-3, atol=1e-4)
        return library

    def test_networks(self):
        for arch, runner in self.machines().items():
            with self.subTest(arch):
                inputs, outputs = reference("mlp-4-2")
                library = self.check(arch, runner, "mlp-4-2", inputs, outputs)
                (x,) = inputs.values()
                self.assertIn("expects ndim=2 but got ndim=1",
                              self.call(runner, library, [x[0]], list(outputs.values())))
                separate = [] if arch == "wasm32" else ["--params", "separate"]
                self.check(arch, runner, "bert-tiny", *reference("bert-tiny"), *separate)

    def test_tensor_expressions(self):
        """The same source of a vector addition, with a size known at the call."""
        for arch, runner in self.machines().items():
            with self.subTest(arch):
                library = self.path(f"add-{arch}.wasm" if arch == "wasm32" else f"add-{arch}.so")
                subprocess.run([harness.options.build / "bin" / "vector_add", "--target", self.TARGETS[arch], library], check=True,
                               stdout=subprocess.DEVNULL)
                for n in [0, 1, 63, 64, 65, 1000]:
                    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
                    (z,) = self.call(runner, library, [x, y], [x], "__tvm_ffi_add")
                    np.testing.assert_array_equal(z, x + y)
                self.assertIn("Shape mismatch: n=3", self.call(runner, library, [x[:3], y[:2]], [x[:3]], "__tvm_ffi_add"))
                if arch == "wasm32":
                    program = ROOT / "examples/tensor_expressions/vector_add.mjs"
                    done = subprocess.run([runner.split()[0], program, library], capture_output=True, text=True)
                    self.assertEqual((done.returncode, done.stdout), (0, "the results agree\n"), done.stderr)

    def test_convolutions(self):
        machines = self.machines()
        try:
            import onnx
        except ImportError:
            self.skipTest("no onnx")
        draw = np.random.default_rng(5)
        weights = {"w1": (24, 3, 3, 3), "b1": (24,), "w2": (40, 24, 1, 1), "w3": (40, 1, 3, 3), "w4": (10, 40)}
        helper = onnx.helper
        nodes = [helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1], strides=[2, 2]),
                 helper.make_node("Relu", ["c1"], ["r1"]),
                 helper.make_node("Conv", ["r1", "w2"], ["c2"]),
                 helper.make_node("Sigmoid", ["c2"], ["s2"]),
                 helper.make_node("Conv", ["s2", "w3"], ["c3"], pads=[1, 1, 1, 1], group=40),
                 helper.make_node("GlobalAveragePool", ["c3"], ["p"]),
                 helper.make_node("Flatten", ["p"], ["f"]),
                 helper.make_node("Gemm", ["f", "w4"], ["g"], transB=1),
                 helper.make_node("Softmax", ["g"], ["y"], axis=1)]
        tensor = lambda name, shape: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        constants = [onnx.numpy_helper.from_array(draw.standard_normal(shape).astype(np.float32) / 2, name)
                     for name, shape in weights.items()]
        graph = helper.make_graph(nodes, "net", [tensor("x", [2, 3, 19, 17])], [tensor("y", [2, 10])], constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.path("net.onnx"))
        x = draw.standard_normal((2, 3, 19, 17)).astype(np.float32)
        given = self.save("in.npz", {"x": x})
        self.tenon("run", self.path("net.onnx"), "-i", given, "-o", self.path("out.npz"))
        want = {"y": np.load(self.path("out.npz"))["y"]}
        self.model = lambda name: self.path(f"{name}.onnx")
        for arch, runner in machines.items():
            with self.subTest(arch):
                self.check(arch, runner, "net", {"x": x}, want)

    def test_inner_loops_use_vectors(self):
        self.compile("bert-tiny", "m.so", "--target", self.TARGETS["aarch64"], "--emit", "asm")
        text = (self.dir / "m.so.s").read_text()
        loops = re.findall(r"\n(\.LBB\w+):((?:(?!\n\.LBB).)*?b\.\w+\t\1\n)", text, re.DOTALL)
        most = max(body.count("\tfmla\tv") for _, body in loops)
        self.assertGreaterEqual(most, 16)
        self.assertEqual([body for _, body in loops if body.count("\tfmla\tv") == most and "[sp" in body], [])

    def test_objects(self):
        """Linked by that machine's own linker, with the C program that calls it."""
        for arch, runner in self.machines().items():
            compiler = shutil.which(f"{arch}-linux-gnu-gcc")
            if not compiler:
                continue
            with self.subTest(arch):
                self.compile("mlp-4-2", "m.o", "--target", self.TARGETS[arch], "--format", "obj")
                subprocess.run([compiler, "-shared", "-o", self.path("m.so"), self.path("m.o")], check=True)
                inputs, outputs = reference("mlp-4-2")
                got = self.call(runner, self.path("m.so"), list(inputs.values()), list(outputs.values()))
                np.testing.assert_allclose(got[0], *outputs.values(), rtol=1e-3, atol=1e-4)

    def test_without_a_core(self):
        musl = "llvm -mtriple=aarch64-linux-musl"
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.so"), "--target", musl, status=INPUT)
        self.assertIn("no runtime core for the target 'aarch64-unknown-linux-musl'", err)
        self.assertIn("libc6-dev-arm64-cross", err)
        self.assert_only()
        out, _ = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.o"), "--target", musl)
        self.assertIn("links libtenon_core.a for aarch64-unknown-linux-musl besides", out)
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.o"), "--target", "apple/m1", status=INPUT)
        self.assertIn("not for 'arm64-apple-macosx11.0.0'", err)
