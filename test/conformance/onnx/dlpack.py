"""NumPy arrays of element types that NumPy's DLPack does not carry (bfloat16 of ml_dtypes) to callees and back.

Such an array travels as its bits, unsigned integers, whose capsule then says what they are.
"""
import ctypes

import ml_dtypes
import numpy as np

_CODES = {np.dtype(ml_dtypes.bfloat16): (4, 16, np.uint16)}  # kDLBfloat
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


def to_argument(array: np.ndarray):
    """What a function takes in place of the array; it shares its memory."""
    import tvm_ffi

    return tvm_ffi.from_dlpack(_Bits(array)) if array.dtype in _CODES else array


def to_numpy(tensor, dtype) -> np.ndarray:
    """The array of a returned tensor, which should be of `dtype`."""
    if np.dtype(dtype) not in _CODES or str(tensor.dtype) != str(np.dtype(dtype)):
        return np.from_dlpack(tensor)
    _, bits, _ = _CODES[np.dtype(dtype)]
    return np.from_dlpack(_Integers(tensor, bits)).view(dtype)
