#!/usr/bin/env python3
"""Sums of narrow floats: whatever an operator adds up, in float16 or bfloat16 and at any length, is within two units in the
last place of its float64 value, that is, it was added up in a wider type and rounded once.

Usage: narrow_sums.py TENON [--levels 2 0] [--lengths 300 3000 70000] [--match REGEX] [--folded]
needs: pip install onnx numpy apache-tvm-ffi

A row of TABLE is an operator as it is called for one length n: its node, its inputs and its value in float64. Inputs are
ones, and numbers drawn at random whose sums do not cancel. With --folded the inputs are constants of the model, so that the
compiler has the answer; without, each row goes through both ways.
"""
import argparse
import pathlib
import re
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
import run_node_tests  # noqa: E402
from dlpack import to_argument, to_numpy  # noqa: E402  (its folder is on the path now)

f64 = np.float64
TYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
MANTISSA = {"f16": (10, -14), "bf16": (7, -126)}  # bits, and the least exponent of normal numbers
ULPS = 2
TABLE = []


def row(name, op, inputs, value, opset=21, outputs=1, most=None, **attrs):
    """`inputs(n, draw)` are the operands (arrays of integers keep their type; `draw(*shape)` gives floats), `value(*operands)`
    the float64 answer; `most`: the largest length worth its time."""
    TABLE.append((name, op, inputs, value, opset, outputs, most, attrs))


def axes(*a):
    return np.array(a, np.int64)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def normalized(x, axis, epsilon=1e-5):
    mean = x.mean(axis, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axis, keepdims=True) + epsilon)


def add_reductions():
    for name, f in {"Sum": lambda x: x.sum(1), "Mean": lambda x: x.mean(1), "L1": lambda x: abs(x).sum(1), "L2": lambda x: np.sqrt((x * x).sum(1)),
                    "SumSquare": lambda x: (x * x).sum(1), "LogSum": lambda x: np.log(x.sum(1)), "LogSumExp": lambda x: np.log(np.exp(x).sum(1))}.items():
        row(f"reduce_{name}", f"Reduce{name}", lambda n, draw: [draw(3, n), axes(1)], lambda x, _, f=f: f(x), keepdims=0)
        row(f"reduce_columns_{name}", f"Reduce{name}", lambda n, draw: [draw(1, n, 5), axes(1)], lambda x, _, f=f: f(x), keepdims=0)
    row("reduce_all", "ReduceMean", lambda n, draw: [draw(2, n)], lambda x: x.mean(), keepdims=0)
    row("reduce_Prod", "ReduceProd", lambda n, draw: [1 + (draw(2, n) - 1) * 2**-6, axes(1)], lambda x, _: x.prod(1), most=300, keepdims=0)
    row("cumsum", "CumSum", lambda n, draw: [draw(2, n), np.array(1, np.int64)], lambda x, _: x.cumsum(1), most=3000)
    row("cumsum_reverse", "CumSum", lambda n, draw: [draw(n, 2), np.array(0, np.int64)], lambda x, _: x[::-1].cumsum(0)[::-1], most=3000, reverse=1)
    row("sum_of_many", "Sum", lambda n, draw: [draw(4) for _ in range(n)], lambda *x: np.sum(x, 0), most=300)
    row("mean_of_many", "Mean", lambda n, draw: [draw(4) for _ in range(n)], lambda *x: np.mean(x, 0), most=300)
    row("scatter_elements", "ScatterElements", lambda n, draw: [draw(3), np.zeros(n, np.int64), draw(n)],
        lambda x, _, u: x + u.sum() * np.eye(1, 3)[0], opset=18, most=3000, reduction="add")
    row("scatter_nd", "ScatterND", lambda n, draw: [draw(3), np.zeros((n, 1), np.int64), draw(n)],
        lambda x, _, u: x + u.sum() * np.eye(1, 3)[0], opset=18, most=3000, reduction="add")


