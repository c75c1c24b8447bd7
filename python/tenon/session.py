"""Sessions with ONNX Runtime's names, so that code which uses it moves over by its import line."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from . import _arguments
from .build_module import compile, load

__all__ = ["InferenceSession", "NodeArg"]

_TYPES = {"float32": "float", "float64": "double"}


class NodeArg:
    """An input or output: name, shape (names where a dim is symbolic), type such as tensor(float)."""

    def __init__(self, parameter: Any):
        self.name = parameter.name
        self.shape = [d if d >= 0 else n for d, n in zip(parameter.shape, parameter.dims)]
        self.type = f"tensor({_TYPES.get(parameter.dtype, parameter.dtype)})"
        self.dtype = parameter.dtype

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class InferenceSession:
    """A model to be run: an ONNX file (or its bytes), which is compiled first, or a compiled library."""

    def __init__(self, path_or_bytes: str | PathLike | bytes, sess_options: Any = None, providers: Any = None, **options: Any):
        is_library = not isinstance(path_or_bytes, bytes) and str(path_or_bytes).endswith(".so")
        self._module = load(path_or_bytes) if is_library else compile(path_or_bytes, **options)
        self._inputs = [NodeArg(p) for p in self._module.inputs]
        self._outputs = [NodeArg(p) for p in self._module.outputs]

    def __repr__(self) -> str:
        names = (", ".join(p.name for p in parameters) for parameters in (self._inputs, self._outputs))
        return "<tenon.InferenceSession of {} -> {}>".format(*names)

    def get_inputs(self) -> list:
        return self._inputs

    def get_outputs(self) -> list:
        return self._outputs

    def get_providers(self) -> list:
        return ["CPUExecutionProvider"]

    def run(self, output_names: Any, input_feed: dict[str, Any], run_options: Any = None) -> list:
        unknown = set(input_feed) - {i.name for i in self._inputs}
        missing = [i.name for i in self._inputs if i.name not in input_feed]
        if unknown or missing:
            known = ", ".join(i.name for i in self._inputs)
            raise ValueError(f"expected the inputs {known}; missing: {missing}, unknown: {sorted(unknown)}")
        results = self._module(*(np.ascontiguousarray(input_feed[i.name]) for i in self._inputs))
        results = results if isinstance(results, tuple) else (results,)
        by_name = {o.name: r for o, r in zip(self._outputs, results)}
        names = output_names or [o.name for o in self._outputs]
        for name in names:
            if name not in by_name:
                raise ValueError(f"there is no output '{name}'; there are {', '.join(by_name)}")
        return [by_name[name]._array() for name in names]


_arguments.say_clearly(globals())
