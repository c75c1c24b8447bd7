"""Logs that networks are compiled by."""

from __future__ import annotations

import os
from typing import Any

from ..transform import logs

__all__ = ["ApplyHistoryBest"]


class ApplyHistoryBest:
    """While it is entered, tenon.compile plans by the records of a log. (Of a task, SearchTask.apply_best gives the schedule.)"""

    def __init__(self, records: Any, n_lines: int | None = None, include_compatible: bool = False):
        if not isinstance(records, (str, os.PathLike)):
            raise TypeError("ApplyHistoryBest: expected the path of a log")
        if not os.path.exists(records):
            raise FileNotFoundError(f"there is no log '{os.fspath(records)}'")
        self.log = os.fspath(records)

    def __enter__(self) -> "ApplyHistoryBest":
        logs().append(self.log)
        return self

    def __exit__(self, *_: Any) -> None:
        logs().pop()
