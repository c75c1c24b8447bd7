"""What the GPU examples have in common: targets, arrays on the GPU, times."""

import argparse
import time

import numpy as np

import tenon

COPY_BYTES = 1 << 30
OPENCL = 4  # a device type of DLPack, often a CPU


def arguments(doc, **sizes):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cuda -arch=sm_90")
    parser.add_argument("--save", help="write the library here")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--show", action="store_true", help="print the source")
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=type(size), default=size)
    return parser.parse_args()


def build(schedule, tensors, name, options):
    """The module, and the device to run it on: none where this machine has none."""
    module = tenon.build(schedule, tensors, options.target, name=name)
    if options.show:
        print(module.get_source())
    if options.save:
        module.save(options.save)
    device = (tenon.opencl if options.target.startswith("opencl") else tenon.cuda)(0)
    if device.exist:
        return module, device
    print(f"{name}: built for {options.target}; no GPU here to run it on")
    return module, None


def seconds(module, name, device, arrays, repeat):
    """Of a call, once those before it are done."""
    return module.time_evaluator(name, device, number=repeat, repeat=3)(*arrays).min


def copy_bandwidth(device, repeat):
    """Bytes read and written a second by a plain copy on the device."""
    size = COPY_BYTES if device.device_type != OPENCL else COPY_BYTES >> 4
    source = tenon.nd.empty((size // 4,), "float32", device)
    target = tenon.nd.empty((size // 4,), "float32", device)
    for count in (1, repeat):
        device.sync()
        start = time.perf_counter()
        for _ in range(count):
            target.copyfrom(source)
        device.sync()
    return 2 * size * repeat / (time.perf_counter() - start)


def check(got, wanted, tolerance):
    error = np.abs(got - wanted).max() / max(1.0, np.abs(wanted).max())
    assert error <= tolerance, f"off by {error}"
    return error
