"""Values of ONNX tests that may be no tensors: lists (sequences), None (an optional value that is not there), strings."""
import numpy as np
import onnx
from dlpack import to_argument, to_numpy
from onnx import numpy_helper

PROTOS = {
    "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
    "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
    "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
}


def read(path, of_type: onnx.TypeProto):
    """The value in a file, as arrays of NumPy that may be written to."""
    proto, convert = PROTOS[of_type.WhichOneof("value")]
    message = proto()
    message.ParseFromString(path.read_bytes())
    return own(convert(message))


def own(value):
    if value is None:
        return None
    if isinstance(value, list):
        return [own(item) for item in value]
    value = np.array(value, order="C")  # of rank 0 too
    return as_text(value) if is_text(value) else value


def is_text(value) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "OUS"


def as_text(value):
    texts = [s.decode() if isinstance(s, bytes) else str(s) for s in value.ravel()]
    out = np.empty(value.size, object)
    out[:] = texts
    return out.reshape(value.shape)


def to_call(value):
    """As tvm_ffi passes it to a library (docs/calling.md)."""
    import tvm_ffi

    if value is None:
        return None
    if isinstance(value, list):
        return tvm_ffi.Array([to_call(item) for item in value])
    if is_text(value):
        return tvm_ffi.Array([tvm_ffi.Array(list(value.shape)), tvm_ffi.Array(list(value.ravel()))])
    return to_argument(value)


def from_call(got, want):
    """What a library gave in place of `want`."""
    if got is None or want is None:
        return got
    if isinstance(want, list):
        items = list(got)
        return [from_call(g, w) for g, w in zip(items, want)] if len(items) == len(want) else items
    if is_text(want):
        shape, texts = got
        out = np.empty(len(texts), object)
        out[:] = [str(s) for s in texts]
        return out.reshape([int(d) for d in shape])
    return to_numpy(got, want.dtype)


def differ(got, want, compare):
    """None, or how two values differ; `compare` does it for tensors of numbers."""
    if want is None or got is None:
        return None if got is want else f"got {got}, expected {want}"
    if isinstance(want, list):
        if len(got) != len(want):
            return f"{len(got)} elements, expected {len(want)}"
        for i, (g, w) in enumerate(zip(got, want)):
            difference = differ(g, w, compare)
            if difference:
                return f"element {i}: {difference}"
        return None
    if is_text(want):
        if got.shape != want.shape:
            return f"shape {got.shape}, expected {want.shape}"
        return None if (got == want).all() else f"strings {got.tolist()}, expected {want.tolist()}"
    return compare(got, want)
