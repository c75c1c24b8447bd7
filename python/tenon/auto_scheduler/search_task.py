"""Tasks: a computation for a target, and how it is tuned."""

from __future__ import annotations

import os
import time
import warnings
from typing import Any, Sequence

from .. import _tenon, tir
from ..nd import device
from ..target import resolve
from .dag import ComputeDAG
from .measure import HardwareParams, LocalBuilder, LocalRunner, MeasureInput
from .measure_record import LoggedState, RecordToFile, result_of
from .search_policy import SketchPolicy
from .workload_registry import make_workload_key, workload_tensors

__all__ = ["SearchTask", "TuningOptions"]

_KERNELS: dict[str, str] = {}  # of workload keys


def kernel_of_key(key: str) -> str:
    """The hash by which records know a workload, by its key or the hash itself."""
    if len(key) == 32 and all(c in "0123456789abcdef" for c in key):
        return key
    if key not in _KERNELS:
        module = ComputeDAG(workload_tensors(key)).module
        _KERNELS[key] = _tenon.TuneTask.from_sketches(module, resolve("llvm"), 1, []).kernel
    return _KERNELS[key]


class TuningOptions:
    """How long a task is tuned, how it is measured, and who is told. num_measure_trials=0 measures nothing."""

    def __init__(
        self,
        num_measure_trials: int = 0,
        early_stopping: int | None = None,
        num_measures_per_round: int = 64,
        verbose: int = 1,
        builder: Any = "local",
        runner: Any = "local",
        measure_callbacks: Any = None,
    ):
        if num_measure_trials < 0 or num_measures_per_round < 1 or (early_stopping is not None and early_stopping < 0):
            raise ValueError("TuningOptions: expected numbers of trials, which are not negative")
        self.num_measure_trials, self.early_stopping = num_measure_trials, early_stopping
        self.num_measures_per_round, self.verbose = num_measures_per_round, verbose
        self.builder = LocalBuilder() if builder == "local" else builder
        self.runner = LocalRunner() if runner == "local" else runner
        if not isinstance(self.builder, LocalBuilder) or not isinstance(self.runner, LocalRunner):
            raise TypeError('TuningOptions: expected auto_scheduler.LocalBuilder and LocalRunner, or "local"')
        callbacks = [] if measure_callbacks is None else measure_callbacks
        self.measure_callbacks = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]


