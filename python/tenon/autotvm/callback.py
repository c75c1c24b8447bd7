"""What is told of each trial: functions of (tuner, inputs, results)."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Callable

from . import record

__all__ = ["log_to_database", "log_to_file", "progress_bar"]


def log_to_file(file_out: Any, protocol: str = "json") -> Callable:
    """Appends a line to a file, or to one that is open, for each trial. What was written is complete after each."""
    if protocol != "json":
        raise ValueError("log_to_file: records are lines of JSON; pickles, which run code when they are read, are not written")

    def callback(_: Any, inputs: list, results: list) -> None:  # pylint: disable=missing-function-docstring
        lines = "".join(record.encode(i, r) + "\n" for i, r in zip(inputs, results))
        if hasattr(file_out, "write"):
            file_out.write(lines)
            file_out.flush()
            return
        with open(file_out, "a", encoding="utf-8") as file:
            file.write(lines)

    callback.file = None if hasattr(file_out, "write") else os.fspath(file_out)  # takes records of networks' kernels as they are
    return callback


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G") -> Callable:
    """A line with the best so far."""
    state = {"best": 0.0, "trials": 0, "start": time.time()}

    def callback(tuner: Any, inputs: list, results: list) -> None:
        for result in results:
            if result.error_no == 0 and (not state["best"] or result.mean < state["best"]):
                state["best"] = result.mean
        if state["trials"] == tuner._tried:
            return  # configs that were not tried
        state["trials"] = tuner._tried
        best = f"{1e6 * state['best']:.4g} µs" if state["best"] else "nothing yet"
        flop = tuner.task.flop
        rate = f", {flop / state['best'] / 1e9:.4g} GFLOPS" if flop and state["best"] else ""
        line = f"{prefix} {tuner._tried}/{total}  best {best}{rate}  {time.time() - state['start']:.1f} s"
        end = "\r" if sys.stdout.isatty() and tuner._tried < total else "\n"
        if end == "\r" or tuner._tried >= total:
            print(line, end=end, flush=True)

    return callback


def log_to_database(db: Any) -> Callable:
    raise NotImplementedError("log_to_database: log_to_file writes records to a file, `tenon log merge` puts them into an SQLite log")
