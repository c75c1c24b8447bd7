#!/usr/bin/env python3
"""Networks on a GPU beside PyTorch, all in one run: the table of docs/gpu.md.

    bench/gpu_table.py --tenon build/bin/tenon --models DIR --out FOLDER [--arch sm_90a,sm_90] [--base OTHER] [--only WORD,WORD] [--ready 300]

needs: a CUDA device, torch, onnx, onnxruntime, numpy, apache-tvm-ffi

DIR holds the models with their weights. A process for each network and precision compiles it for each of --arch and makes PyTorch's
ways (gpu_networks.py); all of them do so side by side. Then each in turn, alone on the device, measures: every way in each of three
rounds, the median of 40 calls on an idle stream between two events; the least of the three counts. Who is not ready after --ready
seconds is left out, and named. fp32 is without TF32; PyTorch's with TF32 is measured beside it, and does not count.

FOLDER gets table.md and rows.json, and with --kernels NAME:PRECISION,… times.json: what each kernel of these takes, alone.
"""
import argparse
import fcntl
import gc
import json
import math
import os
import pathlib
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

# Networks of the table, those that take longest to compile first: name, model, sizes of inputs.
ROWS = [
    ("densenet121", "densenet121", []),
    ("bert-large", "bert-large", []),
    ("mamba-130m-step", "mamba-130m-step", []),
    ("mamba-130m, 128", "mamba-130m", []),
    ("llama-135m-dyn, 64", "llama-135m-dyn", ["input_ids:1x64"]),
    ("efficientnet_b0", "efficientnet_b0", []),
    ("swin_t", "swin_t", []),
    ("inception_v3", "inception_v3", []),
    ("resnet50, 32", "resnet50-dyn", ["input:32x3x224x224"]),
    ("mobilenet_v3_small", "mobilenet_v3_small", []),
    ("vit_b_16", "vit_b_16", []),
    ("mobilenet_v2", "mobilenet_v2", []),
    ("unet-deeplab", "unet-deeplab", []),
    ("bert-base", "bert-base", []),
    ("convnext_tiny", "convnext_tiny", []),
    ("bert-base-dyn, 128", "bert-base-dyn", ["input_ids:1x128", "attention_mask:1x128"]),
    ("resnet50", "resnet50", []),
    ("t5-small-encoder", "t5-small-encoder", []),
    ("gpt2-dyn, 64", "gpt2-dyn", ["input_ids:1x64"]),
    ("whisper-tiny-encoder", "whisper-tiny-encoder", []),
    ("squeezenet1_1", "squeezenet1_1", []),
    ("resnet18", "resnet18", []),
    ("vgg16", "vgg16", []),
    ("bert-tiny", "bert-tiny", []),
    ("lstm-tagger", "lstm-tagger", []),
]
PRECISIONS = ["fp32", "fp16"]
# Not of the mean: in the first two all is launches, and PyTorch takes the third's 128 steps one by one.
ASIDE = {"bert-tiny", "lstm-tagger", "mamba-130m, 128"}
ROUNDS = 3
BASE = "base "  # before an architecture: by the other compiler
HOST = "llvm -mcpu=x86-64-v3"


def compiled(args, model, shapes, precision, arch, out, *more):
    """By --tenon, or by --base where the architecture is one of its."""
    tenon, arch = (args.base, arch[len(BASE):]) if arch.startswith(BASE) else (args.tenon, arch)
    command = [tenon, "compile", pathlib.Path(args.models) / f"{model}.onnx", "-o", out, "--precision", precision,
               "--target", f"cuda -arch={arch} -host={HOST}", "--jobs", "2", *more]
    for shape in shapes:
        command += ["--shape", shape]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{arch}: {done.stderr.strip()[-400:]}")
    return out


def arches_of(args, precision):
    """What to compile for, the table's first: no units of warps and warpgroups multiply f32."""
    own = args.arch.split(",") if precision != "fp32" else args.arch.split(",")[:1]
    return own + ([BASE + own[0]] if args.base else [])


