"""One library for each model, called many times with other sizes: what onnx_call_sizes.py and onnx_open_sizes.py share.

A case is a model, calls (lists of arrays, in the order of its inputs), calls that fail with what their message says, and who
knows the answers: a function of NumPy, which raises ValueError where arrays do not go together, or ONNX Runtime.
"""
import argparse
import dataclasses
import itertools
import pathlib
import re
import subprocess
import tempfile
from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import tvm_ffi


@dataclasses.dataclass
class Case:
    name: str
    model: onnx.ModelProto
    calls: list[list[np.ndarray]]
    errors: list[tuple[list[np.ndarray], str]] = dataclasses.field(default_factory=list)
    wanted: Callable | None = None  # the first result; None: ONNX Runtime's results
    options: list[str] = dataclasses.field(default_factory=list)  # of tenon compile
    passed_in: bool = True  # arrays for the results may come with the call: their sizes do not depend on values


def _answers(case):
    """A function from feeds to the wanted results, or None where there are none."""
    if case.wanted is None:
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]
        return lambda feeds: session.run(None, dict(zip(names, feeds)))

    def answer(feeds):
        try:
            return [case.wanted(*feeds)]
        except ValueError:
            return None
    return answer


def _said(feeds):
    """Feeds as a message tells them: lists of integers by value, others by shape."""
    return ", ".join(str(x.tolist()) if x.dtype == np.int64 and x.size < 9 else str(x.shape) for x in feeds)


def _check(main, case, wanted_of):
    """What is wrong, a line each."""
    wrong = []

    def compare(feeds, wanted):
        returned = main(*feeds)
        returned = list(returned) if isinstance(returned, (tvm_ffi.Array, tuple, list)) else [returned]
        answers = {"returned": map(np.from_dlpack, returned)}
        if case.passed_in:
            answers["passed in"] = [np.full(want.shape, 7, want.dtype) for want in wanted]
            main(*feeds, *answers["passed in"])
        for how, arrays in answers.items():
            for answer, want in zip(arrays, wanted):
                if answer.shape != want.shape:
                    wrong.append(f"{_said(feeds)} {how}: shape {answer.shape}, expected {want.shape}")
                elif not np.allclose(answer, want, rtol=1e-4, atol=1e-5, equal_nan=True):
                    wrong.append(f"{_said(feeds)} {how}: differs by {np.max(np.abs(answer - want))}")

    def fails(feeds, says):
        try:
            main(*feeds)
            wrong.append(f"{_said(feeds)}: expected an error")
        except (ValueError, IndexError) as error:
            if says not in str(error):
                wrong.append(f"{_said(feeds)}: expected an error that says {says!r}, but got {error}")

    for feeds in case.calls:
        wanted = wanted_of(feeds)
        if wanted is None:
            fails(feeds, "Expected")
        else:
            compare(feeds, wanted)
    for feeds, says in case.errors:
        fails(feeds, says)
        compare(case.calls[0], wanted_of(case.calls[0]))  # a call that failed harms no later one
    return wrong


def _run(tenon, case, level):
    with tempfile.TemporaryDirectory() as folder:
        path, library = pathlib.Path(folder, "model.onnx"), pathlib.Path(folder, "model.so")
        path.write_bytes(case.model.SerializeToString())
        done = subprocess.run([tenon, "compile", path, "-o", library, f"-O{level}", "--verify-each", *case.options],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return [f"compile: {done.stderr.strip()[-300:]}"]
        return _check(tvm_ffi.load_module(str(library)).main, case, _answers(case))


def run_cases(description, cases, others=()):
    """The program: `cases()` gives the cases; `others`: functions of the tenon command that give what is wrong, a line each.
    Returns the exit status."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("--levels", type=int, nargs="*", default=[0, 2])
    parser.add_argument("--match", default=".")
    args = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    results = {other.__name__: other(args.tenon) for other in others}
    for case, level in itertools.product(cases(), args.levels):
        if re.search(args.match, case.name):
            results[f"{case.name} -O{level}"] = _run(args.tenon, case, level)
    for name, wrong in results.items():
        for line in wrong[:5]:
            print(f"{name}: {line}")
    failed = sum(map(bool, results.values()))
    print(f"{len(results) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0
