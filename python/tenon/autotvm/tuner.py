"""Tuners: which configs to try next. Each measures by itself, or is derived from: a class with next_batch and update is a
policy of one's own."""

from __future__ import annotations

import time
from typing import Any, Callable, Sequence

from .. import _tenon
from ..tuning import NetworkTask, TrialLimits, tune_network
from .measure import LocalRunner, MeasureInput, measure_option as _measure_option, result_of, result_without_schedule

__all__ = ["DropletTuner", "GATuner", "GridSearchTuner", "RandomTuner", "Tuner", "XGBTuner"]


class _Policy(_tenon.Policy):
    """A tuner's next_batch and update, as the session asks."""

    def __init__(self, tuner: "Tuner"):
        super().__init__()
        self.tuner, self.failed = tuner, None

    def next(self, count: int) -> list:
        if not self.tuner.has_next():
            return []
        space = self.tuner.task.config_space
        return [_tenon.Pick(0, space.get(int(i)).places) for i in self.tuner.next_batch(count)]

    def observe(self, pick: Any, seconds: float | None) -> None:
        pass  # update is told in full, by the session's `done`


class _Session:
    """What a tuner and callbacks are told of one session: of each trial, and of configs without a schedule, which searchers
    pass over but a policy of one's own has tried."""

    def __init__(self, tuner: "Tuner", callbacks: Sequence[Callable], tries_failures: bool):
        self._tuner, self._callbacks, self._tries_failures = tuner, callbacks, tries_failures
        self._failures: dict[tuple, Exception] = {}
        self._untold: list[dict] = []
        self._last = time.time()
        tuner._tried = 0

    def failed(self, point: dict, error: Exception) -> None:
        key = tuple(sorted(point.items()))
        if key not in self._failures:
            self._failures[key] = error.with_traceback(None)  # whose frames would keep the template's tensors
            self._untold.append(point)

    def done(self, trial: Any) -> None:
        self.tell_failures()
        tuner, now = self._tuner, time.time()
        tuner._tried += 1
        error = self._failures.get(tuple(sorted(trial.pick.point.items())))
        result = result_of(trial, now - self._last, now) if error is None else result_without_schedule(error, now)
        self._last = now
        inp = self._input(trial.pick.point)
        tuner._remember(inp, result, trial)
        self._tell([inp], [result])

    def tell_failures(self) -> None:
        """Of those that were met since it was called last."""
        untold, self._untold = self._untold, []
        if untold and not self._tries_failures:
            errors = [self._failures[tuple(sorted(point.items()))] for point in untold]
            now = time.time()
            self._tell([self._input(point) for point in untold], [result_without_schedule(error, now) for error in errors])

    def _input(self, point: dict) -> MeasureInput:
        task = self._tuner.task
        return MeasureInput(task.target, task, task.config_space.of_places(point))

    def _tell(self, inputs: list, results: list) -> None:
        self._tuner.update(inputs, results)
        for callback in self._callbacks:
            callback(self._tuner, inputs, results)


class Tuner:
    """Derive from it, with next_batch(batch_size), which gives indices of configs, update(inputs, results), and has_next()."""

    searcher = "random"

    def __init__(self, task: Any, **_: Any):
        self.task = task
        self.best_config: Any = None
        self.best_flops, self.best_iter, self.best_seconds = 0.0, 0, 0.0
        self.best_measure_pair: Any = None
        self._tried = 0  # of the session that is under way, or was the last
        self.ttl: Any = None
        self.error_ct_threshold = 150
        self._hints: list = []

    # ---- Of one's own policy ----

    def next_batch(self, batch_size: int) -> Sequence[int]:
        raise NotImplementedError

    def update(self, inputs: list, results: list) -> None:
        """What became of a batch."""

    def has_next(self) -> bool:
        return True

    def reset(self) -> None:
        """Forgets what was best."""
        self.best_config, self.best_flops, self.best_iter, self.best_seconds, self.best_measure_pair = None, 0.0, 0, 0.0, None

    # ---- Use ----

    def load_history(self, data_set: Any, min_seed_records: int = 500) -> None:
        """Configs that were good are tried first. `data_set`: pairs of MeasureInput and MeasureResult, as
        record.load_from_file gives them."""
        good = []
        for inp, result in data_set:
            if inp.task.workload != self.task.workload or result.error_no != 0:
                continue
            entities = {name: value for name, _, value in inp.config.to_json_dict()["entity"]}
            places = self.task.config_space.find(entities)
            if places is not None:
                good.append((result.mean, places))
        good.sort(key=lambda item: (item[0], sorted(item[1].items())))
        self._hints = [places for _, places in good[:64]]

    def tune(
        self,
        n_trial: int,
        measure_option: dict | None = None,
        early_stopping: int | None = None,
        callbacks: Sequence[Callable] = (),
        si_prefix: str = "G",
    ) -> None:
        """Measures `n_trial` configs; ctrl-C ends it with the best so far. Callbacks are told of each, and of configs that the
        template has no schedule for, which a searcher met and did not try."""
        option = measure_option or _measure_option()
        if isinstance(self.task, NetworkTask):
            return self._tune_network(n_trial, option, early_stopping, callbacks)
        runner: LocalRunner = option["runner"]
        options = _tenon.TuneOptions()
        options.trials, options.early_stopping = min(n_trial, len(self.task.config_space)), early_stopping or 0
        options.searcher, options.batch = self.searcher, 8
        options.worker_seconds, options.candidate_seconds = runner.timeout, runner.candidate_seconds
        options.hints = [_tenon.Pick(0, places) for places in self._hints]
        self._configure(options)
        policy = _Policy(self) if type(self).next_batch is not Tuner.next_batch else None
        session = _Session(self, callbacks, policy is not None)
        options.done = session.done
        try:
            self.task.open_for(session.failed).tune(options, policy)
        except KeyboardInterrupt:
            pass
        session.tell_failures()

    def _tune_network(self, n_trial: int, option: dict, early_stopping: int | None, callbacks: Sequence[Callable]) -> None:
        """A kernel of a network: the session of `tenon tune` over it, whose records go to the files of log_to_file."""
        files = [c.file for c in callbacks if getattr(c, "file", None)]
        tune_network([self.task], TrialLimits(n_trial, early_stopping, option["runner"]), files)

    def _configure(self, options: Any) -> None:
        pass

    def _remember(self, inp: MeasureInput, result: Any, trial: Any) -> None:
        if result.error_no != 0 or not (trial.leader or self.best_config is None):
            return
        self.best_config, self.best_iter, self.best_seconds = inp.config, self._tried, result.mean
        self.best_flops = self.task.flop / result.mean if self.task.flop else 0.0
        self.best_measure_pair = (inp, result)


