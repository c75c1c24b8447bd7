"""What sessions raise: one class for each status of ONNX Runtime, whose messages begin alike."""

from __future__ import annotations

import re
from typing import Mapping, Sequence


class _Status(Exception):
    code, label = 0, ""

    @classmethod
    def of(cls, message: str) -> Exception:
        """With the words that programs look for."""
        return cls(f"[ONNXRuntimeError] : {cls.code} : {cls.label} : {message}")


def _status(name: str, code: int, label: str, says: str) -> type:
    return type(name, (_Status,), {"code": code, "label": label, "__doc__": says, "__module__": __name__})


Fail = _status("Fail", 1, "FAIL", "Something else went wrong.")
InvalidArgument = _status("InvalidArgument", 2, "INVALID_ARGUMENT", "What was given does not fit the model.")
NoSuchFile = _status("NoSuchFile", 3, "NO_SUCHFILE", "The model's file is not there.")
NoModel = _status("NoModel", 4, "NO_MODEL", "There is no model.")
EngineError = _status("EngineError", 5, "ENGINE_ERROR", "Kept for programs that name it.")
RuntimeException = _status("RuntimeException", 6, "RUNTIME_EXCEPTION", "A call failed.")
InvalidProtobuf = _status("InvalidProtobuf", 7, "INVALID_PROTOBUF", "The file is no ONNX model.")
ModelLoaded = _status("ModelLoaded", 8, "MODEL_LOADED", "Kept for programs that name it.")
NotImplemented = _status("NotImplemented", 9, "NOT_IMPLEMENTED", "The model has what is not supported.")
InvalidGraph = _status("InvalidGraph", 10, "INVALID_GRAPH", "The model contradicts itself.")
EPFail = _status("EPFail", 11, "EP_FAIL", "Kept for programs that name it.")
ModelLoadCanceled = _status("ModelLoadCanceled", 12, "MODEL_LOAD_CANCELED", "The options say that nothing is to be loaded.")
ModelRequiresCompilation = _status("ModelRequiresCompilation", 13, "MODEL_REQUIRES_COMPILATION", "Kept for programs that name it.")
NotFound = _status("NotFound", 14, "NOT_FOUND", "Kept for programs that name it.")

ALL = (
    EPFail, EngineError, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoadCanceled, ModelLoaded,
    ModelRequiresCompilation, NoModel, NoSuchFile, NotFound, NotImplemented, RuntimeException,
)  # fmt: skip

# What ONNX Runtime checks against an operator's schema makes a graph invalid, and what it reads before makes the argument so.
_OF_MODELS = (
    (r"expected an ONNX model with a graph, but there is none|data type undefined is not supported|unknown data type"
     r"|is defined by no node, initializer or graph", InvalidArgument),
    (r"unknown attribute |expected the attribute \S+ but it is missing|expected attribute \S+ to be an? |expected a graph in attribute"
     r"|expected \d+( to \d+| or more)? inputs, but got|the local function calls itself|expected operator set 1 to \d+, but got 0"
     r"|expected (a |an )?[a-z ]*(float|integer|bool)[a-z ]* inputs?, but got", InvalidGraph),
)  # fmt: skip
_SCHEMAS = ("ai.onnx", "ai.onnx.ml")
_KNOWN = {"ImageDecoder"}  # operators of these that are not supported
# Indices are InvalidArgument, but of these operators; sizes that do not fit are Fail, but of those.
_SIZES = {"GatherElements", "ReverseSequence"}
_ARGUMENTS = {"Expand", "Range", "Tile", "OneHot", "Slice"}
_OPERATOR = re.compile(r"\((\w+)\)(?:: | needs)")


def of_model(message: str, unsupported: Sequence[Mapping], imports: Mapping[str, int]) -> Exception:
    """What ONNX Runtime raises of a model like this; `unsupported` as describe_import has it."""
    for u in unsupported:
        if u["reason"] != "the operator is not supported":
            continue
        domain = u["domain"]
        if domain.startswith("com.microsoft") or u["operator"] in _KNOWN:
            return NotImplemented.of(message)
        is_unknown = domain in _SCHEMAS or domain not in imports
        return (InvalidGraph if is_unknown else Fail).of(message)
    for pattern, kind in _OF_MODELS:
        if re.search(pattern, message):
            return kind.of(message)
    return Fail.of(message)


def of_call(error: Exception) -> Exception:
    """The same of a call."""
    if not isinstance(error, (ValueError, IndexError, TypeError)):
        return RuntimeException.of(str(error))
    if "is no number of the type it is cast to" in str(error):
        return RuntimeException.of(str(error))
    operator = _OPERATOR.search(str(error))
    name = operator[1] if operator else ""
    is_argument = name not in _SIZES if isinstance(error, IndexError) else name in _ARGUMENTS
    return (InvalidArgument if is_argument or "an optional value is asked for" in str(error) else Fail).of(str(error))
