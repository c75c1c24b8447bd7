"""The dynamic form of an ONNX node test: nothing about sizes is in the model, and the case is asked at two sizes.

Every dim of every input gets a name of its own and may have any size, also 0, and initializers become inputs, so weights have
open sizes too. What the model says of the shapes of other values goes, but for the ranks of outputs: it would give the sizes
away.

The second size. Sizes that are equal in the case stay equal: each size above 1 that a tensor of two or more elements has is one
group, and a group grows by the same amount. All groups together are tried first, then each alone, in an order that the case's
name decides; the first change that the ONNX reference evaluator computes is taken, with finite numbers where the case has them
(the evaluator takes the logarithm of a softmax that is 0, for one) and results of the ranks that the model declares. The
evaluator also computes what has no meaning by the specification, as boxes of six numbers; such sizes are left out (SPECIFIED).
So are those at which ONNX Runtime computes something else, beyond the case's tolerance: then nobody knows what is right.
A grown tensor holds the values of the case's own again from the beginning, in row-major order, so that indices, lengths and
bools stay what they can be. Parameters (scalars and short lists of integers) are also tried as they are where growing them
fails. A case has no second size where the reference evaluator's answer at the first one is not the case's, where it accepts no
change, or where a change alters nothing.
"""
import copy
import warnings
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper



def _attribute(node, name, otherwise=None):
    return next((onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name), otherwise)


def _split(node, x, parts=None, *_):
    size = x.shape[_attribute(node, "axis", 0)]
    if parts is None:  # before opset 18 parts are equal; from then on the last may be smaller
        return _attribute(node, "num_outputs") is not None or size % len(node.output) == 0
    return parts.shape == (len(node.output),) and parts.sum() == size


def _resize(node, x, roi=None, scales=None, sizes=None):
    axes = len(_attribute(node, "axes", range(x.ndim)))
    each = [(roi, 2 * axes), (scales, axes), (sizes, axes)]
    return all(v is None or v.size in (0, count) for v, count in each)


def _recurrent(gates):
    def holds(node, x, w, r, bias=None, lengths=None, *states):
        hidden = _attribute(node, "hidden_size", r.shape[2])
        batch_axis = 0 if _attribute(node, "layout", 0) else 1
        batch = x.shape[batch_axis]
        if lengths is not None and lengths.shape != (batch,) or any(s is not None and s.shape[batch_axis] != batch for s in states[:2]):
            return False
        return w.shape[1] == r.shape[1] == gates * hidden and r.shape[2] == hidden and w.shape[2] == x.shape[2]
    return holds


def _reverse_sequence(node, x, lengths):
    return lengths.shape == (x.shape[_attribute(node, "batch_axis", 1)],)


# Of operators whose evaluator does not ask: whether the inputs of a node are what the specification allows.
SPECIFIED = {
    "GRU": _recurrent(3), "LSTM": _recurrent(4), "RNN": _recurrent(1),
    "NonMaxSuppression": lambda node, boxes, scores, *_: boxes.shape[2] == 4 and boxes.shape[1] == scores.shape[2],
    "Resize": _resize,
    "ReverseSequence": _reverse_sequence,
    "RoiAlign": lambda node, x, rois, batch: rois.shape[1:] == (4,) and batch.shape == rois.shape[:1],
    "Split": _split,
    "Upsample": lambda node, x, scales: scales.shape == (x.ndim,),
}

GROWTH = (1, 3, 2)  # what is added to a size; the name decides which is first


