import json
import subprocess

import numpy as np

from harness import DIFFER, INPUT, Case

try:
    import onnx
    from onnx import TensorProto, helper
except ImportError:
    onnx = None

PROGRAM = """
#include <cstdio>
#include "tenon/value.hpp"
int main() {
  using namespace tenon;
  Session session("pipeline.so");
  Tensor x = Tensor::Empty({2, 2}, DataType::kFloat32);
  for (int i = 0; i < 4; ++i) x.data_as<float>()[i] = 0.25f * i;
  std::map<std::string, Value> y;
  {
    Session other("pipeline.so");
    y = RunValues(other, {{"word", Value::Strings({2}, {"red", "a long blue word"})}, {"x", x},
                          {"all", Value::Sequence({x, x})}, {"may", Value()}});
  }
  for (int64_t d : y.at("twice").StringsShape()) std::printf("%d ", static_cast<int>(d));
  for (const std::string& text : y.at("twice").AsStrings()) std::printf("%s, ", text.c_str());
  for (const Value& map : y.at("maps").AsSequence())
    std::printf("%s=%g ", map.MapKeys().AsStrings()[1].c_str(), map.MapValues().AsTensor().data_as<float>()[1]);
  std::printf("%d %d\\n", static_cast<int>(y.at("more").AsSequence().size()), y.at("is").AsTensor().data_as<bool>()[0]);
  try {
    y.at("maps").AsStrings();
  } catch (const Error& e) {
    std::printf("%s\\n", e.what());
  }
  try {
    RunValues(session, {{"word", x}, {"x", x}, {"all", Value()}, {"may", Value()}});
  } catch (const Error& e) {
    std::printf("%s\\n", e.what());
  }
}
"""


