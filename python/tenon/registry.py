"""Functions of Python by name, for compiled code that calls them (tir.call_packed) and for whoever asks."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable

from . import _arguments, _tenon

__all__ = ["get_global_func", "list_global_func_names", "register_func", "remove_global_func"]

_functions: dict[str, Callable] = {}
_exposed: list = []  # this package's module, once its symbols are everybody's


def _call(name: str, args: list) -> None:
    """What compiled code asks for. A number that is returned is dropped: tensors are written to."""
    get_global_func(name)(*args)


def expose() -> None:
    """Lets compiled code find what calls the functions: this package's module, among everybody's symbols."""
    if not _exposed:
        _tenon.set_packed_caller(_call)
        _exposed.append(ctypes.CDLL(os.fspath(_tenon.__file__), ctypes.RTLD_GLOBAL))


def register_func(func_name: str | Callable, f: Callable | None = None, override: bool = False) -> Any:
    """Gives a function a name, for tir.call_packed and get_global_func; as a decorator too, whose name is the function's own
    where none is given. Tensors come as views of the memory, tenon.nd arrays, which copyfrom writes."""
    name = func_name if isinstance(func_name, str) else func_name.__name__
    f = f if isinstance(func_name, str) else func_name

    def register(function: Callable) -> Callable:
        if not callable(function):
            raise TypeError(f"register_func: expected Callable for 'f' but got {_arguments.kinds(function)}")
        if name in _functions and not override:
            raise ValueError(f"there is a function '{name}' already; override=True takes its place")
        _functions[name] = function
        return function

    return register(f) if f is not None else register


def get_global_func(name: str, allow_missing: bool = False) -> Callable | None:
    """The function that register_func gave this name."""
    if name in _functions:
        return _functions[name]
    if allow_missing:
        return None
    raise ValueError(f"there is no function '{name}'; register_func gives a function a name")


def list_global_func_names() -> list[str]:
    return sorted(_functions)


def remove_global_func(name: str) -> None:
    get_global_func(name)
    del _functions[name]


_arguments.say_clearly(globals())
