"""Cases for onnx_cases.py of operators that the importer writes as formulas: where the official cases are thin."""
import numpy as np

f32, f64, i32, i64, u8, i8 = np.float32, np.float64, np.int32, np.int64, np.uint8, np.int8


def add_scatters(one, rand, ints):
    x = np.arange(20, dtype=f32).reshape(4, 5)
    two = np.array([[-1, 0, 2], [2, -4, -1]], i64)
    for op in ("add", "mul", "max", "min", "none"):
        one(f"scatter_elements_{op}", "ScatterElements", [x, two, rand(2, 3)], reduction=op)
        one(f"scatter_elements_columns_{op}", "ScatterElements", [x, np.array([[4, 0], [-5, -1], [1, 3]], i64), rand(3, 2)], axis=1, reduction=op)
        one(f"scatter_nd_{op}", "ScatterND", [x, np.array([[3], [-4], [1]], i64), rand(3, 5)], reduction=op)
        one(f"scatter_nd_ints_{op}", "ScatterND", [np.arange(8, dtype=i32), np.array([[6], [0], [3]], i64), ints(5, -9, 4, dtype=i32)], reduction=op)
    one("scatter_nd_points", "ScatterND", [x, np.array([[[0, 0], [3, 4]], [[1, -1], [-2, 0]]], i64), rand(2, 2)])
    # The last of several wins, for any number of threads.
    one("scatter_same_place", "ScatterElements", [x, np.full((4, 5), 2, i64), rand(4, 5)])
    y = rand(300)
    one("scatter_add_one_place", "ScatterElements", [np.zeros(1, f32), np.zeros(300, i64), y], reduction="add", opset=18, expect=[np.array([y.sum()], f32)])
    one("scatter_nothing", "ScatterElements", [x, np.zeros((0, 5), i64), np.zeros((0, 5), f32)], expect=[x])
    one("scatter_f16", "ScatterElements", [rand(6).astype(np.float16), ints(0, 0, 5), rand(3).astype(np.float16)], reduction="none")


def add_long_rows(one, rand, ints):
    """Rows that are sorted rather than compared in pairs: equal elements stand in the order of their places, NaN is the largest, and zeros have no sign."""
    order = np.argsort(rand(700), kind="stable")
    for dtype in (f32, f64, np.float16, i64, i32, i8, u8):
        x = (rand(2, 700) * 20).astype(dtype)
        for largest in (0, 1):
            one(f"topk_long_{np.dtype(dtype).name}_{largest}", "TopK", [x, ints(700)], outputs=2, constants=(1,), largest=largest,
                expect=None if dtype not in (i8, u8, np.float16) else sorted_rows(x, largest))
    odd = np.concatenate([[np.nan, -0.0, np.inf, 0.0, -np.inf, -np.nan, 1e-40, -1e-40], np.arange(400) % 7 - 3.0]).astype(f32)[order[order < 408]]
    for largest in (0, 1):
        one(f"topk_long_odd_{largest}", "TopK", [odd, ints(300)], outputs=2, constants=(1,), largest=largest, expect=[r[0, :300] for r in sorted_rows(odd[None], largest)])
    one("topk_long_columns", "TopK", [rand(300, 2, 3), ints(9)], outputs=2, constants=(1,), axis=0)
    one("unique_long", "Unique", [np.round(rand(2000) * 100)], outputs=4)
    one("unique_long_unsorted", "Unique", [(rand(1500) * 30).astype(i64)], outputs=4, sorted=0)
    corners = np.abs(rand(1, 400, 2)) * 100
    boxes, scores = np.concatenate([corners, corners + 20 + np.abs(rand(1, 400, 2)) * 20], -1).astype(f32), np.round(np.abs(rand(1, 3, 400)), 1)
    for least in (0.0, 0.7, 9.0):
        one(f"nms_long_{least}", "NonMaxSuppression", [boxes, scores, ints(60), np.array([0.4], f32), np.array([least], f32)])
    one("nms_long_all", "NonMaxSuppression", [boxes, scores, ints(400), np.array([0.2], f32)])
    one("nms_scores_nan", "NonMaxSuppression", [boxes, np.where(rand(1, 3, 400) > 1, np.nan, scores), ints(60), np.array([0.4], f32), np.array([0.3], f32)],
        expect=None)
    one("scatter_f16_sum", "ScatterElements", [np.zeros(1, np.float16), np.zeros(4096, i64), np.ones(4096, np.float16)], reduction="add", opset=18,
        expect=[np.array([4096], np.float16)])


