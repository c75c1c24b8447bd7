"""Values that outlive a call, on the CPU, and where they lie."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from . import element_types
from .enumerations import OrtSparseFormat

_DEVICE_TYPES = {"cpu": 0, "gpu": 1, "cuda": 1, "npu": 3}


class OrtDevice:
    """A device by its kind and number; sessions run on "cpu". As ONNX Runtime's bindings make it, of numbers: the kind, the memory's,
    perhaps the vendor's, and the device's."""

    def __init__(self, kind: str | int = "cpu", *numbers: int):
        names = {number: name for name, number in _DEVICE_TYPES.items()}
        if isinstance(kind, int) and kind not in names:
            raise RuntimeError(f"Unsupported device type: {kind}")
        self._kind = names[kind] if isinstance(kind, int) else kind
        self._id = numbers[-1] if numbers else 0

    @staticmethod
    def cpu() -> int:
        return _DEVICE_TYPES["cpu"]

    @staticmethod
    def cuda() -> int:
        return _DEVICE_TYPES["cuda"]

    @staticmethod
    def default_memory() -> int:
        return 0

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        if ort_device_name.lower() not in _DEVICE_TYPES:
            raise Exception(f"Unsupported device type: {ort_device_name}")
        return OrtDevice(ort_device_name.lower(), device_id)

    def device_id(self) -> int:
        return self._id

    def device_type(self) -> int:
        return _DEVICE_TYPES[self._kind]

    def device_vendor_id(self) -> int:
        return 0

    def device_mem_type(self) -> int:
        return 0


class OrtMemoryInfo:
    """Where memory lies, and who gives it: on the CPU, by the system. What programs make for IOBinding and allocators; nothing
    here depends on it."""

    def __init__(self, name: str, allocator_type: int, device_id: int, mem_type: int):
        self.name, self.allocator_type, self.device_id, self.mem_type = name, allocator_type, device_id, mem_type

    def __repr__(self) -> str:
        return f"OrtMemoryInfo(name='{self.name}', device_id={self.device_id})"


class _CooView:
    def __init__(self, indices: np.ndarray):
        self._indices = indices

    def indices(self) -> np.ndarray:
        return self._indices


class _CsrView:
    def __init__(self, inner: np.ndarray, outer: np.ndarray):
        self._inner, self._outer = inner, outer

    def inner(self) -> np.ndarray:
        return self._inner

    def outer(self) -> np.ndarray:
        return self._outer


class SparseTensor:
    """The elements of a tensor that are not zero, and where they are. Held and told; sessions take dense arrays."""

    def __init__(self, dense_shape: Sequence[int], values: np.ndarray, view: _CooView | _CsrView):
        self._shape, self._values, self._view = [int(n) for n in dense_shape], values, view

    @classmethod
    def sparse_coo_from_numpy(
        cls, dense_shape: Sequence[int], values: np.ndarray, coo_indices: np.ndarray, ort_device: Any = None
    ) -> SparseTensor:
        """Indices are flat, one for each value, or a row of coordinates for each."""
        if np.size(coo_indices) not in (len(values), len(values) * len(dense_shape)):
            raise RuntimeError(f"expected an index for each of {len(values)} values but got {np.shape(coo_indices)}")
        return cls(dense_shape, values, _CooView(coo_indices))

    @classmethod
    def sparse_csr_from_numpy(
        cls, dense_shape: Sequence[int], values: np.ndarray, inner_indices: np.ndarray, outer_indices: np.ndarray, ort_device: Any = None
    ) -> SparseTensor:
        """Columns, one for each value, and where each row begins and the last ends."""
        if len(inner_indices) != len(values) or len(outer_indices) != (dense_shape[0] + 1 if len(values) else len(outer_indices)):
            raise RuntimeError("expected a column for each value and a beginning for each row, and the end")
        return cls(dense_shape, values, _CsrView(inner_indices, outer_indices))

    def values(self) -> np.ndarray:
        return self._values

    def dense_shape(self) -> list[int]:
        return list(self._shape)

    def as_coo_view(self) -> _CooView:
        return self._as(_CooView)

    def as_csrc_view(self) -> _CsrView:
        return self._as(_CsrView)

    def _as(self, kind: type) -> Any:
        if not isinstance(self._view, kind):
            raise RuntimeError("the sparse tensor has another format")
        return self._view

    def data_type(self) -> str:
        return f"sparse_tensor({element_types.of_numpy(self._values.dtype)})"

    def format(self) -> OrtSparseFormat:
        coo = isinstance(self._view, _CooView)
        return OrtSparseFormat.ORT_SPARSE_COO if coo else OrtSparseFormat.ORT_SPARSE_CSRC

    def device_name(self) -> str:
        return "cpu"


def require_cpu(device_type: str | OrtDevice) -> None:
    if isinstance(device_type, OrtDevice):
        device_type = device_type._kind
    if device_type != "cpu":
        raise RuntimeError(f"sessions run on the CPU: expected device type 'cpu' but got '{device_type}'")


class OrtValue:
    """A tensor, as an array that it shares, or a sequence of such. Also what ONNX Runtime's bindings have beneath it."""

    def __init__(self, value: Any, element: str = ""):
        if isinstance(value, OrtValue):
            value, element = value._value, element or value._element
        self._value = value
        self._element = element or (element_types.of_numpy(value.dtype) if isinstance(value, np.ndarray) else "")

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: np.ndarray, device_type: str | OrtDevice = "cpu", device_id: int = 0, *_: Any) -> OrtValue:
        """Shares a compact array."""
        require_cpu(device_type)
        if not isinstance(numpy_obj, np.ndarray):
            raise RuntimeError(f"expected an array but got {type(numpy_obj).__name__}")
        element_types.require(numpy_obj.dtype)
        return cls(element_types.plain(numpy_obj))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, onnx_element_type: int) -> OrtValue:
        """An array of bits as what they are: uint16 as bfloat16, uint8 as an 8-bit float."""
        name = element_types.of_number(onnx_element_type)
        kind = element_types.to_numpy(name)
        if data.dtype.itemsize != kind.itemsize or name == "string":
            raise RuntimeError(f"expected elements of {kind.itemsize} bytes, as those of {name}, but got {data.dtype.itemsize}")
        return cls(element_types.plain(data).view(kind), name)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: Any, device_type: str | OrtDevice = "cpu", device_id: int = 0, *_: Any
    ) -> OrtValue:
        """Memory that is not set; the type is NumPy's, or ONNX's number."""
        require_cpu(device_type)
        if isinstance(element_type, int):
            element_type = element_types.to_numpy(element_types.of_number(element_type))
        element_types.require(np.dtype(element_type))
        if np.dtype(element_type).kind in "OUS":
            raise RuntimeError("expected elements of a fixed size: texts have no memory that is not set")
        return cls(np.empty(tuple(shape), element_type))

    @classmethod
    def from_dlpack(cls, data: Any) -> OrtValue:
        """Shares what another library's array has."""
        return cls(element_types.plain(np.from_dlpack(data)))

    @property
    def _ortvalue(self) -> OrtValue:
        """Programs reach through to the bindings' value, which is this one."""
        return self

    def _get_c_value(self) -> OrtValue:
        return self

    def _tensor(self) -> np.ndarray:
        if not isinstance(self._value, np.ndarray):
            raise RuntimeError("Only OrtValues that are Tensors are currently supported")
        return self._value

    def numpy(self) -> np.ndarray:
        return self._tensor()

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        tensor = self._tensor()
        return tensor.astype(dtype) if dtype is not None and dtype != tensor.dtype else tensor.copy() if copy else tensor

    def __dlpack__(self, **options: Any) -> Any:
        return self._tensor().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def update_inplace(self, np_arr: np.ndarray) -> None:
        """New elements, of the same shape, in the same memory."""
        tensor = self._tensor()
        if np.shape(np_arr) != tensor.shape:
            raise RuntimeError(f"expected an array of shape {tensor.shape} but got {np.shape(np_arr)}")
        tensor[...] = np_arr

    def data_ptr(self) -> int:
        return self._tensor().ctypes.data

    def device_name(self) -> str:
        return "cpu"

    def shape(self) -> list[int]:
        return list(self._tensor().shape)

    def data_type(self) -> str:
        """Such as tensor(float)."""
        if isinstance(self._value, np.ndarray):
            return f"tensor({self._element})"
        return f"seq({OrtValue(self._value[0]).data_type()})" if isinstance(self._value, list) and self._value else "seq"

    def element_type(self) -> int:
        """ONNX's number."""
        self._tensor()
        return element_types.number_of(self._element)

    def tensor_size_in_bytes(self) -> int:
        return self._tensor().nbytes

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return isinstance(self._value, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        return False

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list)


class OrtValueVector:
    """A list of values, as programs hand them over to several calls."""

    def __init__(self) -> None:
        self._values: list[OrtValue] = []

    def push_back(self, value: Any) -> None:
        """A value, or what another library offers by DLPack."""
        self._values.append(value if isinstance(value, OrtValue) else OrtValue.from_dlpack(value))

    def reserve(self, count: int) -> None:
        """Lists grow by themselves."""

    def shrink_to_fit(self) -> None:
        """Lists are as long as what they hold."""

    def element_type_at(self, idx: int) -> int:
        """ONNX's number."""
        return self._values[idx].element_type()

    def dlpack_at(self, idx: int) -> Any:
        return self._values[idx].__dlpack__()

    def to_dlpacks(self, to_tensor: Any = None) -> list:
        """What `to_tensor` makes of each value's capsule, or the capsules."""
        capsules = [v.__dlpack__() for v in self._values]
        return capsules if to_tensor is None else [to_tensor(c) for c in capsules]

    def __getitem__(self, index: int) -> OrtValue:
        return self._values[index]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Any:
        return iter(self._values)
