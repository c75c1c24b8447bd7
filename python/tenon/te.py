"""Tensor expressions: what is computed, element by element; and schedules: how."""

from __future__ import annotations

import builtins
import inspect
import itertools
import math
import operator
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from . import _arguments, _left_out, _tenon
from ._arguments import kinds as _kinds
from ._tenon import Expr, IrModule, IterVar, Operation, Schedule, Stage, Tensor, Var

__all__ = [
    "Expr", "IterVar", "Operation", "Schedule", "Stage", "Tensor", "Var", "abs", "acos", "acosh", "add", "all", "any", "asin", "asinh", "atan",
    "atan2", "atanh", "ceil", "ceildiv", "clz", "comm_reducer", "compute", "const", "copysign", "cos", "cosh", "create_prim_func", "create_schedule",
    "decl_tensor_intrin", "div",
    "erf", "exp", "exp10", "exp2", "expm1", "extern", "floor", "floordiv", "floormod", "fma", "fmod", "hypot", "if_then_else", "indexdiv", "indexmod",
    "infinity", "isfinite", "isinf", "isnan", "ldexp", "likely", "log", "log10", "log1p", "log2", "max", "max_value", "min", "min_value", "multiply",
    "nearbyint", "nextafter", "placeholder", "popcount", "pow", "power", "prod", "reduce_axis", "reinterpret", "rint", "round", "rsqrt", "scalar",
    "scan", "select", "sigmoid", "sin", "sinh", "size_var", "sqrt", "subtract", "sum", "tan", "tanh", "thread_axis", "trunc", "truncdiv", "truncmod",
    "var",
]  # fmt: skip


_UNNAMED = itertools.count()


def var(name: str | None = None, dtype: Any = "int64", *, lo: int = 0, hi: int = -1, step: int = 1) -> Var:
    """A symbolic size: lo <= value <= hi (hi < 0: no bound), in steps from lo on: lo, lo + step, lo + 2 * step, … (without lo,
    multiples of step). A call with another size is an error; schedules rely on it, so that a factor that divides lo and step
    leaves no remainder. Sizes are 64-bit integers whatever integer type is asked for. With another type, a number that is
    passed by value. Without a name, n, n_1, n_2, …"""
    dtype = _dtype(dtype)
    if name is None:
        count = next(_UNNAMED)
        name = f"n_{count}" if count else "n"
    if not dtype.startswith(("int", "uint")):
        return scalar(name, dtype)
    return Var(name, lo, hi, step)


def scalar(name: str, dtype: Any = "float32") -> Var:
    """A number of this type, of any value; an argument of build, which callers pass by value."""
    return Var.number(name, _dtype(dtype))


size_var = var


def _shape(shape: Any) -> list:
    if isinstance(shape, (int, Expr)) or hasattr(shape, "__index__"):
        shape = (shape,)
    if not isinstance(shape, (list, tuple)) or not builtins.all(isinstance(d, Expr) or hasattr(d, "__index__") for d in shape):
        raise TypeError(f"a shape is a list or tuple of expressions and integers, not {_kinds(shape)}")
    return [d if isinstance(d, Expr) else operator.index(d) for d in shape]


def _dtype(dtype: Any) -> str:
    """The name of a type, of NumPy's and PyTorch's too."""
    if isinstance(dtype, str):
        return dtype
    name = getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]
    if not name.isidentifier():
        raise TypeError(f"expected a type, such as \"float32\", but got {type(dtype).__name__}")
    return name


def placeholder(shape: Any, dtype: Any = "float32", name: str = "placeholder") -> Tensor:
    """An input."""
    return _tenon.placeholder(_shape(shape), _dtype(dtype), name)


def compute(shape: Any, fcompute: Callable, name: str = "compute", tag: str = "", attrs: Any = None) -> Tensor:
    """The tensor whose element at (i, j, …) is fcompute(i, j, …); several tensors, where it gives a tuple
    of values or a reduction of one. The loops are called as fcompute's parameters are; those beyond the
    shape's dims that have defaults keep them."""
    dims = _shape(shape)
    names = _loop_names(fcompute, len(dims), name)
    single = True

    def element(i):
        nonlocal single
        value = fcompute(*i)
        if isinstance(value, _tenon.Tuple):
            single = len(value.values) == 1
            return value
        if isinstance(value, (tuple, list)):
            single = False
            return _tenon.Tuple([_expr(v) for v in value])
        return _tenon.Tuple([_expr(value)])

    tensors = _tenon.compute(dims, element, name, names)
    return tensors[0] if single else tuple(tensors)


