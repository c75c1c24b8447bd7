"""Several stages that are placed together."""

from __future__ import annotations

from typing import Any

from . import _arguments
from ._tenon import IterVar, Operation, Schedule, Stage, Tensor

__all__ = ["Group"]


class Group:
    """Stages from inputs to outputs (Schedule.create_group). Each keeps loops of its own; all hang where the group does."""

    def __init__(self, stages: list[Stage]):
        self.stages = list(stages)

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """All of them in that loop. One that is to be elsewhere says so afterwards."""
        for stage in self.stages:
            stage.compute_at(parent, scope)

    def compute_root(self) -> None:
        for stage in self.stages:
            stage.compute_root()

    def __repr__(self) -> str:
        return f"<tenon.Group of {', '.join(stage.op.name for stage in self.stages)}>"


def _tensors(given: Any, what: str) -> list[Tensor]:
    tensors = list(given) if isinstance(given, (list, tuple)) else [given]
    if not tensors or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(f"create_group: expected tensors for '{what}' but got {_arguments.kinds(given)}")
    return tensors


def create_group(self: Schedule, outputs: Any, inputs: Any, include_inputs: bool = False) -> Group:
    """What lies between `inputs` and `outputs`, the outputs among it; the inputs' own stages where asked for."""
    ends = {t.op for t in _tensors(inputs, "inputs")}
    found: dict[Operation, None] = {}
    todo = [t.op for t in _tensors(outputs, "outputs")]
    while todo:
        op = todo.pop()
        if op in found or (op in ends and not include_inputs) or not op.input_tensors:
            continue
        found[op] = None
        if op not in ends:
            todo += [t.op for t in self[op].op.input_tensors]
    return Group([stage for stage in self.stages if stage.op in found])


Schedule.create_group = create_group
_arguments.say_clearly(globals())
