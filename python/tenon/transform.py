"""Settings of compilations, as code for TVM gives them."""

from __future__ import annotations

import threading
from typing import Any, Mapping

from . import _arguments, _left_out

__all__ = ["PassContext"]

_contexts = threading.local()
_ACCEPTED = ("relay.backend.use_auto_scheduler",)  # auto_scheduler.ApplyHistoryBest says it
_HIGHEST = 2  # of the levels that tenon.compile has

_CONFIG = {
    "tir.UnrollLoop": "Stage.pragma(axis, \"auto_unroll_max_step\", n) unrolls what is inside a loop, Stage.unroll one loop",
    "tir.disable_vectorize": "loops are vectorized where a schedule says so, by Stage.vectorize, and nowhere else",
    "tir.disable_storage_rewrite": "intermediate results share memory where they are never needed together",
    "tir.disable_assert": "the checks of arguments are made once a call, before anything is computed",
    "tir.instrument_bound_checkers": "reads and writes outside of tensors are refused while compiling, or checked before a call",
    "tir.noalias": "outputs overlap nothing: calls check it",
    "tir.add_lower_pass": "passes of one's own are C++ (docs/extending.md)",
    "tir.debug_keep_trivial_loop": "tenon.lower shows the loops of a schedule",
    "tir.LoopPartition": "guards are split off loops where that pays; Stage.partition cuts a loop",
    "tir.HoistIfThenElse": "conditions go outside of loops where that is right",
    "tir.InjectDoubleBuffer": "Stage.double_buffer makes two halves",
    "tir.detect_global_barrier": "blocks that wait for each other: pragma(axis, \"cooperative\")",
    "relay.FuseOps.max_depth": "what becomes one kernel is chosen by a cost model",
}


def logs() -> list[str]:
    """The logs of tuning that were entered in this thread, the innermost last."""
    if not hasattr(_contexts, "logs"):
        _contexts.logs = []
    return _contexts.logs


class PassContext:
    """`with PassContext(opt_level=3):`. The level is that of tenon.compile where none is given (3, tvm's highest, is 2 here);
    kernels of one's own are as their schedules say at any level. Keys of `config` are refused with what does the same."""

    def __init__(
        self,
        opt_level: int = _HIGHEST,
        required_pass: Any = None,
        disabled_pass: Any = None,
        instruments: Any = None,
        config: Mapping | None = None,
    ):
        if not isinstance(opt_level, int) or opt_level < 0:
            raise ValueError(f"PassContext: expected a level from 0 on but got {opt_level}")
        for name, given in (("required_pass", required_pass), ("disabled_pass", disabled_pass), ("instruments", instruments)):
            if given:
                raise NotImplementedError(
                    f"PassContext has no {name}: passes are chosen by the pipeline; tenon-opt runs them one by one "
                    "(docs/tenon-opt.md)"
                )
        for key in config or {}:
            if key in _ACCEPTED:
                continue
            what = _CONFIG.get(key, f"there is no such setting; {', '.join(_ACCEPTED)} is taken, and refused with what there is instead are {', '.join(_CONFIG)}")
            raise NotImplementedError(f"PassContext has no '{key}': {what}")
        self.opt_level = min(opt_level, _HIGHEST)
        self.config: dict = {}

    @staticmethod
    def current() -> PassContext:
        """The innermost that was entered in this thread, or one as made without arguments."""
        stack = getattr(_contexts, "stack", [])
        return stack[-1] if stack else PassContext()

    def __enter__(self) -> PassContext:
        if not hasattr(_contexts, "stack"):
            _contexts.stack = []
        _contexts.stack.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _contexts.stack.pop()

    def __repr__(self) -> str:
        return f"PassContext(opt_level={self.opt_level})"


__getattr__ = _left_out.names_of("transform.", __name__)
_arguments.say_clearly(globals())
