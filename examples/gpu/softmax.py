"""Row softmax of a matrix on a GPU: a block of 256 threads makes a row, which is read and written once.

    softmax.py [--rows 32768] [--columns 4096] [--target "cuda -arch=sm_90"] [--save softmax.so] [--show]

Each thread holds its columns in registers. A reduction across threads is one along each thread's columns, then one over
the block's partial results in shared memory, in two steps of 16.
"""

import numpy as np

import tenon
from measure import arguments, build, check, copy_bandwidth, seconds
from tenon import te

THREADS, LANES, GROUP = 256, 4, 16


def schedule(rows, columns):
    a = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    most = te.compute((rows,), lambda i: te.max(a[i, k], axis=k), name="most")
    grown = te.compute((rows, columns), lambda i, j: te.exp(a[i, j] - most[i]), name="grown")
    r = te.reduce_axis((0, columns), name="r")
    total = te.compute((rows,), lambda i: te.sum(grown[i, r], axis=r), name="total")
    out = te.compute((rows, columns), lambda i, j: grown[i, j] / total[i], name="out")
    s = te.create_schedule(out.op)

    held = s.cache_read(a, "local", [most, grown])
    s[grown].set_scope("local")
    thread = te.thread_axis("threadIdx.x")
    row, column = out.op.axis
    s[out].bind(row, te.thread_axis("blockIdx.x"))
    across(s, out, column, thread)
    for reduction in (total, most):
        partial, groups = partial_results(s, reduction)
        for stage, scope in ((partial, "shared"), (groups, "shared"), (reduction, "shared")):
            s[stage].set_scope(scope)
            s[stage].compute_at(s[out], row)
        s[partial].bind(s[partial].op.axis[0], thread)
        s[groups].bind(s[groups].op.axis[0], thread)
    for stage in (grown, held):
        s[stage].compute_at(s[out], row)
        across(s, stage, s[stage].op.axis[1], thread)
    return s, [a, out]


def across(s, stage, column, thread):
    """Columns over the block's threads, in vectors."""
    rest, lanes = s[stage].split(column, factor=LANES)
    steps, x = s[stage].split(rest, factor=THREADS)
    s[stage].bind(x, thread)
    s[stage].unroll(steps)
    s[stage].vectorize(lanes)


def partial_results(s, reduction):
    """A thread's part of a reduction over columns, and a group of threads' part."""
    rest, lanes = s[reduction].split(s[reduction].op.reduce_axis[0], factor=LANES)
    steps, x = s[reduction].split(rest, factor=THREADS)
    partial = s.rfactor(reduction, x)
    outer, inner = s[reduction].split(s[reduction].op.reduce_axis[0], factor=GROUP)
    groups = s.rfactor(reduction, outer)
    return partial, groups


def main():
    options = arguments(__doc__, rows=32768, columns=4096)
    module, device = build(*schedule(options.rows, options.columns), "softmax", options)
    if device is None:
        return
    x = np.random.randn(options.rows, options.columns).astype("float32") * 10
    arrays = [tenon.nd.array(x, device), tenon.nd.empty(x.shape, "float32", device)]
    module["softmax"](*arrays)
    wanted = np.exp(x.astype("float64") - x.max(axis=1, keepdims=True))
    check(arrays[1].numpy(), wanted / wanted.sum(axis=1, keepdims=True), 1e-5)
    rate = 2 * x.nbytes / seconds(module, "softmax", device, arrays, options.repeat)
    peak = copy_bandwidth(device, options.repeat)
    print(f"softmax of {x.shape}: {rate / 1e9:.0f} GB/s, {100 * rate / peak:.0f} % of a copy's")


if __name__ == "__main__":
    main()
