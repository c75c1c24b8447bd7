"""Templates and tasks: a template with arguments, for a target."""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from .. import _tenon, build_module, te
from ..target import Target, resolve
from .dispatch import Config, config_for, _stack
from .space import ConfigEntity, ConfigSpace, InstantiationError

__all__ = ["Task", "create", "extract_from_program", "template"]

TASK_TABLE: dict[str, Callable] = {}


def serialize(value: Any) -> Any:
    """Arguments as records have them: tensors are ("TENSOR", shape, dtype)."""
    if isinstance(value, te.Tensor):
        return ("TENSOR", tuple(int(str(d)) if str(d).isdecimal() else str(d) for d in value.shape), value.dtype)
    if isinstance(value, (list, tuple)):
        return tuple(serialize(v) for v in value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "__index__"):
        return value.__index__()
    return str(value)


def args_to_workload(args: Sequence, task_name: str | None = None) -> tuple:
    serialized = tuple(serialize(a) for a in args)
    return (task_name, *serialized) if task_name is not None else serialized


def _unpack(value: Any) -> Any:
    """Arguments of a template from those of a record."""
    if isinstance(value, (list, tuple)):
        if len(value) == 3 and value[0] == "TENSOR":
            return te.placeholder(tuple(value[1]), value[2])
        return tuple(_unpack(v) for v in value)
    return value


def template(task_name: str, func: Callable | None = None) -> Callable:
    """Declares a function as a template: it asks get_config() for what it leaves open, and gives a schedule and its
    arguments."""
    if not isinstance(task_name, str):
        raise TypeError('template: expected a name, @autotvm.template("matmul")')

    def decorate(function: Callable) -> Callable:
        if task_name in TASK_TABLE and TASK_TABLE[task_name].__code__ is not function.__code__:
            raise ValueError(f"there is a template '{task_name}' already")
        TASK_TABLE[task_name] = function

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                raise TypeError(f"template '{task_name}' takes no keyword arguments: records do not have them")
            if _stack("configs"):
                return function(*args)
            with Config(config_for(args_to_workload(args, task_name))):
                return function(*args)

        return wrapper

    return decorate if func is None else decorate(func)


class Task:
    """A template with arguments, for a target."""

    def __init__(self, name: str, args: Sequence, target: Any):
        if name not in TASK_TABLE:
            raise ValueError(f"there is no template '{name}'; there are {', '.join(TASK_TABLE) or 'none'}")
        self.name, self.args, self.target = name, tuple(args), resolve(target)
        self.target_host, self.kwargs = None, {}
        self.func = TASK_TABLE[name]
        self.config_space = ConfigSpace()
        _, tensors = self._run(self.config_space)
        self._check(tensors)
        self.flop = self.config_space.flop
        self._definition = te.create_prim_func(tensors)

    @property
    def workload(self) -> tuple:
        return args_to_workload(self.args, self.name)

    def _run(self, config: Any) -> tuple:
        try:
            with Config(config), Target(str(self.target)):
                made = self.func(*self.args)
        except Exception as error:
            error.args = (f"template '{self.name}': {error}",)
            raise
        if not isinstance(made, (tuple, list)) or len(made) != 2 or not isinstance(made[0], te.Schedule):
            raise TypeError(f"template '{self.name}': expected a schedule and its arguments")
        return made[0], list(made[1])

    def _check(self, tensors: list) -> None:
        if not self.config_space.space_map:
            return
        for tensor in tensors:
            if isinstance(tensor, te.Tensor) and not all(str(d).isdecimal() for d in tensor.shape):
                raise ValueError(f"template '{self.name}': '{tensor.name}' has open sizes, which are not tuned")

    def instantiate(self, config: ConfigEntity) -> tuple:
        """The schedule of a config, and its arguments."""
        config.flop, config.errors = 0, []
        s, args = self._run(config)
        if not config.valid():
            raise InstantiationError(config.errors[0])
        return s, args

    def open_for(self, failed: Callable[[dict, Exception], None]) -> _tenon.TuneTask:
        """What a session tunes. `failed` is told of each point that the template has no schedule for, once or more often:
        searchers pass these over."""

        def module_at(point: dict) -> Any:
            try:
                s, args = self.instantiate(self.config_space.of_places(point))
                return build_module.lower(s, args)
            except Exception as error:  # pylint: disable=broad-except
                failed(point, error)
                return f"{type(error).__name__}: {error}"

        space = [(knob, list(range(len(t)))) for knob, t in self.config_space.space_map.items()]
        return _tenon.TuneTask.from_space(self.name, self._definition, space, module_at, self.target)

    def __repr__(self) -> str:
        return f"Task(func_name={self.name}, args={self.args}, kwargs={{}}, workload={self.workload})"


def create(task_name: Any, args: Sequence, target: Any, target_host: Any = None) -> Task:
    """A task of a template, by its name or as it was declared."""
    if callable(task_name):
        wanted = getattr(task_name, "__wrapped__", task_name)
        names = [name for name, function in TASK_TABLE.items() if function is wanted]
        if not names:
            raise ValueError("task.create: expected a template, a function under @autotvm.template")
        task_name = names[0]
    return Task(task_name, args, resolve(target, target_host))


def extract_from_program(mod: Any, params: Any = None, target: Any = None, target_host: Any = None, ops: Any = None, **kwargs: Any) -> list:
    """The kernels of a network, an ONNX path or model, as tasks: see tenon.tuning.NetworkTask."""
    from ..tuning import tasks_of_network

    return tasks_of_network(mod, resolve(target, target_host), **kwargs)
