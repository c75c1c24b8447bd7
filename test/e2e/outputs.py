import os
import pathlib
import shutil
import subprocess

import numpy as np

import harness
from harness import Case, MODELS, DONE, INPUT, reference


class Outputs(Case):
    """What compile writes."""

    def test_same_input_same_bytes(self):
        for model in MODELS:
            contents = []
            for jobs in ["1", "2"]:
                (self.dir / jobs).mkdir(exist_ok=True)  # a library bears its file's name
                contents.append(pathlib.Path(self.compile(model, f"{jobs}/model.so", "--jobs", jobs)).read_bytes())
            self.assertEqual(*contents)

    def test_separate_weights(self):
        inputs, outputs = reference("bert-tiny")
        library = self.compile("bert-tiny", "model.so", "--params", "separate")
        self.assert_only("model.so", "model.params")
        out, _ = self.tenon("compile", self.model("bert-tiny"), "-o", library, "--params", "separate")
        self.assertIn(f"{library} and {self.path('model.params')}: ", out)
        self.assertLess(os.path.getsize(library), 2_000_000)
        self.tenon("run", library, "-i", self.save("in.npz", inputs), "--expect", self.save("want.npz", outputs),
                   "--rtol", "1e-3", "--atol", "1e-4")
        os.remove(self.path("model.params"))
        _, err = self.tenon("run", library, "-i", self.path("in.npz"), status=INPUT)
        self.assertIn("model.params", err)

    def test_emit(self):
        self.compile("mlp-4-2", "m.so", "--emit", "graph,loop,llvm,asm")
        self.assert_only("m.so", "m.so.graph.txt", "m.so.loop.txt", "m.so.ll", "m.so.s")
        for name, word in [("m.so.graph.txt", "graph"), ("m.so.loop.txt", "func @"), ("m.so.ll", "define"), ("m.so.s", ".text")]:
            self.assertIn(word, pathlib.Path(self.path(name)).read_text())

    def test_dumps_read_back(self):
        """Weights are found from where the model was compiled, beside the dump, or where --weights says."""
        shutil.copy(self.model("bert-tiny"), self.dir)
        shutil.copy(self.model("bert-tiny").replace(".onnx", ".weights"), self.dir)
        (self.dir / "out").mkdir()
        self.tenon("compile", "--emit", "graph", self.path("bert-tiny.onnx"), "-o", self.path("out/m.so"))
        opt = lambda *args: subprocess.run([harness.options.build / "bin" / "tenon-opt", *args], capture_output=True, text=True, cwd="/")
        dump = self.path("out/m.so.graph.txt")
        lost = opt("--parse-only", dump)
        self.assertEqual(lost.returncode, INPUT)
        self.assertIn("name it with --weights", lost.stderr)
        for args in [["--weights", self.path("bert-tiny.weights")], ["--weights", str(self.dir)]]:
            found = opt("--parse-only", *args, dump)
            self.assertEqual((found.returncode, found.stdout), (DONE, pathlib.Path(dump).read_text()), found.stderr)
        shutil.copy(self.path("bert-tiny.weights"), self.dir / "out")
        self.assertEqual(opt("--passes=dead_code", dump).returncode, DONE)
        os.truncate(self.dir / "out" / "bert-tiny.weights", 100)
        short = opt("--parse-only", dump)
        self.assertEqual(short.returncode, INPUT)
        self.assertIn("beyond the end of the weight file (100 bytes)", short.stderr)

    def test_quiet(self):
        out, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.so"), "-q")
        self.assertEqual((out, err), ("", ""))

    def test_table_and_phases(self):
        out, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.so"), "--time-passes")
        for word in ["kernel", "matmul", "MFLOP", "est. µs", "total", "plan_storage", "of all launches", "phase  ", "pass (sum over threads)", "code generation (LLVM)",
                     f"{self.path('m.so')}: "]:
            self.assertIn(word, out)
        self.assertEqual(err.split(), ["import", "graph", "lower", "kernels", "link", "weights"])
        out, _ = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.so"), "--print-after", "lower_blocks")
        self.assertIn("// after lower_blocks", out)

    def test_code_for_another_cpu_is_refused(self):
        for target in ["llvm -mattr=+amx-fp16,+avx512vp2intersect,+avxvnniint16"]:
            library = self.compile("mlp-4-2", "other.so", "--target", target)
            _, err = self.tenon("run", library, "--fill", "ones", status=INPUT)
            for words in ["compiled for another CPU: it lacks", "amx-fp16", "the code needs:", "this CPU has:"]:
                self.assertIn(words, err)
            out, err = self.tenon("inspect", library, status=INPUT)
            self.assertIn("avx512vp2intersect", out)
            self.assertIn("compiled for another CPU", err)

    def test_an_output_listed_twice(self):
        """A result each for who calls; a file has it by its name, once."""
        try:
            import onnx
            from onnx import TensorProto, helper
        except ImportError:
            self.skipTest("needs the package onnx")
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
        graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "twice", [x], [y, y])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.path("twice.onnx"))
        out, _ = self.tenon("run", self.path("twice.onnx"), "--fill", "random")
        self.assertEqual(out.count("y: float32 3"), 2)
        given = self.save("in.npz", {"x": np.arange(3, dtype=np.float32)})
        self.tenon("run", self.path("twice.onnx"), "-i", given, "-o", self.path("out.npz"))
        with np.load(self.path("out.npz")) as saved:
            self.assertEqual({name: saved[name].tolist() for name in saved.files}, {"y": [0, -1, -2]})

