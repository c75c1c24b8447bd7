"""Libraries with open sizes: right at all of them, with no more kernels than with fixed ones. Needs onnx and onnxruntime."""
import json
import os
import re
import subprocess
import sys

import numpy as np

import harness
from harness import INPUT, ROOT
from networks import FLOAT, OnnxCase, graph, info, node

try:
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError:
    onnx = None

BERT = {"input_ids": "batch[1..16]xseq[1..128]", "attention_mask": "batchxseq"}


# Calls `main` with so many rows and prints how many threads the process has after each call.
COUNT_THREADS = """
#include <tenon/tenon.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
int main(int argc, char** argv) {
  tenon::Module module = tenon::Module::LoadFromFile(argv[1]);
  for (int i = 2; i < argc; ++i) {
    const int64_t rows = std::atoi(argv[i]);
    tenon::Tensor in = tenon::Tensor::Empty({rows, 4}, tenon::DataType::kFloat32);
    for (int64_t k = 0; k < rows * 4; ++k) static_cast<float*>(in.data())[k] = 1;
    module.GetFunction("main")(in);
    long threads = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) threads += task.exists();
    std::printf("%ld\\n", threads);
  }
}
"""


class OpenSizes(OnnxCase):
    SEED = 3

    def opened(self, name):
        """The model with its sizes open, beside its weights."""
        out = harness.models / f"open-{name}.onnx"
        subprocess.run([sys.executable, ROOT / "test" / "models" / "open_model.py", self.model(name), out], check=True)
        return str(out)

    def build_open(self, model, shapes, output="open.so", *args):
        options = [word for item in shapes.items() for word in ("--shape", ":".join(item))]
        self.tenon("compile", model, "-o", self.path(output), "--verify-each", *options, *args)
        return self.path(output)

    def kernels(self, library):
        out, _ = self.tenon("inspect", "--json", library)
        return len(json.loads(out)["kernels"])

    def check(self, model, library, all_inputs):
        """Alone and by two workers, the library gives what ONNX Runtime gives."""
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [x.name for x in session.get_outputs()]
        for inputs in all_inputs:
            with self.subTest([array.shape for array in inputs.values()]):
                want = dict(zip(names, session.run(None, inputs)))
                given, expected = self.save("in.npz", inputs), self.save("want.npz", want)
                for workers in ("1", "2"):
                    self.tenon("run", library, "-i", given, "--expect", expected, "--rtol", "1e-3", "--atol", "1e-4",
                               env={"TENON_NUM_THREADS": workers})

    def check_kernels(self, model, library, fixed_shapes):
        """No more than with fixed sizes and the variants that plans name."""
        fixed = self.kernels(self.build_open(model, fixed_shapes, "fixed.so"))
        plans = (self.dir / "open.so.graph.txt").read_text()
        self.assertLessEqual(self.kernels(library), fixed + len(re.findall(r" when \[", plans)))

    def refused(self, library, inputs, *words):
        _, err = self.tenon("run", library, "-i", self.save("in.npz", inputs), status=INPUT)
        for word in words:
            self.assertIn(word, err)

    def test_products_at_every_batch(self):
        model = self.opened("mlp-4-2")
        library = self.build_open(model, {"input": "batch[1..16]x4"}, "open.so", "--emit", "graph")
        draw = lambda batch: {"input": self.random.standard_normal((batch, 4)).astype(np.float32)}
        self.check(model, library, map(draw, range(1, 17)))
        self.check_kernels(model, library, {"input": "16x4"})
        self.refused(library, draw(17), "`input` expects shape[0] in 1..=16", "got shape[0]=17")
        self.refused(library, draw(0), "`input` expects shape[0] in 1..=16", "got shape[0]=0")

    def test_a_team_wakes_for_sizes_that_need_it(self):
        library = self.build_open(self.opened("mlp-4-2"), {"input": "batchx4"})
        (self.dir / "count.cc").write_text(COUNT_THREADS)
        program = self.build("count", self.dir / "count.cc")
        done = subprocess.run([program, library, "1", "2", "10007"], capture_output=True, text=True,
                              env={**os.environ, "TENON_NUM_THREADS": "2"})
        self.assertEqual(done.stdout.split(), ["1", "1", "2"], done.stderr)

    def test_batches_beyond_any_tile(self):
        model = self.opened("mlp-4-2")
        library = self.build_open(model, {"input": "batchx4"})
        draw = lambda batch: {"input": self.random.standard_normal((batch, 4)).astype(np.float32)}
        self.check(model, library, map(draw, (1, 6, 7, 127, 128, 129, 1009)))

    def test_ranges_shorter_than_any_tile(self):
        model = self.opened("mlp-4-2")
        draw = lambda batch: {"input": self.random.standard_normal((batch, 4)).astype(np.float32)}
        for least, most in [(1, 2), (2, 5), (3, 8)]:
            library = self.build_open(model, {"input": f"batch[{least}..{most}]x4"})
            self.check(model, library, map(draw, range(least, most + 1)))
        model = self.opened("bert-tiny")
        library = self.build_open(model, {"input_ids": "1xseq[1..40]", "attention_mask": "1xseq"})
        self.check(model, library, [self.ids(1, seq) for seq in (1, 39, 40)])

    def ids(self, batch, seq):
        mask = np.ones((batch, seq), np.int64)
        mask[:, max(1, seq * 3 // 4):] = 0
        return {"input_ids": self.random.integers(0, 1000, (batch, seq)), "attention_mask": mask}

    def test_a_transformer(self):
        model = self.opened("bert-tiny")
        library = self.build_open(model, BERT, "open.so", "--emit", "graph")
        sizes = [(1, 1), (1, 7), (1, 64), (1, 128), (3, 1), (5, 13), (16, 64), (16, 128)]
        self.check(model, library, [self.ids(*size) for size in sizes])
        self.check_kernels(model, library, {"input_ids": "1x128", "attention_mask": "1x128"})
        self.refused(library, self.ids(1, 129), "shape[1]", "1..=128", "129")
        self.refused(library, self.ids(17, 8), "shape[0]", "1..=16", "17")
        both = {"input_ids": self.ids(2, 8)["input_ids"], "attention_mask": self.ids(2, 7)["attention_mask"]}
        self.refused(library, both, "attention_mask", "seq")

    def test_convolutions(self):
        weight = lambda *shape: (self.random.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)
        weights = {"w0": weight(16, 3, 3, 3), "w1": weight(8, 16, 1, 1), "w2": weight(24, 8, 1, 1), "w3": weight(24, 8, 3, 3)}
        node = helper.make_node
        nodes = [
            node("Conv", ["x", "w0"], ["c0"], strides=[2, 2]), node("Relu", ["c0"], ["r0"]),
            node("MaxPool", ["r0"], ["p0"], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
            node("Conv", ["p0", "w1"], ["c1"]), node("Relu", ["c1"], ["r1"]),
            node("Conv", ["r1", "w2"], ["c2"]), node("Conv", ["r1", "w3"], ["c3"], pads=[1, 1, 1, 1]),
            node("Concat", ["c2", "c3"], ["c4"], axis=1), node("Relu", ["c4"], ["r4"]),
            node("GlobalAveragePool", ["r4"], ["y"]),
        ]
        value = lambda name, *dims: helper.make_tensor_value_info(name, 1, dims)
        initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
        graph = helper.make_graph(nodes, "fire", [value("x", "n", 3, 31, 31)], [value("y", "n", 48, 1, 1)], initializers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.path("fire.onnx"))
        library = self.build_open(self.path("fire.onnx"), {"x": "batch[1..16]x3x31x31"}, "open.so", "--emit", "graph")
        draw = lambda batch: {"x": self.random.standard_normal((batch, 3, 31, 31)).astype(np.float32)}
        self.check(self.path("fire.onnx"), library, map(draw, (1, 2, 5, 16)))
        self.check_kernels(self.path("fire.onnx"), library, {"x": "16x3x31x31"})

    def test_maps_smaller_than_windows(self):
        """Kernels for the smallest sizes may leave out taps that meet nothing; those for others may not."""
        weight = lambda *shape: (self.random.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)
        nodes = [node("Conv", ["x", "a"], ["c"], pads=[2] * 4, strides=[2, 2]), node("Relu", ["c"], ["r"]),
                 node("Conv", ["r", "b"], ["d"], pads=[2] * 4, group=48), node("Conv", ["d", "e"], ["y"], pads=[1] * 4, strides=[2, 2])]
        weights = {"a": weight(48, 48, 5, 5), "b": weight(48, 1, 5, 5), "e": weight(24, 48, 3, 3)}
        model = helper.make_model(graph(nodes, [info("x", FLOAT, 1, 48, "h", "w")], [info("y", FLOAT, 1, 24, "p", "q")], weights),
                                  opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, self.path("small.onnx"))
        library = self.build_open(self.path("small.onnx"), {"x": "1x48xh[2..64 step 2]xw[1..64]"}, "open.so")
        draw = lambda h, w: {"x": self.random.standard_normal((1, 48, h, w)).astype(np.float32)}
        self.check(self.path("small.onnx"), library, [draw(h, w) for h in (2, 4, 6, 64) for w in (1, 2, 3, 17, 64)])

    def test_windows_bound_open_sizes(self):
        """A size is refused for which something in between would have nothing, or less; all others are right."""
        nodes = [node("Conv", ["x", "w"], ["c"]), node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
                 node("Resize", ["p", "", "scales"], ["s"]), node("GlobalAveragePool", ["s"], ["y"])]
        model = helper.make_model(graph(nodes, [info("x", FLOAT, "n", 3, "h", "w")], [info("y", FLOAT, "n", 4, 1, 1)],
                                        {"w": self.random.standard_normal((4, 3, 3, 3)).astype(np.float32), "scales": np.array([1, 1, 0.5, 1], np.float32)}),
                                  opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, self.path("net.onnx"))
        library = self.build_open(self.path("net.onnx"), {})
        draw = lambda h, w: {"x": self.random.standard_normal((2, 3, h, w)).astype(np.float32)}
        self.check(self.path("net.onnx"), library, [draw(6, 4), draw(7, 5), draw(19, 33)])
        for h, w, least in ((5, 9, "shape[2] in 6..="), (9, 3, "shape[3] in 4..=")):
            _, said = self.tenon("run", library, "-i", self.save("in.npz", draw(h, w)), status=INPUT)
            self.assertIn(least, said)