class SearchTask:
    """A computation for a target: a workload's function with arguments, a ComputeDAG, or loop IR."""

    def __init__(
        self,
        func: Any = None,
        args: Sequence | None = None,
        compute_dag: ComputeDAG | None = None,
        workload_key: str | None = None,
        target: Any = None,
        target_host: Any = None,
        hardware_params: HardwareParams | None = None,
        layout_rewrite_option: Any = None,
        task_inputs: Any = None,
        task_inputs_overwrite: bool = False,
        task_inputs_save_to_file: bool = False,
        desc: str = "",
    ):
        if task_inputs is not None:
            raise NotImplementedError("SearchTask: inputs are normally distributed numbers and whole ranges of integers (docs/tuning.md)")
        if func is not None:
            workload_key = make_workload_key(func, args or ())
        if compute_dag is None:
            if workload_key is None:
                raise ValueError("SearchTask: expected a func with args, a compute_dag or a workload_key")
            compute_dag = ComputeDAG(workload_tensors(workload_key))
        self.compute_dag, self.desc = compute_dag, desc
        self.hardware_params = hardware_params
        self.target = resolve(target, target_host)
        if hardware_params is not None:
            more = "".join(f" -{k}={v}" for k, v in hardware_params.options(str(self.target.kind)).items())
            self.target = resolve(str(self.target) + more) if more else self.target
        self._tasks: dict = {}
        self._policy = SketchPolicy()
        self.workload_key = workload_key or self._task(self._policy).kernel

    # ---- Of policies ----

    def _task(self, policy: SketchPolicy) -> Any:
        """The compiler's task; one for each set of rules."""
        key = (policy.sketch_max_num, tuple(id(c) for c in policy.init_search_callbacks))
        if key not in self._tasks:
            self._tasks[key] = _tenon.TuneTask.from_sketches(self.compute_dag.module, self.target, policy.sketch_max_num, policy.rules())
        return self._tasks[key]

    def sketches(self, policy: SketchPolicy) -> list:
        task = self._task(policy)
        return [task.schedule_at(task.guess(i)) for i in range(len(task.algorithms))]

    def population(self, policy: SketchPolicy) -> list:
        task = self._task(policy)
        return [task.schedule_at(pick) for pick in task.leaders(policy.seed, int(policy.params["sample_init_min_population"]))]

    # ---- Use ----

    def tune(self, tuning_options: TuningOptions, search_policy: SketchPolicy | None = None, adaptive_training: bool = False) -> None:
        """Measures; ctrl-C ends it with the best so far. Who records is a callback, RecordToFile."""
        policy = (search_policy or self._policy).bind(self)
        self._policy = policy
        task = self._task(policy)
        options = _tenon.TuneOptions()
        policy.configure(options)
        options.trials, options.early_stopping = tuning_options.num_measure_trials, tuning_options.early_stopping or 0
        if options.trials == 0:
            return
        options.batch = min(tuning_options.num_measures_per_round, 16)
        runner = tuning_options.runner
        options.worker_seconds, options.candidate_seconds = runner.timeout, runner.candidate_seconds
        before: list = []
        for name in policy.measured():
            before += task.read_trials(str(name))[0]
        options.before = before
        recorders = [c.filename for c in tuning_options.measure_callbacks if isinstance(c, RecordToFile)]
        options.teachers = list(dict.fromkeys(str(f) for f in [*policy.measured(), *recorders] if os.path.exists(f)))
        last, best, count = time.time(), 0.0, 0

        def done(trial: Any) -> None:
            nonlocal last, best, count
            now, count = time.time(), count + 1
            if trial.leader:
                best = trial.seconds
            for callback in tuning_options.measure_callbacks:
                if isinstance(callback, RecordToFile):
                    callback(task.kernel_line(), trial.line)
                else:
                    state = LoggedState(trial.algorithm, str(trial.pick.point), trial.line)
                    callback(policy, [MeasureInput(self, state)], [result_of(trial.outcome, trial.seconds, trial.message, now - last, now)])
            last = now
            if tuning_options.verbose and (trial.leader or count == options.trials):
                print(f"{count}/{options.trials}  best {1e6 * best:.4g} µs" if best else f"{count}/{options.trials}  nothing works yet", flush=True)

        options.done = done
        try:
            task.tune(options)
        except KeyboardInterrupt:
            pass

    def _best(self, log_file: Any) -> Any:
        """The pick of a log; without a device to measure on the predicted one, with a warning."""
        task = self._task(self._policy)
        trials, skipped = task.read_trials(str(log_file))
        for line in skipped:
            warnings.warn(line, stacklevel=3)
        good = [t for t in trials if t.outcome == "ok"]
        if good:
            return min(good, key=lambda t: (t.seconds, not t.leader, t.line)).pick
        kind = str(self.target.kind)
        if kind not in ("llvm", "c") and not device(kind, 0).exist:
            pick = task.predicted(self._policy.seed, 256)
            if pick is not None:
                warnings.warn(f"'{log_file}' has no time of this task, and there is no {kind} device here: it is the predicted best", stacklevel=3)
                return pick
        raise RuntimeError(f"cannot find any valid schedule for {self.workload_key} in file {log_file}")

    def apply_best(self, log_file: Any, include_compatible: bool = False, layout_rewrite_option: Any = None) -> tuple:
        """The best schedule of a log, and the arguments of build: sch, args."""
        return tir.Schedule(self._task(self._policy).schedule_at(self._best(log_file))), list(self.compute_dag.tensors)

    def print_best(self, log_file: Any, print_mode: str = "schedule") -> str:
        """The best schedule of a log as a program in Python ("schedule"), or its device code ("cuda")."""
        schedule, _ = self.apply_best(log_file)
        if print_mode == "schedule":
            return schedule.trace.as_python()
        if print_mode in ("cuda", "opencl", "c", "llvm"):
            from .. import build_module

            return build_module.build(schedule, target=self.target).get_source()
        raise ValueError('print_best: expected "schedule" or "cuda" for print_mode')

    def __repr__(self) -> str:
        return f"SearchTask({self.workload_key}, '{self.target}')"
