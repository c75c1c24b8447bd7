import json

from harness import Case, INPUT, reference


class Inspecting(Case):
    def test_model(self):
        out, _ = self.tenon("inspect", self.model("bert-tiny"))
        for words in ["ONNX model", "operator set ai.onnx", "inputs:", "outputs:", "MatMul", "weights: "]:
            self.assertIn(words, out)
        out, _ = self.tenon("inspect", self.model("bert-tiny"), "--json")
        model = json.loads(out)
        self.assertEqual({t["name"] for t in model["inputs"]}, set(reference("bert-tiny")[0]))
        self.assertGreater(model["operators"]["MatMul"], 10)

    def test_artifact(self):
        library = self.compile("mlp-4-2")
        out, _ = self.tenon("inspect", library)
        for words in ["Tenon library", "target: llvm", "CPU features needed: ", "matmul", "memory plan", "hash of source"]:
            self.assertIn(words, out)
        out, _ = self.tenon("inspect", library, "--json")
        info = json.loads(out)
        self.assertEqual((info["kind"], info["abi"], len(info["kernels"])), ("artifact", 2, 3))
        self.assertTrue(all(kernel["estimated_us"] > 0 for kernel in info["kernels"]))

    def test_unsupported_operators_are_told_all_at_once(self):
        try:
            from onnx import TensorProto, helper, save
        except ImportError:
            self.skipTest("needs onnx")
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
        nodes = [helper.make_node("Frobnicate", ["x"], ["a"], name="one"), helper.make_node("Relu", ["a"], ["b"]),
                 helper.make_node("Frobnicate", ["b"], ["c"], name="two"),
                 helper.make_node("Turn", ["c"], ["y"], name="three", domain="org.other")]
        graph = helper.make_graph(nodes, "g", [x], [y])
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid("org.other", 1)]),
             self.path("m.onnx"))
        out, err = self.tenon("inspect", self.path("m.onnx"), status=INPUT)
        self.assertRegex(out, r"Frobnicate +2")
        self.assertIn("n x 4", out)
        for words in ["'Frobnicate'", "one", "two", "'Turn'", "three", "org.other"]:
            self.assertIn(words, err)
