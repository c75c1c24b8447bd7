"""Cases for onnx_cases.py of operators of the domain com.microsoft: options, types and sizes of each, against ONNX Runtime."""
import numpy as np
from ml_dtypes import int4, uint4

f16, f32, i32, i64, u8, i8 = np.float16, np.float32, np.int32, np.int64, np.uint8, np.int8
DOMAIN = "com.microsoft"


def tolerance(name, outputs):
    """Of ONNX Runtime's own arithmetic: one step of quantised results, what a type of floats holds."""
    kinds = {x.dtype for x in outputs}
    if name.startswith("ms_qmoe_8") and name.endswith("_blocks"):  # its own products are of inputs of 8 bits
        return 0, 0.05 * max(np.abs(x).max() for x in outputs)
    if kinds & {np.dtype(u8), np.dtype(i8)}:
        return 0, 1
    if name.endswith("_nothing"):  # adds -10,000 to all scores, next to which they have three digits left
        return 0, 5e-3
    return (5e-3, 5e-3) if np.dtype(f16) in kinds else (1e-4, 2e-5)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def split(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(0, 2, 1, 3)


def join(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def add_activations(one, rand):
    for t in (f32, f16):
        at = "_" + np.dtype(t).name
        for shape in ((0, 3), (1,), (2, 17), (3, 4, 33)):
            x, bias = (rand(*shape) * 2).astype(t), rand(shape[-1]).astype(t)
            n = at + "_" + "x".join(map(str, shape))
            if t is f32:  # ONNX Runtime has no other kernels of these two
                one("ms_gelu" + n, "Gelu", [x], domain=DOMAIN)
                one("ms_bias_gelu" + n, "BiasGelu", [x, bias], domain=DOMAIN)
            one("ms_fast_gelu" + n, "FastGelu", [x], domain=DOMAIN)
            one("ms_fast_gelu_bias" + n, "FastGelu", [x, bias], domain=DOMAIN)
            if t is f32:
                one("ms_quick_gelu" + n, "QuickGelu", [x], domain=DOMAIN)
                one("ms_quick_gelu_alpha" + n, "QuickGelu", [x], domain=DOMAIN, alpha=0.5)


def add_products(one, rand):
    for a, b, attrs in (((3, 4), (4, 5), {}), ((4, 3), (4, 5), {"transA": 1}), ((3, 4), (5, 4), {"transB": 1, "alpha": 0.25}),
                        ((2, 1, 4, 3), (6, 5, 4), {"transA": 1, "transB": 1}), ((4,), (4, 5), {}), ((2, 3, 4), (4,), {}),
                        ((3, 2, 5, 4), (2, 5, 4, 6), {"transBatchA": 1}), ((4, 2, 5, 3), (2, 5, 4, 6), {"transBatchA": 1, "transA": 1}),
                        ((2, 5, 3, 4), (6, 2, 5, 4), {"transBatchB": 1, "transB": 1}), ((0, 4), (4, 5), {}), ((1, 1), (1, 1), {"alpha": -2.0})):
        name = "x".join(map(str, a)) + "_" + "x".join(map(str, b)) + "".join("_" + k for k in attrs)
        one("ms_fused_matmul_" + name, "FusedMatMul", [rand(*a), rand(*b)], domain=DOMAIN, **attrs)
    x, w, bias = rand(2, 3, 9, 7), rand(5, 3, 3, 3), rand(5)
    for activation, params in (("Relu", None), ("Tanh", None), ("Sigmoid", None), ("LeakyRelu", [0.3]), ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.3, 0.4])):
        attrs = {"activation": activation, **({"activation_params": params} if params else {})}
        one(f"ms_fused_conv_{activation}", "FusedConv", [x, w, bias], constants=(1, 2), domain=DOMAIN, pads=[1, 1, 1, 1], **attrs)
    one("ms_fused_conv_sum", "FusedConv", [x, w, bias, rand(2, 5, 7, 5)], domain=DOMAIN, activation="Relu")
    one("ms_fused_conv_plain", "FusedConv", [x, rand(6, 1, 3, 3)], domain=DOMAIN, group=3, strides=[2, 1])


