"""From schedules, loop IR and models to code."""

from __future__ import annotations

import os
import tempfile
from os import PathLike
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from . import _arguments, _tenon, te, tir
from ._tenon import IrModule, Schedule, Tensor, Var
from .runtime import Module, load_module
from .target import Target, resolve
from .transform import PassContext, logs

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["build", "compile", "load", "lower"]

load = load_module
_MAIN = "main"


def _named(module: IrModule, name: str | None, what: str) -> IrModule:
    """The module with its function under this name. Errors: there are several."""
    if name is None:
        return module
    if not name.isidentifier():
        raise ValueError(f"{what}: the name '{name}' is not an identifier of C, which exports need")
    try:
        return IrModule({name: module})  # which sets what it calls of device functions apart
    except ValueError:
        raise ValueError(
            f"{what}: 'name' is for a module of one function, but there are {', '.join(module.functions) or 'none'}; "
            'tenon.IrModule({"add": f, "twice": g}) names each'
        ) from None


def _placed(args: Sequence[Tensor | Var], binds: Mapping | None) -> list:
    """The arguments, those whose buffers say so with their strides."""
    strides = {tensor: buffer.strides for tensor, buffer in (binds or {}).items() if buffer.strides}
    placed = []
    for a in args:
        own = strides.pop(a, None) if isinstance(a, Tensor) else None
        placed.append((a, [te._expr(s, "binds", "strides") for s in own]) if own else a)
    for tensor in strides:
        raise ValueError(f"binds: '{tensor.name}' is not among the arguments")
    return placed


def lower(
    inputs: Schedule | tir.Schedule,
    args: Sequence[Tensor | Var],
    name: str | None = None,
    binds: Mapping | None = None,
    simple_mode: bool = False,
) -> IrModule:
    """The loop IR that build would compile; str() is its text. `binds` gives buffers of tir.decl_buffer for inputs; what
    they say of strides, in elements, holds of arguments, which are compact otherwise: a number is what they must have, a
    variable what they have. `name` is as build's."""
    if isinstance(inputs, tir.Schedule):
        return _named(inputs.checked_mod(), name, "lower")
    return _tenon.lower(inputs, _placed(args, binds), _MAIN if name is None else name)


def build(
    inputs: Schedule | tir.Schedule | IrModule | Sequence[tir.Schedule | IrModule] | Mapping,
    args: Sequence[Tensor | Var] | None = None,
    target: Target | str | Mapping | None = None,
    target_host: Target | str | Mapping | None = None,
    name: str | None = None,
    binds: Mapping | None = None,
) -> Module:
    """Code of a schedule, with `args` as parameters (inputs first, then outputs; variables among them are passed by
    value), or of loop IR: an IrModule or a tir.Schedule; of several of them, one library with the functions of all.
    `name` is the function's: without it a schedule's is called "main", and those of loop IR are as they are called there.
    `target_host`, the CPU of a device's host, is the target where no other is given; `binds` is as lower's."""
    if isinstance(inputs, Mapping):
        if len(inputs) != 1 or target is not None:
            raise NotImplementedError(
                "build: a library is for one target; build the modules of each target by themselves"
            )
        ((target, inputs),) = inputs.items()
    target = resolve(target, target_host)
    if isinstance(inputs, Schedule):
        if args is None:
            raise ValueError("build of a schedule needs its arguments")
        return Module(_tenon.build_schedule(inputs, _placed(args, binds), target, _MAIN if name is None else name))
    several = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    modules = [m.checked_mod() if isinstance(m, tir.Schedule) else m for m in several]
    for module in modules:
        if not isinstance(module, IrModule):
            raise TypeError(f"build: expected loop IR, of lower or tir.Schedule, but got {_arguments.kinds(module)}")
    module = modules[0] if len(modules) == 1 else IrModule.joined(modules)
    return Module(_tenon.build_module(_named(module, name, "build"), target))


def _size(size: Any) -> str:
    """A size of an input, as the command line has it."""
    if isinstance(size, str):
        return size
    if isinstance(size, bool) or not hasattr(size, "__index__") or size.__index__() < 0:
        raise TypeError(
            "compile: expected a number, or a name such as \"batch[1..16]\", for each size of 'shapes' but got "
            f"{size!r}"
        )
    return str(size.__index__())


def _sizes(shapes: Mapping[str, Any]) -> dict[str, list[str]]:
    """Of each input by its name."""
    sizes = {}
    for name, dims in shapes.items():
        if not isinstance(name, str):
            raise TypeError(f"compile: expected the name of an input in 'shapes' but got {_arguments.kinds(name)}")
        if not isinstance(dims, (list, tuple)):
            raise TypeError(
                f"compile: expected the sizes of '{name}' in 'shapes' as a list, such as [1, 3, 224, 224], but got "
                f"{_arguments.kinds(dims)}"
            )
        sizes[name] = [_size(d) for d in dims]
    return sizes


def _level(opt_level: Any) -> int:
    """As the command line has it."""
    level = opt_level.__index__() if hasattr(opt_level, "__index__") else -1
    if not 0 <= level <= 3:
        raise ValueError(f"expected a level from 0 to 3 for 'opt_level' but got {opt_level!r}")
    return level


def compile(
    model: str | PathLike | bytes | ModelProto,
    output: str | PathLike | None = None,
    *,
    target: Target | str | Mapping | None = None,
    shapes: dict | None = None,
    name: str = "main",
    precision: str = "fp32",
    opt_level: int | None = None,
    jobs: int = 0,
    log: str | PathLike | None = None,
    time_kernels: bool = False,
) -> Module:
    """Compiles an ONNX file (or its bytes, or an onnx.ModelProto) and loads the result. `shapes` gives sizes of inputs: numbers, or
    names of those that stay open, {"x": ["batch[1..16]", 128]}; without it they are the model's. `output` keeps the library, or
    is a folder for it and what belongs to it; without it, the library lives as long as this process. `log` is a log of tuning that kernels
    are chosen by (docs/tuning.md); without it that of auto_scheduler.ApplyHistoryBest, if any. `opt_level`, 0 to 3, is
    transform.PassContext's where none is given, else 2. With `time_kernels`, the module's function NAME_launch_times gives an int64[n, 2]: how
    often each launch of a kernel has happened, and the nanoseconds that it took, alone; what they are is told by `launches` of info()."""
    with tempfile.TemporaryDirectory(prefix="tenon-") as folder:
        if hasattr(model, "SerializeToString"):
            model = model.SerializeToString()
        if isinstance(model, bytes):
            path = os.path.join(folder, "model.onnx")
            with open(path, "wb") as file:
                file.write(model)
        else:
            path = os.fspath(model)
        library = os.path.join(folder, "model.so") if output is None else os.fspath(output)
        level = PassContext.current().opt_level if opt_level is None else opt_level
        options = _tenon.ModelOptions()
        options.target, options.name, options.precision = resolve(target), name, precision
        options.shapes, options.opt_level, options.jobs = _sizes(shapes or {}), _level(level), jobs
        options.time_kernels = time_kernels
        options.log = os.fspath(log) if log is not None else (logs() or [""])[-1]
        _tenon.compile_model(path, library, options)
        return load_module(os.path.join(library, "model.so") if os.path.isdir(library) else library)


_arguments.say_clearly(globals())
