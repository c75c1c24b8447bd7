#!/usr/bin/env python3
"""Inputs that say where an operator reads or writes: calls in which one points elsewhere fail with an error that names the
node, the tensor, the range and the value, and harm no later call; others answer as ONNX Runtime does. Places that several
updates go to have one answer for any number of threads.

Usage: onnx_indices.py TENON [--levels 0 2] [--match REGEX]      needs: pip install onnx onnxruntime numpy apache-tvm-ffi
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
import tvm_ffi
from onnx import TensorProto, helper, numpy_helper

FAR = 2**62
MS = "com.microsoft"
f32, i32, i64 = np.float32, np.int32, np.int64
rng = np.random.default_rng(0)
cases = []


def ints(*values, dtype=i64):
    return np.array(values, dtype)


def rand(*shape):
    return rng.standard_normal(shape).astype(f32)


def add(name, op, inputs, at, good, bad, constants=(), domain="", opset=21, outputs=1, **attrs):
    """A model of one node. `at`: the input in question; `good`: more values of it, None where there is none; `bad`: (value, the element at fault, the
    range that the error names)."""
    names = ["" if x is None else f"i{k}" for k, x in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{k}" for k in range(outputs)], name="the_node", domain=domain, **attrs)
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
             for k, (n, x) in enumerate(zip(names, inputs)) if x is not None and k not in constants]
    weights = [numpy_helper.from_array(inputs[k], names[k]) for k in constants]
    graph = helper.make_graph([node], name, infos, [helper.make_empty_tensor_value_info(f"y{k}") for k in range(outputs)], weights)
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    cases.append((name, helper.make_model(graph, opset_imports=imports, ir_version=10), inputs, at, constants, good, bad))


def add_gathers():
    for dtype in (i32, i64):
        far = 2**31 - 1 if dtype == i32 else FAR
        add(f"gather_{dtype.__name__}", "Gather", [rand(5, 7), ints(0, 4, -5, dtype=dtype)], 1, [ints(-1, 1, 2, dtype=dtype)],
            [(ints(0, 5, 1, dtype=dtype), 5, "-5..=4"), (ints(0, -6, 1, dtype=dtype), -6, "-5..=4"),
             (ints(far, 0, 0, dtype=dtype), far, "-5..=4"), (ints(-far - 1, 0, 0, dtype=dtype), -far - 1, "-5..=4")])
    add("gather_int64_ends", "Gather", [rand(5, 7), ints(0)], 1, [], [(ints(2**63 - 1), 2**63 - 1, "-5..=4"), (ints(-2**63), -2**63, "-5..=4")])
    add("gather_scalar", "Gather", [rand(5, 7), np.array(3)], 1, [np.array(-7)], [(np.array(7), 7, "-7..=6")], axis=1)
    add("gather_none", "Gather", [rand(0, 7), np.zeros((0, 2), i64)], 1, [], [])
    add("gather_from_nothing", "Gather", [rand(0, 4), ints(0, 1)], 1, None, [(ints(0, 0), 0, "0..=-1"), (ints(-1, -1), -1, "0..=-1")])
    add("gather_elements_from_nothing", "GatherElements", [rand(0, 4), ints(0, 1, 0, 5).reshape(1, 4)], 1, None, [(ints(0, 0, 0, 5).reshape(1, 4), 5, "0..=-1")])
    add("gather_many", "Gather", [rand(3, 70001), rng.integers(-70001, 70001, 5003)], 1, [],
        [(np.r_[np.zeros(5002, i64), 70001], 70001, "-70001..=70000")], axis=1)
    add("gather_elements", "GatherElements", [rand(3, 4), rng.integers(-3, 3, (5, 4))], 1, [], [(np.full((5, 4), 3), 3, "-3..=2")], axis=0)
    add("gather_nd", "GatherND", [rand(4, 5, 6), ints(-1, -5, 3, 4).reshape(2, 2)], 1, [],
        [(ints(4, 0, 0, 0).reshape(2, 2), 4, "-4..=3"), (ints(0, 0, 0, -6).reshape(2, 2), -6, "-5..=4")])
    add("gather_nd_batch", "GatherND", [rand(2, 5, 6), ints(1, -1, 0, 4).reshape(2, 2, 1)], 1, [], [(ints(1, 5, 0, 4).reshape(2, 2, 1), 5, "-5..=4")], batch_dims=1)
    add("features", "ArrayFeatureExtractor", [rand(3, 4), ints(0, 3)], 1, [], [(ints(0, 4), 4, "-4..=3")], domain="ai.onnx.ml")
    add("pooled_regions", "RoiAlign", [rand(2, 3, 8, 8), np.abs(rand(3, 4)), ints(0, 1, 0)], 2, [], [(ints(0, 2, 0), 2, "0..=1"), (ints(0, -1, 0), -1, "0..=1")],
        opset=16, output_height=2, output_width=2, sampling_ratio=2)


def add_scatters():
    add("scatter_elements", "ScatterElements", [rand(5, 4), ints(0, -5, 4, 1).reshape(1, 4), rand(1, 4)], 1, [],
        [(ints(0, 5, 4, 1).reshape(1, 4), 5, "-5..=4"), (ints(0, -6, 4, 1).reshape(1, 4), -6, "-5..=4")], axis=0)
    add("scatter_nd", "ScatterND", [rand(4, 5, 6), ints(0, -1, 3, 2).reshape(2, 2), rand(2, 6)], 1, [],
        [(ints(0, 5, 3, 2).reshape(2, 2), 5, "-5..=4"), (ints(-5, 0, 3, 2).reshape(2, 2), -5, "-4..=3")])
    add("unpool", "MaxUnpool", [np.abs(rand(1, 1, 2, 2)), ints(0, 3, 8, 15).reshape(1, 1, 2, 2)], 1, [], [(ints(0, 3, 8, 16).reshape(1, 1, 2, 2), 16, "0..=15")],
        kernel_shape=[2, 2], strides=[2, 2])
    add("cache_rows", "TensorScatter", [rand(2, 1, 6, 3), rand(2, 1, 2, 3), ints(0, 4)], 2, [ints(2, 1)], [(ints(0, 5), 5, "0..=4"), (ints(-1, 0), -1, "0..=4")], opset=24)
    add("cache_rows_circular", "TensorScatter", [rand(2, 1, 6, 3), rand(2, 1, 2, 3), ints(0, 5)], 2, [], [(ints(0, 6), 6, "0..=5")], opset=24, mode="circular")


def add_lengths():
    add("reverse_sequence", "ReverseSequence", [rand(4, 3), ints(4, 1, 2)], 1, [], [(ints(4, 5, 2), 5, "0..=4")])
    w, r = rand(1, 20, 3), rand(1, 20, 5)
    step = helper.make_tensor_value_info
    body = helper.make_graph([helper.make_node("Add", ["s", "x"], ["t"])], "body", [step("s", 1, [2]), step("x", 1, [2])], [step("t", 1, [2])])
    add("scan_lengths", "Scan", [ints(4, 2), rand(2, 2), rand(2, 4, 2)], 0, [ints(1, 3)], [(ints(4, 5), 5, "0..=4"), (ints(-6, 1), -6, "0..=4")], opset=8,
        body=body, num_scan_inputs=1)
    add("lstm_lengths", "LSTM", [rand(4, 2, 3), w, r, None, ints(4, 2, dtype=i32)], 4, [ints(1, 3, dtype=i32)], [(ints(4, 5, dtype=i32), 5, "0..=4")], hidden_size=5)
    add("attention_lengths", "Attention", [rand(2, 1, 3, 4), rand(2, 1, 6, 4), rand(2, 1, 6, 4), None, None, None, ints(6, 2)], 6, [],
        [(ints(7, 2), 7, "0..=6"), (ints(6, -1), -1, "0..=6")], opset=24)
    add("rotary_places", "RotaryEmbedding", [rand(1, 2, 3, 4), rand(9, 2), rand(9, 2), ints(0, 8, 3).reshape(1, 3)], 3, [], [(ints(0, 9, 3).reshape(1, 3), 9, "-9..=8")], opset=23)
    scores = rand(3, 5)
    add("loss_labels", "NegativeLogLikelihoodLoss", [scores, ints(0, 4, 2)], 1, [], [(ints(0, 5, 2), 5, "0..=4"), (ints(0, -1, 2), -1, "0..=4")])
    add("loss_labels_ignored", "NegativeLogLikelihoodLoss", [scores, ints(0, -1, 2)], 1, [], [(ints(0, -2, 2), -2, "0..=4")], ignore_index=-1)


def add_axes():
    x, y = rand(3, 4), rand(1, 3, 4)
    for op in ("ReduceSum", "ReduceMax", "ReduceL2", "ReduceLogSumExp"):
        add(f"axes_{op}", op, [np.abs(x) + 1, ints(0)], 1, [ints(1), ints(-1)], [(ints(5), 5, "-2..=1"), (ints(-7), -7, "-2..=1")])
    add("axes_twice", "ReduceSum", [x, ints(0, 1)], 1, [ints(0, 0), ints(0, -2), ints(-1, 1)], [(ints(0, 2), 2, "-2..=1")])
    add("axes_many", "ReduceSum", [x, ints(0, 1, 0)], 1, [], [(ints(0, 1, -3), -3, "-2..=1")])
    add("axes_squeezed", "Squeeze", [y, ints(0)], 1, [ints(-3)], [(ints(3), 3, "-3..=2"), (ints(-4), -4, "-3..=2")])
    add("axes_new", "Unsqueeze", [x, ints(0, 2)], 1, [ints(-1, 0)], [(ints(4, 0), 4, "-4..=3"), (ints(1, 1), 2, "0..=1"), (ints(1, -3), 2, "0..=1")])
    add("axes_new_of_scalar", "Unsqueeze", [rand(), ints(0)], 1, [ints(-1)], [(ints(1), 1, "-1..=0")])
    slices = [rand(5, 6), ints(1, 0), ints(4, 3), ints(0, 1), ints(1, 2)]
    add("axes_sliced", "Slice", slices, 3, [ints(1, 0), ints(-1, -2)], [(ints(0, 2), 2, "-2..=1"), (ints(1, -1), 2, "0..=1")])
    add("steps_sliced", "Slice", slices, 4, [ints(2, 1)], [(ints(0, 1), 1, "0..=0"), (ints(0, 0), 2, "0..=0")])
    add("axes_padded", "Pad", [x, ints(1, 2), None, ints(0)], 3, [ints(-1)], [(ints(2), 2, "-2..=1")])
    for shape in ((), (1,)):
        axis = lambda at: np.full(shape, at)  # noqa: B023
        add("axis_summed", "CumSum", [x, axis(1)], 1, [axis(0), axis(-2)], [(axis(at), at, "-2..=1") for at in (5, 2, -3)])
    add("axis_transformed", "DFT", [rand(1, 5, 4, 1), None, np.array(1)], 2, [np.array(2), np.array(-2), np.array(-3)],
        [(np.array(4), 4, "-4..=3"), (np.array(3), 3, "0..=2"), (np.array(-1), 3, "0..=2")], opset=20)


def add_frames():
    add("steps_of_frames", "STFT", [rand(1, 40, 1), np.array(8), rand(16)], 1, [np.array(3), np.array(25)], [(np.array(0), 1, "0..=0"), (np.array(-4), 1, "0..=0")], opset=17)
    add("frames_of_rows", "STFT", [rand(2, 40), np.array(8), rand(16)], 1, [np.array(3), np.array(25)], [(np.array(0), 1, "0..=0")], opset=17)


def add_picks():
    picks = lambda *flags: np.array(flags, bool)
    add("picked", "Compress", [rand(3, 2), picks(1, 0, 1, 0)], 1, [picks(0, 1, 1, 0)], [(picks(1, 0, 0, 1), 1, "0..=0")], axis=0)
    add("picked_of_all", "Compress", [rand(3, 1), picks(1, 0, 1, 0, 0)], 1, [], [(picks(1, 0, 0, 1, 1), 2, "0..=0")])


def add_categories():
    add("categories", "OneHotEncoder", [ints(5, 1)], 0, [ints(2, 2)], [(ints(5, 7), 1, "0..=0")], domain="ai.onnx.ml", cats_int64s=[1, 2, 5], zeros=0)


def add_contrib():
    table = rng.integers(0, 256, (9, 32)).astype(np.uint8)
    add("blocks", "GatherBlockQuantized", [table, ints(0, 8, -9), np.abs(rand(9, 4))], 1, [], [(ints(0, 9, 1), 9, "-9..=8")], constants=(0, 2), domain=MS, bits=4, block_size=16)
    add("embedding", "EmbedLayerNormalization", [ints(1, 6, 0, dtype=i32).reshape(1, 3), ints(0, 1, 0, dtype=i32).reshape(1, 3), rand(7, 8), rand(3, 8), rand(2, 8), rand(8), rand(8)],
        0, [], [(ints(1, 7, 0, dtype=i32).reshape(1, 3), 7, "0..=6")], domain=MS, outputs=2)
    add("segments", "EmbedLayerNormalization", [ints(1, 6, 0, dtype=i32).reshape(1, 3), ints(0, 1, 0, dtype=i32).reshape(1, 3), rand(7, 8), rand(3, 8), rand(2, 8), rand(8), rand(8)],
        1, [], [(ints(0, 2, 0, dtype=i32).reshape(1, 3), 2, "0..=1"), (ints(0, -1, 0, dtype=i32).reshape(1, 3), -1, "0..=1")], domain=MS, outputs=2)
    order = ints(*([3, 1, 0, 2] * 16), dtype=i32)
    add("block_order", "MatMulNBits", [rand(2, 64), rng.integers(0, 256, (24, 4, 8)).astype(np.uint8), np.abs(rand(24, 4)), None, order], 4, [],
        [(np.where(np.arange(64) == 63, 4, order).astype(i32), 4, "0..=3")], constants=(1, 2), domain=MS, K=64, N=24, bits=4, block_size=16)
    add("first_place", "RotaryEmbedding", [rand(1, 2, 3, 4), ints(2), rand(5, 2), rand(5, 2)], 1, [ints(0), ints(1)],
        [(ints(3), 3, "0..=2"), (ints(-1), -1, "0..=2"), (ints(2**63 - 1), 2**63 - 1, "0..=2")], domain=MS)
    add("place_of_each", "RotaryEmbedding", [rand(1, 2, 3, 4), ints(0, 4, 2).reshape(1, 3), rand(5, 2), rand(5, 2)], 1, [],
        [(ints(0, 5, 2).reshape(1, 3), 5, "0..=4"), (ints(0, -1, 2).reshape(1, 3), -1, "0..=4")], domain=MS)
    beams = rng.integers(0, 2, (1, 2, 5), dtype=i32)
    wrong = beams.copy()
    wrong[0, 1, 2] = 2
    below = beams.copy()
    below[0, 0, 0] = -1
    unused = wrong.copy()
    unused[0, 1] = [1, 0, 1, 7, -3]
    add("beams_of_keys", "MultiHeadAttention", [*(rand(2, 1, 8) for _ in range(3)), None, None, None, rand(2, 2, 5, 4), rand(2, 2, 5, 4), ints(3, dtype=i32), beams],
        9, [unused], [(wrong, 2, "0..=1"), (below, -1, "0..=1")], domain=MS, outputs=3, num_heads=2)
    heads = {"num_heads": 2, "kv_num_heads": 1, "domain": MS, "outputs": 3}
    add("lengths_of_keys", "GroupQueryAttention", [rand(1, 3, 16), rand(1, 3, 8), rand(1, 3, 8), rand(1, 1, 2, 8), rand(1, 1, 2, 8), ints(4, dtype=i32), np.array(5, i32)],
        5, [], [(ints(5, dtype=i32), 5, "0..=4"), (ints(-1, dtype=i32), -1, "0..=4")], constants=(6,), **heads)


def answers(main, feeds):
    returned = main(*feeds)
    returned = list(returned) if isinstance(returned, (tvm_ffi.Array, tuple, list)) else [returned]
    return [np.from_dlpack(r) for r in returned]


def compiled(tenon, model, folder, level):
    path, library = folder / "m.onnx", folder / f"m{level}.so"
    path.write_bytes(model.SerializeToString())
    done = subprocess.run([tenon, "compile", path, "-o", library, f"-O{level}", "--verify-each"], capture_output=True, text=True)
    return library, done.stderr.strip()[:300] if done.returncode != 0 else ""


def run(tenon, model, inputs, at, constants, good, bad, level, folder):
    """What is wrong, a line each."""
    library, error = compiled(tenon, model, folder, level)
    if error:
        return [f"compile: {error}"]
    main = tvm_ffi.load_module(str(library)).main
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception:  # operators that this version of it has not got
        session = None
    wrong = []

    def feeds_of(value):
        all_of_them = [value if k == at else x for k, x in enumerate(inputs)]
        return {f"i{k}": x for k, x in enumerate(all_of_them) if x is not None and k not in constants}

    def check(value):
        feeds = feeds_of(value)
        got = answers(main, feeds.values())
        for want, have in zip(session.run(None, feeds) if session else got, got):
            if have.shape != want.shape or not np.allclose(have, want, rtol=1e-3, atol=1e-3, equal_nan=True):
                wrong.append(f"{value.tolist()}: {have} instead of {want}")

    for value in (inputs[at], *good) if good is not None else ():
        check(value)
    for value, element, allowed in bad:
        try:
            main(*feeds_of(value).values())
            wrong.append(f"{value.tolist()[:9]}: expected an error")
        except IndexError as error:
            says = str(error)
            for part in ("node 'the_node' (", f"'i{at}'", f"in {allowed}", f"but got {element}"):
                if part not in says:
                    wrong.append(f"expected {part!r} in {says!r}")
        if good is not None:
            check(inputs[at])
    return wrong


def run_duplicates(tenon, folder):
    """Scatters of many updates to few places, on 1, 2 and 4 threads."""
    x, updates = rand(300, 64), rand(4001, 64)
    where = rng.integers(0, 7, (4001, 64))
    wrong = []
    for op, at, opset in (("ScatterElements", where, 18), ("ScatterND", where[:, :1], 18)):
        for reduction in ("none", "add", "mul", "max"):
            infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in (("x", x), ("at", at), ("u", updates))]
            node = helper.make_node(op, ["x", "at", "u"], ["y"], reduction=reduction)
            graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)])
            library, error = compiled(tenon, helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), folder, 2)
            if error:
                wrong.append(f"{op} {reduction}: {error}")
                continue
            np.savez(folder / "in.npz", x=x, at=at, u=updates)
            seen = set()
            for threads in (1, 2, 4):
                code = ("import sys, numpy as np, tvm_ffi; i = np.load(sys.argv[2]);"
                        "y = np.from_dlpack(tvm_ffi.load_module(sys.argv[1]).main(i['x'], i['at'], i['u'])); sys.stdout.buffer.write(y.tobytes())")
                done = subprocess.run([sys.executable, "-c", code, library, folder / "in.npz"], capture_output=True,
                                      env=os.environ | {"TENON_NUM_THREADS": str(threads)})
                seen.add(done.stdout if done.returncode == 0 else done.stderr)
            if len(seen) != 1 or len(next(iter(seen))) != x.nbytes:
                wrong.append(f"{op} {reduction}: answers depend on the number of threads")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("--levels", type=int, nargs="*", default=[0, 2])
    parser.add_argument("--match", default=".")
    args = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    for section in (add_gathers, add_scatters, add_lengths, add_axes, add_frames, add_picks, add_categories, add_contrib):
        section()
    passed = failed = 0

    def count(name, wrong):
        nonlocal passed, failed
        for line in wrong[:5]:
            print(f"{name}: {line}")
        failed += bool(wrong)
        passed += not wrong

    for name, *case in cases:
        for level in args.levels if re.search(args.match, name) else ():
            with tempfile.TemporaryDirectory() as folder:
                count(f"{name} -O{level}", run(args.tenon, *case, level, pathlib.Path(folder)))
    if re.search(args.match, "duplicates"):
        with tempfile.TemporaryDirectory() as folder:
            count("duplicates", run_duplicates(args.tenon, pathlib.Path(folder)))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
