"""Templates by the names of AutoTVM: a schedule that leaves numbers open, and tuners that measure.

    @autotvm.template("matmul")
    def matmul(n):
        ...
        cfg = autotvm.get_config()
        cfg.define_split("tile_y", y, num_outputs=2)
        yo, yi = cfg["tile_y"].apply(s, C, y)
        return s, [A, B, C]

    task = autotvm.task.create("matmul", args=(512,), target="llvm")
    tuner = autotvm.tuner.XGBTuner(task)
    tuner.tune(n_trial=64, measure_option=autotvm.measure_option("local", "local"),
               callbacks=[autotvm.callback.log_to_file("matmul.log")])
    with autotvm.apply_history_best("matmul.log"), tenon.target.Target("llvm"):
        s, args = matmul(512)

Candidates are raced against the best one so far in a process of their own (docs/tuning.md); logs are AutoTVM's lines of
JSON, version 0.2."""

from .. import _left_out
from . import callback, measure, record, space, task, tuner
from .dispatch import apply_history_best, ApplyHistoryBest, get_config
from .measure import LocalBuilder, LocalRunner, MeasureErrorNo, MeasureInput, MeasureResult, RPCRunner, measure_option
from .space import ConfigEntity, ConfigSpace
from .task import template

__all__ = [
    "ApplyHistoryBest", "ConfigEntity", "ConfigSpace", "LocalBuilder", "LocalRunner", "MeasureErrorNo", "MeasureInput",
    "MeasureResult", "RPCRunner", "apply_history_best", "callback", "get_config", "measure", "measure_option", "record",
    "space", "task", "template", "tuner",
]  # fmt: skip

__getattr__ = _left_out.names_of("autotvm.", __name__)
