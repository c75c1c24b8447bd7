"""Which config a template gets: that of the task that runs it, the best of a log, or first candidates."""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any, Iterable

from ..target import Target, text_of
from ..transform import logs
from .space import FallbackConfig, LoggedConfig

__all__ = ["ApplyHistoryBest", "apply_history_best", "get_config"]

_state = threading.local()


def _stack(name: str) -> list:
    if not hasattr(_state, name):
        setattr(_state, name, [])
    return getattr(_state, name)


class Config:
    """A config that is the template's while it runs."""

    def __init__(self, config: Any):
        self.config = config

    def __enter__(self) -> Any:
        _stack("configs").append(self.config)
        return self.config

    def __exit__(self, *_: Any) -> None:
        _stack("configs").pop()


def get_config() -> Any:
    """The config of the template that runs; outside of templates one in which each knob is its first candidate."""
    stack = _stack("configs")
    if not stack:
        stack = _stack("outside")
        if not stack:
            stack.append(FallbackConfig())
    return stack[-1]


class ApplyHistoryBest:
    """While it is entered, templates that are called get the best config of the records: files, or pairs of
    MeasureInput and MeasureResult."""

    def __init__(self, records: Any):
        self._best: dict = {}
        self._networks: list = []  # logs that tenon.compile plans by
        if records is not None:
            self.load(records)

    def load(self, records: Any) -> None:
        from . import record

        if isinstance(records, (str, bytes)) or hasattr(records, "__fspath__"):
            records = [records]
        for item in records:
            pairs: Iterable = [item] if isinstance(item, tuple) else record.load_from_file(item)
            if not isinstance(item, tuple) and _is_of_networks(item):
                self._networks.append(os.fspath(item))
            for inp, result in pairs:
                if result.error_no != 0:
                    continue
                for target in (text_of(inp.target), _kind(inp.target)):
                    key = (target, inp.task.workload)
                    known = self._best.get(key)
                    if known is None or result.mean < known[1].mean:
                        self._best[key] = (inp, result)

    def query(self, target: Any, workload: tuple) -> Any:
        """The config, or first candidates, with a warning."""
        for key in (str(target), _kind(target)):
            found = self._best.get((key, workload))
            if found:
                return LoggedConfig(found[0].config.to_json_dict())
        warnings.warn(f"no record is about {workload[0]} of these arguments for '{target}': it gets first candidates", stacklevel=3)
        return FallbackConfig()

    def __enter__(self) -> "ApplyHistoryBest":
        _stack("histories").append(self)
        logs().extend(self._networks)
        return self

    def __exit__(self, *_: Any) -> None:
        _stack("histories").pop()
        for _log in self._networks:
            logs().pop()


apply_history_best = ApplyHistoryBest


def _is_of_networks(path: Any) -> bool:
    with open(path, encoding="utf-8", errors="replace") as file:
        return any(line.startswith('{"tenon_log"') for line in file)


def _kind(target: Any) -> str:
    return str(target).split(" ", 1)[0]


def config_for(workload: tuple) -> Any:
    """For a template that somebody calls."""
    histories = _stack("histories")
    if not histories:
        return FallbackConfig()
    return histories[-1].query(Target.current() or "llvm", workload)
