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

import importlib.util

if importlib.util.find_spec("._tenon", __name__) is None:
    raise ImportError(
        f"'{__path__[0]}' has the package's sources alone; ./build.sh python builds what belongs to them into "
        "build/python, which PYTHONPATH then names"
    )

from . import _left_out, contrib, ir, nd, registry, runtime, target, te, testing, tir, transform, tuning
from ._tenon import IrModule, Schedule, Stage, StopFlag, __version__
from .build_module import build, compile, load, lower
from .groups import Group
from .ir import IRModule
from .nd import cpu, cuda, device, gpu, opencl
from .operators import register_operator, remove_operator
from .registry import get_global_func, register_func
from .session import InferenceSession
from .te import create_schedule
from .transform import PassContext
from . import auto_scheduler, autotvm  # which need all of the above

TVMError = (ValueError, TypeError, IndexError, MemoryError, NotImplementedError, RuntimeError)
"""What may be raised, for `except tenon.TVMError`."""

Schedule.__repr__ = lambda self: f"<tenon.Schedule of {', '.join(stage.op.name for stage in self.stages)}>"
Stage.__repr__ = lambda self: f"<tenon.Stage of {self.op.name}: {', '.join(loop.name for loop in self.leaf_iter_vars)}>"
_left_out.say_of(Schedule, "Schedule.")
_left_out.say_of(Stage, "Stage.")
_left_out.say_of(te.Operation, "Operation.")
_left_out.say_of(te.IterVar, "IterVar.")
_left_out.say_of(nd.Device, "Device.")
__getattr__ = _left_out.names_of("", __name__)

__all__ = [
    "Group",
    "IRModule",
    "InferenceSession",
    "IrModule",
    "PassContext",
    "Schedule",
    "Stage",
    "StopFlag",
    "TVMError",
    "__version__",
    "auto_scheduler",
    "autotvm",
    "build",
    "compile",
    "contrib",
    "cpu",
    "create_schedule",
    "cuda",
    "device",
    "get_global_func",
    "gpu",
    "ir",
    "load",
    "lower",
    "nd",
    "opencl",
    "register_func",
    "register_operator",
    "remove_operator",
    "registry",
    "runtime",
    "target",
    "te",
    "testing",
    "tir",
    "transform",
    "tuning",
]
