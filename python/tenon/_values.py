"""Values of networks that are no tensors of numbers, as Python has them and as a library takes them (docs/calling.md).

    type                     in Python
    float32, int64, …        an array
    string                   an array of objects; `<U` and bytes, lists and single texts are taken too
    sequence(T)              a list
    optional(T)              None, or a T
    map(K, V)                a dict of ints or texts, in the order of its keys

A type is text in a library's description; here it is a tuple of its kind and what it is made of."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from . import nd

_KINDS = ("sequence", "optional", "map")


def parse(text: str) -> tuple:
    """("sequence", ("map", ("int64",), ("float32",))) of "sequence(map(int64, float32))"."""
    kind, parenthesis, inner = text.partition("(")
    if not parenthesis:
        return (text,)
    if kind not in _KINDS or not inner.endswith(")"):
        raise ValueError(f"'{text}' is no type of a value")
    inner = inner[:-1]
    if kind != "map":
        return kind, parse(inner)
    key, _, value = inner.partition(", ")
    return kind, (key,), parse(value)


def has_values(signature: Mapping) -> bool:
    """Whether a function takes or gives other values than tensors of numbers."""
    types = [parse(p["dtype"])[0] for p in (*signature["inputs"], *signature["outputs"])]
    return any(t in _KINDS or t == "string" for t in types)


def texts_of(value: Any) -> np.ndarray:
    """An array of objects, which are all str."""
    array = np.asarray(value)
    if array.size == 0 and isinstance(value, (list, tuple)):
        array = array.astype(object)  # which lists of nothing do not say
    if array.dtype.kind not in "OUS":
        raise TypeError(f"expected strings but got an array of {array.dtype}")
    out = np.empty(array.shape, object)
    for place, text in np.ndenumerate(array):
        if isinstance(text, bytes):
            text = text.decode()
        if not isinstance(text, str):
            raise TypeError(f"expected strings but element {list(place)} is of type {type(text).__name__}")
        out[place] = text
    return out


def _numbers_of(value: Any, name: str, nested: bool) -> Any:
    """An array, of the type where the caller's has none."""
    if isinstance(value, (list, tuple, int, float, bool)):
        value = np.array(value, nd._numpy_type(name))
    return nd.array(value) if nested and not isinstance(value, nd.NDArray) else value


def to_call(value: Any, of: tuple, nested: bool = False) -> Any:
    """What the library takes. Errors: TypeError where the value is not of the type."""
    kind = of[0]
    if kind == "string":
        texts = texts_of(value)
        return [list(texts.shape), texts.ravel().tolist()]
    if kind == "optional":
        return None if value is None else to_call(value, of[1], True)
    if kind == "sequence":
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
            raise TypeError(f"expected a list but got {type(value).__name__}")
        return [to_call(item, of[1], True) for item in value]
    if kind == "map":
        if not isinstance(value, Mapping):
            raise TypeError(f"expected a dict but got {type(value).__name__}")
        # Keys are in order, so that a map is one value however it was made.
        keys = sorted(value)
        return [to_call(keys, of[1], True), to_call([value[k] for k in keys], of[2], True)]
    return _numbers_of(value, kind, nested)


def from_call(value: Any, of: tuple) -> Any:
    """What the library gave."""
    kind = of[0]
    if kind == "string":
        shape, texts = value
        out = np.empty(len(texts), object)
        out[:] = texts
        return out.reshape(shape)
    if kind == "optional":
        return None if value is None else from_call(value, of[1])
    if kind == "sequence":
        return [from_call(item, of[1]) for item in value]
    if kind == "map":
        keys, values = (from_call(half, t) for half, t in zip(value, of[1:]))
        plain = [half.numpy().tolist() if isinstance(half, nd.NDArray) else half.tolist() for half in (keys, values)]
        return dict(sorted(zip(*plain), key=lambda entry: entry[0]))
    return value


class Function:
    """A network's function with its values as Python has them. Tensors of numbers are as for other functions."""

    def __init__(self, function: Any, signature: Mapping):
        self._function, self._signature = function, signature
        self._inputs = [(p["name"], parse(p["dtype"])) for p in signature["inputs"]]
        self._outputs = [parse(p["dtype"]) for p in signature["outputs"]]

    def limited(self, max_team: int = 0, **bounds: Any) -> Function:
        """The function within the bounds of tenon.Function.limited."""
        return Function(self._function.limited(max_team, **bounds), self._signature)

    def __call__(self, *args: Any) -> Any:
        """One result, or a tuple of them. Errors: TypeError where an argument is not of its type, and those of the call."""
        if len(args) != len(self._inputs):
            names = ", ".join(name for name, _ in self._inputs)
            raise TypeError(f"expected {len(self._inputs)} arguments ({names}) but got {len(args)}: the call makes all outputs")
        given = []
        for arg, (name, of) in zip(args, self._inputs):
            try:
                given.append(to_call(arg, of))
            except (TypeError, ValueError, OverflowError) as error:
                raise TypeError(f"input '{name}': {error}") from None
        result = self._function(*given)
        if len(self._outputs) == 1:
            return from_call(result, self._outputs[0])
        return tuple(from_call(r, of) for r, of in zip(result, self._outputs))

    def __repr__(self) -> str:
        return repr(self._function)
