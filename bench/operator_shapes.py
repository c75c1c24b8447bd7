"""Operators of odd shapes, by kind: what odd_shapes.py draws.

Each function of KINDS makes the nodes of one small model, with its inputs and weights, and says what it is.
"""
import numpy as np
from onnx import helper

SIDES = (1, 2, 3, 5, 7, 10, 13, 17, 21, 31, 33, 50, 63, 65, 85, 100, 127, 197, 257, 300)
CHANNELS = (1, 3, 7, 8, 12, 16, 20, 24, 30, 32, 40, 48, 64, 72, 96, 100)
IMAGES = (5, 7, 9, 13, 14, 19, 20, 28, 33, 40, 56)
KINDS = {}


class Draw:
    """A model that is being drawn: `pick` chooses, `numbers` fills."""
    def __init__(self, pick, numbers):
        self.pick, self.numbers = pick, numbers
        self.inputs, self.weights, self.nodes = {}, {}, []

    def of(self, *choices):
        return self.pick.choice(choices)

    def side(self):
        return self.pick.choice(SIDES)

    def sides(self, n, most=2_000_000):
        while True:
            s = [self.side() for _ in range(n)]
            if 200 <= np.prod(s) <= most:
                return s

    def channels(self):
        return self.pick.choice(CHANNELS)

    def image(self):
        return self.pick.choice(IMAGES)

    def x(self, *shape, name="x", dtype="f4"):
        v = self.numbers.standard_normal(shape)
        self.inputs[name] = (v * 20).astype(dtype) if np.dtype(dtype).kind in "iu" else v.astype(dtype)
        return name

    def ints(self, name, shape, low, high, dtype="i8"):
        self.inputs[name] = self.numbers.integers(low, high, shape).astype(dtype)
        return name

    def w(self, name, *shape, dtype="f4"):
        self.weights[name] = (self.numbers.standard_normal(shape) / 10).astype(dtype)
        return name

    def const(self, name, value, dtype="i8"):
        self.weights[name] = np.array(value, dtype)
        return name

    def op(self, *args, **kw):
        self.nodes.append(helper.make_node(*args, **kw))


def kind(function):
    KINDS[function.__name__] = function
    return function


