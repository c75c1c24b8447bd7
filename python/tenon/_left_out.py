"""Names that code written for TVM uses and Tenon leaves out, each with a sentence that says what there is instead.

One table for everything: names of modules ("te.gradient"), modules ("relay"), and methods ("Stage.env_threads"). Asking
for such a name raises NotImplementedError with its sentence, however it is asked for: by attribute, by `from tenon.te
import gradient`, by `import tenon.relay`. A name that is not in the table is an ordinary AttributeError."""

from __future__ import annotations

import importlib.abc
import sys
from typing import Any, Callable

_NETWORKS = "networks come as ONNX files: tenon.compile(\"model.onnx\") or the tenon command compiles them"
_SEARCH = "tenon.auto_scheduler derives schedules and measures them, tenon.autotvm tunes templates, tenon tune networks (docs/tuning.md)"
_OPERATORS = "operators of networks are Tenon's own; a kernel of one's own is written with te.compute"
_REMOTE = "libraries for other machines are built here (docs/targets.md), copied there and loaded by Tenon's runtime, in C++ or in Python"
_NODES = "loop IR is a text, not classes of nodes: str(module) prints it and IrModule.parse reads it (docs/loop-ir.md)"
_PASSES = "passes over loop IR run by tenon-opt (docs/tenon-opt.md); schedules are changed by primitives (docs/schedules.md)"
_VECTORS = "vectors are made by vectorize, not written in expressions"
_CALLS = "an expression has no calls of C functions: te.extern makes a tensor by one"

