"""Small networks that tests write, and what ONNX Runtime makes of them. Needs onnx and onnxruntime."""
import numpy as np

from harness import Case

try:
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError:
    onnx = None

FLOAT, INT32, INT64, BOOL = 1, 6, 7, 9
node = onnx and helper.make_node


def info(name, kind, *dims):
    return helper.make_tensor_value_info(name, kind, dims)


def graph(nodes, inputs, outputs, constants):
    weights = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    return helper.make_graph(nodes, "graph", inputs, outputs, weights)


class OnnxCase(Case):
    SEED = 7

    def setUp(self):
        super().setUp()
        if onnx is None:
            self.skipTest("onnx and onnxruntime are not installed")
        self.random = np.random.default_rng(self.SEED)

    def weight(self, *shape):
        return (self.random.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32)

    def write(self, main):
        model = helper.make_model(main, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, self.path("net.onnx"))

    def check(self, all_inputs):
        """Every level, alone and by two workers, gives what ONNX Runtime gives."""
        session = onnxruntime.InferenceSession(self.path("net.onnx"), providers=["CPUExecutionProvider"])
        names = [x.name for x in session.get_outputs()]
        for level in ("-O0", "-O1", "-O2"):
            self.tenon("compile", self.path("net.onnx"), "-o", self.path("net.so"), "--verify-each", level)
            for inputs in all_inputs:
                want = dict(zip(names, session.run(None, inputs)))
                given, expected = self.save("in.npz", inputs), self.save("want.npz", want)
                for workers in ("1", "2"):
                    self.tenon("run", self.path("net.so"), "-i", given, "--expect", expected, "--rtol", "1e-4", "--atol", "1e-5",
                               env={"TENON_NUM_THREADS": workers})
