"""C = A + B on a GPU, for every size.

    vector_add.py [--size N] [--target "cuda -arch=sm_90"] [--save add.so] [--show]

A block of 256 threads takes 256 elements; what lies behind the end is guarded. With four elements a thread, read as one
vector, the kernel is limited by memory alone.
"""

import numpy as np

import tenon
from measure import arguments, build, check, copy_bandwidth, seconds
from tenon import te

THREADS = 256


def schedule():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.placeholder((n,), name="B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    s = te.create_schedule(c.op)
    block, rest = s[c].split(c.op.axis[0], factor=4 * THREADS)
    thread, lanes = s[c].split(rest, factor=4)
    s[c].bind(block, te.thread_axis("blockIdx.x"))
    s[c].bind(thread, te.thread_axis("threadIdx.x"))
    s[c].vectorize(lanes)
    return s, [a, b, c]


def main():
    options = arguments(__doc__, size=1 << 26)
    module, device = build(*schedule(), "add", options)
    if device is None:
        return
    for n in (1, 1023, 1024, 1025, options.size):
        x, y = (np.random.rand(n).astype("float32") for _ in range(2))
        arrays = [tenon.nd.array(v, device) for v in (x, y)] + [tenon.nd.empty((n,), "float32", device)]
        module["add"](*arrays)
        check(arrays[2].numpy(), x + y, 0)
    rate = 3 * 4 * options.size / seconds(module, "add", device, arrays, options.repeat)
    peak = copy_bandwidth(device, options.repeat)
    print(f"vector add of {options.size}: {rate / 1e9:.0f} GB/s, {100 * rate / peak:.0f} % of a copy's")


if __name__ == "__main__":
    main()
