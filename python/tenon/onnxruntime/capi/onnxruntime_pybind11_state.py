"""Exceptions, classes and functions under the names of ONNX Runtime's bindings."""

from ...session import InferenceSession, ModelMetadata, NodeArg, OrtValue, RunOptions, SessionOptions
from ...session.binding import IOBinding as SessionIOBinding
from ...session.enumerations import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtAllocatorType,
    OrtDeviceMemoryType,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    OrtSparseFormat,
)
from ...session.errors import (
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    ModelLoaded,
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,
    RuntimeException,
)
from ...session.values import OrtDevice, OrtMemoryInfo, OrtValueVector, SparseTensor
from ..environment import (
    OrtArenaCfg,
    copy_tensors,
    create_and_register_allocator,
    get_all_providers,
    get_available_providers,
    get_build_info,
    get_device,
    get_ep_devices,
    get_version_string,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
)

__all__ = [name for name in dir() if not name.startswith("_")]
