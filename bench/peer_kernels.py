"""Computations of the peers' kernels in tensor expressions, as Tenon and TVM alike have them (peer_sketches.py, peer_metaschedule.py; sketch_suite.py).

A function of sizes gives placeholders and, last, the result.
"""


def kernels(te, every, choose):
    """By name; of the peer's `te`, and what it calls `all` and `if_then_else`."""

    def product(m, k, n):
        a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
        r = te.reduce_axis((0, k), name="k")
        return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]

    def padded(x, dims, pad):
        n, c, h, w = dims
        inside = lambda y, z: every(y >= pad, y < h + pad, z >= pad, z < w + pad)
        return te.compute((n, c, h + 2 * pad, w + 2 * pad), lambda b, d, y, z: choose(inside(y, z), x[b, d, y - pad, z - pad], 0.0), name="P")

    def conv(c, o, size, on):
        x, w = te.placeholder((1, c, on, on), name="A"), te.placeholder((o, c, size, size), name="W")
        p = padded(x, (1, c, on, on), size // 2) if size > 1 else x
        k, r, s = te.reduce_axis((0, c), name="k"), te.reduce_axis((0, size), name="r"), te.reduce_axis((0, size), name="s")
        return [x, w, te.compute((1, o, on, on), lambda b, f, y, z: te.sum(p[b, k, y + r, z + s] * w[f, k, r, s], axis=[k, r, s]), name="C")]

    def depthwise(c, size, on):
        x, w = te.placeholder((1, c, on, on), name="A"), te.placeholder((c, size, size), name="W")
        p = padded(x, (1, c, on, on), size // 2)
        r, s = te.reduce_axis((0, size), name="r"), te.reduce_axis((0, size), name="s")
        return [x, w, te.compute((1, c, on, on), lambda b, d, y, z: te.sum(p[b, d, y + r, z + s] * w[d, r, s], axis=[r, s]), name="C")]

    def softmax(m, n):
        x = te.placeholder((m, n), name="A")
        k, l = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="l")
        top = te.compute((m,), lambda i: te.max(x[i, k], axis=k), name="T")
        e = te.compute((m, n), lambda i, j: te.exp(x[i, j] - top[i]), name="E")
        total = te.compute((m,), lambda i: te.sum(e[i, l], axis=l), name="S")
        return [x, te.compute((m, n), lambda i, j: e[i, j] / total[i], name="D")]

    return {f.__name__: f for f in (product, conv, depthwise, softmax)}
