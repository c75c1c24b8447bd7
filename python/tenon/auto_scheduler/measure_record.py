"""Records of the auto-scheduler: Tenon's lines of JSON (docs/tuning.md), which `tenon log` reads, too."""

from __future__ import annotations

import os
from typing import Any, Iterator

from .._log_lines import parse, read
from ..autotvm.measure import OF_OUTCOMES
from .measure import MeasureErrorNo, MeasureInput, MeasureResult

__all__ = ["RecordReader", "RecordToFile", "load_best_record", "load_records", "save_records"]


class RecordToFile:
    """Appends the record of each trial to a file."""

    def __init__(self, filename: Any):
        self.filename = os.fspath(filename)
        folder = os.path.dirname(self.filename)
        if folder:
            os.makedirs(folder, exist_ok=True)
        self._known: set = set()

    def __call__(self, kernel_line: str, line: str) -> None:
        with open(self.filename, "a", encoding="utf-8") as file:
            if kernel_line not in self._known:
                self._known.add(kernel_line)
                file.write(kernel_line)
            file.write(line)


class LoggedState:
    """A point of a sketch, as a record has it."""

    def __init__(self, algorithm: str, point: str, line: str):
        self.algorithm, self.point, self.line = algorithm, point, line

    def __repr__(self) -> str:
        return f"{self.algorithm} {self.point}"


class LoggedTask:
    """What a record is about."""

    def __init__(self, kernel: str, target: str):
        self.kernel, self.workload_key, self.target = kernel, kernel, target


class RecordReader:
    """The records of a file. Lines that are none are passed over, with a warning that names them."""

    def __init__(self, filename: Any):
        self.filename = os.fspath(filename)

    def __iter__(self) -> Iterator[tuple[MeasureInput, MeasureResult]]:
        return read(self.filename, _record)

    def read_lines(self, max_lines: int | None = None, skip_lines: int = 0) -> tuple[list, list]:
        pairs = list(self)[skip_lines:]
        pairs = pairs if max_lines is None else pairs[:max_lines]
        return [i for i, _ in pairs], [r for _, r in pairs]


def _record(row: str) -> tuple[MeasureInput, MeasureResult] | None:
    line = parse(row)
    if line.get("tenon_log") != 1:
        raise ValueError("it is no line of a log")
    if "record" not in line:
        return None
    try:
        r = line["record"]
        state = LoggedState(r["algorithm"], r["point"], row if row.endswith("\n") else row + "\n")
        result = result_of(r["outcome"], float(r["seconds"]), r["message"])
        return MeasureInput(LoggedTask(r["kernel"], r["target"]), state), result
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"it is broken: {error}") from None


def result_of(outcome: str, seconds: float, message: str, all_cost: float = 0.0, timestamp: float = 0.0) -> MeasureResult:
    number = OF_OUTCOMES.get(outcome, MeasureErrorNo.UNKNOWN_ERROR)
    return MeasureResult((seconds,) if number == 0 else (1e10,), number, message, all_cost, timestamp)


def load_records(filename: Any) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    return iter(RecordReader(filename))


def save_records(filename: Any, inputs: list, results: list) -> None:
    """Appends the records that these were read from."""
    with open(filename, "a", encoding="utf-8") as file:
        for inp, _ in zip(inputs, results):
            file.write(inp.state.line)


def load_best_record(filename: Any, workload_key: str | None = None, target: Any = None, include_compatible: bool = False) -> tuple:
    """The input and the result of the record with the least time, of those about a workload and a target; (None, None) where there
    is none."""
    from .search_task import kernel_of_key

    kernel = kernel_of_key(workload_key) if workload_key is not None else None
    best: tuple = (None, None)
    for inp, result in RecordReader(filename):
        wanted = (kernel is None or inp.task.kernel == kernel) and (target is None or inp.task.target == str(target))
        if wanted and result.error_no == 0 and (best[1] is None or result.costs[0] < best[1].costs[0]):
            best = (inp, result)
    return best
