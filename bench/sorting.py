#!/usr/bin/env python3
"""What sorts, picks and updates, beside ONNX Runtime, in turns: milliseconds of a session's call with one thread, and the ratio.

    bench/sorting.py [--only WORD …]

Both have the same numbers; a result that differs is said to. For a quiet machine."""
import argparse
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from tenon import onnxruntime as here

from peers import InProcess, race

random = np.random.default_rng(0)


def network(op, inputs, constants, outputs, **attrs):
    """A model of one node. Inputs are arrays, and so are constants, which come behind them."""
    names = [f"x{i}" for i in range(len(inputs))]
    info = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in zip(names, inputs)]
    held = [numpy_helper.from_array(np.array(c), f"c{i}") for i, c in enumerate(constants)]
    results = [f"y{i}" for i in range(len(outputs))]
    node = helper.make_node(op, [*names, *(t.name for t in held)], results, **attrs)
    graph = helper.make_graph([node], op, info, [helper.make_tensor_value_info(n, t, None) for n, t in zip(results, outputs)], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return model.SerializeToString(), dict(zip(names, inputs))


def normal(*shape):
    return random.standard_normal(shape).astype(np.float32)


def boxes(number, classes):
    corners = random.random((1, number, 2)) * 600
    sizes = random.random((1, number, 2)) * 60 + 10
    return [np.concatenate([corners, corners + sizes], 2).astype(np.float32), (random.random((1, classes, number)) ** 4).astype(np.float32)]


def cases():
    f32, i64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    for shape, k in (((25200,), 300), ((8400,), 8400), ((64, 1000), 1000), ((1, 50257), 50), ((2000, 64), 2)):
        yield f"TopK, {k} of {shape}", network("TopK", [normal(*shape)], [[k]], [f32, i64])
    yield "Unique of 30000", network("Unique", [np.round(normal(30000) * 1000)], [], [f32, i64, i64, i64])
    # Whole numbers, so that sums in any order are equal.
    updates = [np.round(normal(100000) * 8), random.integers(0, 100000, 100000), np.round(normal(100000) * 8)]
    yield "ScatterElements, 100000 sums", network("ScatterElements", updates, [], [f32], reduction="add")
    rows = [np.round(normal(4096, 64) * 8), random.integers(0, 4096, (4096, 1)), np.round(normal(4096, 64) * 8)]
    yield "ScatterND, 4096 rows of 64", network("ScatterND", rows, [], [f32], reduction="add")
    for number, classes, most, least in ((3000, 5, 100, 0.5), (3000, 5, 100, None), (8400, 80, 300, 0.25)):
        limits = [[most], np.float32([0.5]), *([] if least is None else [np.float32([least])])]
        title = f"NonMaxSuppression, {number} boxes, {classes} classes, {most} of each, scores above {least}"
        yield title, network("NonMaxSuppression", boxes(number, classes), limits, [i64])


def sessions(model):
    for module in (here, onnxruntime):
        options = module.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        yield module.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="cases with one of these words")
    args = parser.parse_args()
    print(f"{'':72} {'here':>8} {'ORT':>8} {'ratio':>6}")
    differ = 0
    for title, (model, feeds) in cases():
        if args.only and not any(word in title for word in args.only):
            continue
        pair = list(sessions(model))
        results = [s.run(None, feeds) for s in pair]
        same = all(np.array_equal(a, b) for a, b in zip(*results))
        differ += not same
        seconds, ratios = race([InProcess(lambda s=s: s.run(None, feeds)) for s in pair])
        print(f"{title:72} {seconds[0] * 1e3:8.3f} {seconds[1] * 1e3:8.3f} {1 / ratios[1]:6.2f}{'' if same else '  results differ'}", flush=True)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
