#!/usr/bin/env python3
"""Sizes that a call finds by computing, and that meet each other, a symbolic dim or a constant: one library for each model, called
with as many elements as each of the two may have, beside ONNX Runtime; 1 goes with any size, and sizes that do not fit are an
error of the call that names the node and its tensors. And how many boxes NonMaxSuppression may keep, or TopK take, where other
nodes say it.

Usage: onnx_found_sizes.py TENON [--levels 0 2] [--match REGEX]      needs: pip install onnx onnxruntime numpy apache-tvm-ffi
"""
import sys

import numpy as np
import onnx.parser
import onnxruntime
from calls import Case, run_cases

# p and q are of n and m elements, p2 and q2 of as many rows of 4; s is an input of a symbolic size.
FINDS = {
    "p": "p = Compress<axis = 0>(a, ca)",
    "q": "q = Compress<axis = 0>(b, cb)",
    "p2": "p2 = Compress<axis = 0>(a2, ca)",
    "q2": "q2 = Compress<axis = 0>(b2, cb)",
}
# What is computed, and whether a size of 1 goes with any other.
BODIES = {
    "add": ("y = Add(p, q)", True),
    "add_symbolic": ("y = Add(p, s)", True),
    "add_constant": ("c = Constant<value_floats = [1.0, 2.0, 3.0]>()  y = Add(p, c)", True),
    "add_three": ("t = Add(p, q)  y = Max(t, s)", True),
    "add_sums": ("t = Concat<axis = 0>(p, p)  u = Concat<axis = 0>(q, q)  y = Add(t, u)", False),
    "where": ("t = Greater(p, q)  y = Where(t, p, q)", True),
    "concat": ("t = Transpose(p2)  u = Unsqueeze(q, zeros)  y = Concat<axis = 0>(t, u)", False),
    "products": ("t = Transpose(p2)  y = MatMul(t, q2)", False),
    "gemm": ("y = Gemm<transB = 1>(p2, q2, q)", True),
    "einsum": ('y = Einsum<equation = "i,i->i">(p, q)', True),
    "attention": ("t = Transpose(q2)  u = MatMul(p2, t)  v = Softmax(u)  y = MatMul(v, q2)", True),
    "scatter": ("i = Cast<to = 7>(q)  k = Mod(i, ones)  y = ScatterElements(s, k, p)", False),
    "instance_norm": ("t = Unsqueeze(p2, zeros)  y = InstanceNormalization(t, q, q)", False),
    "expand": ("t = Shape(q)  y = Expand(p, t)", True),
    "top": ("t = Shape(q)  y, i = TopK(p, t)", False),
    "split": ("t = Size(q)  u = Unsqueeze(t, zeros)  v = Concat<axis = 0>(u, u)  w = Concat<axis = 0>(p, p)  y, z = Split<axis = 0>(w, v)", False),
    "reshape": ("t = Shape(q2)  y = Reshape(p2, t)", False),
    "found_again": ("t = Add(p, q)  u = Greater(t, s)  r = Compress<axis = 0>(t, u)  k = Cast<to = 9>(q)  v = Compress<axis = 0>(q, k)  y = Concat<axis = 0>(r, v)", True),
    # Expressions whose texts are alike as identifiers.
    "names": ("t = Concat<axis = 0>(p, q)  u = Unsqueeze(p, ones)  v = Mul(u, q)  w = Reshape(v, all)  c = Cast<to = 9>(w)  z = Compress<axis = 0>(w, c)"
              "  x = Concat<axis = 0>(t, w)  y = Concat<axis = 0>(x, z)", True),
    "branches": ("y = If(cond) <then_branch = yes() => (float[k] u) { u = Add(p, q) }, else_branch = no() => (float[l] v) { v = Mul(p, q) }>", True),
    # A determinant is a loop: it has the sizes around it, and asks nothing of those that it does not touch.
    "beside_a_loop": ("t = Shape(a2)  u = Cast<to = 1>(t)  v = ReduceSum<keepdims = 0>(u)  e = Constant<value_ints = [2, 2]>()  w = Expand(v, e)"
                      "  d = Det(w)  x = Mul(p, d)  y = Add(x, q)", True),
    "loop": ("n = Constant<value_int = 2>()  y = Loop(n, cond, p) <body = step(int64 i, bool go, float[k] x) => (bool on, float[l] z)"
             " { on = Identity(go)  z = Add(x, q) }>", True),
}
# How many boxes, or how many elements, comes out of other nodes. n boxes of c classes; table is [rows, m], counts a list of integers; nobody is told
# how many boxes there may be. Each with calls (n, c, counts) or (rows, m, counts) and errors of such calls.
SUPPRESSED = "NonMaxSuppression(boxes, scores, most, overlap, least)"
BOXES = [(6, 2, [2, 1]), (0, 2, [3, 1]), (1, 1, [1, 1]), (6, 2, [0, 0]), (7, 3, [4, 9]), (33, 1, [33, 2])]
ROWS = [(3, 5, [2, 1]), (1, 1, [1, 0]), (2, 17, [0, 9]), (4, 8, [8, 3])]
COUNTS = {
    "nms_of_most": (f"u = ReduceMax(counts, zeros)  most = Identity(u)  y = {SUPPRESSED}", BOXES, []),
    "nms_of_most_scalar": (f"most = ReduceMax<keepdims = 0>(counts)  y = {SUPPRESSED}", BOXES, []),
    "nms_of_shape": (f"t = Shape(scores)  most = Gather(t, twos)  y = {SUPPRESSED}", BOXES, []),
    "nms_of_cast": (f"t = Cast<to = 1>(counts)  u = ReduceSum(t, zeros)  v = Mul(u, half)  w = Floor(v)  most = Cast<to = 7>(w)  y = {SUPPRESSED}", BOXES, []),
    "nms_of_least": (f"t = Shape<start = 2>(scores)  u = ReduceMin(counts, zeros)  most = Min(t, u)  y = {SUPPRESSED}", BOXES, []),
    "nms_of_found": (f"t = NonZero(counts)  u = Shape<start = 1>(t)  most = Identity(u)  y = {SUPPRESSED}", BOXES, []),
    "nms_of_negative": (f"t = ReduceMax(counts, zeros)  most = Sub(t, fives)  y = {SUPPRESSED}", BOXES, []),
    "nms_and_boxes": (f"most = ReduceMax(counts, zeros)  r = {SUPPRESSED}  i = Gather<axis = 1>(r, twos)  j = Squeeze(i, ones)  t = Squeeze(boxes, zeros)"
                      "  y = Gather<axis = 0>(t, j)", BOXES, []),
    "nms_and_top": (f"most = ReduceMax(counts, zeros)  r = {SUPPRESSED}  t = Slice(r, ones, threes, ones)  u = Squeeze(scores, zeros)"
                    "  g = GatherND(u, t)  v = Shape(g)  k = Min(v, fives)  y, i = TopK(g, k)", BOXES, []),
    "top_of_shape": ("k = Shape<start = 0, end = 1>(table)  t = Min(k, fives)  u = Shape<start = 1>(table)  v = Min(t, u)  y, i = TopK(table, v)", ROWS, []),
    "top_of_half": ("t = Shape<start = 1>(table)  u = Cast<to = 1>(t)  v = Mul(u, half)  w = Ceil(v)  k = Cast<to = 7>(w)  y, i = TopK(table, k)", ROWS, []),
    "top_of_most": ("k = ReduceMax(counts, zeros)  y, i = TopK(table, k)", ROWS, [(3, 2, [3, 0])]),
    "top_smallest": ("k = ReduceMax(counts, zeros)  y, i = TopK<largest = 0, axis = 1>(table, k)", ROWS, [(3, 2, [3, 0]), (3, 2, [-1, -1])]),
    "top_of_found": ("t = Greater(counts, zeros)  u = NonZero(t)  k = Shape<start = 1>(u)  y, i = TopK(table, k)", [(3, 5, [2, 1]), (1, 1, [1, 0]), (2, 7, [0, 0])],
                     [(3, 1, [2, 2])]),
    "top_of_top": ("k = ReduceMax(counts, zeros)  t, i = TopK(table, k)  u = ReduceMin(counts, zeros)  y, j = TopK(t, u)", ROWS, []),
    "top_places": ("k = ReduceMax(counts, zeros)  v, i = TopK(table, k)  t = GatherElements<axis = 1>(table, i)  y = Sub(t, v)", ROWS, []),
}
INPUTS = {"a": "float[N] a", "b": "float[M] b", "a2": "float[N, 4] a2", "b2": "float[M, 4] b2", "ca": "bool[N] ca", "cb": "bool[M] cb",
          "s": "float[S] s", "cond": "bool cond",
          "boxes": "float[1, N, 4] boxes", "scores": "float[1, C, N] scores", "table": "float[R, M] table", "counts": "int64[L] counts"}
