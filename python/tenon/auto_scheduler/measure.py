"""How candidates are measured, by the auto-scheduler's names."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..autotvm.measure import MeasureErrorNo

__all__ = ["HardwareParams", "LocalBuilder", "LocalRPCMeasureContext", "LocalRunner", "MeasureErrorNo", "MeasureInput", "MeasureResult", "RPCRunner"]


class MeasureInput(NamedTuple):
    """A task and a state: a sketch with its numbers."""

    task: Any
    state: Any


class MeasureResult(NamedTuple):
    """costs: seconds; of one that failed [1e10], with what went wrong."""

    costs: tuple
    error_no: int
    error_msg: str
    all_cost: float
    timestamp: float


class LocalBuilder:
    """Builds in this process; a build takes some milliseconds."""

    def __init__(self, timeout: float = 15, n_parallel: int = 1, build_func: Any = "default"):
        if build_func not in ("default", None):
            raise NotImplementedError("LocalBuilder: candidates are built by tenon.build; there is no other build_func")
        self.timeout, self.n_parallel = timeout, n_parallel


class LocalRunner:
    """Races candidates in a process of their own. How often a candidate runs follows from the race, and not from number,
    repeat and min_repeat_ms. `timeout` is a candidate's, in seconds."""

    def __init__(
        self,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: int = 100,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
        candidate_seconds: float = 0.5,
    ):
        if timeout <= 0 or candidate_seconds <= 0:
            raise ValueError("LocalRunner: a time is more than 0 seconds")
        self.timeout, self.candidate_seconds = timeout, candidate_seconds


class RPCRunner:
    """Names its replacement."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError(
            "RPCRunner: candidates are measured on the machine that tunes; run the script there, with auto_scheduler.LocalRunner, "
            "and send the log back"
        )


class LocalRPCMeasureContext:
    """A runner of this machine in a process of its own, which all runners are."""

    def __init__(
        self,
        priority: int = 1,
        n_parallel: int = 1,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
        candidate_seconds: float = 0.5,
    ):
        self.runner = LocalRunner(timeout, number, repeat, min_repeat_ms, candidate_seconds=candidate_seconds)


class HardwareParams:
    """What a machine has. A target says it (docs/targets.md): where a number is given here it becomes part of the target, as far as
    targets have it."""

    def __init__(
        self,
        num_cores: int | None = None,
        vector_unit_bytes: int | None = None,
        cache_line_bytes: int | None = None,
        max_shared_memory_per_block: int | None = None,
        max_local_memory_per_block: int | None = None,
        max_threads_per_block: int | None = None,
        max_vthread_extent: int | None = None,
        warp_size: int | None = None,
        target: Any = None,
        target_host: Any = None,
    ):
        self.num_cores, self.vector_unit_bytes, self.cache_line_bytes = num_cores, vector_unit_bytes, cache_line_bytes
        self.max_shared_memory_per_block, self.max_threads_per_block = max_shared_memory_per_block, max_threads_per_block
        self.max_local_memory_per_block, self.max_vthread_extent, self.warp_size = max_local_memory_per_block, max_vthread_extent, warp_size

    def options(self, kind: str) -> dict[str, int]:
        """As options of a target of this kind."""
        if kind == "llvm":
            return {"num-cores": self.num_cores} if self.num_cores else {}
        given = {
            "max_threads_per_block": self.max_threads_per_block,
            "max_shared_memory_per_block": self.max_shared_memory_per_block,
            "thread_warp_size": self.warp_size,
        }
        return {name: value for name, value in given.items() if value}

    def __repr__(self) -> str:
        given = {k: v for k, v in vars(self).items() if v is not None}
        return f"HardwareParams({', '.join(f'{k}={v}' for k, v in given.items())})"