def sorted_rows(x, largest):
    """All elements of rows in order, and their places."""
    key = np.where(np.isnan(x.astype(f64)), np.inf, x.astype(f64)) if x.dtype != i64 else x
    nan = np.isnan(x.astype(f64))
    at = np.stack([np.lexsort((np.arange(x.shape[1]), -k if largest else k, -n.astype(int) if largest else n)) for k, n in zip(key, nan)])
    return [np.take_along_axis(x, at, 1), at.astype(i64)]


def add_picked(one, rand, ints):
    nan = np.array([3, np.nan, 1, 3, np.nan, -0.0, 0.0], f32)
    one("unique_nan", "Unique", [nan], outputs=4, expect=[np.array([-0.0, 1, 3, np.nan], f32), ints(5, 2, 0, 1), ints(2, 3, 1, 2, 3, 0, 0), ints(2, 1, 2, 2)])
    one("unique_ints_unsorted", "Unique", [ints(7, 2, 7, -1, 2, 2)], outputs=4, sorted=0)
    one("unique_rows", "Unique", [rand(5, 3)[[0, 3, 0, 1, 3]]], outputs=4, axis=0)
    one("unique_columns_unsorted", "Unique", [np.ascontiguousarray(rand(3, 5)[:, [4, 0, 4, 1, 0]])], outputs=4, axis=1, sorted=0)
    one("unique_none", "Unique", [np.zeros(0, f32)], outputs=4, expect=[np.zeros(0, f32), ints(), ints(), ints()])
    one("compress_none", "Compress", [rand(4, 3), np.zeros(4, bool)], axis=0)
    one("compress_short", "Compress", [rand(4, 3), np.array([False, True])], axis=1)
    boxes, scores = np.abs(rand(2, 17, 4)).cumsum(-1).astype(f32), np.abs(rand(2, 3, 17))
    for most in (0, 1, 5, 100):
        one(f"nms_{most}", "NonMaxSuppression", [boxes, scores, ints(most), np.array([0.3], f32), np.array([0.2], f32)])
    one("nms_centers", "NonMaxSuppression", [boxes, scores, ints(4), np.array([0.5], f32)], center_point_box=1)
    one("nms_no_limit_given", "NonMaxSuppression", [boxes, scores], expect=[np.zeros((0, 3), i64)])


def add_recurrent(one, rand, ints):
    t, b, i, h = 5, 3, 4, 7
    lengths = np.array([5, 1, 3], i32)
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        for direction, d in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            weights = [rand(d, gates * h, i) * 0.3, rand(d, gates * h, h) * 0.3, rand(d, 2 * gates * h) * 0.3]
            states = [rand(d, b, h)] * (2 if op == "LSTM" else 1)
            at, n = f"_{op.lower()}_{direction}", 2 + len(states) - 1
            one("plain" + at, op, [rand(t, b, i), *weights[:2]], outputs=n, direction=direction, hidden_size=h)
            one("full" + at, op, [rand(t, b, i), *weights, None, *states], outputs=n, direction=direction, hidden_size=h)
            one("ragged" + at, op, [rand(t, b, i), *weights, lengths, *states], outputs=n, direction=direction, hidden_size=h)
    w, r, bias = rand(1, 3 * h, i), rand(1, 3 * h, h), rand(1, 6 * h)
    one("gru_before_reset", "GRU", [rand(t, b, i), w, r, bias], outputs=2, hidden_size=h, linear_before_reset=1)
    w, r, bias = rand(1, 4 * h, i), rand(1, 4 * h, h), rand(1, 8 * h)
    one("lstm_peepholes", "LSTM", [rand(t, b, i), w, r, bias, None, None, None, rand(1, 3 * h)], outputs=3, hidden_size=h)
    one("rnn_activation", "RNN", [rand(t, b, i), rand(1, h, i), rand(1, h, h)], outputs=2, hidden_size=h, activations=["LeakyRelu"], activation_alpha=[0.2])
    one("rnn_one_step", "RNN", [rand(1, 1, 1), rand(1, 1, 1), rand(1, 1, 1)], outputs=2, hidden_size=1)


