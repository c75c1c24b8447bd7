"""From schedules, loop IR and models to code."""

from __future__ import annotations

import os
import tempfile
from os import PathLike
from typing import Sequence

from . import _arguments, _tenon, tir
from ._tenon import IrModule, Schedule, Tensor, Var
from .runtime import Module, load_module
from .target import Target, resolve

__all__ = ["build", "compile", "load", "lower"]

load = load_module


def lower(inputs: Schedule, args: Sequence[Tensor | Var], name: str = "main", simple_mode: bool = False) -> IrModule:
    """The loop IR that build would compile; str() is its text."""
    return _tenon.lower(inputs, list(args), name)


def build(
    inputs: Schedule | tir.Schedule | IrModule,
    args: Sequence[Tensor | Var] | None = None,
    target: Target | str | None = None,
    target_host: Target | str | None = None,
    name: str = "main",
) -> Module:
    """Code of a schedule, with `args` as parameters (inputs first, then outputs; variables among them are passed by
    value), or of loop IR: an IrModule or a tir.Schedule. `target_host`, the CPU of a device's host, is the target where no other is given."""
    target = resolve(target, target_host)
    if isinstance(inputs, Schedule):
        if args is None:
            raise ValueError("build of a schedule needs its arguments")
        return Module(_tenon.build_schedule(inputs, list(args), target, name))
    if isinstance(inputs, tir.Schedule):
        inputs = inputs.checked_mod()
    return Module(_tenon.build_module(inputs, target))


def compile(
    model: str | PathLike | bytes,
    output: str | PathLike | None = None,
    *,
    target: Target | str | None = None,
    shapes: dict | None = None,
    name: str = "main",
    precision: str = "fp32",
    opt_level: int = 2,
    jobs: int = 0,
) -> Module:
    """Compiles an ONNX file (or its bytes) and loads the result. `shapes` gives sizes of inputs: numbers, or
    names of those that stay open, {"x": ["batch[1..16]", 128]}; without it they are the model's. `output` keeps the library; without it, it lives as long as this process."""
    with tempfile.TemporaryDirectory(prefix="tenon-") as folder:
        if isinstance(model, bytes):
            path = os.path.join(folder, "model.onnx")
            with open(path, "wb") as file:
                file.write(model)
        else:
            path = os.fspath(model)
        library = os.path.join(folder, "model.so") if output is None else os.fspath(output)
        sizes = {
            key: [d if isinstance(d, str) else str(int(d)) for d in dims] for key, dims in (shapes or {}).items()
        }
        _tenon.compile_model(path, library, str(resolve(target)), sizes, name, precision, opt_level, jobs)
        return load_module(library)


_arguments.say_clearly(globals())
