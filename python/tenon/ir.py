"""Modules of loop IR, by tvm's names."""

from __future__ import annotations

from typing import Any, Mapping

from . import _arguments, _left_out, transform
from ._tenon import IrModule

__all__ = ["GlobalVar", "IRModule", "assert_structural_equal", "structural_equal", "transform"]


class GlobalVar:
    """The name of a function of a module."""

    def __init__(self, name_hint: str):
        self.name_hint = name_hint

    def __repr__(self) -> str:
        return f'GlobalVar("{self.name_hint}")'

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, GlobalVar) and other.name_hint == self.name_hint

    def __hash__(self) -> int:
        return hash(self.name_hint)


def _name(name: Any) -> str:
    if not isinstance(name, (str, GlobalVar)):
        raise TypeError(f"IrModule: expected a text or an ir.GlobalVar for 'name' but got {_arguments.kinds(name)}")
    return name if isinstance(name, str) else name.name_hint


def _function(function: Any, what: str = "from_expr") -> IrModule:
    if not isinstance(function, IrModule):
        raise TypeError(
            f"{what}: expected loop IR, of te.create_prim_func or lower, for 'function' but got {_arguments.kinds(function)}"
        )
    return function


def _with_attr(self: IrModule, key: Any, value: Any = None) -> IrModule:
    """The function under the name that "global_symbol" gives. ("tir.noalias" says what is so.)"""
    if not isinstance(key, (str, Mapping)):
        raise TypeError(f"with_attr: expected a text or a dict for 'key' but got {_arguments.kinds(key)}")
    attrs = dict(key) if isinstance(key, Mapping) else {key: value}
    name = attrs.pop("global_symbol", None)
    attrs.pop("tir.noalias", None)
    if attrs:
        raise NotImplementedError(f"with_attr: a function has \"global_symbol\", its name, and no {', '.join(map(str, attrs))}")
    return self if name is None else IrModule({name: self})


IRModule = IrModule
IrModule.show = lambda self: print(self)
IrModule.script = lambda self: str(self)
IrModule.from_expr = staticmethod(lambda function: _function(function))
IrModule.with_attr = _with_attr
IrModule.__getitem__ = lambda self, name: self._function(_name(name))
IrModule.__setitem__ = lambda self, name, function: self._set_function(_name(name), _function(function, "IrModule"))
IrModule.__contains__ = lambda self, name: _name(name) in self.functions
IrModule.update_func = IrModule.__setitem__
IrModule.get_global_vars = lambda self: [GlobalVar(name) for name in self.functions]


def _global_var(self: IrModule, name: str) -> GlobalVar:
    self._function(_name(name))
    return GlobalVar(_name(name))


IrModule.get_global_var = _global_var


def structural_equal(lhs: Any, rhs: Any) -> bool:
    """Whether two modules, or expressions, are the same text."""
    return str(lhs) == str(rhs)


def assert_structural_equal(lhs: Any, rhs: Any) -> None:
    if not structural_equal(lhs, rhs):
        raise ValueError(f"they differ:\n{lhs}\n{rhs}")


__getattr__ = _left_out.names_of("ir.", __name__)
