"""Schedules that nobody writes, by the names of the auto-scheduler: rules derive sketches from what is computed, and a search
finds their numbers.

    @auto_scheduler.register_workload
    def matmul(n):
        ...
        return [A, B, C]

    task = auto_scheduler.SearchTask(func=matmul, args=(1024,), target="llvm")
    task.tune(auto_scheduler.TuningOptions(num_measure_trials=64, measure_callbacks=[auto_scheduler.RecordToFile("matmul.json")]))
    sch, args = task.apply_best("matmul.json")
    f = tenon.build(sch, args, task.target)

docs/tuning.md says what is tried and how it is measured. Logs are Tenon's lines of JSON."""

from .. import _left_out
from .cost_model import RandomModel, XGBModel
from .dag import ComputeDAG
from .dispatcher import ApplyHistoryBest
from .measure import (
    HardwareParams,
    LocalBuilder,
    LocalRPCMeasureContext,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    RPCRunner,
)
from .measure_record import RecordReader, RecordToFile, load_best_record, load_records, save_records
from .search_policy import PreloadCustomSketchRule, PreloadMeasuredStates, SketchPolicy
from .search_task import SearchTask, TuningOptions
from .task_scheduler import TaskScheduler, extract_tasks
from .workload_registry import make_workload_key, register_workload

__all__ = [
    "ApplyHistoryBest", "ComputeDAG", "HardwareParams", "LocalBuilder", "LocalRPCMeasureContext", "LocalRunner", "MeasureErrorNo",
    "MeasureInput", "MeasureResult", "PreloadCustomSketchRule", "PreloadMeasuredStates", "RPCRunner", "RandomModel", "RecordReader",
    "RecordToFile", "SearchTask", "SketchPolicy", "TaskScheduler", "TuningOptions", "XGBModel", "extract_tasks", "load_best_record",
    "load_records", "make_workload_key", "register_workload", "save_records",
]  # fmt: skip

__getattr__ = _left_out.names_of("auto_scheduler.", __name__)
