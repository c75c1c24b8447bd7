"""Models that onnxruntime.quantization writes: write_quantised.py [FOLDER]          needs: onnxruntime, torch, onnx

A residual network of convolutions, a perceptron and the layer of a decoder; with QuantizeLinear and DequantizeLinear (QDQ), with
operators of integers (QOperator), with scales found at each call, and with weights of 4 bits."""

import pathlib
import sys
import tempfile
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnxruntime import quantization as q
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
from torch import nn

OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 16, 3, 1, 1), nn.Conv2d(16, 16, 3, 1, 1)
        self.deep, self.out = nn.Conv2d(16, 16, 3, 1, 1, groups=16), nn.Linear(16, 10)

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.a(x)), 2)
        x = torch.relu(x + self.c(torch.relu(self.b(x))))
        x = F.leaky_relu(self.deep(torch.cat([x[:, 8:], torch.sigmoid(x[:, :8])], 1)))
        return self.out(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


class Reader(q.CalibrationDataReader):
    def __init__(self, *shape):
        rng = np.random.default_rng(0)
        self.rows = iter([{"x": rng.standard_normal(shape).astype(np.float32)} for _ in range(4)])

    def get_next(self):
        return next(self.rows, None)


def export(model, shape, axes, path, opset=17):
    torch.onnx.export(model.eval(), torch.randn(shape), path, input_names=["x"], output_names=["y"], dynamic_axes={"x": axes}, opset_version=opset,
                      dynamo=False)


def quantised(source, shape, name, **options):
    q.quantize_static(source, OUT / f"quant_{name}.onnx", Reader(*shape), **options)


def main():
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        image, rows, newer = (f"{folder}/{name}.onnx" for name in ("image", "rows", "newer"))
        export(Residual(), (1, 3, 32, 32), {0: "batch", 2: "h", 3: "w"}, image)
        export(Perceptron(), (2, 5, 32), {0: "batch", 1: "seq"}, rows)
        onnx.save(onnx.version_converter.convert_version(onnx.load(rows), 21), newer)
        shape = (1, 3, 32, 32)
        unsigned, signed = q.QuantType.QUInt8, q.QuantType.QInt8
        quantised(image, shape, "qdq", activation_type=unsigned, weight_type=signed)
        quantised(image, shape, "qdq_channels", activation_type=signed, weight_type=signed, per_channel=True)
        quantised(image, shape, "qoperator", quant_format=q.QuantFormat.QOperator, activation_type=unsigned, weight_type=signed)
        quantised(image, shape, "qoperator_channels", quant_format=q.QuantFormat.QOperator, activation_type=unsigned, weight_type=unsigned, per_channel=True)
        quantised(rows, (2, 5, 32), "mlp_qdq", activation_type=signed, weight_type=signed, per_channel=True)
        quantised(rows, (2, 5, 32), "mlp_qdq_16", activation_type=q.QuantType.QUInt16, weight_type=signed, extra_options={"UseQDQContribOps": True})
        q.quantize_dynamic(rows, OUT / "quant_mlp_dynamic.onnx", weight_type=signed)
        q.quantize_dynamic(image, OUT / "quant_dynamic.onnx", weight_type=unsigned)
        for name, config in {
            "nbits": DefaultWeightOnlyQuantConfig(block_size=16, is_symmetric=True, accuracy_level=4),
            "nbits_offset": DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=False),
            "blocks": DefaultWeightOnlyQuantConfig(block_size=16, is_symmetric=True, quant_format=q.QuantFormat.QDQ),
        }.items():
            made = MatMulNBitsQuantizer(onnx.load(newer), algo_config=config)
            made.process()
            made.model.save_model_to_file(OUT / f"quant_mlp_{name}.onnx")


if __name__ == "__main__":
    main()