LISTS = {"zeros": "int64[1] zeros = {0}", "ones": "int64[1] ones = {1}", "twos": "int64[1] twos = {2}", "threes": "int64[1] threes = {3}", "fives": "int64[1] fives = {5}", "all": "int64[1] all = {-1}",
         "half": "float[1] half = {0.5}", "overlap": "float[1] overlap = {0.4}", "least": "float[1] least = {0.1}"}
SIZES = [(3, 3, 3), (1, 3, 3), (3, 1, 3), (1, 1, 1), (0, 0, 0), (0, 1, 1), (1, 0, 1), (2, 3, 3), (3, 2, 3), (0, 3, 3)]


def model_of(body):
    words = set(body.replace("(", " ").replace(")", " ").replace(",", " ").split())
    found = [name for name in FINDS if name in words]
    lines = "  ".join([*(FINDS[name] for name in found), body])
    words = set(lines.replace("(", " ").replace(")", " ").replace(",", " ").split())
    inputs = ", ".join(text for name, text in INPUTS.items() if name in words)
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 21]> g ({inputs}) => (float[K] y)'
        f" <{', '.join(text for name, text in LISTS.items() if name in words)}> {{ {lines} }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    for i, node in enumerate(model.graph.node):
        node.name = f"the_{i}_{node.op_type}"
    return model


