#!/usr/bin/env python3
"""The types that the importer infers for the official ONNX node tests, against the outputs that the tests give.

Usage: check_node_tests.py ONNX_TO_GRAPH [--ops Name …] [--verbose]      needs: pip install onnx numpy
Parameters of the nodes are made constants (freeze.py). Prints what is not imported, grouped by reason; fails where an
imported graph has another output type than the test.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx.backend.test import loader

from freeze import freeze

NAMES = {"float32": "f32", "float64": "f64", "float16": "f16", "bool": "bool", "bfloat16": "bf16"}


def type_text(array) -> str:
    name = NAMES.get(array.dtype.name) or array.dtype.name.replace("uint", "u").replace("int", "i")
    return f"{name}[{', '.join(map(str, array.shape))}]"


def output_types(text: str) -> list:
    """Those of the graph itself: what is indented further belongs to graphs inside, whose values have the same names."""
    text = "\n".join(line for line in text.splitlines() if not line.startswith("   "))
    types = dict(re.findall(r"(%\d+)(?: \"(?:[^\"\\]|\\.)*\")?: (\w+\[[^\]]*\])", text))
    returned = re.search(r"^  return (.*)$", text, re.M).group(1)
    return [types[value] for value in re.findall(r"%\d+", returned)]


def fits(inferred: str, expected: str) -> bool:
    """Sizes that depend on values have names."""
    parts = zip(re.split(r"[\[\], ]+", inferred), re.split(r"[\[\], ]+", expected), strict=False)
    return inferred.count(",") == expected.count(",") and all(a == b or re.fullmatch(r"[A-Za-z_]+", a) for a, b in parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("onnx_to_graph")
    parser.add_argument("--ops", nargs="*")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    passed, wrong, reasons = 0, [], collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as tmp:
        cases = []
        for test in loader.load_model_tests(kind="node"):
            ops = {node.op_type for node in test.model.graph.node}
            if args.ops and not ops <= set(args.ops):
                continue
            inputs, outputs = test.data_sets[0]
            if not all(isinstance(x, np.ndarray) or np.isscalar(x) for x in [*inputs, *outputs]):
                continue  # sequences, optionals
            arrays = {info.name: np.asarray(x) for info, x in zip(test.model.graph.input, inputs)}
            try:
                model = freeze(test.model, arrays)
            except Exception as error:  # an element type that numpy_helper cannot write
                reasons[f"not frozen: {error}"[:100]].append(test.name)
                continue
            path = pathlib.Path(tmp) / f"{test.name}.onnx"
            path.write_bytes(model.SerializeToString())
            cases.append((test.name, path, [type_text(np.asarray(x)) for x in outputs]))
        run = subprocess.run([args.onnx_to_graph, *[str(path) for _, path, _ in cases]], capture_output=True, text=True)
        if run.returncode not in (0, 1):
            print(f"onnx_to_graph ended with {run.returncode}: {run.stderr[-500:]}")
            return 2
        texts = dict(re.findall(r"^// (/\S+\.onnx)\n((?:(?!// /).*\n)*)", run.stdout, re.M))
        for name, path, expected in cases:
            text = texts[str(path)]
            if text.startswith("// error"):
                reasons[re.sub(r"^[^:]*: ", "", text.splitlines()[0][10:])].append(name)
            elif all(map(fits, output_types(text), expected)):
                passed += 1
            else:
                wrong.append(f"{name}: {output_types(text)}, expected {expected}")
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(names):4d} not imported: {reason}" + (f"\n       {' '.join(names)}" if args.verbose else f" ({names[0]})"))
    print(*wrong, sep="\n")
    print(f"{passed} as expected, {len(wrong)} wrong, {sum(map(len, reasons.values()))} not imported")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
