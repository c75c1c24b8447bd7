#!/usr/bin/env python3
"""One HTML page about this machine: micro-kernels and kernels against its peak, networks against other runtimes.

    bench/page.py --out page.html [--build build] [--models DIR] [--threads 2] [--rounds 3] [--only NAME …]

Runs bench_micro_kernel and bench_matmul (built beside tenon), bench/kernels.py, and, where --models names a folder of networks
with their weights and onnxruntime or openvino can be imported, bench/compare.py and bench/running.py, one after another, and writes what they say
with plots into one file that needs nothing else. What cannot be run is named on the page. For a quiet machine.
"""
import argparse
import html
import importlib.util
import json
import math
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.15em .8em;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}td.bad{color:#b00020;font-weight:600}svg text{font:12px system-ui,sans-serif}
pre{background:#f6f6f6;padding:.8em;overflow-x:auto}.note{color:#666}"""


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    return done.stdout, (done.stderr.strip().splitlines() or [""])[-1] if done.returncode else ""


def machine():
    """What there is to know without being root: (name, value) pairs."""
    rows = [("system", f"{platform.system()} {platform.release()}, {platform.machine()}"), ("CPUs of this process", str(len(os.sched_getaffinity(0))))]
    cpu = pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0] if pathlib.Path("/proc/cpuinfo").exists() else ""
    field = dict(line.split(":", 1) for line in cpu.splitlines() if ":" in line)
    field = {k.strip(): v.strip() for k, v in field.items()}
    rows.append(("processor", ", ".join(f"{k} {field[k]}" for k in ("vendor_id", "cpu family", "model", "stepping") if k in field)))
    flags = field.get("flags", field.get("Features", "")).split()
    wanted = ("fma", "avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16", "amx_int8", "asimd", "sve")
    rows.append(("vector features", " ".join(f for f in wanted if f in flags)))
    for cache in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((cache / f).read_text().strip() for f in ("level", "type", "size"))
        rows.append((f"L{level} {kind.lower()}", size))
    return rows


def cells(row, tag="td"):
    return "<tr>" + "".join(f"<{tag}{' class=bad' if bad else ''}>{html.escape(str(c))}</{tag}>" for c, bad in row) + "</tr>"


def table(head, rows):
    plain = lambda row: [c if isinstance(c, tuple) else (c, False) for c in row]
    return f"<table>{cells(plain(head), 'th')}{''.join(cells(plain(r)) for r in rows)}</table>"


def bars(rows, mark, unit):
    """A bar for each (name, value), with a line at `mark`."""
    most, height = max([v for _, v in rows] + [mark]) * 1.05, 20
    x = lambda v: 300 + 560 * v / most
    out = [f'<svg width="900" height="{height * len(rows) + 30}" role="img">']
    for i, (name, value) in enumerate(rows):
        y = i * height
        color = "#3a7d44" if value >= mark or mark == 0 else "#c0392b"
        out.append(f'<text x="292" y="{y + 14}" text-anchor="end">{html.escape(name[:46])}</text>'
                   f'<rect x="300" y="{y + 3}" width="{max(x(value) - 300, 1):.1f}" height="14" fill="{color}"/>'
                   f'<text x="{x(value) + 4:.1f}" y="{y + 14}">{value:.2f}{unit}</text>')
    if mark:
        out.append(f'<line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="0" y2="{height * len(rows)}" stroke="#222" stroke-dasharray="4"/>')
    return "".join(out) + "</svg>"


def micro_kernels(build):
    program = build / "bin" / "bench_micro_kernel"
    if not program.exists():
        return None, "<p class=note>bench_micro_kernel is not built.</p>"
    text, problem = run(program)
    found = re.findall(r"(\d+)x(\d+)\s+([\d.]+) GFLOP/s\s+peak\s+([\d.]+)\s+ratio ([\d.]+)", text)
    if not found:
        return None, f"<p class=note>bench_micro_kernel: {html.escape(problem)}</p>"
    peak = max(float(f[3]) for f in found)
    return peak, (f"<p>Peak of independent multiply-adds, one thread: {peak:.1f} GFLOP/s, measured around each row.</p>"
                  + bars([(f"{r} rows x {c} columns", float(ratio)) for r, c, _, _, ratio in found], 0.95, "")
                  + f"<pre>{html.escape(text)}</pre>")


def matmul(build):
    program = build / "bin" / "bench_matmul"
    if not program.exists():
        return "<p class=note>bench_matmul is not built.</p>"
    text, problem = run(program)
    return f"<pre>{html.escape(text or problem)}</pre>"


def kernels(options, peak, folder):
    out = folder / "kernels.json"
    _, problem = run(sys.executable, HERE / "kernels.py", "--build", options.build, "--json", out, "--only", *options.kernels)
    if not out.exists():
        return f"<p class=note>not measured: {html.escape(problem)}</p>"
    rows = json.loads(out.read_text())
    shown = [(r["kernel"], r["gflops"] / peak) for r in rows if peak and r["gflops"] > 0]
    note = "<p>Share of that peak, one thread, as planning chooses without trials. What streams from memory cannot reach 1.</p>"
    return (note + bars(shown, 0.8, "") if shown else "") + table(
        ("kernel", "µs", "GFLOP/s", "plan"), [(r["kernel"], f"{r['us']:.1f}", f"{r['gflops']:.1f}", r["plan"]) for r in rows])


def networks(options, folder):
    peers = [name for name, module in (("ort", "onnxruntime"), ("ov", "openvino")) if importlib.util.find_spec(module)]
    if not options.models or "ort" not in peers:
        return "<p class=note>not compared: no folder of networks, or onnxruntime is not installed.</p>"
    parts = []
    for threads in options.threads:
        out = folder / f"networks{threads}.json"
        only = ["--only", *options.only] if options.only else []
        text, _ = run(sys.executable, HERE / "compare.py", "--models", options.models, "--tenon", options.build / "bin" / "tenon", "--threads",
                      threads, "--rounds", options.rounds, "--peers", ",".join(peers), "--json", out, *only)
        parts.append(f"<h3>{threads} thread{'s' if threads > 1 else ''}</h3>")
        if not out.exists():
            parts.append(f"<pre>{html.escape(text)}</pre>")
            continue
        rows = {k: v for k, v in json.loads(out.read_text()).items() if "ratio" in v}
        if rows:
            mean = math.exp(sum(math.log(v["ratio"]) for v in rows.values()) / len(rows))
            parts.append(f"<p>Time of the best other runtime over Tenon's: geometric mean {mean:.2f} over {len(rows)} networks; above 1, Tenon is faster.</p>")
            parts.append(bars([(k, min(v["ratio"], 4)) for k, v in sorted(rows.items(), key=lambda r: r[1]["ratio"])], 1, ""))
            parts.append(table(("network", "Tenon ms", *(f"{p} ms" for p in peers), "ratio", "error", "compile s"), [
                (k, f"{v['tenon']:.3f}", *(f"{v[p]:.3f}" for p in peers), (f"{v['ratio']:.2f}", v["ratio"] < 1), f"{v['error']:.1e}",
                 f"{v['compile_s']:.2f}") for k, v in rows.items()]))
    return "".join(parts)


# What bench/running.py measures, in words, and whether more is better.
FIGURES = {"gain": ("time of one worker / of two", True), "steady": ("median / least", False),
           "loss": ("beside a busy process / alone", False), "pair": ("two processes / one", False),
           "uneven": ("slower / faster of two processes", False), "memory": ("MB beyond weights", False)}


def running(options, folder):
    out = folder / "running.json"
    if not options.models or not importlib.util.find_spec("onnxruntime"):
        return "<p class=note>not measured: no folder of networks, or onnxruntime is not installed.</p>"
    only = ["--only", *options.only] if options.only else []
    _, problem = run(sys.executable, HERE / "running.py", "--models", options.models, "--build", options.build, "--json", out, *only)
    if not out.exists():
        return f"<p class=note>not measured: {html.escape(problem)}</p>"
    rows = json.loads(out.read_text())
    shown = [f for f in FIGURES if f in next(iter(rows.values()))["tenon"]]

    def cell(row, figure):
        ours, theirs = row["tenon"][figure], row["ort"][figure]
        return f"{ours:.2f} [{theirs:.2f}]", (ours < theirs) == FIGURES[figure][1]

    return ("<p>Beside ONNX Runtime, whose figures stand in brackets. Two workers, but where it says one; red: worse than it.</p>"
            + table(("network", *(FIGURES[f][0] for f in shown)), [(name, *(cell(row, f) for f in shown)) for name, row in rows.items()]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--kernels", nargs="*", default=[], help="of kernels: those whose name has one of these words")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        peak, micro = micro_kernels(options.build)
        parts = [("The machine", table(("", ""), machine())), ("Micro-kernels, data in the first-level cache", micro),
                 ("Products of matrices, compiled from a model", matmul(options.build)), ("Kernels", kernels(options, peak, folder)),
                 ("Networks", networks(options, folder)), ("How networks run", running(options, folder))]
    body = "".join(f"<h2>{title}</h2>{text}" for title, text in parts)
    options.out.write_text(f"<!doctype html><html lang=en><meta charset=utf-8><title>Tenon: benchmarks</title><style>{STYLE}</style>"
                           f"<h1>Tenon: benchmarks</h1>{body}</html>\n")
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
