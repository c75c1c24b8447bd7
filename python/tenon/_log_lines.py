"""Logs that are lines of JSON, AutoTVM's and Tenon's own: what reading them has in common."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any, Callable, Iterator, TypeVar

T = TypeVar("T")


def parse(row: str) -> dict:
    """The object of a line. ValueError: it is none, or a record that nobody can read."""
    try:
        line = json.loads(row)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is broken: {error}") from None
    if not isinstance(line, dict):
        raise ValueError("it is no record")
    if "i" in line and "r" in line:
        raise ValueError("it is a record of Ansor's, whose hash keys cannot be recreated: tune again, by tenon.auto_scheduler")
    return line


def read(path: Any, decode: Callable[[str], T | None]) -> Iterator[T]:
    """What `decode` makes of the lines of a file, in their order; None is left out. Lines that it refuses by a ValueError are passed
    over, with a warning that names file and line; empty ones and comments in silence."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, row in enumerate(file, 1):
            if not row.strip() or row.startswith("#"):
                continue
            try:
                record = decode(row)
            except ValueError as error:
                warnings.warn(f"{os.fspath(path)}:{number}: passed over: {error}", stacklevel=2)
                continue
            if record is not None:
                yield record
