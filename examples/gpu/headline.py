"""BERT-base, BERT-large and a step of Mamba-130M on a GPU: Tenon's library beside PyTorch's own ways, on the same tensors.

    headline.py [--networks bert-base,bert-large,mamba-130m-step] [--precisions fp32,fp16] [--repeat 100] [--tf32] [--max-autotune]
                [--timeline]

needs: a CUDA device, torch (its exporter asks for the package onnx), and Tenon

The networks are written out below, with weights drawn from a seed: speed does not depend on what a network has learned, and nothing
is downloaded. Each is exported once, in fp32; Tenon compiles that file for each precision, PyTorch's module is converted. In turn,
after a warm-up, each way is called on an idle stream, between two events: mean ± standard deviation of --repeat calls, and the mean
of as many calls behind one another. Errors are norm-wise, against the module in fp32 without TF32. --timeline prints when each of
Tenon's launches of one call began, what it took, and how long nothing ran before it, as PyTorch's profiler saw it.
"""

import argparse
import copy
import pathlib
import statistics
import tempfile
import time
import warnings

import torch
import torch.nn.functional as F
from torch import nn

import tenon


class BertLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])

    def forward(self, x, mask):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(batch, length, width)
        x = self.norms[0](x + self.out(mixed))
        return self.norms[1](x + self.narrow(F.gelu(self.wide(x))))


