"""Options of sessions and of calls."""

from __future__ import annotations

import os
from typing import Any, Sequence

import numpy as np

from .._tenon import StopFlag
from . import errors
from .enumerations import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
from .values import OrtValue


class _Attributes:
    """Attributes of fixed names and types; assigning anything else is an error. `_KINDS` maps each to its default."""

    _KINDS: dict[str, Any] = {}
    _WHAT = ""

    def __init__(self):
        for name, default in self._KINDS.items():
            object.__setattr__(self, name, default)
        object.__setattr__(self, "_entries", {})

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._KINDS:
            raise AttributeError(f"'{self._WHAT}' object has no attribute '{name}'")
        kind = type(self._KINDS[name])
        if kind is str:
            fits = isinstance(value, (str, os.PathLike))
            value = os.fspath(value) if fits else value
        elif kind is bool:
            fits = value is None or hasattr(value, "__bool__")
            value = bool(value) if fits else value
        elif kind is int:
            fits = hasattr(value, "__index__")
            value = value.__index__() if fits else value
        else:
            fits = isinstance(value, kind)
        if not fits:
            raise TypeError(f"{self._WHAT}.{name}: expected {kind.__name__} but got {type(value).__name__}")
        object.__setattr__(self, name, value)

    def _add(self, key: str, value: str) -> None:
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"{self._WHAT}: configuration entries are strings")
        if not 0 < len(key) <= 1024 or len(value) > 8192:
            raise RuntimeError(f"Config key is empty or longer than maximum length 1024, or its value is longer than 8192: '{key[:80]}'")
        self._entries[key] = value

    def _get(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"{self._WHAT} does not have configuration with key: {key}")
        return self._entries[key]


class SessionOptions(_Attributes):
    """How a session compiles and runs its model.

    `intra_op_num_threads` bounds the threads of each call (0: all), `graph_optimization_level` chooses -O,
    `enable_profiling` writes a trace to a file that begins with `profile_file_prefix`, and `log_severity_level` above 2
    keeps it from saying that it compiles. `optimized_model_filepath` names a file that is written: the library, which sessions take
    in the model's place and which compiles nothing. The other attributes are about ONNX Runtime's own engine and have no effect."""

    _WHAT = "SessionOptions"
    _KINDS = {
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": True,
        "enable_mem_reuse": True,
        "enable_profiling": False,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
        "execution_order": ExecutionOrder.DEFAULT,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
        "inter_op_num_threads": 0,
        "intra_op_num_threads": 0,
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "optimized_model_filepath": "",
        "profile_file_prefix": "onnxruntime_profile_",
        "use_deterministic_compute": False,
        "use_per_session_threads": True,
    }

    def __init__(self):
        super().__init__()
        for name in ("_dims", "_denoted_dims", "_initializers", "_files"):
            object.__setattr__(self, name, {})
        object.__setattr__(self, "_providers", [])
        object.__setattr__(self, "_spare", set())
        object.__setattr__(self, "_is_canceled", False)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """"session.model_external_initializers_file_folder_path" says where a model that is given as bytes has its external
        weights; others are kept and have no effect."""
        self._add(key, value)

    def get_session_config_entry(self, key: str) -> str:
        return self._get(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """The size of the dims that the model calls so."""
        self._dims[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """The size of the dims that the model leaves open and denotes so, whatever the case of the letters."""
        self._denoted_dims[denotation.lower()] = int(size)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """The value of an initializer in place of the file's, of the same type and shape, where the model has such. Copied when a
        session is made."""
        self._initializers[name] = value
        self._spare.add(name)

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """The same of several, which the model has, but whose data need not be there in the file."""
        if len(names) != len(values):
            raise RuntimeError("Expecting names and ort_values lists to have equal length")
        for name, value in zip(names, values):
            self._initializers[name] = value
            self._spare.discard(name)

    def add_external_initializers_from_files_in_memory(
        self, names: Sequence[str], buffers: Sequence[bytes], lengths: Sequence[int]
    ) -> None:
        """What is in the files of external weights that the model names so; the disk is not looked at then. Copied."""
        if not len(names) == len(buffers) == len(lengths):
            raise RuntimeError("Expecting names, buffers and lengths lists to have equal length")
        for name, buffer, length in zip(names, buffers, lengths):
            self._files[os.fspath(name)] = bytes(memoryview(buffer).cast("B")[:length])

    def register_custom_ops_library(self, path: str) -> None:
        """Always an error, that of a library which cannot be loaded: such operators are code for ONNX Runtime's own engine."""
        raise errors.Fail.of(
            f"operators of the library '{os.fspath(path)}' are code for ONNX Runtime's own engine and cannot be compiled: say what they "
            "compute with tenon.register_operator before the session is made, or keep what they do out of the model (docs/custom-operators.md)"
        )

    def add_provider(self, name: str, options: dict) -> None:
        self._providers.append((name, options))

    def add_provider_for_devices(self, devices: Sequence, options: dict) -> None:
        """Without effect, as are the policies: the CPU is the only provider."""

    def set_provider_selection_policy(self, policy: Any) -> None:
        """Without effect."""

    def set_provider_selection_policy_delegate(self, delegate: Any) -> None:
        """Without effect."""

    def set_ep_context_data_read_func(self, read: Any) -> None:
        """Without effect: no part of a model is compiled by others."""

    def clear_ep_context_data_read_func(self) -> None:
        """Without effect."""

    def set_load_cancellation_flag(self, flag: bool) -> None:
        """Whether sessions with these options are refused from now on."""
        object.__setattr__(self, "_is_canceled", bool(flag))

    def has_providers(self) -> bool:
        return bool(self._providers)

    def _arrays(self) -> dict[str, np.ndarray]:
        """The initializers that are given."""
        return {n: v.numpy() if isinstance(v, OrtValue) else np.asarray(v) for n, v in self._initializers.items()}


class RunOptions(_Attributes):
    """Of one call. Setting `terminate`, from any thread, ends the calls that have these options; clearing it lets new ones
    begin. The other attributes have no effect."""

    _WHAT = "RunOptions"
    _KINDS = {
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "only_execute_path_to_fetches": False,
        "terminate": False,
    }

    def __init__(self):
        object.__setattr__(self, "_stop", StopFlag())
        super().__init__()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "terminate":
            self._stop.set() if self.terminate else self._stop.clear()

    def add_active_adapter(self, adapter: Any) -> None:
        """Always an error."""
        raise errors.Fail.of(
            "adapters of ONNX Runtime's own format are not read: SessionOptions.add_external_initializers gives a session other values for its initializers"
        )

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._add(key, value)

    def get_run_config_entry(self, key: str) -> str:
        return self._get(key)
