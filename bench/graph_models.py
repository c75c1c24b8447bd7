"""Kernels of the tuning suites, graphs of a few nodes as text, as ONNX models: what peers read."""

import re

import numpy as np
import onnx
from onnx import helper, numpy_helper

# As a graph's text and ONNX name them; what is not here has the same name.
TYPES = {"f32": np.float32, "u8": np.uint8, "i8": np.int8, "i32": np.int32}
VALUE = r'%(\d+)(?: "(\w+)")?: (\w+)\[([\d, ]*)\]'


def parse(text):
    """Inputs (number, name, type, dims), nodes (result, operator, operands, attributes), and the output's number."""
    head, *lines = text.strip().split("\n")
    inputs = [(int(n), name, dtype, dims_of(dims)) for n, name, dtype, dims in re.findall(VALUE, head)]
    nodes = []
    for line in lines:
        node = re.match(r"\s*%(\d+): (\w+)\[([\d, ]*)\] = (\w+)\(([^)]*)\)(?: \{(.*)\})?", line)
        if node:
            n, dtype, dims, op, operands, attributes = node.groups()
            pairs = re.findall(r'(\w+): (\[[^\]]*\]|"[^"]*"|[^,]+)', attributes or "")
            nodes.append((int(n), (dtype, dims_of(dims)), op, [int(o) for o in re.findall(r"%(\d+)", operands)], {k: attribute(v) for k, v in pairs}))
    return inputs, nodes, int(re.search(r"return %(\d+)", text).group(1))


def dims_of(text):
    return [int(d) for d in text.split(",") if d.strip()]


def attribute(text):
    if text.startswith("["):
        return [int(x) for x in text[1:-1].split(",")]
    return text.strip('"') if text.startswith('"') else float(text) if "." in text else int(text)


def node(op, operands, out, shapes, has):
    """ONNX's node of one of a graph's."""
    rank = len(shapes[0])
    if op == "matmul":
        integers = has["dtype"] == "i32"
        return helper.make_node("MatMulInteger" if integers else "MatMul", operands, [out])
    if op == "conv":
        spatial = rank - 2
        return helper.make_node("Conv", operands, [out], kernel_shape=shapes[1][2:], group=has.get("group", 1), pads=has.get("pads", [0] * 2 * spatial), strides=has.get("strides", [1] * spatial))
    if op in ("max_pool", "avg_pool"):
        spatial = rank - 2
        return helper.make_node("MaxPool" if op == "max_pool" else "AveragePool", operands, [out], kernel_shape=has["kernel"], pads=has.get("pads", [0] * 2 * spatial), strides=has.get("strides", [1] * spatial))
    if op == "softmax":
        return helper.make_node("Softmax", operands, [out], axis=has["axis"])
    if op == "layer_norm":
        return helper.make_node("LayerNormalization", operands, [out], axis=has["axis"])
    if op == "reduce" and has["kind"] == "mean":
        return helper.make_node("ReduceMean", [*operands, "axes"], [out], keepdims=0)
    if op == "attention":
        return helper.make_node("Attention", operands, [out], scale=has["scale"])
    plain = {"add": "Add", "relu": "Relu", "gelu": "Gelu"}
    if op in plain:
        return helper.make_node(plain[op], operands, [out])
    raise ValueError(f"there is no node of ONNX here for '{op}'")


def model(text, copies=1, seed=0):
    """The kernel `copies` times, side by side, each on inputs of its own; operands named w and b are constants, which the copies share.
    The model, and its inputs."""
    inputs, nodes, result = parse(text)
    rng = np.random.default_rng(seed)

    def numbers(dtype, dims):
        kind = np.dtype(TYPES[dtype])
        if kind.kind == "f":
            return rng.standard_normal(dims).astype(kind)
        return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, dims).astype(kind)

    constants, feeds, given, made, results = {}, {}, [], [], []
    for n, name, dtype, dims in inputs:
        if name in ("w", "b"):
            constants[f"v{n}"] = numbers(dtype, dims)
    axes = next((a["axes"] for _, _, op, _, a in nodes if op == "reduce"), None)
    if axes:
        constants["axes"] = np.array(axes, np.int64)
    for c in range(copies):
        names = {n: f"v{n}" if f"v{n}" in constants else f"v{n}_{c}" for n, *_ in inputs}
        shapes = {n: dims for n, _, _, dims in inputs}
        for n, name, dtype, dims in inputs:
            if names[n] not in constants:
                feeds[names[n]] = numbers(dtype, dims)
                given.append(helper.make_tensor_value_info(names[n], helper.np_dtype_to_tensor_dtype(np.dtype(TYPES[dtype])), dims))
        for n, (dtype, dims), op, operands, attributes in nodes:
            names[n], shapes[n] = f"v{n}_{c}", dims
            made.append(node(op, [names[o] for o in operands], names[n], [shapes[o] for o in operands], {**attributes, "dtype": dtype}))
            if n == result:
                results.append(helper.make_tensor_value_info(names[n], helper.np_dtype_to_tensor_dtype(np.dtype(TYPES[dtype])), dims))
    graph = helper.make_graph(made, "kernel", given, results, [numpy_helper.from_array(v, k) for k, v in constants.items()])
    out = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    onnx.checker.check_model(out)
    return out, feeds
