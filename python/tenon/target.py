"""What code is made for."""

from __future__ import annotations

import re
import threading
from typing import Any, Mapping

from . import _arguments, _left_out, _tenon

__all__ = ["Target", "create", "cuda", "opencl"]

_current = threading.local()
# Options that tvm's targets have for its own choices, and logs for AutoTVM: they say nothing of the machine.
_TVMS_OWN = re.compile(r"\s-(?:keys|device|libs|tag|link-params|max_num_threads)(?:=\S*)?(?=\s|$)")


class Kind(str):
    """What a target is, "llvm" or "cuda": a text, whose name it is itself."""

    @property
    def name(self) -> str:
        return str(self)


def _option(value: Any) -> str:
    """The value of an option of a dict, as a text has it."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(int(value) if isinstance(value, bool) else value)


def text_of(target: Any) -> str:
    """A target as the compiler reads it, of what tvm's are written as: a text, or a dict of its options."""
    if isinstance(target, Mapping):
        options = dict(target)
        kind, host = options.pop("kind", None), options.pop("host", None)
        if not isinstance(kind, str):
            raise ValueError(f"Target: expected a text, such as \"llvm\", under 'kind' of a dict but got {kind!r}")
        text = " ".join([kind, *(f"-{name}={_option(value)}" for name, value in options.items())])
        target = text if host is None else f"{text} -host={text_of(host)}"
    return _TVMS_OWN.sub("", str(target))


class Target(_tenon.Target):
    """Target("llvm -mcpu=core-avx2"), or of a dict, Target({"kind": "llvm", "mcpu": "core-avx2"}). As a context manager it is
    the target of builds that name none."""

    @property
    def kind(self) -> Kind:
        return Kind(super().kind)

    def __init__(self, target: Target | str | Mapping = "llvm", host: Target | str | Mapping | None = None):
        if not isinstance(target, (str, Mapping, _tenon.Target)):
            raise TypeError("a target is a text, or a dict")
        super().__init__(text_of(target) if host is None else str(resolve(target, host)))

    @staticmethod
    def current(allow_none: bool = True) -> "Target | None":
        stack = getattr(_current, "stack", [])
        if not stack and not allow_none:
            raise ValueError("no target is set; use `with Target(…):`")
        return stack[-1] if stack else None

    def __enter__(self) -> "Target":
        if not hasattr(_current, "stack"):
            _current.stack = []
        _current.stack.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _current.stack.pop()


def resolve(target: Any, host: Any = None) -> _tenon.Target:
    """A target from what a caller may give: a Target, a string, a dict, or nothing."""
    if target is None:
        target = Target.current() or host or "llvm"
    target = target if isinstance(target, _tenon.Target) else Target(target)
    if host is None:
        return target
    host = host if isinstance(host, _tenon.Target) else Target(host)
    if host.kind not in ("llvm", "c"):
        raise ValueError(f"target_host: expected a CPU but got '{host}'")
    if target.kind in ("llvm", "c"):
        if str(host) != str(target) and host.kind != target.kind:
            raise ValueError(f"target_host: '{target}' is a CPU, which has no other host '{host}'")
        return target
    return Target(f"{str(target).partition(' -host=')[0]} -host={host}")


create = Target


def cuda(arch: str | None = None) -> Target:
    """A GPU by CUDA, of an architecture such as "sm_90"."""
    return Target("cuda" if arch is None else f"cuda -arch={arch}")


def opencl() -> Target:
    return Target("opencl")


__getattr__ = _left_out.names_of("target.", __name__)
_arguments.say_clearly(globals())