class Bert(nn.Module):
    """Tokens and the mask of those that count, both i64 [batch, length], to hidden states [batch, length, width]."""

    def __init__(self, layers, width, heads, vocabulary=30522, length=512):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList([BertLayer(width, heads) for _ in range(layers)])

    def forward(self, tokens, counts):
        x = self.norm(self.words(tokens) + self.places.weight[: tokens.shape[1]])
        mask = (1 - counts[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return x

    def inputs(self):
        return [torch.randint(0, self.words.num_embeddings, (1, 128)), torch.ones((1, 128), dtype=torch.int64)]


def rms_norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight


class MambaLayer(nn.Module):
    """One token through a selective state space (Gu and Dao, "Mamba", 2023, algorithm 2): x [1, width], the last `taps` inputs of the
    convolution [1, inner, taps] and the state [1, inner, states], to x and both as they are after it."""

    def __init__(self, width, inner, states, taps, rank):
        super().__init__()
        self.rank, self.states = rank, states
        self.norm = nn.Parameter(torch.ones(width))
        self.into, self.select = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, rank + 2 * states, bias=False)
        self.step, self.out = nn.Linear(rank, inner), nn.Linear(inner, width, bias=False)
        self.taps, self.bias = nn.Parameter(torch.randn(inner, taps) / 2), nn.Parameter(torch.zeros(inner))
        self.decay = nn.Parameter(torch.log(torch.arange(1.0, states + 1)).repeat(inner, 1))
        self.skip = nn.Parameter(torch.ones(inner))

    def forward(self, x, window, state):
        u, gate = self.into(rms_norm(x, self.norm)).chunk(2, -1)
        window = torch.cat([window[:, :, 1:], u[:, :, None]], -1)
        u = F.silu((window * self.taps).sum(-1) + self.bias)
        step, b, c = self.select(u).split([self.rank, self.states, self.states], -1)
        step = F.softplus(self.step(step))
        state = state * torch.exp(step[:, :, None] * -torch.exp(self.decay)) + (step * u)[:, :, None] * b[:, None, :]
        y = (state * c[:, None, :]).sum(-1) + u * self.skip
        return x + self.out(y * F.silu(gate)), window, state


class MambaStep(nn.Module):
    """A token, i64 [1], and each layer's window and state, to the scores of the next token and what the states are then."""

    def __init__(self, layers=24, width=768, vocabulary=50280, states=16, taps=4):
        super().__init__()
        inner = 2 * width
        self.shapes = [(1, inner, taps), (1, inner, states)] * layers
        self.words, self.norm = nn.Embedding(vocabulary, width), nn.Parameter(torch.ones(width))
        self.layers = nn.ModuleList([MambaLayer(width, inner, states, taps, width // 16) for _ in range(layers)])
        self.scores = nn.Linear(width, vocabulary, bias=False)

    def forward(self, token, *held):
        x, after = self.words(token), []
        for i, layer in enumerate(self.layers):
            x, window, state = layer(x, held[2 * i], held[2 * i + 1])
            after += [window, state]
        return self.scores(rms_norm(x, self.norm)), *after

    def inputs(self):
        return [torch.randint(0, self.words.num_embeddings, (1,)), *[torch.randn(shape) / 4 for shape in self.shapes]]


NETWORKS = {
    "bert-base": lambda: Bert(12, 768, 12),
    "bert-large": lambda: Bert(24, 1024, 16),
    "mamba-130m-step": MambaStep,
}


def exported(module, inputs, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter that needs no other package is an old one; traced shapes are constants
        torch.onnx.export(module, tuple(inputs), str(path), dynamo=False, opset_version=17)


def tuple_of(results):
    return results if isinstance(results, tuple) else (results,)


def replayed(call):
    """The call as a CUDA graph."""
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = call()
    return lambda: (graph.replay(), kept)


def times(call, repeat):
    """Milliseconds of calls on an idle stream, and of one of many behind one another."""
    for _ in range(10):
        call()
    alone = []
    for _ in range(repeat):
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        alone.append(begin.elapsed_time(end))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(repeat):
        call()
    end.record()
    end.synchronize()
    return alone, begin.elapsed_time(end) / repeat


def distance(results, wanted):
    """The largest of the outputs' norm-wise errors."""
    return max(float((r.double() - w.double()).norm() / w.double().norm()) for r, w in zip(results, wanted))


def print_timeline(call):
    from torch.autograd import DeviceType

    for _ in range(2):  # the first profile begins late
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiled:
            call()
            torch.cuda.synchronize()
    launches = sorted((e.time_range.start, e.time_range.end, e.name) for e in profiled.events() if e.device_type == DeviceType.CUDA)
    first = until = launches[0][0]
    idle = 0
    for start, end, name in launches:
        gap = start - until
        print(f"    {start - first:8.1f} us  {end - start:6.1f}  gap {gap:5.1f}  {name[:70]}")
        idle, until = idle + max(gap, 0), max(until, end)
    print(f"    {len(launches)} launches in {until - first:.1f} us, of which nothing runs for {idle:.1f}")


def ways_of(function, module, inputs, outputs, options):
    """Tenon's call and PyTorch's, by name. Those that PyTorch cannot make are named, and left out."""

    def ours():
        function(*inputs["fp32"], *outputs)

    def theirs():
        return module(*inputs["own"])

    modes = {"compile": None, "max-autotune": "max-autotune-no-cudagraphs"} if options.max_autotune else {"compile": None}
    ways = {"Tenon": ours, "eager": theirs}
    makers = {"eager, graph": lambda: replayed(theirs)}
    for name, mode in modes.items():
        makers[f"{name}, graph"] = lambda mode=mode: replayed(lambda f=torch.compile(module, mode=mode): f(*inputs["own"]))
    for name, make in makers.items():
        try:
            ways[name] = make()
        except Exception as error:  # whatever a compiler of this PyTorch lacks here
            print(f"  {name}: left out, {str(error).splitlines()[0][:100]}")
    return ways


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--precisions", default="fp32,fp16")
    parser.add_argument("--repeat", type=int, default=100)
    parser.add_argument("--tf32", action="store_true", help="PyTorch's fp32 may use TF32; Tenon's does so by --precisions tf32")
    parser.add_argument("--max-autotune", action="store_true", help="also torch.compile in that mode, which takes minutes")
    parser.add_argument("--timeline", action="store_true", help="also when each of Tenon's launches ran")
    parser.add_argument("--target", help="default: CUDA for the capability of this GPU")
    options = parser.parse_args()
    for name in options.networks.split(","):
        if name not in NETWORKS:
            parser.error(f"expected networks of {', '.join(NETWORKS)}, got {name}")
    if options.repeat < 2:
        parser.error("--repeat: a standard deviation needs two calls")
    if not torch.cuda.is_available():
        raise SystemExit("headline.py needs a CUDA device that PyTorch sees")
    major, minor = torch.cuda.get_device_capability()
    target = options.target or f"cuda -arch=sm_{major}{minor}{'a' if (major, minor) in ((9, 0), (10, 0)) else ''}"
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {target}")
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        for name in options.networks.split(","):
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
            torch.manual_seed(0)
            module = NETWORKS[name]().eval()
            held = module.inputs()
            path = pathlib.Path(folder) / f"{name}.onnx"
            exported(module, held, path)
            module, held = module.cuda(), [v.cuda() for v in held]
            wanted = tuple_of(module(*held))
            outputs = [torch.empty_like(w) for w in wanted]
            for precision in options.precisions.split(","):
                begun = time.perf_counter()
                function = tenon.compile(path, target=target, precision=precision)
                compiled = time.perf_counter()
                function(*held, *outputs)
                torch.cuda.synchronize()
                called = time.perf_counter()
                dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)
                torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.tf32
                own = copy.deepcopy(module).to(dtype)
                inputs = {"fp32": held, "own": [v.to(dtype) if v.is_floating_point() else v for v in held]}
                print(f"{name} {precision}, TF32 {'on' if options.tf32 else 'off'} in PyTorch's products and convolutions; compiled in "
                      f"{compiled - begun:.1f} s, first call {(called - compiled) * 1e3:.0f} ms")
                torch._dynamo.reset()
                ways = ways_of(function, own, inputs, outputs, options)
                measured = {way: times(call, options.repeat) for way, call in ways.items()}
                if options.timeline:
                    print_timeline(ways["Tenon"])
                ways["Tenon"]()
                errors = {"Tenon": distance(outputs, wanted), "eager": distance(tuple_of(own(*inputs["own"])), wanted)}
                for way, (alone, behind) in measured.items():
                    error = f", error {errors[way]:.1e}" if way in errors else ""
                    print(f"  {way:20} {statistics.mean(alone):7.3f} ± {statistics.stdev(alone):.3f} ms, one behind another {behind:.3f}{error}")
                peer = min(statistics.mean(alone) for way, (alone, _) in measured.items() if way != "Tenon")
                print(f"  the fastest of PyTorch's takes {peer / statistics.mean(measured['Tenon'][0]):.2f} of Tenon's time", flush=True)


if __name__ == "__main__":
    main()
