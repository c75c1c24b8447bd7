"""Networks run in the manners of TVM's executors."""

import os
import tempfile
import unittest

import numpy as np

import tenon
from tenon.contrib import graph_executor


def network(folder):
    """y = relu(x + w), z = x * w of a model that is written here."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    w = np.array([1, -2, 3], np.float32)
    nodes = [helper.make_node("Add", ["x", "w"], ["s"]), helper.make_node("Relu", ["s"], ["y"]),
             helper.make_node("Mul", ["x", "w"], ["z"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in "yz"],
                              [numpy_helper.from_array(w, "w")])
    path = os.path.join(folder, "model.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path, w


class Executors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path, cls.w = network(folder)
            cls.lib = tenon.compile(path, name="net")
        cls.x = np.arange(6, dtype=np.float32).reshape(2, 3) - 2

    def test_graph_executor(self):
        module = graph_executor.GraphModule(self.lib["default"](tenon.cpu(0)))
        self.assertEqual((module.get_num_inputs(), module.get_num_outputs()), (1, 2))
        self.assertEqual((module.get_input_index("x"), module.get_input_index("w")), (0, -1))
        with self.assertRaisesRegex(ValueError, "input 'x' was not set"):
            module.run()
        with self.assertRaisesRegex(RuntimeError, "'run' has not been called"):
            module.get_output(0)
        x = self.x.copy()
        module.set_input("x", x)
        x[:] = 100  # set_input has copied
        module.run()
        np.testing.assert_array_equal(module.get_output(0).numpy(), np.maximum(self.x + self.w, 0))
        np.testing.assert_array_equal(module.get_output("z").numpy(), self.x * self.w)
        out = tenon.nd.empty((2, 3))
        module.get_output(1, out)
        np.testing.assert_array_equal(out.numpy(), self.x * self.w)
        module.set_input(0, tenon.nd.array(self.x + 1))
        module.run()
        np.testing.assert_array_equal(module.get_output(1).numpy(), (self.x + 1) * self.w)
        module.run(x=self.x)
        np.testing.assert_array_equal(module.get_output(1).numpy(), self.x * self.w)
        held = tenon.nd.array(self.x)
        module.set_input_zero_copy("x", held)
        held.copyfrom(2 * self.x)
        module["run"]()
        np.testing.assert_array_equal(module["get_output"](1).numpy(), 2 * self.x * self.w)
        with self.assertRaisesRegex(ValueError, "there is no input 'a'; there are 'x'"):
            module.set_input("a", self.x)
        with self.assertRaisesRegex(ValueError, "there is no output 5; there are 'y', 'z'"):
            module.get_output(5)
        self.assertGreater(module.benchmark(tenon.cpu(0), repeat=1, number=1).mean, 0)

    def test_virtual_machine(self):
        vm = self.lib["vm_load_executable"]()
        vm["vm_initialization"](1, 0, 2)
        y, z = vm["net"](self.x)
        np.testing.assert_array_equal(z.numpy(), self.x * self.w)
        np.testing.assert_array_equal(y.numpy(), np.maximum(self.x + self.w, 0))

    def test_other_names_are_refused(self):
        with self.assertRaises(ValueError):
            self.lib["nothing"]
        with self.assertRaises(TypeError):
            graph_executor.GraphModule(self.lib)


if __name__ == "__main__":
    unittest.main()
