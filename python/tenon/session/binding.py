"""Inputs and outputs that are bound once and used by several calls."""

from __future__ import annotations

import ctypes
from typing import Any, Sequence

import numpy as np

from . import element_types, errors
from .values import OrtDevice, OrtValue, OrtValueVector, require_cpu

_byte_bounds = getattr(np.lib, "array_utils", np).byte_bounds


class IOBinding:
    """Inputs and outputs of a session by name. Outputs that are bound without memory are made by the call; into those that
    have some, it is copied."""

    def __init__(self, session: Any):
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def _known(self, name: str, parameters: Sequence) -> None:
        if all(p.name != name for p in parameters):
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")

    def _known_input(self, name: str) -> None:
        self._known(name, self._session.get_inputs() + self._session.get_overridable_initializers())

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        self._known_input(name)
        self._inputs[name] = arr_on_cpu

    @property
    def _iobinding(self) -> IOBinding:
        """Programs reach through to ONNX Runtime's bindings, which this is, too."""
        return self

    def bind_input(self, name: str, device_type: Any, *memory: Any, **named: Any) -> None:
        """Memory of the caller's, who keeps it while it is bound: bind_input(name, device_type, device_id, element_type, shape,
        buffer_ptr), and as the bindings have it, an OrtDevice for the first two, or an array alone."""
        if not isinstance(device_type, (str, OrtDevice)):
            self.bind_cpu_input(name, device_type)
            return
        self._known_input(name)
        self._inputs[name] = _placed(device_type, *memory, **named)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._known_input(name)
        self._inputs[name] = ortvalue

    def bind_output(self, name: str, device_type: str | OrtDevice = "cpu", *memory: Any, **named: Any) -> None:
        """bind_output(name, device_type, device_id, element_type, shape, buffer_ptr): memory of the caller's, who keeps it, or
        none; as the bindings have it, an OrtDevice for the device's kind and number."""
        self._known(name, self._session.get_outputs())
        array = _placed(device_type, *memory, **named)
        self._outputs[name] = None if array is None else OrtValue(array)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._known(name, self._session.get_outputs())
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Nothing to wait for on the CPU."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for on the CPU."""

    def get_outputs(self) -> list[OrtValue]:
        """Of the last call, in the order in which they were bound."""
        return self._results

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        vector = OrtValueVector()
        for result in self._results:
            vector.push_back(result)
        return vector

    def copy_outputs_to_cpu(self) -> list:
        return [r.numpy().copy() if r.is_tensor() else r._value for r in self._results]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results = []

    def _run(self, run_options: Any) -> None:
        if not self._outputs:
            raise RuntimeError("Error in execution: At least one output should be requested.")
        _require_apart({name: bound._value for name, bound in self._outputs.items() if bound is not None})
        try:
            values = self._session._run(list(self._outputs), self._inputs, run_options)
        except (ValueError, *errors.ALL) as error:
            raise RuntimeError(f"Error in execution: {error}") from error
        results = []
        for (name, bound), value in zip(self._outputs.items(), values):
            if bound is not None:
                _require_type(name, bound, value)
                bound.update_inplace(value)
            results.append(bound if bound is not None else OrtValue(value))
        self._results = results


def _require_apart(arrays: dict[str, Any]) -> None:
    """Outputs that are written into one memory would be lost without a word. Inputs have been read when outputs are written."""
    spans = sorted(
        (*_byte_bounds(array), name)
        for name, array in arrays.items()
        if isinstance(array, np.ndarray) and array.size
    )
    for (_, end, first), (start, _, second) in zip(spans, spans[1:]):
        if start < end:
            raise errors.InvalidArgument.of(f"expected outputs in memory of their own, but '{first}' and '{second}' overlap")


def _require_type(name: str, bound: OrtValue, value: Any) -> None:
    expected, actual = OrtValue(value).data_type(), bound.data_type()
    if isinstance(value, np.ndarray) and bound._value.dtype != value.dtype:
        raise RuntimeError(
            f"Error in execution: Unexpected output data type. Actual: ({actual}) , expected: ({expected}): output '{name}'"
        )


def _placed(
    device_type: str | OrtDevice,
    *memory: Any,
    **named: Any,
) -> np.ndarray | None:
    """An array over what is said of memory of the caller's, if anything is. Errors: a device that is not the CPU."""
    require_cpu(device_type)
    known = ["element_type", "shape", "buffer_ptr"]
    if not isinstance(device_type, OrtDevice):
        known.insert(0, "device_id")
    said = dict(zip(known, memory)) | named
    unknown = set(said) - set(known)
    if len(memory) > len(known) or unknown:
        raise TypeError(f"expected {', '.join(known)} of memory but got {len(memory)} values" + "".join(f", {n}" for n in sorted(unknown)))
    address = said.get("buffer_ptr")
    return None if address is None else _over(address, said.get("shape"), said.get("element_type"))


def _over(address: int, shape: Sequence[int] | None, element_type: Any) -> np.ndarray:
    """An array over memory of the caller's."""
    if shape is None or element_type is None:
        raise ValueError("`element_type` and `shape` are to be given if memory is")
    if isinstance(element_type, int):
        element_type = element_types.to_numpy(element_types.of_number(element_type))
    dtype = np.dtype(element_type)
    count = int(np.prod(shape, dtype=np.int64))
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype).reshape(tuple(shape))
