"""Functions that give the tensors of a computation, by name."""

from __future__ import annotations

import json
from typing import Any, Callable, Sequence

from ..autotvm.task import serialize

__all__ = ["make_workload_key", "register_workload", "workload_tensors"]

_WORKLOADS: dict[str, Callable] = {}


def register_workload(func_name: Any, f: Callable | None = None, override: bool = False) -> Callable:
    """Declares a function that gives the tensors of a computation, inputs first; as a decorator, with or without a name."""
    if callable(func_name):
        f, func_name = func_name, func_name.__name__
    if not isinstance(func_name, str):
        raise TypeError("register_workload: expected a function, or a name and a function")

    def register(function: Callable) -> Callable:
        known = _WORKLOADS.get(func_name)
        if known is not None and not override and known.__code__ is not function.__code__:
            raise ValueError(f"there is a workload '{func_name}' already; override=True takes its place")
        _WORKLOADS[func_name] = function
        return function

    return register if f is None else register(f)


def function_of(func: Any) -> tuple[str, Callable]:
    """The name and the function of a workload, by either."""
    if isinstance(func, str):
        if func not in _WORKLOADS:
            raise ValueError(f"there is no workload '{func}'; there are {', '.join(_WORKLOADS) or 'none'}")
        return func, _WORKLOADS[func]
    for name, known in _WORKLOADS.items():
        if known is func:
            return name, known
    if callable(func):
        raise ValueError(f"'{getattr(func, '__name__', func)}' is no workload: it is declared by auto_scheduler.register_workload")
    raise TypeError(f"expected a function or its name for 'func' but got {type(func).__name__}")


def make_workload_key(func: Any, args: Sequence) -> str:
    """The name and the arguments as a text."""
    name, _ = function_of(func)
    return json.dumps([name, *(serialize(a) for a in args)])


def workload_tensors(key: str) -> list:
    """The tensors of a workload by its key."""
    try:
        name, *args = json.loads(key)
    except (ValueError, TypeError):
        raise ValueError(f"'{key}' is no workload key") from None
    return list(function_of(name)[1](*_lists_as_tuples(args)))


def _lists_as_tuples(value: Any) -> Any:
    return tuple(_lists_as_tuples(v) for v in value) if isinstance(value, list) else value
