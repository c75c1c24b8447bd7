#!/usr/bin/env python3
"""How networks run, beside ONNX Runtime on the same machine in one run: what a second worker gains, how steady calls are, what
one busy process costs, and how much memory a run takes beyond the weights.

    bench/running.py --models DIR [--only NAME …] [--build build] [--calls 100] [--turn SECONDS] [--what gain load pair memory] [--json OUT]

Every engine runs in a process of its own, and processes take turns: one calls while the others wait.

gain     least time of a call with one worker over that with two; and of --calls calls with two, the median over the least
load     median of calls with two workers and a process beside them that keeps one core busy, over the median without
pair     two processes at once, two workers each: the slower one's median over the median of one alone, and over the other's
memory   most memory (VmHWM) from before the model is loaded to after its calls, less the bytes of its weights, two workers

DIR holds the networks with their weights. For a quiet machine.
"""
import argparse
import importlib.util
import json
import math
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# Of each family one or two; those whose calls take microseconds say nothing about workers.
NETWORKS = ("bert-base", "bert-tiny", "convnext_tiny", "densenet121", "efficientnet_b0", "inception_v3", "lstm-tagger", "mobilenet_v2",
            "mobilenet_v3_small", "resnet18", "resnet50", "squeezenet1_1", "swin_t", "t5-small-encoder", "unet-deeplab", "vit_b_16")


def draw(path):
    """Inputs by name, free dims 1 for a batch and 64 otherwise; and the bytes of the weights."""
    import numpy as np
    import onnx
    model = onnx.load(path, load_external_data=False)
    random, arrays = np.random.default_rng(0), {}
    held = {t.name for t in model.graph.initializer}
    for value in model.graph.input:
        if value.name in held:
            continue
        tensor = value.type.tensor_type
        dims = [d.dim_value or (1 if i == 0 or "batch" in d.dim_param else 64) for i, d in enumerate(tensor.shape.dim)]
        kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        arrays[value.name] = (np.ones(dims, kind) if "mask" in value.name else random.integers(0, 1000, dims).astype(kind)
                              if kind.kind in "iu" else random.integers(0, 2, dims).astype(bool) if kind.kind == "b"
                              else random.standard_normal(dims).astype(kind))
    weights = sum(math.prod(t.dims) * onnx.helper.tensor_dtype_to_np_dtype(t.data_type).itemsize for t in model.graph.initializer)
    return arrays, weights


def shape_words(path):
    """--shape for each input that draw() gives, as the command takes it."""
    return [word for name, v in draw(path)[0].items() if v.ndim for word in ("--shape", f"{name}:{'x'.join(map(str, v.shape))}")]


def high_water():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


class Tenon:
    def __init__(self, options, threads):
        os.environ["TENON_NUM_THREADS"] = str(threads)
        sys.path.insert(0, str(options.build / "python"))
        import tenon
        self.module = tenon

    def load(self, files, arrays):
        model = self.module.load(files["tenon"])
        values = [self.module.nd.array(arrays[value.name]) for value in model.inputs]
        return lambda: model(*values)


class OnnxRuntime:
    def __init__(self, options, threads):
        import onnxruntime
        self.module, self.threads = onnxruntime, threads

    def load(self, files, arrays):
        options = self.module.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = self.threads, 3
        session = self.module.InferenceSession(str(files["model"]), options)
        return lambda: session.run(None, arrays)


ENGINES = {"tenon": Tenon, "ort": OnnxRuntime}


def child(engine, options, threads, files, arrays, pipe):
    """Loads, and then calls as often as the parent says, or as a turn is long, and answers with the times."""
    loader = ENGINES[engine](options, threads)
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = high_water()
    call = loader.load(files, arrays)
    for _ in range(3):
        call()
    pipe.send(high_water() - before)
    while (count := pipe.recv()) is not None:
        times, begun = [], time.perf_counter()
        while len(times) < count and (len(times) < 5 or time.perf_counter() - begun < options.turn):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        pipe.send(times)
        # A process that waits for its turn has no threads that spin.
        time.sleep(0.02)


class Process:
    def __init__(self, engine, options, threads, files, arrays):
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(target=child, args=(engine, options, threads, files, arrays, other))
        self.process.start()
        other.close()
        self.memory = self.pipe.recv()

    def begin(self, count):
        self.pipe.send(count)

    def end(self):
        times = self.pipe.recv()
        time.sleep(0.05)
        return times

    def times(self, count):
        self.begin(count)
        return self.end()

    def close(self):
        self.pipe.send(None)
        self.process.join()


def spin(stop):
    while not stop.is_set():
        for _ in range(10000):
            pass