def feeds_of(model, n, m, s):
    rng = np.random.default_rng(n * 100 + m * 10 + s)

    def some(*shape):
        return rng.integers(1, 5, shape).astype(np.float32)

    def picks(of, count):
        return np.isin(np.arange(of), rng.permutation(of)[:count])
    values = {"a": some(6), "b": some(7), "a2": some(6, 4), "b2": some(7, 4), "ca": picks(6, n), "cb": picks(7, m), "s": some(s), "cond": np.array(True)}
    return [values[i.name] for i in model.graph.input]


def case_of(name, body, broadcasts):
    model = model_of(body)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]

    def wanted(*feeds):
        try:
            return session.run(None, dict(zip(names, feeds)))[0]
        except Exception as error:
            raise ValueError from error
    fits = [sizes for sizes in SIZES if broadcasts or sizes[0] == sizes[1]]
    # Products of any two sizes, and what is asked for by number, go together.
    errors = [] if name in ("gemm", "top", "names", "attention") else [(feeds_of(model, 2, 3, 3), ") needs of '")]
    return Case(name, model, [feeds_of(model, *sizes) for sizes in fits], errors, wanted, passed_in=False)


def count_case(name, body, calls, errors):
    model = model_of(body)
    if "y = NonMax" in body:
        model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64

    def feeds(rows, columns, integers):
        rng = np.random.default_rng(rows * 100 + columns)
        corners = rng.random((1, rows, 2)) * 4
        values = {"boxes": np.concatenate([corners, corners + 1 + rng.random((1, rows, 2))], 2).astype(np.float32),
                  "scores": (rng.permutation(rows * columns).reshape(1, columns, rows) + 1).astype(np.float32) / max(rows * columns, 1),
                  "table": rng.permutation(rows * columns).reshape(rows, columns).astype(np.float32), "counts": np.array(integers)}
        return [values[i.name] for i in model.graph.input]
    return Case(name, model, [feeds(*call) for call in calls], [(feeds(*call), "Expected") for call in errors], options=["--empty-sizes"], passed_in=False)


def all_cases():
    return [case_of(name, *row) for name, row in BODIES.items()] + [count_case(name, *row) for name, row in COUNTS.items()]


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, all_cases))