def add_normalisations(one, rand):
    for t in (f32, f16):
        at = "_" + np.dtype(t).name
        for shape in ((2, 3, 8), (1, 1, 1), (2, 5, 33), (0, 3, 16)):
            n = at + "_" + "x".join(map(str, shape))
            x, skip, gamma, beta, bias = (v.astype(t) for v in (rand(*shape), rand(*shape), rand(shape[-1]), rand(shape[-1]), rand(shape[-1])))
            one("ms_skip_norm" + n, "SkipLayerNormalization", [x, skip, gamma, beta], domain=DOMAIN, epsilon=1e-5)
            one("ms_skip_norm_bias" + n, "SkipLayerNormalization", [x, skip, gamma, None, bias], domain=DOMAIN, epsilon=1e-5)
            one("ms_skip_norm_sum" + n, "SkipLayerNormalization", [x, skip, gamma, beta, bias], outputs=("o0", "", "", "o1"), domain=DOMAIN, epsilon=1e-3)
            one("ms_skip_rms" + n, "SkipSimplifiedLayerNormalization", [x, skip, gamma], domain=DOMAIN, epsilon=1e-5)
            one("ms_skip_rms_sum" + n, "SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], outputs=("o0", "", "", "o1"), domain=DOMAIN, epsilon=1e-5)
            one("ms_rms" + n, "SimplifiedLayerNormalization", [x, gamma], epsilon=1e-5)
            if shape[0]:
                one("ms_skip_norm_one_row" + n, "SkipLayerNormalization", [x, skip[:1], gamma, beta], domain=DOMAIN)
                one("ms_skip_norm_rank_2" + n, "SkipLayerNormalization", [x, skip[0], gamma, beta], domain=DOMAIN)
    one("ms_rms_axis", "SimplifiedLayerNormalization", [rand(2, 3, 4), rand(3, 4)], axis=1)
    one("layer_norm_opset_16", "LayerNormalization", [rand(3, 8), rand(8), rand(8)], opset=16)
    words, places, segments = rand(11, 8), rand(6, 8), rand(3, 8)
    ids, seg = np.array([[3, 0, 10, 7, 1], [2, 2, 9, 5, 4]], i32), np.array([[0, 1, 2, 0, 1], [1, 1, 0, 2, 2]], i32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], i32)
    gamma, beta = rand(8), rand(8)
    one("ms_embed", "EmbedLayerNormalization", [ids, seg, words, places, segments, gamma, beta, mask], outputs=2, domain=DOMAIN)
    one("ms_embed_plain", "EmbedLayerNormalization", [ids, None, words, places, None, gamma, beta], outputs=2, domain=DOMAIN)
    one("ms_embed_sum", "EmbedLayerNormalization", [ids, seg, words, places, segments, gamma, beta, None, np.array([[5, 4, 3, 2, 1]], i32)],
        outputs=3, domain=DOMAIN, epsilon=1e-3)
    tables = [np.round(rand(*shape) * 40 + 120).clip(0, 255).astype(u8) for shape in ((11, 8), (6, 8), (3, 8), (8,), (8,))]
    scales, zeros = [np.array(0.01 * (k + 1), f32) for k in range(5)], [np.array(110 + 5 * k, u8) for k in range(5)]
    for name, k in (("", 1), ("_plain", 0)):
        def with_segments(values, left_out=None):
            return [*values[:2], values[2] if k else left_out, *values[3:]]
        one("ms_qembed" + name, "QEmbedLayerNormalization", [ids, seg if k else None, *with_segments(tables), mask if k else None, *with_segments(scales),
                                                             *with_segments(zeros)], outputs=2, domain=DOMAIN)


