"""A convolution of images in NHWC order with 3 x 3 filters, in fp32 on a GPU's CUDA cores.

    convolution.py [--batch 16] [--size 64] [--channels 128] [--target "cuda -arch=sm_90"] [--save convolution.so] [--show]

A block of 256 threads makes 8 x 16 pixels of 64 output channels. The pixels it reads, with their border, and the filters,
8 input channels at a time, go through shared memory; each thread keeps the sums of 8 pixels in 4 channels in registers, so
that 9 loads serve 32 multiply-adds. Beside PyTorch's convolution, where PyTorch is there.
"""

import numpy as np

import tenon
from measure import arguments, build, check, seconds
from tenon import te

KERNEL, ROWS, COLUMNS, OUTPUTS, DEPTH, LANES = 3, 8, 16, 64, 8, 4


def schedule(batch, size, channels):
    image = te.placeholder((batch, size, size, channels), name="image")
    weights = te.placeholder((KERNEL, KERNEL, channels, channels), name="weights")
    inside = lambda y, x: (y >= 1) & (y <= size) & (x >= 1) & (x <= size)
    padded = te.compute(
        (batch, size + 2, size + 2, channels),
        lambda n, y, x, c: te.select(inside(y, x), image[n, y - 1, x - 1, c], 0.0),
        name="padded",
    )
    r, q, c = (te.reduce_axis((0, extent), name=name) for name, extent in (("r", KERNEL), ("q", KERNEL), ("c", channels)))
    out = te.compute(
        (batch, size, size, channels),
        lambda n, y, x, o: te.sum(padded[n, y + r, x + q, c] * weights[r, q, c, o], axis=[r, q, c]),
        name="out",
    )
    s = te.create_schedule(out.op)
    s[padded].set_scope("shared")
    filters = s.cache_read(weights, "shared", [out])
    sums = s.cache_write(out, "local")

    n, y, x, o = out.op.axis
    y_block, y = s[out].split(y, factor=ROWS)
    x_block, x = s[out].split(x, factor=COLUMNS)
    o_block, o = s[out].split(o, factor=OUTPUTS)
    o, lanes = s[out].split(o, factor=LANES)
    s[out].reorder(n, y_block, x_block, o_block, x, o, y, lanes)
    s[out].bind(s[out].fuse(n, y_block), te.thread_axis("blockIdx.z"))
    s[out].bind(x_block, te.thread_axis("blockIdx.y"))
    s[out].bind(o_block, te.thread_axis("blockIdx.x"))
    s[out].bind(x, te.thread_axis("threadIdx.y"))
    s[out].bind(o, te.thread_axis("threadIdx.x"))
    s[out].unroll(y)
    s[out].vectorize(lanes)

    s[sums].compute_at(s[out], o)
    r, q, c = s[sums].op.reduce_axis
    _, y, _, o = s[sums].op.axis
    c_outer, c = s[sums].split(c, factor=DEPTH)
    s[sums].reorder(c_outer, r, q, c, y, o)
    for loop in (q, c, y, o):
        s[sums].unroll(loop)
    # Nobody says which thread loads what: the block's threads share the work.
    for tile in (padded, filters):
        s[tile].compute_at(s[sums], c_outer)
        s[tile].vectorize(s[tile].split(s[tile].op.axis[3], factor=LANES)[1])
    return s, [image, weights, out]


def wanted(image, weights):
    n, height, width, _ = image.shape
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return sum(
        padded[:, r : r + height, q : q + width] @ weights[r, q] for r in range(KERNEL) for q in range(KERNEL)
    )


def torch_seconds(image, weights, repeat):
    """Of PyTorch's own convolution, without TF32; None where there is none."""
    try:
        import torch
    except ImportError:
        return None
    torch.backends.cudnn.allow_tf32 = False
    x = torch.from_numpy(image).cuda().permute(0, 3, 1, 2)
    w = torch.from_numpy(weights).cuda().permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    times = []
    for count in (3, repeat):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count):
            torch.nn.functional.conv2d(x, w, padding=1)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / count / 1e3)
    return times[-1]


def main():
    options = arguments(__doc__, batch=16, size=64, channels=128)
    module, device = build(*schedule(options.batch, options.size, options.channels), "convolution", options)
    if device is None:
        return
    image = np.random.rand(options.batch, options.size, options.size, options.channels).astype("float32") - 0.5
    weights = np.random.rand(KERNEL, KERNEL, options.channels, options.channels).astype("float32") - 0.5
    arrays = [tenon.nd.array(v, device) for v in (image, weights)] + [tenon.nd.empty(image.shape, "float32", device)]
    module["convolution"](*arrays)
    check(arrays[2].numpy(), wanted(image, weights), 1e-4)
    time = seconds(module, "convolution", device, arrays, options.repeat)
    peer = torch_seconds(image, weights, options.repeat) if device == tenon.cuda(0) else None
    beside = f", {100 * peer / time:.0f} % of PyTorch's" if peer else ""
    print(f"convolution of {image.shape}: {2 * image.size * KERNEL**2 * options.channels / time / 1e12:.1f} TFLOP/s{beside}")


if __name__ == "__main__":
    main()
