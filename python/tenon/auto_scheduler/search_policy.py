"""How sketches are searched, and what users add to it."""

from __future__ import annotations

from typing import Any, Callable

from .. import tir
from .cost_model import XGBModel
from .measure_record import RecordReader

__all__ = ["PreloadCustomSketchRule", "PreloadMeasuredStates", "SketchPolicy"]


class PreloadMeasuredStates:
    """What a log knows is not measured again, and is learned from."""

    def __init__(self, filename: Any):
        self.filename = filename


class PreloadCustomSketchRule:
    """A rule of one's own. meet_condition_func(policy, state, block) says whether it is for a block, apply_func(policy, state,
    block) gives the states that it makes of this one: a list of [state, block number], as rules of TVM do, or of states. A state is
    a tenon.tir.Schedule; what its decide and sample_perfect_tile leave open is searched."""

    PASS, APPLY, APPLY_AND_SKIP_REST = 0, 1, 2

    def __init__(self, meet_condition_func: Callable, apply_func: Callable, rule_name: str = "CustomSketchRule"):
        if not callable(meet_condition_func) or not callable(apply_func):
            raise TypeError("PreloadCustomSketchRule: expected two functions of (policy, state, block)")
        self.meet_condition_func, self.apply_func, self.rule_name = meet_condition_func, apply_func, rule_name


class SketchPolicy:
    """Sketches by rules, and an evolution of their numbers. Without a task it is bound to one by SearchTask.tune.
    `sketch_max_num` is how many sketches are derived at most, `evolutionary_search_num` how many points a round of evolution
    looks at (params["evolutionary_search_population"])."""

    DEFAULT_PARAMS = {
        "eps_greedy": 0.05,
        "retry_search_one_round_on_empty": 1,
        "sample_init_min_population": 50,
        "sample_init_use_measured_ratio": 0.2,
        "evolutionary_search_population": 2048,
        "evolutionary_search_num_iters": 4,
        "evolutionary_search_mutation_prob": 0.85,
        "cpu_multi_level_tiling_structure": "SSRSRS",
        "gpu_multi_level_tiling_structure": "SSSRRSRS",
        "max_innermost_split_factor": 64,
        "max_vectorize_size": 16,
        "disable_change_compute_location": 0,
    }
    # What is fixed by Tenon's rules, and can only be as it is.
    _FIXED = ("cpu_multi_level_tiling_structure", "gpu_multi_level_tiling_structure")

    def __init__(
        self,
        task: Any = None,
        program_cost_model: Any = None,
        params: dict | None = None,
        seed: int | None = None,
        verbose: int = 1,
        init_search_callbacks: Any = None,
        sketch_max_num: int = 64,
        evolutionary_search_num: int | None = None,
    ):
        for name in params or {}:
            if name not in self.DEFAULT_PARAMS:
                raise ValueError(f"SketchPolicy: there is no parameter '{name}'; there are {', '.join(self.DEFAULT_PARAMS)}")
        for name in self._FIXED:
            if (params or {}).get(name, self.DEFAULT_PARAMS[name]) != self.DEFAULT_PARAMS[name]:
                raise ValueError(f"SketchPolicy: '{name}' is {self.DEFAULT_PARAMS[name]}; another order is a rule, PreloadCustomSketchRule")
        if sketch_max_num < 1 or (evolutionary_search_num is not None and evolutionary_search_num < 1):
            raise ValueError("SketchPolicy: sketch_max_num and evolutionary_search_num are at least 1")
        self.params = {**self.DEFAULT_PARAMS, **(params or {})}
        # 0: as many as prices allow; upstream's 2048, unless rules of one's own have to run for each.
        self._population = evolutionary_search_num or (params or {}).get("evolutionary_search_population", 0)
        self.program_cost_model = XGBModel() if program_cost_model is None else program_cost_model
        self.seed, self.verbose, self.sketch_max_num = seed or 0, verbose, sketch_max_num
        callbacks = [] if init_search_callbacks is None else init_search_callbacks
        self.init_search_callbacks = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
        self.search_task = task

    def bind(self, task: Any) -> "SketchPolicy":
        """The policy with a task."""
        if self.search_task is None:
            self.search_task = task
        elif self.search_task is not task:
            raise ValueError("SketchPolicy: it has another task already")
        return self

    # ---- For SearchTask ----

    def rules(self) -> list:
        """As the compiler takes them."""
        return [self._rule(c) for c in self.init_search_callbacks if isinstance(c, PreloadCustomSketchRule)]

    def _rule(self, rule: PreloadCustomSketchRule) -> tuple:
        def states(state: Any, block: str) -> list:
            stage = _Stage(block, state.get_blocks().index(block))
            made = rule.apply_func(self, state, stage)
            return [m[0] if isinstance(m, (list, tuple)) else m for m in made or []]

        def condition(state: Any, block: str) -> int:
            return int(rule.meet_condition_func(self, state, _Stage(block, state.get_blocks().index(block))) or 0)

        def ways(schedule: Any, block: str) -> int:
            state = tir.Schedule(schedule.copy())
            if condition(state, block) == rule.PASS:
                return 0
            return len(states(state, block))

        def apply(schedule: Any, block: str, way: int) -> Any:
            made = states(tir.Schedule(schedule), block)
            return made[way]._s if way < len(made) else None

        skips = False
        if self.search_task is not None:
            first = tir.Schedule(self.search_task.compute_dag.module)
            skips = any(condition(first.copy(), b) == rule.APPLY_AND_SKIP_REST for b in first.get_blocks())
        return (rule.rule_name, skips, ways, apply)

    def measured(self) -> list:
        """Files of what is known."""
        files = [c.filename for c in self.init_search_callbacks if isinstance(c, PreloadMeasuredStates)]
        return files + list(getattr(self.program_cost_model, "files", []))

    def configure(self, options: Any) -> None:
        options.seed, options.population = self.seed, int(self._population)
        options.rounds = int(self.params["evolutionary_search_num_iters"])
        options.mutation = float(self.params["evolutionary_search_mutation_prob"])
        options.random_part = float(self.params["eps_greedy"])
        options.searcher = getattr(self.program_cost_model, "searcher", "improvement")

    # ---- Looking ----

    def _bound(self) -> Any:
        if self.search_task is None:
            raise ValueError("SketchPolicy: it has no task yet; SearchTask.tune binds it")
        return self.search_task

    def generate_sketches(self, print_for_debug: bool = False) -> list:
        """The sketches, each as a schedule with guesses for what is open."""
        task = self._bound()
        sketches = [tir.Schedule(s) for s in task.sketches(self)]
        if print_for_debug:
            for sketch in sketches:
                print(sketch.trace)
        return sketches

    def sample_initial_population(self) -> list:
        """Schedules of predicted leaders."""
        return [tir.Schedule(s) for s in self._bound().population(self)]


class _Stage(str):
    """A block: its name, and as a number its place among the blocks."""

    def __new__(cls, name: str, number: int):
        stage = super().__new__(cls, name)
        stage.number = number
        return stage

    def __index__(self) -> int:
        return self.number

    __int__ = __index__


def known_lines(files: list) -> list:
    return [inp.state.line for name in files for inp, _ in RecordReader(name)]
