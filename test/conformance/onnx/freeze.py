"""Makes the parameters of an ONNX node test (shapes, axes, sizes, …) constants of its model.

The node tests pass everything as run-time inputs, also what decides the shapes of the outputs. A compiler of static
shapes takes those when it compiles, as real models give them.
"""
import onnx
from onnx import numpy_helper

_REDUCTIONS = ("ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum "
               "ReduceLogSumExp").split()
PARAMETERS = {
    "Reshape": [1], "Slice": [1, 2, 3, 4], "Squeeze": [1], "Unsqueeze": [1], "Expand": [1], "Tile": [1], "Split": [1],
    "Pad": [1, 3], "Resize": [1, 2, 3], "Upsample": [1], "ConstantOfShape": [0], "Range": [0, 1, 2], "OneHot": [1],
    "CumSum": [1], "CumProd": [1], "Dropout": [1, 2], "TopK": [1], "CenterCropPad": [1], "Col2Im": [1, 2],
    "AffineGrid": [1], "MaxUnpool": [2], "DFT": [1, 2], "STFT": [1, 3], "HannWindow": [0], "HammingWindow": [0],
    "BlackmanWindow": [0], "MelWeightMatrix": [0, 1, 2, 3, 4], **{name: [1] for name in _REDUCTIONS},
}


def freeze(model: onnx.ModelProto, arrays: dict) -> onnx.ModelProto:
    """A copy of the model in which parameters that are graph inputs are initializers holding `arrays[name]`."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    graph = out.graph
    names = {node.input[i] for node in graph.node for i in PARAMETERS.get(node.op_type, []) if i < len(node.input)}
    for info in [i for i in graph.input if i.name in names and i.name in arrays]:
        graph.input.remove(info)
        graph.initializer.append(numpy_helper.from_array(arrays[info.name], info.name))
    return out