def profiled(call, runs=20):
    """What each kernel of a call takes, beside whatever runs with it, in the order of their shares: name, µs of a call, launches."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(runs):
            call()
        torch.cuda.synchronize()
    return sorted(([e.key, e.self_device_time_total / runs, e.count / runs] for e in profiler.key_averages()), key=lambda k: -k[1])


def worker(args):
    """One network in one precision: says "ready", waits for a line, measures, prints a row."""
    import onnxruntime
    import torch
    import tvm_ffi

    import gpu_networks as networks

    name, precision = args.worker.rsplit(":", 1)
    _, model, shapes = next(r for r in ROWS if r[0] == name)
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.set_num_threads(1)
    row = {"network": name, "precision": precision, "failed": {}}
    libraries = {}
    for arch in arches_of(args, precision):
        out = f"{args.work}/{model}-{precision}-{arch.replace(' ', '-')}{'-' + shapes[0].split(':')[1] if shapes else ''}.so"
        try:
            start = time.time()
            libraries[arch] = compiled(args, model, shapes, precision, arch, out)
            row[f"compile {arch}"] = time.time() - start
        except RuntimeError as error:
            row["failed"][arch] = str(error)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    path = f"{args.models}/{model}.onnx"
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = networks.feeds_of(session, shapes)
    want = session.run(None, feeds)
    inputs = [torch.from_numpy(v).cuda() for v in feeds.values()]
    calls, kept = {}, []
    for arch, file in libraries.items():
        try:
            function = tvm_ffi.load_module(file)["main"]
            outputs = [torch.empty(w.shape, dtype=torch.from_numpy(w[..., :0]).dtype, device="cuda") for w in want]
            function(*inputs, *outputs)
            row[f"error {arch}"] = networks.error(outputs, want)
            calls[arch] = lambda function=function, outputs=outputs: function(*inputs, *outputs)
        except Exception as error:  # what a library of ours does wrong is a row, not the end
            row["failed"][arch] = repr(error)[:400]
    dtype = networks.TYPES[precision]
    maps = "channels_last" if any(v.dim() == 4 for v in inputs) else ""
    ways = [("graph", "", False), ("compile", "", False)]
    if args.no_compile:
        ways = ways[:1]
    ways += [("compile, channels last", maps, False)] if maps and not args.no_compile else []
    ways += [("autotune", maps, False)] if args.autotune else []
    ways += [("compile, TF32", "", True)] if precision == "fp32" and not args.no_compile else []
    for way, layout, tf32 in ways:
        try:
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
            graph = networks.Graph(path, dtype, channels_last=bool(layout))
            narrow = [v.to(dtype) if v.is_floating_point() else v for v in inputs]
            if layout:
                narrow = [v.to(memory_format=torch.channels_last) if v.dim() == 4 else v for v in narrow]
            graph.settle(*narrow)
            if way != "graph" and graph.loops:
                raise RuntimeError("its loop would be written out, step for step")
            call = lambda graph=graph, narrow=narrow: graph(*narrow)
            if way != "graph":
                torch._dynamo.reset()
                torch._inductor.config.freezing = way == "autotune"
                of = (torch.compile(networks.Frozen(graph), mode="max-autotune-no-cudagraphs") if way == "autotune" else
                      torch.compile(graph.__call__))
                torch.backends.cudnn.benchmark = False
                of(*narrow)
                call = lambda of=of, narrow=narrow: of(*narrow)
            with open(f"{args.work}/device.lock", "w") as alone:  # while cuDNN looks for its fastest algorithms
                fcntl.flock(alone, fcntl.LOCK_EX)
                torch.backends.cudnn.benchmark = True
                results = call()
                calls[way] = networks.replayed(call)
            if way == "graph":
                row["error PyTorch"] = networks.error(results, want)
            kept.append((graph, narrow))
            del results
        except Exception as error:
            row["failed"][way] = repr(error)[:200]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.cuda.synchronize()
    del session
    gc.collect()
    print("ready", flush=True)
    sys.stdin.readline()
    # In turn, so that what a card does meanwhile meets all of them.
    times = {way: [] for way in calls}
    for _ in range(ROUNDS):
        for way, call in calls.items():
            times[way].append(networks.median(call))
    row["ms"] = {way: min(t) for way, t in times.items()}
    row["spread"] = {way: max(t) / min(t) for way, t in times.items()}
    if args.profile:
        row["kernels"] = {way: profiled(call) for way, call in calls.items() if way in libraries}
    first = next(iter(calls))
    if first in libraries:  # a hundred back to back
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        for _ in range(100):
            calls[first]()
        end.record()
        torch.cuda.synchronize()
        row["back to back"] = start.elapsed_time(end) / 100
    print("row " + json.dumps(row), flush=True)


def peer_of(row, arches):
    theirs = {way: ms for way, ms in row["ms"].items() if way not in arches and way != "compile, TF32"}
    return min(theirs.items(), key=lambda t: t[1]) if theirs else (None, None)


def table(rows, arches):
    lines = ["| network | precision | " + " | ".join(f"{a} ms" for a in arches) +
             " | PyTorch ms | its way | PyTorch / Tenon | TF32 | back to back | error | PyTorch's |", "|---|---|" + "---|" * (len(arches) + 7)]
    means = {}
    for row in rows:
        way, peer = peer_of(row, arches)
        ms = [row["ms"].get(a) for a in arches]
        text = lambda v, form="{:.3f}": form.format(v) if v is not None else ""
        ratio = peer / ms[0] if peer and ms[0] else None
        if ratio and row["network"] not in ASIDE:
            for i, arch in enumerate(arches):
                if ms[i]:
                    means.setdefault((row["precision"], arch), []).append(peer / ms[i])
        lines.append(f"| {row['network']} | {row['precision']} | " + " | ".join(text(v) for v in ms) +
                     f" | {text(peer)} | {way or ''} | {text(ratio, '{:.2f}')} | {text(row['ms'].get('compile, TF32'))} | " +
                     f"{text(row.get('back to back'))} | {text(row.get('error ' + arches[0]), '{:.1e}')} | {text(row.get('error PyTorch'), '{:.1e}')} |")
    for (precision, arch), ratios in sorted(means.items()):
        mean = math.exp(sum(math.log(r) for r in ratios) / len(ratios))
        lines.append(f"\ngeometric mean of {len(ratios)} in {precision}, {arch}: {mean:.3f}, least {min(ratios):.2f}")
    for row in rows:
        for way, error in row["failed"].items():
            lines.append(f"\n{row['network']} {row['precision']}, {way}: {error}")
    return "\n".join(lines) + "\n"


def timed_kernels(args, pool):
    """Builds libraries that time their kernels; returns what runs them."""
    runs = []
    for wanted in filter(None, args.kernels.split(",")):
        name, precision = wanted.rsplit(":", 1)
        found = [r for r in ROWS if r[0].replace(", ", "@") == name]
        for arch in arches_of(args, precision):
            _, model, shapes = found[0]
            out = f"{args.work}/timed-{model}-{precision}-{arch.replace(' ', '-')}{'-' + shapes[0].split(':')[1] if shapes else ''}.so"
            runs.append((name, precision, arch, pool.submit(compiled, args, model, shapes, precision, arch, out, "--time-kernels")))
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", default="build/bin/tenon")
    parser.add_argument("--models", required=True)
    parser.add_argument("--out", default=".")
    parser.add_argument("--work", default="/tmp/gpu_table")
    parser.add_argument("--arch", default="sm_90a", help="the first is the table's")
    parser.add_argument("--base", default="", help="another compiler, whose libraries are measured beside")
    parser.add_argument("--only", default="", help="networks with one of these words")
    parser.add_argument("--no-compile", action="store_true", help="PyTorch without torch.compile")
    parser.add_argument("--autotune", action="store_true", help="PyTorch with max-autotune and freezing, too")
    parser.add_argument("--profile", action="store_true", help="what kernels take, into rows.json")
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--kernels", default="", help="networks whose kernels are timed, as bert-base:fp16; a comma of a name is @")
    parser.add_argument("--ready", type=float, default=300)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    if args.worker:
        return worker(args)
    begin = time.time()
    pathlib.Path(args.out).mkdir(parents=True, exist_ok=True)
    only = [w for w in args.only.split(",") if w]
    wanted = [(r[0], p) for r in ROWS for p in args.precisions.split(",") if not only or any(w in r[0] for w in only)]
    env = dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS="1", OMP_NUM_THREADS="2")
    own = [sys.executable, str(pathlib.Path(__file__).resolve()), "--tenon", args.tenon, "--models", args.models, "--work", args.work,
           "--arch", args.arch, "--base", args.base] + ["--no-compile"] * args.no_compile
    own += ["--autotune"] * args.autotune + ["--profile"] * args.profile
    pool = ThreadPoolExecutor(args.jobs)

    def build(name, precision):
        if time.time() - begin > args.ready:
            return None
        process = subprocess.Popen(own + ["--worker", f"{name}:{precision}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=open(f"{args.work}/{name}-{precision}.log", "w"), text=True, env=env)
        started.append(process)
        for line in process.stdout:
            if line.strip() == "ready":
                return process
        return None

    started = []
    timed = timed_kernels(args, pool)
    built = [(name, precision, pool.submit(build, name, precision)) for name, precision in wanted]
    while time.time() - begin < args.ready and not all(f.done() for *_, f in built + timed):
        time.sleep(0.2)
    late = [f"{name} {precision}" for name, precision, f in built if not f.done() or f.result() is None]
    keep = {f.result().pid for *_, f in built if f.done() and f.result()}
    for process in started:
        if process.pid not in keep:
            process.kill()
    print(f"built in {time.time() - begin:.0f} s; left out: {', '.join(late) or 'none'}", flush=True)
    rows = []
    for name, precision, future in built:
        if not future.done() or future.result() is None:
            continue
        process = future.result()
        process.stdin.write("go\n")
        process.stdin.flush()
        for line in process.stdout:
            if line.startswith("row "):
                rows.append(json.loads(line[4:]))
        process.wait()
        pathlib.Path(args.out, "rows.json").write_text(json.dumps(rows, indent=1))
    arches = list(dict.fromkeys(arches_of(args, "") + arches_of(args, "fp32")))
    order = {r[0]: i for i, r in enumerate(ROWS)}
    rows.sort(key=lambda r: (order[r["network"]], r["precision"] != "fp32"))
    text = table(rows, arches)
    pathlib.Path(args.out, "table.md").write_text(text)
    print(text, flush=True)
    times = {}
    for name, precision, arch, future in timed:
        if not future.done() or future.exception():
            print(f"kernels of {name} {precision} {arch}: {future.exception() if future.done() else 'not built'}")
            continue
        file = f"{args.work}/times.json"
        subprocess.run([args.tenon, "bench", future.result(), "--device", "cuda:0", "--duration", "0.5", "--json", file], capture_output=True)
        kernels = json.loads(pathlib.Path(file).read_text())
        times[f"{name} {precision} {arch}"] = {"runs": kernels["runs"], "kernels": kernels["kernels"]}
    if times:
        pathlib.Path(args.out, "times.json").write_text(json.dumps(times))
    print(f"done after {time.time() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
