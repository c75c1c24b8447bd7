#!/usr/bin/env python3
"""Softmax, layer norm and GELU as ONNX nodes on a GPU, beside a copy of the same size and PyTorch: the table of docs/gpu.md.

    bench/gpu_rows.py [--tenon build/bin/tenon] [--arch sm_90a] [--rows 32768x4096 …] [--types float16 float32]
    bench/gpu_rows.py --libraries DIR --compile-only    # where there is a compiler and onnx, and no device
    bench/gpu_rows.py --libraries DIR                   # then, where there is a device

needs: a CUDA device, torch, onnx, apache-tvm-ffi

Numbers are normally distributed. In each of nine rounds every way makes twenty calls, one behind the other, between two events; the
median of the rounds counts. Printed is the part of `copy_`'s rate that is reached, what a call takes in µs, and the largest
difference from PyTorch in float64. PyTorch's is the faster of its function and of `torch.compile`. DIR keeps the libraries.
"""

import argparse
import pathlib
import statistics
import subprocess
import tempfile

ROUNDS, CALLS = 9, 20
NODES = {"softmax": ("Softmax", {"axis": -1}), "layer norm": ("LayerNormalization", {"axis": -1, "epsilon": 1e-5}), "GELU": ("Gelu", {})}


def write_model(path, operator, attributes, element, rows, columns):
    from onnx import TensorProto, helper, save

    element = {"float16": TensorProto.FLOAT16, "float32": TensorProto.FLOAT}[element]
    inputs = [helper.make_tensor_value_info("x", element, [rows, columns])]
    if operator == "LayerNormalization":
        inputs += [helper.make_tensor_value_info(name, element, [columns]) for name in ("scale", "bias")]
    node = helper.make_node(operator, [i.name for i in inputs], ["y"], **attributes)
    graph = helper.make_graph([node], operator, inputs, [helper.make_tensor_value_info("y", element, [rows, columns])])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def library(args, folder, name, element, rows, columns):
    """The node's library, compiled unless it is there."""
    operator, attributes = NODES[name]
    out = folder / f"{operator}-{element}-{rows}x{columns}.so"
    if not out.exists():
        model = out.with_suffix(".onnx")
        write_model(model, operator, attributes, element, rows, columns)
        subprocess.run([args.tenon, "compile", model, "-o", out, "-q", "--target", f"cuda -arch={args.arch}"], check=True)
    return out


def median_seconds(ways):
    import torch

    for call in ways.values():
        call()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    seconds = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, call in ways.items():
            begin.record()
            for _ in range(CALLS):
                call()
            end.record()
            end.synchronize()
            seconds[way].append(begin.elapsed_time(end) / 1e3 / CALLS)
    return {way: statistics.median(s) for way, s in seconds.items()}


def measure(path, name, element, rows, columns):
    import torch
    import tvm_ffi

    element = getattr(torch, element)
    torch.manual_seed(1)
    x, y = torch.randn(rows, columns, device="cuda", dtype=element), torch.empty(rows, columns, device="cuda", dtype=element)
    more = [torch.randn(columns, device="cuda", dtype=element) for _ in range(2)] if name == "layer norm" else []
    function = {"softmax": lambda x: torch.softmax(x, -1), "GELU": torch.nn.functional.gelu,
                "layer norm": lambda x, *more: torch.nn.functional.layer_norm(x, [columns], *more, 1e-5)}[name]
    torch._dynamo.reset()
    joined = torch.compile(function)
    ours = tvm_ffi.load_module(str(path))["main"]
    ways = {"copy": lambda: y.copy_(x), "Tenon": lambda: ours(x, *more, y),
            "PyTorch": lambda: function(x, *more), "compiled": lambda: joined(x, *more)}
    seconds = median_seconds(ways)
    ways["Tenon"]()
    some = slice(0, min(rows, 4096))
    error = (y[some].double() - function(x[some].double(), *(m.double() for m in more))).abs().max().item()
    return seconds, error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", default="build/bin/tenon")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--rows", nargs="+", default=["32768x4096"])
    parser.add_argument("--types", nargs="+", default=["float16", "float32"], choices=["float16", "float32"])
    parser.add_argument("--only", nargs="+", default=list(NODES), choices=list(NODES))
    parser.add_argument("--libraries", type=pathlib.Path)
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.libraries or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for shape in args.rows:
            rows, columns = map(int, shape.split("x"))
            for name in args.only:
                for element in args.types:
                    path = library(args, folder, name, element, rows, columns)
                    if args.compile_only:
                        continue
                    seconds, error = measure(path, name, element, rows, columns)
                    theirs = min(seconds["PyTorch"], seconds["compiled"])
                    print(f"{shape:14} {name:10} {element:8}  of a copy: Tenon {seconds['copy'] / seconds['Tenon']:4.0%}"
                          f"  PyTorch {seconds['copy'] / theirs:4.0%}   µs: {seconds['Tenon'] * 1e6:7.1f}  copy"
                          f" {seconds['copy'] * 1e6:7.1f}   largest difference {error:.1e}", flush=True)


if __name__ == "__main__":
    main()
