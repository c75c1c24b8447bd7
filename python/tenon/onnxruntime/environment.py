"""The module's own functions."""

from __future__ import annotations

from typing import Any, Sequence

from .. import _tenon
from ..session.session import PROVIDERS

version = "1.31.1"
"""That of ONNX Runtime whose names and behaviour these are."""


def get_version_string() -> str:
    return version


def get_build_info() -> str:
    return f"Tenon {_tenon.__version__}"


def get_device() -> str:
    return "CPU"


def get_available_providers() -> list[str]:
    return list(PROVIDERS)


def get_all_providers() -> list[str]:
    return list(PROVIDERS)


def has_collective_ops() -> bool:
    return False


def get_ep_devices() -> list:
    """None: the CPU is the only provider."""
    return []


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Without effect: there are no libraries to be loaded."""


def print_debug_info() -> None:
    print(f"{get_build_info()}, in place of ONNX Runtime {version}; providers: {', '.join(PROVIDERS)}")


def create_and_register_allocator(memory_info: Any, arena_cfg: Any = None) -> None:
    """Without effect: memory is the system's."""


def copy_tensors(src: Sequence, dst: Sequence, stream: Any = None) -> None:
    """The elements of values into the memory of others, which have their shapes and types."""
    if len(src) != len(dst):
        raise RuntimeError("Source and destination lists must have the same length.")
    for source, target in zip(src, dst):
        target.update_inplace(source.numpy())


class OrtArenaCfg:
    """How an arena would grow. Without effect: memory is the system's."""

    _ENTRIES = {
        "max_mem": 0,
        "arena_extend_strategy": -1,
        "initial_chunk_size_bytes": -1,
        "max_dead_bytes_per_chunk": -1,
        "initial_growth_chunk_size_bytes": -1,
        "max_power_of_two_extend_bytes": -1,
    }

    def __init__(self, *values: Any):
        given = dict(values[0]) if len(values) == 1 and isinstance(values[0], dict) else dict(zip(self._ENTRIES, values))
        unknown = [key for key in given if key not in self._ENTRIES]
        if unknown:
            raise RuntimeError(f"Invalid OrtArenaCfg option: {unknown[0]}")
        for key, default in self._ENTRIES.items():
            setattr(self, key, int(given.get(key, default)))


def set_seed(seed: int) -> None:
    """Without effect: random operators draw from seeds of the model's."""


def set_default_logger_severity(severity: int) -> None:
    """Without effect; SessionOptions.log_severity_level is that of a session. Errors: a level that is none of 0 to 4."""
    if not 0 <= severity <= 4:
        raise RuntimeError(f"Invalid log severity level: expected 0 to 4 but got {severity}")


def set_default_logger_verbosity(verbosity: int) -> None:
    """Without effect."""


def set_global_thread_pool_sizes(intra_op: int, inter_op: int) -> None:
    """Without effect: sessions share their workers, and SessionOptions.intra_op_num_threads bounds those of a call."""


def enable_telemetry_events() -> None:
    """Without effect: nothing is sent anywhere."""


def disable_telemetry_events() -> None:
    """Without effect: nothing is sent anywhere."""
