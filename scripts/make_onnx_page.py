#!/usr/bin/env python3
"""Writes the tables of docs/onnx.md: what passes of the official ONNX node tests, per operator and form, and why what does
not; which tests the operators have that no such test is about; and the cases of operators of ONNX Runtime's domain
(test/regress/contrib_cases.py). They stand between lines `<!-- NAME -->` and `<!-- end -->`; the rest of the page is written by
hand.

Usage: make_onnx_page.py [--check]
needs: pip install onnx ml_dtypes numpy

The counts are those of the lists that CI holds (test/conformance/run_node_tests.py); --check writes nothing, and fails where
the page is not what it would write, or an operator has no test at all.
"""
import argparse
import collections
import pathlib
import re
import sys
import warnings

import numpy as np
import onnx
from onnx.backend.test import loader

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test" / "regress"))
import contrib_cases  # noqa: E402

PAGE = ROOT / "docs" / "onnx.md"
FORMS = {"constant": ("node_tests.txt", "node_tests_failing.txt"),
         "fixed": ("node_tests_fixed.txt", "node_tests_fixed_failing.txt"),
         "dynamic": ("node_tests_dynamic.txt", "node_tests_dynamic_failing.txt")}


def lines_of(name: str):
    lines = (line.split("#")[0].strip() for line in (ROOT / "test" / "conformance" / name).read_text().splitlines())
    return [line for line in lines if line]


def operators():
    """The operator that each case is about: its only one, or that of the case that it is the expansion of."""
    warnings.simplefilter("ignore")
    found = {}
    for case in loader.load_model_tests(kind="node"):
        names = sorted({node.op_type for node in case.model.graph.node})
        found[case.name] = names[0] if len(names) == 1 else ""
    for name, op in found.items():
        whole = re.sub(r"_expanded(_ver\d+)?$", "", name)
        if not op and whole != name:
            found[name] = found.get(whole, "")
    return {name: op or "(several)" for name, op in found.items()}


def table(ops) -> str:
    cases = collections.Counter(ops.values())
    passing = {form: collections.Counter(ops[name] for name in lines_of(lists[0]) if name in ops)
               for form, lists in FORMS.items()}
    rows = [f"| operator | cases | {' | '.join(FORMS)} |", "|---" + "|---:" * (1 + len(FORMS)) + "|"]

    def row(name, numbers):
        rows.append(f"| {' | '.join([name, *map(str, numbers)])} |")

    for op in sorted(cases, key=str.lower):
        row(op, [cases[op], *(passing[form][op] for form in FORMS)])
    row("**all**", [sum(cases.values()), *(sum(passing[form].values()) for form in FORMS)])
    return "\n".join(rows)


def reasons(ops) -> str:
    """What does not pass, in any form, by reason."""
    by_reason = collections.defaultdict(lambda: collections.defaultdict(set))
    for form, lists in FORMS.items():
        for line in lines_of(lists[1]):
            name, reason = line.split(": ", 1)
            reason = re.sub(r"'[^']*'?", "…", reason)
            reason = re.sub(r"^\(\w+\): ", "", reason)
            reason = "the answer differs" if reason.startswith("output ") else reason
            reason = "its data are sequences or optionals" if reason.startswith("not read") else reason
            by_reason[reason][ops.get(name, "(several)")].add(name)
    rows = ["| why | operators | cases |", "|---|---|---:|"]
    for reason, found in sorted(by_reason.items(), key=lambda item: -sum(map(len, item[1].values()))):
        names = sorted(found)
        shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
        rows.append(f"| {reason.replace('|', ' ')} | {shown} | {sum(map(len, found.values()))} |")
    return "\n".join(rows)


# What is refused by name.
REFUSED = {"Gradient": "refused: it is a whole graph's derivative"}


def operators_in(graph):
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from operators_in(attribute.g)


def uncovered() -> str:
    """Operators of the specification that no node test has, and the files of tests that name them."""
    covered = {op for case in loader.load_model_tests(kind="node") for op in operators_in(case.model.graph)}
    files = sorted(path for folder in ("regress", "python") for path in (ROOT / "test" / folder).glob("*.py"))
    texts = {path.relative_to(ROOT): path.read_text() for path in files}
    rows = ["| operator | tests |", "|---|---|"]
    for op in sorted({s.name for s in onnx.defs.get_all_schemas() if not s.deprecated} - covered, key=str.lower):
        tests = [f"`{path}`" for path, text in texts.items() if f'"{op}"' in text]
        if not tests and op not in REFUSED:
            raise SystemExit(f"no test is about {op}, which has no node test")
        rows.append(f"| {op} | {', '.join(tests) or REFUSED[op]} |")
    return "\n".join(rows)


def contributed() -> str:
    """The cases of each operator of com.microsoft; those of other domains are other scripts'."""
    cases = collections.Counter()

    def one(name, op, inputs, domain="", **rest):
        cases[op] += domain == contrib_cases.DOMAIN

    contrib_cases.add_all(one, lambda *shape, dtype=np.float32: np.ones(shape, dtype))
    rows = ["| operator | cases |", "|---|---:|"]
    rows += [f"| {op} | {cases[op]} |" for op in sorted(cases, key=str.lower) if cases[op]]
    return "\n".join([*rows, f"| **all** | {sum(cases.values())} |"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    ops = operators()
    page = PAGE.read_text()
    for name, text in (("operators", table(ops)), ("reasons", reasons(ops)), ("uncovered", uncovered()), ("contributed", contributed())):
        page = re.sub(f"(?s)(<!-- {name} -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}\n{text}\n\n{m[2]}", page)
    if not args.check:
        PAGE.write_text(page)
        return 0
    if PAGE.read_text() == page:
        return 0
    print("docs/onnx.md is not what scripts/make_onnx_page.py writes: run it")
    return 1


if __name__ == "__main__":
    sys.exit(main())
