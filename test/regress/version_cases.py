"""Cases for onnx_cases.py of forms that operators had in old operator sets, of types beside each other, and of operators that have
no official case."""
import ml_dtypes
import numpy as np
from onnx import helper, numpy_helper

f16, f32, f64, i8, i32, i64, u8 = np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8


def add_old_forms(one, rand, ints):
    a = rand(2, 3, 4, 5)
    for op, f in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide), ("Pow", lambda x, y: np.abs(x) ** y)):
        x = np.abs(a) if op == "Pow" else a
        for name, shape, ones, attrs in (("all", (2, 3, 4, 5), 0, {}), ("one", (1,), 0, {}), ("last", (4, 5), 0, {}), ("middle", (3, 4), 1, {"axis": 1}),
                                         ("first", (2,), 3, {"axis": 0}), ("from_end", (3,), 2, {"axis": -3})):
            b = rand(*shape)
            one(f"old_{op.lower()}_{name}", op, [x, b], opset=6, expect=[f(x, b.reshape(shape + (1,) * ones)).astype(f32)],
                **attrs, **({} if name == "all" else {"broadcast": 1}))
    p, q = rand(2, 3, 4, dtype=i32), rand(3, dtype=i32)
    column = q.reshape(3, 1)
    for op, f in (("Greater", np.greater), ("Less", np.less)):
        one(f"old_{op.lower()}", op, [p.astype(f32), q.astype(f32)], opset=6, broadcast=1, axis=1, expect=[f(p, column)])
    one("old_equal", "Equal", [p, q], opset=6, broadcast=1, axis=1, expect=[p == column])
    for op, f in (("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)):
        one(f"old_{op.lower()}", op, [p > 0, q > 0], opset=6, broadcast=1, axis=1, expect=[f(p > 0, column > 0)])
    x, w, c = rand(3, 4), rand(4, 5), rand(5)
    one("old_gemm", "Gemm", [x, w, c], opset=6, broadcast=1, alpha=0.5, beta=2.0, expect=[(0.5 * (x @ w) + 2 * c).astype(f32)])
    slope = rand(3)
    one("old_prelu", "PRelu", [a, slope], opset=6, expect=[np.where(a < 0, a * slope.reshape(3, 1, 1), a)])
    ramp = np.arange(1, 5, dtype=f32).reshape(1, 1, 4)
    one("old_average_pool", "AveragePool", [ramp], opset=6, kernel_shape=[3], pads=[1, 1], strides=[1], expect=[np.array([[[1.5, 2, 3, 3.5]]], f32)])
    image = np.arange(6, dtype=f32).reshape(1, 1, 2, 3)
    one("old_upsample", "Upsample", [image], opset=6, height_scale=2.0, width_scale=3.0, mode="nearest", expect=[image.repeat(2, 2).repeat(3, 3)])
    for op, gates, outputs in (("RNN", 1, 2), ("GRU", 3, 2), ("LSTM", 4, 3)):  # the old form has an attribute more, and nothing else
        weights = np.zeros((1, 2 * gates, 3), f32), np.zeros((1, 2 * gates, 2), f32)
        zeros = [np.zeros((4, 1, 2, 2), f32)] + [np.zeros((1, 2, 2), f32)] * (outputs - 1)
        one(f"old_{op.lower()}", op, [rand(4, 2, 3), *weights], outputs=outputs, opset=6, hidden_size=2, output_sequence=1, expect=zeros)
    x = rand(3, 4)
    one("old_dropout", "Dropout", [x], outputs=2, opset=6, is_test=1, ratio=0.3, expect=[x, np.ones_like(x)])
    one("old_dropout_mask", "Dropout", [x], outputs=2, opset=7, expect=[x, np.ones_like(x)])
    one("dropout_10_mask", "Dropout", [x], outputs=2, opset=10, expect=[x, np.ones(x.shape, bool)])


def add_oldest_forms(one, rand, ints):
    """Of the first operator sets, and operators that only these had."""
    x, image = rand(2, 3, 4), rand(1, 2, 6, 5)
    one("first_relu", "Relu", [x], opset=1, consumed_inputs=[0], expect=[np.maximum(x, 0)])
    one("first_clip", "Clip", [x], opset=1, consumed_inputs=[0], max=0.5, expect=[np.minimum(x, 0.5)])
    one("first_sum", "Sum", [x, x], opset=1, consumed_inputs=[0, 0], expect=[x + x])
    one("first_exp", "Exp", [x], opset=5, expect=[np.exp(x)])
    for to, t in (("INT32", i32), ("float16", f16), ("BOOL", bool), ("DOUBLE", f64)):
        one(f"first_cast_{to}", "Cast", [x * 9], opset=1, to=to, expect=[(x * 9).astype(t)])
    one("first_reshape", "Reshape", [x], opset=1, shape=[0, -1], consumed_inputs=[0], expect=[x.reshape(2, 12)])
    one("first_concat", "Concat", [x, x[:, :1]], opset=1, expect=[np.concatenate([x, x[:, :1]], 1)])
    for name, inputs, attrs, at in (("attr", [x], {"split": [1, 2]}, 1), ("input", [x, np.array([1, 2], f32)], {}, 1), ("equal", [x[:, :2]], {}, 1)):
        one(f"first_split_{name}", "Split", inputs, outputs=2, opset=1, axis=1, constants=(1,) if len(inputs) > 1 else (), **attrs,
            expect=[inputs[0][:, :at], inputs[0][:, at:]])
    one("first_tile", "Tile", [x, np.array([2], f32), np.array([1], f32)], opset=1, constants=(1, 2), expect=[np.tile(x, (1, 2, 1))])
    one("first_pad", "Pad", [x], opset=1, paddings=[0, 1, 0, 0, 0, 2], value=2.0, expect=[np.pad(x, ((0, 0), (1, 0), (0, 2)), constant_values=2)])
    one("first_lp_pool", "LpPool", [image], opset=1, kernel_shape=[6, 5], p=3.0, expect=[(np.abs(image) ** 3).sum((2, 3), keepdims=True) ** f32(1 / 3)])
    one("first_global_lp_pool", "GlobalLpPool", [image], opset=1, p=1.0, expect=[np.abs(image).sum((2, 3), keepdims=True)])
    one("affine", "Affine", [x], opset=1, alpha=2.0, beta=1.0, expect=[2 * x + 1])
    one("scaled_tanh", "ScaledTanh", [x], opset=1, alpha=0.5, beta=2.0, expect=[0.5 * np.tanh(2 * x)])
    one("parametric_softplus", "ParametricSoftplus", [x], opset=1, alpha=0.5, beta=2.0, expect=[0.5 * np.log1p(np.exp(2 * x))])
    low = np.linspace(-40, -10, 61, dtype=f32)  # where 1 + exp(x) is 1, or nearly
    one("parametric_softplus_low", "ParametricSoftplus", [low], opset=1, alpha=1e9, beta=1.0, expect=[1e9 * np.log1p(np.exp(low.astype(f64))).astype(f32)])
    one("image_scaler", "ImageScaler", [image], opset=1, scale=2.0, bias=[1.0, -2.0], expect=[2 * image + np.array([1, -2], f32).reshape(2, 1, 1)])
    one("crop", "Crop", [image], opset=1, border=[1, 2, 0, 1], expect=[image[:, :, 2:5, 1:]])
    one("crop_to", "Crop", [image], opset=1, border=[1, 2, 0, 0], scale=[2, 3], expect=[image[:, :, 2:4, 1:4]])
    one("first_thresholded_relu", "ThresholdedRelu", [x], opset=1, alpha=0.5, expect=[np.where(x > 0.5, x, 0)])
    for across, axes in ((0, (0, 2, 3)), (1, (0, 1, 2, 3))):
        centred = image - image.mean(axes, keepdims=True)
        one(f"first_mean_variance_{across}", "MeanVarianceNormalization", [image], opset=1, across_channels=across,
            expect=[(centred / centred.std(axes, keepdims=True)).astype(f32)])
        one(f"first_mean_{across}", "MeanVarianceNormalization", [image], opset=1, across_channels=across, normalize_variance=0, expect=[centred])


def add_batch_norms(one, rand, ints):
    x = rand(2, 3, 4, 5)

    def normal(x, scale, bias, mean, variance, epsilon=1e-5):
        return ((x - mean) / np.sqrt(variance + epsilon) * scale + bias).astype(f32)

    channel = [rand(3), rand(3), rand(3), abs(rand(3)) + f32(0.1)]
    wide = [v.reshape(3, 1, 1) for v in channel]
    one("batch_norm_6", "BatchNormalization", [x, *channel], opset=6, is_test=1, epsilon=1e-3, expect=[normal(x, *wide, 1e-3)])
    element = [rand(3, 4, 5), rand(3, 4, 5), rand(3, 4, 5), abs(rand(3, 4, 5)) + f32(0.1)]
    one("batch_norm_not_spatial", "BatchNormalization", [x, *element], opset=7, spatial=0, expect=[normal(x, *element)])
    batch = x.mean((0, 2, 3)), x.var((0, 2, 3))
    trained = normal(x, *wide[:2], *(v.reshape(3, 1, 1) for v in batch))
    running = [(0.9 * old + 0.1 * now).astype(f32) for old, now in zip(channel[2:], batch)]
    one("batch_norm_9_training", "BatchNormalization", [x, *channel], outputs=5, opset=9, expect=[trained, *running, *batch])
    one("batch_norm_14_training", "BatchNormalization", [x, *channel], outputs=3, opset=14, training_mode=1, expect=[trained, *running])
    mean, variance = x.mean(0), x.var(0)
    one("batch_norm_7_not_spatial_training", "BatchNormalization", [x, *element], outputs=3, opset=7, spatial=0,
        expect=[normal(x, *element[:2], mean, variance), (0.9 * element[2] + 0.1 * mean).astype(f32), (0.9 * element[3] + 0.1 * variance).astype(f32)])
    v = rand(7)
    ones = [np.array([n], f32) for n in (2, 1, 0.5, 4)]
    one("batch_norm_of_a_list", "BatchNormalization", [v, *ones], opset=15, expect=[normal(v, *ones)])
    # Halves beside statistics of f32, as mixed precision has them.
    one("batch_norm_f16_f32", "BatchNormalization", [x.astype(f16), *channel], opset=15, expect=[normal(x.astype(f16), *wide).astype(f16)])


def add_types(one, rand, ints):
    ramp = np.linspace(-12, 3, 61).astype(f16)
    mish = ramp.astype(f64) * np.tanh(np.log1p(np.exp(ramp.astype(f64))))
    one("mish_f16", "Mish", [ramp], opset=18, expect=[mish.astype(f16)])  # each step rounded to f16 once gave 0 below -9
    x = rand(3, 5, dtype=i32)
    for op, f in (("ReduceL2", lambda v: np.sqrt((v * v).sum(1))), ("ReduceLogSum", lambda v: np.log(np.abs(v).sum(1))),
                  ("ReduceLogSumExp", lambda v: np.log(np.exp(v).sum(1)))):
        v = np.abs(x) if op != "ReduceL2" else x
        one(f"{op}_ints", op, [v, ints(1)], opset=18, constants=(1,), keepdims=0, expect=[f(v.astype(f64)).astype(i32)])
        one(f"{op}_ints_by_call", op, [v, ints(1)], opset=18, keepdims=0, expect=[f(v.astype(f64)).astype(i32)])
    q, k, v = rand(1, 2, 3, 4), rand(1, 2, 5, 4), rand(1, 2, 5, 4)
    one("attention_f64_values", "Attention", [q, k, v.astype(f64)], opset=23, expect=[attend(q, k, v)])
    one("attention_int_mask", "Attention", [q, k, v, np.arange(5, dtype=i32).reshape(1, 5).repeat(3, 0)], opset=23, expect=[attend(q, k, v, np.arange(5))])
    image, grid = rand(1, 2, 4, 5, dtype=u8), np.zeros((1, 1, 1, 2), f32)
    one("grid_sample_bytes", "GridSample", [image, grid - 1], opset=20, align_corners=1, mode="nearest", expect=[image[:, :, :1, :1]])
    wide = np.arange(1, 36, dtype=i64).reshape(1, 1, 5, 7) * (2**55 + 1)  # more digits than floats have
    places = np.array([[[[-1, -1], [1, 1], [0, 0], [1.7, 0]]]], f32)
    for outside, last in (("zeros", 0), ("border", wide[0, 0, 2, 6]), ("reflection", wide[0, 0, 2, 4])):
        one(f"grid_sample_wide_{outside}", "GridSample", [wide, places], opset=20, align_corners=1, mode="nearest", padding_mode=outside,
            expect=[np.array([[[[wide[0, 0, 0, 0], wide[0, 0, 4, 6], wide[0, 0, 2, 3], last]]]])])
    one("grid_sample_bools", "GridSample", [wide % 2 > 0, places], opset=20, align_corners=1, mode="nearest", expect=[np.array([[[[True, True, False, False]]]])])
    one("grid_sample_f64_grid", "GridSample", [image.astype(f32), grid.astype(f64) + 1], opset=20, align_corners=1, expect=[image[:, :, -1:, -1:].astype(f32)])
    for name, t in (("f8", ml_dtypes.float8_e4m3fn), ("f8_5", ml_dtypes.float8_e5m2)):
        some = np.array([1, -np.inf, np.nan, 0.5], f32).astype(t)
        one(f"is_nan_{name}", "IsNaN", [some], opset=20, expect=[np.isnan(some.astype(f32))])
        one(f"is_inf_{name}", "IsInf", [some], opset=20, expect=[np.isinf(some.astype(f32))])
        a, b = (rand(3, 70) * 2).astype(t), (rand(70, 4) * 2).astype(t)
        scale, zero = np.array(0.5, f32), np.array(0, f32).astype(t)
        exact = (a.astype(f64) @ b.astype(f64)) * 0.5 * 0.5 / 2
        one(f"qlinear_matmul_{name}", "QLinearMatMul", [a, scale, zero, b, scale, zero, np.array(2, f32), zero], opset=21, expect=[exact.astype(f32).astype(t)])
        put = np.array([3, 4], f32).astype(t)
        one(f"pad_{name}", "Pad", [a, ints(0, 1, 2, 0), put[:1].reshape(())], opset=23, constants=(1,), expect=[np.pad(a, ((0, 2), (1, 0)), constant_values=put[0])])
        one(f"pad_zeros_{name}", "Pad", [a, ints(0, 1, 2, 0)], opset=23, expect=[np.pad(a.view(u8), ((0, 2), (1, 0))).view(t)])
        after = a.copy()
        after[[2, 0], [0, 0]] = put
        one(f"scatter_{name}", "ScatterElements", [a, ints(2, 0).reshape(2, 1), put.reshape(2, 1)], opset=18, expect=[after])
    image = rand(1, 1, 3, 4, dtype=u8)
    one("resize_bytes_linear", "Resize", [image, None, np.array([1, 1, 2, 2], f32)], opset=13, constants=(2,), mode="linear")
    one("resize_bytes_linear_by_call", "Resize", [image, None, np.array([1, 1, 2, 2], f32)], opset=13, mode="linear")
    row = rand(2, 3, 4)
    mean = row.mean((1, 2), keepdims=True)
    deviation = np.sqrt(row.astype(f64).var((1, 2), keepdims=True) + 1e-5)
    one("layer_norm_stash_f64", "LayerNormalization", [row, np.ones((3, 4), f32)], outputs=2, opset=17, axis=1, stash_type=11,
        expect=[((row - mean) / deviation).astype(f32), row.astype(f64).mean((1, 2), keepdims=True)])
    values, places = numpy_helper.from_array(np.array([1.5, 2.5], f32), "v"), numpy_helper.from_array(ints(1, 5), "p")
    for name, at in (("numbers", places), ("rows", numpy_helper.from_array(ints(0, 1, 1, 1).reshape(2, 2), "p"))):
        one(f"constant_sparse_{name}", "Constant", [], opset=13, sparse_value=helper.make_sparse_tensor(values, at, [2, 4]),
            expect=[np.array([[0, 1.5, 0, 0], [0, 2.5, 0, 0]], f32)])


def attend(q, k, v, mask=0):
    scores = (q @ k.swapaxes(2, 3)).astype(f64) / 2 + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return ((weights / weights.sum(-1, keepdims=True)) @ v.astype(f64)).astype(f32)


def add_regions(one, rand, ints):
    x = rand(2, 3, 9, 8)
    rois = np.array([[0, 0, 0, 5, 5], [1, 1, 2, 6.6, 7.4], [1, -3, -3, 12, 12], [0, 7, 8, 7, 8], [0, 20, 20, 30, 30]], f32)
    for bins in ((1, 1), (2, 3), (4, 4)):
        one(f"max_roi_pool_{bins[0]}_{bins[1]}", "MaxRoiPool", [x, rois], opset=6, pooled_shape=list(bins), spatial_scale=0.9)
    one("max_roi_pool_no_regions", "MaxRoiPool", [x, rois[:0]], opset=6, pooled_shape=[2, 2], expect=[np.zeros((0, 3, 2, 2), f32)])
    # Without a ratio each region has samples of its own number.
    regions, images = rois[:3, 1:], rois[:3, 0].astype(i64)
    for opset, attrs in ((10, {}), (16, {}), (16, {"coordinate_transformation_mode": "output_half_pixel"})):
        for size in ((2, 2), (3, 1)):
            one(f"roi_align_adaptive_{opset}_{size[0]}_{len(attrs)}", "RoiAlign", [x, regions, images], opset=opset, output_height=size[0], output_width=size[1],
                spatial_scale=0.8, **attrs)
    one("roi_align_adaptive_max", "RoiAlign", [x, np.array([[0, 0, 1, 1]], f32), ints(1)], opset=16, mode="max")


def add_branches(add, rand, ints, branches):
    """Branches of different ranks: what follows is made for each."""
    node = helper.make_node

    def graph(nodes, constants=None):
        constants = [numpy_helper.from_array(x, name) for name, x in (constants or {}).items()]
        return helper.make_graph(nodes, "branch", [], [helper.make_empty_tensor_value_info("r")], constants)

    scalar_branch = graph([node("ReduceSum", ["i0", "axes"], ["r"], keepdims=0)], {"axes": ints(0)})
    list_branch = graph([node("Relu", ["i0"], ["r"])])
    x, y = rand(1), rand(3)
    for name, go in (("scalar", True), ("list", False)):
        value = x[0] if go else np.maximum(x, 0)
        add(f"branches_of_ranks_{name}", [branches("i2", scalar_branch, list_branch, ["t"]), node("Mul", ["t", "i1"], ["o0"])],
            [x, y, np.array(go)], expect=[value * y])
    # An axis that is taken away where it is 1, as exporters write squeeze.
    for size in (1, 4):
        x = rand(2, size, 3)
        taken = graph([node("Squeeze", ["i0", "at"], ["r"])], {"at": ints(1)})
        kept = graph([node("Identity", ["i0"], ["r"])])
        add(f"branches_squeeze_{size}", [node("ReduceMax", ["i1"], ["m"], keepdims=0), node("Equal", ["m", "i2"], ["one"]), branches("one", taken, kept, ["t"]),
                                         node("Relu", ["t"], ["u"]), node("Shape", ["u"], ["o0"])],
            [x, ints(size), np.array(1, i64)], constants=(2,), opset=13, expect=[ints(2, 3) if size == 1 else ints(2, 4, 3)])


def add_scans(add, rand, ints):
    """Scan of opset 8, of batches whose sequences end at steps of their own: the state stays, and what is collected is zero."""
    node = helper.make_node
    value = lambda n: helper.make_tensor_value_info(n, 1, [2])  # noqa: E731
    body = helper.make_graph([node("Add", ["s", "x"], ["t"]), node("Mul", ["t", "x"], ["o"])], "body", [value("s"), value("x")], [value("t"), value("o")])
    for steps, lengths in ((4, (1, 4, 2)), (4, (4, 0, 3)), (1, (1,)), (5, (5, 5))):
        start, x = rand(len(lengths), 2), rand(len(lengths), steps, 2)
        last, all_ = start.copy(), np.zeros_like(x)
        for b, length in enumerate(lengths):
            for t in range(length):
                last[b] += x[b, t]
                all_[b, t] = last[b] * x[b, t]
        add(f"scan_lengths_{steps}_{len(lengths)}_{lengths[0]}", [node("Scan", ["i0", "i1", "i2"], ["o0", "o1"], body=body, num_scan_inputs=1)],
            [ints(*lengths), start, x], outputs=2, opset=8, expect=[last, all_])


def add_all(one, rand, ints, add, branches):
    for section in (add_old_forms, add_oldest_forms, add_batch_norms, add_types, add_regions):
        section(one, rand, ints)
    add_branches(add, rand, ints, branches)
    add_scans(add, rand, ints)
