"""Sums of the rows of a matrix on a GPU: a block of 256 threads makes a row.

    reduction.py [--rows 32768] [--columns 4096] [--target "cuda -arch=sm_90"] [--save reduction.so] [--show]

Each thread adds up its columns, read as vectors; then 16 threads add 16 of these each, then one the 16 that are left.
rfactor makes a stage of each step, and compute_at puts it into the block.
"""

import numpy as np

import tenon
from measure import arguments, build, check, copy_bandwidth, seconds
from softmax import partial_results
from tenon import te


def schedule(rows, columns):
    a = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    total = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="total")
    s = te.create_schedule(total.op)
    partial, groups = partial_results(s, total)
    row = total.op.axis[0]
    s[total].bind(row, te.thread_axis("blockIdx.x"))
    for stage in (partial, groups):
        s[stage].set_scope("shared")
        s[stage].compute_at(s[total], row)
        s[stage].bind(s[stage].op.axis[0], te.thread_axis("threadIdx.x"))
    return s, [a, total]


def main():
    options = arguments(__doc__, rows=32768, columns=4096)
    module, device = build(*schedule(options.rows, options.columns), "row_sums", options)
    if device is None:
        return
    x = np.random.rand(options.rows, options.columns).astype("float32")
    arrays = [tenon.nd.array(x, device), tenon.nd.empty((options.rows,), "float32", device)]
    module["row_sums"](*arrays)
    check(arrays[1].numpy(), x.sum(axis=1, dtype="float64"), 1e-5)
    rate = x.nbytes / seconds(module, "row_sums", device, arrays, options.repeat)
    peak = copy_bandwidth(device, options.repeat)
    print(f"row sums of {x.shape}: {rate / 1e9:.0f} GB/s, {100 * rate / peak:.0f} % of a copy's")


if __name__ == "__main__":
    main()