def open_sizes(model: onnx.ModelProto, arrays: dict) -> onnx.ModelProto:
    """A copy of the model in the dynamic form; what was an initializer is added to `arrays`."""
    out = copy.deepcopy(model)
    graph = out.graph
    given = {info.name for info in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in given:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
            arrays[tensor.name] = np.array(numpy_helper.to_array(tensor), order="C")
    del graph.initializer[:]
    for i, info in enumerate(graph.input):
        if not info.type.HasField("tensor_type"):
            continue
        shape = info.type.tensor_type.shape
        shape.ClearField("dim")
        for axis in range(arrays[info.name].ndim):
            shape.dim.add().dim_param = f"i{i}_{axis}"
    for info in graph.output:
        for dim in info.type.tensor_type.shape.dim:
            dim.Clear()
    del graph.value_info[:]
    return out


def _grown(array: np.ndarray, grow: dict) -> np.ndarray:
    shape = [size + grow.get(size, 0) for size in array.shape]
    return array if list(array.shape) == shape else np.resize(array, shape)


def _is_parameter(array: np.ndarray) -> bool:
    return array.dtype.kind in "iu" and array.ndim <= 1 and array.size <= 8


def _is_specified(model: onnx.ModelProto, arrays: dict) -> bool:
    """Of nodes all of whose inputs are the model's."""
    for node in model.graph.node:
        given = [arrays.get(name) for name in node.input]
        if node.op_type in SPECIFIED and all(x is not None or not name for x, name in zip(given, node.input)):
            if not SPECIFIED[node.op_type](node, *given):
                return False
    return True


def _changes(name: str, inputs):
    """All that is tried, each as the list of inputs that it gives."""
    groups = sorted({size for x in inputs for size in x.shape if size > 1})
    seed = zlib.crc32(name.encode())
    turn = seed % max(len(groups), 1)
    amount = GROWTH[seed % len(GROWTH)]
    for grow in [dict.fromkeys(groups, amount), *({g: amount} for g in groups[turn:] + groups[:turn])]:
        for parameters in (False, True):
            yield [x if not parameters and _is_parameter(x) else _grown(x, grow) for x in inputs]


def second_size(name: str, model: onnx.ModelProto, inputs, outputs, same):
    """(inputs, outputs) at the second size, or None. `same(got, want)` says whether two answers are one."""
    from onnx.reference import ReferenceEvaluator

    names = [info.name for info in model.graph.input]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            evaluator = ReferenceEvaluator(model)

            def answer(arrays):
                got = evaluator.run(None, {n: np.array(x) for n, x in zip(names, arrays)})
                if not all(isinstance(x, (np.ndarray, np.generic)) for x in got):
                    raise TypeError("no tensor")
                return [np.array(x, order="C") for x in got]

            first = answer(inputs)
            if len(first) != len(outputs) or not all(same(got, want) for got, want in zip(first, outputs)):
                return None
        except Exception:
            return None
        runtime = _Runtime(model)
        for changed in _changes(name, inputs):
            if all(a.shape == b.shape for a, b in zip(changed, inputs)):
                continue
            if not _is_specified(model, dict(zip(names, changed))):
                continue
            try:
                got = answer(changed)
                again = answer(changed)
            except Exception:
                continue
            if all(_is_answer(*each) for each in zip(got, again, outputs)) and runtime.agrees(changed, got, same):
                return changed, got
    return None


class _Runtime:
    """ONNX Runtime's opinion of a model, which it may be unable to run: then it has none. Loads the model when it is asked."""

    def __init__(self, model: onnx.ModelProto):
        self.model, self.session = model, None

    def agrees(self, inputs, outputs, same) -> bool:
        try:
            if self.session is None:
                options = onnxruntime.SessionOptions()
                options.log_severity_level = 4
                self.session = onnxruntime.InferenceSession(self.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            got = self.session.run(None, dict(zip([info.name for info in self.model.graph.input], inputs)))
            return all(same(g, want) for g, want in zip(got, outputs))
        except Exception:
            return True


def _is_answer(got: np.ndarray, again: np.ndarray, want: np.ndarray) -> bool:
    """Of the case's type and rank, the same when asked again, and finite where the case's is."""
    finite = got.dtype.kind != "f" or np.isfinite(got).all() or not np.isfinite(want).all()
    alike = got.dtype == want.dtype and got.ndim == want.ndim
    return alike and finite and np.array_equal(got, again, equal_nan=got.dtype.kind == "f")