@kind
def conv1d(d):
    c, m, k, n, s, dil = d.channels(), d.channels(), d.of(1, 3, 5, 9, 15), d.of(50, 100, 333, 1000), d.of(1, 1, 2), d.of(1, 1, 2)
    g = d.of(1, 1, 2) if c % 2 == 0 and m % 2 == 0 else 1
    d.op("Conv", [d.x(1, c, n), d.w("w", m, c // g, k), d.w("b", m)], ["y"], kernel_shape=[k], pads=[dil * (k // 2)] * 2, strides=[s], group=g, dilations=[dil])
    return f"conv1d {c}->{m} k{k} s{s} d{dil} g{g} on {n}"


@kind
def depthwise1d(d):
    c, k, n, s = d.channels(), d.of(3, 5, 31), d.of(50, 100, 333, 1000), d.of(1, 1, 2)
    d.op("Conv", [d.x(1, c, n), d.w("w", c, 1, k), d.w("b", c)], ["y"], kernel_shape=[k], pads=[k // 2] * 2, strides=[s], group=c)
    return f"depthwise1d {c} k{k} s{s} on {n}"


@kind
def conv3d(d):
    c, m, k, s = d.of(1, 3, 8, 16, 20), d.of(8, 12, 16, 32), d.of(1, 3), d.of(1, 2)
    sp = [d.of(5, 8, 16), d.of(7, 14, 20), d.of(7, 14, 20)]
    d.op("Conv", [d.x(1, c, *sp), d.w("w", m, c, k, k, k), d.w("b", m)], ["y"], pads=[k // 2] * 6, strides=[s] * 3)
    return f"conv3d {c}->{m} k{k} s{s} on {sp}"


@kind
def grouped(d):
    g = d.of(2, 4, 8, 32)
    c, m, k, s = d.of(1, 2, 4, 6, 8, 16) * g, d.of(1, 2, 4, 6, 8, 16) * g, d.of(1, 3, 3, 5), d.of(1, 1, 2)
    h, w = d.image(), d.image()
    d.op("Conv", [d.x(1, c, h, w), d.w("w", m, c // g, k, k), d.w("b", m)], ["y"], pads=[k // 2] * 4, strides=[s] * 2, group=g)
    return f"grouped {c}->{m} g{g} k{k} s{s} on {h}x{w}"


@kind
def transposed(d):
    c, m, k, s = d.channels(), d.channels(), d.of(1, 2, 3, 4, 5), d.of(1, 2, 2)
    h, w = d.image(), d.image()
    d.op("ConvTranspose", [d.x(1, c, h, w), d.w("w", c, m, k, k), d.w("b", m)], ["y"], pads=[(k - s) // 2 if k > s else 0] * 4, strides=[s] * 2)
    return f"transposed {c}->{m} k{k} s{s} on {h}x{w}"


@kind
def transposed1d(d):
    c, m, s = d.of(8, 16, 32, 64, 128), d.of(4, 8, 16, 64), d.of(2, 4, 8)
    k, n = 2 * s, d.of(50, 100, 333)
    d.op("ConvTranspose", [d.x(1, c, n), d.w("w", c, m, k), d.w("b", m)], ["y"], pads=[s // 2] * 2, strides=[s])
    return f"transposed1d {c}->{m} k{k} s{s} on {n}"


@kind
def dilated(d):
    c, m, k, dil = d.channels(), d.channels(), 3, d.of(2, 3, 6, 12)
    h, w = d.image(), d.image()
    d.op("Conv", [d.x(1, c, h, w), d.w("w", m, c, k, k), d.w("b", m)], ["y"], pads=[dil] * 4, dilations=[dil] * 2)
    return f"dilated {c}->{m} d{dil} on {h}x{w}"


@kind
def conv_rect(d):
    c, m, kh, kw = d.channels(), d.channels(), d.of(1, 1, 3, 7), d.of(1, 3, 7, 9)
    h, w, n = d.image(), d.image(), d.of(1, 2, 5)
    d.op("Conv", [d.x(n, c, h, w), d.w("w", m, c, kh, kw)], ["y"], pads=[kh // 2, kw // 2, kh // 2, kw // 2])
    return f"conv {n}x{c}->{m} {kh}x{kw} on {h}x{w}"


@kind
def pool(d):
    kind, k, s = d.of("MaxPool", "AveragePool", "LpPool"), d.of(2, 3, 5, 7), d.of(1, 2, 3)
    c, h = d.channels(), d.image()
    kw = {"count_include_pad": 1} if kind == "AveragePool" and d.of(0, 1) else {}
    d.op(kind, [d.x(1, c, h + 5, h)], ["y"], kernel_shape=[k, k], strides=[s, s], pads=[k // 2] * 4, **kw)
    return f"{kind} {c} k{k} s{s} on {h + 5}x{h}"


@kind
def pool1d3d(d):
    kind, n = d.of("MaxPool", "AveragePool"), d.of(1, 3)
    c, sp = d.channels(), [d.of(20, 33, 50)] if n == 1 else [d.of(4, 8, 13)] * 3
    d.op(kind, [d.x(2, c, *sp)], ["y"], kernel_shape=[3] * n, strides=[2] * n, pads=[1] * 2 * n)
    return f"{kind} {n}d {c} on {sp}"


@kind
def globalpool(d):
    kind, c, h = d.of("GlobalAveragePool", "GlobalMaxPool"), d.channels() * 8, d.image()
    d.op(kind, [d.x(2, c, h, h)], ["y"])
    return f"{kind} {c} on {h}"


@kind
def reduce(d):
    kind = d.of("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceLogSum")
    s = d.sides(3)
    axes = d.of([0], [1], [2], [0, 1], [1, 2], [0, 2], [0, 1, 2])
    x = d.x(*s)
    if kind == "ReduceLogSum":
        d.inputs["x"] = np.abs(d.inputs["x"])
    d.op(kind, [x, d.const("a", axes)], ["y"], keepdims=d.of(0, 1))
    return f"{kind} {s} axes {axes}"


@kind
def argreduce(d):
    kind, s, a = d.of("ArgMax", "ArgMin"), d.sides(3), d.of(0, 1, 2)
    d.op(kind, [d.x(*s)], ["y"], axis=a, keepdims=0, select_last_index=d.of(0, 0, 1))
    return f"{kind} {s} axis {a}"


@kind
def softmax(d):
    kind, s, a = d.of("Softmax", "LogSoftmax", "Softmax", "Hardmax"), d.sides(3), d.of(0, 1, 2)
    d.op(kind, [d.x(*s)], ["y"], axis=a)
    return f"{kind} {s} axis {a}"


@kind
def norms(d):
    kind = d.of("LayerNormalization", "InstanceNormalization", "GroupNormalization", "BatchNormalization", "LRN", "LpNormalization", "MeanVarianceNormalization", "RMSNormalization")
    if kind in ("LayerNormalization", "RMSNormalization"):
        s, a = d.sides(3), d.of(-1, -2)
        extra = [d.w("s", *s[a:])] + ([d.w("b", *s[a:])] if kind[0] == "L" else [])
        d.op(kind, [d.x(*s), *extra], ["y"], axis=a)
        return f"{kind} {s} axis {a}"
    c, h, w = d.of(8, 12, 24, 32, 96), d.image(), d.image()
    s = [d.of(1, 2), c, h, w]
    x = d.x(*s)
    if kind in ("InstanceNormalization",):
        d.op(kind, [x, d.w("s", c), d.w("b", c)], ["y"])
    elif kind == "GroupNormalization":
        d.op(kind, [x, d.w("s", c), d.w("b", c)], ["y"], num_groups=d.of(2, 4))
    elif kind == "BatchNormalization":
        d.weights["v"] = np.abs(d.numbers.standard_normal(c)).astype("f4") + 1
        d.op(kind, [x, d.w("s", c), d.w("b", c), d.w("m", c), "v"], ["y"])
    elif kind == "LRN":
        d.op(kind, [x], ["y"], size=5)
    elif kind == "LpNormalization":
        d.op(kind, [x], ["y"], axis=d.of(1, -1), p=d.of(1, 2))
    else:
        d.op(kind, [x], ["y"])
    return f"{kind} {s}"


@kind
def transpose(d):
    n = d.of(2, 3, 4)
    s, p = d.sides(n), list(range(n))
    while p == list(range(n)):
        d.pick.shuffle(p)
    dt = d.of("f4", "f4", "f2", "u1", "i8")
    d.op("Transpose", [d.x(*s, dtype=dt)], ["y"], perm=p)
    return f"Transpose {dt} {s} {p}"


@kind
def concat(d):
    s, a, n = d.sides(3, 500_000), d.of(0, 1, 2), d.of(2, 3, 5)
    names = []
    for i in range(n):
        t = list(s)
        t[a] = d.side()
        names.append(d.x(*t, name=f"x{i}"))
    d.op("Concat", names, ["y"], axis=a)
    return f"Concat {n} of {s} axis {a}"


@kind
def slices(d):
    s, a = d.sides(3), d.of(0, 1, 2)
    step = d.of(1, 1, 2, -1, 3)
    st, en = (0, s[a] - s[a] // 4) if step > 0 else (s[a] - 1, -s[a] - 1)
    d.op("Slice", [d.x(*s), d.const("s", [st]), d.const("e", [en]), d.const("a", [a]), d.const("t", [step])], ["y"])
    return f"Slice {s} axis {a} step {step}"


@kind
def split(d):
    s, a = d.sides(3), d.of(0, 1, 2)
    s[a] = s[a] * 3
    d.op("Split", [d.x(*s)], ["y", "z", "u"], axis=a, num_outputs=3)
    return f"Split {s} axis {a}"


@kind
def pad(d):
    s, mode = d.sides(3), d.of("constant", "reflect", "edge", "wrap")
    p = [d.of(0, 1, 3) if n > 4 else 0 for n in s] * 2
    d.op("Pad", [d.x(*s), d.const("p", p)], ["y"], mode=mode)
    return f"Pad {mode} {s} by {p[:3]}"


@kind
def expand(d):
    s = d.sides(3)
    t = [n if d.of(0, 1) else 1 for n in s]
    d.op("Expand", [d.x(*t), d.const("s", s)], ["y"])
    return f"Expand {t} to {s}"


@kind
def tile(d):
    s, r = d.sides(3, 200_000), [d.of(1, 2, 3) for _ in range(3)]
    d.op("Tile", [d.x(*s), d.const("r", r)], ["y"])
    return f"Tile {s} by {r}"


@kind
def gather(d):
    kind, s, a = d.of("Gather", "GatherElements"), d.sides(3), d.of(0, 1, 2)
    dt = d.of("f4", "f4", "i8", "f2")
    t = d.of([7], [33], [5, 13]) if kind == "Gather" else [n if i != a else d.side() for i, n in enumerate(s)]
    d.op(kind, [d.x(*s, dtype=dt), d.ints("i", t, 0, s[a])], ["y"], axis=a)
    return f"{kind} {dt} {s} axis {a} by {t}"


@kind
def embedding(d):
    n, w, t = d.of(1000, 30000), d.of(17, 64, 384, 768), d.of([1, 7], [1, 128], [4, 65])
    d.op("Gather", [d.w("w", n, w), d.ints("i", t, 0, n)], ["y"])
    return f"embedding {n}x{w} by {t}"


@kind
def gathernd(d):
    s, n = d.sides(3), d.of(10, 100, 1000)
    k = d.of(1, 2, 3)
    d.inputs["i"] = np.stack([d.numbers.integers(0, s[j], n) for j in range(k)], -1).astype("i8")
    d.op("GatherND", [d.x(*s), "i"], ["y"])
    return f"GatherND {s} {n} of {k}"


@kind
def scatter(d):
    kind, s, a = d.of("ScatterElements", "ScatterND"), d.sides(3), d.of(0, 1, 2)
    red = d.of("none", "add", "max")
    if kind == "ScatterElements":
        t = list(s)
        t[a] = max(1, s[a] // 2)
        perm = d.numbers.permuted(np.broadcast_to(np.arange(s[a]).reshape([-1 if i == a else 1 for i in range(3)]), s), axis=a)
        d.inputs["i"] = np.take(perm, range(t[a]), axis=a).astype("i8")
        d.op(kind, [d.x(*s), "i", d.x(*t, name="u")], ["y"], axis=a, reduction=red)
        return f"{kind} {red} {s} axis {a}"
    n = max(1, s[0] // 2)
    d.inputs["i"] = d.numbers.permutation(s[0])[:n].reshape(n, 1).astype("i8")
    d.op(kind, [d.x(*s), "i", d.x(n, *s[1:], name="u")], ["y"], reduction=red)
    return f"{kind} {red} {s} {n} rows"


@kind
def onehot(d):
    n, c = d.of(10, 100, 1000), d.of(10, 100, 1000)
    d.weights["v"] = np.array([0, 1], "f4")
    d.op("OneHot", [d.ints("i", [n], 0, c), d.const("c", c), "v"], ["y"], axis=d.of(-1, 0))
    return f"OneHot {n} of {c}"


@kind
def cumsum(d):
    s, a = d.sides(3), d.of(0, 1, 2)
    d.op("CumSum", [d.x(*s), d.const("a", a)], ["y"], exclusive=d.of(0, 1), reverse=d.of(0, 1))
    return f"CumSum {s} axis {a}"


@kind
def topk(d):
    s, a = d.sides(2), d.of(0, 1)
    k = min(d.of(1, 5, 50), s[a])
    d.op("TopK", [d.x(*s), d.const("k", [k])], ["y", "z"], axis=a)
    return f"TopK {k} of {s} axis {a}"


@kind
def nonzero(d):
    s = d.sides(2)
    x = d.x(*s)
    d.inputs["x"] = np.where(d.numbers.random(s) < 0.3, d.inputs["x"], 0).astype("f4")
    d.op("NonZero", [x], ["y"])
    return f"NonZero {s}"


@kind
def unary(d):
    kind = d.of("Erf", "Tanh", "Sigmoid", "Exp", "Log", "Sqrt", "Sin", "Cos", "Tan", "Softplus", "Elu", "Selu", "Gelu", "HardSwish", "Mish", "Atan", "Asin", "Sinh", "Round", "Floor", "Reciprocal", "Abs", "Neg", "Sign", "LeakyRelu", "Celu", "Softsign", "Acosh", "Asinh", "Atanh", "ThresholdedRelu", "IsNaN", "Not", "Swish")
    n = d.of(1000, 10007, 200_003)
    dt = d.of("f4", "f4", "f4", "f2", "f8")
    x = d.x(n, dtype=dt)
    if kind == "Not":
        d.inputs["x"] = d.inputs["x"] > 0
    elif kind in ("Log", "Sqrt", "Acosh"):
        d.inputs["x"] = (np.abs(d.inputs["x"]) + 1).astype(dt)
    elif kind in ("Asin", "Atanh"):
        d.inputs["x"] = np.clip(d.inputs["x"] / 5, -0.9, 0.9).astype(dt)
    d.op(kind, [x], ["y"])
    return f"{kind} {dt} {n}"


@kind
def binary(d):
    kind = d.of("Add", "Mul", "Div", "Sub", "Pow", "Max", "Min", "Mod", "Less", "Equal", "PRelu", "BitwiseAnd", "And", "Where")
    s = d.sides(3)
    t = [n if d.of(0, 1, 1) else 1 for n in s][d.of(0, 0, 1, 2):]
    dt = d.of("f4", "f4", "i8", "i4", "f2")
    if kind in ("PRelu", "Pow"):
        dt = "f4"
    if kind == "BitwiseAnd":
        dt = "i8"
    x, u = d.x(*s, dtype=dt), d.x(*t, name="u", dtype=dt)
    if kind == "Pow":
        d.inputs["x"] = np.abs(d.inputs["x"]) + 0.1
    if kind in ("Mod", "Div") and dt[0] == "i":
        d.inputs["u"] = np.abs(d.inputs["u"]) + 1
    kw = {"fmod": 1} if kind == "Mod" and dt[0] == "f" else {}
    if kind in ("And", "Where"):
        d.inputs["x"] = d.inputs["x"] > 0
    if kind == "And":
        d.inputs["u"] = d.inputs["u"] > 0
    if kind == "Where":
        d.op(kind, [x, u, d.x(1, name="v", dtype=dt)], ["y"])
    else:
        d.op(kind, [x, u], ["y"], **kw)
    return f"{kind} {dt} {s} {t}"


@kind
def cast(d):
    a, b = d.of("f4", "f2", "i8", "i4", "u1", "f8"), d.of(1, 10, 7, 6, 2, 11, 9)
    n = d.of(1000, 10007, 200_003)
    x = d.x(n, dtype=a)
    d.inputs["x"] = np.abs(d.inputs["x"])
    d.op("Cast", [x], ["y"], to=b)
    return f"Cast {a} to {b} {n}"


@kind
def resize(d):
    mode, c, h, w = d.of("nearest", "linear", "linear", "cubic"), d.of(1, 3, 16, 30, 64), d.image(), d.image()
    s = d.of(2.0, 0.5, 1.7, 3.0)
    ct = d.of("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    d.weights["r"] = np.array([1, 1, s, s], "f4")
    d.op("Resize", [d.x(1, c, h, w), "", "r"], ["y"], mode=mode, coordinate_transformation_mode=ct)
    return f"Resize {mode} {ct} {c} on {h}x{w} by {s}"


@kind
def gridsample(d):
    c, h, w, mode = d.of(1, 3, 16, 32), d.image(), d.image(), d.of("linear", "nearest", "cubic")
    d.inputs["g"] = d.numbers.uniform(-1, 1, (1, h, w, 2)).astype("f4")
    d.op("GridSample", [d.x(1, c, h, w), "g"], ["y"], mode=mode, padding_mode=d.of("zeros", "border", "reflection"))
    return f"GridSample {mode} {c} on {h}x{w}"


@kind
def roialign(d):
    c, h, n = d.of(3, 16, 64), d.of(14, 28, 50), d.of(1, 7, 50)
    lo = d.numbers.uniform(0, h / 2, (n, 2))
    d.inputs["r"] = np.concatenate([lo, lo + d.numbers.uniform(1, h / 2, (n, 2))], 1).astype("f4")
    d.inputs["i"] = np.zeros(n, "i8")
    d.op("RoiAlign", [d.x(1, c, h, h), "r", "i"], ["y"], output_height=7, output_width=7, sampling_ratio=2)
    return f"RoiAlign {n} of {c} on {h}"


@kind
def shuffle(d):
    kind, b = d.of("DepthToSpace", "SpaceToDepth"), d.of(2, 3)
    c, h = b * b * d.of(1, 3, 16), b * d.of(5, 7, 14, 20)
    d.op(kind, [d.x(1, c, h, h)], ["y"], blocksize=b)
    return f"{kind} {c} on {h} by {b}"


@kind
def recurrent(d):
    kind = d.of("LSTM", "GRU", "RNN")
    t, b, i, h, two = d.of(1, 7, 50, 100), d.of(1, 1, 4, 13), d.of(10, 32, 100), d.of(8, 24, 64, 128, 200), d.of(0, 1)
    g, n = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 2 if two else 1
    kw = {"linear_before_reset": d.of(0, 1)} if kind == "GRU" else {}
    d.op(kind, [d.x(t, b, i), d.w("w", n, g * h, i), d.w("r", n, g * h, h), d.w("b", n, 2 * g * h)], ["y"], hidden_size=h,
         direction="bidirectional" if two else d.of("forward", "reverse"), **kw)
    return f"{kind} {t}x{b}x{i} hidden {h} dirs {n} {kw}"


@kind
def einsum(d):
    eq, dims = d.of(("bij,bjk->bik", "bijk"), ("bhid,bhjd->bhij", "bhijd"), ("ij,jk->ik", "ijk"), ("bij,jk->bik", "bijk"), ("bchw,cd->bdhw", "bchwd"), ("i,j->ij", "ij"), ("bij->bji", "bij"), ("bij,bij->bi", "bij"), ("bqhd,bkhd->bhqk", "bqhkd"))
    size = {c: d.of(1, 2, 4) if c in "bh" else d.of(7, 17, 32, 50, 65, 100) for c in dims}
    terms = eq.split("->")[0].split(",")
    d.op("Einsum", [d.x(*[size[c] for c in t], name=f"x{i}") for i, t in enumerate(terms)], ["y"], equation=eq)
    return f"Einsum {eq} {size}"


@kind
def batched(d):
    b, m, n, k = d.of(1, 4, 8, 12), d.side(), d.side(), d.of(8, 20, 32, 40, 64, 80)
    turned = d.of(0, 1)
    x, u = d.x(b, m, k), d.x(b, *([n, k] if turned else [k, n]), name="u")
    if turned:
        d.op("Transpose", [u], ["v"], perm=[0, 2, 1])
        u = "v"
    d.op("MatMul", [x, u], ["y"])
    return f"batched {b} {m}x{n}x{k} {'turned' if turned else ''}"


@kind
def product(d):
    m, n, k = d.side(), d.side(), d.side()
    dt = d.of("f4", "f4", "f2", "f8", "i4")
    w = d.w("w", k, n, dtype=dt) if dt[0] == "f" else d.const("w", d.numbers.integers(-9, 9, (k, n)), "i4")
    d.op("MatMul", [d.x(m, k, dtype=dt), w], ["y"])
    return f"MatMul {dt} {m}x{n}x{k}"


@kind
def gemm(d):
    m, n, k = d.side(), d.side(), d.side()
    ta, tb = d.of(0, 1), d.of(0, 1)
    d.op("Gemm", [d.x(*([k, m] if ta else [m, k])), d.x(*([n, k] if tb else [k, n]), name="u"), d.w("b", n)], ["y"], transA=ta, transB=tb, alpha=d.of(1.0, 0.5))
    return f"Gemm {m}x{n}x{k} {ta}{tb}"


@kind
def halfconv(d):
    c, m, k, s = d.channels(), d.channels(), d.of(1, 3, 5), d.of(1, 2)
    h, w = d.image(), d.image()
    d.op("Conv", [d.x(1, c, h, w, dtype="f2"), d.w("w", m, c, k, k, dtype="f2")], ["y"], pads=[k // 2] * 4, strides=[s] * 2)
    return f"half conv {c}->{m} k{k} s{s} on {h}x{w}"


@kind
def halfmisc(d):
    kind, s = d.of("Softmax", "LayerNormalization", "ReduceMean", "MaxPool", "Add", "Gelu", "AveragePool"), d.sides(3)
    if "Pool" in kind:
        c, h = d.channels(), d.image()
        d.op(kind, [d.x(1, c, h, h, dtype="f2")], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        return f"half {kind} {c} on {h}"
    x = d.x(*s, dtype="f2")
    extra = {"LayerNormalization": lambda: [d.w("s", s[2], dtype="f2"), d.w("b", s[2], dtype="f2")], "ReduceMean": lambda: [d.const("a", [d.of(1, 2)])], "Add": lambda: [d.w("s", s[2], dtype="f2")]}.get(kind, list)()
    d.op(kind, [x, *extra], ["y"])
    return f"half {kind} {s}"


@kind
def quantized(d):
    kind = d.of("MatMulInteger", "QLinearMatMul", "QLinearConv", "ConvInteger", "DynamicQuantizeLinear", "QuantizeLinear", "DequantizeLinear", "QLinearConv", "qdqconv", "qdqmatmul")
    m, n, k = d.side(), d.side(), d.side()
    wd = d.of("u1", "i1")
    wi = lambda *s: d.const("w", d.numbers.integers(0 if wd == "u1" else -100, 100, s), wd)
    f = lambda name, v: d.const(name, v, "f4")
    if kind == "MatMulInteger":
        d.op(kind, [d.x(m, k, dtype="u1"), wi(k, n), d.const("z", 100, "u1")], ["y"])
    elif kind == "QLinearMatMul":
        d.op(kind, [d.x(m, k, dtype="u1"), f("s", 0.1), d.const("z", 100, "u1"), wi(k, n), f("t", 0.01), d.const("o", 3, wd), f("r", 0.5), d.const("q", 9, "u1")], ["y"])
    elif kind in ("QLinearConv", "ConvInteger", "qdqconv"):
        c, o, kk, s, h, g = d.channels(), d.channels(), d.of(1, 3), d.of(1, 2), d.image(), 1
        if d.of(0, 0, 1):
            o = g = c
        what = f"{kind} {c}->{o} k{kk} s{s} g{g} on {h}"
        kw = dict(pads=[kk // 2] * 4, strides=[s] * 2, group=g)
        if kind == "ConvInteger":
            d.op(kind, [d.x(1, c, h, h, dtype="u1"), wi(o, c // g, kk, kk), d.const("z", 7, "u1")], ["y"], **kw)
        elif kind == "QLinearConv":
            d.op(kind, [d.x(1, c, h, h, dtype="u1"), f("s", 0.1), d.const("z", 100, "u1"), wi(o, c // g, kk, kk), f("t", 0.01), d.const("o", 0, wd), f("r", 0.5), d.const("q", 9, "u1")], ["y"], **kw)
        else:
            d.const("w", d.numbers.integers(-100, 100, (o, c // g, kk, kk)), "i1")
            f("s", 0.1), d.const("z", 100, "u1"), f("t", 0.01), d.const("o", 0, "i1"), f("r", 0.5)
            d.op("QuantizeLinear", [d.x(1, c, h, h), "s", "z"], ["a"])
            d.op("DequantizeLinear", ["a", "s", "z"], ["b"])
            d.op("DequantizeLinear", ["w", "t", "o"], ["c"])
            d.op("Conv", ["b", "c"], ["e"], **kw)
            d.op("QuantizeLinear", ["e", "r", "z"], ["g"])
            d.op("DequantizeLinear", ["g", "r", "z"], ["y"])
        return what
    elif kind == "qdqmatmul":
        d.const("w", d.numbers.integers(-100, 100, (k, n)), "i1")
        f("s", 0.1), d.const("z", 100, "u1"), f("t", 0.01), d.const("o", 0, "i1"), f("r", 0.5)
        d.op("QuantizeLinear", [d.x(m, k), "s", "z"], ["a"])
        d.op("DequantizeLinear", ["a", "s", "z"], ["b"])
        d.op("DequantizeLinear", ["w", "t", "o"], ["c"])
        d.op("MatMul", ["b", "c"], ["e"])
        d.op("QuantizeLinear", ["e", "r", "z"], ["g"])
        d.op("DequantizeLinear", ["g", "r", "z"], ["y"])
    elif kind == "DynamicQuantizeLinear":
        d.op(kind, [d.x(m * 37)], ["y", "z", "u"])
        return f"{kind} {m * 37}"
    elif kind == "QuantizeLinear":
        d.op(kind, [d.x(m, k, n % 50 + 1), f("s", 0.1), d.const("z", 100, "u1")], ["y"])
        return f"{kind} {m * k * (n % 50 + 1)}"
    else:
        d.op(kind, [d.x(m, k, n % 50 + 1, dtype="u1"), f("s", 0.1), d.const("z", 100, "u1")], ["y"])
        return f"{kind} {m * k * (n % 50 + 1)}"
    return f"{kind} {wd} {m}x{n}x{k}"


@kind
def signal(d):
    kind, b, n = d.of("DFT", "DFT", "STFT"), d.of(1, 4), d.of(64, 100, 128, 400, 512)
    if kind == "DFT":
        d.op("DFT", [d.x(b, n, 1), "", d.const("a", 1)], ["y"], onesided=d.of(0, 1))
        return f"DFT {b}x{n}"
    d.weights["w"] = np.hanning(n).astype("f4")
    d.op("STFT", [d.x(b, 4000, 1), d.const("s", n // 2), "w"], ["y"])
    return f"STFT {b}x4000 frame {n}"


@kind
def attention(d):
    b, h, q, kv, e = d.of(1, 2, 4), d.of(1, 4, 8, 12), d.of(1, 7, 50, 128, 197), d.of(7, 64, 128, 197, 300), d.of(32, 40, 64, 80)
    d.op("Attention", [d.x(b, h, q, e), d.x(b, h, kv, e, name="k"), d.x(b, h, kv, e, name="v")], ["y"], is_causal=d.of(0, 0, 1))
    return f"Attention {b}x{h} {q}x{kv} of {e}"
