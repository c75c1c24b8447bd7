#!/usr/bin/env python3
"""Networks beside ONNX Runtime and OpenVINO on a machine that Tenon was not built on, with little time there.

    bench/carried.py --tenon NAME[:PRECISION]=PATH […] --graphs DIR --work DIR [--only NAME …] [--precisions fp32 bf16]
                     [--rounds 1] [--budget 0.5] [--kernels NAME:PRECISION …] [--products SIZE …] [--json OUT]

DIR of graphs holds pairs MODEL.onnx and MODEL.weights.json (bench/fill_weights.py). Weights are drawn and libraries compiled on all
CPUs at once, into --work; then every engine runs each network on two cores, in turn with the others, one process at a time. For each
precision it prints Tenon's median (of every build that is named), the peers', best peer / Tenon, and the distance from ONNX Runtime's
outputs; of the networks of --kernels also what each kernel takes, and of --products the rate of a product of squares. Of bf16 the peer is OpenVINO in its default precision.
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx

import fill_weights
import running


def two_cores():
    """CPUs of two cores, where there are so many."""
    seen, out = set(), []
    for cpu in sorted(os.sched_getaffinity(0)):
        path = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = path.read_text().strip() if path.exists() else str(cpu)
        if core not in seen:
            seen.add(core)
            out.append(cpu)
    return out[:2]


def draw(graphs, work, name):
    spec = json.loads((graphs / f"{name}.weights.json").read_text())
    fill_weights.fill(spec, work / spec["file"])
    (work / f"{name}.onnx").write_bytes((graphs / f"{name}.onnx").read_bytes())


def compile_one(job):
    tenon, model, out, precision = job
    shapes = running.shape_words(model)
    start = time.perf_counter()
    done = subprocess.run([tenon, "compile", model, "-o", out, "--precision", precision, "-q", *shapes], capture_output=True, text=True)
    return time.perf_counter() - start, done.stderr.strip()[-300:] if done.returncode else ""


def spin(once, budget):
    once()
    once()
    times, begun = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - begun < budget and len(times) < 300):
        start = time.perf_counter()
        once()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def onnx_runtime(path, arrays):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 2, 3
    session = onnxruntime.InferenceSession(str(path), options)
    names = [o.name for o in session.get_outputs()]
    return lambda: dict(zip(names, session.run(None, arrays)))


def open_vino(path, arrays, precision):
    import openvino
    core = openvino.Core()
    config = {"INFERENCE_NUM_THREADS": 2, "PERFORMANCE_HINT": "LATENCY", **({"INFERENCE_PRECISION_HINT": precision} if precision else {})}
    request = core.compile_model(core.read_model(path), "CPU", config).create_infer_request()
    return lambda: request.infer(arrays)


def distance(want, got):
    worst = 0.0
    for name, w in want.items():
        w, g = np.asarray(w, np.float64), np.asarray(got[name], np.float64)
        worst = max(worst, float(np.linalg.norm(g - w) / (np.linalg.norm(w) + 1e-30)))
    return worst


class Network:
    def __init__(self, name, options):
        self.name, self.options, self.path = name, options, options.work / f"{name}.onnx"
        self.arrays, _ = running.draw(self.path)
        self.input_file = options.work / f"{name}.npz"
        np.savez(self.input_file, **self.arrays)

    def library(self, build, precision):
        return self.options.work / f"{self.name}.{build}.{precision}.so"

    def ours(self, build, precision):
        out = self.options.work / "bench.json"
        subprocess.run([self.options.builds[build], "bench", self.library(build, precision), "-i", self.input_file, "--threads", "2", "--duration",
                        str(self.options.budget), "--json", out], check=True, capture_output=True)
        return json.loads(out.read_text())["p50_ms"]

    def error(self, build, precision, want):
        out = self.options.work / "out.npz"
        subprocess.run([self.options.builds[build], "run", self.library(build, precision), "-i", self.input_file, "-o", out], check=True,
                       capture_output=True)
        return distance(want, np.load(out))

    def measure(self):
        """{precision: {engine: ms, "error": {build: e}}}"""
        reference = onnx_runtime(self.path, self.arrays)
        want, peers = reference(), {"fp32": {"ort": reference}, "bf16": {}}
        for precision, hint in (("fp32", "f32"), ("bf16", None)):
            try:
                if precision in self.options.precisions:
                    peers[precision]["ov"] = open_vino(self.path, self.arrays, hint)
            except Exception as error:  # a peer that cannot is left out
                print(self.name, "openvino:", str(error).splitlines()[0][:150], flush=True)
        rows = {}
        for precision in self.options.precisions:
            builds = [b for b in self.options.builds if self.library(b, precision).exists()]
            times = {engine: [] for engine in [*peers[precision], *builds]}
            for _ in range(self.options.rounds):
                for engine, once in peers[precision].items():
                    times[engine].append(spin(once, self.options.budget))
                for build in builds:
                    times[build].append(self.ours(build, precision))
            rows[precision] = {engine: statistics.median(t) for engine, t in times.items()}
            rows[precision]["error"] = {b: self.error(b, precision, want) for b in builds}
            self.say(precision, rows[precision], builds)
        return rows

    def say(self, precision, row, builds):
        peers = [v for k, v in row.items() if k in ("ort", "ov")]
        ratios = "  ".join(f"{b} {row[b]:.3f} ({min(peers) / row[b] if peers else 0:.2f}, error {row['error'][b]:.1e})" for b in builds)
        print(f"{self.name:22s} {precision}  {ratios}  " + "  ".join(f"{k} {row[k]:.3f}" for k in ("ort", "ov") if k in row), flush=True)


def prepare(options):
    names = options.only or sorted(p.stem for p in options.graphs.glob("*.onnx"))
    options.work.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ProcessPoolExecutor() as pool:
        list(pool.map(draw, [options.graphs] * len(names), [options.work] * len(names), names))
    print("weights", f"{time.perf_counter() - options.begun:.0f} s", flush=True)
    jobs = [(path, options.work / f"{name}.onnx", options.work / f"{name}.{build}.{precision}.so", precision)
            for name in names for precision in options.precisions for build, path in options.builds.items() if precision in options.of_build[build]]
    with concurrent.futures.ThreadPoolExecutor(max(2, (os.cpu_count() or 2) // 2)) as pool:
        for job, (_, problem) in zip(jobs, pool.map(compile_one, jobs)):
            if problem:
                print("not compiled:", job[2].name, problem, flush=True)
    print("libraries", f"{time.perf_counter() - options.begun:.0f} s", flush=True)
    return names


def kernels(options):
    for word in options.kernels:
        name, precision = word.split(":")
        for build, path in options.builds.items():
            shapes = running.shape_words(options.work / f"{name}.onnx")
            done = subprocess.run([path, "bench", options.work / f"{name}.onnx", "--time-kernels", "--precision", precision, "--threads", "1", *shapes],
                                  capture_output=True, text=True)
            (options.json.parent / f"kernels-{name}-{precision}-{build}.txt").write_text(done.stdout + done.stderr)


def products(options):
    """Of SIZE x SIZE by a constant matrix, with one thread and two."""
    for size in options.products:
        path = options.work / f"product{size}.onnx"
        weights = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
        value = lambda name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [size, size])
        graph = onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [value("x")], [value("y")],
                                       [onnx.numpy_helper.from_array(weights, "w")])
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), path)
        for precision in options.precisions:
            for build, tenon in options.builds.items():
                if precision not in options.of_build[build]:
                    continue
                rates = []
                for threads in (1, 2):
                    out = options.work / "bench.json"
                    subprocess.run([tenon, "bench", path, "--precision", precision, "--threads", str(threads), "--duration", "0.5", "--fill", "random",
                                    "--json", out], check=True, capture_output=True)
                    rates.append(2e-6 * size**3 / json.loads(out.read_text())["p50_ms"])
                print(f"product of {size}, {precision}, {build}: {rates[0]:.0f} GFLOP/s with one thread, {rates[1]:.0f} with two", flush=True)


def summary(all_rows, options):
    for precision in options.precisions:
        for build in options.builds:
            ratios = {}
            for name, rows in all_rows.items():
                row = rows.get(precision, {})
                peers = [v for k, v in row.items() if k in ("ort", "ov")]
                if build in row and peers:
                    ratios[name] = min(peers) / row[build]
            if ratios:
                least = min(ratios, key=ratios.get)
                mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
                print(f"{precision} {build}: geometric mean {mean:.3f} of {len(ratios)}, least {ratios[least]:.2f} ({least})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", nargs="+", required=True, help="NAME=PATH, or NAME:PRECISION=PATH of a build that is for one alone")
    parser.add_argument("--graphs", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--precisions", nargs="*", default=["fp32", "bf16"], choices=["fp32", "bf16"])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--budget", type=float, default=0.5)
    parser.add_argument("--kernels", nargs="*", default=[])
    parser.add_argument("--products", nargs="*", type=int, default=[])
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path("carried.json"))
    options = parser.parse_args()
    options.builds, options.of_build = {}, {}
    for word in options.tenon:
        what, path = word.split("=", 1)
        name, _, precision = what.partition(":")
        options.builds[name], options.of_build[name] = path, [precision] if precision else options.precisions
    options.begun = time.perf_counter()
    names = prepare(options)
    os.sched_setaffinity(0, two_cores())
    products(options)
    kernels(options)
    all_rows = {}
    for name in names:
        try:
            all_rows[name] = Network(name, options).measure()
        except Exception as error:
            print(name, "failed:", str(error)[:300], flush=True)
        options.json.write_text(json.dumps(all_rows, indent=1))
    summary(all_rows, options)
    print(f"{time.perf_counter() - options.begun:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
