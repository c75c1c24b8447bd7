#!/usr/bin/env python3
"""Products of a suite of kernels by cublasLt, at the best of what it suggests.

    bench/peer_cublaslt.py [--suite bench/tuning_suite_gpu.txt] [--rows FOLDER]

Needs PyTorch with CUDA, for memory and time; cublasLt is called itself, row-major operands as they lie, sums in float32 (no TF32). Each
algorithm of the first 64 that its heuristic gives is timed: calls for a millisecond between two events, the median of nine such; the best counts, and
the heuristic's first beside it. With --rows, the folder of bench/tuning_suite.py, the best of our space stands in the same line.
"""
import argparse
import ctypes
import glob
import json
import os
import pathlib
import re
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent

R_32F, R_16F, COMPUTE_32F, MAX_WORKSPACE = 0, 2, 68, 1
WORKSPACE = 64 << 20
ALGORITHMS = 64


class Found(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t"""

    _fields_ = [("algo", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int), ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4)]


def library(torch):
    """cublasLt as PyTorch has it."""
    torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")
    for line in open("/proc/self/maps"):
        if "libcublasLt.so" in line:
            return ctypes.CDLL(line.split()[-1])
    places = [p for root in sys.path for p in glob.glob(os.path.join(root, "nvidia", "*", "lib", "libcublasLt.so*"))]
    return ctypes.CDLL(places[0] if places else "libcublasLt.so")


def check(status):
    if status != 0:
        raise RuntimeError(f"cublasLt answers {status}")


class Product:
    """y = x w: columns first, y^T = w^T x^T, which is how it lies."""

    def __init__(self, lt, torch, dtype, m, n, k):
        self.lt, self.torch = lt, torch
        kind, code = (torch.float16, R_16F) if dtype == "f16" else (torch.float32, R_32F)
        self.x, self.w = torch.randn(m, k, device="cuda").to(kind), torch.randn(k, n, device="cuda").to(kind)
        self.y = torch.empty(m, n, device="cuda", dtype=kind)
        self.space = torch.empty(WORKSPACE, device="cuda", dtype=torch.uint8)
        self.handle, self.desc, wish = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        check(lt.cublasLtCreate(ctypes.byref(self.handle)))
        check(lt.cublasLtMatmulDescCreate(ctypes.byref(self.desc), COMPUTE_32F, R_32F))
        self.layouts = []
        for rows, columns in ((n, k), (k, m), (n, m)):
            layout = ctypes.c_void_p()
            check(lt.cublasLtMatrixLayoutCreate(ctypes.byref(layout), code, ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows)))
            self.layouts.append(layout)
        check(lt.cublasLtMatmulPreferenceCreate(ctypes.byref(wish)))
        most = ctypes.c_uint64(WORKSPACE)
        check(lt.cublasLtMatmulPreferenceSetAttribute(wish, MAX_WORKSPACE, ctypes.byref(most), ctypes.c_size_t(8)))
        found, count = (Found * ALGORITHMS)(), ctypes.c_int()
        a, b, c = self.layouts
        check(lt.cublasLtMatmulAlgoGetHeuristic(self.handle, self.desc, a, b, c, c, wish, ALGORITHMS, found, ctypes.byref(count)))
        self.found = [f for f in found[: count.value] if f.state == 0]

    def call(self, algorithm):
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        a, b, c = self.layouts
        return self.lt.cublasLtMatmul(
            self.handle, self.desc, ctypes.byref(one), ctypes.c_void_p(self.w.data_ptr()), a, ctypes.c_void_p(self.x.data_ptr()), b, ctypes.byref(zero),
            ctypes.c_void_p(self.y.data_ptr()), c, ctypes.c_void_p(self.y.data_ptr()), c, ctypes.byref(algorithm.algo), ctypes.c_void_p(self.space.data_ptr()),
            ctypes.c_size_t(algorithm.workspace), ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream))

    def seconds(self, algorithm):
        """A graph of calls is timed, so that nobody waits for the host."""
        torch = self.torch
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            check(self.call(algorithm))
            side.synchronize()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            check(self.call(algorithm))
            end.record()
            side.synchronize()
            calls = max(2, min(200, int(1 / max(begin.elapsed_time(end), 1e-3))))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=side):
                for _ in range(calls):
                    check(self.call(algorithm))
            times = []
            for _ in range(10):
                begin.record()
                graph.replay()
                end.record()
                side.synchronize()
                times.append(begin.elapsed_time(end) / calls / 1e3)
        return statistics.median(times[1:])

    def error(self):
        wanted = self.x.double() @ self.w.double()
        return float((self.y.double() - wanted).norm() / wanted.norm())


def rows_of(folder):
    rows = [json.loads(pathlib.Path(p).read_text())["row"] for p in glob.glob(f"{folder}/*.row.json")] if folder else []
    return {r["kernel"]: r for r in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=pathlib.Path, default=HERE / "tuning_suite_gpu.txt")
    parser.add_argument("--rows", default="")
    args = parser.parse_args()
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    lt = library(torch)
    ours = rows_of(args.rows)
    print(f"{'kernel':<36} {'first µs':>9} {'best µs':>9} {'ours µs':>9} {'lt / ours':>9}")
    for part in args.suite.read_text().split("\n## ")[1:]:
        name, text = part.split("\n", 1)
        product = re.fullmatch(r"(f16|f32) product (\d+)x(\d+)x(\d+)", name.strip())
        if not product:
            continue
        m, k, n = map(int, product.groups()[1:])
        p = Product(lt, torch, product[1], m, n, k)
        times = [p.seconds(a) for a in p.found]
        assert p.error() < 1e-2, name
        us = 1e6 * min(times)
        row = ours.get(name.strip(), {})
        mine = f"{row['us']:>9.2f} {us / row['us']:>9.2f}" if "us" in row else ""
        print(f"{name.strip():<36} {1e6 * times[0]:>9.2f} {us:>9.2f} {mine}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
