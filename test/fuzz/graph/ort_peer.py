#!/usr/bin/env python3
"""Asks ONNX Runtime about random networks: what `graph_fuzz --keep FOLDER` left there.

    graph_fuzz --seed 1 --count 1000 --keep FOLDER
    python3 test/fuzz/graph/ort_peer.py FOLDER

Each network is called with the inputs that the fuzzer used; results are compared with those of Tenon's interpreter, as far
apart as the fuzzer allows (element.h) times --slack. What ONNX Runtime does not take is counted, not an error, and so are
differences that were looked at (KNOWN). Exit status 0: no other difference, 1: some, 77: there is no ONNX Runtime.
"""

import argparse
import collections
import json
import pathlib
import sys

SKIPPED = 77

# Operator, its element type or None, how far apart results that depend on it may be then (of a result of 1; more of larger
# ones), and why. ONNX Runtime 1.31 and Tenon; the specification and its reference evaluator are on Tenon's side in all.
KNOWN = (
    ("Gelu", "float64", 1e-7, "its constants are of float32"),
    ("Attention", "float64", 1e-6, "its scale is of float32"),
    ("DFT", "float64", 1e-6, "the inverse divides by a number of float32"),
    ("GroupNormalization", "float64", 1e-6, "stage one is of float32 (stash_type), Tenon's of float64"),
    ("AffineGrid", None, float("inf"), "an axis of one element with align_corners"),
    ("QLinearAdd", None, 1, "halves are rounded after the zero point was added"),
    ("QLinearMul", None, 1, "halves are rounded after the zero point was added"),
)


def array(numpy, entry):
    data = [float(x) if isinstance(x, str) else x for x in entry["data"]]
    return numpy.array(data, numpy.float64).astype(entry["type"]).reshape(entry["dims"])


def known_reasons(model, name, types):
    """Rows of KNOWN whose operator a value depends on. `types`: element types of values by name, as far as they are known."""
    makers = {out: node for node in model.graph.node for out in node.output}
    rows, waiting, seen = [], [name], set()
    while waiting:
        node = makers.get(waiting.pop())
        if node is None or node.output[0] in seen:
            continue
        seen.add(node.output[0])
        waiting += node.input
        near = {types.get(v) for v in (*node.input, *node.output)}
        rows += [row for row in KNOWN if row[0] == node.op_type and (row[1] is None or row[1] in near)]
    return rows


def types_of(onnx, model):
    """Names of element types, as NumPy has them."""
    graph = model.graph
    typed = [(v.name, v.type.tensor_type.elem_type) for v in (*graph.input, *graph.value_info, *graph.output)]
    typed += [(v.name, v.data_type) for v in graph.initializer]
    return {name: str(onnx.helper.tensor_dtype_to_np_dtype(number)) for name, number in typed if number}


def explained(onnx, numpy, path, name, want, got):
    """Why a result differs as far as it does, or None."""
    model = onnx.load(path)
    if list(got.shape) != want["dims"]:
        return None
    a = numpy.array([float(x) for x in want["data"]], numpy.float64).reshape(want["dims"])
    away = numpy.nanmax(numpy.abs(got.astype(numpy.float64) - a) / numpy.maximum(1, numpy.abs(a)))
    for op, _, allowed, why in known_reasons(model, name, types_of(onnx, model)):
        if away <= allowed:
            return f"{op}: {why}"
    return None


def compare(numpy, name, want, got, within):
    """What is different, or None."""
    if list(got.shape) != want["dims"]:
        return f"'{name}' is {list(got.shape)} instead of {want['dims']}"
    a = numpy.array([float(x) for x in want["data"]], numpy.float64).reshape(want["dims"])
    b = got.astype(numpy.float64)
    wrong = ~((a == b) | (numpy.isnan(a) & numpy.isnan(b)) | (numpy.abs(a - b) <= within))
    if not wrong.any():
        return None
    at = tuple(int(i) for i in numpy.argwhere(wrong)[0])
    return f"'{name}'{list(at)} of {want['dims']}: ONNX Runtime has {b[at]}, Tenon {a[at]} (within {within:.3g})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--slack", type=float, default=2.0, help="times the error that the fuzzer allows")
    args = parser.parse_args()
    try:
        import numpy
        import onnx
        import onnxruntime
    except ImportError:
        print("skipped: no onnxruntime, or no onnx")
        return SKIPPED
    onnxruntime.set_default_logger_severity(4)
    counts = collections.Counter()
    for path in sorted(args.folder.glob("*.onnx"), key=lambda p: int(p.stem)):
        calls = json.loads(path.with_suffix(".json").read_text())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            session = onnxruntime.InferenceSession(path.read_bytes(), options, ["CPUExecutionProvider"])
            results = []
            for call in calls:
                feeds = {name: array(numpy, entry) for name, entry in call["inputs"].items()}
                results.append(session.run(list(call["outputs"]), feeds))
        except Exception as error:  # every kind of refusal has a class of its own
            counts["refused"] += 1
            reason = str(error).split(" : ")
            counts["refused: " + (reason[2] if len(reason) > 2 else reason[0])[:90].split(" node")[0]] += 1
            continue
        counts["compared"] += 1
        for call, result in zip(calls, results):
            found = [(compare(numpy, name, want, got, args.slack * want["within"]), name, want, got)
                     for (name, want), got in zip(call["outputs"].items(), result)]
            found = [(text, explained(onnx, numpy, path, name, want, got)) for text, name, want, got in found if text]
            for reason in {why for _, why in found if why}:
                counts["known: " + reason] += 1
            unknown = [text for text, why in found if not why]
            if unknown:
                counts["different"] += 1
                print(f"--seed {path.stem} --count 1: {unknown[0]}")
                break
    for key, count in counts.most_common():
        print(f"{count:>6}  {key}")
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