class XGBTuner(Tuner):
    """By expected improvement over the model of costs, corrected by what was measured (docs/tuning.md). What the model is
    made of there, plan_size, feature_type and so on, has no meaning here."""

    searcher = "improvement"


class RandomTuner(Tuner):
    """Configs in random order."""

    searcher = "random"


class GATuner(Tuner):
    """Generations of configs, by mutation and crossing."""

    searcher = "genetic"

    def __init__(self, task: Any, pop_size: int = 100, elite_num: int = 3, mutation_prob: float = 0.1):
        super().__init__(task)
        self.pop_size, self.mutation_prob = pop_size, mutation_prob

    def _configure(self, options: Any) -> None:
        options.population = self.pop_size


class GridSearchTuner(Tuner):
    """Configs in the space's order."""

    searcher = "grid"

    def __init__(self, task: Any, range_idx: Any = None):
        super().__init__(task)
        if range_idx is not None:
            raise NotImplementedError("GridSearchTuner: a part of a space is a template with fewer candidates")


class DropletTuner(Tuner):
    """Coordinate descent: from a config to the best of its neighbours, one knob one step, as long as it gets better."""

    def __init__(self, task: Any, start_position: Sequence[int] | None = None, pvalue: float = 0.05):
        super().__init__(task)
        dims = task.config_space.dims
        self._dims = dims
        self._at = list(start_position) if start_position is not None else [0] * len(dims)
        if len(self._at) != len(dims) or any(not 0 <= a < d for a, d in zip(self._at, dims)):
            raise ValueError(f"DropletTuner: expected a start in a space of {dims} but got {self._at}")
        self._best: float | None = None
        self._seen: set = set()
        self._queue, self._step, self._moved, self._finished = [tuple(self._at)], 1, False, False
        self._open_trials = 0

    def _index(self, at: Sequence[int]) -> int:
        index, scale = 0, 1
        for a, d in zip(at, self._dims):
            index += a * scale
            scale *= d
        return index

    def _neighbours(self) -> list:
        out = []
        for k in range(len(self._dims)):
            for step in (-self._step, self._step):
                at = list(self._at)
                at[k] += step
                if 0 <= at[k] < self._dims[k] and tuple(at) not in self._seen:
                    out.append(tuple(at))
        return out

    def has_next(self) -> bool:
        return not self._finished

    def next_batch(self, batch_size: int) -> list[int]:
        if not self._queue and self._open_trials == 0:
            if self._best is not None and not self._moved:
                self._step *= 2  # a wider look around before it ends
            self._moved = False
            self._queue = self._neighbours()
            while not self._queue and self._step <= max(self._dims, default=1):
                self._step *= 2
                self._queue = self._neighbours()
            self._finished = not self._queue
        batch, self._queue = self._queue[:batch_size], self._queue[batch_size:]
        self._seen.update(batch)
        self._open_trials += len(batch)
        return [self._index(at) for at in batch]

    def update(self, inputs: list, results: list) -> None:
        for inp, result in zip(inputs, results):
            self._open_trials -= 1
            if result.error_no != 0 or (self._best is not None and result.mean >= self._best):
                continue
            self._best, self._moved, self._step = result.mean, True, 1
            self._at = [inp.config.places[name] for name in self.task.config_space.space_map]
