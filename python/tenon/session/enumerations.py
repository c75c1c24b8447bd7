"""Enumerations of ONNX Runtime, by name and number. They say how its own engine works, apart from the level of
optimisation."""

import enum


class Numbered(enum.IntEnum):
    """Numbers that are printed by their names, in whichever Python."""

    __str__ = enum.Enum.__str__


class GraphOptimizationLevel(Numbered):
    """How much a model is changed before it is compiled: -O0, -O1, and -O2 for the others."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(Numbered):
    """Without effect: what of a network runs at the same time is decided when it is compiled."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(Numbered):
    """Without effect, for the same reason."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class OrtMemType(Numbered):
    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtAllocatorType(Numbered):
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemoryInfoDeviceType(Numbered):
    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtDeviceMemoryType(Numbered):
    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtSparseFormat(Numbered):
    """How a sparse tensor says where its elements are."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4