def add_products(one, rand, ints):
    for equation, *shapes in (("ij,jk->ik", (3, 4), (4, 5)), ("bij,bjk", (2, 3, 4), (2, 4, 5)), ("ii->i", (5, 5)), ("iij->j", (3, 3, 4)),
                              ("i,j->ji", (3,), (5,)), ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)), ("ij,jk,kl->li", (2, 3), (3, 4), (4, 5)),
                              ("ij->", (3, 4)), ("abc,cd,b->ad", (2, 3, 4), (4, 5), (3,)), ("ij,ij->ij", (1, 1), (1, 1))):
        operands = [rand(*s) for s in shapes]
        one(f"einsum_{equation}", "Einsum", operands, equation=equation, expect=[np.asarray(np.einsum(equation, *operands))])
    for n in (1, 2, 5, 8):
        x = rand(3, n, n)
        one(f"det_{n}", "Det", [x], expect=[np.linalg.det(x.astype(f64)).astype(f32)])
    one("det_singular", "Det", [np.ones((2, 4, 4), f32)], expect=[np.zeros(2, f32)])
    x, w = rand(2, 4, 5, 6), rand(4, 3, 3, 2)
    for name, attrs in (("plain", {}), ("stride", {"strides": [2, 3]}), ("pads", {"strides": [2, 2], "pads": [1, 0, 2, 1]}),
                        ("dilation", {"dilations": [2, 3]}), ("more", {"strides": [3, 3], "output_padding": [2, 1]}),
                        ("same", {"strides": [2, 2], "auto_pad": "SAME_UPPER"}), ("shape", {"strides": [2, 2], "output_shape": [12, 12]})):
        one(f"conv_transpose_{name}", "ConvTranspose", [x, w, rand(3)], **attrs)
    one("conv_transpose_groups", "ConvTranspose", [x, rand(4, 3, 3, 3), rand(6)], group=2, strides=[2, 1])
    one("conv_transpose_1d", "ConvTranspose", [rand(1, 2, 1), rand(2, 2, 4)])
    for p in (1, 2, 3):
        one(f"lp_pool_{p}", "LpPool", [rand(2, 3, 9, 7)], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], p=p)
        one(f"global_lp_pool_{p}", "GlobalLpPool", [rand(2, 3, 9, 7)], p=p)
    q = [np.array(v, f32) for v in (0.02, 0.03, 0.05)]
    a, c = rand(3, 5, dtype=i32).astype(u8), rand(5, 4, dtype=i32).astype(u8)
    one("qlinear_matmul", "QLinearMatMul", [a, q[0], np.array(3, u8), c, q[1], np.array(7, u8), q[2], np.array(11, u8)])
    one("qlinear_conv", "QLinearConv", [rand(1, 3, 6, 6, dtype=i32).astype(u8), q[0], np.array(3, u8), rand(4, 3, 3, 3, dtype=i8), np.array([0.01, 0.02, 0.03, 0.04], f32),
                                        np.zeros(4, i8), q[2], np.array(11, u8), rand(4, dtype=i32)], pads=[1, 1, 1, 1])
    for name, axis, shape in (("tensor", 1, ()), ("axis", 0, (3,)), ("last", -1, (5,))):
        scale = np.abs(rand(*shape)).astype(f32) + f32(0.1) if shape else np.array(0.07, f32)
        one(f"quantize_{name}", "QuantizeLinear", [rand(3, 5) * 9, scale, np.full(shape, 3, i8)], axis=axis)
        one(f"dequantize_{name}", "DequantizeLinear", [rand(3, 5, dtype=i8), scale, np.full(shape, 3, i8)], axis=axis)


