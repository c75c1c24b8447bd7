"""What sessions raise: one class for each status of ONNX Runtime, whose messages begin alike."""

from __future__ import annotations


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
NotFound = _status("NotFound", 14, "NOT_FOUND", "Kept for programs that name it.")

ALL = (
    EPFail, EngineError, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoaded, NoModel, NoSuchFile,
    NotFound, NotImplemented, RuntimeException,
)  # fmt: skip
