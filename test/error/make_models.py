#!/usr/bin/env python3
"""Writes the bad files that the cases of this folder read: GROUP/NAME.onnx (or .npz) beside GROUP/NAME.test.

usage: make_models.py [--check]

Needs nothing but Python: the bytes are written field by field, since no ONNX library would write most of them. With
--check it writes nothing and fails where a file is not what this script makes, or a model has no test.
"""
import math
import pathlib
import struct
import sys
import zlib

FLOAT, UINT8, INT32, INT64, STRING, BOOL = 1, 2, 6, 7, 8, 9
I64_MIN, I64_MAX = -(2**63), 2**63 - 1


# --- protobuf

def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(tag, value):
    return varint(tag << 3) + varint(value)


def float32(tag, value):
    return varint(tag << 3 | 5) + struct.pack("<f", value)


def data(tag, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(tag << 3 | 2) + varint(len(value)) + value


# --- onnx.proto

def tensor(name, dims, values=(), elem=INT64, *, raw=None, more=b""):
    """`values` as raw data of `elem`, or the bytes `raw`."""
    if raw is None:
        raw = struct.pack(f"<{len(values)}{ {FLOAT: 'f', INT64: 'q', INT32: 'i', UINT8: 'B', BOOL: '?'}[elem] }", *values)
    head = b"".join(number(1, d) for d in dims) + number(2, elem) + data(8, name)
    return head + (data(9, raw) if raw is not False else b"") + more


def ints(name, *values):
    return tensor(name, [len(values)], values)


def floats(name, *values):
    return tensor(name, [len(values)], values, FLOAT)


def weight(name, *dims):
    """Float32 zeros."""
    return tensor(name, dims, raw=bytes(4 * math.prod(dims)), elem=FLOAT)


def external(name, dims, **entries):
    more = b"".join(data(13, data(1, k) + data(2, v)) for k, v in entries.items()) + number(14, 1)
    return tensor(name, dims, raw=False, elem=FLOAT, more=more)


def attribute(name, value):
    """An int, a float, a string, a list of ints, or bytes: a tensor."""
    if isinstance(value, int):
        return data(1, name) + number(3, value) + number(20, 2)
    if isinstance(value, float):
        return data(1, name) + float32(2, value) + number(20, 1)
    if isinstance(value, str):
        return data(1, name) + data(4, value) + number(20, 3)
    if isinstance(value, bytes):
        return data(1, name) + data(5, value) + number(20, 4)
    return data(1, name) + b"".join(number(8, v) for v in value) + number(20, 7)


def subgraph(name, graph):
    return data(1, name) + data(6, graph) + number(20, 5)


def node(op, inputs, outputs, /, *more, name="bad", domain="", **attributes):
    """`more` are attributes in bytes."""
    out = b"".join(data(1, i) for i in inputs.split()) if isinstance(inputs, str) else b"".join(data(1, i) for i in inputs)
    out += b"".join(data(2, o) for o in (outputs.split() if isinstance(outputs, str) else outputs))
    out += data(3, name) + data(4, op)
    out += b"".join(data(5, attribute(k, v)) for k, v in attributes.items()) + b"".join(data(5, a) for a in more)
    return out + (data(7, domain) if domain else b"")


def value(name, *dims, elem=FLOAT):
    """A ValueInfoProto; a dim is a size or a name."""
    shape = b"".join(data(1, number(1, d) if isinstance(d, int) else data(2, d)) for d in dims)
    return data(1, name) + data(2, data(1, number(1, elem) + data(2, shape)))


def untyped(name, elem=FLOAT):
    return data(1, name) + data(2, data(1, number(1, elem)))


def graph(nodes, inputs=(), outputs=("y",), weights=(), more=b""):
    out = b"".join(data(1, n) for n in nodes) + data(2, "g") + b"".join(data(5, w) for w in weights)
    out += b"".join(data(11, i) for i in inputs)
    return out + b"".join(data(12, untyped(o) if isinstance(o, str) else o) for o in outputs) + more


def opset(version, domain=""):
    return data(8, data(1, domain) + number(2, version))


def model(*args, ir=8, opsets=opset(17), more=b""):
    """The model of graph(*args)."""
    return number(1, ir) + opsets + data(7, graph(*args)) + more


def function(name, nodes, domain="my"):
    head = data(1, name) + data(4, "x") + data(5, "y")
    return data(25, head + b"".join(data(7, n) for n in nodes) + opset(17).replace(b"\x42", b"\x4a", 1) + data(10, domain))


X = value("x", 2, 3)
IMAGE = value("x", 1, 4, 8, 8)
GOOD = model([node("Relu", "x", "y")], [X])


def one(op, inputs="x", weights=(), x=X, outputs="y", **attributes):
    """A model of one node named 'bad'."""
    return model([node(op, inputs, outputs, **attributes)], [x], outputs.split(), weights)


def conv(*dims, weight_dims=None, **attributes):
    return one("Conv", "x w", [weight("w", *(weight_dims or (4, 4, 3, 3)))], IMAGE, **attributes)


def pool(**attributes):
    return one("MaxPool", x=IMAGE, **attributes)


def resize(*scales):
    return model([node("Resize", ["x", "", "s"], "y")], [IMAGE], ["y"], [floats("s", *scales)])


# --- .npz archives

def npy(*shape, values=None):
    """An array of float32."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    values = [1.0] * math.prod(shape) if values is None else values
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + struct.pack(f"<{len(values)}f", *values)


def archive(*entries, after=b""):
    """Entries are (name, content) with what their heads claim otherwise: name, flags, method, crc, size, stored, extra."""
    out, directory = b"", b""
    for name, content, *claims in entries:
        claim = dict(local=name, flags=0, method=0, crc=zlib.crc32(content), size=len(content), stored=len(content), extra=b"", data=content)
        claim.update(claims[0] if claims else {})
        sizes = struct.pack("<III", claim["crc"], claim["stored"], claim["size"])
        common = struct.pack("<HHHHH", 45, claim["flags"], claim["method"], 0, 33) + sizes
        directory += b"PK\x01\x02" + struct.pack("<H", 45) + common + struct.pack(
            "<HHHHHII", len(name), len(claim["extra"]), 0, 0, 0, 0, len(out)) + name.encode() + claim["extra"]
        out += b"PK\x03\x04" + common + struct.pack("<HH", len(claim["local"]), len(claim["extra"]))
        out += claim["local"].encode() + claim["extra"] + claim["data"]
    end = struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(directory), len(out), 0)
    return out + directory + b"PK\x05\x06" + end + after


def archives():
    x = npy(2, 3)
    deflate = zlib.compressobj(9, wbits=-15)
    unpacked = npy(1 << 14, 1 << 8, values=[]) + bytes(1 << 24)
    packed = deflate.compress(unpacked) + deflate.flush()
    yield "good", archive(("x.npy", x))
    yield "empty", archive()
    yield "truncated", archive(("x.npy", x))[:-30]
    yield "twice", archive(("x.npy", x), ("x.npy", x))
    yield "other_local_name", archive(("x.npy", x, {"local": "z.npy"}))
    yield "parent_name", archive(("../x.npy", x))
    yield "encrypted", archive(("x.npy", x, {"flags": 1}))
    yield "wrong_crc", archive(("x.npy", x, {"crc": 1}))
    yield "size_too_large", archive(("x.npy", x, {"size": 1 << 30, "stored": 1 << 30}))
    yield "zip64_size", archive(("x.npy", x, {"size": 2**32 - 1, "extra": struct.pack("<HHQ", 1, 8, 1 << 60)}))
    yield "method_unknown", archive(("x.npy", x, {"method": 77}))
    yield "bomb", archive(("x.npy", unpacked, {"method": 8, "data": packed, "stored": len(packed)}))
    yield "not_an_array", archive(("x.npy", b"some text that is no array"))
    yield "array_too_large", archive(("x.npy", npy(1 << 40, 1 << 40, values=[])))
    yield "array_of_2_to_the_50", archive(("x.npy", npy(1 << 50, values=[])))


# --- the models

def files():
    yield "empty", b""
    yield "one_byte", b"\x08"
    yield "truncated", GOOD[:-7]
    yield "garbage", bytes(range(255, 127, -1))
    yield "length_past_the_end", number(1, 8) + opset(17) + b"\x3a\xff\x7f"
    yield "length_over_2_gib", number(1, 8) + opset(17) + b"\x3a" + varint(3 << 30)
    yield "length_over_64_bits", number(1, 8) + b"\x3a" + b"\xff" * 10 + b"\x7f"
    nested = graph([node("Relu", "x", "y")])
    for _ in range(200):
        nested = graph([node("If", "c", "y", subgraph("then_branch", nested))])
    yield "nested_subgraphs", number(1, 8) + opset(17) + data(7, nested)
    yield "no_graph", number(1, 8) + opset(17)
    yield "ir_version_from_the_future", model([node("Relu", "x", "y")], [X], ir=999)
    yield "opset_0", model([node("Relu", "x", "y")], [X], opsets=opset(0))
    yield "opset_9999", model([node("Relu", "x", "y")], [X], opsets=opset(9999))


def graphs():
    yield "cycle", model([node("Add", "x b", "a", name="first"), node("Relu", "a", "b", name="second"), node("Relu", "a", "y")], [X])
    yield "undefined_input", model([node("Add", "x nowhere", "y")], [X])
    yield "unsorted", model([node("Relu", "a", "y", name="second"), node("Abs", "x", "a", name="first")], [X])
    yield "output_never_produced", model([node("Relu", "x", "z")], [X])
    yield "tensor_made_twice", model([node("Relu", "x", "y", name="first"), node("Abs", "x", "y", name="second")], [X])
    yield "input_twice", model([node("Relu", "x", "y")], [X, X])
    yield "no_outputs", model([node("Relu", "x", "y")], [X], [])
    yield "unknown_operators", model([node("Frobnicate", "x", "a", name="first"), node("Frobnicate", "a", "b", name="second"),
                                      node("Gelu2", "b", "y", name="third", domain="com.example")], [X])
    body = graph([node("Identity", "c", "d"), node("Relu", "h", "z"), node("Neg", "h", "each")],
                 [value("i", elem=INT64), value("c", elem=BOOL), untyped("h")], ["d", "z", "each"])
    yield "loop", model([node("Loop", "n k x", "y all", subgraph("body", body))], [X], ["y", "all"], [ints("n", 10**18), tensor("k", [], [1], BOOL)])
    lost = graph([node("Add", "h elsewhere", "z", name="inside")], [value("i", elem=INT64), value("c", elem=BOOL), untyped("h")], ["c", "z"])
    yield "name_of_no_graph_around", model([node("Loop", "n k x", "y", subgraph("body", lost))], [X], ["y"],
                                           [ints("n", 3), tensor("k", [], [1], BOOL)])
    call = node("f", "x", "y", domain="my")
    yield "recursive_function", model([call], [X], more=function("f", [call]))
    yield "mutually_recursive_functions", model([call], [X], more=function("f", [node("g", "x", "y", domain="my")]) +
                                                function("g", [call]))
    bomb = function("f0", [node("Relu", "x", "y")])
    for i in range(1, 40):
        callee = f"f{i - 1}"
        bomb += function(f"f{i}", [node(callee, "x", "t", domain="my"), node(callee, "t", "y", domain="my")])
    yield "exponential_functions", model([node("f39", "x", "y", domain="my")], [X], more=bomb)
    yield "functions_of_one_name", model([node("f", "x", "y", domain="my")], [X], more=function("f", [node("Relu", "x", "y")]) +
                                         function("f", [node("Neg", "x", "y")]))
    yield "initializer_of_another_shape", model([node("Add", "x w", "y")], [X, value("w", 2, 3)], ["y"], [weight("w", 3)])
    yield "initializer_of_another_type", model([node("Add", "x w", "y")], [X, value("w", 3, elem=INT64)], ["y"], [weight("w", 3)])

    def sparse(values, places, *dims):
        return data(1, values) + data(2, places) + b"".join(number(3, d) for d in dims)

    def sparse_initializer(*args):
        return model([node("Add", "x w", "y")], [X], ["y"], (), data(15, sparse(*args)))

    two = tensor("w", [2], [1.0, 2.0], FLOAT)
    yield "sparse_initializer", sparse_initializer(two, tensor("", [2], [0, 3]), 3)
    yield "sparse_rows", sparse_initializer(two, tensor("", [2, 2], [0, 1, 1, 3]), 2, 3)
    yield "sparse_order", sparse_initializer(two, tensor("", [2], [2, 0]), 3)
    yield "sparse_count", sparse_initializer(two, tensor("", [1], [0]), 3)
    yield "sparse_bomb", sparse_initializer(two, tensor("", [2], [0, 1]), 2**20, 2**20)
    yield "sparse_external", sparse_initializer(tensor("w", [2], raw=False, elem=FLOAT, more=data(13, data(1, "location") + data(2, "../w")) + number(14, 1)),
                                                tensor("", [2], [0, 1]), 3)
    yield "sparse_constant", model([node("Constant", "", "y", data(1, "sparse_value") + data(22, sparse(two, tensor("", [2], [0, -1]), 3)) + number(20, 11))])

    def branch(nodes, weights=(), more=b""):
        """One of an If whose other branch is sound; what is wrong with it does not depend on whether a call takes it."""
        inside = graph(nodes, (), ["z"], weights, more)
        sound = graph([node("Neg", "x", "other")], (), ["other"])
        return model([node("If", "c", "y", subgraph("then_branch", inside), subgraph("else_branch", sound), name="choice")], [X, value("c", elem=BOOL)])

    add = [node("Add", "x w", "z")]
    out = external("w", [3], location="../make_models.py")
    yield "branch_external", branch(add, [out])
    yield "branch_external_unused", branch([node("Neg", "x", "z")], [out])
    yield "branch_constant_external", branch([node("Constant", "", "w", value=out, name="inside"), *add])
    yield "branch_data_short", branch(add, [tensor("w", [3], raw=b"123", elem=FLOAT)])
    yield "branch_sparse", branch(add, (), data(15, sparse(two, tensor("", [2], [0, 3]), 3)))
    yield "branch_tensor_twice", branch([node("Neg", "x", "z", name="first"), node("Relu", "x", "z", name="second")])
    yield "branch_cycle", branch([node("Add", "x b", "z", name="first"), node("Neg", "z", "b", name="second")])
    yield "branch_attribute_type", branch([node("LeakyRelu", "x", "z", alpha="steep", name="inside")])
    yield "branch_axis", branch([node("Softmax", "x", "z", axis=9, name="inside")])
    yield "branch_attribute_unknown", branch([node("Neg", "x", "a"), node("LeakyRelu", "a", "z", beta=1.0, name="inside")])
    yield "branch_attribute_missing", branch([node("Cast", "x", "z", name="inside")])
    yield "branch_choice", branch([node("Cast", "x", "a", to=2), node("BitShift", "a a", "b", direction="UP", name="inside"), node("Cast", "b", "z", to=1)])
    yield "branch_types_differ", branch([node("Shape", "x", "s"), node("Add", "x s", "z", name="inside")])
    yield "branch_step", branch([node("SequenceConstruct", "x x", "s"), node("ConcatFromSequence", "s", "z", axis="first", name="inside")])
    yield "branch_name_unknown", branch([node("Neg", "elsewhere", "z", name="inside")])
    deep = graph([node("If", "c", "z", subgraph("then_branch", graph(add, (), ["z"], [out])),
                       subgraph("else_branch", graph([node("Neg", "x", "z")], (), ["z"])), name="inner")], (), ["z"])
    yield "branch_in_a_branch", model([node("If", "c", "y", subgraph("then_branch", deep), subgraph("else_branch", graph([node("Neg", "x", "z")], (), ["z"])), name="outer")],
                                      [X, value("c", elem=BOOL)])
    yield "symbolic_dim_of_two_sizes", model([node("Add", "a b", "y")], [value("a", "n", 4), value("b", "n", 4)])


def tensors():
    add = [node("Add", "x w", "y")]

    def with_weight(w):
        return model(add, [X], ["y"], [w])

    yield "dim_negative", one("Relu", x=value("x", 2, -3))
    yield "dims_overflow", one("Relu", x=value("x", 2**40, 2**40))
    yield "rank_of_thousands", one("Relu", x=value("x", *[1] * 5000))
    yield "weight_dim_negative", with_weight(tensor("w", [-1], [0.0], FLOAT))
    yield "weight_dims_overflow", with_weight(tensor("w", [2**32, 2**32, 2], [0.0], FLOAT))
    yield "raw_data_short", with_weight(tensor("w", [2, 3], [1.0] * 5, FLOAT))
    yield "raw_data_long", with_weight(tensor("w", [2, 3], [1.0] * 7, FLOAT))
    yield "raw_and_typed_data", with_weight(tensor("w", [1], [1.0], FLOAT, more=data(4, struct.pack("<f", 1))))
    yield "elements_missing", with_weight(tensor("w", [3], raw=False, elem=FLOAT, more=data(4, struct.pack("<f", 1))))
    yield "dtype_unknown", with_weight(tensor("w", [1], raw=b"....", elem=77))
    yield "dtype_string", with_weight(tensor("w", [1], raw=False, elem=STRING, more=data(6, "text")))
    yield "input_dtype_unknown", one("Relu", x=value("x", 2, 3, elem=77))
    yield "input_string", one("Relu", x=value("x", 2, 3, elem=STRING))
    yield "input_without_type", one("Relu", x=data(1, "x"))
    yield "dtypes_differ", model(add, [X], ["y"], [ints("w", 1, 2, 3)])
    yield "external_absolute", with_weight(external("w", [3], location="/etc/passwd"))
    yield "external_parent", with_weight(external("w", [3], location="../make_models.py"))
    yield "external_hidden_parent", with_weight(external("w", [3], location="a/../../make_models.py"))
    yield "external_empty", with_weight(external("w", [3], location=""))
    yield "external_memory_marker", with_weight(external("w", [3], location="*/_ORT_MEM_ADDR_/*", offset="140000000000", length="12"))
    yield "external_key_twice", with_weight(tensor("w", [3], raw=False, elem=FLOAT, more=b"".join(
        data(13, data(1, k) + data(2, v)) for k, v in (("location", "external.bin"), ("offset", "0"), ("offset", "4"))) + number(14, 1)))
    yield "external_device", with_weight(external("w", [3], location="/dev/zero"))
    yield "narrow_sum", model([node("Add", "x x", "y")], [value("x", 2, elem=17)])
    yield "int4_raw_data_short", with_weight(tensor("w", [2, 3], raw=b"12", elem=22))
    yield "external_without_location", with_weight(external("w", [3], offset="0"))
    yield "external_folder", with_weight(external("w", [3], location="."))
    yield "external_missing", with_weight(external("w", [3], location="nowhere.bin"))
    yield "external_missing_for_two", model(add, [X], ["y"], [external(w, [3], location="nowhere.bin") for w in "wv"])
    yield "external_offset_negative", with_weight(external("w", [3], location="external.bin", offset="-4"))
    yield "external_offset_word", with_weight(external("w", [3], location="external.bin", offset="twelve"))
    yield "external_offset_past_the_end", with_weight(external("w", [3], location="external.bin", offset="4096"))
    yield "external_length_past_the_end", with_weight(external("w", [3], location="external.bin", length=str(10**18)))
    yield "external_length_short", with_weight(external("w", [3], location="external.bin", length="8"))


def attributes():
    yield "wrong_type", one("Softmax", axis="last")
    yield "missing", model([node("Concat", "x x", "y")], [X])
    yield "twice", model([node("Softmax", "x", "y", attribute("axis", 1), attribute("axis", 0))], [X])
    yield "unknown", one("Relu", alpha=1.0)
    yield "axis_out_of_range", one("Softmax", axis=2)
    yield "axis_int64_min", one("Softmax", axis=I64_MIN)
    yield "axes_twice", one("Unsqueeze", "x a", [ints("a", 0, 0)])
    yield "perm_of_200000", one("Transpose", perm=[0] * 200000)
    yield "perm_twice", one("Transpose", perm=[0, 0])
    yield "kernel_0", pool(kernel_shape=[0, 2])
    yield "kernel_larger_than_input", pool(kernel_shape=[9, 9])
    yield "kernel_rank", pool(kernel_shape=[2])
    yield "stride_0", conv(strides=[0, 1])
    yield "stride_negative", conv(strides=[1, -1])
    yield "dilation_0", conv(dilations=[0, 1])
    yield "dilation_huge", conv(dilations=[2**62, 2**62])
    yield "group_0", conv(group=0)
    yield "group_not_dividing", conv(group=3)
    yield "pads_negative", conv(pads=[-4, 0, -4, 0])
    yield "pads_huge", conv(pads=[2**62] * 4)
    yield "pads_rank", conv(pads=[1, 1])
    yield "auto_pad_unknown", conv(auto_pad="SAME")
    yield "conv_weight_rank", conv(weight_dims=(4, 4))
    yield "conv_weight_channels", conv(weight_dims=(4, 5, 3, 3))
    yield "cast_to_unknown", one("Cast", to=1000)


def shapes():
    def reshape(*shape):
        return one("Reshape", "x s", [ints("s", *shape)])

    def slice_(start, end, step):
        return one("Slice", "x b e a s", [ints("b", start), ints("e", end), ints("a", 1), ints("s", step)])

    def pad(*pads, **attrs):
        return one("Pad", "x p", [ints("p", *pads)], **attrs)

    yield "reshape_two_unknown", reshape(-1, -1)
    yield "reshape_below_minus_one", reshape(-2, 3)
    yield "reshape_count", reshape(4, 2)
    yield "reshape_not_dividing", reshape(-1, 4)
    yield "reshape_zero_beyond_rank", reshape(2, 3, 0)
    yield "reshape_int64_min", reshape(I64_MIN, 1)
    yield "reshape_overflow", reshape(2**33, 2**31)
    yield "split_not_summing", one("Split", "x s", [ints("s", 1, 3)], outputs="y z", axis=1)
    yield "split_zero_outputs", one("Split", "x s", [ints("s")], outputs="y", axis=1)
    yield "split_negative", one("Split", "x s", [ints("s", 4, -1)], outputs="y z", axis=1)
    yield "slice_step_0", slice_(0, 2, 0)
    yield "slice_axis", one("Slice", "x b e a", [ints("b", 0), ints("e", 1), ints("a", 7)])
    yield "matmul_inner", one("MatMul", "x w", [weight("w", 4, 2)])
    yield "gemm_bias", one("Gemm", "x w b", [weight("w", 3, 4), weight("b", 5)])
    yield "broadcast", one("Add", "x w", [weight("w", 4)])
    yield "concat_ranks", one("Concat", "x w", [weight("w", 3)], axis=0)
    yield "gather_constant_index", model([node("Gather", "s i", "t"), node("Expand", "x t", "y", name="expand")], [X], ["y"],
                                         [ints("s", 1, 2, 3), ints("i", 7)])
    yield "gather_index", one("Gather", "x i", [ints("i", 0, -2, 2)])
    yield "gather_elements_index", one("GatherElements", "x i", [tensor("i", [1, 3], [0, 1, -3])])
    yield "gather_nd_index", one("GatherND", "x i", [tensor("i", [2, 2], [1, 2, 0, 3])])
    yield "expand_incompatible", one("Expand", "x s", [ints("s", 4, 3)])
    yield "tile_rank", one("Tile", "x r", [ints("r", 2)])
    yield "tile_negative", one("Tile", "x r", [ints("r", 2, -1)])
    yield "pad_rank", pad(1, 1)
    yield "pad_below_zero", pad(-3, 0, 0, 0)
    yield "pad_reflect_too_far", pad(5, 0, 0, 0, mode="reflect")
    yield "pad_mode", pad(0, 0, 0, 0, mode="mirror")
    yield "resize_scale_0", resize(1, 1, 0, 2)
    yield "resize_scale_nan", resize(1, 1, math.nan, 2)
    yield "resize_scale_inf", resize(1, 1, math.inf, 2)
    yield "resize_scale_negative", resize(1, 1, -2, 2)
    yield "resize_scale_count", resize(2, 2)
    yield "range_step_0", one("Range", "a b c", [tensor(n, [], [v]) for n, v in (("a", 0), ("b", 9), ("c", 0))])
    yield "rank_from_data", model([node("Cast", "x", "s", name="cast", to=INT64), node("Reshape", "x s", "y")], [value("x", "n")])
    yield "topk_beyond_dim", one("TopK", "x k", [ints("k", 9)], outputs="y z")
    yield "nonzero", model([node("NonZero", "x", "s", name="find"), node("Add", "s five", "y", name="bad")], [value("x", 2)], [value("y", 1, elem=INT64)], [tensor("five", [1, 5], [0] * 5)])
    yield "einsum_equation", one("Einsum", equation="ij->jk->")


def formulas():
    """Operators that are written as formulas: what they check by themselves."""
    def of(op, inputs, *xs, opsets=opset(28), weights=(), outputs="y", **attributes):
        return model([node(op, inputs, outputs, **attributes)], xs, outputs.split(), weights, opsets=opsets)

    q, cube = value("q", 1, 2, 3, 4), value("x", 2, 3, 4)
    yield "attention_heads", of("Attention", "x x x", cube, q_num_heads=2)
    yield "attention_not_dividing", of("Attention", "q k k", q, value("k", 1, 3, 3, 4))
    yield "attention_half_cache", of("Attention", ["q", "q", "q", "", "q"], q)
    yield "attention_mode", of("Attention", "q q q", q, qk_matmul_output_mode=7)
    yield "rotary_odd", of("RotaryEmbedding", "q c c", q, value("c", 1, 3, 2), rotary_embedding_dim=3)
    yield "loss_labels", of("NegativeLogLikelihoodLoss", "x l", X, value("l", 3, 3, elem=INT64))
    yield "loss_reduction", of("SoftmaxCrossEntropyLoss", "x l", X, value("l", 2, elem=INT64), reduction="all")
    yield "group_norm_groups", of("GroupNormalization", "x s s", value("x", 2, 3, 4), value("s", 3), num_groups=2)
    yield "lstm_weights", of("LSTM", "x w r", value("x", 5, 1, 3), value("w", 1, 8, 3), value("r", 1, 7, 2), hidden_size=2)
    yield "lstm_state_rank", of("LSTM", ["x", "w", "r", "", "", "h"], value("x", 5, 1, 3), value("w", 1, 8, 3), value("r", 1, 8, 2), value("h", 2), hidden_size=2, layout=1)
    yield "gru_direction", of("GRU", "x w r", value("x", 5, 1, 3), value("w", 1, 6, 3), value("r", 1, 6, 2), direction="up")
    yield "scatter_nd_depth", of("ScatterND", "x i u", X, value("i", 1, 3, elem=INT64), value("u", 1))
    yield "scatter_updates", of("ScatterElements", "x i u", X, value("i", 3, 3, elem=INT64), value("u", 3, 3), axis=1)
    yield "einsum_ranks", of("Einsum", "x x", X, equation="ij,jk->ik", opsets=opset(17))
    yield "einsum_term", of("Einsum", "x", X, equation="ijk->i")
    yield "einsum_result", of("Einsum", "x", X, equation="ij->iz")
    yield "einsum_letters", of("Einsum", "x", X, equation="i;->i")
    yield "det_not_square", of("Det", "x", X)
    yield "conv_transpose_group", of("ConvTranspose", "x w", IMAGE, weights=[weight("w", 4, 2, 3, 3)], group=3)
    yield "conv_transpose_stride", of("ConvTranspose", "x w", IMAGE, weights=[weight("w", 4, 2, 3, 3)], strides=[0, 1])
    for name, shape in (("beyond", [19, 17]), ("empty", [0, 16]), ("channels", [1, 3, 16, 16])):
        yield f"conv_transpose_{name}", of("ConvTranspose", "x w", IMAGE, weights=[weight("w", 4, 2, 3, 3)], strides=[2, 2], output_shape=shape)
    yield "grid_rank", of("GridSample", "x g", IMAGE, value("g", 1, 2, 2, 3))
    yield "roi_align_ratio", of("RoiAlign", "x r b", IMAGE, value("r", 3, 4), value("b", 3, elem=INT64), sampling_ratio=2**40)
    yield "max_roi_pool_shape", of("MaxRoiPool", "x r", IMAGE, value("r", 3, 5))
    yield "dft_last_axis", of("DFT", ["x", "", "a"], value("x", 2, 3, 1), weights=[tensor("a", [], [2])])
    yield "dft_length", of("DFT", ["x", "n", ""], value("x", 2, 3, 1), weights=[tensor("n", [], [2**40])])
    yield "quantize_blocks", of("QuantizeLinear", "x s", X, value("s", 1, 2), block_size=0)
    yield "quantize_axis", of("QuantizeLinear", "x s", X, value("s", 3), axis=5)
    yield "tensor_scatter_batch", of("TensorScatter", "x x", cube, axis=0)
    yield "scan_length", of("Scan", "x", X, num_scan_inputs=5)
    yield "tfidf_columns", of("TfIdfVectorizer", "t", value("t", 4, elem=INT64), min_gram_length=1, max_gram_length=1, max_skip_count=0, mode="TF",
                              ngram_counts=[0], ngram_indexes=[-1], pool_int64s=[5])
    yield "tfidf_counts", of("TfIdfVectorizer", "t", value("t", 4, elem=INT64), min_gram_length=1, max_gram_length=2, max_skip_count=0, mode="TF",
                             ngram_counts=[0, 9], ngram_indexes=[0], pool_int64s=[5])

    def tree(yes):
        return of("TreeEnsemble", "x", X, opsets=opset(21) + opset(5, "ai.onnx.ml"), domain="ai.onnx.ml", tree_roots=[0], nodes_featureids=[0],
                  nodes_splits=tensor("", [1], [1.0], FLOAT), nodes_modes=tensor("", [1], [0], UINT8), nodes_truenodeids=[yes], nodes_trueleafs=[0],
                  nodes_falsenodeids=[0], nodes_falseleafs=[1], leaf_targetids=[0], leaf_weights=tensor("", [1], [1.0], FLOAT))
    yield "tree_cycle", tree(0)
    yield "tree_node", tree(9)
    yield "tree_of_no_nodes", of("TreeEnsembleRegressor", "x", X, opsets=opset(17) + opset(1, "ai.onnx.ml"), domain="ai.onnx.ml", n_targets=1)
    yield "bit_cast_width", of("BitCast", "x", X, to=INT64)


def sizes():
    huge = ints("s", 2**30, 2**30)
    yield "expand", one("Expand", "x s", [ints("s", 2**60, 2, 3)])
    yield "tile", one("Tile", "x s", [huge])
    yield "tile_overflow", one("Tile", "x s", [ints("s", I64_MAX, I64_MAX)])
    yield "constant_of_shape", model([node("ConstantOfShape", "s", "y")], [], ["y"], [huge])
    yield "constant_of_shape_negative", model([node("ConstantOfShape", "s", "y")], [], ["y"], [ints("s", -1, 3)])
    yield "range", one("Range", "a b c", [tensor(n, [], [v]) for n, v in (("a", I64_MIN), ("b", I64_MAX), ("c", 1))])
    yield "pad", one("Pad", "x p", [ints("p", 2**60, 0, 2**60, 0)])
    yield "pad_overflow", one("Pad", "x p", [ints("p", I64_MAX, 0, I64_MAX, 0)])
    yield "resize", resize(1, 1, 1e15, 1e15)
    yield "resize_to", model([node("Resize", ["x", "", "", "s"], "y")], [IMAGE], ["y"], [ints("s", 1, 4, 2**40, 2**40)])
    yield "one_hot", one("OneHot", "i d v", [ints("i", 0, 1), ints("d", 2**60), floats("v", 0, 1)])
    yield "matmul", model([node("Expand", "x s", "b", name="expand"), node("MatMul", "b c", "y")], [value("x", 1, 1), value("c", 1, 2**30)], ["y"],
                          [ints("s", 2**30, 1)])
    yield "conv_output", conv(pads=[2**30] * 4)
    yield "doubled", model([node("Concat", f"d{i} d{i}", f"d{i + 1}", axis=0, name=f"n{i}") for i in range(60)] + [node("ReduceSum", "d60", "y")],
                           [], ["y"], [weight("d0", 1)])
    yield "memory", model([node("Expand", "x s", "y")], [value("x", 1)], ["y"], [ints("s", 2**40)])
    yield "constant_folding", model([node("Expand", "w s", "a", name="expand"), node("Add", "a a", "b", name="add"), node("ReduceMax", "b", "c", name="max"),
                                     node("Add", "x c", "y")], [X], ["y"], [weight("w", 1), ints("s", 2**40)])


def names():
    def named(input_name, output_name, node_name):
        inner = node("Reshape", [input_name, "s"], [output_name], name=node_name)
        return model([inner], [value(input_name, 2, 3)], [output_name], [ints("s", -1, -1)])

    yield "invalid_utf8", named(b"x\xff\xfe", "y", "bad")
    yield "nul", named(b"x\x00y", b"\x00", b"n\x00ode")
    yield "newline_and_quotes", named("x\n'\"", "y\r", "n\n\"'\\ode")
    yield "path", named("../../etc/passwd", "$(touch pwned)", "../../bad")
    yield "escape", named("x\x1b[31m", "y", "n\x1b]0;title\x07ode")
    yield "too_long", named("x", "y", "n" * (2**16 + 1))
    yield "long", named("x", "y", "n" * 2**16)


GROUPS = {"file": files, "graph": graphs, "tensor": tensors, "attribute": attributes, "shape": shapes, "formula": formulas, "size": sizes, "name": names}


def main():
    here = pathlib.Path(__file__).resolve().parent
    check = sys.argv[1:] == ["--check"]
    wrong = []
    made = {here / group / f"{name}.onnx": bytes_ for group, make in GROUPS.items() for name, bytes_ in make()}
    made[here / "tensor/external.bin"] = bytes(16)
    made[here / "archive/model.onnx"] = GOOD
    made |= {here / "archive" / f"{name}.npz": bytes_ for name, bytes_ in archives()}
    for path, content in made.items():
        if check:
            if not path.is_file() or path.read_bytes() != content:
                wrong.append(f"{path}: not what make_models.py writes")
            if path.suffix in (".onnx", ".npz") and path.stem != "model" and not path.with_suffix(".test").is_file():
                wrong.append(f"{path}: no test beside it")
        elif not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
    wrong += [f"{path}: not made by make_models.py" for path in here.glob("*/*.[on][np][nz]*") if path not in made]
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
