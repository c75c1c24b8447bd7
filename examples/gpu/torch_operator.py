"""An operator of one's own in PyTorch: its tensors, its streams, a kernel of ours.

    torch_operator.py [--size N] [--target "cuda -arch=sm_90"]

The operator is a chain of elementwise steps, silu(x * scale + shift) * gate, which PyTorch runs as one kernel a step. Runs on
PyTorch's GPU where it has one, else, with an llvm target, on its CPU tensors.
"""

import argparse
import time

import tenon
import torch
from tenon import te

THREADS, LANES = 256, 4


def chain(target):
    n, scale, shift = te.var("n"), te.var("scale", "float32"), te.var("shift", "float32")
    x = te.placeholder((n,), name="x")
    gate = te.placeholder((n,), name="gate")
    at = lambda i: x[i] * scale + shift
    y = te.compute((n,), lambda i: at(i) / (1.0 + te.exp(-at(i))) * gate[i], name="y")
    s = te.create_schedule(y.op)
    pieces, rest = s[y].split(y.op.axis[0], factor=THREADS * LANES)
    thread, lanes = s[y].split(rest, factor=LANES)
    s[y].vectorize(lanes)
    if target.startswith("cuda"):
        s[y].bind(pieces, te.thread_axis("blockIdx.x"))
        s[y].bind(thread, te.thread_axis("threadIdx.x"))
    else:
        s[y].parallel(pieces)
    return tenon.build(s, [x, gate, scale, shift, y], target, name="silu_chain")


def register(compiled):
    @torch.library.custom_op("tenon_example::silu_chain", mutates_args=())
    def silu_chain(x: torch.Tensor, gate: torch.Tensor, scale: float, shift: float) -> torch.Tensor:
        out = torch.empty_like(x)
        compiled(x.view(-1), gate.view(-1), scale, shift, out.view(-1))
        return out

    @silu_chain.register_fake
    def _(x, gate, scale, shift):
        return torch.empty_like(x)

    return silu_chain


def plain(x, gate, scale, shift):
    return torch.nn.functional.silu(x * scale + shift) * gate


def milliseconds(call, device, repeat=50):
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    times = []
    for _ in range(5):
        wait()
        start = time.perf_counter()
        for _ in range(repeat):
            call()
        wait()
        times.append((time.perf_counter() - start) / repeat * 1e3)
    return sorted(times)[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    has_gpu = torch.cuda.is_available()
    parser.add_argument("--size", type=int, default=1 << 26 if has_gpu else 1 << 22)
    parser.add_argument("--target", default="cuda -arch=sm_90" if has_gpu else "llvm")
    options = parser.parse_args()
    device = torch.device("cuda" if options.target.startswith("cuda") else "cpu")
    operator = register(chain(options.target))
    for n in (1, 1023, 1025, options.size):
        x, gate = (torch.randn(n, device=device) for _ in range(2))
        torch.testing.assert_close(operator(x, gate, 1.5, -0.25), plain(x, gate, 1.5, -0.25), rtol=1e-5, atol=1e-5)
    ours = milliseconds(lambda: operator(x, gate, 1.5, -0.25), device)
    theirs = milliseconds(lambda: plain(x, gate, 1.5, -0.25), device)
    fused = torch.compile(plain)
    fused_time = milliseconds(lambda: fused(x, gate, 1.5, -0.25), device)
    print(f"{options.size} elements on {device.type}: {ours:.3f} ms; PyTorch {theirs:.3f} ms, compiled {fused_time:.3f} ms")


if __name__ == "__main__":
    main()