def _loop_names(fcompute: Callable, rank: int, name: str) -> list:
    try:
        parameters = inspect.signature(fcompute).parameters.values()
    except (TypeError, ValueError):  # what is written in C may not say
        return [f"i{k}" for k in range(rank)]
    named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in named if p.default is p.empty]
    takes_any = builtins.any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(needed) > rank or (len(named) < rank and not takes_any):
        count = len(needed) if len(needed) == len(named) else f"{len(needed)} to {len(named)}"
        raise ValueError(f"compute '{name}': the shape has {rank} dims but the function takes {count} variables")
    names = [p.name for p in named[:rank]]
    return names + [f"i{k}" for k in range(len(names), rank)]


class _Loops(list):
    """Of an operation; one that there is not is named with it."""

    def __init__(self, op: Operation, which: str, loops: list):
        super().__init__(loops)
        self._op, self._which = op, which

    def __getitem__(self, index: Any) -> Any:
        try:
            return super().__getitem__(index)
        except IndexError:
            count = f"{len(self)} loops in {self._which}, but not number {index}" if self else f"no loops in {self._which}"
            hint = "" if self._op.body else ": only what te.compute makes has; of a placeholder cache_read makes a stage that copies it"
        raise IndexError(f"'{self._op.name}' has {count}{hint}")


def _loops(which: str) -> property:
    plain = getattr(Operation, which)
    return property(lambda op: _Loops(op, which, plain.__get__(op)))


Operation.axis, Operation.reduce_axis = _loops("axis"), _loops("reduce_axis")


def _refuse_tensor(tensor: Tensor, *_: Any) -> None:
    raise TypeError(f"'{tensor.name}' is a tensor; what is computed with are its elements, {tensor.name}[i, ...]")


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "neg", "and", "or", "xor"):
    setattr(Tensor, f"__{_name}__", _refuse_tensor)
    if _name not in ("lt", "le", "gt", "ge", "neg"):
        setattr(Tensor, f"__r{_name}__", _refuse_tensor)


def _expr(value: Any, function: str = "", parameter: str = "") -> Expr:
    if isinstance(value, Expr):
        return value
    if isinstance(value, Tensor):
        _refuse_tensor(value)
    try:
        return Expr(value)
    except TypeError:
        where, which = (f"{function}: ", f" for '{parameter}'") if function else ("", "")
        raise TypeError(f"{where}expected an expression or a number{which} but got {type(value).__name__}") from None


def reduce_axis(dom: Any, name: str = "rv", thread_tag: str = "") -> IterVar:
    """A loop over dom = (begin, end) to reduce over."""
    if not isinstance(dom, (list, tuple)) or len(dom) != 2:
        raise TypeError(f"reduce_axis '{name}': expected (begin, end) but got {_kinds(dom)}")
    begin, end = dom
    return _tenon.reduce_axis(_expr(begin), _expr(end), name)


def thread_axis(dom: Any = None, tag: str = "", name: str = "") -> IterVar:
    """A loop over the threads of an axis, for Stage.bind: thread_axis("threadIdx.x"). (tvm's order, a domain first, is
    taken too: thread_axis((0, 32), "threadIdx.x") is for loops of 32 iterations.)"""
    if not isinstance(tag, str) or not (tag or isinstance(dom, str)):
        raise TypeError(
            f"thread_axis: expected the name of an axis, such as \"threadIdx.x\", but got {_kinds(tag or dom)}"
        )
    extent = None
    if not isinstance(dom, str) and dom is not None:
        begin, extent = dom if isinstance(dom, (list, tuple)) and len(dom) == 2 else (0, dom)
        if not hasattr(begin, "__index__") or operator.index(begin) != 0:
            raise ValueError(f"thread_axis: expected a domain that begins at 0 but got {begin}")
        extent = _expr(extent, "thread_axis", "dom")
    return _tenon.thread_axis(dom if isinstance(dom, str) else tag, extent)


def _axes(axes: Any) -> list:
    axes = list(axes) if isinstance(axes, (list, tuple)) else [axes]
    if not builtins.all(isinstance(a, IterVar) for a in axes):
        raise TypeError(
            f"a reduction is over axes of reduce_axis, not over {_kinds(axes if len(axes) != 1 else axes[0])}"
        )
    return axes


