"""Loop IR: its text, its schedules and intrinsics of one's own.

    s = tenon.tir.Schedule(te.create_prim_func([A, B, C]))
    i, j, k = s.get_loops("C")
    i0, i1 = s.split(i, [None, 8])
    s.reorder(i0, j, k, i1)
    f = tenon.build(s.mod)
    text = s.trace.as_json()

Blocks, loops and buffers are found by name: the handles are texts. A primitive that is illegal changes
nothing and is a ValueError that names the primitive, the block, the loop and the reason; what each does,
and when it is legal, is in docs/schedules.md.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable, Sequence, Union

from . import _arguments, _left_out, _tenon, statements, te
from ._tenon import Expr, IrModule, IterVar, Operation, Tensor, Trace, Var
from .statements import Buffer, call_extern, call_intrin, call_packed, decl_buffer
from .te import *  # noqa: F403: expressions are the same in both

__all__ = [
    *(name for name in te.__all__ if name not in ("Schedule", "Stage", "create_schedule")),
    "Buffer", "Cast", "FloatImm", "IndexMap", "IntImm", "IrModule", "Schedule", "Select", "SizeVar", "TensorIntrin", "Trace", "call_extern",
    "call_intrin", "call_packed", "decl_buffer", "ir_builder", "shift_left", "shift_right",
]  # fmt: skip

PrimExpr, SizeVar, Select = Expr, te.var, te.select
ir_builder = statements


def IntImm(dtype: Any, value: int) -> Expr:
    """A number of a type of integers."""
    return te.const(value, dtype)


def FloatImm(dtype: Any, value: float) -> Expr:
    """A number of a type of floats."""
    return te.const(value, dtype)


def Cast(dtype: Any, value: Any) -> Expr:
    """The value as another type."""
    return te._expr(value, "Cast", "value").astype(te._dtype(dtype))


def shift_left(x: Any, y: Any) -> Expr:
    return te._expr(x, "shift_left", "x") << te._expr(y, "shift_left", "y")


def shift_right(x: Any, y: Any) -> Expr:
    return te._expr(x, "shift_right", "x") >> te._expr(y, "shift_right", "y")


Number = Union[int, str]
"""A number, or "$name": the value of the choice of that name."""
IndexMap = Union[str, Callable]
"""The text of a map such as "(i, j) -> (i / 4, j, i % 4)", or a function of loop variables that gives
a tuple of expressions."""


def _map_text(index_map: IndexMap) -> str:
    if isinstance(index_map, str):
        return index_map
    if not callable(index_map):
        raise TypeError(f"expected str | Callable for a map of coordinates but got {type(index_map).__name__}")
    names = list(inspect.signature(index_map).parameters)
    result = index_map(*(_tenon.Var(name) for name in names))
    result = result if isinstance(result, (tuple, list)) else (result,)
    texts = ", ".join(str(e) for e in result)
    return f"({', '.join(names)}) -> ({texts})"


def _names(loops: Sequence) -> list[str]:
    """One list, or one argument each."""
    return list(loops[0]) if len(loops) == 1 and not isinstance(loops[0], str) else list(loops)


def _numbers(values: Sequence) -> list:
    return [-1 if v is None else v for v in values]


class Schedule:
    """Primitives applied to one function of a module, at once and in order."""

    def __init__(self, mod: IrModule | str, func_name: str = ""):
        if isinstance(mod, str):
            mod = IrModule.parse(mod)
        self._s = mod if isinstance(mod, _tenon.IrSchedule) else _tenon.IrSchedule(mod, func_name)

    # ---- What there is ----

    @property
    def mod(self) -> IrModule:
        """The module as it is now."""
        return self._s.module()

    @property
    def func_name(self) -> str:
        return self._s.function()

    @property
    def trace(self) -> Trace:
        """What was applied so far."""
        return self._s.trace()

    def copy(self) -> "Schedule":
        """An independent schedule of the same state."""
        return Schedule(self._s.copy())

    def work_on(self, func_name: str) -> None:
        """Goes on with another function of the module, as that is now; the trace is of this one from here on."""
        self._s = _tenon.IrSchedule(self.mod, func_name)

    def __str__(self) -> str:
        return str(self.mod)

    def __repr__(self) -> str:
        return f"<tenon.tir.Schedule of @{self.func_name}>"

    def show(self) -> None:
        print(self.mod)

    def get_block(self, name: str) -> str:
        """The name, where there is such a block."""
        self._s.get_loops(name)
        return name

    def get_blocks(self) -> list[str]:
        return self._s.get_blocks()

    def get_loops(self, block: str) -> list[str]:
        """The loops around it, outermost first."""
        return self._s.get_loops(block)

    def get_child_blocks(self, loop: str) -> list[str]:
        return self._s.get_child_blocks(loop)

    def get_producers(self, block: str) -> list[str]:
        return self._s.get_producers(block)

    def get_consumers(self, block: str) -> list[str]:
        return self._s.get_consumers(block)

    def get_block_of(self, buffer: str) -> str:
        """The last block that writes it."""
        return self._s.get_block_of(buffer)

    def get_spatial_loops(self, block: str) -> list[str]:
        return self._s.get_spatial_loops(block)

    def get_reduce_loops(self, block: str) -> list[str]:
        return self._s.get_reduce_loops(block)

    def get_extent(self, loop: str) -> int:
        """The trip count, or -1 where it is symbolic."""
        return self._s.get_extent(loop)

    def has_block(self, block: str) -> bool:
        return self._s.has_block(block)

    def has_loop(self, loop: str) -> bool:
        return self._s.has_loop(loop)

    # ---- Loops ----

    def split(self, loop: str, factors: Sequence[Number | None]) -> list[str]:
        """Outermost first; one factor may be None (or -1). What is beyond the end is guarded."""
        return self._s.apply("split", [loop, _numbers(factors)])

    def tile(self, loops: Sequence[str], factors: Sequence[Number]) -> list[str]:
        return self._s.apply("tile", [list(loops), list(factors)])

    def partition(self, loop: str, points: Sequence[Number]) -> list[str]:
        return self._s.apply("partition", [loop, list(points)])

    def partition_equal(self, loop: str, parts: Number) -> list[str]:
        return self._s.apply("partition_equal", [loop, parts])

    def fuse(self, *loops: str | Sequence[str]) -> str:
        return self._s.apply("fuse", [_names(loops)])[0]

    def reorder(self, *loops: str | Sequence[str]) -> None:
        self._s.apply("reorder", [_names(loops)])

    def parallel(self, loop: str) -> None:
        self._s.apply("parallel", [loop])

    def vectorize(self, loop: str) -> None:
        self._s.apply("vectorize", [loop])

    def unroll(self, loop: str) -> None:
        self._s.apply("unroll", [loop])

    def bind(self, loop: str, thread_axis: str) -> None:
        self._s.apply("bind", [loop, thread_axis])

    # ---- Where a block is computed ----

    def compute_at(self, block: str, loop: str) -> None:
        self._s.apply("compute_at", [block, loop])

    def reverse_compute_at(self, block: str, loop: str) -> None:
        self._s.apply("reverse_compute_at", [block, loop])

    def compute_root(self, block: str) -> None:
        self._s.apply("compute_root", [block])

    def compute_inline(self, block: str) -> None:
        self._s.apply("compute_inline", [block])

    def reverse_compute_inline(self, block: str) -> None:
        self._s.apply("reverse_compute_inline", [block])

    # ---- Data ----

    def get_reads(self, block: str) -> list[str]:
        """The buffers that it reads, in the order of its declaration."""
        return self._s.get_reads(block)

    def get_writes(self, block: str) -> list[str]:
        return self._s.get_writes(block)

    def _buffer(self, block: str, buffer: str | int, reads: bool) -> str:
        """By its name, or by its number among those that the block reads or writes."""
        if not isinstance(buffer, int):
            return buffer
        known = self.get_reads(block) if reads else self.get_writes(block)
        if not 0 <= buffer < len(known):
            what = "reads" if reads else "writes"
            raise ValueError(
                f"block {block} has no buffer {buffer} among those that it {what}, which are {', '.join(known)}"
            )
        return known[buffer]

    def cache_read(self, block: str, buffer: str | int, scope: str) -> str:
        """The new block; place it with compute_at. `buffer`: its name, or its number among get_reads(block)."""
        return self._s.apply("cache_read", [block, self._buffer(block, buffer, True), scope])[0]

    def cache_write(self, block: str, buffer: str | int, scope: str) -> str:
        """The new block; place it with reverse_compute_at. `buffer`: its name, or its number among get_writes(block)."""
        return self._s.apply("cache_write", [block, self._buffer(block, buffer, False), scope])[0]

    def set_scope(self, buffer: str, scope: str | int, storage_scope: str | None = None) -> None:
        """set_scope(buffer, scope), or set_scope(block, number among get_writes(block), scope)."""
        if storage_scope is not None:
            buffer, scope = self._buffer(buffer, scope, False), storage_scope
        self._s.apply("set_scope", [buffer, scope])

    def transform_layout(self, buffer: str, layout: IndexMap) -> None:
        self._s.apply("transform_layout", [buffer, _map_text(layout)])

    def storage_align(self, buffer: str, axis: Number, factor: Number, offset: Number = 0) -> None:
        self._s.apply("storage_align", [buffer, axis, factor, offset])

    def transform_block_layout(self, block: str, index_map: IndexMap) -> None:
        self._s.apply("transform_block_layout", [block, _map_text(index_map)])

    def pad_einsum(self, block: str, padding: Sequence[Number]) -> list[str]:
        """The new blocks."""
        return self._s.apply("pad_einsum", [block, list(padding)])

    # ---- Reductions ----

    def decompose_reduction(self, block: str, loop: str) -> str:
        return self._s.apply("decompose_reduction", [block, loop])[0]

    def set_store_predicate(self, block: str, predicate: Any) -> None:
        """Which threads store the block's result: a text, "threadIdx.x == 0", or an expression of thread axes."""
        self._s.apply("set_store_predicate", [block, str(predicate)])

    def rfactor(self, loop: str, factor_axis: Number = 0) -> str:
        return self._s.apply("rfactor", [loop, factor_axis])[0]

    # ---- Time ----

    def prefetch(self, block: str, buffer: str, loop: str, distance: Number = 1) -> str:
        return self._s.apply("prefetch", [block, buffer, loop, distance])[0]

    def spread_prefetch(self, block: str, buffer: str, loop: str, distance: Number, over: str) -> str:
        return self._s.apply("spread_prefetch", [block, buffer, loop, distance, over])[0]

    def software_pipeline(self, loop: str, stages: Sequence[Number], order: Sequence[Number]) -> str:
        return self._s.apply("software_pipeline", [loop, list(stages), list(order)])[0]

    def double_buffer(self, block: str) -> str:
        return self._s.apply("double_buffer", [block])[0]

    def rolling_buffer(self, block: str, loop: str) -> None:
        self._s.apply("rolling_buffer", [block, loop])

    # ---- Tiles and functions ----

    def blockize(self, loop: str) -> str:
        return self._s.apply("blockize", [loop])[0]

    def tensorize(self, loop: str, intrin: TensorIntrin | str) -> str:
        """`intrin`: a name, or what TensorIntrin.register gave."""
        return self._s.apply("tensorize", [loop, _intrin_name(intrin)])[0]

    def specialize(self, condition: Expr | str) -> None:
        """A copy of the body for where the condition, such as "m == 8", holds."""
        if not isinstance(condition, (str, Expr)):
            raise TypeError("a condition is an expression or its text")
        self._s.apply("specialize", [str(condition)])

    def outline(self, loop_or_block: str, name: str) -> str:
        return self._s.apply("outline", [loop_or_block, name])[0]

    def annotate(self, loop_or_block: str, key: str, value: bool | int | float | str | Sequence) -> None:
        self._s.apply("annotate", [loop_or_block, key, value])

    def assume_independent(self, loop: str) -> None:
        """A promise: no iteration of the loop touches what another one writes."""
        self._s.apply("annotate", [loop, "assume_independent", ""])

    # ---- Choices ----

    def decide(self, name: str, domain: Sequence[int], guess: int) -> int:
        """The guess, unless use_decisions gave another value of the domain for this name."""
        return self._s.decide(name, list(domain), guess)

    def sample_categorical(self, name: str, candidates: Sequence[int], probabilities: Sequence[float]) -> int:
        return self._s.sample_categorical(name, list(candidates), [float(p) for p in probabilities])

    def sample_perfect_tile(self, name: str, loop: str, parts: int, max_innermost: int = 16) -> list[int]:
        """Factors that multiply to the loop's extent; "$name.0", "$name.1", … among arguments are they."""
        return self._s.sample_perfect_tile(name, loop, parts, max_innermost)

    def use_decisions(self, decisions: dict[str, int]) -> None:
        """Values to take instead of guesses from now on. A replay, and build, require that each is of a choice."""
        self._s.use_decisions(dict(decisions))

    def checked_mod(self) -> IrModule:
        """The module, where all that use_decisions gave is of choices."""
        self._s.check_decisions()
        return self.mod

    def replay(self, trace: Trace | str) -> None:
        """All steps of a trace (or of its text or JSON); where one is not legal here, none."""
        if isinstance(trace, str):
            trace = Trace.from_json(trace) if trace.lstrip().startswith("{") else Trace.parse(trace)
        self._s.replay(trace)


