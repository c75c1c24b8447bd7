"""Operators of one's own, for nodes of models that no operator set defines.

    @tenon.register_operator("my.domain", "Swish")
    def swish(node):
        (x,) = node.inputs
        beta = node.attributes.get("beta", 1.0)
        return te.compute(x.shape, lambda *i: x(*i) * te.sigmoid(x(*i) * beta), name="y")

    session = tenon.InferenceSession("model.onnx")
"""

from __future__ import annotations

from typing import Any, Callable

from . import _arguments, _tenon
from ._tenon import IrModule, OperatorNode, Tensor

__all__ = ["OperatorNode", "register_operator", "remove_operator"]


def _function(node: OperatorNode, result: Any) -> IrModule:
    if isinstance(result, IrModule):
        return result
    if isinstance(result, str):
        return IrModule.parse(result)
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    if not results or not all(isinstance(r, Tensor) for r in results):
        raise TypeError(
            f"the definition of an operator gives a tensor, several, or a function of loop IR, not {_arguments.kinds(result)}"
        )
    return _tenon.create_func(list(node.inputs) + results, "custom")


def register_operator(domain: str, name: str, define: Callable | IrModule | str | None = None) -> Any:
    """Says what operator `name` of `domain` computes ("" is ONNX's own), for every model that is compiled from then on in
    this process; as a decorator too. define(node) is asked for each node: it gives the results, tensors of te that are
    computed from node.inputs, or a function of loop IR (of tenon.lower, where its loops are scheduled) whose parameters are
    the inputs and then the results. Or such functions themselves, or their text: the first, by name, that takes a node's
    inputs; a scalar is the node's attribute of that name. It depends on its inputs alone, and comes before an operator that
    there is."""

    for what, text in (("domain", domain), ("name", name)):
        if not isinstance(text, str):
            raise TypeError(f"register_operator: expected str for '{what}' but got {_arguments.kinds(text)}")

    def register(given: Callable | IrModule | str) -> Any:
        if isinstance(given, (IrModule, str)):
            functions = IrModule.parse(given) if isinstance(given, str) else given
            _tenon.register_operator_functions(domain, name, functions)
        elif callable(given):
            _tenon.register_operator(domain, name, lambda node: _function(node, given(node)))
        else:
            raise TypeError(
                f"register_operator: expected Callable, IrModule or str for 'define' but got {_arguments.kinds(given)}"
            )
        return given

    return register if define is None else register(define)


def remove_operator(domain: str, name: str) -> None:
    """Forgets what register_operator said."""
    if not _tenon.remove_operator(domain, name):
        raise ValueError(f"there is no operator '{name}' of domain '{domain}' that register_operator has")


_arguments.say_clearly(globals())
