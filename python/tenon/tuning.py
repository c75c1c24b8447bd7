"""Networks as something to tune: their kernels as tasks, and sessions over them."""

from __future__ import annotations

import os
import tempfile
from typing import Any, NamedTuple, Sequence

from . import _tenon
from .build_module import _level, _sizes

__all__ = ["NetworkTask", "tasks_of_network", "tune_network"]


class _Points:
    """A space that planning has listed, as far as code for AutoTVM asks."""

    def __init__(self, count: int):
        self._count, self.dims = count, [count]

    def __len__(self) -> int:
        return self._count


class NetworkTask:
    """A kernel of a network; equal ones are one task, `weight` of them. It is tuned by auto_scheduler.TaskScheduler, by tuners of
    autotvm, or with all others by `tenon tune`."""

    def __init__(self, model: str, options: Any, kernel: Any, keep: Any = None):
        self.model, self.options, self._keep = model, options, keep
        self.name, self.kind, self.kernel, self.points = kernel.name, kernel.kind, kernel.kernel, kernel.points
        self.config_space, self.flop, self.args = _Points(kernel.points), 0, ()
        self.desc, self.weight, self.target, self.workload_key = kernel.name, kernel.launches, options.target, kernel.kernel

    @property
    def workload(self) -> tuple:
        return (self.kind, self.kernel)

    def __repr__(self) -> str:
        return f"NetworkTask({self.name}, {self.kind}, {self.points} points, {self.weight} launches)"


class _Model:
    """A model as a file; what came as bytes lies in a folder that lives as long as its tasks."""

    def __init__(self, model: Any):
        self._folder = None
        if hasattr(model, "SerializeToString"):  # of the onnx package
            model = model.SerializeToString()
        if isinstance(model, bytes):
            self._folder = tempfile.TemporaryDirectory(prefix="tenon-")
            self.path = os.path.join(self._folder.name, "model.onnx")
            with open(self.path, "wb") as file:
                file.write(model)
        elif isinstance(model, (str, os.PathLike)):
            self.path = os.fspath(model)
        else:
            raise TypeError(f"expected an ONNX file, its bytes or a model, but got {type(model).__name__}")


def tasks_of_network(model: Any, target: Any, shapes: dict | None = None, opt_level: int = 2) -> list[NetworkTask]:
    """The kernels of a network that leave something open."""
    options = _tenon.ModelOptions()
    options.target, options.shapes, options.opt_level = target, _sizes(shapes or {}), _level(opt_level)
    file = _Model(model)
    return [NetworkTask(file.path, options, k, file) for k in _tenon.model_kernels(file.path, options)]


class TrialLimits(NamedTuple):
    """What tune_network asks of options."""

    num_measure_trials: int
    early_stopping: int | None
    runner: Any


def tune_network(tasks: Sequence[NetworkTask], option: Any, files: Sequence[str], load: Any = None) -> Any:
    """A session over these kernels; its records are appended to files, which it begins with, too."""
    models = {t.model for t in tasks}
    if len(models) != 1:
        raise ValueError("tasks of several networks are tuned one network after the other")
    with tempfile.TemporaryDirectory(prefix="tenon-") as folder:
        options = _tenon.TuneOptions()
        options.trials, options.early_stopping = option.num_measure_trials, option.early_stopping or 0
        options.worker_seconds, options.candidate_seconds = option.runner.timeout, option.runner.candidate_seconds
        options.log = os.path.join(folder, "tuning.log")
        begin = [f for f in (*files, load) if f and os.path.exists(f)]
        try:
            return _tenon.tune_model(tasks[0].model, tasks[0].options, options, [t.kernel for t in tasks], begin)
        except KeyboardInterrupt:
            return None
        finally:
            for file in files:
                _tenon.append_log(file, options.log)
