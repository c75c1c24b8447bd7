"""The same names, as ONNX Runtime's own modules import them."""

from .onnxruntime_pybind11_state import *  # noqa: F403
