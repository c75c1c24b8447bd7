import json
import subprocess
import sys

import harness
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
        self.assertEqual((info["kind"], info["abi"], len(info["kernels"])), ("artifact", 5, 3))
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

    def test_all_that_is_unsupported_is_a_list(self):
        try:
            from onnx import TensorProto, helper, save
        except ImportError:
            self.skipTest("needs onnx")
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
        body = helper.make_graph([helper.make_node("Turn", ["x"], ["t"], name="inside", domain="org.other")], "body", [],
                                 [helper.make_tensor_value_info("t", TensorProto.FLOAT, ["n", 4])])
        nodes = [helper.make_node("Frobnicate", ["x"], ["a"], name=f"node{i}") for i in range(30)]
        nodes += [helper.make_node("Relu", ["x"], ["b"], name="odd", q=1), helper.make_node("Relu", ["x"], ["d"], name="odder", q=1),
                  helper.make_node("Relu", ["a"], ["unseen"], name="after", q=1),
                  helper.make_node("If", ["c"], ["y"], name="if", then_branch=body, else_branch=body)]
        for i, node in enumerate(nodes[:30]):
            node.output[0] = "a" if i == 0 else f"a{i}"
        graph = helper.make_graph(nodes, "g", [x, helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
                                  [helper.make_tensor_value_info("b", TensorProto.FLOAT, ["n", 4])])
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid("org.other", 3)]),
             self.path("m.onnx"))
        out, err = self.tenon("inspect", self.path("m.onnx"), "--json", status=INPUT)
        listed = {(u["operator"], u["domain"], u["version"]): u for u in json.loads(out)["unsupported"]}
        self.assertEqual(set(listed), {("Frobnicate", "ai.onnx", 13), ("Turn", "org.other", 3), ("Relu", "ai.onnx", 13)})
        self.assertEqual(len(listed["Frobnicate", "ai.onnx", 13]["nodes"]), 30)
        self.assertEqual(listed["Turn", "org.other", 3]["reason"], "the operator is not supported")
        self.assertIn("node 'inside' (Turn)", listed["Turn", "org.other", 3]["nodes"])
        # What depends on a node that cannot be imported is not looked at.
        relu = listed["Relu", "ai.onnx", 13]
        self.assertEqual(relu["nodes"], ["node 'odd' (Relu)", "node 'odder' (Relu)"])
        self.assertIn("'q'", relu["reason"])
        for words in ["'Frobnicate'", "(30 nodes)", "'Turn'", "odder"]:
            self.assertIn(words, err)

    def test_weights_stay_in_their_file(self):
        """1.2 GB of them are neither read nor copied."""
        try:
            from onnx import TensorProto, helper, save
        except ImportError:
            self.skipTest("needs onnx")
        rows = 300_000
        w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[rows, 1000], data_location=TensorProto.EXTERNAL)
        w.external_data.add(key="location", value="w.bin")
        with open(self.path("w.bin"), "wb") as file:
            file.truncate(rows * 4000)
        graph = helper.make_graph([helper.make_node("Gather", ["w", "i"], ["y"])], "g",
                                  [helper.make_tensor_value_info("i", TensorProto.INT64, [2])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 1000])], [w])
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), self.path("m.onnx"))
        program = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, capture_output=True);"
        program += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        command = [sys.executable, "-c", program, str(harness.options.build / "bin" / "tenon"), "inspect", self.path("m.onnx")]
        kib = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        self.assertLess(kib, 300 << 10)
