#!/usr/bin/env python3
"""A small decoder as generators of language export it: weights of 4 bits, grouped attention with a cache, rotary embeddings.
From one library with open sizes, a prompt and then 64 greedy steps give the tokens that ONNX Runtime gives.

Usage: onnx_decoder.py TENON      needs: pip install onnx onnxruntime numpy apache-tvm-ffi
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance" / "onnx"))
from dlpack import to_argument, to_numpy  # noqa: E402

WORDS, HIDDEN, INNER, HEADS, KV, SIZE, LAYERS, PLACES, BLOCK = 320, 128, 192, 8, 2, 16, 2, 256, 32
STEPS = 64


class Model:
    """Nodes and weights of the decoder."""

    def __init__(self):
        self.rng = np.random.default_rng(7)
        self.nodes, self.weights = [], []

    def weight(self, name: str, array) -> str:
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, op: str, inputs, *outputs, domain="com.microsoft", **attrs) -> str:
        self.nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], domain=domain, **attrs))
        return outputs[0]

    def norm(self, name: str) -> str:
        return self.weight(name + ".weight", 1 + 0.1 * self.rng.standard_normal(HIDDEN).astype(np.float32))

    def few_bits(self, name: str, rows: int, depth: int):
        """Codes, scales and zero points of [rows, depth]."""
        blocks = depth // BLOCK
        codes = self.rng.integers(0, 256, (rows, blocks, BLOCK // 2), np.uint8)
        scales = (self.rng.random((rows, blocks)) * 0.4 / np.sqrt(depth) + 0.1 / np.sqrt(depth)).astype(np.float32)
        zeros = self.rng.integers(6, 10, (rows, blocks), np.uint8)
        packed = zeros.reshape(rows, -1, 2) if blocks % 2 == 0 else np.pad(zeros, ((0, 0), (0, 1))).reshape(rows, -1, 2)
        return [self.weight(name + ".codes", codes), self.weight(name + ".scales", scales),
                self.weight(name + ".zeros", packed[..., 0] | packed[..., 1] << 4)]

    def linear(self, x: str, name: str, rows: int, depth: int) -> str:
        return self.node("MatMulNBits", [x, *self.few_bits(name, rows, depth)], name, K=depth, N=rows, bits=4, block_size=BLOCK)

    def build(self) -> onnx.ModelProto:
        lengths = self.node("ReduceSum", ["attention_mask", self.weight("axis", np.array([1]))], "lengths", domain="", keepdims=0)
        last = self.node("Cast", [self.node("Sub", [lengths, self.weight("one", np.array(1))], "before_last", domain="")], "seqlens_k", domain="", to=TensorProto.INT32)
        shape = self.node("Shape", ["attention_mask"], "shape", domain="")
        total = self.node("Cast", [self.node("Gather", [shape, "one"], "total", domain="")], "total_sequence_length", domain="", to=TensorProto.INT32)
        angles = np.arange(PLACES)[:, None] / 100 ** (np.arange(SIZE // 2) * 2 / SIZE)
        tables = [self.weight("cos", np.cos(angles).astype(np.float32)), self.weight("sin", np.sin(angles).astype(np.float32))]
        codes, scales, _ = self.few_bits("embedding", WORDS, HIDDEN)
        self.weights[-1].name = "unused"
        self.weights.pop()
        flat = next(w for w in self.weights if w.name == codes)
        flat.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(flat).reshape(WORDS, -1), codes))
        flat = next(w for w in self.weights if w.name == scales)
        flat.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(flat) * 20, scales))
        x = self.node("GatherBlockQuantized", [codes, "input_ids", scales], "embedded", bits=4, block_size=BLOCK)
        y = self.node("SimplifiedLayerNormalization", [x, self.norm("norm.0")], "normal.0", domain="", axis=-1, epsilon=1e-5)
        for i in range(LAYERS):
            qkv = self.linear(y, f"qkv.{i}", (HEADS + 2 * KV) * SIZE, HIDDEN)
            a = self.node("GroupQueryAttention", [qkv, "", "", f"past.{i}.key", f"past.{i}.value", last, total, *tables], f"attention.{i}",
                          f"present.{i}.key", f"present.{i}.value", num_heads=HEADS, kv_num_heads=KV, do_rotary=1)
            a = self.linear(a, f"out.{i}", HIDDEN, HEADS * SIZE)
            self.nodes.append(helper.make_node("SkipSimplifiedLayerNormalization", [x, a, self.norm(f"norm.{i}.a")], [f"normal.{i}.a", "", "", f"sum.{i}.a"],
                                               domain="com.microsoft", epsilon=1e-5))
            x, y = f"sum.{i}.a", f"normal.{i}.a"
            gate = self.linear(y, f"gate.{i}", INNER, HIDDEN)
            silu = self.node("Mul", [gate, self.node("Sigmoid", [gate], f"sigmoid.{i}", domain="")], f"silu.{i}", domain="")
            inner = self.node("Mul", [silu, self.linear(y, f"up.{i}", INNER, HIDDEN)], f"inner.{i}", domain="")
            m = self.linear(inner, f"down.{i}", HIDDEN, INNER)
            self.nodes.append(helper.make_node("SkipSimplifiedLayerNormalization", [x, m, self.norm(f"norm.{i}.m")], [f"normal.{i}.m", "", "", f"sum.{i}.m"],
                                               domain="com.microsoft", epsilon=1e-5))
            x, y = f"sum.{i}.m", f"normal.{i}.m"
        self.linear(y, "logits", WORDS, HIDDEN)

        def info(name, dims, dtype=TensorProto.FLOAT):
            return helper.make_tensor_value_info(name, dtype, dims)
        caches = [f"{i}.{part}" for i in range(LAYERS) for part in ("key", "value")]
        inputs = [info("input_ids", ["batch", "tokens"], TensorProto.INT64), info("attention_mask", ["batch", "total"], TensorProto.INT64)]
        inputs += [info("past." + c, ["batch", KV, "past", SIZE]) for c in caches]
        outputs = [info("logits", ["batch", "tokens", WORDS])] + [info("present." + c, ["batch", KV, "total", SIZE]) for c in caches]
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)


def generate(run, prompt: np.ndarray, first: int):
    """The tokens that the largest logits choose. The first cache has `first` rows, none of which counts."""
    batch, tokens = prompt.shape
    caches = [np.ones((batch, KV, first, SIZE), np.float32)] * (2 * LAYERS)
    chosen, ids = [], prompt
    for step in range(STEPS + 1):
        logits, *caches = run([ids, np.ones((batch, tokens + step), np.int64), *caches])
        ids = logits[:, -1].argmax(-1)[:, None].astype(np.int64)
        chosen.append(ids)
    return np.concatenate(chosen, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    args = parser.parse_args()
    model = Model().build()
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [i.name for i in session.get_inputs()]
    with tempfile.TemporaryDirectory() as tmp:
        path, library = pathlib.Path(tmp) / "decoder.onnx", pathlib.Path(tmp) / "decoder.so"
        onnx.save(model, path)
        shapes = [f"--shape=input_ids:batch[1..4]xtokens[1..{PLACES}]", f"--shape=attention_mask:batchxtotal[1..{PLACES}]"]
        shapes += [f"--shape=past.{i}.{part}:batchx{KV}xpast[1..{PLACES}]x{SIZE}" for i in range(LAYERS) for part in ("key", "value")]
        subprocess.run([args.tenon, "compile", str(path), "-o", str(library), *shapes], check=True)
        ours = 0
        import tvm_ffi
        loaded = tvm_ffi.load_module(str(library)).main
        for prompt in (np.array([[5, 17, 300, 2, 9, 44, 121]], np.int64), np.array([[1]], np.int64), np.arange(66).reshape(2, 33)):
            want = generate(lambda feeds: session.run(None, dict(zip(names, feeds))), prompt, 0)
            got = generate(lambda feeds: [to_numpy(y, np.dtype(np.float32)) for y in loaded(*(to_argument(np.ascontiguousarray(x)) for x in feeds))], prompt, 1)
            print(f"prompt of {prompt.shape}: {(want == got).mean():.0%} of the tokens, {len(np.unique(want))} different ones")
            ours += np.array_equal(want, got)
        codes = sum(np.prod(w.dims) for w in model.graph.initializer if w.name.endswith(".codes"))
        print(f"{codes} bytes of codes, {library.stat().st_size} bytes of library")
        # Half as much again for scales and offsets, and the kernels; as numbers the codes would take eight times as much.
        return 0 if ours == 3 and library.stat().st_size < 2 * codes + (1 << 18) else 1


if __name__ == "__main__":
    sys.exit(main())
