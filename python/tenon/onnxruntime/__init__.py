"""Tenon under the names of the module onnxruntime.

    import tenon.onnxruntime as onnxruntime

Where ONNX Runtime is not installed, importing this also registers it as `onnxruntime`, so that packages which import that
run as they are; `python -m tenon.onnxruntime program.py` does it for a program. Models are compiled when a session is made
and kept in the cache. Sessions run on the CPU."""

from __future__ import annotations

import importlib.util
import sys

from ..session import InferenceSession, ModelMetadata, NodeArg, OrtValue, RunOptions, SessionOptions
from ..session.binding import IOBinding
from ..session.enumerations import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtAllocatorType,
    OrtDeviceMemoryType,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    OrtSparseFormat,
)
from ..session.values import OrtDevice, OrtMemoryInfo, SparseTensor
from . import capi, left_out
from .environment import (
    OrtArenaCfg,
    copy_tensors,
    create_and_register_allocator,
    disable_telemetry_events,
    enable_telemetry_events,
    get_all_providers,
    get_available_providers,
    get_build_info,
    get_device,
    get_ep_devices,
    get_version_string,
    has_collective_ops,
    preload_dlls,
    print_debug_info,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_global_thread_pool_sizes,
    set_seed,
    version as __version__,
)

SessionIOBinding = IOBinding

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "OrtValue",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "SparseTensor",
    "__version__",
    "capi",
    "copy_tensors",
    "create_and_register_allocator",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_ep_devices",
    "get_version_string",
    "has_collective_ops",
    "preload_dlls",
    "print_debug_info",
    "register",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
]


def register() -> None:
    """Makes `import onnxruntime` mean this module in this process, also where ONNX Runtime is installed."""
    for name, module in list(sys.modules.items()):
        if name == __name__ or name.startswith(__name__ + "."):
            sys.modules["onnxruntime" + name[len(__name__) :]] = module
    left_out.say_of("onnxruntime")


__getattr__ = left_out.say_of(__name__)

if "onnxruntime" not in sys.modules and importlib.util.find_spec("onnxruntime") is None:
    register()
