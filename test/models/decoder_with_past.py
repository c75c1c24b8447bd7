#!/usr/bin/env python3
"""A decoder as generators of language call it, one step at a time: decoder_with_past.py OUT.onnx [--layers 6]     needs onnx

What exporters of transformers write, with random weights: ids and a mask of all that was seen, keys and values of the past
for each layer in, and with those of the new tokens out. Rotary positions are counted from the mask; the batch, the new tokens and the past
are open, and `past_sequence_length + sequence_length` is the mask's length. With weights of 4 bytes beside the graph.
"""
import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
LEAST = float(np.finfo(np.float32).min)


class Decoder:
    def __init__(self, layers, hidden=576, heads=9, words=8192):
        self.hidden, self.heads, self.size, self.words = hidden, heads, hidden // heads, words
        self.nodes, self.weights, self.rng = [], [], np.random.default_rng(1)
        past = ["batch", heads, "past_sequence_length", self.size]
        total = "past_sequence_length + sequence_length"
        self.inputs = {"input_ids": (INT64, ["batch", "sequence_length"]), "attention_mask": (INT64, ["batch", total])}
        self.outputs = {"logits": (FLOAT, ["batch", "sequence_length", words])}
        for i in range(layers):
            for kind in ("key", "value"):
                self.inputs[f"past_key_values.{i}.{kind}"] = (FLOAT, past)
                self.outputs[f"present.{i}.{kind}"] = (FLOAT, [*past[:2], total, self.size])
        self.before()
        x = self("Gather", self.drawn(words, hidden), "input_ids")
        for i in range(layers):
            x = self("Add", x, self.attention(self.norm(x), i))
            x = self("Add", x, self.perceptron(self.norm(x)))
        self("MatMul", self.norm(x), self.drawn(hidden, words), to="logits")

    def __call__(self, op, *inputs, to=None, **attributes):
        name = to or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def constant(self, value, kind=np.int64):
        self.weights.append(numpy_helper.from_array(np.asarray(value, kind), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def drawn(self, rows, columns):
        return self.constant(self.rng.standard_normal((rows, columns)) / np.sqrt(rows), np.float32)

    def before(self):
        """Angles of the new tokens' places, and what of the past and of themselves they may see."""
        first = self.constant([0])
        counted = self("Sub", self("CumSum", "attention_mask", self.constant(1)), self.constant(1))
        now = self("Shape", "input_ids", start=1, end=2)
        seen = self("Shape", "attention_mask", start=1, end=2)
        past = self("Sub", seen, now)
        places = self("Cast", self("Slice", counted, past, seen, self.constant([1])))
        self.nodes[-1].attribute.append(helper.make_attribute("to", FLOAT))
        angles = self("Mul", self("Unsqueeze", places, self.constant([1, 3])),
                      self.constant(1 / 10000 ** (np.arange(self.size // 2) * 2 / self.size), np.float32))
        angles = self("Concat", angles, angles, axis=-1)
        self.cos, self.sin = self("Cos", angles), self("Sin", angles)
        zero, one = self.constant(0), self.constant(1)
        all_places = self("Range", zero, self("Squeeze", seen, first), one)
        own = self("Slice", all_places, past, seen, first)
        later = self("Less", self("Unsqueeze", own, self.constant([1])), self("Unsqueeze", all_places, first))
        hidden = self("Or", self("Unsqueeze", later, self.constant([0, 1])),
                      self("Equal", self("Unsqueeze", "attention_mask", self.constant([1, 2])), zero))
        self.mask = self("Where", hidden, self.constant(LEAST, np.float32), self.constant(0, np.float32))

    def norm(self, x):
        squares = self("ReduceMean", self("Pow", x, self.constant(2, np.float32)), self.constant([-1]))
        scale = self("Reciprocal", self("Sqrt", self("Add", squares, self.constant(1e-5, np.float32))))
        return self("Mul", self("Mul", x, scale), self.constant(np.ones(self.hidden), np.float32))

    def split(self, x):
        rows = self("Reshape", self("MatMul", x, self.drawn(self.hidden, self.hidden)), self.constant([0, 0, self.heads, self.size]))
        return self("Transpose", rows, perm=[0, 2, 1, 3])

    def turned(self, x):
        half, end, axis = self.constant([self.size // 2]), self.constant([self.size]), self.constant([3])
        back = self("Concat", self("Neg", self("Slice", x, half, end, axis)), self("Slice", x, self.constant([0]), half, axis), axis=-1)
        return self("Add", self("Mul", x, self.cos), self("Mul", back, self.sin))

    def attention(self, x, layer):
        q, k = self.turned(self.split(x)), self.turned(self.split(x))
        k = self("Concat", f"past_key_values.{layer}.key", k, to=f"present.{layer}.key", axis=2)
        v = self("Concat", f"past_key_values.{layer}.value", self.split(x), to=f"present.{layer}.value", axis=2)
        scores = self("Div", self("MatMul", q, self("Transpose", k, perm=[0, 1, 3, 2])), self.constant(np.sqrt(self.size), np.float32))
        y = self("MatMul", self("Softmax", self("Add", scores, self.mask), axis=-1), v)
        rows = self("Reshape", self("Transpose", y, perm=[0, 2, 1, 3]), self.constant([0, 0, self.hidden]))
        return self("MatMul", rows, self.drawn(self.hidden, self.hidden))

    def perceptron(self, x):
        inner = self.hidden * 8 // 3
        gate = self("MatMul", x, self.drawn(self.hidden, inner))
        gate = self("Mul", gate, self("Sigmoid", gate))
        return self("MatMul", self("Mul", gate, self("MatMul", x, self.drawn(self.hidden, inner))), self.drawn(inner, self.hidden))

    def model(self):
        def infos(values):
            return [helper.make_tensor_value_info(name, kind, dims) for name, (kind, dims) in values.items()]
        graph = helper.make_graph(self.nodes, "decoder", infos(self.inputs), infos(self.outputs), self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=6)
    args = parser.parse_args()
    onnx.save(Decoder(args.layers).model(), args.output, save_as_external_data=True, location=args.output.stem + ".weights", size_threshold=1024)


if __name__ == "__main__":
    main()