def add_products():
    row("matmul", "MatMul", lambda n, draw: [draw(2, n), draw(n, 3)], lambda a, b: a @ b)
    row("matmul_blocks", "MatMul", lambda n, draw: [draw(33, n), draw(n, 40)], lambda a, b: a @ b, most=3000)
    row("matmul_vector", "MatMul", lambda n, draw: [draw(n), draw(n, 17)], lambda a, b: a @ b)
    row("matmul_batch", "MatMul", lambda n, draw: [draw(2, 3, n), draw(2, n, 5)], lambda a, b: a @ b)
    row("gemm", "Gemm", lambda n, draw: [draw(4, n), draw(19, n), draw(19)], lambda a, b, c: a @ b.T + c, transB=1)
    row("einsum", "Einsum", lambda n, draw: [draw(2, n), draw(3, n)], lambda a, b: a @ b.T, equation="ij,kj->ik")
    row("einsum_sum", "Einsum", lambda n, draw: [draw(2, n)], lambda a: a.sum(1), equation="ij->i")
    row("conv_1x1", "Conv", lambda n, draw: [draw(1, n, 3, 3), draw(4, n, 1, 1)], lambda x, w: np.einsum("bchw,mcij->bmhw", x, w))
    row("conv_3x3", "Conv", lambda n, draw: [draw(1, n // 10, 5, 5), draw(4, n // 10, 3, 3), draw(4)],
        lambda x, w, b: np.einsum("bcijkl,mckl->bmij", np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3)), w) + b[:, None, None])
    row("conv_1d", "Conv", lambda n, draw: [draw(1, 1, n + 2), draw(2, 1, n)],
        lambda x, w: np.einsum("bcij,mcj->bmi", np.lib.stride_tricks.sliding_window_view(x, w.shape[2], 2), w), most=3000)
    row("conv_depthwise", "Conv", lambda n, draw: [draw(1, 16, n + 1), draw(16, 1, n)],
        lambda x, w: np.stack([np.correlate(a, b[0], "valid") for a, b in zip(x[0], w)])[None], most=3000, group=16)
    row("conv_transpose", "ConvTranspose", lambda n, draw: [draw(1, n, 2), draw(n, 3, 2)],
        lambda x, w: sum(np.pad(np.einsum("bcs,cm->bms", x, w[:, :, k]), ((0, 0), (0, 0), (k, 1 - k))) for k in range(2)), most=3000)


def triangle(n, o):
    """The weights of n elements in element o of two."""
    return np.maximum(0, 1 - abs((np.arange(n) + 0.5) * 2 / n - o - 0.5))


