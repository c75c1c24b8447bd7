"""Models that PyTorch's exporters write: write_torch.py [FOLDER]          needs: torch, onnx, onnxscript

`torch_new_*` come from the exporter that captures programs (dynamo), `torch_old_*` from the one that traces them."""

import math
import pathlib
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
OPEN = Dim.DYNAMIC


def without_places(part):
    """Drops what says where in a Python program something comes from."""
    for item in [part, *part.node, *part.value_info]:
        del item.metadata_props[:]
    for node in part.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                without_places(attribute.g)


def new(name, model, args, shapes, **more):
    """Dims without names: the exporter calls them s77 and the like."""
    program = torch.onnx.export(model.eval(), args, dynamo=True, dynamic_shapes=shapes, verbose=False, **more)
    made = program.model_proto
    without_places(made.graph)
    for function in made.functions:
        without_places(function)
    (OUT / f"torch_new_{name}.onnx").write_bytes(made.SerializeToString())


def old(name, model, args, inputs, axes, outputs=("y",), opset=17):
    module = model if isinstance(model, torch.jit.ScriptModule) else model.eval()
    torch.onnx.export(module, args, str(OUT / f"torch_old_{name}.onnx"), input_names=inputs, output_names=list(outputs), dynamic_axes=axes,
                      opset_version=opset, dynamo=False)


class Attention(nn.Module):
    """A layer of a decoder: heads by view, a causal mask of the sequence's length."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, past_k=None, past_v=None):
        b, t, w = x.size(0), x.size(1), x.size(2)
        q, k, v = (part.view(b, t, self.heads, w // self.heads).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        if past_k is not None:
            k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        scores = q @ k.transpose(-1, -2) / math.sqrt(w // self.heads)
        n = k.size(2)
        mask = torch.full((t, n), -1e9, dtype=x.dtype).triu(n - t + 1)
        y = (scores + mask[None, None].expand(b, 1, t, n)).softmax(-1) @ v
        y = x + self.out(y.transpose(1, 2).reshape(b, t, -1))
        return y if past_k is None else (y, k, v)


class Conditional(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: torch.relu(self.a(x)), lambda x: self.b(x) - 1, (x,))


class Scanned(nn.Module):
    def forward(self, x, state):
        from torch._higher_order_ops.scan import scan

        def step(carry, row):
            after = torch.tanh(carry * 0.5 + row)
            return after, after * 2

        return scan(step, state, x)


class Ragged(nn.Module):
    """Sizes that values decide."""

    def forward(self, x):
        rows = torch.nonzero(x[:, 0] > 0).squeeze(1)
        return x[rows], rows


class Branches(nn.Module):
    """What tracing with torch.jit.script leaves: If and Loop."""

    def forward(self, x, n: int):
        if x.size(0) > 2:
            y = x * 2
        else:
            y = x.sum(0, keepdim=True) + x
        for i in range(n):
            y = y * 0.5 + float(i)
        return y


class Squeezed(nn.Module):
    """A squeeze of a dim that may be 1: an If whose branches differ in rank."""

    def forward(self, x):
        return torch.squeeze(x, 1).sum(-1)


class Expanded(nn.Module):
    """expand with -1: ConstantOfShape, Equal, Where and Expand."""

    def forward(self, x, row):
        wide = row.expand(x.size(0), -1, -1)
        return torch.cat([x, wide], 1).view(x.size(0), -1, 2, x.size(2) // 2).flatten(2)


class Images(nn.Module):
    """Strided, grouped and dilated convolutions with a path around them, resized to the input's size."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8)
        self.deep, self.wide = nn.Conv2d(8, 8, 3, 1, 2, dilation=2, groups=4), nn.ConvTranspose2d(8, 4, 2, 2)

    def forward(self, x):
        y = F.silu(self.norm(self.first(x)))
        y = self.wide(y + self.deep(F.adaptive_avg_pool2d(y, 1) * y))
        return F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)


