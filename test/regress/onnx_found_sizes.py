#!/usr/bin/env python3
"""Sizes that a call finds by computing, and that meet each other, a symbolic dim or a constant: one library for each model, called
with as many elements as each of the two may have, beside ONNX Runtime; 1 goes with any size, and sizes that do not fit are an
error of the call that names the node and its tensors.

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
    "loop": ("n = Constant<value_int = 2>()  y = Loop(n, cond, p) <body = step(int64 i, bool go, float[k] x) => (bool on, float[l] z)"
             " { on = Identity(go)  z = Add(x, q) }>", True),
}
INPUTS = {"a": "float[N] a", "b": "float[M] b", "a2": "float[N, 4] a2", "b2": "float[M, 4] b2", "ca": "bool[N] ca", "cb": "bool[M] cb",
          "s": "float[S] s", "cond": "bool cond"}
SIZES = [(3, 3, 3), (1, 3, 3), (3, 1, 3), (1, 1, 1), (0, 0, 0), (0, 1, 1), (1, 0, 1), (2, 3, 3), (3, 2, 3), (0, 3, 3)]


def model_of(body):
    words = set(body.replace("(", " ").replace(")", " ").replace(",", " ").split())
    found = [name for name in FINDS if name in words]
    lines = "  ".join([*(FINDS[name] for name in found), body])
    words = set(lines.replace("(", " ").replace(")", " ").replace(",", " ").split())
    inputs = ", ".join(text for name, text in INPUTS.items() if name in words)
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 21]> g ({inputs}) => (float[K] y)'
        f" <int64[1] zeros = {{0}}, int64[1] ones = {{1}}, int64[1] all = {{-1}}> {{ {lines} }}")
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


def all_cases():
    return [case_of(name, *row) for name, row in BODIES.items()]


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, all_cases))
