"""Schedules that a person wrote for the computations of sketch_suite.py, before anything was searched: what somebody who knows the
machine's vectors and registers writes in a quarter of an hour each. One thread, vectors of 16 floats, 32 registers.

Each takes the computation's tensors and gives a schedule and the arguments. Where a person would lay out an operand anew first, the
schedule has another definition of the same result.
"""

from tenon import te

LANES = 16


def tile(s, c, rows, columns, unrolled=()):
    """The sums of a tile stay in registers: `columns` along the last axis, `rows` of the one before. The loops over tiles.
    `unrolled`: places of reduction axes that are, too."""
    sums = s.cache_write(c, "register")
    axes = list(s[c].op.axis)
    io, jo, ii, ji = s[c].tile(axes[-2], axes[-1], rows, columns)
    s[sums].compute_at(s[c], jo)
    *_, i, j = s[sums].op.axis
    reduced = list(s[sums].op.reduce_axis)
    s[sums].reorder(*reduced, i, j)
    s[sums].unroll(i)
    for place in unrolled:
        s[sums].unroll(reduced[place])
    s[sums].vectorize(j)
    s[c].vectorize(ji)
    return io, jo


def lanes_of(s, tensor, lanes=8 * LANES):
    """Each element from so many sums side by side."""
    _, lane = s[tensor].split(s[tensor].op.reduce_axis[0], factor=lanes)
    sums = s.rfactor(tensor, lane, factor_axis=-1)
    s[sums].compute_at(s[tensor], s[tensor].op.axis[-1])
    s[sums].set_scope("register")
    lane = s[sums].op.axis[-1]
    s[sums].reorder(s[sums].op.reduce_axis[0], lane)
    s[sums].vectorize(lane)
    return sums


def turned(tensor, width=64):
    """A matrix b[j, k] in panels that are read along j."""
    n, d = tensor.shape
    return te.compute((n // width, d, width), lambda p, k, y: tensor[p * width + y, k], name="panels"), width


def blur(tensors):
    c = tensors[-1]
    rows = c.op.input_tensors[0]
    s = te.create_schedule(c.op)
    io, _ = tile(s, c, 4, 64, (0,))
    s[rows].compute_at(s[c], io)
    _, j = s[rows].op.axis
    jo, ji = s[rows].split(j, factor=64)
    (k,) = s[rows].op.reduce_axis
    s[rows].reorder(jo, k, ji)
    s[rows].unroll(k)
    s[rows].vectorize(ji)
    return s, tensors


def stencil(tensors):
    c = tensors[-1]
    s = te.create_schedule(c.op)
    _, ji = s[c].split(c.op.axis[1], factor=64)
    s[c].vectorize(ji)
    return s, tensors


def distances(tensors):
    a, b, c = tensors
    n, d = a.shape
    panels, width = turned(b)
    k = te.reduce_axis((0, d), name="k")

    def square(i, j):
        away = a[i, k] - panels[j // width, k, j % width]
        return te.sum(away * away, axis=k)

    c = te.compute((n, n), square, name="C")
    s = te.create_schedule(c.op)
    tile(s, c, 6, width)
    return s, [a, b, c]


def manhattan(tensors):
    s = te.create_schedule(tensors[-1].op)
    tile(s, tensors[-1], 6, 64)
    return s, tensors


tropical = manhattan


def both_turned(tensors):
    a, b, c = tensors
    n = a.shape[0]
    panels, width = turned(b)
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[k, i] * panels[j // width, k, j % width], axis=k), name="C")
    s = te.create_schedule(c.op)
    tile(s, c, 6, width)
    return s, [a, b, c]


def gram(tensors):
    s = te.create_schedule(tensors[-1].op)
    tile(s, tensors[-1], 6, 64)
    return s, tensors


lower_triangle = gram


def bilinear(tensors):
    x, w, y, c = tensors
    t = next(i for i in c.op.input_tensors if i.op.name == "T")
    s = te.create_schedule(c.op)
    tile(s, t, 6, 64)
    lanes_of(s, c, 4 * LANES)
    return s, tensors


def channels_last(tensors):
    s = te.create_schedule(tensors[-1].op)
    tile(s, tensors[-1], 6, 64)
    return s, tensors


def volume(tensors):
    s = te.create_schedule(tensors[-1].op)
    tile(s, tensors[-1], 8, LANES, (3,))
    return s, tensors


def column_norms(tensors):
    c = tensors[-1]
    total = c.op.input_tensors[0]
    s = te.create_schedule(c.op)
    jo, ji = s[c].split(c.op.axis[0], factor=8 * LANES)
    s[total].compute_at(s[c], jo)
    s[total].set_scope("register")
    s[total].reorder(s[total].op.reduce_axis[0], s[total].op.axis[0])
    s[total].vectorize(s[total].op.axis[0])
    s[c].vectorize(ji)
    return s, tensors


def softmax(tensors):
    a, d = tensors
    e, total = d.op.input_tensors
    top = next(i for i in e.op.input_tensors if i.op.name == "T")
    s = te.create_schedule(d.op)
    i, j = d.op.axis
    _, ji = s[d].split(j, factor=LANES)
    s[d].vectorize(ji)
    for stage in (e, total, top):
        s[stage].compute_at(s[d], i)
    _, ei = s[e].split(e.op.axis[1], factor=LANES)
    s[e].vectorize(ei)
    lanes_of(s, total, 4 * LANES)
    lanes_of(s, top, 4 * LANES)
    return s, tensors


def gated(tensors):
    return stencil(tensors)


def dot(tensors):
    s = te.create_schedule(tensors[-1].op)
    lanes_of(s, tensors[-1])
    return s, tensors
