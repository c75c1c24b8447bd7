"""The kernels of a network, and trials where the whole gains most."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from ..target import resolve
from ..tuning import NetworkTask, tasks_of_network, tune_network
from .measure_record import RecordToFile
from .search_policy import SketchPolicy
from .search_task import SearchTask, TuningOptions

__all__ = ["TaskScheduler", "extract_tasks"]


def extract_tasks(mod: Any, params: Any = None, target: Any = None, target_host: Any = None, hardware_params: Any = None, **kwargs: Any) -> tuple:
    """The kernels of a network, an ONNX path or model, that leave something open, and how often each is launched."""
    tasks = tasks_of_network(mod, resolve(target, target_host), **kwargs)
    return tasks, [t.weight for t in tasks]


class TaskScheduler:
    """Tunes several tasks. Those of a network share what they learn, and trials go to the kernel of which the whole gains most;
    others are tuned in turns, the one first that takes the most time."""

    def __init__(
        self,
        tasks: Sequence,
        task_weights: Sequence | None = None,
        objective_func: Callable | None = None,
        strategy: str = "gradient",
        load_model_file: Any = None,
        load_log_file: Any = None,
        alpha: float = 0.2,
        beta: float = 2,
        gamma: float = 0.5,
        backward_window_size: int = 3,
        callbacks: Any = None,
    ):
        if objective_func is not None:
            raise NotImplementedError("TaskScheduler: the objective is the time of all launches; task_weights says how many there are")
        if not tasks:
            raise ValueError("TaskScheduler: there is no task")
        self.tasks, self.load_log_file = list(tasks), load_log_file
        self.task_weights = list(task_weights) if task_weights is not None else [getattr(t, "weight", 1) for t in tasks]
        if len(self.task_weights) != len(self.tasks):
            raise ValueError(f"TaskScheduler: {len(self.tasks)} tasks have {len(self.task_weights)} weights")

    def tune(
        self,
        tune_option: TuningOptions,
        search_policy: Any = "default",
        search_policy_params: dict | None = None,
        adaptive_training: bool = False,
        per_task_early_stopping: int | None = None,
    ) -> None:
        """search_policy: "default", "sketch.xgb", "sketch.random", or a list of policies, one a task."""
        network = [t for t in self.tasks if isinstance(t, NetworkTask)]
        if network and len(network) != len(self.tasks):
            raise ValueError("TaskScheduler: tasks of a network are not tuned together with others")
        files = [c for c in tune_option.measure_callbacks if isinstance(c, RecordToFile)]
        if network:
            tune_network(network, tune_option, [f.filename for f in files], self.load_log_file)
            return
        self._tune_searched(tune_option, self._policies(search_policy, search_policy_params))

    def _policies(self, given: Any, params: dict | None) -> list:
        if isinstance(given, (list, tuple)):
            if len(given) != len(self.tasks):
                raise ValueError(f"TaskScheduler: {len(self.tasks)} tasks have {len(given)} policies")
            return list(given)
        from .cost_model import RandomModel, XGBModel

        models = {"default": XGBModel, "sketch.xgb": XGBModel, "sketch.random": RandomModel}
        if given not in models:
            raise ValueError(f"TaskScheduler: there is no search policy '{given}'; there are {', '.join(models)}")
        return [SketchPolicy(program_cost_model=models[given](), params=params) for _ in self.tasks]

    def _tune_searched(self, option: TuningOptions, policies: list) -> None:
        left, rounds = option.num_measure_trials, 0
        searched: list[SearchTask] = list(self.tasks)
        share = max(1, min(option.num_measures_per_round, left // max(1, len(searched))))
        while left > 0:
            for task, policy in zip(searched, policies):
                part = min(share, left)
                if part <= 0:
                    break
                once = TuningOptions(part, option.early_stopping, option.num_measures_per_round, option.verbose, option.builder, option.runner, option.measure_callbacks)
                task.tune(once, policy)
                left -= part
            rounds += 1
