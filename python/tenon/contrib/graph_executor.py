"""A compiled network in the manners of TVM's graph executor: inputs are set, it runs, outputs are asked for."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .. import _arguments, nd
from .._tenon import Device, NDArray

__all__ = ["GraphModule", "create"]


class GraphModule:
    """`GraphModule(lib["default"](dev))`, or of what `lib["default"](dev)` gave. Inputs and outputs go by index or by name.
    It holds the tensors of one run and belongs to one thread at a time."""

    def __init__(self, module: Any):
        if isinstance(module, GraphModule):
            self.__dict__ = module.__dict__  # two names of one executor
            return
        raise TypeError("a GraphModule is made of lib['default'](device), where lib is a module of a network")

    @classmethod
    def _of(cls, library: Any, device: Device) -> GraphModule:
        made = cls.__new__(cls)
        made.module = library
        made._device = device
        made._entry_name = json.loads(library.runtime_module.info()).get("name") or "main"
        made._entry = library.get_function(made._entry_name)
        made._inputs = [p.name for p in library.inputs]
        made._outputs = [p.name for p in library.outputs]
        made._feeds = [None] * len(made._inputs)
        made._results = None
        return made

    def _find(self, names: list, key: int | str, what: str) -> int:
        index = (names.index(key) if key in names else -1) if isinstance(key, str) else key
        if not 0 <= index < len(names):
            raise ValueError(f"there is no {what} {key!r}; there are {', '.join(map(repr, names))}")
        return index

    def set_input(self, key: int | str | None = None, value: Any = None, **params: Any) -> None:
        """Copies an array (NumPy's, tenon.nd's) in; several by their names: set_input(x=…, y=…)."""
        if key is not None:
            if isinstance(value, NDArray):
                value = value.numpy()
            self._feeds[self._find(self._inputs, key, "input")] = nd.array(np.asarray(value), self._device)
        for name, array in params.items():
            self.set_input(name, array)

    def set_input_zero_copy(self, key: int | str, value: NDArray) -> None:
        """Takes the tensor itself: what is written into it later counts."""
        self._feeds[self._find(self._inputs, key, "input")] = value

    def get_input(self, key: int | str, out: NDArray | None = None) -> NDArray:
        value = self._feeds[self._find(self._inputs, key, "input")]
        if value is None:
            raise ValueError(f"input {key!r} was not set")
        return value if out is None else out.copyfrom(value.numpy())

    def get_input_index(self, name: str) -> int:
        """-1 where no input has the name."""
        return self._inputs.index(name) if name in self._inputs else -1

    def get_num_inputs(self) -> int:
        return len(self._inputs)

    def get_num_outputs(self) -> int:
        return len(self._outputs)

    def run(self, **inputs: Any) -> None:
        self.set_input(**inputs)
        for name, value in zip(self._inputs, self._feeds):
            if value is None:
                raise ValueError(f"input {name!r} was not set")
        results = self._entry(*self._feeds)
        self._results = results if isinstance(results, tuple) else (results,)

    def get_output(self, key: int | str, out: NDArray | None = None) -> NDArray:
        index = self._find(self._outputs, key, "output")
        if self._results is None:
            raise RuntimeError("there are no outputs yet: 'run' has not been called")
        return self._results[index] if out is None else out.copyfrom(self._results[index].numpy())

    def __getitem__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self, name):
            raise ValueError(f"a graph executor has no function '{name}'")
        return getattr(self, name)

    def benchmark(self, device: Device | None = None, func_name: str = "run", number: int = 5, repeat: int = 5) -> Any:
        """How long runs take: .mean and .results, in seconds."""
        self.run()
        return self.module.time_evaluator(self._entry_name, device, number=number, repeat=repeat)(*self._feeds)


def create(graph_json_str: str, libmod: Any, device: Device) -> GraphModule:
    """As TVM's; a library says itself what its graph is."""
    return libmod["default"](device)


_arguments.say_clearly(globals())