def add_windows():
    row("average_pool", "AveragePool", lambda n, draw: [draw(1, 2, n + 3)], lambda x: np.lib.stride_tricks.sliding_window_view(x, x.shape[2] - 3, 2).mean(-1),
        most=3000, kernel_shape=lambda n: [n])
    row("global_average_pool", "GlobalAveragePool", lambda n, draw: [draw(1, 3, n // 10, 10)], lambda x: x.mean((2, 3), keepdims=True))
    row("lp_pool", "LpPool", lambda n, draw: [draw(1, 2, n + 3)], lambda x: np.sqrt((np.lib.stride_tricks.sliding_window_view(x, x.shape[2] - 3, 2) ** 2).sum(-1)),
        opset=18, most=3000, kernel_shape=lambda n: [n], p=2)
    row("global_lp_pool", "GlobalLpPool", lambda n, draw: [draw(1, 3, n)], lambda x: np.sqrt((x * x).sum(2, keepdims=True)), p=2)
    row("lrn", "LRN", lambda n, draw: [draw(1, n, 2, 2)], lambda x: x / (1 + np.stack([(x[:, max(0, c - 149):c + 151] ** 2).sum(1) for c in range(x.shape[1])], 1) * 0.5 / 300) ** 0.75,
        most=300, size=300, alpha=0.5, beta=0.75)
    row("resize_down", "Resize", lambda n, draw: [draw(1, 1, n, 2), None, None, np.array([1, 1, 2, 2])],
        lambda x, _, s, n: np.stack([(x[0, 0] * w[:, None] / w.sum()).sum(0) for w in (triangle(x.shape[2], o) for o in range(2))])[None, None],
        most=3000, mode="linear", antialias=1, exclude_outside=1)


def add_normalizations():
    row("softmax", "Softmax", lambda n, draw: [draw(2, n)], softmax)
    row("softmax_columns", "Softmax", lambda n, draw: [draw(n, 5)], lambda x: softmax(x, 0), axis=0)
    row("log_softmax", "LogSoftmax", lambda n, draw: [draw(2, n)], lambda x: np.log(softmax(x)))
    row("layer_norm", "LayerNormalization", lambda n, draw: [draw(2, n), draw(n), draw(n)], lambda x, s, b: normalized(x, 1) * s + b)
    row("rms_norm", "RMSNormalization", lambda n, draw: [draw(2, n), draw(n)], lambda x, s: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * s, opset=23)
    row("instance_norm", "InstanceNormalization", lambda n, draw: [draw(1, 3, n), draw(3), draw(3)], lambda x, s, b: normalized(x, 2) * s[:, None] + b[:, None])
    row("group_norm", "GroupNormalization", lambda n, draw: [draw(1, 4, n), draw(4), draw(4)],
        lambda x, s, b: normalized(x.reshape(1, 2, -1), 2).reshape(x.shape) * s[:, None] + b[:, None], num_groups=2)
    row("lp_norm", "LpNormalization", lambda n, draw: [draw(2, n)], lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)), opset=22)
    row("mean_variance", "MeanVarianceNormalization", lambda n, draw: [draw(1, 2, n, 1)],
        lambda x: (x - x.mean((0, 2, 3), keepdims=True)) / np.sqrt(((x - x.mean((0, 2, 3), keepdims=True)) ** 2).mean((0, 2, 3), keepdims=True) + 1e-9))
    row("batch_norm_training", "BatchNormalization", lambda n, draw: [draw(n, 2), draw(2), draw(2), draw(2), draw(2)],
        lambda x, s, b, m, v: [normalized(x, 0) * s + b, m * 0.5 + x.mean(0) * 0.5, v * 0.5 + x.var(0) * 0.5], outputs=3, training_mode=1, momentum=0.5)
    row("cross_entropy", "SoftmaxCrossEntropyLoss", lambda n, draw: [draw(n, 3), np.arange(n) % 3],
        lambda x, t: -np.log(softmax(x, 1))[np.arange(len(t)), t].mean())
    row("cross_entropy_classes", "SoftmaxCrossEntropyLoss", lambda n, draw: [draw(2, n), np.array([0, n - 1])],
        lambda x, t: -np.log(softmax(x, 1))[np.arange(len(t)), t].mean())
    row("negative_log", "NegativeLogLikelihoodLoss", lambda n, draw: [draw(n, 3), np.arange(n) % 3], lambda x, t: -x[np.arange(len(t)), t].mean())


def add_attention():
    def attention(q, k, v):
        return softmax(q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])) @ v
    row("attention_keys", "Attention", lambda n, draw: [draw(1, 1, 3, 8), draw(1, 1, n, 8), draw(1, 1, n, 5)], attention, opset=23)
    row("attention_heads", "Attention", lambda n, draw: [draw(1, 1, 3, n) - 1, draw(1, 1, 4, n) - 1, draw(1, 1, 4, 5)], attention, opset=23, most=3000)
    row("attention_tokens", "Attention", lambda n, draw: [draw(1, 2, n, 16), draw(1, 2, n, 16), draw(1, 2, n, 16)], attention, opset=23, most=300)


def draws(kind, seed):
    rng = np.random.default_rng(seed)
    if kind == "ones":
        return lambda *shape: np.ones(shape)
    return lambda *shape: rng.uniform(0.5, 1.5, shape)


