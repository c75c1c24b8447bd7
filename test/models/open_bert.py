#!/usr/bin/env python3
"""bert-tiny with an open batch and sequence: open_bert.py BERT_TINY.onnx OUT.onnx          needs onnx

The export of bert-tiny holds its sizes, 1 and 128, in the targets of its reshapes, in tables of positions and types of
tokens, and in the indices that spread the mask. Here they follow the inputs' shapes; weights, also those in the file
beside the model, stay as they are, so at 1 and 128 it computes what bert-tiny does.
"""
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

SEQ, BATCH = "seq", "batch"


def constant(name, value, dtype=np.int64):
    return numpy_helper.from_array(np.array(value, dtype), name)


def without(nodes, *results):
    """The nodes but for those that give these results."""
    return [node for node in nodes if not set(node.output) & set(results)]


def opened(model):
    graph = model.graph
    # In a reshape, 0 stands for the operand's own size: batch and sequence are the first two axes.
    targets = {"val_62": [0, 0, -1, 64], "val_110": [0, 0, -1]}
    nodes = []
    for node in graph.node:
        if node.op_type == "Reshape" and node.input[1] in targets:
            node = helper.make_node("Reshape", node.input, node.output, name=node.name)
        nodes.append(node)
    # Keys are transposed through three axes: one transposition says the same.
    producers = {node.output[0]: node for node in nodes}
    for last in [n for n in nodes if n.op_type == "Reshape" and n.input[1] == "val_92"]:
        middle = producers[last.input[0]]
        first = producers[middle.input[0]]
        direct = helper.make_node("Transpose", [first.input[0]], last.output, name=last.name, perm=[0, 1, 3, 2])
        at = nodes.index(last)
        nodes[at:at + 1] = [direct]
        nodes = without(nodes, middle.output[0], first.output[0])
    # Types of tokens are 0, positions count up, and a key is masked for all queries alike.
    begin = [
        helper.make_node("Shape", ["input_ids"], ["ids_shape"]),
        helper.make_node("Shape", ["input_ids"], ["seq_size"], start=1, end=2),
        helper.make_node("Squeeze", ["seq_size"], ["seq_number"]),
        helper.make_node("Range", ["zero", "seq_number", "one"], ["positions"]),
        helper.make_node("Unsqueeze", ["positions", "axis_0"], ["slice_1"]),
        helper.make_node("Expand", ["zero", "ids_shape"], ["gather"]),
    ]
    nodes = begin + without(nodes, "gather", "val_48", "bitwise_and_1")
    at = next(i for i, node in enumerate(nodes) if "_to_copy" in node.output)
    nodes.insert(at + 1, helper.make_node("Unsqueeze", ["_to_copy", "axes_1_2"], ["bitwise_and_1"]))
    gone = {"slice_1", "expand", "bitwise_and", "val_47", "val_89", "val_92", *targets}
    initializers = [i for i in graph.initializer if i.name not in gone]
    initializers += [constant(name, value) for name, value in targets.items()]
    initializers += [constant("zero", 0), constant("one", 1), constant("axis_0", [0]), constant("axes_1_2", [1, 2])]
    info = lambda v, dims: helper.make_tensor_value_info(v.name, v.type.tensor_type.elem_type, dims)
    inputs = [info(v, [BATCH, SEQ]) for v in graph.input]
    outputs = [info(graph.output[0], [BATCH, SEQ, 128]), info(graph.output[1], [BATCH, 128])]
    made = helper.make_graph(nodes, graph.name, inputs, outputs, initializers)
    return helper.make_model(made, opset_imports=model.opset_import, ir_version=model.ir_version)


def main():
    source, out = sys.argv[1:]
    onnx.save(opened(onnx.load(source, load_external_data=False)), out)


if __name__ == "__main__":
    main()