Trace.show = lambda self: print(self)
Trace.__repr__ = lambda self: str(self) or "<tenon.tir.Trace of no steps>"


class TensorIntrin:
    """An intrinsic of one's own: what equals its description is replaced by a call of its implementation."""

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError("a name is a text")
        self.name = name

    @staticmethod
    def register(name: str, desc: IrModule | str | Sequence[Tensor], impl: IrModule | str | None = None) -> "TensorIntrin":
        """`desc` and `impl`: loop IR, or its text, with a function of kind device of this name; `desc` may be
        tensors, inputs first. Without `impl` the description is called. Both must compute the same, which is
        tried on small numbers. A description with an initial value is for whole reductions; for parts of
        them `name.update` is used, which `impl` may have, too."""

        def module(of: Any) -> Any:
            return IrModule.parse(of) if isinstance(of, str) else of

        parts = [module(desc) if isinstance(desc, (str, IrModule)) else list(desc)]
        parts += [] if impl is None else [module(impl)]
        _tenon.register_intrinsic(name, *parts)
        return TensorIntrin(name)

    @staticmethod
    def get(name: str) -> "TensorIntrin":
        _tenon.get_intrinsic(name)
        return TensorIntrin(name)

    @property
    def desc(self) -> IrModule:
        return _tenon.get_intrinsic(self.name)

    def __repr__(self) -> str:
        return f"TensorIntrin({self.name})"


