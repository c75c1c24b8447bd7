#!/usr/bin/env python3
"""Asks ONNX Runtime about random networks: what `graph_fuzz --keep FOLDER` left there.

    graph_fuzz --seed 1 --count 1000 --keep FOLDER
    python3 test/fuzz/graph/ort_peer.py FOLDER

Each network is called with the inputs that the fuzzer used; results are compared with those of Tenon's interpreter, as far
apart as the fuzzer allows (element.h) times --slack. What ONNX Runtime does not take is counted, not an error. Exit status
0: no difference, 1: some, 77: there is no ONNX Runtime.
"""

import argparse
import collections
import json
import pathlib
import sys

SKIPPED = 77


def array(numpy, entry):
    data = [float(x) if isinstance(x, str) else x for x in entry["data"]]
    return numpy.array(data, numpy.float64).astype(entry["type"]).reshape(entry["dims"])


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
        import onnxruntime
    except ImportError:
        print("skipped: no onnxruntime")
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
            found = [compare(numpy, name, want, got, args.slack * want["within"])
                     for (name, want), got in zip(call["outputs"].items(), result)]
            found = [text for text in found if text]
            if found:
                counts["different"] += 1
                print(f"--seed {path.stem} --count 1: {found[0]}")
                break
    for key, count in counts.most_common():
        print(f"{count:>6}  {key}")
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
