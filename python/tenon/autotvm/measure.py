"""How candidates are measured. Builders and runners have AutoTVM's names; what does it is Tenon's: code is built in this
process, and raced in another one (docs/tuning.md)."""

from __future__ import annotations

from typing import Any, NamedTuple

from .space import InstantiationError

__all__ = ["LocalBuilder", "LocalRunner", "MeasureErrorNo", "MeasureInput", "MeasureResult", "RPCRunner", "measure_option"]


class MeasureErrorNo:
    """What error_no of a result means."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


OF_OUTCOMES = {
    "ok": MeasureErrorNo.NO_ERROR,
    "wrong": MeasureErrorNo.WRONG_ANSWER,
    "outside": MeasureErrorNo.RUNTIME_DEVICE,
    "crash": MeasureErrorNo.RUNTIME_DEVICE,
    "timeout": MeasureErrorNo.RUN_TIMEOUT,
    "error": MeasureErrorNo.COMPILE_HOST,
}


class MeasureInput(NamedTuple):
    target: Any
    task: Any
    config: Any


class MeasureResult(NamedTuple):
    """costs: seconds, or where error_no is not 0 the exception that says what went wrong."""

    costs: tuple
    error_no: int
    all_cost: float
    timestamp: float

    @property
    def mean(self) -> float:
        return sum(self.costs) / len(self.costs)


class LocalBuilder:
    """Builds in this process; a build takes some milliseconds."""

    def __init__(self, timeout: float = 10, n_parallel: int | None = None, build_kwargs: Any = None, build_func: Any = "default", do_fork: bool = False, runtime: Any = None):
        if build_func not in ("default", None):
            raise NotImplementedError("LocalBuilder: candidates are built by tenon.build; there is no other build_func")
        self.timeout, self.n_parallel = timeout, n_parallel


class LocalRunner:
    """Races candidates in a process of their own. How often a candidate runs follows from the race, and not from
    number, repeat and min_repeat_ms: the race ends once it is decided. `timeout` is a candidate's, in seconds."""

    def __init__(
        self,
        timeout: float = 10,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.1,
        enable_cpu_cache_flush: bool = False,
        module_loader: Any = None,
        candidate_seconds: float = 0.5,
    ):
        if timeout <= 0 or candidate_seconds <= 0:
            raise ValueError("LocalRunner: a time is more than 0 seconds")
        self.timeout, self.number, self.repeat, self.min_repeat_ms = timeout, number, repeat, min_repeat_ms
        self.candidate_seconds = candidate_seconds


class RPCRunner:
    """Names its replacement."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError(
            "RPCRunner: candidates are measured on the machine that tunes; run the script there, with autotvm.LocalRunner, and send the log back"
        )


def measure_option(builder: Any = "local", runner: Any = "local") -> dict:
    """Where candidates are built and run."""
    builder = LocalBuilder() if builder == "local" else builder
    runner = LocalRunner() if runner == "local" else runner
    if not isinstance(builder, LocalBuilder) or not isinstance(runner, LocalRunner):
        raise TypeError('measure_option: expected autotvm.LocalBuilder and autotvm.LocalRunner, or "local"')
    return {"builder": builder, "runner": runner}


def result_of(trial: Any, seconds: float, now: float) -> MeasureResult:
    """Of a trial that took so many seconds."""
    number = OF_OUTCOMES.get(trial.outcome, MeasureErrorNo.UNKNOWN_ERROR)
    costs = (trial.seconds,) if number == 0 else (RuntimeError(trial.message or trial.outcome),)
    return MeasureResult(costs, number, seconds, now)


def result_without_schedule(error: Exception, now: float) -> MeasureResult:
    """Of a config at which the template has none."""
    is_said = isinstance(error, InstantiationError)
    number = MeasureErrorNo.INSTANTIATION_ERROR if is_said else MeasureErrorNo.COMPILE_HOST
    return MeasureResult((error,), number, 0.0, now)