def _reducer(name: str, over: Callable, both: Callable | None, identity: Callable, doc: str) -> Callable:
    def reduce(expr: Any, axis: Any = None, *more: Any, where: Any = None) -> Expr:
        if isinstance(axis, (list, tuple)) or (isinstance(axis, IterVar) and not more):
            value = _expr(expr, name, "expr")
            if where is not None:
                value = select(_expr(where, name, "where"), value, identity(value.dtype))
            return over(value, _axes(axis))
        if where is not None or (both is None and more):
            raise TypeError(f"{name}: expected an axis of reduce_axis, or a list of them, and a condition as where=")
        if axis is None or both is None:
            what = "" if axis is None else f", not {_kinds(axis)}"
            raise (ValueError if axis is None else TypeError)(f"a reduction needs an axis{what}; see reduce_axis")
        result = _expr(expr, name, "expr")
        for value in (axis, *more):
            result = both(result, _expr(value, name, "axis"))
        return result

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = doc + " With where=, over the elements for which that condition holds."
    return reduce


def _end(dtype: str, sign: int) -> Expr:
    """What no value of a type is below (sign -1) or above."""
    if "float" in dtype:
        return const(sign * math.inf, dtype)
    return max_value(dtype) if sign > 0 else min_value(dtype)


sum = _reducer("sum", _tenon.sum, None, lambda t: const(0, t), "The sum over axis, a reduce axis or several.")
prod = _reducer("prod", _tenon.prod, None, lambda t: const(1, t), "The product over axis.")
max = _reducer("max", _tenon.max, _tenon.maximum, lambda t: _end(t, -1), "The maximum over axis; of two expressions, the larger one.")
min = _reducer("min", _tenon.min, _tenon.minimum, lambda t: _end(t, 1), "The minimum over axis; of two expressions, the smaller one.")


def comm_reducer(fcombine: Callable, fidentity: Callable, name: str = "reduce") -> Callable:
    """A reducer of one's own: fcombine(old, new), associative and commutative, of values or of tuples of
    them; fidentity(dtype, …) gives what leaves any value as it is. The reducer takes a value, or a
    tuple, an axis and where=, as te.sum does."""

    for function, what in ((fcombine, "fcombine"), (fidentity, "fidentity")):
        if not callable(function):
            raise TypeError(f"comm_reducer: expected Callable for '{what}' but got {_kinds(function)}")

    def reducer(expr: Any, axis: Any, where: Any = None) -> Any:
        many = isinstance(expr, (tuple, list))
        values = [_expr(e) for e in (expr if many else (expr,))]
        identity = fidentity(*(v.dtype for v in values))
        identity = [_expr(e) for e in (identity if many else (identity,))]
        if where is not None:
            condition = _expr(where, name, "where")
            values = [select(condition, value, none) for value, none in zip(values, identity)]

        def combine(old, new):
            result = fcombine(tuple(old), tuple(new)) if many else fcombine(old[0], new[0])
            return [_expr(e) for e in (result if many else (result,))]

        return _tenon.Tuple(values, _axes(axis), combine, identity)

    reducer.__name__ = reducer.__qualname__ = name
    return _arguments.annotated(reducer, name)


def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Any = None,
    name: str = "scan",
    axis: int = 0,
) -> Any:
    """Rows along an axis, computed in order: the first ones as init has them, each other by update, which may read
    earlier rows of state_placeholder, and tensors made of them in between. Lists of tensors make several together.
    The loop over the rows is op.scan_axis."""

    def tensors(of: Any) -> list:
        return list(of) if isinstance(of, (list, tuple)) else [of]

    made = _tenon.scan(tensors(init), tensors(update), tensors(state_placeholder), name, axis)
    return tuple(made) if isinstance(state_placeholder, (list, tuple)) else made[0]


def extern(
    shape: Any,
    inputs: Sequence[Tensor],
    body: IrModule | str | Callable,
    dtype: Any = None,
    name: str = "extern",
    in_buffers: Any = None,
    out_buffers: Any = None,
    tag: str = "",
    attrs: Any = None,
) -> Any:
    """A tensor computed by a function of loop IR (an IrModule, or its text): of kind device, its parameters the
    inputs and then the output. Or by body(ins, outs), of their buffers, which gives a statement: what a tir.ir_builder has
    collected, or a call of a C function (tir.call_extern) or one of Python's (tir.call_packed). Lists of shapes and dtypes
    make several tensors; without a dtype it is that of the inputs where they have one, else float32. (tvm's in_buffers and
    out_buffers are not needed: buffers are called as the tensors.)"""
    several = isinstance(shape, (list, tuple)) and len(shape) > 0 and isinstance(shape[0], (list, tuple))
    shapes = [_shape(s) for s in (shape if several else [shape])]
    if dtype is None:
        types = {t.dtype for t in inputs}
        dtype = types.pop() if len(types) == 1 else "float32"
    dtypes = [_dtype(d) for d in dtype] if isinstance(dtype, (list, tuple)) else [_dtype(dtype)] * len(shapes)
    module = _tenon.IrModule.parse(body) if isinstance(body, str) else body
    if callable(body):
        from . import statements

        names = [name] if len(shapes) == 1 else [f"{name}_{i}" for i in range(len(shapes))]
        outputs = [statements.Buffer(n, s, d) for n, s, d in zip(names, shapes, dtypes)]
        module = statements.extern_body(name, inputs, outputs, body)
    tensors = _tenon.extern(shapes, list(inputs), module, dtypes, name)
    return tuple(tensors) if several else tensors[0]


