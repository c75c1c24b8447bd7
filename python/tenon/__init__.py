"""Tenon: networks and tensor expressions to small native libraries.

    import numpy as np
    import tenon
    from tenon import te

    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.placeholder((n,), name="B")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    add = tenon.build(s, [A, B, C], "llvm", name="add")
    add(x, y, z)                    # NumPy arrays, PyTorch tensors, tenon.nd arrays
    add.export_library("add.so")    # tenon.runtime.load_module reads it
"""

from . import contrib, nd, runtime, te, target, tir
from ._tenon import IrModule, Schedule, Stage, __version__
from .build_module import build, compile, load, lower
from .nd import cpu, cuda, opencl
from .session import InferenceSession
from .te import create_schedule

Schedule.__repr__ = lambda self: f"<tenon.Schedule of {', '.join(stage.op.name for stage in self.stages)}>"
Stage.__repr__ = lambda self: f"<tenon.Stage of {self.op.name}: {', '.join(loop.name for loop in self.leaf_iter_vars)}>"

__all__ = [
    "InferenceSession",
    "IrModule",
    "Schedule",
    "Stage",
    "__version__",
    "build",
    "compile",
    "contrib",
    "cpu",
    "create_schedule",
    "cuda",
    "load",
    "lower",
    "nd",
    "opencl",
    "runtime",
    "target",
    "te",
    "tir",
]
