"""One computation of sketch_suite.py by Halide 21's Adams2019, which then answers how long it takes (peers.py).

    peer_halide.py NAME SIZE …

For an environment with the package halide. One thread; inputs as a caller has them, row-major.
"""

import os
import pathlib
import sys

os.environ["HL_NUM_THREADS"] = "1"

import halide as hl
import numpy as np

import peers

x, y, z, w = (hl.Var(v) for v in "xyzw")  # x along memory


def image(name, dims):
    return hl.ImageParam(hl.Float(32), dims, name)


def rdom(*extents):
    return hl.RDom([(0, e) for e in extents])


def total(value, *at):
    """A sum over the reduction variables of `value`, element by element."""
    f = hl.Func()
    f[at] = 0.0
    f[at] += value
    return f


def blur(n):
    a = image("A", 2)
    k, l = rdom(5), rdom(5)
    rows = total(a[x + k.x, y], x, y)
    return [(a, (n + 4, n + 4))], total(rows[x, y + l.x], x, y), (n, n)


def stencil(n):
    a, c = image("A", 2), hl.Func()
    c[x, y] = 0.2 * (a[x + 1, y + 1] + a[x + 1, y] + a[x + 1, y + 2] + a[x, y + 1] + a[x + 2, y + 1])
    return [(a, (n + 2, n + 2))], c, (n, n)


def distances(n, d):
    a, b, k = image("A", 2), image("B", 2), rdom(d)
    away = a[k.x, y] - b[k.x, x]
    return [(a, (n, d)), (b, (n, d))], total(away * away, x, y), (n, n)


def manhattan(n, d):
    a, b, k = image("A", 2), image("B", 2), rdom(d)
    return [(a, (n, d)), (b, (d, n))], total(hl.abs(a[k.x, y] - b[x, k.x]), x, y), (n, n)


def tropical(n):
    a, b, k, c = image("A", 2), image("B", 2), rdom(n), hl.Func()
    c[x, y] = hl.f32(-3.4e38)
    c[x, y] = hl.max(c[x, y], a[k.x, y] + b[x, k.x])
    return [(a, (n, n)), (b, (n, n))], c, (n, n)


def both_turned(n):
    a, b, k = image("A", 2), image("B", 2), rdom(n)
    return [(a, (n, n)), (b, (n, n))], total(a[y, k.x] * b[k.x, x], x, y), (n, n)


def gram(n, m):
    a, k = image("A", 2), rdom(m)
    return [(a, (m, n))], total(a[y, k.x] * a[x, k.x], x, y), (n, n)


def lower_triangle(n):
    a, b, k = image("A", 2), image("B", 2), rdom(n)
    return [(a, (n, n)), (b, (n, n))], total(hl.select(k.x <= y, a[k.x, y], 0.0) * b[x, k.x], x, y), (n, n)


def bilinear(n, d):
    a, m, b, k, l = image("X", 2), image("W", 2), image("Y", 2), rdom(d), rdom(d)
    t = total(a[k.x, y] * m[x, k.x], x, y)
    return [(a, (n, d)), (m, (d, d)), (b, (n, d))], total(t[l.x, x] * b[l.x, x], x), (n,)


def channels_last(n, c, o):
    a, m, k = image("A", 3), image("W", 4), rdom(c, 3, 3)
    value = a[k.x, y + 2 * k.y, z + 2 * k.z] * m[x, k.x, k.y, k.z]
    return [(a, (n + 4, n + 4, c)), (m, (3, 3, c, o))], total(value, x, y, z), (n, n, o)


def volume(n, c, o):
    a, m, k = image("A", 4), image("W", 5), rdom(3, 3, 3, c)
    value = a[x + k.x, y + k.y, z + k.z, k.w] * m[k.x, k.y, k.z, k.w, w]
    return [(a, (c, n + 2, n + 2, n + 2)), (m, (o, c, 3, 3, 3))], total(value, x, y, z, w), (o, n, n, n)


def column_norms(n):
    a, k, c = image("A", 2), rdom(n), hl.Func()
    c[x] = hl.sqrt(total(a[x, k.x] * a[x, k.x], x)[x])
    return [(a, (n, n))], c, (n,)


def softmax(m, n):
    a, k, l, top, e, d = image("A", 2), rdom(n), rdom(n), hl.Func(), hl.Func(), hl.Func()
    top[y] = hl.f32(-3.4e38)
    top[y] = hl.max(top[y], a[k.x, y])
    e[x, y] = hl.exp(a[x, y] - top[y])
    d[x, y] = e[x, y] / total(e[l.x, y], y)[y]
    return [(a, (m, n))], d, (m, n)


def gated(m, n):
    a, b, c, d = image("A", 2), image("B", 2), image("C", 2), hl.Func()
    d[x, y] = hl.tanh(a[x, y]) / (1.0 + hl.exp(-b[x, y])) + c[x, y]
    return [(a, (m, n)), (b, (m, n)), (c, (m, n))], d, (m, n)


def dot(n):
    a, b, k, c = image("A", 1), image("B", 1), rdom(n), hl.Func()
    c[()] = 0.0
    c[()] += a[k.x] * b[k.x]
    return [(a, (n,)), (b, (n,))], c, ()


def main():
    name, sizes = sys.argv[1], [int(s) for s in sys.argv[2:]]
    plugin = next(pathlib.Path(hl.__file__).parent.rglob("libautoschedule_adams2019.so"))
    hl.load_plugin(str(plugin))
    operands, result, shape = globals()[name](*sizes)
    rng = np.random.default_rng(0)
    kept = []  # a buffer does not keep the array whose memory it is
    for parameter, dims in operands:
        # Numbers as the others have them: the last dimension is Halide's first.
        data = np.ascontiguousarray(rng.standard_normal(dims).astype(np.float32))
        parameter.set_estimates([(0, d) for d in reversed(dims)])
        kept.append((data, hl.Buffer(data)))
        parameter.set(kept[-1][1])
    result.set_estimates([(0, d) for d in reversed(shape)])
    pipeline = hl.Pipeline(result)
    target = hl.get_host_target()
    pipeline.apply_autoscheduler(target, hl.AutoschedulerParams("Adams2019", {"parallelism": "1"}))
    pipeline.compile_jit(target)
    answer = np.zeros(shape, np.float32)
    out = hl.Buffer(answer)
    pipeline.realize(out)
    checksum = float(np.abs(answer.astype(np.float64)).mean())
    peers.serve(lambda: pipeline.realize(out), {"name": name, "target": target.to_string(), "mean": checksum})


if __name__ == "__main__":
    main()