def decl_tensor_intrin(
    op: Operation,
    fcompute: Callable,
    name: str = "tensor_intrin",
    binds: Mapping | None = None,
    scalar_params: Any = None,
    default_buffer_params: Any = None,
) -> Any:
    """An intrinsic that computes what the operation does, for Stage.tensorize. fcompute(ins, outs) gives the statement that
    computes it, or of a reduction three: the whole of it, its start, and what adds a part; None stands for one that is
    missing. `binds` gives buffers of tir.decl_buffer for tensors. (The start is written by the schedule.)"""
    from .tir import declared_intrin

    return declared_intrin(op, fcompute, name, binds or {})


def select(condition: Any, true_value: Any, false_value: Any) -> Expr:
    """The untaken side is not evaluated: it may read outside a tensor."""
    named = {"condition": condition, "true_value": true_value, "false_value": false_value}
    return _tenon.select(*(_expr(value, "select", name) for name, value in named.items()))


if_then_else = select


def likely(condition: Any) -> Expr:
    """The condition itself: which side is common is seen by the schedule."""
    return _expr(condition, "likely", "condition")


def all(*conditions: Any) -> Expr:
    """Whether all conditions hold."""
    return _tenon.all([_expr(c, "all", "conditions") for c in conditions])


def any(*conditions: Any) -> Expr:
    """Whether one of the conditions holds."""
    return _tenon.any([_expr(c, "any", "conditions") for c in conditions])


def const(value: Any, dtype: Any = "float32") -> Expr:
    """A number of this type."""
    return _tenon.const(_expr(value, "const", "value"), _dtype(dtype))


def min_value(dtype: Any) -> Expr:
    """The least finite value of a type."""
    return _tenon.min_value(_dtype(dtype))


def max_value(dtype: Any) -> Expr:
    """The greatest finite value of a type."""
    return _tenon.max_value(_dtype(dtype))


def infinity(dtype: Any) -> Expr:
    """Infinity, of a type of floats."""
    return _tenon.infinity(_dtype(dtype))


def reinterpret(value: Any, dtype: Any) -> Expr:
    """The bits of value as another type of the same width. (tvm's order, the type first, is taken too.)"""
    if isinstance(value, str):
        value, dtype = dtype, value
    return _tenon.reinterpret(_expr(value, "reinterpret", "value"), _dtype(dtype))


def _function(name: str, function: Callable, parameters: str) -> Callable:
    signature = inspect.Signature([inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in parameters.split()])

    def call(*args, **kwargs):
        try:
            bound = signature.bind(*args, **kwargs).arguments
        except TypeError as e:
            raise TypeError(f"{name}: {e}") from None
        return function(*(_expr(value, name, parameter) for parameter, value in bound.items()))

    call.__name__ = name
    call.__signature__ = signature
    return call


def _math(name: str, parameters: str = "x", intrinsic: str = "") -> Callable:
    return _function(name, lambda *args: _tenon.call_intrinsic(intrinsic or name, args), parameters)


def _composed(name: str, parameters: str) -> Callable:
    return _function(name, getattr(_tenon, name), parameters)