LEFT_OUT = {
    # Other roads into and around the compiler.
    "relay": _NETWORKS,
    "relax": _NETWORKS,
    "topi": _OPERATORS,
    "meta_schedule": _SEARCH,
    "rpc": _REMOTE,
    "micro": "for small machines Library.export_to_c writes C11 source and a header without a runtime (target c)",
    "script": "loop IR is written as its own text, which IrModule.parse and tir.Schedule read (docs/loop-ir.md); TVMScript is not read",
    "parser": _NETWORKS,
    "arith": "what is proved about indices is the compiler's own affair; str(tenon.lower(…)) shows what came of it",
    "hybrid": "a function with statements is an extern: te.extern with tir.ir_builder, or with the text of loop IR",
    "instrument": "tenon compile --time-passes and --print-after show passes (docs/command-line.md)",
    "support": "what was built in is printed by tenon --version",
    "transform.Pass": _PASSES,
    "ir.Op": _NETWORKS,
    "ir.Range": "a range is a pair, (begin, end)",
    "ir.structural_hash": "loop IR compares as its text: str(a) == str(b)",
    "transform.Sequential": _PASSES,
    "transform.module_pass": _PASSES,
    "transform.function_pass": _PASSES,
    "vulkan": "Tenon has no Vulkan target; GPUs are reached by cuda and opencl",
    "metal": "Tenon has no Metal target; GPUs are reached by cuda and opencl",
    "rocm": "Tenon has no ROCm target; GPUs of AMD are reached by opencl",
    "webgpu": "Tenon has no WebGPU target; for the web there is WebAssembly: llvm -mtriple=wasm32-unknown-unknown",
    "hexagon": "Tenon has no Hexagon target",
    "ext_dev": "Tenon runs on CPUs and by cuda and opencl; new targets are described in docs/new-target.md",
    "register_object": "there are no objects of a foreign runtime: tensors, numbers and functions are all that is passed",
    "register_extension": "there are no objects of a foreign runtime: arrays of frameworks are passed as they are",
    "context": "it is tenon.device: tenon.device(\"cpu\", 0)",
    "convert": "numbers are taken as they are wherever an expression is",
    "driver": "tenon.build, tenon.lower and tenon.compile are the ways in",
    "build_config": "transform.PassContext has the settings there are",
    "DataType": "types are texts, \"float32\", or NumPy's",
    "Object": "there are no objects of a foreign runtime: tensors, numbers and functions are all that is passed",
    "autotvm.FallbackContext": "without apply_history_best templates get first candidates",
    "autotvm.DispatchContext": "apply_history_best gives templates the best of a log",
    "autotvm.feature": "features of candidates are the model's own (docs/tuning.md)",
    "autotvm.graph_tuner": "layouts are chosen for a whole network while it is compiled by a log: tenon.compile(…, log=)",
    "autotvm.tophub": "there is no hub of records; a log of one's own is sent as a file",
    "auto_scheduler.ProgramMeasurer": "SearchTask.tune measures",
    "auto_scheduler.ProgramRunner": "SearchTask.tune measures; LocalRunner says how long",
    "auto_scheduler.ProgramBuilder": "SearchTask.tune builds",
    "auto_scheduler.EmptyPolicy": "TuningOptions(num_measure_trials=0) measures nothing",
    "auto_scheduler.LayoutRewriteOption": "a layout that is to be searched is a rule: PreloadCustomSketchRule with transform_layout",
    "auto_scheduler.is_auto_scheduler_enabled": "ApplyHistoryBest is entered, or not",
    "error": "exceptions are Python's own; tenon.TVMError is a tuple of them",
    "container": "lists and dicts are Python's own",
    **{name: f"it is te.{name}" for name in ("var", "placeholder", "compute", "scan", "extern", "thread_axis", "reduce_axis", "sum", "max", "min", "const",
                                             "exp", "select", "if_then_else", "all", "any", "comm_reducer", "decl_tensor_intrin")},
    **{name: f"it is tir.{name}" for name in ("call_extern", "call_packed", "call_intrin", "decl_buffer", "ir_builder")},
    "target.arm_cpu": "a target string names the CPU: \"llvm -mtriple=aarch64-linux-gnu -mcpu=…\" (docs/targets.md)",
    "target.intel_graphics": "the GPU is reached by opencl",
    "target.rocm": "Tenon has no ROCm target; GPUs of AMD are reached by opencl",
    "target.generic_func": "kernels of networks are chosen by a cost model; a schedule of one's own asks Target.kind",
    "target.override_native_generic_func": "kernels of networks are chosen by a cost model; a schedule of one's own asks Target.kind",
    "target.datatype": "types are those that machines have; others are their bits, by te.reinterpret",
    "testing.main": "unittest.main and pytest.main run tests",
    "testing.parameters": "unittest's subTest and pytest.mark.parametrize do the same",
    "testing.parametrize_targets": "unittest's subTest and pytest.mark.parametrize do the same",
    "testing.enabled_targets": "tenon.nd.device(name).exist says whether there is a device",
    "testing.requires_cuda": "tenon.cuda().exist says whether there is a device",
    "testing.requires_gpu": "tenon.cuda().exist says whether there is a device",
    # Tensor expressions.
    **{
        f"te.{name}": "operations are of one class, te.Operation; input_tensors is empty for a placeholder, reduce_axis for what reduces nothing"
        for name in ("PlaceholderOp", "ComputeOp", "ScanOp", "ExternOp", "HybridOp", "TensorComputeOp")
    },
    "te.trace": "a kernel has no hooks; an intermediate tensor can be among the arguments of build",
    "te.logaddexp": "te.max(a, b) + te.log1p(te.exp(-te.abs(a - b)))",
    "te.extern_primfunc": "te.extern takes a module of loop IR",
    "Operation.tag": "there are no tags; a schedule is written for the tensors at hand",
    "IterVar.dom": "loops run from 0 to the dims of their tensor's shape; those that a schedule made have the sizes it gave them",
    "Device.compute_version": "a target names the architecture: Target(\"cuda -arch=sm_90\")",
    "Device.max_threads_per_block": "limits are the target's (docs/targets.md)",
    "Device.warp_size": "limits are the target's (docs/targets.md)",
    "Device.multi_processor_count": "limits are the target's (docs/targets.md)",
    "Device.device_name": "nvidia-smi and clinfo name devices",
    "te.gradient": "tensor expressions are not differentiated; write the gradient as a tensor expression of its own",
    "te.hybrid": "a function with statements is an extern: te.extern with tir.ir_builder, or with the text of loop IR",
    "te.tag_scope": "there are no tags; a schedule is written for the tensors at hand",
    "te.SpecializedCondition": "Schedule.specialize(condition) makes a version of everything for where a condition holds",
    "te.TensorSlice": "elements are indexed one by one, A[i, j]; a part of a tensor is a te.compute of it",
    "te.AXIS_SEPARATOR": "tensors have one run of memory; transform_layout says how elements lie in it",
    # Schedules.
    "Stage.env_threads": "threads are bound loop by loop: bind(axis, te.thread_axis(…))",
    "Stage.origin_op": "Stage.op is the operation as it is now",
    "Schedule.normalize": "a schedule is in order as it is: no call is needed",
    "Schedule.stage_map": "s[tensor] is the stage of a tensor, s.stages are all",
    "te.schedule": "str(tenon.lower(s, args)) is the loop IR of a schedule, with the bounds that follow from it",
    # Loop IR.
    "tir.stmt_functor": _NODES,
    "tir.analysis": _NODES,
    "tir.transform": _PASSES,
    "tir.BijectiveLayout": "transform_layout takes a map of coordinates, such as lambda i, j: (i // 4, j, i % 4)",
    "tir.Layout": "transform_layout takes a map of coordinates, such as lambda i, j: (i // 4, j, i % 4)",
    "tir.layout": "transform_layout takes a map of coordinates, such as lambda i, j: (i // 4, j, i % 4)",
    "tir.Ramp": _VECTORS,
    "tir.Broadcast": _VECTORS,
    "tir.Shuffle": _VECTORS,
    "tir.call_pure_extern": _CALLS,
    "tir.call_llvm_intrin": "instructions of a machine are reached by tensorize (docs/gpu-operations.md, src/intrin) and by C functions that te.extern calls",
    "tir.call_llvm_pure_intrin": "functions of numbers are te's own: te.exp, te.popcount, te.fma, …",
    "tir.call_tir": "tenon.build takes several modules; a function of loop IR calls others of its module",
    "tir.call_cpacked": "a library has no packed functions of others; call_extern calls a C function, call_packed one of Python's",
    "tir.q_multiply_shift": "products of fixed-point numbers are written out: (x.astype(\"int64\") * y + half) >> shift",
    "tir.trace": "a kernel has no hooks; an intermediate tensor can be among the arguments of build",
    "tir.assume": "what is known of a size is said where it is made: te.var(name, lo=, hi=, step=)",
    "tir.undef": "every element of a tensor is computed",
    "tir.Let": "a value that is used twice is computed once: write it twice, or as a tensor",
    "tir.BlockRV": "blocks, loops and buffers are found by name: handles are texts",
    "tir.LoopRV": "blocks, loops and buffers are found by name: handles are texts",
    "tir.tvm_call_packed": "use tir.call_packed",
    **{
        f"tir.{name}": _NODES
        for name in (
            "Allocate", "AssertStmt", "AttrStmt", "Block", "BlockRealize", "BufferLoad", "BufferRealize", "BufferRegion", "BufferStore", "Call",
            "Evaluate", "For", "IfThenElse", "LetStmt", "Load", "MatchBufferRegion", "Prefetch", "PrimFunc", "ProducerLoad", "ProducerStore",
            "SeqStmt", "Stmt", "Store", "StmtSRef", "While", "Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "EQ", "NE", "LT", "LE", "GT",
            "GE", "And", "Or", "Not", "Reduce", "StringImm", "CommReducer", "build", "lower",
        )
    },
    "tir.Schedule.sample_compute_location": "compute_at says where; decide gives a choice of one's own a name",
    "tir.Schedule.sample_partitioned_tile": "sample_perfect_tile gives factors; partition cuts a loop",
    "tir.Schedule.add_unit_loop": "a loop of one iteration is a split by 1",
    "tir.Schedule.get_sref": "blocks, loops and buffers are found by name: handles are texts",
    "tir.Schedule.get": "handles are texts, which name what there is",
    "tir.Schedule.set_axis_separator": "tensors have one run of memory; transform_layout says how elements lie in it",
    "tir.Schedule.reindex": "transform_layout and transform_block_layout give tensors and loops other coordinates",
    "tir.Schedule.unannotate": "an annotation is set by annotate; a copy of the schedule from before is without it",
    "tir.Schedule.merge": "loops with the same ranges are joined by compute_at",
    "tir.Schedule.loop_partition": "partition(loop, points) cuts a loop",
    "tir.Schedule.enter_postproc": "a trace is replayed by replay(trace), or its text",
    # What is around compiled code.
    "nd.sparse": "sparse tensors are passed as the arrays they are made of",
    "contrib.cblas": "products are compiled, not taken from a library; te.extern with tir.call_extern calls C functions that the program links",
    "contrib.cublas": "products are compiled, not taken from a library (docs/gpu-operations.md)",
    "contrib.cudnn": "convolutions are compiled, not taken from a library",
    "contrib.mkl": "products are compiled, not taken from a library",
    "contrib.nvcc": "device code is made by NVRTC, which needs no nvcc (docs/targets.md)",
    "contrib.clang": "C functions are compiled by the system's compiler and linked: contrib.cc.create_shared",
    "contrib.graph_runtime": _NETWORKS,
    "contrib.random": "random numbers are made by the caller and passed as arrays",
    "contrib.sort": "sorts of networks are Tenon's own; as a kernel of one's own use te.extern",
    "contrib.util": "it is contrib.utils",
    "contrib.tar": "Module.save(\"f.tar\") writes a tar, runtime.load_module reads it",
    "contrib.ndk": "a library for another machine is built with its target and linked there, or by a cross compiler: contrib.cc.create_shared(…, cc=)",
    "contrib.emcc": "for the web: target llvm -mtriple=wasm32-unknown-unknown, saved as .wasm",
    "contrib.xcode": _REMOTE,
    "contrib.pickle_memoize": "keep a trace: Schedule.trace.as_json(), tir.Schedule.replay",
    "Module.implement_function": "tenon.runtime.Module has get_function(name) and m[name]",
    "Module.format": "Module.save says by the name's end what is written",
    "runtime.profiling": "Module.time_evaluator measures calls; tenon bench measures libraries",
    "runtime.vm": _NETWORKS,
    "runtime.executor": _NETWORKS,
    "runtime.Object": "there are no objects of a foreign runtime: tensors, numbers and functions are all that is passed",
    "runtime.enabled": "str(tenon.target.Target(…)) reads a target, or says what is wrong with it",
}  # fmt: skip


def sentence(name: str) -> str:
    """What is said of a name of the table; "" for others."""
    return f"tenon has no {name}: {LEFT_OUT[name]}" if name in LEFT_OUT else ""


def names_of(prefix: str, owner: str) -> Callable:
    """A module's __getattr__. `prefix` is how the table calls it ("te." for tenon.te), `owner` how messages do."""

    def get(name: str) -> Any:
        if text := sentence(prefix + name):
            raise NotImplementedError(text)
        raise AttributeError(f"module '{owner}' has no attribute '{name}'")

    return get


def say_of(cls: type, prefix: str) -> None:
    """A class whose objects answer likewise."""

    def get(self, name: str) -> Any:
        if text := sentence(prefix + name):
            raise NotImplementedError(text)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    cls.__getattr__ = get


class _Finder(importlib.abc.MetaPathFinder):
    """`import tenon.relay` and `from tenon.script import tir`; the last finder, which sees what no other found."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        package, _, name = fullname.partition(".")
        if package == __package__ and (text := sentence(name)):
            raise NotImplementedError(text)


sys.meta_path.append(_Finder())
