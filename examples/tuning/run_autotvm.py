"""Compiles a network after tuning its kernels, and writes down everything that a comparison needs.

    run_autotvm.py model.onnx --tuning-trials 200 --tuning-log model.log --artifacts out
    run_autotvm.py torchvision.models:resnet18 --example-shape 1 3 224 224 --artifacts out   # where PyTorch is installed

The folder of --artifacts gets deploy_lib.tar (tenon.runtime.load_module reads it), deploy_graph.json (the network, to be looked at),
deploy_params.bin (its weights, in the layout of TVM's parameter files) and metadata.json: target, versions, trials, and the time of
a call, mean ± standard deviation after a warm-up. compare_results.py prints two such folders side by side.

ExportConfig, compile_pytorch_module and verify_runtime are for programs of one's own.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import io
import json
import os
import pathlib
import struct
import sys
import tarfile
import tempfile
import time
from typing import Any, Sequence

import numpy as np

import tenon
from tenon import auto_scheduler, autotvm
from tenon.contrib.graph_executor import GraphModule

# TVM's parameter files.
LIST_MAGIC, ARRAY_MAGIC = 0xF7E58D4F05049CB7, 0xDD5E40F096B4A13F
KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}


@dataclasses.dataclass
class ExportConfig:
    """How a network is compiled. `example_shape`: of the only input, or by name."""

    target: str = "llvm"
    example_shape: Any = None
    dtype: str = "float32"
    tuning_trials: int = 0
    use_ansor: bool = False
    tuning_log: str | None = None
    artifacts: str | None = None
    warm_up: int = 10
    repeat: int = 50
    seed: int = 0
    verbose: bool = False


def say(config: ExportConfig, text: str) -> None:
    if config.verbose:
        print(text, file=sys.stderr, flush=True)


# ---- From a model to a file ----


def export_module(module: Any, example: Sequence[Any], path: str) -> None:
    """A PyTorch module as an ONNX file."""
    import torch

    module.eval()
    with torch.no_grad():
        torch.onnx.export(module, tuple(example), path, input_names=[f"input{i}" for i in range(len(example))])


def load_torch(name: str, config: ExportConfig, path: str) -> None:
    """`module:function`, which returns a module of PyTorch, exported to `path`."""
    try:
        import torch
    except ImportError:
        raise SystemExit(f"'{name}' is a function of PyTorch, which is not installed; an ONNX file needs none") from None
    if config.example_shape is None:
        raise SystemExit("what shape does its input have? expected --example-shape")
    where, _, function = name.partition(":")
    dtype = getattr(torch, config.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise SystemExit(f"PyTorch has no type '{config.dtype}': expected --dtype float32, int64 or the like")
    sys.path.insert(0, os.getcwd())
    try:
        made = getattr(importlib.import_module(where), function)()
    except ModuleNotFoundError as error:
        raise SystemExit(f"'{name}' cannot be imported: {error}") from None
    except AttributeError as error:
        raise SystemExit(f"'{name}' gave no network: {error}") from None
    if not isinstance(made, torch.nn.Module):
        raise SystemExit(f"'{name}' gave {type(made).__name__}: expected a torch.nn.Module")
    export_module(made, [torch.zeros(*config.example_shape, dtype=dtype)], path)


def input_shapes(path: str, config: ExportConfig) -> dict:
    """Sizes of inputs by name, as far as they are given."""
    if config.example_shape is None:
        return {}
    if isinstance(config.example_shape, dict):
        return {name: list(shape) for name, shape in config.example_shape.items()}
    described = json.loads(tenon._tenon.describe_model(path))
    return {i["name"]: list(config.example_shape) for i in described["inputs"] if len(i.get("shape", [])) == len(config.example_shape)}


# ---- Tuning ----


def tune(path: str, shapes: dict, config: ExportConfig) -> dict:
    """Tunes the network's kernels into the log; what was done, for the metadata."""
    start = time.time()
    runner = auto_scheduler.LocalRunner(timeout=30)
    say(config, f"tuning {path}: {config.tuning_trials} trials into {config.tuning_log}")
    if config.use_ansor:
        tasks, weights = auto_scheduler.extract_tasks(path, target=config.target, shapes=shapes)
        option = auto_scheduler.TuningOptions(
            config.tuning_trials, runner=runner, verbose=int(config.verbose), measure_callbacks=[auto_scheduler.RecordToFile(config.tuning_log)]
        )
        auto_scheduler.TaskScheduler(tasks, weights).tune(option)
    else:
        tasks = autotvm.task.extract_from_program(path, target=config.target, shapes=shapes)
        option = autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner(timeout=30))
        share = max(1, config.tuning_trials // max(1, len(tasks)))
        for i, task in enumerate(tasks):
            say(config, f"  {i + 1} of {len(tasks)}: {task}")
            tuner = autotvm.tuner.XGBTuner(task)
            tuner.tune(min(share, len(task.config_space)), option, callbacks=[autotvm.callback.log_to_file(config.tuning_log)])
    return {"tasks": len(tasks), "trials": config.tuning_trials, "seconds": round(time.time() - start, 1), "by": "ansor" if config.use_ansor else "autotvm"}


# ---- Artifacts ----


def parameter_bytes(weights: dict[str, np.ndarray]) -> bytes:
    """Weights as TVM's parameter files hold them."""
    out = io.BytesIO()
    out.write(struct.pack("<QQQ", LIST_MAGIC, 0, len(weights)))
    for name in weights:
        raw = name.encode()
        out.write(struct.pack("<Q", len(raw)) + raw)
    out.write(struct.pack("<Q", len(weights)))
    for array in weights.values():
        array = np.ascontiguousarray(array)
        out.write(struct.pack("<QQiiiBBH", ARRAY_MAGIC, 0, 1, 0, array.ndim, KINDS[array.dtype.kind], 8 * array.dtype.itemsize, 1))
        out.write(struct.pack(f"<{array.ndim}q", *array.shape) + struct.pack("<q", array.nbytes) + array.tobytes())
    return out.getvalue()


def read_weights(path: str) -> dict[str, np.ndarray]:
    import onnx
    from onnx import numpy_helper

    model = onnx.load(path)
    weights = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    return {name: a for name, a in weights.items() if a.dtype.kind in KINDS}


def graph_json(path: str) -> dict:
    """The network's nodes, to be looked at."""
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    nodes = [{"op": n.op_type, "name": n.name, "inputs": list(n.input), "outputs": list(n.output)} for n in graph.node]
    return {"inputs": [i.name for i in graph.input], "outputs": [o.name for o in graph.output], "nodes": nodes}


def write_artifacts(path: str, library: str, metadata: dict, folder: str) -> None:
    target = pathlib.Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(target / "deploy_lib.tar", "w") as archive:
        entry = tarfile.TarInfo("deploy_lib.so")
        entry.size = os.path.getsize(library)
        with open(library, "rb") as content:
            archive.addfile(entry, content)
    (target / "deploy_graph.json").write_text(json.dumps(graph_json(path), indent=1) + "\n")
    (target / "deploy_params.bin").write_bytes(parameter_bytes(read_weights(path)))
    (target / "metadata.json").write_text(json.dumps(metadata, indent=1) + "\n")


# ---- Measuring and checking ----


def random_inputs(module: GraphModule, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    inputs = {}
    for p in module.module.inputs:
        shape = [d if isinstance(d, int) else 1 for d in p.shape]
        is_float = np.dtype(p.dtype).kind == "f"
        inputs[p.name] = (random.standard_normal(shape) if is_float else random.integers(0, 2, shape)).astype(p.dtype)
    return inputs


def latency(module: GraphModule, inputs: dict, warm_up: int, repeat: int) -> dict:
    """Of calls, in milliseconds."""
    module.set_input(**inputs)
    for _ in range(max(1, warm_up)):
        module.run()
    times = []
    for _ in range(max(2, repeat)):
        start = time.perf_counter()
        module.run()
        times.append(1e3 * (time.perf_counter() - start))
    return {"mean_ms": float(np.mean(times)), "std_ms": float(np.std(times)), "min_ms": float(np.min(times)), "runs": len(times)}


def verify_runtime(module: GraphModule, inputs: Any, reference: Any, atol: float = 1e-4, rtol: float = 1e-4) -> float:
    """Runs the module and compares its outputs with those of the reference: arrays, or a function of the inputs (a PyTorch module,
    say). The largest difference; a ValueError says which output is how far off."""
    if not isinstance(inputs, dict):
        inputs = dict(zip((p.name for p in module.module.inputs), inputs if isinstance(inputs, (list, tuple)) else [inputs]))
    arrays = {name: np.asarray(value) for name, value in inputs.items()}
    if callable(reference):
        try:
            import torch

            reference = reference(*(torch.from_numpy(np.array(a)) for a in arrays.values())) if isinstance(reference, torch.nn.Module) else reference(*arrays.values())
        except ImportError:
            reference = reference(*arrays.values())
    expected = [np.asarray(r.detach() if hasattr(r, "detach") else r) for r in (reference if isinstance(reference, (list, tuple)) else [reference])]
    module.set_input(**arrays)
    module.run()
    if len(expected) != module.get_num_outputs():
        raise ValueError(f"the reference has {len(expected)} outputs, the module {module.get_num_outputs()}")
    worst = 0.0
    for k, want in enumerate(expected):
        got = module.get_output(k).numpy()
        if got.shape != want.shape:
            raise ValueError(f"output {k} has the shape {got.shape}, but the reference {want.shape}")
        difference = float(np.max(np.abs(got.astype("float64") - want))) if want.size else 0.0
        if not np.allclose(got, want, atol=atol, rtol=rtol, equal_nan=True):
            raise ValueError(f"output {k} differs by {difference:g}, more than atol={atol:g}, rtol={rtol:g}")
        worst = max(worst, difference)
    return worst


# ---- The whole road ----


def compile_onnx(path: str, config: ExportConfig) -> tuple[GraphModule, dict]:
    """Tuned as the config says, compiled, measured and written."""
    shapes = input_shapes(path, config)
    metadata: dict = {"model": os.path.basename(path), "target": str(tenon.target.Target(config.target)), "tenon": tenon.__version__}
    with tempfile.TemporaryDirectory(prefix="tenon-") as folder:
        log = config.tuning_log
        if config.tuning_trials > 0:
            config = dataclasses.replace(config, tuning_log=log or os.path.join(folder, "tuning.log"))
            metadata["tuning"] = tune(path, shapes, config)
            log = config.tuning_log
        library = os.path.join(folder, "deploy_lib.so")
        start = time.time()
        use = log if log and os.path.exists(log) and os.path.getsize(log) else None
        made = tenon.compile(path, library, target=config.target, shapes=shapes, log=use)
        metadata["compile_seconds"] = round(time.time() - start, 2)
        metadata["inputs"] = [{"name": p.name, "shape": list(p.shape), "dtype": p.dtype} for p in made.inputs]
        module = GraphModule(made["default"](tenon.cpu(0)))
        metadata["latency"] = latency(module, random_inputs(module, config.seed), config.warm_up, config.repeat)
        say(config, "{mean_ms:.3f} ms ± {std_ms:.3f}".format(**metadata["latency"]))
        if config.artifacts:
            write_artifacts(path, library, metadata, config.artifacts)
    return module, metadata


def compile_pytorch_module(module: Any, example: Any, config: ExportConfig | None = None) -> GraphModule:
    """A PyTorch module as one with set_input, run and get_output. `example`: its inputs, tensors."""
    with tempfile.TemporaryDirectory(prefix="tenon-") as folder:
        path = os.path.join(folder, "model.onnx")
        export_module(module, example if isinstance(example, (list, tuple)) else [example], path)
        return compile_onnx(path, config or ExportConfig())[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="an ONNX file, or module:function of PyTorch")
    parser.add_argument("--example-shape", type=int, nargs="+", metavar="N", help="sizes of the input")
    parser.add_argument("--dtype", default="float32", help="of the input of a PyTorch module")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--tuning-trials", type=int, default=0, help="candidates measured; 0: none")
    parser.add_argument("--use-ansor", action="store_true", help="by the auto-scheduler's session over the whole network, instead of task by task")
    parser.add_argument("--tuning-log", help="takes records; those that are in it are used")
    parser.add_argument("--artifacts", metavar="DIR", default="artifacts")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    config = ExportConfig(args.target, args.example_shape, args.dtype, args.tuning_trials, args.use_ansor, args.tuning_log, args.artifacts, verbose=args.verbose)
    with tempfile.TemporaryDirectory(prefix="tenon-") as folder:
        path = args.model
        if not os.path.exists(path) and ":" in path:
            path = os.path.join(folder, "model.onnx")
            load_torch(args.model, config, path)
        _, metadata = compile_onnx(path, config)
    print("{}: {mean_ms:.3f} ms ± {std_ms:.3f}, artifacts in {}".format(metadata["model"], args.artifacts, **metadata["latency"]))


if __name__ == "__main__":
    main()