exp, exp2, exp10, expm1 = (_math(f) for f in ("exp", "exp2", "exp10", "expm1"))
log, log2, log10, log1p = (_math(f) for f in ("log", "log2", "log10", "log1p"))
sqrt, rsqrt, fma = _math("sqrt"), _math("rsqrt"), _math("fma", "a b c")
power, hypot, atan2 = (_math(f, p) for f, p in (("pow", "x y"), ("hypot", "x y"), ("atan2", "y x")))
sin, cos, tan, asin, acos, atan = (_math(f) for f in ("sin", "cos", "tan", "asin", "acos", "atan"))
sinh, cosh, tanh, asinh, acosh, atanh = (_math(f) for f in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"))
erf, sigmoid, popcount, clz = (_math(f) for f in ("erf", "sigmoid", "popcount", "clz"))
abs, floor, ceil, trunc = (_math(f) for f in ("abs", "floor", "ceil", "trunc"))
round = _math("round", intrinsic="round_even")
isnan, isinf = _math("isnan", intrinsic="is_nan"), _math("isinf", intrinsic="is_inf")
isfinite, ldexp = _composed("isfinite", "x"), _composed("ldexp", "x n")
copysign, nextafter = (_composed(f, "x y") for f in ("copysign", "nextafter"))
truncdiv, truncmod = _composed("truncdiv", "a b"), _composed("truncmod", "a b")
div = _function("div", _tenon.divide, "a b")
fmod = _function("fmod", _tenon.truncmod, "x y")
pow, nearbyint, rint = power, round, round


ceildiv = _function("ceildiv", lambda a, b: (a + b - 1) // b, "a b")
ceildiv.__doc__ = "Division that rounds up, of integers that are not negative."
floordiv = _function("floordiv", operator.floordiv, "a b")
floordiv.__doc__ = "Division that floors, as Python's // does."
floormod = _function("floormod", operator.mod, "a b")
floormod.__doc__ = "The remainder of floordiv, as Python's % is."
indexdiv, indexmod = floordiv, floormod
add = _function("add", operator.add, "a b")
subtract = _function("subtract", operator.sub, "a b")
multiply = _function("multiply", operator.mul, "a b")


# ---- NumPy's and Python's own functions of expressions ----

# What operators are of NumPy's functions: np.float32(2) * x asks for np.multiply.
_OPERATORS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv, "true_divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "power": operator.pow, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "equal": operator.eq, "not_equal": operator.ne, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "left_shift": operator.lshift, "right_shift": operator.rshift,
}  # fmt: skip
# What te calls otherwise than NumPy does.
_OURS = {"absolute": "abs", "fabs": "abs", "maximum": "max", "minimum": "min", "fmax": "max", "fmin": "min", "reciprocal": "div", "float_power": "pow",
         "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
         "logical_and": "all", "logical_or": "any"}  # fmt: skip


def _of_numpy(self: Expr, function: Any, method: str, *inputs: Any, **options: Any) -> Expr:
    name = function.__name__
    if method == "__call__" and name in _OPERATORS and len(inputs) == 2:
        for value in inputs:
            if isinstance(value, np.ndarray) and value.ndim > 0:
                raise TypeError(
                    f"an expression is one element: it does not meet an array of shape {value.shape}; a "
                    "te.placeholder stands for one"
                )
        return _OPERATORS[name](*(_expr(value) for value in inputs))
    ours = _OURS.get(name, name)
    hint = "functions of expressions are te's (docs/tensor-expressions.md)"
    if ours in __all__:
        hint = f"te.{ours} is the function of expressions"
    raise TypeError(f"np.{name} takes numbers, but '{self}' is an expression: {hint}")


def _no_number(self: Expr) -> float:
    raise TypeError(
        f"'{self}' is an expression, no number yet: where math.exp and its like take numbers, te.exp and te's others "
        "take expressions"
    )


Expr.equal = lambda self, other: _tenon.equal(self, _expr(other, "equal", "other"))
Expr.__array_ufunc__ = _of_numpy
Expr.__float__ = _no_number


def create_prim_func(args: Sequence[Tensor], name: str = "main") -> _tenon.IrModule:
    """The function of these parameters, inputs first: a block for each tensor, not scheduled. What
    tir.Schedule works on."""
    return _tenon.create_func(list(args), name)


def create_schedule(ops: Any) -> Schedule:
    """The schedule of everything that the operations, or tensors, need; each in loops of its own."""
    if isinstance(ops, (Operation, Tensor)):
        ops = [ops]
    if not isinstance(ops, (list, tuple)) or not builtins.all(isinstance(op, (Operation, Tensor)) for op in ops):
        raise TypeError(f"create_schedule: expected operations or tensors but got {_kinds(ops)}")
    outputs: list = []
    for op in ops:
        outputs += [op] if isinstance(op, Tensor) else [op.output(i) for i in range(op.num_outputs)]
    return _tenon.create_schedule(outputs)


__getattr__ = _left_out.names_of("te.", __name__)
_arguments.say_clearly(globals())
