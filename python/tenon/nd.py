"""Tensors with memory. Every array library's arrays can be passed to compiled functions as they are;
these are for code that uses no other."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from . import _arguments
from ._tenon import DEVICE_TYPES, Device, NDArray, device as _device, empty as _empty, from_dlpack

__all__ = ["Device", "NDArray", "array", "cpu", "cuda", "device", "empty", "from_dlpack", "opencl"]


_TYPES = {**DEVICE_TYPES, "gpu": DEVICE_TYPES["cuda"]}
_CPU = _TYPES["cpu"]


def device(type: int | str, id: int = 0) -> Device:
    """A device by its name ("cpu", "cuda", "opencl"; "cuda:1" is the second one) or by DLPack's number."""
    if isinstance(type, str):
        name, colon, number = type.partition(":")
        if name not in _TYPES or (colon and not number.isdecimal()):
            raise ValueError(f"there is no device '{type}'; expected cpu, cuda or opencl, as in \"cuda:0\"")
        type, id = _TYPES[name], int(number) if colon else id
    return _device(type, id)


def cpu(index: int = 0) -> Device:
    return device("cpu", index)


def cuda(index: int = 0) -> Device:
    return device("cuda", index)


def opencl(index: int = 0) -> Device:
    return device("opencl", index)


def _placed(where: Any) -> Device:
    return device(where) if isinstance(where, str) else cpu() if where is None else where


def empty(shape: int | Sequence[int], dtype: Any = "float32", device: Device | str | None = None) -> NDArray:
    """A new tensor; its contents are not set."""
    shape = (shape,) if isinstance(shape, int) else shape
    return _empty([int(d) for d in shape], str(np.dtype(dtype)) if not isinstance(dtype, str) else dtype, _placed(device))


def array(values: Any, device: Device | str | None = None) -> NDArray:
    """A copy of an array, or of a list of numbers."""
    source = values.numpy() if isinstance(values, NDArray) else np.ascontiguousarray(values)
    if source.dtype == object:
        raise TypeError(f"array: expected numbers for 'values' but got {_arguments.kinds(values)}")
    result = empty(source.shape, source.dtype.name, device)
    return result.copyfrom(source)


def _numpy(self) -> np.ndarray:
    """A copy as a NumPy array."""
    if self.device.device_type == _CPU:
        return self._array().copy()
    result = np.empty(self.shape, self.dtype)
    self._read(result)
    return result


def _copyfrom(self, values: Any) -> NDArray:
    """Sets all elements."""
    if isinstance(values, NDArray):
        if (values.shape, values.dtype) == (self.shape, self.dtype):
            self._copy(values)
            return self
        values = values.numpy()
    if self.device.device_type == _CPU:
        self._array()[...] = values
    else:
        self._write(np.ascontiguousarray(np.broadcast_to(np.asarray(values, self.dtype), self.shape)))
    return self


def _copyto(self, target: NDArray) -> NDArray:
    """Sets all elements of another."""
    return target.copyfrom(self)


def _getitem(self, index: Any) -> Any:
    """Of an array on a device, of a copy."""
    return self._array()[index] if self.device.device_type == _CPU else self.numpy()[index]


NDArray.numpy = _numpy
NDArray.asnumpy = _numpy
NDArray.copyfrom = _arguments.annotated(_copyfrom, "copyfrom")
NDArray.copyto = _arguments.annotated(_copyto, "copyto")
NDArray.__array__ = lambda self, dtype=None, copy=None: self.numpy() if dtype is None else self.numpy().astype(dtype)
NDArray.__repr__ = lambda self: f"<tenon.NDArray shape={self.shape}, {self.device}>\n{self.numpy()}"
NDArray.__len__ = lambda self: self.shape[0]
NDArray.__getitem__ = _getitem
NDArray.__setitem__ = lambda self, index, value: self._array().__setitem__(index, value)


_arguments.say_clearly(globals())