def gain(runs, rows):
    one, two = ({e: run(threads) for e, run in runs.items()} for threads in (1, 2))
    first, second = ({e: [] for e in runs} for _ in (1, 2))
    for _ in range(4):  # in turn, so that a machine that slows down slows all
        for e, run in runs.items():
            first[e] += one[e].times(run.calls // 4)
            second[e] += two[e].times(run.calls // 4)
    for e, row in rows.items():
        row["gain"] = min(first[e]) / min(second[e])
        row["steady"] = statistics.median(second[e]) / min(second[e])


def load(runs, rows):
    two, alone, beside = ({e: make(run) for e, run in runs.items()} for make in (lambda run: run(2), lambda _: [], lambda _: []))
    for _ in range(2):
        for e, run in runs.items():
            alone[e] += two[e].times(run.calls // 4)
        stop = multiprocessing.Event()
        busy = multiprocessing.Process(target=spin, args=(stop,))
        busy.start()
        time.sleep(0.1)
        for e, run in runs.items():
            beside[e] += two[e].times(run.calls // 4)
        stop.set()
        busy.join()
    for e, row in rows.items():
        row["loss"] = statistics.median(beside[e]) / statistics.median(alone[e])


def pair(runs, rows):
    for e, run in runs.items():
        a, b = run(2), run(2)
        alone = statistics.median(a.times(run.calls // 4))
        a.begin(run.calls // 2)
        b.begin(run.calls // 2)
        medians = sorted(statistics.median(p.end()) for p in (a, b))
        rows[e]["pair"], rows[e]["uneven"] = medians[1] / alone, medians[1] / medians[0]
        run.close()


def memory(runs, rows):
    for e, run in runs.items():
        rows[e]["memory"] = (run(2).memory - run.weights) / 1e6


WHAT = {"gain": gain, "load": load, "pair": pair, "memory": memory}
# Of each figure: what it is, and whether more is better.
FIGURES = {"gain": ("one worker / two", True), "steady": ("median / least", False), "loss": ("beside a busy process / alone", False),
           "pair": ("two processes / one", False), "uneven": ("slower / faster of two", False), "memory": ("MB beyond weights", False)}


class Run:
    """Makes processes of one engine for one network, and ends them."""

    def __init__(self, engine, options, files, arrays, weights):
        self.engine, self.options, self.files, self.arrays = engine, options, files, arrays
        self.calls, self.weights, self.processes = options.calls, weights, []

    def __call__(self, threads):
        self.processes.append(Process(self.engine, self.options, threads, self.files, self.arrays))
        return self.processes[-1]

    def close(self):
        for process in self.processes:
            process.close()
        self.processes = []


def network(name, options, folder):
    model = options.models / f"{name}.onnx"
    arrays, weights = draw(model)
    files = {"model": model, "tenon": folder / f"{name}.so"}
    shapes = [word for k, v in arrays.items() if v.ndim for word in ("--shape", f"{k}:{'x'.join(map(str, v.shape))}")]
    subprocess.run([options.build / "bin" / "tenon", "compile", model, "-o", files["tenon"], "-q", *shapes], check=True)
    rows = {engine: {} for engine in ENGINES}
    runs = {engine: Run(engine, options, files, arrays, weights) for engine in ENGINES}
    for what in options.what:
        WHAT[what](runs, rows)
        for run in runs.values():
            run.close()
    files["tenon"].unlink()
    print(f"{name:20s}" + "".join(f"  {figure} {rows['tenon'][figure]:.2f} [{rows['ort'][figure]:.2f}]" for figure in rows["tenon"]), flush=True)
    return rows


def mean(values):
    return math.exp(statistics.fmean(math.log(max(v, 1e-3)) for v in values))


def summary(all_rows):
    """For each figure the geometric means, and where Tenon's is worse."""
    for figure in next(iter(all_rows.values()))["tenon"]:
        ours, theirs = ([rows[engine][figure] for rows in all_rows.values()] for engine in ENGINES)
        what, more = FIGURES[figure]
        worse = [n for n, rows in all_rows.items() if (rows["tenon"][figure] < rows["ort"][figure]) == more]
        print(f"{figure} ({what}): {mean(ours):.3f} [ONNX Runtime {mean(theirs):.3f}]; {'less' if more else 'more'} than it: {', '.join(worse) or 'none'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--only", nargs="*", default=NETWORKS)
    parser.add_argument("--what", nargs="*", default=list(WHAT), choices=list(WHAT))
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--turn", type=float, default=1, help="seconds after which calls of one turn end")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.build, options.models = options.build.resolve(), options.models.resolve()
    if not importlib.util.find_spec("onnxruntime"):
        sys.exit("onnxruntime is not installed")
    all_rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only:
            all_rows[name] = network(name, options, pathlib.Path(folder))
    summary(all_rows)
    if options.json:
        options.json.write_text(json.dumps(all_rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
