"""ONNX's own interface of runtimes, onnx.backend.base, by compiled libraries.

    import tenon.onnx_backend as backend

    y, = backend.prepare(onnx.load("model.onnx")).run([x])

Needs the package onnx. The module has the backend's functions; onnx.backend.test.BackendTest takes it."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from .session import InferenceSession, SessionOptions

__all__ = ["TenonBackend", "TenonBackendRep", "prepare", "run_model", "run_node", "supports_device"]

_ERRORS_ONLY = 3


class TenonBackendRep(BackendRep):
    """A compiled model."""

    def __init__(self, session: InferenceSession):
        self._session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple:
        """The outputs, by place and by name. `inputs` are arrays by name, several in the order of the model's inputs, or one
        array."""
        names = [i.name for i in self._session.get_inputs()]
        if isinstance(inputs, Mapping):
            feeds = inputs
        elif isinstance(inputs, (list, tuple)):
            if len(inputs) > len(names):
                raise ValueError(f"expected at most {len(names)} inputs but got {len(inputs)}")
            feeds = dict(zip(names, inputs))
        else:
            feeds = {names[0]: inputs}
        outputs = [o.name for o in self._session.get_outputs()]
        return _named(outputs, self._session.run(None, feeds))


def _named(names: Sequence[str], values: Sequence) -> tuple:
    """Names that are none in Python are left to places."""
    usable = len(set(names)) == len(names) and all(n.isidentifier() and not n.startswith("_") for n in names)
    return namedtupledict("Outputs", list(names) if usable else [f"output_{i}" for i in range(len(names))])(*values)


def _compiled(model: onnx.ModelProto, device: str) -> TenonBackendRep:
    if not TenonBackend.supports_device(device):
        raise ValueError(f"expected the device CPU but got {device}")
    options = SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    return TenonBackendRep(InferenceSession(model.SerializeToString(), options))


class TenonBackend(Backend):
    """Models and single nodes, on the CPU."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether it can be compiled; it is."""
        try:
            cls.prepare(model, device, **kwargs)
        except Exception:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> TenonBackendRep:
        """Compiles it, in the cache. Errors: those of tenon.InferenceSession, and ValueError for a device that is not here."""
        super().prepare(model, device, **kwargs)
        return _compiled(model, device)

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Sequence | None = None, **kwargs: Any
    ) -> tuple:
        """One node, with its inputs in order. `outputs_info` are type and shape of each output; what is not said is
        inferred. Of `kwargs`, opset_version is that of the node, the newest where none is given."""
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        super().run_node(node, inputs, device, outputs_info, opset_version=version)
        arrays = [np.asarray(i) for i in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
        names = [name for name in node.input if name]
        feeds = dict(zip(names, arrays))

        def type_of(name: str, dtype: Any, shape: Sequence) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)

        given = [type_of(n, a.dtype, a.shape) for n, a in feeds.items()]
        made = [name for name in node.output if name]
        results = [type_of(n, *i) for n, i in zip(made, outputs_info)] if outputs_info else []
        results = results or [onnx.ValueInfoProto(name=name) for name in made]
        domains = {"": version} | ({node.domain: 1} if node.domain else {})
        graph = helper.make_graph([node], "node", given, results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in domains.items()])
        model = onnx.shape_inference.infer_shapes(model)
        return _compiled(model, device).run(feeds)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return Device(device).type == DeviceType.CPU


is_compatible = TenonBackend.is_compatible
prepare = TenonBackend.prepare
run_model = TenonBackend.run_model
run_node = TenonBackend.run_node
supports_device = TenonBackend.supports_device
