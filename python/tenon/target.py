"""What code is made for."""

from __future__ import annotations

import threading
from typing import Any

from . import _tenon

__all__ = ["Target"]

_current = threading.local()


class Target(_tenon.Target):
    """Target("llvm -mcpu=core-avx2"). As a context manager it is the target of builds that name none."""

    def __init__(self, target: Any = "llvm", host: Any = None):
        super().__init__(str(target))

    @staticmethod
    def current(allow_none: bool = True) -> "Target | None":
        stack = getattr(_current, "stack", [])
        if not stack and not allow_none:
            raise ValueError("no target is set; use `with Target(…):`")
        return stack[-1] if stack else None

    def __enter__(self) -> "Target":
        if not hasattr(_current, "stack"):
            _current.stack = []
        _current.stack.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _current.stack.pop()


def resolve(target: Any) -> _tenon.Target:
    """A target from what a caller may give: a Target, a string, or nothing."""
    if target is None:
        return Target.current() or Target("llvm")
    return target if isinstance(target, _tenon.Target) else Target(target)
