"""Parts of ONNX Runtime that are not here, each with a sentence that says what there is instead.

Importing such a module is a ModuleNotFoundError that says it, asking the package for it an AttributeError."""

from __future__ import annotations

import importlib.abc
import sys
from typing import Any, Callable

_PROVIDERS = "the CPU is the only provider of sessions; tenon.compile(model, path, target=) compiles for other machines"
_ADAPTERS = "adapters are initializers: SessionOptions.add_external_initializers gives them other values"
_LIBRARIES = "tenon.compile(model, path) writes a library, which sessions take in the model's place"
_TRAINING = "models are run here, not trained"

LEFT_OUT = {
    "quantization": "quantised models are run, but not made: ONNX Runtime's own package or another tool writes them",
    "backend": "ONNX's interface of runtimes is tenon.onnx_backend: prepare, run_model, run_node",
    "datasets": "there are no example models: tenon.InferenceSession takes any ONNX file",
    "tools": "a model is looked at by `tenon inspect` and `tenon report`, and made a library by `tenon compile`",
    "transformers": "networks are fused while they are compiled, and need no tool before",
    "training": _TRAINING,
    "orttraining": _TRAINING,
    "LoraAdapter": _ADAPTERS,
    "AdapterFormat": _ADAPTERS,
    "ModelCompiler": _LIBRARIES,
    "OrtCompileApiFlags": _LIBRARIES,
    "OrtExternalInitializerInfo": _LIBRARIES,
    "register_execution_provider_library": _PROVIDERS,
    "unregister_execution_provider_library": _PROVIDERS,
    "OrtEpDevice": _PROVIDERS,
    "OrtEpAssignedNode": _PROVIDERS,
    "OrtEpAssignedSubgraph": _PROVIDERS,
    "OrtExecutionProviderDevicePolicy": _PROVIDERS,
    "OrtHardwareDevice": _PROVIDERS,
    "OrtHardwareDeviceType": _PROVIDERS,
    "OrtSyncStream": _PROVIDERS,
}


class _Finder(importlib.abc.MetaPathFinder):
    """The last finder, which sees what no other found."""

    def __init__(self) -> None:
        self.packages: set[str] = set()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        package, _, name = fullname.rpartition(".")
        if package in self.packages and name in LEFT_OUT:
            raise ModuleNotFoundError(f"{package} has no {name}: {LEFT_OUT[name]}", name=fullname)


_finder = _Finder()


def say_of(package: str) -> Callable[[str], Any]:
    """Lets imports from the package say it; its __getattr__."""
    if _finder not in sys.meta_path:
        sys.meta_path.append(_finder)
    _finder.packages.add(package)

    def get(name: str) -> Any:
        if name in LEFT_OUT:
            raise AttributeError(f"{package} has no {name}: {LEFT_OUT[name]}")
        raise AttributeError(f"module '{package}' has no attribute '{name}'")

    return get
