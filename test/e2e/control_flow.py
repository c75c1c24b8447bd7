"""Networks whose operators hold graphs: a branch, and a loop that carries state. Needs onnx and onnxruntime."""
import re
import subprocess

import numpy as np

import harness
from networks import BOOL, FLOAT, INT64, OnnxCase, graph, info, node


class ControlFlow(OnnxCase):
    SIZE = (96, 128)  # enough work for two workers

    def branch(self, width):
        """Its condition is computed; the branches have other operators, and weights of their own."""
        shape = (self.SIZE[0], width)
        yes = graph([node("MatMul", ["t", "w"], ["m"]), node("Softmax", ["m"], ["yes"])], [], [info("yes", FLOAT, *shape)], {"w": self.weight(width, width)})
        no = graph([node("Add", ["x", "bias"], ["a"]), node("Sigmoid", ["a"], ["s"]), node("Mul", ["s", "t"], ["no"])], [], [info("no", FLOAT, *shape)],
                   {"bias": self.weight(width)})
        return graph([node("Exp", ["x"], ["t"]), node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "zero"], ["c"]),
                      node("If", ["c"], ["r"], then_branch=yes, else_branch=no), node("Add", ["r", "t"], ["y"])],
                     [info("x", FLOAT, *shape)], [info("y", FLOAT, *shape)], {"zero": np.float32(0)})

    def test_branches_that_differ(self):
        self.write(self.branch(self.SIZE[1]))
        x = self.random.standard_normal(self.SIZE).astype(np.float32) / 4
        self.check([{"x": x + 0.1}, {"x": x - 0.1}])

    def loop(self, size, weight, threshold):
        """A recurrent cell that runs until its state is small, or as often as it may."""
        body = graph([node("MatMul", ["h", "w"], ["m"]), node("Add", ["m", "u"], ["a"]), node("Tanh", ["a"], ["h2"]), node("ReduceMax", ["h2"], ["top"], keepdims=0),
                      node("Less", ["least", "top"], ["go"])],
                     [info("i", INT64), info("c", BOOL), info("h", FLOAT, *size)], [info("go", BOOL), info("h2", FLOAT, *size)],
                     {"w": weight, "least": np.float32(threshold)})
        return graph([node("Mul", ["x", "scale"], ["u"]), node("Loop", ["most", "", "x"], ["last"], body=body), node("Relu", ["last"], ["y"])],
                     [info("x", FLOAT, *size), info("most", INT64)], [info("y", FLOAT, *size)], {"scale": np.float32(0.125)})

    def test_a_loop_that_carries_state(self):
        self.write(self.loop(self.SIZE, self.weight(self.SIZE[1], self.SIZE[1]) / 2, 0.55))
        x = self.random.standard_normal(self.SIZE).astype(np.float32)
        self.check([{"x": x, "most": np.array(most, np.int64)} for most in (0, 1, 4, 30)])

    def test_the_interpreter_gives_what_the_library_gives(self):
        body = graph([node("Add", ["h", "x"], ["a"]), node("Mul", ["a", "two"], ["h2"]), node("Add", ["n", "one"], ["n2"]), node("Less", ["n2", "most"], ["go"])],
                     [info("i", INT64), info("c", BOOL), info("h", FLOAT, 4), info("n", INT64)],
                     [info("go", BOOL), info("h2", FLOAT, 4), info("n2", INT64)], {"two": np.float32(2), "one": np.int64(1)})
        yes = graph([node("Loop", ["", "", "x", "start"], ["p", "q"], body=body)], [], [info("p", FLOAT, 4), info("q", INT64)], {})
        no = graph([node("Neg", ["x"], ["p2"]), node("Identity", ["most"], ["q2"])], [], [info("p2", FLOAT, 4), info("q2", INT64)], {})
        self.write(graph([node("If", ["flag"], ["y", "n"], then_branch=yes, else_branch=no)],
                         [info("flag", BOOL), info("x", FLOAT, 4), info("start", INT64), info("most", INT64)], [info("y", FLOAT, 4), info("n", INT64)], {}))
        lowered, _ = self.tenon("compile", self.path("net.onnx"), "-o", self.path("net.so"), "--print-after", "lower", "-O0")
        self.dir.joinpath("lowered.txt").write_text(re.sub(r"(?m)^(?!func|[ })]|$).*$", "", lowered))
        for flag, start, most in ((1, 0, 4), (1, 7, 3), (0, 0, 4)):
            x = np.array([1, -2, 3, 0], np.float32)
            inputs = {"flag": np.array(bool(flag)), "x": x, "start": np.array(start, np.int64), "most": np.array(most, np.int64)}
            self.tenon("run", self.path("net.so"), "-i", self.save("in.npz", inputs), "-o", self.path("out.npz"))
            library = np.load(self.path("out.npz"))
            for team in ("1", "2"):
                done = subprocess.run([harness.options.build / "bin" / "tenon-opt", "--interpret", "--function", "main", "--team", team, "--set", f"flag={flag}", "--set",
                                       "x=1,-2,3,0", "--set", f"start={start}", "--set", f"most={most}", self.path("lowered.txt")], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                said = {name: [float(n) for n in re.findall(r"-?[\d.]+", values)]
                        for name, values in re.findall(r"out (\w+): \w+\[\d*\] =\n? *([^:]*?)(?=\n\S|\Z)", done.stdout)}
                for name in ("y", "n"):
                    self.assertEqual(said[name], library[name].ravel().tolist(), done.stdout)
