"""Sessions, as ONNX Runtime has them: a model is compiled when it is opened, and run with arrays by name.

    session = tenon.InferenceSession("model.onnx")
    y, = session.run(None, {"x": x})

tenon.onnxruntime has all names of the module onnxruntime."""

from .options import RunOptions, SessionOptions
from .parameters import ModelMetadata, NodeArg
from .session import InferenceSession
from .values import OrtValue

__all__ = ["InferenceSession", "ModelMetadata", "NodeArg", "OrtValue", "RunOptions", "SessionOptions"]
