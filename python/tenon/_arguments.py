"""What is said when a function is called with arguments of the wrong kind: which one it is, what was expected, what came."""

from __future__ import annotations

import functools
import re
from typing import Any, Callable

from . import _tenon

_SIGNATURE = re.compile(r"^\s+\d+\. \w+\((.*)\) -> ", re.MULTILINE)
_MODULES = re.compile(r"\b(?:\w+\.)+(?=[A-Za-z_])")


def _split(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return parts + [text[start:].strip()]


def _parameters(signature: str) -> list[tuple[str, str, bool]]:
    """Name, type and whether it may be left out."""
    found = []
    for part in _split(_MODULES.sub("", signature)):
        name, colon, rest = part.partition(":")
        if colon:
            kind, equals, _ = rest.partition("=")
            found.append((name.strip(), kind.strip(), bool(equals) or name.startswith("*")))
    return found


def _fits(value: Any, kind: str) -> bool:
    kinds = {k.strip() for k in re.split(r"[|\[\], ]+", kind)}
    names = {t.__name__ for t in type(value).__mro__}
    if "float" in kinds and isinstance(value, int) or "int" in kinds and hasattr(value, "__index__"):
        return True
    if "Expr" in kinds and isinstance(value, (int, float)):
        return True
    if "Sequence" in kinds:
        return isinstance(value, (list, tuple))
    return bool(kinds & names) or value is None and "None" in kinds or "object" in kinds


def _wrong(parameters: list[tuple[str, str, bool]], args: tuple, kwargs: dict) -> str:
    """What is wrong for one signature; "" where that is not clear."""
    if len(args) > len(parameters):
        return f"expected at most {len(parameters)} arguments but got {len(args)}"
    known = [name for name, _, _ in parameters]
    for name in kwargs:
        if name not in known:
            return f"there is no argument '{name}'; expected {', '.join(known)}"
    for i, (name, kind, optional) in enumerate(parameters):
        if i >= len(args) and name not in kwargs:
            if not optional:
                return f"the argument '{name}' of type {kind} is missing"
            continue
        value = args[i] if i < len(args) else kwargs[name]
        if not _fits(value, kind):
            what = "" if re.fullmatch(r"arg\d*", name) else f" for '{name}'"
            return f"expected {kind}{what} but got {type(value).__name__}"
    return ""


def _explain(name: str, message: str, args: tuple, kwargs: dict) -> str:
    signatures = [_parameters(s) for s in _SIGNATURE.findall(message)]
    if len(signatures) == 1 and (reason := _wrong(signatures[0], args, kwargs)):
        return f"{name}: {reason}"
    given = ", ".join([type(a).__name__ for a in args] + [f"{k}={type(v).__name__}" for k, v in kwargs.items()])
    expected = " or ".join("(" + ", ".join(kind for _, kind, _ in s) + ")" for s in signatures)
    return f"{name}: expected {expected} but got ({given})"


def _said_clearly(function: Callable, name: str, is_method: bool) -> Callable:
    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TypeError as e:
            message = str(e)
            if "incompatible function arguments" not in message:
                raise
            message = _explain(name, message, args[1:] if is_method else args, kwargs)
        raise TypeError(message)

    return call


def say_clearly() -> None:
    """Of everything that people write schedules with; calls of compiled functions stay as they are."""
    for cls in (_tenon.Stage, _tenon.Schedule, _tenon.IrSchedule, _tenon.IrModule, _tenon.Library):
        for name, function in list(vars(cls).items()):
            if type(function).__name__ == "nb_method" and (not name.startswith("__") or name == "__getitem__"):
                what = f"{cls.__name__}[…]" if name == "__getitem__" else name
                setattr(cls, name, _said_clearly(function, what, True))
            elif type(function).__name__ == "nb_func":
                setattr(cls, name, staticmethod(_said_clearly(function, f"{cls.__name__}.{name}", False)))
    for name, function in list(vars(_tenon).items()):
        if type(function).__name__ == "nb_func" and name not in ("from_dlpack", "empty", "device"):
            setattr(_tenon, name, _said_clearly(function, name, False))