class Case:
    """What run_node_tests runs: a folder's case, here made of a row."""

    def __init__(self, entry, n, kind, type_name, folded, seed):
        name, self.op, inputs, value, opset, outputs, _, attrs = entry
        self.dtype, self.type_name = TYPES[type_name], type_name
        self.name = f"{name}_{type_name}_{n}_{kind}" + ("_folded" if folded else "")
        # What is drawn is f64 and becomes narrow; indices and scales are what they are.
        arrays = [x.astype(self.dtype) if x is not None and x.dtype == f64 else x for x in inputs(n, draws(kind, seed))]
        exact = value(*(None if x is None else x.astype(f64) if x.dtype.kind not in "iu" else x for x in arrays))
        self.exact = [np.asarray(x) for x in (exact if isinstance(exact, list) else [exact])]
        self.outputs = [x.astype(np.float32).astype(self.dtype) for x in self.exact]
        names = ["" if x is None else f"i{i}" for i, x in enumerate(arrays)]
        values = {i: x for i, x in zip(names, arrays) if i}
        constant = {i for i in values if folded or values[i].dtype.kind in "iu" or values[i].dtype != self.dtype}
        node = helper.make_node(self.op, names, [f"o{i}" for i in range(outputs)], **{k: a(n) if callable(a) else a for k, a in attrs.items()})
        info = lambda i, x: helper.make_tensor_value_info(i, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        graph = helper.make_graph([node], "sums", [info(i, x) for i, x in values.items() if i not in constant],
                                  [info(f"o{i}", x) for i, x in enumerate(self.outputs)], [numpy_helper.from_array(values[i], i) for i in sorted(constant)])
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
        self.inputs = [x for i, x in values.items() if i not in constant]
        self.shapes = ()

    def distance(self, got):
        """The largest distance from float64, in units in the last place."""
        worst = 0.0
        bits, least = MANTISSA[self.type_name]
        for g, e, o in zip(got, self.exact, self.outputs):
            g, o = g.astype(f64), o.astype(f64)
            assert g.shape == e.shape, f"shape {g.shape}, expected {e.shape}"
            # Differences that cancel are as exact as what they are of: a sixteenth of the largest counts.
            size = np.maximum(abs(e), np.max(abs(e), initial=0) / 16)
            unit = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(size, 1e-300))), least) - bits)
            far = np.where(g == o, 0, abs(g - e) / unit)  # infinities too
            worst = max(worst, float(np.max(np.where(np.isnan(far), np.inf, far), initial=0)))
        return worst


def measure(library, case):
    import tvm_ffi

    main = tvm_ffi.load_module(library).main
    out = main(*(to_argument(x) for x in case.inputs))
    out = list(out) if isinstance(out, (tvm_ffi.Array, list, tuple)) else [out]
    return case.distance([to_numpy(x, case.dtype) for x in out])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("--levels", type=int, nargs="*", default=[2, 0], help="the first at every length, the others at the first length")
    parser.add_argument("--lengths", type=int, nargs="*", default=[300, 3000, 70000])
    parser.add_argument("--match", default=".")
    parser.add_argument("--folded", action="store_true", help="only with constant inputs")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for section in (add_reductions, add_products, add_windows, add_normalizations, add_attention):
        section()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        for entry in TABLE:
            for n in args.lengths:
                if n > (entry[6] or n):
                    continue
                for type_name in TYPES:
                    for kind in ("ones", "random"):
                        for folded in ([True] if args.folded else [False, True] if n < 70000 else [False]):
                            with np.errstate(all="ignore"):
                                case = Case(entry, n, kind, type_name, folded, n)
                            if not re.search(args.match, case.name):
                                continue
                            for level in args.levels[:1] if n > args.lengths[0] else args.levels:
                                r = run_node_tests.compile_case(args.tenon, case, level, "llvm", tmp)
                                library = tmp / f"{case.name}.O{level}.so"
                                said = r.reason
                                if r.status == "passed":
                                    far = measure(str(library), case)
                                    said = "" if far <= ULPS else f"{far:.3g} units in the last place from float64"
                                    library.unlink()
                                if args.verbose or said:
                                    print(f"{case.name} -O{level}: {said or f'{far:.2f}'} ({r.seconds:.2f} s)", flush=True)
                                passed, failed = (passed, failed + 1) if said else (passed + 1, failed)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
