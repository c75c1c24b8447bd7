"""From what a caller feeds to what a compiled library takes."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from .. import _values
from . import element_types, errors
from .parameters import NodeArg
from .values import OrtValue


def value_of(value: Any, parameter: NodeArg) -> Any:
    """As the input's type says; tensors, those in sequences too, as array_of makes them."""
    if isinstance(value, OrtValue):
        value = value._value
    return array_of(value, parameter) if parameter.element else _of_type(value, _values.parse(parameter.of), parameter)


def _of_type(value: Any, of: tuple, parameter: NodeArg) -> Any:
    kind = of[0]
    if isinstance(value, OrtValue):
        value = value._value
    if kind == "optional":
        return None if value is None else _of_type(value, of[1], parameter)
    expected = {"sequence": (list, tuple), "map": Mapping}.get(kind)
    if expected is None:
        return array_of(value, NodeArg(parameter.name, kind, [], False))
    if not isinstance(value, expected):
        raise errors.InvalidArgument.of(
            f"Unexpected data for input: {parameter.name}: got {type(value).__name__}, expected: ({parameter.type})"
        )
    return [_of_type(item, of[1], parameter) for item in value] if kind == "sequence" else value


def array_of(value: Any, parameter: NodeArg) -> Any:
    """Compact, and of the input's type and shape. Arrays have to be of its type; lists and numbers become so."""
    element = parameter.element
    if type(value) is np.ndarray and value.dtype is element_types.as_it_is(element):
        flags = value.flags
        if flags.c_contiguous and flags.aligned:  # as most are
            _check_shape(value.shape, parameter)
            return value
    if isinstance(value, (list, tuple, int, float, bool, str, bytes)):
        try:
            value = np.array(value, element_types.to_numpy(element))
        except (TypeError, ValueError, OverflowError) as error:
            raise RuntimeError(f"Unexpected data for input: {parameter.name}: {error}") from None
    if value is None:
        raise errors.Fail.of(f"Missing Input: {parameter.name}: expected {parameter.type} but got None")
    array = element_types.plain(value)
    if array.dtype.kind == "O" and element != "string" and not isinstance(value, (np.ndarray, Mapping)):
        raise RuntimeError(f"Unexpected data for input: {parameter.name}: unable to handle object of type {type(value)}")
    actual = element_types.of_numpy(array.dtype)
    # Types that NumPy lacks may come as their bits.
    is_bits = array.dtype.kind == "u" and element_types.number_of(element) >= 16
    if actual != element and not (is_bits and array.dtype.itemsize == element_types.to_numpy(element).itemsize):
        raise errors.InvalidArgument.of(
            f"Unexpected input data type. Actual: (tensor({actual})) , expected: ({parameter.type})"
        )
    if is_bits:
        array = array.view(element_types.to_numpy(element))
    _check_shape(array.shape, parameter)
    if element == "string":
        return _texts(array)
    return element_types.stored(array, element)


def _texts(array: np.ndarray) -> np.ndarray:
    """Objects, each a text: numbers and None are those that they are printed as, as ONNX Runtime takes them."""
    texts = np.empty(array.shape, object)
    for place, item in np.ndenumerate(array):
        texts[place] = item if isinstance(item, (str, bytes)) else str(item)
    return texts


def _check_shape(shape: tuple, parameter: NodeArg) -> None:
    if not parameter.is_ranked:
        return
    advice = "Please fix either the inputs/outputs or the model."
    if len(shape) != len(parameter.shape):
        raise errors.InvalidArgument.of(
            f"Invalid rank for input: {parameter.name} Got: {len(shape)} Expected: {len(parameter.shape)} {advice}"
        )
    wrong = [(i, g, e) for i, (g, e) in enumerate(zip(shape, parameter.shape)) if g != e and isinstance(e, int) and e >= 0]
    if wrong:
        lines = "".join(f"\n index: {i} Got: {g} Expected: {e}" for i, g, e in wrong)
        raise errors.InvalidArgument.of(
            f"Got invalid dimensions for input: {parameter.name} for the following indices{lines}\n {advice}"
        )


def arrays_of(feeds: Mapping[str, Any], inputs: list[NodeArg], overridable: list[NodeArg]) -> tuple[dict, tuple]:
    """The values by name, and the names of the initializers among them."""
    missing = [i.name for i in inputs if i.name not in feeds]
    if missing:
        raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feeds)}).")
    given = sorted((p for p in overridable if p.name in feeds), key=lambda p: p.name) if overridable else []
    if not isinstance(feeds, dict) or len(feeds) != len(inputs) + len(given):
        known = {p.name for p in (*inputs, *overridable)}
        for name in feeds:
            if name not in known:
                raise errors.InvalidArgument.of(f"Invalid input name: {name}")
    return {p.name: value_of(feeds[p.name], p) for p in (*inputs, *given)}, tuple(p.name for p in given)
