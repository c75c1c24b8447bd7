"""Records as AutoTVM 0.2 writes them: a line of JSON for each trial."""

from __future__ import annotations

import json
from typing import Any, Iterator

from .. import __name__ as _package
from .._log_lines import parse, read
from .._tenon import __version__
from .measure import MeasureInput, MeasureResult
from .space import LoggedConfig
from .task import serialize

__all__ = ["decode", "encode", "load_from_file", "pick_best"]

VERSION = 0.2
FAILED = 1e9  # the cost of what has none


class LoggedTask:
    """The task of a record: a template's name and arguments."""

    def __init__(self, name: str, args: Any):
        self.name, self.args, self.kwargs = name, _tuples(args), {}

    @property
    def workload(self) -> tuple:
        return (self.name, *self.args)

    def __repr__(self) -> str:
        return f"Task(func_name={self.name}, args={self.args})"


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, (list, tuple)) else value


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json") -> str:
    """The line, without its end."""
    if protocol != "json":
        raise ValueError("records are lines of JSON; pickles, which run code when they are read, are neither written nor read")
    costs = list(result.costs) if result.error_no == 0 else [FAILED]
    row = {
        "input": [str(inp.target), inp.task.name, serialize(inp.task.args), {}],
        "config": inp.config.to_json_dict(),
        "result": [costs, result.error_no, result.all_cost, result.timestamp],
        "version": VERSION,
        "tvm_version": f"{_package} {__version__}",
    }
    return json.dumps(row)


def decode(row: str, protocol: str = "json") -> tuple[MeasureInput, MeasureResult] | None:
    """A line's input and result. None of a line that is about something else, such as Tenon's own; errors: it is broken, a
    pickle, or of another version."""
    if protocol != "json" or not row.lstrip().startswith(("{", "[")):
        raise ValueError("records are lines of JSON; pickles, which run code when they are read, are neither written nor read")
    line = parse(row)
    if "tenon_log" in line:
        return None
    if line.get("version") != VERSION:
        raise ValueError(f"it is of version {line.get('version')} instead of {VERSION}")
    try:
        target, name, args, _ = line["input"]
        costs, error_no, all_cost, timestamp = line["result"]
        result = MeasureResult(tuple(float(c) for c in costs), int(error_no), float(all_cost), float(timestamp))
        config = LoggedConfig(line["config"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"it is broken: {error}") from None
    if not result.costs or any(c >= FAILED or c <= 0 or c != c for c in result.costs):
        result = result._replace(error_no=result.error_no or 1)
    return MeasureInput(target, LoggedTask(name, args), config), result


def load_from_file(filepath: Any) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The records of a file, in its order. Lines that are none are passed over, with a warning that names them."""
    return read(filepath, decode)


def pick_best(in_file: Any, out_file: Any) -> None:
    """Writes, of each task and target, the record with the least time."""
    best: dict = {}
    for inp, result in load_from_file(in_file):
        key = (str(inp.target), inp.task.workload)
        if result.error_no == 0 and (key not in best or result.mean < best[key][1].mean):
            best[key] = (inp, result)
    with open(out_file, "w", encoding="utf-8") as file:
        for inp, result in best.values():
            file.write(encode(inp, result) + "\n")
