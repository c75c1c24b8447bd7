#!/usr/bin/env python3
"""A model with an open batch, and bert-tiny with an open sequence: open_model.py MODEL.onnx OUT.onnx          needs onnx

Exports with fixed sizes hold these where a model with open ones asks its inputs: in the targets of reshapes; bert-tiny's
also in tables of positions and types of tokens, and in the indices that spread the mask. Weights, also those in the file
beside the model, stay as they are, so at the sizes of the export OUT computes what MODEL does.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper


def constant(name, value, dtype=np.int64):
    return numpy_helper.from_array(np.array(value, dtype), name)


def without(nodes, *results):
    """The nodes but for those that give these results."""
    return [node for node in nodes if not set(node.output) & set(results)]


def reshaped(nodes, targets):
    """The nodes with reshapes to these targets, where 0 stands for the operand's own size."""
    return [helper.make_node("Reshape", node.input, node.output, name=node.name)
            if node.op_type == "Reshape" and node.input[1] in targets else node for node in nodes]


def rebuilt(model, nodes, initializers, *names, single=()):
    """The model with other nodes and initializers; `names`: of the first axes of inputs and outputs, but that those in
    `single` have the first of these alone."""
    graph = model.graph

    def info(value):
        tensor = value.type.tensor_type
        own = [dim.dim_value for dim in tensor.shape.dim]
        named = list(names[:1] if value.name in single else names)
        return helper.make_tensor_value_info(value.name, tensor.elem_type, named + own[len(named):])

    made = helper.make_graph(nodes, graph.name, [info(v) for v in graph.input], [info(v) for v in graph.output], initializers)
    return helper.make_model(made, opset_imports=model.opset_import, ir_version=model.ir_version)


def with_open_batch(model):
    """A network of images: what is reshaped is so from its first axis on, and that is the batch."""
    graph = model.graph
    used = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    targets = {i.name: [0, *numpy_helper.to_array(i)[1:].tolist()] for i in graph.initializer
               if i.name in used and numpy_helper.to_array(i)[0] == 1}
    initializers = [i for i in graph.initializer if i.name not in targets]
    initializers += [constant(name, value) for name, value in targets.items()]
    return rebuilt(model, reshaped(graph.node, targets), initializers, "batch")


def open_bert(model):
    graph = model.graph
    # Batch and sequence are the first two axes.
    targets = {"val_62": [0, 0, -1, 64], "val_110": [0, 0, -1]}
    nodes = reshaped(graph.node, targets)
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
    return rebuilt(model, nodes, initializers, "batch", "seq", single=["pooler_output"])


def main():
    source, out = sys.argv[1:]
    model = onnx.load(source, load_external_data=False)
    bert = pathlib.Path(source).stem == "bert-tiny"
    onnx.save(open_bert(model) if bert else with_open_batch(model), out)


if __name__ == "__main__":
    main()
