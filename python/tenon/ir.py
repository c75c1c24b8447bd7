"""Modules of loop IR, by tvm's names."""

from __future__ import annotations

from typing import Any

from . import _left_out, transform
from ._tenon import IrModule

__all__ = ["IRModule", "assert_structural_equal", "structural_equal", "transform"]

IRModule = IrModule
IrModule.show = lambda self: print(self)
IrModule.script = lambda self: str(self)


def structural_equal(lhs: Any, rhs: Any) -> bool:
    """Whether two modules, or expressions, are the same text."""
    return str(lhs) == str(rhs)


def assert_structural_equal(lhs: Any, rhs: Any) -> None:
    if not structural_equal(lhs, rhs):
        raise ValueError(f"they differ:\n{lhs}\n{rhs}")


__getattr__ = _left_out.names_of("ir.", __name__)
