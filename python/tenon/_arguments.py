"""What is said when a function is called with arguments of the wrong kind: which one it is, what was expected, what came."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Mapping
from typing import Any, Callable

from . import _tenon

_SIGNATURE = re.compile(r"^\s+\d+\. \w+\((.*)\) -> ", re.MULTILINE)
_MODULES = re.compile(r"\b(?:\w+\.)+(?=[A-Za-z_])")
_ALIASES = {"Number": "int | str", "IndexMap": "str | Callable"}


def kinds(value: Any) -> str:
    """What to call a value of the wrong kind."""
    if not isinstance(value, (list, tuple)):
        return type(value).__name__
    return type(value).__name__ + " of " + (", ".join(type(v).__name__ for v in value) or "nothing")


def _split(text: str, by: str = ",") -> list[str]:
    """The parts between commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if c == by and depth == 0:
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
    return any(_is(value, k) for k in _split(kind, "|"))


def _is(value: Any, kind: str) -> bool:
    outer, _, inner = kind.partition("[")
    outer = outer.rpartition(".")[2]
    if outer in ("Any", "object", ""):
        return True
    if outer == "None":
        return value is None
    if outer == "Callable":
        return callable(value)
    if outer in ("Sequence", "list", "tuple"):
        item = inner.rstrip("]") if "[" not in inner else inner[:-1]
        return isinstance(value, (list, tuple)) and (not item or all(_fits(v, _split(item)[0]) for v in value))
    if outer in ("Mapping", "dict"):
        return isinstance(value, Mapping)
    if outer == "PathLike":
        return hasattr(value, "__fspath__")
    if outer in ("int", "Expr", "float") and hasattr(value, "__index__"):
        return True
    if outer in ("Expr", "float") and hasattr(value, "__float__"):
        return True
    return outer in {t.__name__ for t in type(value).__mro__}


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
            return f"expected {kind}{what} but got {kinds(value)}"
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


def _misfit(signature: inspect.Signature, args: tuple, kwargs: dict) -> str:
    """What does not fit the annotations; "" where all does."""
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError as e:
        return str(e)
    for name, value in bound.items():
        parameter = signature.parameters[name]
        kind = parameter.annotation
        if not isinstance(kind, str):
            continue
        for alias, meaning in _ALIASES.items():
            kind = re.sub(rf"\b{alias}\b", meaning, kind)
        values = value if parameter.kind is parameter.VAR_POSITIONAL else [value]
        for v in values:
            if not _fits(v, kind):
                return f"expected {kind} for '{name}' but got {kinds(v)}"
    return ""


def annotated(function: Callable, name: str) -> Callable:
    """The function, whose annotations say what was wrong where an argument's kind was."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError, ValueError):
            reason = _misfit(signature, args, kwargs)
            if not reason:
                raise
        raise TypeError(f"{name}: {reason}")

    return call


def say_clearly(module: dict) -> None:
    """Of the public functions of a module of Python, and of its classes' constructors and methods."""
    for name in module["__all__"]:
        value = module[name]
        if inspect.isfunction(value) and value.__annotations__:
            module[name] = annotated(value, name)
        elif inspect.isclass(value) and value.__module__ == module["__name__"]:
            say_methods_clearly(value)


def say_methods_clearly(cls: type) -> None:
    for name, value in list(vars(cls).items()):
        if name.startswith("_") and name != "__init__":
            continue
        what = cls.__name__ if name == "__init__" else name
        if inspect.isfunction(value):
            setattr(cls, name, annotated(value, what))
        elif isinstance(value, staticmethod):
            setattr(cls, name, staticmethod(annotated(value.__func__, f"{cls.__name__}.{name}")))


def _say_bindings_clearly() -> None:
    """Of what is bound from C++; calls of compiled functions stay as they are."""
    for cls in [c for c in vars(_tenon).values() if inspect.isclass(c) and c is not _tenon.Function]:
        for name, function in list(vars(cls).items()):
            indexed = name == "__getitem__" and cls is _tenon.Schedule
            called = {"__call__": f"{cls.__name__}(…)", "__dlpack__": name}.get(name, "")
            if type(function).__name__ == "nb_method" and (not name.startswith("_") or indexed or called):
                setattr(cls, name, _said_clearly(function, f"{cls.__name__}[…]" if indexed else called or name, True))
            elif type(function).__name__ == "nb_func":
                setattr(cls, name, staticmethod(_said_clearly(function, f"{cls.__name__}.{name}", False)))
    for name, function in list(vars(_tenon).items()):
        if type(function).__name__ == "nb_func":
            setattr(_tenon, name, _said_clearly(function, name, False))


_say_bindings_clearly()
