"""Tensors with memory. Every array library's arrays can be passed to compiled functions as they are;
these are for code that uses no other."""

from __future__ import annotations

import functools
from typing import Any, Sequence

import numpy as np

from . import _arguments, _left_out
from ._tenon import DEVICE_TYPES, Device, NDArray, device as _device, empty as _empty, from_dlpack

__all__ = ["Device", "NDArray", "array", "cpu", "cuda", "device", "empty", "from_dlpack", "gpu", "opencl"]


_TYPES = {**DEVICE_TYPES, "gpu": DEVICE_TYPES["cuda"], "llvm": DEVICE_TYPES["cpu"], "c": DEVICE_TYPES["cpu"]}
_CPU = _TYPES["cpu"]


@functools.cache
def _numpy_type(dtype: Any) -> np.dtype:
    """NumPy's type of this name, or of the package ml_dtypes, which has those that NumPy lacks."""
    try:
        return np.dtype(dtype)
    except TypeError:
        try:
            import ml_dtypes
        except ImportError:
            raise TypeError(
                f"NumPy has no type {dtype}; the package ml_dtypes, which has it, is not installed"
            ) from None
        return np.dtype(getattr(ml_dtypes, dtype, dtype) if isinstance(dtype, str) else dtype)


def device(type: int | str, id: int = 0) -> Device:
    """A device by its name ("cpu", "cuda", "opencl"; "cuda:1" is the second one), by a target of it ("llvm"), or by DLPack's
    number."""
    if isinstance(type, str):
        name, colon, number = type.partition(" ")[0].partition(":")
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


gpu = cuda


def _placed(where: Any) -> Device:
    return device(where) if isinstance(where, str) else cpu() if where is None else where


def empty(shape: int | Sequence[int], dtype: Any = "float32", device: Device | str | None = None) -> NDArray:
    """A new tensor; its contents are not set."""
    shape = (shape,) if isinstance(shape, int) else shape
    return _empty([int(d) for d in shape], dtype if isinstance(dtype, str) else np.dtype(dtype).name, _placed(device))


def array(values: Any, device: Device | str | None = None) -> NDArray:
    """A copy of an array, or of a list of numbers."""
    source = values.numpy() if isinstance(values, NDArray) else np.asarray(values, order="C")
    if source.dtype == object:
        raise TypeError(f"array: expected numbers for 'values' but got {_arguments.kinds(values)}")
    result = empty(source.shape, source.dtype.name, device)
    return result.copyfrom(source)


def _array(self) -> np.ndarray:
    """A view of memory on the CPU."""
    bits, dtype = self._bits(), _numpy_type(self.dtype)
    return bits if bits.dtype == dtype else bits.view(dtype)


def _plain(values: np.ndarray) -> np.ndarray:
    """What DLPack passes of an array: of types that NumPy lacks, their bits."""
    return values if values.dtype.isbuiltin == 1 else values.view(f"u{values.dtype.itemsize}")


def _numpy(self) -> np.ndarray:
    """A copy as a NumPy array; of bfloat16 and 8-bit floats as ml_dtypes has them."""
    if self.device.device_type == _CPU:
        return self._array().copy()
    result = np.empty(self.shape, _numpy_type(self.dtype))
    self._read(_plain(result))
    return result


def _as_array(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """What np.asarray takes: the memory itself where it is the CPU's and of that type, a copy otherwise, or where one is asked for."""
    wanted = _numpy_type(self.dtype) if dtype is None else np.dtype(dtype)
    in_place = self.device.device_type == _CPU and _numpy_type(self.dtype) == wanted
    if copy is False and not in_place:
        raise ValueError(f"np.asarray(…, copy=False): {self.dtype} on {self.device} cannot be had as {wanted} without a copy")
    return self._array() if in_place and not copy else self.numpy().astype(wanted, copy=False)


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
        self._write(_plain(np.ascontiguousarray(np.broadcast_to(np.asarray(values, _numpy_type(self.dtype)), self.shape))))
    return self


def _copyto(self, target: NDArray) -> NDArray:
    """Sets all elements of another."""
    return target.copyfrom(self)


def _getitem(self, index: Any) -> Any:
    """Of an array on a device, of a copy."""
    return self._array()[index] if self.device.device_type == _CPU else self.numpy()[index]


NDArray._array = _array
NDArray.numpy = _numpy
NDArray.asnumpy = _numpy
NDArray.copyfrom = _arguments.annotated(_copyfrom, "copyfrom")
NDArray.copyto = _arguments.annotated(_copyto, "copyto")
NDArray.__array__ = _as_array
NDArray.ctx = property(lambda self: self.device)
NDArray.__repr__ = lambda self: f"<tenon.NDArray shape={self.shape}, {self.device}>\n{self.numpy()}"
NDArray.__len__ = lambda self: self.shape[0]
NDArray.__getitem__ = _getitem
NDArray.__setitem__ = lambda self, index, value: self._array().__setitem__(index, value)


__getattr__ = _left_out.names_of("nd.", __name__)
_arguments.say_clearly(globals())