class Boxes(nn.Module):
    """A detector's end: anchors of all positions, candidates by topk, and NMS."""

    def __init__(self):
        super().__init__()
        self.body, self.boxes, self.scores = nn.Conv2d(3, 8, 3, 4, 1), nn.Conv2d(8, 4, 1), nn.Conv2d(8, 2, 1)

    def forward(self, image, least):
        import torchvision

        y = torch.relu(self.body(image))
        h, w = y.shape[-2:]
        at = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij"), -1).flip(-1).reshape(-1, 2) * 4.0
        size = self.boxes(y)[0].permute(1, 2, 0).reshape(-1, 4).abs() * 8 + 2
        boxes = torch.cat([at - size[:, :2], at + size[:, 2:]], -1)
        scores, kind = self.scores(y)[0].permute(1, 2, 0).reshape(-1, 2).sigmoid().max(-1)
        keep = scores > least
        boxes, scores, kind = boxes[keep], scores[keep], kind[keep]
        kept = torchvision.ops.nms(boxes, scores, 0.3)
        return boxes[kept], scores[kept], kind[kept]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.gru = nn.Embedding(20, 6), nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True), nn.GRU(10, 4, batch_first=True)

    def forward(self, ids):
        y, _ = self.lstm(self.embed(ids))
        return self.gru(y)[0].log_softmax(-1)


def write_new():
    x = torch.randn(2, 5, 16)
    past = torch.randn(2, 2, 3, 8)
    new("attention", Attention(), (x,), ({0: OPEN, 1: OPEN},))
    new("functions", Attention(), (x,), ({0: OPEN, 1: OPEN},), optimize=False)
    new("past", Attention(), (x, past, past), ({0: OPEN, 1: OPEN}, {0: OPEN, 2: OPEN}, {0: OPEN, 2: OPEN}))
    new("cond", Conditional(), (torch.randn(3, 4),), ({0: OPEN},))
    new("scan", Scanned(), (torch.randn(6, 3), torch.zeros(3)), ({0: OPEN}, None))
    new("ragged", Ragged(), (torch.randn(6, 3),), ({0: OPEN},))
    new("images", Images(), (torch.randn(2, 3, 32, 40),), ({0: OPEN, 2: OPEN, 3: OPEN},))
    new("expanded", Expanded(), (torch.randn(3, 2, 6), torch.randn(1, 4, 6)), ({0: OPEN, 1: OPEN}, None))
    new("tagger", Tagger(), (torch.randint(0, 20, (2, 7)),), ({0: OPEN, 1: OPEN},))


def write_old():
    x = torch.randn(2, 5, 16)
    past = torch.randn(2, 2, 3, 8)
    old("attention", Attention(), (x,), ["x"], {"x": {0: "batch", 1: "seq"}}, opset=14)
    old("past", Attention(), (x, past, past), ["x", "past_k", "past_v"], {"x": {0: "batch", 1: "seq"}, **{f"past_{p}": {0: "batch", 2: "past"} for p in "kv"}},
        ("y", "k", "v"))
    old("expanded", Expanded(), (torch.randn(3, 2, 6), torch.randn(1, 4, 6)), ["x", "row"], {"x": {0: "n", 1: "m"}, "row": {1: "k"}}, opset=12)
    old("squeezed", Squeezed(), (torch.randn(3, 2, 6),), ["x"], {"x": {0: "n", 1: "m"}})
    old("images", Images(), (torch.randn(2, 3, 32, 40),), ["x"], {"x": {0: "n", 2: "h", 3: "w"}}, opset=11)
    old("tagger", Tagger(), (torch.randint(0, 20, (2, 7)),), ["ids"], {"ids": {0: "n", 1: "t"}})
    old("branches", torch.jit.script(Branches()), (torch.randn(3, 4), 2), ["x", "n"], {"x": {0: "rows"}})
    old("ragged", Ragged(), (torch.randn(6, 3),), ["x"], {"x": {0: "n"}}, ("y", "rows"))
    import torchvision  # noqa: F401  registers its operators
    old("boxes", Boxes(), (torch.randn(1, 3, 32, 40), torch.tensor(0.5)), ["image", "least"], {"image": {2: "height", 3: "width"}}, ("boxes", "scores", "kinds"))


def main():
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    for write in (write_new, write_old):
        write()


if __name__ == "__main__":
    main()
