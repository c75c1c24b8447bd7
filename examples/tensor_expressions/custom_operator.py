"""An operator of one's own, called with another framework's tensors: y = x / sqrt(mean(x^2) + 1e-6) * g for each row.

The library is loaded by the apache-tvm-ffi package, which knows nothing of Tenon, and called with NumPy arrays and, where
they are installed, JAX and PyTorch tensors: none is copied. custom_operator.cc is this program in C++.
"""

import numpy as np
import tvm_ffi

import tenon
from tenon import te

COLUMNS = 512


def rms_norm():
    n = te.var("n")
    x = te.placeholder((n, COLUMNS), name="x")
    g = te.placeholder((COLUMNS,), name="g")
    k = te.reduce_axis((0, COLUMNS), name="k")
    squares = te.compute((n,), lambda i: te.sum(x[i, k] * x[i, k], axis=k), name="squares")
    y = te.compute((n, COLUMNS), lambda i, j: x[i, j] * te.rsqrt(squares[i] / COLUMNS + 1e-6) * g[j], name="y")

    s = te.create_schedule(y.op)
    row, column = y.op.axis
    s[y].parallel(row)
    s[y].vectorize(s[y].split(column, factor=64)[1])
    # The sum of squares of a row while the row is at hand, on vectors.
    _, lane = s[squares].split(squares.op.reduce_axis[0], factor=64)
    lanes = s.rfactor(squares, lane, factor_axis=-1)
    s[squares].compute_at(s[y], row)
    s[lanes].compute_at(s[y], row)
    s[lanes].set_scope("register")
    s[lanes].reorder(s[lanes].op.reduce_axis[0], s[lanes].op.axis[-1])
    s[lanes].vectorize(s[lanes].op.axis[-1])
    return tenon.build(s, [x, g, y], name="rms_norm")


def expected(x, g):
    return x / np.sqrt((x.astype("float64") ** 2).mean(1, keepdims=True) + 1e-6) * g


def main():
    folder = tenon.contrib.utils.tempdir()
    path = folder.relpath("rms_norm.so")
    rms_norm().export_library(path)
    operator = tvm_ffi.load_module(path).rms_norm

    for rows in (1, 7, 1000):
        x = np.random.default_rng(rows).standard_normal((rows, COLUMNS), dtype="float32")
        g = np.linspace(0.5, 1.5, COLUMNS, dtype="float32")
        y = np.empty_like(x)
        operator(x, g, y)  # into y
        np.testing.assert_allclose(y, expected(x, g), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(np.from_dlpack(operator(x, g)), y)  # or a new tensor
    print("NumPy: the results agree")

    try:
        operator(x, g[:100], y)
    except ValueError as error:
        print(f"a wrong call says: {str(error).splitlines()[0]}")

    try:
        import jax.numpy as jnp
    except ImportError:
        pass
    else:  # whose arrays never change: a new one each time
        z = jnp.from_dlpack(operator(jnp.asarray(x), jnp.asarray(g)))
        np.testing.assert_array_equal(np.asarray(z), y)
        print("JAX: the results agree")

    try:
        import torch
    except ImportError:
        return
    operator(torch.from_numpy(x), torch.from_numpy(g), out := torch.empty(x.shape))
    np.testing.assert_array_equal(out.numpy(), y)
    print("PyTorch: the results agree")


if __name__ == "__main__":
    main()
