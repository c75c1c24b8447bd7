#!/usr/bin/env python3
"""A network's library on a GPU beside PyTorch, which computes the same ONNX graph operator by operator.

    tenon compile m.onnx -o m.so --target "cuda -arch=sm_90a" --precision fp16
    python3 bench/gpu_networks.py m.onnx fp16=m.so [fp32=other.so …]

needs: a CUDA device, torch, onnx, onnxruntime, numpy, apache-tvm-ffi

For each precision: the norm-wise error of the library's outputs against ONNX Runtime's in fp32 and that of PyTorch's operators in that
precision; the time of a call on an idle stream, between two events, as the least of three medians of 40; the same of PyTorch, as it
is and by torch.compile, both replayed from a CUDA graph (--no-compile leaves that out). All take turns in one process. fp32 is without
TF32 unless --tf32 is given.
"""
import argparse
import statistics

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
import tvm_ffi
from onnx import numpy_helper

TYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
TORCH_OF = {1: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool, 10: torch.float16, 11: torch.float64, 16: torch.bfloat16}
UNARY = {"Relu": F.relu, "IsNaN": torch.isnan, "Tanh": torch.tanh, "Sigmoid": torch.sigmoid, "Sqrt": torch.sqrt, "Exp": torch.exp,
         "Cos": torch.cos, "Sin": torch.sin, "Identity": lambda x: x, "Reciprocal": torch.reciprocal, "Neg": torch.neg,
         "Not": torch.logical_not, "HardSwish": F.hardswish, "Softplus": F.softplus}
BINARY = {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "MatMul": torch.matmul, "And": torch.logical_and,
          "Max": torch.maximum, "Pow": torch.pow, "Equal": torch.eq, "LessOrEqual": torch.le, "GreaterOrEqual": torch.ge}