def add_images(one, rand, ints):
    x, grid = rand(2, 3, 5, 7), (rand(2, 4, 6, 2) * 1.2).astype(f32)
    for mode in ("bilinear", "nearest", "bicubic"):
        for outside in ("zeros", "border", "reflection"):
            for corners in (0, 1):
                one(f"grid_sample_{mode}_{outside}_{corners}", "GridSample", [x, grid], opset=16, mode=mode, padding_mode=outside, align_corners=corners)
    rois = np.array([[0, 0, 4, 3], [1.5, 0.5, 6.5, 4.5], [-2, -2, 3, 9], [2, 2, 2, 2]], f32)
    for pixels in ("half_pixel", "output_half_pixel"):
        one(f"roi_align_{pixels}", "RoiAlign", [x, rois, ints(0, 1, 1, 0)], opset=16, output_height=2, output_width=3, sampling_ratio=2,
            spatial_scale=0.9, coordinate_transformation_mode=pixels)
    # Sums over windows: where the places that meet are a stride apart, or as far as stride and dilation say.
    for kernel, stride, dilation in ((10, 4, 1), (3, 7, 1), (5, 4, 2), (6, 4, 3), (4, 6, 9), (5, 1, 2)):
        one(f"conv_transpose_windows_{kernel}_{stride}_{dilation}", "ConvTranspose", [rand(2, 3, 9), rand(3, 1, kernel)], strides=[stride], dilations=[dilation],
            pads=[2, 1], opset=11)
    one("instance_norm", "InstanceNormalization", [x, rand(3), rand(3)], epsilon=1e-3)
    for n in (1, 3, 4):
        one(f"lrn_{n}", "LRN", [np.abs(rand(2, 5, 3, 4))], size=n, alpha=0.2, beta=0.6, bias=1.5) if n % 2 else None
    one("max_unpool", "MaxUnpool", [rand(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]], i64)], kernel_shape=[2, 2], strides=[2, 2])
    for upper in (0, 1):
        for k in (-(2**63), -9, -1, 0, 2, 9, 2**63 - 1):
            one(f"trilu_{upper}_{k}", "Trilu", [rand(2, 4, 5), np.array(k, i64)], upper=upper)
    one("eye_like", "EyeLike", [rand(3, 5)], k=-1, dtype=7)
    one("reverse_sequence", "ReverseSequence", [rand(4, 3, 2), ints(4, 1, 3)], batch_axis=1, time_axis=0)
    one("hardmax_ties", "Hardmax", [np.array([[1, 3, 3, 2], [0, 0, 0, 0]], f32)])
    one("hardmax_of_none", "Hardmax", [np.zeros((2, 0), f32)])
    one("det_of_none", "Det", [np.zeros((2, 0, 0), f32)])
    for shape, axis in (((250_000,), 0), ((3, 20_000), 1), ((2, 100, 300), 2)):
        x = np.full(shape, 0.1, f32)  # roundings that all go one way
        one(f"sum_of_equal_{len(shape)}_{axis}", "ReduceSum", [x, ints(axis)], constants=(1,), keepdims=0, expect=[x.sum(axis, np.float64).astype(f32)])
    for n in (1, 15, 31, 33, 64, 127, 8191, 8192, 12_289):
        x = rand(3, n)
        one(f"max_of_rows_{n}", "ReduceMax", [x, ints(1)], constants=(1,))
        x = np.where(np.arange(3 * n).reshape(3, n) == n + n // 2, f32(np.nan), x)
        one(f"max_of_rows_with_nan_{n}", "ReduceMax", [x, ints(1)], constants=(1,), expect=[x.max(1, keepdims=True)])
        one(f"mean_of_columns_{n}", "ReduceMean", [rand(1, 2, n, 1), ints(0, 2, 3)], constants=(1,))
        one(f"mean_of_images_{n}", "ReduceMean", [rand(2, n, 3), ints(1, 2)], constants=(1,))
    for op in ("Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Atanh"):
        one(op.lower(), op, [np.linspace(-0.95, 0.95, 37, dtype=f32)])
    one("acosh", "Acosh", [np.linspace(1, 9, 37, dtype=f32)])

    def spectrum(x, inverse=False, bins=None):
        z = x[..., 0].astype(f64) + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
        z = (np.fft.ifft if inverse else np.fft.fft)(z, axis=1)[:, :bins]
        return [np.stack([z.real, z.imag], 2).astype(f32)]
    for rows, n in [(2, n) for n in (1, 2, 3, 5, 6, 12, 16, 17, 30, 34, 169, 400)] + [(1, 2), (1, 5), (1, 60), (1, 1024)]:
        x, at = rand(rows, n, 1), np.array(1, i64)
        one(f"dft_{rows}_{n}", "DFT", [x, None, at], constants=(2,), opset=20, expect=spectrum(x))
        one(f"dft_half_{rows}_{n}", "DFT", [x, None, at], constants=(2,), opset=20, onesided=1, expect=spectrum(x, bins=n // 2 + 1))
        x = rand(rows, n, 2)
        one(f"dft_inverse_{rows}_{n}", "DFT", [x, None, at], constants=(2,), opset=20, inverse=1, expect=spectrum(x, inverse=True))
    for shape in ((2, 6, 5), (1, 34, 3)):  # an axis of the call; transforms of 34 are products
        x = rand(*shape, 2)
        for axis in (-4, -2, 0, 1, 2):
            z = np.fft.ifft(x[..., 0].astype(f64) + 1j * x[..., 1], axis=axis % 4)
            expect = [np.stack([z.real, z.imag], 3).astype(f32)]
            one(f"dft_along_call_{shape[1]}_{axis}", "DFT", [x, None, np.array(axis, i64)], opset=20, inverse=1, expect=expect)
    one("scan_reversed", "CumSum", [rand(3, 4), np.array(1, i64)], constants=(1,), reverse=1, exclusive=1)


def add_types(one, rand, ints):
    """Types that the specification allows and few models have."""
    at, flags, given = np.array([0, 2, 0], i64), np.array([0, 1, 1, 0], bool), np.array([1, 0, 0], bool)
    for op, want in (("add", [1, 1, 1, 0]), ("max", [1, 1, 1, 0]), ("mul", [0, 1, 0, 0]), ("min", [0, 1, 0, 0])):
        one(f"scatter_bools_{op}", "ScatterElements", [flags, at, given], opset=18, reduction=op, expect=[np.array(want, bool)])
        one(f"scatter_nd_bools_{op}", "ScatterND", [flags, at[:, None], given], opset=18, reduction=op, expect=[np.array(want, bool)])
    one("erf_of_integers", "Erf", [np.array([-3, 0, 1, 9], i32)], opset=9, expect=[np.array([0, 0, 0, 1], i32)])
    columns = np.array([[1, 0], [0, 0], [1, 0], [0, 1]], bool)[None]
    one("col2im_of_bools", "Col2Im", [columns, ints(1, 3), ints(1, 2)], constants=(1, 2), opset=18,
        expect=[np.array([[[[1, 0, 0]], [[1, 0, 1]]]], bool)])
    x = rand(1, 1, 1, 4).astype(f64)
    one("crop_and_resize_of_doubles", "Resize", [x, np.array([0, 0, 0, 0, 1, 1, 1, 1], f32), None, ints(1, 1, 1, 4)], opset=13, mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize", expect=[x])
    x, wide = rand(4, 3, 2), [rand(3).astype(f64) for _ in range(3)] + [np.abs(rand(3)).astype(f64)]
    mean, variance = x.astype(f64).mean((0, 2)), x.astype(f64).var((0, 2))
    want = (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5) * wide[0][:, None] + wide[1][:, None]
    one("batch_norm_of_wider_statistics", "BatchNormalization", [x, *wide], opset=15, outputs=3, training_mode=1,
        expect=[want.astype(f32), wide[2] * 0.9 + mean * 0.1, wide[3] * 0.9 + variance * 0.1])


def add_all(one, rand, ints):
    for section in (add_scatters, add_long_rows, add_picked, add_recurrent, add_products, add_images, add_types):
        section(one, rand, ints)
