"""Element types: ONNX's number, the name in `tensor(…)`, and NumPy's type."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import _values
from ..nd import _numpy_type

# The name in ONNX's types → its number, the name that Tenon has for it.
_ROWS = {
    "float": (1, "float32"),
    "uint8": (2, "uint8"),
    "int8": (3, "int8"),
    "uint16": (4, "uint16"),
    "int16": (5, "int16"),
    "int32": (6, "int32"),
    "int64": (7, "int64"),
    "string": (8, "string"),
    "bool": (9, "bool"),
    "float16": (10, "float16"),
    "double": (11, "float64"),
    "uint32": (12, "uint32"),
    "uint64": (13, "uint64"),
    "bfloat16": (16, "bfloat16"),
    "float8e4m3fn": (17, "float8_e4m3fn"),
    "float8e4m3fnuz": (18, "float8_e4m3fnuz"),
    "float8e5m2": (19, "float8_e5m2"),
    "float8e5m2fnuz": (20, "float8_e5m2fnuz"),
    "uint4": (21, "uint4"),
    "int4": (22, "int4"),
    "float4e2m1": (23, "float4_e2m1fn"),
    "float8e8m0": (24, "float8_e8m0fnu"),
    "uint2": (25, "uint2"),
    "int2": (26, "int2"),
}
_NAME_OF_TENONS = {tenons: name for name, (_, tenons) in _ROWS.items()}
_NAME_OF_NUMBER = {number: name for name, (number, _) in _ROWS.items()}
# What a compiled library takes for types of less than a byte: the bytes of an array of ml_dtypes.
_STORED = {"uint4": "uint8", "int4": "int8", "float4e2m1": "uint8", "uint2": "uint8", "int2": "int8"}


def of_tenon(name: str) -> str:
    """ "float" of "float32"; of a type that no tensor of ours has, as `inspect` says it, its number's name."""
    if name.startswith("type "):
        return _NAME_OF_NUMBER.get(int(name[5:]), "undefined")
    return _NAME_OF_TENONS.get(name, name)


def type_of(text: str) -> str:
    """ "seq(map(int64,tensor(float)))" of "sequence(map(int64, float32))"."""
    return _type_of(_values.parse(text))


def _type_of(of: tuple) -> str:
    if of[0] == "map":
        return f"map({of_tenon(of[1][0])},{_type_of(of[2])})"
    if len(of) > 1:
        return f"{'seq' if of[0] == 'sequence' else of[0]}({_type_of(of[1])})"
    return f"tensor({of_tenon(of[0])})"


def innermost(type: str) -> str:
    """ "float" of "seq(tensor(float))"."""
    return type.rpartition("(")[2].rstrip(")")


def of_number(number: int) -> str:
    if number not in _NAME_OF_NUMBER:
        raise RuntimeError(f"tensor type {number} is not supported")
    return _NAME_OF_NUMBER[number]


def number_of(name: str) -> int:
    return _ROWS[name][0]


def require(dtype: np.dtype) -> None:
    """Errors: tensors have no elements of this type."""
    if of_numpy(dtype) not in _ROWS:
        raise RuntimeError(f"Numpy_type {dtype.num} can't be converted to MLDataType: there are no tensors of {dtype}")


def of_numpy(dtype: np.dtype) -> str:
    """Objects and Unicode strings are strings."""
    return "string" if dtype.kind in "OUS" else _of_number_type(dtype)


@functools.cache
def _of_number_type(dtype: np.dtype) -> str:
    return of_tenon(dtype.name)


@functools.cache
def to_numpy(name: str) -> np.dtype:
    return np.dtype(object) if name == "string" else _numpy_type(_ROWS[name][1])


@functools.cache
def as_it_is(name: str) -> np.dtype | None:
    """Of types that NumPy has and compiled libraries take as NumPy has them; else None."""
    return to_numpy(name) if name in _ROWS and name != "string" and _ROWS[name][0] < 16 else None


def stored(array: np.ndarray, name: str) -> np.ndarray:
    """What a compiled library takes of it, whose types have whole bytes."""
    return array.view(np.dtype(_STORED[name])) if name in _STORED else array


def given_as(array: np.ndarray, name: str) -> np.ndarray:
    """What a library has stored as what it is."""
    return array if name not in _ROWS or _ROWS[name][0] < 17 else array.view(to_numpy(name))


def plain(value: Any) -> Any:
    """Compact, aligned, of this machine's byte order."""
    value = np.asarray(value, order="C")
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    return value if value.flags.aligned else value.copy()
