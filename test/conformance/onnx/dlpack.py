"""NumPy arrays of element types that NumPy's DLPack does not carry (those of ml_dtypes) to callees and back.

A bfloat16 array, or one of 8-bit floats, travels as its bits, unsigned integers, whose capsule then says what they are.
Arrays of narrower types are bytes to a callee: integers of 4 and 2 bits by their values, floats of 4 by their bits.
"""
import ctypes

import ml_dtypes
import numpy as np

_FLOAT8 = ("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
           "float8_e8m0fnu")  # from kDLFloat8_e3m4 on
_CODES = {np.dtype(ml_dtypes.bfloat16): (4, 16, np.uint16),  # kDLBfloat
          **{np.dtype(getattr(ml_dtypes, name)): (7 + i, 8, np.uint8) for i, name in enumerate(_FLOAT8)}}
_BYTES = {np.dtype(getattr(ml_dtypes, name)): np.int8 if name.startswith("int") else np.uint8
          for name in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn")}
_DTYPE_AT = 20  # in a DLTensor: data, device and ndim come before

_get = ctypes.pythonapi.PyCapsule_GetPointer
_get.restype, _get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _say(capsule, code: int, bits: int):
    """Makes a fresh capsule's tensor one of that type."""
    tensor = _get(capsule, b"dltensor")
    ctypes.c_uint8.from_address(tensor + _DTYPE_AT).value = code
    ctypes.c_uint8.from_address(tensor + _DTYPE_AT + 1).value = bits
    return capsule


class _Bits:
    def __init__(self, array: np.ndarray):
        self.code, self.bits, integer = _CODES[array.dtype]
        self.array = array.view(integer)

    def __dlpack__(self, **_):
        return _say(self.array.__dlpack__(), self.code, self.bits)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class _Integers:
    def __init__(self, tensor, bits: int):
        self.tensor, self.bits = tensor, bits

    def __dlpack__(self, **_):
        return _say(self.tensor.__dlpack__(), 1, self.bits)  # kDLUInt

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def as_bytes(array: np.ndarray):
    """The array itself, or, of types narrower than a byte, its bytes."""
    return array.view(_BYTES[array.dtype]) if array.dtype in _BYTES else array


def to_argument(array: np.ndarray):
    """What a function takes in place of the array; it shares its memory."""
    import tvm_ffi

    array = as_bytes(array)
    return tvm_ffi.from_dlpack(_Bits(array)) if array.dtype in _CODES else array


def to_numpy(tensor, dtype) -> np.ndarray:
    """The array of a returned tensor, which should be of `dtype`."""
    if np.dtype(dtype) in _BYTES and str(tensor.dtype) == np.dtype(_BYTES[np.dtype(dtype)]).name:
        return np.from_dlpack(tensor).view(dtype)
    if np.dtype(dtype) not in _CODES or str(tensor.dtype) != str(np.dtype(dtype)):
        return np.from_dlpack(tensor)
    _, bits, _ = _CODES[np.dtype(dtype)]
    return np.from_dlpack(_Integers(tensor, bits)).view(dtype)