class Graph:
    """The operators of a file, or of a loop's body, in PyTorch's, floats in one precision. Shapes come from constants, or from inputs
    (settle)."""

    def __init__(self, graph, dtype, device="cuda", channels_last=False):
        graph = graph if isinstance(graph, onnx.GraphProto) else onnx.load(graph).graph
        self.dtype, self.device, self.values, self.nodes = dtype, device, {}, []
        self.channels_last = channels_last
        self.inputs = [i.name for i in graph.input]
        self.outputs = [o.name for o in graph.output]
        self.loops = False
        for tensor in graph.initializer:
            self.values[tensor.name] = self.on_device(numpy_helper.to_array(tensor))
        for node in graph.node:
            attrs = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            if node.op_type == "Constant":
                self.values[node.output[0]] = self.on_device(numpy_helper.to_array(attrs["value"]))
            elif node.op_type == "ConstantOfShape" and node.input[0] in self.values:  # a copy from the host breaks captures
                self.values[node.output[0]] = self.ConstantOfShape(attrs, node.input, self.values[node.input[0]])
            else:
                if "body" in attrs:
                    self.loops = True
                    attrs["body"] = Graph(attrs["body"], dtype, device)
                self.nodes.append((node.op_type, list(node.input), list(node.output), attrs))
        self.numbers = {name: v.tolist() for name, v in self.values.items() if v.numel() <= 64}

    def settle(self, *inputs):
        """Computes once what follows from constants and from the shapes of these inputs, as who compiles for them does."""
        env, nodes, self.nodes = {**self.values, **dict(zip(self.inputs, inputs))}, self.nodes, []
        for node in nodes:
            op, names, outputs, _ = node
            results = dict(zip(outputs, self.results(node, env)))
            env.update(results)
            if op == "Shape" or all(not n or n in self.values for n in names):
                self.values.update(results)
                self.numbers.update({name: v.tolist() for name, v in results.items() if v.numel() <= 64})
            else:
                self.nodes.append(node)

    def on_device(self, array):
        tensor = torch.from_numpy(np.array(array)).to(self.device)
        if self.channels_last and tensor.dim() == 4:
            tensor = tensor.to(memory_format=torch.channels_last)
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor

    def __call__(self, *inputs, values=None):
        env = dict(self.values if values is None else values)
        env.update(zip(self.inputs, inputs))
        for node in self.nodes:
            env.update(zip(node[2], self.results(node, env)))
        return [env[n] for n in self.outputs]

    def results(self, node, env):
        op, names, _, attrs = node
        args = [env[n] if n else None for n in names]
        if op in UNARY:
            results = UNARY[op](args[0])
        elif op in BINARY:
            results = BINARY[op](args[0], args[1])
        else:
            results = getattr(self, op)(attrs, names, *args)
        return results if isinstance(results, tuple) else (results,)

    def known(self, name, tensor):
        return self.numbers[name] if name in self.numbers else tensor.tolist()

    # ---- operators with attributes, as their names are in ONNX ----

    def Reshape(self, attrs, names, x, shape):
        return x.reshape([x.shape[i] if d == 0 else d for i, d in enumerate(self.known(names[1], shape))])

    def Gemm(self, attrs, names, a, b, c=None):
        a, b = (a.t() if attrs.get("transA") else a), (b.t() if attrs.get("transB") else b)
        scale = attrs.get("alpha", 1.0)
        if c is not None and c.dim() == 1 and scale == 1 and attrs.get("beta", 1.0) == 1:
            return torch.addmm(c, a, b)
        product = a @ b if scale == 1 else a @ b * scale
        return product if c is None else product + c * attrs.get("beta", 1.0)

    def padded(self, attrs, x, value):
        """x, and the pads that the operator can take itself."""
        rank = x.dim() - 2
        pads = list(attrs.get("pads", [0] * 2 * rank))
        if pads[:rank] == pads[rank:]:
            return x, pads[:rank]
        return F.pad(x, [p for i in reversed(range(rank)) for p in (pads[i], pads[rank + i])], value=value), [0] * rank

    def Conv(self, attrs, names, x, w, b=None):
        x, pads = self.padded(attrs, x, 0.0)
        ones = [1] * (x.dim() - 2)
        convolve = F.conv2d if x.dim() == 4 else F.conv1d
        return convolve(x, w, b, list(attrs.get("strides", ones)), pads, list(attrs.get("dilations", ones)), attrs.get("group", 1))

    def MaxPool(self, attrs, names, x):
        x, pads = self.padded(attrs, x, -float("inf"))
        return F.max_pool2d(x, list(attrs["kernel_shape"]), list(attrs["strides"]), pads, ceil_mode=bool(attrs.get("ceil_mode", 0)))

    def AveragePool(self, attrs, names, x):
        return F.avg_pool2d(x, list(attrs["kernel_shape"]), list(attrs.get("strides", [1, 1])), list(attrs.get("pads", [0] * 4))[:2],
                            bool(attrs.get("ceil_mode", 0)), bool(attrs.get("count_include_pad", 0)))

    def BatchNormalization(self, attrs, names, x, scale, bias, mean, variance):
        return F.batch_norm(x, mean, variance, scale, bias, eps=attrs.get("epsilon", 1e-5))

    def ReduceMean(self, attrs, names, x, axes=None):
        return x.mean(list(attrs["axes"]) if axes is None else self.known(names[1], axes), keepdim=bool(attrs.get("keepdims", 1)))

    def ReduceSum(self, attrs, names, x, axes):
        return x.sum(self.known(names[1], axes), keepdim=bool(attrs.get("keepdims", 1)))

    def Gather(self, attrs, names, x, indices):
        axis, shape = attrs.get("axis", 0), list(x.shape)
        if indices.dim() == 0 and names[1] in self.numbers:
            return x.select(axis, self.numbers[names[1]])
        return x.index_select(axis, indices.reshape(-1)).reshape(shape[:axis] + list(indices.shape) + shape[axis + 1 :])

    def GatherND(self, attrs, names, x, indices):
        return x[tuple(indices[..., i] for i in range(indices.shape[-1]))]

    def GatherElements(self, attrs, names, x, indices):
        return torch.gather(x, attrs.get("axis", 0), indices)

    def Transpose(self, attrs, names, x):
        return x.permute(attrs["perm"])

    def Concat(self, attrs, names, *parts):
        return torch.cat(parts, attrs["axis"])

    def Softmax(self, attrs, names, x):
        return torch.softmax(x, attrs.get("axis", -1))

    def LayerNormalization(self, attrs, names, x, scale, bias=None):
        return F.layer_norm(x, x.shape[attrs.get("axis", -1) :], scale, bias, attrs.get("epsilon", 1e-5))

    def Unsqueeze(self, attrs, names, x, axes):
        for axis in sorted(self.known(names[1], axes)):
            x = x.unsqueeze(axis)
        return x

    def Squeeze(self, attrs, names, x, axes=None):
        return x.squeeze() if axes is None else x.squeeze(tuple(self.known(names[1], axes)))

    def Gelu(self, attrs, names, x):
        return F.gelu(x, approximate=attrs.get("approximate", b"none").decode())

    def Where(self, attrs, names, condition, a, b):
        return torch.where(condition, a, b)

    def Slice(self, attrs, names, x, *operands):
        starts, ends, *rest = (self.known(n, v) for n, v in zip(names[1:], operands))
        axes = rest[0] if rest else range(len(starts))
        steps = rest[1] if len(rest) > 1 else [1] * len(starts)
        chosen = [slice(None)] * x.dim()
        for start, end, axis, step in zip(starts, ends, axes, steps):
            if step < 0:  # of the axis the other way round
                x, size = x.flip(axis), x.shape[axis]
                start, end = size - 1 - max(min(start, size - 1), -1) % size, size - 1 - end if end >= 0 else size
                step = -step
            chosen[axis] = slice(start, end, step)
        return x[tuple(chosen)]

    def Cast(self, attrs, names, x):
        to = TORCH_OF[attrs["to"]]
        return x.to(self.dtype if to.is_floating_point else to)

    def Expand(self, attrs, names, x, shape):
        return torch.broadcast_to(x, torch.broadcast_shapes(x.shape, tuple(self.known(names[1], shape))))

    def ConstantOfShape(self, attrs, names, shape):
        value = numpy_helper.to_array(attrs["value"]) if "value" in attrs else np.zeros(1, np.float32)
        return self.on_device(np.full(shape.tolist(), value[0]))

    def ScatterND(self, attrs, names, x, indices, updates):
        out = x.clone()
        out[tuple(indices[..., i] for i in range(indices.shape[-1]))] = updates
        return out

    def Split(self, attrs, names, x, sizes=None):
        axis = attrs.get("axis", 0)
        return torch.split(x, x.shape[axis] // attrs["num_outputs"] if sizes is None else self.known(names[1], sizes), axis)

    def Shape(self, attrs, names, x):
        return torch.tensor(x.shape[attrs.get("start", 0) : attrs.get("end")], device=self.device)

    def Range(self, attrs, names, *ends):
        return torch.arange(*(self.known(n, v) for n, v in zip(names, ends)), device=self.device)

    def CumSum(self, attrs, names, x, axis):
        assert not attrs.get("exclusive") and not attrs.get("reverse")
        return torch.cumsum(x, int(np.ravel(self.known(names[1], axis))[0]), dtype=x.dtype)

    def Scan(self, attrs, names, *operands):
        """Along first axes; the body reads nothing from around it."""
        body, scanned = attrs["body"], attrs["num_scan_inputs"]
        assert not {"scan_input_axes", "scan_output_axes", "scan_input_directions", "scan_output_directions"} & set(attrs)
        states, rows = list(operands[:-scanned]), []
        for step in zip(*operands[-scanned:]):
            results = body(*states, *step)
            states = results[: len(states)]
            rows.append(results[len(states) :])
        return (*states, *(torch.stack(column) for column in zip(*rows)))

    def HardSigmoid(self, attrs, names, x):
        return torch.clamp(x * attrs.get("alpha", 0.2) + attrs.get("beta", 0.5), 0, 1)

    def Clip(self, attrs, names, x, *ends):
        return torch.clamp(x, *(np.ravel(self.numbers[n])[0].item() for n in names[1:]))

    def Pad(self, attrs, names, x, pads, value=None, axes=None):
        pads = self.known(names[1], pads)
        sides = {a: (pads[i], pads[len(pads) // 2 + i])
                 for i, a in enumerate(range(x.dim()) if axes is None else self.known(names[3], axes))}
        return F.pad(x, [p for a in reversed(range(x.dim())) for p in sides.get(a, (0, 0))])

    def Resize(self, attrs, names, x, roi=None, scales=None, sizes=None):
        shape = self.known(names[3], sizes)[2:] if sizes is not None else [
            int(d * f) for d, f in zip(x.shape[2:], self.known(names[2], scales)[2:])]
        if attrs.get("mode", b"nearest") != b"linear":
            return F.interpolate(x, size=shape)
        corners = attrs.get("coordinate_transformation_mode", b"half_pixel") == b"align_corners"
        return F.interpolate(x, size=shape, mode="bilinear", align_corners=corners)


class Frozen(torch.nn.Module):
    """A graph whose constants are buffers of a module, which torch.compile may fold and lay out anew (freezing)."""

    def __init__(self, graph):
        super().__init__()
        self.graph = graph
        for i, value in enumerate(graph.values.values()):
            self.register_buffer(f"value{i}", value)
        self.eval()

    def forward(self, *inputs):
        return self.graph(*inputs, values={name: getattr(self, f"value{i}") for i, name in enumerate(self.graph.values)})


def median(call, repeat=40):
    """Of the milliseconds between two events around a call on an idle stream."""
    for _ in range(5):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeat):
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def replayed(call):
    """The call as a CUDA graph, and what it needs to live; the call itself where it cannot be captured."""
    try:
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(3):
                call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = call()
        return lambda: (graph.replay(), kept, call)
    except RuntimeError:
        torch.cuda.synchronize()
        return call


def feeds_of(session, shapes=()):
    """Normal floats, small integers, masks of ones; an axis without a size is 1 in front, else 64, if no NAME:DIMS says otherwise."""
    rng, feeds = np.random.default_rng(0), {}
    given = {name: [int(d) for d in dims.split("x")] for name, dims in (shape.rsplit(":", 1) for shape in shapes)}
    for i in session.get_inputs():
        shape = given.get(i.name) or [d if isinstance(d, int) else (64 if k else 1) for k, d in enumerate(i.shape)]
        if "float" in i.type:
            feeds[i.name] = rng.standard_normal(shape).astype(np.float32)
        else:
            kind = np.int64 if "64" in i.type else np.int32 if "32" in i.type else bool
            feeds[i.name] = np.ones(shape, kind) if "mask" in i.name else rng.integers(0, 2 if kind is bool else 500, shape).astype(kind)
    return feeds


def error(got, want):
    return max(np.linalg.norm(g.double().cpu().numpy() - w) / max(np.linalg.norm(w.astype(np.float64)), 1e-30)
               for g, w in zip(got, want))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("libraries", nargs="+", metavar="PRECISION=FILE")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME:DIMS", help="of an input with open sizes")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--tf32", action="store_true")
    args = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.tf32
    torch.backends.cudnn.benchmark = True
    session = onnxruntime.InferenceSession(args.model, providers=["CPUExecutionProvider"])
    feeds = feeds_of(session, args.shape)
    want = session.run(None, feeds)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, TF32 {'on' if args.tf32 else 'off'}")
    for library in args.libraries:
        precision, path = library.split("=", 1)
        function = tvm_ffi.load_module(path)["main"]
        inputs = [torch.from_numpy(v).cuda() for v in feeds.values()]
        outputs = [torch.empty(w.shape, dtype=torch.from_numpy(w[..., :0]).dtype, device="cuda") for w in want]
        function(*inputs, *outputs)
        graph = Graph(args.model, TYPES[precision])
        narrow = [v.to(graph.dtype) if v.is_floating_point() else v for v in inputs]
        graph.settle(*narrow)
        errors = error(outputs, want), error(graph(*narrow), want)
        calls = {"tenon": lambda: function(*inputs, *outputs), "graph": replayed(lambda: graph(*narrow))}
        if not args.no_compile and not graph.loops:  # which would be written out, step for step
            torch._dynamo.reset()
            compiled = torch.compile(graph.__call__)
            compiled(*narrow)
            calls["compile"] = replayed(lambda: compiled(*narrow))
        best = {name: min(times) for name, times in
                zip(calls, zip(*[[median(call) for call in calls.values()] for _ in range(3)]))}
        peer = min(ms for name, ms in best.items() if name != "tenon")
        print(f"{precision}: error {errors[0]:.1e}, PyTorch {errors[1]:.1e}; ms " +
              ", ".join(f"{name} {ms:.3f}" for name, ms in best.items()) + f"; PyTorch / Tenon {peer / best['tenon']:.2f}")


if __name__ == "__main__":
    main()