class Values(Case):
    """Strings, sequences, optional values and maps from the command line and from C++."""

    def setUp(self):
        super().setUp()
        if onnx is None:
            self.skipTest("needs the package onnx")
        ml, node, tensor = {"domain": "ai.onnx.ml"}, helper.make_node, helper.make_tensor_value_info
        f32 = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
        map_type = helper.make_map_type_proto(TensorProto.STRING, f32)
        graph = helper.make_graph(
            [node("StringConcat", ["word", "word"], ["twice"]), node("ZipMap", ["x"], ["maps"], classlabels_strings=["a", "b"], **ml),
             node("SequenceInsert", ["all", "x"], ["more"]), node("OptionalHasElement", ["may"], ["is"])], "g",
            [tensor("word", TensorProto.STRING, ["n"]), tensor("x", TensorProto.FLOAT, ["n", 2]),
             helper.make_tensor_sequence_value_info("all", TensorProto.FLOAT, None), helper.make_value_info("may", helper.make_optional_type_proto(f32))],
            [tensor("twice", TensorProto.STRING, ["n"]), helper.make_value_info("maps", helper.make_sequence_type_proto(map_type)),
             helper.make_tensor_sequence_value_info("more", TensorProto.FLOAT, None), tensor("is", TensorProto.BOOL, [])])
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)])
        onnx.save(model, self.path("pipeline.onnx"))
        self.inputs = {"word": ["red", "ß"], "x": [[0.1, "nan"], ["-inf", 4]], "all": [[1.5], {"shape": [0, 2], "data": []}], "may": None}
        self.outputs = {"twice": ["redred", "ßß"], "maps": [{"a": 0.1, "b": "nan"}, {"a": "-inf", "b": 4.0}],
                        "more": [*self.inputs["all"], self.inputs["x"]], "is": False}

    def json(self, name, content):
        (self.dir / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return self.path(name)

    def test_run_with_json(self):
        given = self.json("in.json", self.inputs)
        out, _ = self.tenon("run", self.path("pipeline.onnx"), "-i", given)
        for line in ('twice: string 2 ["redred","ßß"]', 'maps: [{"a":0.1,"b":"nan"},{"a":"-inf","b":4.0}]', "is: bool scalar"):
            self.assertIn(line, out)
        self.tenon("run", self.path("pipeline.onnx"), "-i", given, "-o", self.path("out.json"), "-o", f"maps={self.path('maps.json')}")
        self.assertEqual(json.loads((self.dir / "out.json").read_text()), self.outputs)
        self.assertEqual(json.loads((self.dir / "maps.json").read_text()), self.outputs["maps"])
        self.tenon("run", self.path("pipeline.onnx"), "-i", given, "--expect", self.path("out.json"))
        wrong = self.json("wrong.json", {"maps": [{"a": 0.1, "b": "nan"}, {"a": "-inf", "b": 4.5}]})
        _, said = self.tenon("run", self.path("pipeline.onnx"), "-i", given, "--expect", wrong, status=DIFFER)
        self.assertIn("output 'maps': [1][b]: 4.0 where 4.5 is expected", said)

    def test_run_with_arrays(self):
        words = np.array(["red", "a long one", ""])
        np.save(self.path("word.npy"), words)
        np.savez(self.path("in.npz"), x=np.zeros((3, 2), np.float32))
        rest = self.json("rest.json", {"all": [], "may": [1.0]})
        self.tenon("run", self.path("pipeline.onnx"), "-i", f"word={self.path('word.npy')}", "-i", self.path("in.npz"), "-i", rest,
                   "-o", f"twice={self.path('twice.npy')}", "-o", f"is={self.path('is.npy')}")
        self.assertEqual(np.load(self.path("twice.npy")).tolist(), [w + w for w in words])
        self.assertEqual(np.load(self.path("is.npy")).tolist(), True)
        np.save(self.path("bytes.npy"), np.array([b"ab", b"c", b""]))
        out, _ = self.tenon("run", self.path("pipeline.onnx"), "-i", f"word={self.path('bytes.npy')}", "-i", self.path("in.npz"), "-i", rest)
        self.assertIn('["abab","cc",""]', out)
        _, said = self.tenon("run", self.path("pipeline.onnx"), "-i", f"word={self.path('word.npy')}", "-i", self.path("in.npz"), "-i", rest,
                             "-o", self.path("all.npz"), status=INPUT)
        self.assertIn("output 'maps' is no tensor; write it to a .json file", said)

    def test_bad_inputs(self):
        for change, said in (({"word": [1]}, "input 'word' (string): expected strings, but got 1"), ({"x": [[1, 2], [3]]}, "expected lists of one length"),
                             ({"all": 5}, "input 'all' (sequence(float32)): expected a list as a sequence"), ({"x": [["one", 2]]}, "element [0, 0] is \"one\""),
                             ({"nobody": 1}, "there is no input 'nobody'"), ({"all": [{"shape": [2], "data": [1]}]}, "expected 2 elements of shape 2")):
            given = self.json("bad.json", self.inputs | change)
            _, text = self.tenon("run", self.path("pipeline.onnx"), "-i", given, status=INPUT)
            self.assertIn(said, text)
        for content in ("{", "[1]", "[" * 100_000):
            self.tenon("run", self.path("pipeline.onnx"), "-i", self.json("bad.json", content), status=5 if len(content) > 10 else INPUT)
        _, said = self.tenon("run", self.path("pipeline.onnx"), "-i", self.json("part.json", {"x": [[1, 2]]}), status=INPUT)
        self.assertIn("input 'word' (string n) is not given", said)

    def test_bench(self):
        out, _ = self.tenon("bench", self.path("pipeline.onnx"), "-i", self.json("in.json", self.inputs), "--repeat", "5")
        self.assertIn("of 5 runs", out)

    def test_where_there_is_none(self):
        """C source has no programs; what makes one of a network is named, and what needs none is taken with a fact about sizes."""
        node, tensor = helper.make_node, helper.make_tensor_value_info
        more = helper.make_graph([node("Unsqueeze", ["x", "axes"], ["a"])], "then", [], [tensor("a", TensorProto.FLOAT, None)],
                                 [helper.make_tensor("axes", TensorProto.INT64, [1], [0])])
        same = helper.make_graph([node("Identity", ["x"], ["b"])], "else", [], [tensor("b", TensorProto.FLOAT, None)])
        branches = [node("If", ["c"], ["y"], then_branch=more, else_branch=same)]
        c, x = tensor("c", TensorProto.BOOL, []), tensor("x", TensorProto.FLOAT, [3, 2])
        models = {"branches": (branches, [c, x]), "behind": ([*branches[:1], node("Relu", ["y"], ["z"])], [c, x]),
                  "squeezed": ([node("Squeeze", ["x"], ["y"])], [tensor("x", TensorProto.FLOAT, ["n", 1, 4])])}
        for name, (nodes, inputs) in models.items():
            graph = helper.make_graph(nodes, "g", inputs, [tensor(nodes[-1].output[0], TensorProto.FLOAT, None)])
            onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), self.path(f"{name}.onnx"))
        for name, says in (("pipeline", "strings, sequences"), ("branches", "branches and loops"), ("behind", "tensors whose rank")):
            _, said = self.tenon("compile", self.path(f"{name}.onnx"), "-o", self.path("m.c"), status=1)
            self.assertRegex(said, f"{says}.* not supported in C source")
        self.tenon("compile", self.path("squeezed.onnx"), "-o", self.path("m.c"), "--shape", "x:n[2..8]x1x4")

    def test_numbers_as_json(self):
        graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.INT64, ["n"])],
                                  [helper.make_tensor_value_info("y", TensorProto.INT64, ["n"])])
        onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), self.path("add.onnx"))
        big = 2**53 + 1
        self.tenon("run", self.path("add.onnx"), "-i", self.json("in.json", {"x": [big, -1]}), "-o", self.path("out.json"))
        self.assertEqual(json.loads((self.dir / "out.json").read_text()), {"y": [2 * big, -2]})

    def test_the_example_builds_and_runs(self):
        """Of networks with values of every type, and with results whose rank only the call knows."""
        f16, node, tensor = TensorProto.FLOAT16, helper.make_node, helper.make_tensor_value_info
        more = helper.make_graph([node("Unsqueeze", ["x", "axes"], ["a"])], "then", [], [tensor("a", TensorProto.FLOAT, None)],
                                 [helper.make_tensor("axes", TensorProto.INT64, [1], [0])])
        same = helper.make_graph([node("Identity", ["x"], ["b"])], "else", [], [tensor("b", TensorProto.FLOAT, None)])
        ranks = helper.make_graph([node("If", ["c"], ["y"], then_branch=more, else_branch=same)], "g",
                                  [tensor("c", TensorProto.BOOL, []), tensor("x", TensorProto.FLOAT, ["n", 2])], [tensor("y", TensorProto.FLOAT, None)])
        halves = helper.make_graph([node("Exp", ["x"], ["y"])], "g", [tensor("x", f16, [2, 3])], [tensor("y", f16, [2, 3])])
        for name, graph in (("ranks", ranks), ("halves", halves)):
            onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), self.path(f"{name}.onnx"))
        said = {"pipeline": ['twice: ""', "maps: 0 0", "more: 0", "is: 1"], "ranks": ["y: 0 0"], "halves": ["y: 1 1 1 1 1 1"]}
        for name, lines in said.items():
            with self.subTest(name):
                self.tenon("compile", self.path(f"{name}.onnx"), "-o", self.path(name) + "/")
                self.assertEqual({p.name for p in (self.dir / name).iterdir()}, {"model.so", "metadata.json", "inference_example.cpp"})
                program = self.build("example", self.dir / name / "inference_example.cpp")
                done = subprocess.run([program], cwd=self.dir / name, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                for line in lines:
                    self.assertIn(line + "\n", done.stdout)
        np.savez(self.path("ranks.npz"), c=np.array(True), x=np.arange(6, dtype=np.float32).reshape(3, 2))
        out, _ = self.tenon("run", self.path("ranks.onnx"), "-i", self.path("ranks.npz"), "-o", self.path("y.npz"))
        self.assertEqual(np.load(self.path("y.npz"))["y"].shape, (1, 3, 2))
        out, _ = self.tenon("inspect", self.path("ranks/model.so"))
        self.assertIn("float32 of unknown shape", out)
        self.tenon("bench", self.path("ranks.onnx"), "-i", self.path("ranks.npz"), "--repeat", "3")

    def test_cpp(self):
        self.tenon("compile", self.path("pipeline.onnx"), "-o", self.path("pipeline.so"))
        (self.dir / "values.cc").write_text(PROGRAM)
        program = self.build("values", self.dir / "values.cc")
        done = subprocess.run([program], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(), [
            "2 redred, a long blue worda long blue word, b=0.25 b=0.75 3 0", "the value is not a string",
            "argument `word`: expected a tensor of strings: an array of its shape and of its elements"])
