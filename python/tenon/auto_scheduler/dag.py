"""What is computed, as a whole."""

from __future__ import annotations

from typing import Any, Sequence

from .. import te
from .._tenon import IrModule

__all__ = ["ComputeDAG"]


class ComputeDAG:
    """Tensors, inputs and outputs, with everything between; or a function of loop IR."""

    def __init__(self, compute: Any):
        if isinstance(compute, te.Schedule):
            compute = list(compute.outputs)
        if isinstance(compute, str):
            from .workload_registry import workload_tensors

            compute = workload_tensors(compute)
        if isinstance(compute, IrModule):
            self.tensors: list = []
            self.module = compute
            return
        if not isinstance(compute, (list, tuple)) or not compute or not all(isinstance(t, te.Tensor) for t in compute):
            raise TypeError("ComputeDAG: expected tensors, [A, B, C], or a function of loop IR")
        self.tensors = list(compute)
        for tensor in self.tensors:
            if not all(str(d).isdecimal() for d in tensor.shape):
                raise ValueError(f"'{tensor.name}' has open sizes, which are not tuned")
        self.module = te.create_prim_func(self.tensors)

    @property
    def ops(self) -> list:
        seen: list = []

        def visit(tensor: Any) -> None:
            for source in tensor.op.input_tensors:
                visit(source)
            if tensor.op.name not in [o.name for o in seen]:
                seen.append(tensor.op)

        for tensor in self.tensors:
            visit(tensor)
        return seen

    def __str__(self) -> str:
        return str(self.module)

    __repr__ = __str__


def tensors_of(compute: Sequence) -> list:
    return list(compute)