def masks(b, s, t):
    """Of each kind for b sequences of s queries and t keys."""
    ends = np.linspace(t, max(t // 2, 1), b).astype(i32)
    keys = (np.arange(t) < ends[:, None]).astype(i32)
    each = np.repeat(keys[:, None], s, 1)
    each[:, :, 0] = 1
    return {"none": None, "ends": ends, "starts": np.concatenate([ends, np.minimum(1, ends - 1)]).astype(i32), "keys": keys, "each": each,
            "nothing": np.zeros((b, t), i32)}


def add_attention(one, rand):
    for b, s, past, heads, size in ((2, 5, 0, 3, 4), (1, 1, 0, 1, 1), (2, 3, 4, 2, 8), (3, 17, 0, 2, 16)):
        h = heads * size
        x, w, bias = rand(b, s, 7), rand(7, 3 * h), rand(3 * h)
        cache = rand(2, b, heads, past, size) if past else None
        for kind, mask in masks(b, s, s + past).items():
            for causal in (0, 1):
                name = f"ms_attention_{b}_{s}_{past}_{heads}_{kind}{'_causal' * causal}"
                one(name, "Attention", [x, w, bias, mask, cache], outputs=2 if past else 1, constants=(1, 2), domain=DOMAIN, num_heads=heads,
                    unidirectional=causal)
    x, w, bias = rand(2, 5, 7), rand(7, 40), rand(40)
    one("ms_attention_sizes", "Attention", [x, w, bias], domain=DOMAIN, num_heads=2, qkv_hidden_sizes=[16, 16, 8])
    one("ms_attention_bias", "Attention", [x, rand(7, 24), rand(24), None, None, rand(1, 2, 5, 5)], domain=DOMAIN, num_heads=2, scale=0.3)
    one("ms_attention_filter", "Attention", [x, rand(7, 24), rand(24), masks(2, 5, 5)["keys"]], domain=DOMAIN, num_heads=2, mask_filter_value=-2.0)
    one("ms_attention_present", "Attention", [x, rand(7, 24), rand(24)], outputs=2, domain=DOMAIN, num_heads=2)
    a, w8 = rand(2, 5, 8, dtype=i32).astype(u8), rand(8, 24, dtype=i8)
    scales = [np.array(0.02, f32), np.array(0.05, f32)]
    one("ms_qattention", "QAttention", [a, w8, rand(24), *scales, None, np.array(7, u8), np.array(0, i8)], constants=(1, 2), domain=DOMAIN, num_heads=2)
    one("ms_qattention_columns", "QAttention", [a, w8, rand(24), scales[0], np.linspace(0.01, 0.05, 24).astype(f32), np.array([5, 3], i32), np.array(7, u8),
                                                np.zeros(24, i8)], constants=(1, 2), domain=DOMAIN, num_heads=2, unidirectional=1)
    one("ms_qattention_past", "QAttention", [a, w8, rand(24), *scales, None, np.array(7, u8), np.array(0, i8), rand(2, 2, 2, 3, 4)], outputs=2, domain=DOMAIN,
        num_heads=2, unidirectional=1)


def add_multi_head(one, rand):
    for b, s, l, past, heads, size in ((2, 5, 5, 0, 3, 4), (2, 3, 7, 0, 2, 8), (2, 4, 4, 3, 2, 8), (1, 1, 1, 9, 2, 16), (1, 1, 1, 0, 1, 1)):
        h = heads * size
        q, k, v = rand(b, s, h), rand(b, l, h), rand(b, l, h)
        caches = [rand(b, heads, past, size), rand(b, heads, past, size)] if past else [None, None]
        for kind, mask in masks(b, s, l + past).items():
            if kind == "starts" or (kind == "ends" and past):
                continue
            one(f"ms_mha_{b}_{s}_{l}_{past}_{heads}_{kind}", "MultiHeadAttention", [q, k, v, None, mask, None, *caches], outputs=3, domain=DOMAIN, num_heads=heads)
        name = f"ms_mha_{b}_{s}_{l}_{past}_{heads}"
        one(name + "_bias", "MultiHeadAttention", [q, k, v, rand(3 * h), None, rand(1, heads, s, l + past), *caches], outputs=3, domain=DOMAIN, num_heads=heads)
        if s == l:
            one(name + "_causal", "MultiHeadAttention", [q, k, v, None, None, None, *caches], outputs=3, domain=DOMAIN, num_heads=heads, unidirectional=1, scale=0.4)
    q, k, v = rand(2, 3, 8), rand(2, 5, 8), rand(2, 5, 12)
    one("ms_mha_wide_values", "MultiHeadAttention", [q, k, v, rand(28)], domain=DOMAIN, num_heads=2)
    # Its type is inferred as none.
    scores = split(q, 2) @ split(k, 2).swapaxes(2, 3) / 2
    one("ms_mha_scores", "MultiHeadAttention", [q, k, v], outputs=("o0", "", "", "o1"), domain=DOMAIN, num_heads=2, expect=[join(softmax(scores) @ split(v, 2)), scores])
    one("ms_mha_cross", "MultiHeadAttention", [q, rand(2, 2, 5, 4), rand(2, 2, 5, 4)], domain=DOMAIN, num_heads=2)
    one("ms_mha_no_keys", "MultiHeadAttention", [rand(1, 2, 8), rand(1, 2, 8), rand(1, 2, 8), None, None, None, rand(1, 2, 0, 4), rand(1, 2, 0, 4)], outputs=3,
        domain=DOMAIN, num_heads=2)
    # ONNX Runtime packs these on GPUs only.
    qkv, bias = rand(2, 3, 2, 3, 4), rand(24)
    parts = [split((qkv[:, :, :, i].reshape(2, 3, 8) + bias[8 * i:8 * i + 8]), 2) for i in range(3)]
    one("ms_mha_packed", "MultiHeadAttention", [qkv, None, None, bias], domain=DOMAIN, num_heads=2,
        expect=[join(softmax(parts[0] @ parts[1].swapaxes(2, 3) / 2) @ parts[2])])
    kv = rand(2, 5, 2, 2, 4)
    keys, values = (split(kv[:, :, :, i].reshape(2, 5, 8), 2) for i in range(2))
    one("ms_mha_packed_pairs", "MultiHeadAttention", [q, kv], domain=DOMAIN, num_heads=2,
        expect=[join(softmax(split(q, 2) @ keys.swapaxes(2, 3) / 2) @ values)])


def add_shared_buffers(one, rand):
    """The past has room for keys that come; of it `past` are in use."""
    def case(name, batch, rows, heads, size, room, past, mask=None, beams=None, scores=None, bias=None, wide=1, length=(1,), constants=(), expect=None, **attrs):
        h = heads * size
        inputs = [rand(batch, rows, h), rand(batch, rows, h), rand(batch, rows, wide * h), bias, mask, scores, rand(batch, heads, room, size),
                  rand(batch, heads, room, wide * size), np.full(length, past, i32), beams]
        one("ms_mha_shared_" + name, "MultiHeadAttention", inputs, outputs=3, constants=constants, domain=DOMAIN, num_heads=heads,
            expect=expect and expect(*inputs), **attrs)

    def chosen(q, k, v, _bias, _mask, _number, keys, values, past, beams):
        """With what ONNX Runtime leaves out where a sequence has several queries."""
        past, heads, rows = int(past[0]), keys.shape[1], q.shape[1]
        results = []
        for fresh, old in ((k, keys), (v, values)):
            present = old.copy()
            present[:, :, past:past + rows] = split(fresh, heads)
            seen, width = present[:, :, :past + rows].copy(), beams.shape[1]
            for b in range(len(q)):
                for t in range(past):
                    seen[b, :, t] = old[b - b % width + beams[b // width, b % width, t], :, t]
            results.append((present, seen))
        scores = split(q, heads) @ results[0][1].swapaxes(2, 3) / np.sqrt(keys.shape[3])
        return [join(softmax(scores) @ results[1][1]).astype(f32), results[0][0], results[1][0]]

    beams = abs(rand(2, 3, 9, dtype=i32)) % 3
    case("step", 2, 1, 2, 4, 9, 5)
    case("step_known", 2, 1, 2, 4, 9, 5, constants=(8,))
    case("step_scalar", 2, 1, 2, 4, 9, 5, length=())
    case("first", 2, 1, 3, 8, 9, 0)
    case("last", 2, 1, 2, 16, 33, 32)
    case("full_of_one", 1, 1, 1, 1, 1, 0)
    case("prompt", 2, 7, 2, 8, 17, 0, unidirectional=1)
    case("more", 2, 3, 2, 8, 17, 6, unidirectional=1)
    case("mask", 2, 1, 2, 4, 9, 5, mask=(np.arange(6) < np.array([[6], [4]])).astype(i32))
    case("bias", 2, 1, 2, 4, 9, 5, scores=rand(1, 2, 1, 6), bias=rand(24))
    case("beams", 6, 1, 2, 8, 9, 5, beams=beams.astype(i32))
    case("beams_known", 6, 1, 2, 8, 9, 5, beams=beams.astype(i32), constants=(8, 9))
    case("beams_mask", 6, 1, 2, 8, 9, 5, beams=beams.astype(i32), mask=np.array([[1, 0, 1, 1, 1, 1]] * 6, i32))
    case("beams_first", 6, 1, 2, 8, 9, 0, beams=beams.astype(i32))
    case("one_beam", 2, 1, 2, 8, 9, 5, beams=np.zeros((2, 1, 9), i32))
    case("beams_of_more", 6, 2, 2, 8, 9, 5, beams=beams.astype(i32), expect=chosen)
    # Across sequences, and without a past, the length says nothing.
    q = rand(2, 3, 8)
    one("ms_mha_shared_cross", "MultiHeadAttention", [q, rand(2, 2, 5, 4), rand(2, 2, 5, 4), None, None, None, None, None, np.array([2], i32)], domain=DOMAIN, num_heads=2)
    one("ms_mha_shared_none", "MultiHeadAttention", [q, q, q, None, None, None, None, None, np.array([2], i32)], outputs=3, domain=DOMAIN, num_heads=2)


def tables(rand, places, half):
    angles = rand(places, half)
    return np.cos(angles), np.sin(angles)


def add_grouped(one, rand):
    def gqa(name, b, s, past, room, heads, kv, size, lengths, packed=False, rotary=0, half=0, t=f32, bias=None, sink=None, outputs=3, positions=None,
            constants=(6,), **attrs):
        """`lengths`: of all keys of each sequence. The cache has `room`, of which `past` was used before the call."""
        q, k, v = (rand(b, s, n * size).astype(t) for n in (heads, kv, kv))
        inputs = [np.concatenate([q, k, v], 2), None, None] if packed else [q, k, v]
        inputs += [rand(b, kv, room, size).astype(t) for _ in range(2)] if room is not None else [None, None]
        inputs += [np.array(lengths, i32) - 1, np.array(past + s, i32)]
        inputs += [x.astype(t) for x in tables(rand, 40, half or size // 2)] if rotary else [None, None]
        inputs += [positions, bias, sink]
        one("ms_gqa_" + name, "GroupQueryAttention", inputs, outputs=outputs, constants=constants, domain=DOMAIN, num_heads=heads, kv_num_heads=kv, do_rotary=rotary, **attrs)

    for t in (f32, f16):
        n = "_" + np.dtype(t).name
        gqa("prompt" + n, 2, 5, 0, None, 4, 2, 8, [5, 5], t=t)
        gqa("prompt_empty_cache" + n, 1, 5, 0, 0, 4, 2, 8, [5], t=t)
        gqa("step" + n, 2, 1, 7, 7, 4, 2, 16, [8, 8], t=t, rotary=1)
        gqa("step_ragged" + n, 3, 1, 7, 7, 4, 1, 16, [8, 3, 5], t=t, rotary=1)
        gqa("packed" + n, 2, 5, 0, None, 6, 2, 16, [5, 5], t=t, packed=True, rotary=1)
    gqa("step_room", 2, 1, 7, 20, 4, 2, 16, [8, 4], rotary=1)
    gqa("prompt_room", 1, 5, 0, 20, 4, 4, 16, [5], rotary=1)
    gqa("step_known_lengths", 3, 1, 7, 7, 4, 2, 16, [8, 1, 5], constants=(5, 6))
    gqa("more", 1, 4, 6, 6, 4, 2, 16, [10], rotary=1)
    gqa("one", 1, 1, 0, None, 1, 1, 16, [1])
    gqa("interleaved", 1, 5, 0, None, 2, 1, 16, [5], rotary=1, rotary_interleaved=1)
    gqa("part", 1, 5, 0, None, 2, 1, 32, [5], rotary=1, half=8)
    gqa("positions", 2, 1, 7, 7, 2, 1, 16, [8, 8], rotary=1, positions=np.array([[7], [9]], i64))
    gqa("softcap", 2, 1, 7, 7, 2, 1, 16, [8, 6], softcap=1.5)
    gqa("scale", 2, 3, 0, None, 2, 1, 16, [3, 3], scale=0.7)
    gqa("smooth", 2, 1, 7, 7, 4, 2, 16, [8, 6], smooth_softmax=1)
    gqa("sink", 2, 1, 7, 7, 4, 2, 16, [8, 6], sink=rand(4))
    gqa("bias", 2, 1, 7, 7, 4, 2, 16, [8, 8], bias=rand(2, 4, 1, 8))
    gqa("bias_shared", 1, 5, 0, None, 4, 2, 16, [5], bias=rand(1, 1, 5, 5))
    for window in (1, 3, 9):
        gqa(f"window_{window}", 2, 1, 7, 7, 4, 2, 16, [8, 6], local_window_size=window)
        gqa(f"window_prompt_{window}", 1, 6, 0, None, 4, 2, 16, [6], local_window_size=window)
    gqa("all", 1, 6, 0, None, 4, 2, 16, [6], causal=0)
    gqa("scores", 1, 1, 6, 6, 4, 2, 16, [7], qk_output=1, outputs=4)
    gqa("weights", 1, 1, 6, 6, 4, 2, 16, [7], qk_output=2, outputs=4)


def add_rotary(one, rand):
    for interleaved in (0, 1):
        at = "_interleaved" * interleaved
        cos, sin = tables(rand, 10, 4)
        x = rand(2, 3, 16)
        one("ms_rotary" + at, "RotaryEmbedding", [x, np.array([[0, 1, 2], [7, 8, 9]], i64), cos, sin], domain=DOMAIN, interleaved=interleaved)
        one("ms_rotary_first" + at, "RotaryEmbedding", [x, np.array([4], i64), cos, sin], domain=DOMAIN, interleaved=interleaved)
        one("ms_rotary_heads" + at, "RotaryEmbedding", [rand(2, 2, 3, 8), np.array([4], i64), cos, sin], domain=DOMAIN, interleaved=interleaved)
        one("ms_rotary_part" + at, "RotaryEmbedding", [rand(2, 3, 32), np.array([4], i64), cos, sin], domain=DOMAIN, interleaved=interleaved, num_heads=2,
            rotary_embedding_dim=8)
    one("ms_rotary_scale", "RotaryEmbedding", [rand(2, 3, 16), np.array([4], i64), *tables(rand, 10, 4)], domain=DOMAIN, scale=2.0)
    one("ms_rotary_f16", "RotaryEmbedding", [rand(2, 3, 16).astype(f16), np.array([4], i64), *(x.astype(f16) for x in tables(rand, 10, 4))], domain=DOMAIN)


def codes(rand, *shape):
    return np.abs(rand(*shape) * 97).astype(i32).astype(u8)


def add_few_bits(one, rand):
    for bits in (2, 4, 8):
        for m, k, n, block in ((1, 32, 16, 16), (3, 64, 33, 32), (7, 50, 5, 16), (1, 128, 64, 128), (17, 48, 1, 16), (0, 32, 4, 16)):
            blocks = -(-k // block)
            a, b = rand(m, k), codes(rand, n, blocks, block * bits // 8)
            scales = np.abs(rand(n, blocks)) * f32(0.1)
            name = f"_{bits}_{m}_{k}_{n}_{block}"
            attrs = {"domain": DOMAIN, "K": k, "N": n, "bits": bits, "block_size": block}
            one("ms_matmul_bits" + name, "MatMulNBits", [a, b, scales], constants=(1, 2), **attrs)
            zeros = codes(rand, n, -(-blocks * bits // 8))
            one("ms_matmul_bits_zeros" + name, "MatMulNBits", [a, b, scales, zeros, None, rand(n)], constants=(1, 2, 3, 5), **attrs)
            one("ms_matmul_bits_inputs" + name, "MatMulNBits", [a, b, scales, zeros], **attrs)
    a, b, scales = rand(2, 3, 64), codes(rand, 24, 4, 8), np.abs(rand(24, 4)) * f32(0.1)
    attrs = {"domain": DOMAIN, "K": 64, "N": 24, "bits": 4, "block_size": 16}
    one("ms_matmul_bits_float_zeros", "MatMulNBits", [a, b, scales, rand(24, 4) * 8], constants=(1, 2, 3), **attrs)
    order = np.array([3, 1, 0, 2] * 16, i32)
    one("ms_matmul_bits_order", "MatMulNBits", [a, b, scales, None, order], constants=(1, 2, 4), **attrs)
    one("ms_matmul_bits_f16", "MatMulNBits", [a.astype(f16), b, scales.astype(f16)], constants=(1, 2), **attrs)
    table, rows = codes(rand, 9, 32), np.array([[0, 8, -1], [3, 3, -9]], i64)
    for bits in (2, 4, 8):
        blocks = 32 * 8 // bits // 16
        scales, zeros = np.abs(rand(9, blocks)), codes(rand, 9, blocks * bits // 8)
        one(f"ms_gather_bits_{bits}", "GatherBlockQuantized", [table, rows, scales], constants=(0, 2), domain=DOMAIN, bits=bits, block_size=16)
        one(f"ms_gather_bits_zeros_{bits}", "GatherBlockQuantized", [table, rows, scales, zeros], constants=(0, 2, 3), domain=DOMAIN, bits=bits, block_size=16)
    for t, least in ((int4, -8), (uint4, 0)):
        data, zeros = ((codes(rand, *s).astype(i32) % 16 + least).astype(t) for s in ((5, 6, 40), (5, 6, 3)))
        scales = np.abs(rand(5, 6, 3))
        for axis in (0, 1, 2):
            one(f"ms_gather_{t.__name__}_{axis}", "GatherBlockQuantized", [data, np.array([[1, 0], [4, -2]], i32), scales, zeros], constants=(0, 2, 3), domain=DOMAIN,
                block_size=16, gather_axis=axis, quantize_axis=2)
        one(f"ms_gather_{t.__name__}_blocks_first", "GatherBlockQuantized", [data, np.array(3, i64), np.abs(rand(1, 6, 40))], constants=(0, 2), domain=DOMAIN,
            block_size=16, gather_axis=2, quantize_axis=0)
    one("ms_gather_none", "GatherBlockQuantized", [table, np.zeros((0, 2), i64), np.abs(rand(9, 4))], constants=(0, 2), domain=DOMAIN, block_size=16)


def add_bytes(one, rand):
    def scale(x):
        return np.array(x, f32)
    for t in (u8, i8):
        at = "_" + np.dtype(t).name
        zero = np.array(3, t)

        def data(*shape):
            return np.asarray(rand(*shape) * 40 + (128 if t is u8 else 0)).clip(*((0, 255) if t is u8 else (-128, 127))).astype(t)
        for a, b in (((3, 17), (3, 17)), ((2, 1, 5), (4, 1)), ((0, 4), (4,)), ((), ())):
            n = at + "_" + "x".join(map(str, a)) + "_" + "x".join(map(str, b))
            for op in ("QLinearAdd", "QLinearMul"):
                one(f"ms_{op.lower()}{n}", op, [np.asarray(data(*a)), scale(0.02), zero, np.asarray(data(*b)), scale(0.03), np.array(7, t), scale(0.07), np.array(11, t)],
                    constants=(1, 2, 4, 5, 6, 7), domain=DOMAIN)
        # Zero points that are left out are 0, which ONNX Runtime's kernels do not take.
        def numbers(q, by):
            return q.astype(f32) * f32(by)

        def codes_of(x, by):
            return np.rint(x / f32(by)).clip(*((0, 255) if t is u8 else (-128, 127))).astype(t)
        a, b, image = data(3, 17), data(3, 17), data(2, 3, 4, 5)
        for op, y in (("QLinearAdd", numbers(a, 0.02) + numbers(b, 0.03)), ("QLinearMul", numbers(a, 0.02) * numbers(b, 0.03))):
            one(f"ms_{op.lower()}_no_zero{at}", op, [a, scale(0.02), None, b, scale(0.03), None, scale(0.07)], constants=(1, 4, 6), domain=DOMAIN,
                expect=[codes_of(y, 0.07)])
        one(f"ms_qlinear_global_average_pool_no_zero{at}", "QLinearGlobalAveragePool", [image, scale(0.05), None, scale(0.03)], constants=(1, 3), domain=DOMAIN,
            expect=[codes_of(numbers(image, 0.05).mean((2, 3), keepdims=True), 0.03)])
        one(f"ms_qlinear_average_pool_no_zero{at}", "QLinearAveragePool", [image, scale(0.05), None, scale(0.03)], constants=(1, 3), domain=DOMAIN,
            kernel_shape=[4, 5], expect=[codes_of(numbers(image, 0.05).mean((2, 3), keepdims=True), 0.03)])
        x = data(2, 3, 9, 8)
        for op, attrs in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {}), ("QLinearLeakyRelu", {"alpha": 0.3})):
            for name, constants in ((at, (1, 2, 3, 4)), (at + "_by_call", ())):
                one(f"ms_{op.lower()}{name}{len(attrs)}", op, [x, scale(0.05), zero, scale(1 / 200), np.array(1, t)], constants=constants, domain=DOMAIN, **attrs)
        one("ms_qlinear_concat" + at, "QLinearConcat", [scale(0.04), zero, data(2, 3), scale(0.04), zero, data(2, 5), scale(0.02), np.array(9, t)],
            constants=(0, 1, 3, 4, 6, 7), domain=DOMAIN, axis=1)
        for name, attrs in (("plain", {"kernel_shape": [3, 2]}), ("pads", {"kernel_shape": [3, 3], "pads": [1, 1, 0, 1], "strides": [2, 2]}),
                            ("count", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
                            ("ceil", {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}), ("same", {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"})):
            parameters = [scale(0.05), zero, scale(0.04), np.array(5, t)]
            one(f"ms_qlinear_average_pool_{name}{at}", "QLinearAveragePool", [x, *parameters], constants=(1, 2, 3, 4), domain=DOMAIN, **attrs)
            if name != "same":
                one(f"ms_qlinear_average_pool_last_{name}{at}", "QLinearAveragePool", [x, *parameters], constants=(1, 2, 3, 4), domain=DOMAIN, channels_last=1, **attrs)
            if name not in ("count", "ceil"):
                one(f"ms_nhwc_max_pool_{name}{at}", "NhwcMaxPool", [x], domain=DOMAIN, **attrs)
        for last in (0, 1):
            one(f"ms_qlinear_global_average_pool_{last}{at}", "QLinearGlobalAveragePool", [x, scale(0.05), zero, scale(0.03), np.array(5, t)],
                constants=(1, 2, 3, 4), domain=DOMAIN, channels_last=last)
    for t, name in ((np.uint16, "u16"), (np.int16, "i16"), (u8, "u8"), (i8, "i8")):
        x, zero = rand(3, 5) * 9, np.array(3, t)
        one(f"ms_quantize_{name}", "QuantizeLinear", [x, scale(0.07), zero], opset=12, domain=DOMAIN)
        one(f"ms_dequantize_{name}", "DequantizeLinear", [codes(rand, 3, 5).astype(t), scale(0.07), zero], opset=12, domain=DOMAIN)
    one("ms_quantize_axis", "QuantizeLinear", [rand(3, 5) * 9, np.abs(rand(3)) + f32(0.1), np.array([1, 2, 3], u8)], opset=12, domain=DOMAIN, axis=0)
    for t, least in ((int4, -8), (uint4, 0)):
        given = (codes(rand, 3, 5).astype(i32) % 16 + least).astype(t)
        one(f"ms_dequantize_{t.__name__}", "DequantizeLinear", [given, scale(0.07), np.array(3).astype(t)], constants=(0, 2), domain=DOMAIN)


def add_integer_products(one, rand):
    def scale(*shape):
        return np.asarray(np.abs(rand(*shape)) + 0.01, f32)
    for ta in (u8, i8):
        for tb in (u8, i8):
            if (ta, tb) == (i8, u8):
                continue
            for m, k, n in ((1, 64, 48), (5, 13, 7), (17, 32, 33), (0, 4, 3)):
                at = f"_{np.dtype(ta).name}_{np.dtype(tb).name}_{m}_{k}_{n}"
                a, b = codes(rand, m, k).astype(ta), codes(rand, k, n).astype(tb)
                za, zb, columns = np.array(5, ta), np.array(3, tb), (codes(rand, n) % 7).astype(tb)
                one("ms_integer_to_float" + at, "MatMulIntegerToFloat", [a, b, scale(), scale(), za, zb, rand(n)], constants=(1, 3, 5, 6), domain=DOMAIN)
                one("ms_integer_to_float_columns" + at, "MatMulIntegerToFloat", [a, b, scale(), scale(n), za, columns], constants=(1, 3, 5), domain=DOMAIN)
                if ta is u8 and m:
                    one("ms_dynamic_quantize" + at, "DynamicQuantizeMatMul", [rand(m, k), b, scale(), zb, rand(n)], constants=(1, 2, 3, 4), domain=DOMAIN)
                    one("ms_dynamic_quantize_columns" + at, "DynamicQuantizeMatMul", [rand(2, m, k), b, scale(n), columns], constants=(1, 2, 3), domain=DOMAIN)
                for trans in (0, 1):
                    x, w = (np.ascontiguousarray(v.T) if trans else v for v in (a, b))
                    attrs = {"domain": DOMAIN, "transA": trans, "transB": trans}
                    small, bias = [np.array(0.02, f32), za, w, np.array(0.03, f32), zb], rand(n, dtype=i32)
                    if trans and ta is i8:
                        continue
                    one(f"ms_qgemm_{trans}" + at, "QGemm", [x, *small, bias, np.array(0.9, f32), np.array(4, ta)], constants=(3, 4, 5), **attrs)
                    one(f"ms_qgemm_float_{trans}" + at, "QGemm", [x, *small, bias], constants=(3, 4, 5), alpha=0.5, **attrs)


def add_experts(one, rand):
    tokens, experts, hidden, inter = 6, 4, 16, 32
    x, router = rand(tokens, hidden), rand(tokens, experts)
    for activation in ("relu", "gelu", "silu", "identity", "swiglu"):
        for k, normalised in ((1, 0), (2, 0), (2, 1)):
            wide = 2 * inter if activation == "swiglu" else inter
            fused = {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 7.0} if activation == "swiglu" else {}
            weights = [rand(experts, wide, hidden), rand(experts, wide), rand(experts, hidden, inter), rand(experts, hidden)]
            one(f"ms_moe_{activation}_{k}_{normalised}", "MoE", [x, router, *weights], constants=(2, 3, 4, 5), domain=DOMAIN, k=k, activation_type=activation,
                normalize_routing_weights=normalised, **fused)
    one("ms_moe_rank_3", "MoE", [x.reshape(2, 3, hidden), router, rand(experts, inter, hidden), None, rand(experts, hidden, inter)], domain=DOMAIN, k=1)
    for bits in (4, 8):
        for activation, fused in (("swiglu", {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 7.0}), ("silu", {})):
            wide = 2 * inter if activation == "swiglu" else inter
            w1, w2 = codes(rand, experts, wide, hidden * bits // 8), codes(rand, experts, hidden, inter * bits // 8)
            for k, normalised in ((1, 0), (2, 0), (2, 1)):
                name = f"ms_qmoe_{bits}_{activation}_{k}_{normalised}"
                attrs = {"domain": DOMAIN, "k": k, "activation_type": activation, "normalize_routing_weights": normalised, "expert_weight_bits": bits, **fused}
                s1, s2 = np.abs(rand(experts, wide)) * f32(0.02), np.abs(rand(experts, hidden)) * f32(0.02)
                one(name, "QMoE", [x, router, w1, s1, rand(experts, wide), w2, s2, rand(experts, hidden)], constants=(2, 3, 4, 5, 6, 7), **attrs)
                s1, s2 = np.abs(rand(experts, wide, hidden // 16)) * f32(0.02), np.abs(rand(experts, hidden, inter // 16)) * f32(0.02)
                one(name + "_chosen", "QMoE", [x, router, w1, np.abs(rand(experts, wide)) * f32(0.02), None, w2, np.abs(rand(experts, hidden)) * f32(0.02),
                                               *[None] * 7, np.abs(rand(tokens, experts))], constants=(2, 3, 5, 6), **attrs)
                one(name + "_blocks", "QMoE", [x, router, w1, s1, None, w2, s2], constants=(2, 3, 5, 6), block_size=16, **attrs)


def add_recurrent(one, rand):
    t, b, i, h = 4, 2, 5, 6
    for direction, d in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        for columns in (False, True):
            shape = (d, 4 * h) if columns else (d,)
            w, r = codes(rand, d, i, 4 * h) // 2, codes(rand, d, h, 4 * h) // 2
            states = [rand(d, b, h), rand(d, b, h)]
            for kind, w, r, zero in (("", w, r, u8(60)), ("_i8", (w.astype(np.int16) - 64).astype(i8), (r.astype(np.int16) - 64).astype(i8), i8(0))):
                parameters = [np.abs(rand(*shape)) * f32(0.002) + f32(0.001), np.full(shape, zero)] * 2
                one(f"ms_dynamic_lstm_{direction}_{columns}{kind}", "DynamicQuantizeLSTM", [rand(t, b, i), w, r, rand(d, 8 * h), None, *states, None, *parameters],
                    outputs=3, constants=(1, 2, 8, 9, 10, 11), domain=DOMAIN, direction=direction, hidden_size=h)


def add_small(one, rand):
    a, b, bias = rand(5, 7), rand(7, 9), rand(9)
    for activation, numbers in (("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", {"activation_alpha": 0.3}),
                                ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4})):
        one(f"ms_fused_gemm_{activation}", "FusedGemm", [a, b, bias], domain=DOMAIN, activation=activation, **numbers)
    one("ms_fused_gemm_turned", "FusedGemm", [rand(7, 5), rand(9, 7), rand(5, 9)], domain=DOMAIN, transA=1, transB=1, alpha=0.5, beta=2.0, activation="Relu")
    for upper in (0, 1):
        for k in (-9, -1, 0, 2, 9):
            one(f"ms_trilu_{upper}_{k}", "Trilu", [rand(2, 4, 6), np.array(k, i64)], domain=DOMAIN, upper=upper)
    for n in (1, 2, 7, 17):
        one(f"ms_inverse_{n}", "Inverse", [rand(3, n, n) + 4 * np.eye(n, dtype=f32)], domain=DOMAIN)
    one("ms_inverse_of_turns", "Inverse", [np.eye(5, dtype=f32)[[4, 0, 3, 1, 2]]], domain=DOMAIN)
    for metric in ("sqeuclidean", "euclidean"):
        one(f"ms_cdist_{metric}", "CDist", [rand(6, 17), rand(9, 17)], domain=DOMAIN, metric=metric)
    for axis in (-3, -1, 0, 2):
        one(f"ms_expand_dims_{axis}", "ExpandDims", [rand(2, 3), np.array(axis, i32)], constants=(1,), domain=DOMAIN)
    for mode in ("constant", "reflect", "edge"):
        for constants in ((), (1,)):
            one(f"ms_pad_{mode}_{len(constants)}", "Pad", [rand(3, 4), np.array([1, 2, 0, 1], i64)], constants=constants, domain=DOMAIN, mode=mode)
    one("ms_pad_value", "Pad", [rand(3, 4), np.array([1, 2, 0, 1], i64), np.full(1, 2.5, f32)], constants=(1,), domain=DOMAIN)
    for x in ([2, 1, 1, 3, 4, 3], [1], [5, 5, 5], []):
        one(f"ms_unique_{len(x)}", "Unique", [np.array(x, f32)], outputs=3, domain=DOMAIN)
    x = np.arange(0, 240, 4).reshape(3, 4, 5).astype(u8)
    for t, offset in ((u8, 0), (i8, -128)):
        for opset, axis in ((13, -1), (13, 1), (11, 1), (11, 2)):
            q = (x.astype(i32) + offset).astype(t)
            one(f"ms_qlinear_softmax_{np.dtype(t).name}_{opset}_{axis}", "QLinearSoftmax",
                [q, np.array(0.05, f32), np.array(t(100 + offset)), np.array(1 / 256, f32), np.array(t(offset))], constants=(1, 2, 3, 4),
                domain=DOMAIN, axis=axis, attributes={"opset": opset})
    words = np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4], [0, 1, 2, 3, 4]], i64)
    for n in (1, 2, 3, 5, 7):
        one(f"ms_ngram_{n}", "NGramRepeatBlock", [words, rand(3, 6)], domain=DOMAIN, ngram_size=n)


def add_old_experts(one, rand):
    """Weights declared [experts, in, out]."""
    one("ms_moe_old", "MoE", [rand(5, 8), rand(5, 3), rand(3, 8, 16), None, rand(3, 16, 8)], domain=DOMAIN, k=2, activation_type="relu")


def add_all(one, rand):
    for section in (add_activations, add_products, add_normalisations, add_attention, add_multi_head, add_shared_buffers, add_grouped, add_rotary, add_few_bits, add_bytes,
                    add_integer_products, add_experts, add_recurrent, add_small, add_old_experts):
        section(one, rand)
