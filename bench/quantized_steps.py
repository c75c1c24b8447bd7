#!/usr/bin/env python3
"""How far apart a quantised network's results are: python bench/quantized_steps.py MODEL.onnx [--reference]

Tenon, ONNX Runtime with its optimisations and without, and with --reference ONNX's reference evaluator compute every quantised
value of the network from one input of normal numbers. Printed are the largest distances of the results, in steps of the result's
own numbers, and the first values in which any two differ."""

import argparse
import itertools
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import tenon
from onnx import helper, shape_inference

QUANTISED = ("QuantizeLinear", "QLinear", "QGemm")


def with_outputs(model, names):
    """The model with the quantised values as outputs in front of its own."""
    inferred = shape_inference.infer_shapes(model)
    types = {v.name: v.type.tensor_type.elem_type for v in [*inferred.graph.value_info, *inferred.graph.output]}
    out = onnx.ModelProto()
    out.CopyFrom(model)
    del out.graph.output[:]
    kept = [n for n in names if n in types]
    for name in kept:
        out.graph.output.append(helper.make_tensor_value_info(name, types[name], None))
    return out, kept


def in_runtime(path, feeds, optimised):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options).run(None, feeds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--reference", action="store_true", help="the reference evaluator too, which takes its time")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--values", type=int, default=5, help="how many values that differ are printed")
    options = parser.parse_args()
    model = onnx.load(options.model)
    result = model.graph.output[0].name
    values = [n.output[0] for n in model.graph.node if n.op_type.startswith(QUANTISED) and n.output[0] != result]
    wider, names = with_outputs(model, [*values, result])
    first = model.graph.input[0]
    shape = [d.dim_value or 1 for d in first.type.tensor_type.shape.dim]
    feeds = {first.name: np.random.default_rng(options.seed).standard_normal(shape).astype(np.float32)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wider.onnx"
        onnx.save(wider, path)
        answers = {
            "tenon": [np.asarray(a) for a in tenon.compile(str(path))(feeds[first.name])],
            "runtime": in_runtime(path, feeds, True),
            "runtime, plain": in_runtime(path, feeds, False),
        }
    if options.reference:
        from onnx.reference import ReferenceEvaluator

        answers["reference"] = ReferenceEvaluator(wider).run(None, feeds)
    ends = np.unique(np.concatenate([a[-1].astype(np.float64).ravel() for a in answers.values()]))
    gaps = np.diff(ends)
    step = gaps[gaps > 1e-6 * np.abs(ends).max()].min()
    for a, b in itertools.combinations(answers, 2):
        far = np.abs(answers[a][-1].astype(np.float64) - answers[b][-1]).max()
        print(f"{a} and {b}: {far / step:.2f} steps")
    printed = 0
    for i, name in enumerate(names[:-1]):
        told = []
        for a, b in itertools.combinations(answers, 2):
            far = np.abs(answers[a][i].astype(np.int64) - answers[b][i].astype(np.int64))
            if far.any():
                told.append(f"{a} and {b} in {np.count_nonzero(far)} of {far.size}, by {far.max()} at most")
        if told and printed < options.values:
            print(f"{name}: " + "; ".join(told))
            printed += 1


if __name__ == "__main__":
    main()
