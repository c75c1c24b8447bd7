"""The module's own functions."""

from __future__ import annotations

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


def set_seed(seed: int) -> None:
    """Without effect: random operators draw from seeds of the model's."""


def set_default_logger_severity(severity: int) -> None:
    """Without effect; SessionOptions.log_severity_level is that of a session."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Without effect."""


def set_global_thread_pool_sizes(intra_op: int, inter_op: int) -> None:
    """Without effect: sessions share their workers, and SessionOptions.intra_op_num_threads bounds those of a call."""


def enable_telemetry_events() -> None:
    """Without effect: nothing is sent anywhere."""


def disable_telemetry_events() -> None:
    """Without effect: nothing is sent anywhere."""