def declared_intrin(op: Operation, fcompute: Callable, name: str, binds: dict) -> TensorIntrin:
    """te.decl_tensor_intrin's. An operand is a tile of a larger tensor. Its strides are its buffer's: numbers, which a
    nest's must be, or variables, which are dims of the function. Without any, all but the last are such."""
    if op.num_outputs != 1:
        raise NotImplementedError(f"decl_tensor_intrin of '{op.name}': an intrinsic has one output")
    tensors = [*op.input_tensors, op.output(0)]
    taken: set[str] = set()

    def operand(tensor: Tensor, made: Buffer) -> Buffer:
        buffer = binds.get(tensor, made)
        if buffer is not made:  # as the function knows it, whose own closure may hold it
            buffer.shape, buffer.dtype = list(tensor.shape), tensor.dtype
        rank, given, strides = len(tensor.shape), buffer.strides, []
        if given and len(given) != rank:
            raise ValueError(f"'{buffer.name}': expected {rank} strides but got {len(given)}")
        for d, stride in enumerate(given or [None] * (rank - 1) + [1] * (rank > 1)):
            if stride is None or (isinstance(stride, Var) and stride.name in taken):
                stride = Var(f"{buffer.name}_stride{d}")
            if isinstance(stride, Var):
                taken.add(stride.name)
            elif not str(stride).isdecimal():
                raise ValueError(f"'{buffer.name}': a stride is a number or a variable but strides[{d}] is {stride}")
            strides.append(te._expr(stride, "decl_tensor_intrin", "strides"))
        buffer.strides = strides
        return buffer

    buffers = [operand(t, b) for t, b in zip(tensors, statements.of_tensors(tensors))]
    ins, outs = buffers[:-1], buffers[-1:]
    given = fcompute(ins, outs)
    whole, start, update = given if isinstance(given, (tuple, list)) and len(given) == 3 else (given, None, None)
    if whole is None and (start is None or update is None):
        raise ValueError(f"decl_tensor_intrin '{name}': the function gave no statement that computes it")
    for k in range(1000):
        own = f"{name}.{k}" if k else name
        text = statements.function_text(own, ins, outs, whole if whole is not None else [start, update])
        if update is not None:
            text += statements.function_text(f"{own}.update", ins, outs, update)
        try:
            return TensorIntrin.register(own, tensors, text)
        except ValueError as error:  # another of this name
            if "is registered already" not in str(error):
                raise
    raise ValueError(f"decl_tensor_intrin: there are too many intrinsics '{name}'")


def _intrin_name(intrin: Any) -> Any:
    return intrin.name if isinstance(intrin, TensorIntrin) else intrin


__getattr__ = _left_out.names_of("tir.", __name__)
_left_out.say_of(Schedule, "tir.Schedule.")
_arguments.say_clearly(globals())
