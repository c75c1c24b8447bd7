"""Statements: what the functions given to te.extern and te.decl_tensor_intrin write.

A statement is lines of loop IR's text (docs/loop-ir.md), so that all of it is read, checked and compiled as loop IR is. An
IRBuilder collects them while Python runs; of

    ib = tir.ir_builder.create()
    with ib.for_range(0, n, name="i") as i:
        b[i] = a[i] + 1.0

they are `for i in 0..n {`, `  B[i] = A[i] + 1f32`, `}`. Elements of a Buffer are expressions of te, whose text is the
same language."""

from __future__ import annotations

import contextlib
import re
from typing import Any, Callable, Sequence

from . import _arguments, te
from ._arguments import kinds as _kinds
from ._tenon import Expr, IrModule, Tensor, Var

__all__ = ["Buffer", "IRBuilder", "Statement", "call_extern", "call_intrin", "call_packed", "decl_buffer"]

_SHORT = {"float": "f", "int": "i", "uint": "u", "bfloat": "bf"}
_SIZES = {"bool": 1, "int8": 1, "uint8": 1, "int64": 8, "uint64": 8, "float64": 8, "handle": 8}


def _short(dtype: str) -> str:
    """float32 as loop IR writes it: f32."""
    if dtype in ("bool", "handle"):
        return dtype
    letters = dtype.rstrip("0123456789")
    if letters not in _SHORT:
        raise ValueError(f"there is no type '{dtype}'; expected a name such as float32, int8 or bool")
    return _SHORT[letters] + dtype[len(letters) :]


def _bytes(dtype: str) -> int:
    return _SIZES.get(dtype) or (2 if dtype.endswith("16") else 4)


def _type_word(dtype: str) -> int:
    """DLPack's code and bits, as python/src/registry.cc reads them."""
    codes = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
    return codes[dtype.rstrip("0123456789")] | 8 * _bytes(dtype) << 8


def _is_index(value: Any) -> bool:
    """Loop variables and sizes, and what is made of them; numbers too."""
    return isinstance(value, int) or (isinstance(value, Expr) and value.dtype == "int64" and "[" not in str(value))


class Statement:
    """Lines of loop IR."""

    def __init__(self, lines: Sequence[str]):
        self.lines = list(lines)

    def __repr__(self) -> str:
        return "\n".join(self.lines) or "<no statements>"


class Pointer:
    """The address of an element, for C functions."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return f"Pointer({self.text})"


class Buffer:
    """A parameter of a function of statements: memory of a shape, with the strides between its rows."""

    def __init__(self, name: str, shape: Sequence, dtype: str, strides: Sequence | None = None):
        self.name, self.shape, self.dtype = name, list(shape), dtype
        self.strides = list(strides) if strides else []
        self._tensor = te.placeholder(self.shape, dtype, name)

    @property
    def elem_offset(self) -> int:
        """Addresses are those of the first element: nothing is to be added."""
        return 0

    def _index(self, index: Any) -> tuple:
        index = tuple(index) if isinstance(index, (tuple, list)) else (index,)
        if len(index) == 1 and len(self.shape) > 1:  # one number for all dims, as pointers have
            rest, parts = index[0], []
            for size in reversed(self.shape[1:]):
                parts.append(rest % size)
                rest = rest // size
            index = (rest, *reversed(parts))
        return index

    def __getitem__(self, index: Any) -> Expr:
        return self._tensor[self._index(index)]

    def vload(self, begin: Any, dtype: str | None = None) -> Expr:
        """One element."""
        if dtype not in (None, self.dtype):
            raise NotImplementedError(
                f"vload: an element of '{self.name}' is {self.dtype}; vectors are made by vectorize"
            )
        return self[begin]

    def vstore(self, begin: Any, value: Any) -> Statement:
        return _store(self, begin, value)

    def access_ptr(self, access_mask: int | str, ptr_type: str = "handle", content_lanes: int = 1, offset: Any = 0) -> Pointer:
        """The address of the element `offset` after the first."""
        base = f"data<handle>({self.name}[{', '.join(['0'] * len(self.shape))}])"
        if isinstance(offset, int) and offset == 0:
            return Pointer(base)
        return Pointer(f"ptr_offset({base}, {te._expr(offset) * _bytes(self.dtype)})")

    @property
    def data(self) -> Pointer:
        return self.access_ptr("rw")

    def __repr__(self) -> str:
        return f"Buffer({self.name}, {self.shape}, {self.dtype})"


def decl_buffer(
    shape: Any,
    dtype: Any = "float32",
    name: str = "buffer",
    data: Any = None,
    strides: Sequence | None = None,
    elem_offset: Any = None,
    scope: str = "global",
    data_alignment: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
) -> Buffer:
    """What a tensor of te.decl_tensor_intrin is called in its function, and what its strides are. Where it lies, and how it
    is aligned, follows from the schedule: the arguments that say so are taken and not needed."""
    return Buffer(name, te._shape(shape), te._dtype(dtype), strides)


class Call:
    """A call of a function of C, or of Python: a statement, or the value of a let or of an element that is stored."""

    def __init__(self, dtype: str, text: str, before: Sequence[str] = ()):
        self.dtype, self.text, self.before = dtype, text, list(before)

    def __repr__(self) -> str:
        return self.text


def _no_operand(self: Call, *_: Any) -> None:
    raise TypeError("a call of a C function is no operand: give its value a name by let, or store it in an element")


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "lt", "le", "gt", "ge", "neg"):
    setattr(Call, f"__{_name}__", _no_operand)


def _argument(value: Any, function: str) -> str:
    """Numbers and sizes are C's int, elements what they are, buffers pointers."""
    if isinstance(value, _Elements):
        value = value._buffer
    if isinstance(value, (Buffer, Pointer)):
        return (value.data if isinstance(value, Buffer) else value).text
    if isinstance(value, bool):
        return f"{int(value)}i32"
    if isinstance(value, int):
        return f"{value}i32"
    if isinstance(value, float):
        return f"{value!r}f32"
    if isinstance(value, Expr):
        return f"i32({value})" if _is_index(value) else str(value)
    raise TypeError(f"{function}: expected expressions, numbers and buffers but got {_kinds(value)}")


def _name(func_name: Any, function: str) -> str:
    if not isinstance(func_name, str):
        raise TypeError(f"{function}: expected str for 'func_name' but got {_kinds(func_name)}")
    return func_name


def call_extern(dtype: Any, func_name: str, *args: Any) -> Call:
    """A call of a C function that gives a value of this type. It is one of the process's where the code is built and run
    (of the C library, or loaded for everybody: ctypes.CDLL(path, ctypes.RTLD_GLOBAL)); for a library of its own, save an
    object and link it with what defines the function."""
    texts = [f'"{_name(func_name, "call_extern")}"', *(_argument(a, "call_extern") for a in args)]
    return Call(dtype, f"extern<{_short(te._dtype(dtype))}>({', '.join(texts)})")


_COUNTER = iter(range(1 << 62))


def call_packed(func_name: str, *args: Any) -> Call:
    """A call of a function of Python that tenon.register_func has, or will have when the code runs, with views of the
    buffers as tenon.nd arrays. In this process only: elsewhere nobody has it."""
    from .registry import expose

    _name(func_name, "call_packed")
    expose()
    words: list[tuple[str, str]] = []  # type and value of each word of 64 bits, as python/src/registry.cc reads them
    for value in (a._buffer if isinstance(a, _Elements) else a for a in args):
        if isinstance(value, Buffer):
            words += [("i64", "3i64"), ("handle", value.data.text)]
            words += [("i64", f"{number}i64") for number in (_type_word(value.dtype), len(value.shape))]
            words += [("i64", f"i64({d})") for d in value.shape]
        elif isinstance(value, (bool, int)):
            words += [("i64", "0i64"), ("i64", f"{int(value)}i64")]
        elif isinstance(value, float):
            words += [("i64", "1i64"), ("f64", f"{value!r}f64")]
        elif isinstance(value, Expr):
            kind, number = ("f64", "1i64") if "float" in value.dtype else ("i64", "0i64")
            words += [("i64", number), (kind, f"{kind}({value})")]
        else:
            raise TypeError(f"call_packed: expected buffers, expressions and numbers but got {_kinds(value)}")
    name = f"packed.{next(_COUNTER)}"
    before = [f"alloc {name}: i64[{max(len(words), 1)}] in local align 8"]
    before += [f"ptr_store<{kind}>(data<handle>({name}[0]), {8 * i}, {text})" for i, (kind, text) in enumerate(words)]
    arguments = f'"{func_name}", data<handle>({name}[0]), {len(args)}i32'
    return Call("int32", f'extern<i32>("tenon_call_registered", {arguments})', before)


def call_intrin(dtype: Any, func_name: str, *args: Any) -> Any:
    """A function of numbers by TVM's name for it, "tir.exp": te's own."""
    name = _name(func_name, "call_intrin").removeprefix("tir.")
    function = getattr(te, name, None) if name in te.__all__ else None
    if function is None:
        raise NotImplementedError(
            f"call_intrin: there is no function '{func_name}'; those that there are, are te's "
            "(docs/tensor-expressions.md)"
        )
    return function(*args).astype(te._dtype(dtype))


def _bound(call: Call, name: str) -> list[str]:
    return [*call.before, f"let {name} = {call.text}"]


def _lines(statement: Any) -> list[str]:
    if isinstance(statement, Statement):
        return statement.lines
    if isinstance(statement, Call):
        return _bound(statement, f"done.{next(_COUNTER)}")
    if isinstance(statement, (list, tuple)):
        return [line for s in statement for line in _lines(s)]
    raise TypeError(f"expected a statement, of an IRBuilder or a call, but got {_kinds(statement)}")


def _store(buffer: Buffer, index: Any, value: Any) -> Statement:
    place = str(buffer[index])
    if isinstance(value, Call):
        name = f"value.{next(_COUNTER)}"
        return Statement([*_bound(value, name), f"{place} = {name}"])
    return Statement([f"{place} = {te.const(value, buffer.dtype)}"])


class _Elements:
    """A buffer as a builder has it: elements are read and stored."""

    def __init__(self, builder: IRBuilder, buffer: Buffer):
        self._builder, self._buffer = builder, buffer

    def __getitem__(self, index: Any) -> Expr:
        return self._buffer[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._builder.emit(_store(self._buffer, index, value))

    @property
    def dtype(self) -> str:
        return self._buffer.dtype


_KINDS = {"serial": "", "parallel": " parallel", "vectorize": " vectorized", "unroll": " unrolled"}


class IRBuilder:
    """Statements one after the other, as Python writes them. Invariant: lines below the current scope are indented by it,
    and a scope that is left is closed."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._indent = ""
        self._names: dict[str, int] = {}

    def _fresh(self, name: str) -> str:
        count = self._names[name] = self._names.get(name, -1) + 1
        return f"{name}_{count}" if count else name

    def emit(self, stmt: Any) -> None:
        """Appends a statement, such as a call."""
        self._lines += [self._indent + line for line in _lines(stmt)]

    @contextlib.contextmanager
    def _scope(self, head: str) -> Any:
        self._lines.append(f"{self._indent}{head} {{")
        self._indent += "  "
        yield
        self._indent = self._indent[2:]
        self._lines.append(self._indent + "}")

    @contextlib.contextmanager
    def for_range(self, begin: Any, end: Any, name: str = "i", dtype: str = "int64", kind: str = "serial") -> Any:
        """A loop; `with` gives its variable."""
        if kind not in _KINDS:
            raise ValueError(f"for_range: expected one of {', '.join(_KINDS)} for 'kind' but got '{kind}'")
        var = Var(self._fresh(name))
        with self._scope(f"for {var} in {te._expr(begin)}..{te._expr(end)}{_KINDS[kind]}"):
            yield var

    def if_scope(self, cond: Any) -> Any:
        return self._scope(f"if {te._expr(cond)}")

    def else_scope(self) -> Any:
        """Of the if_scope right before it."""
        last = self._lines[-1].strip() if self._lines else ""
        if last != "}":
            raise ValueError("else_scope: it comes right after an if_scope")
        self._lines.pop()
        return self._scope("} else")

    def allocate(self, dtype: Any, shape: Any, name: str = "buf", scope: str = "local") -> _Elements:
        """Memory for what follows in this scope."""
        buffer = Buffer(self._fresh(name), te._shape(shape), te._dtype(dtype))
        sizes = ", ".join(str(d) for d in buffer.shape)
        self._lines.append(f"{self._indent}alloc {buffer.name}: {_short(buffer.dtype)}[{sizes}] in {scope}")
        return _Elements(self, buffer)

    def buffer_ptr(self, buf: Buffer, shape: Any = None) -> _Elements:
        """The elements of a buffer, by an index for each dim, or by one for all."""
        if not isinstance(buf, Buffer):
            raise TypeError(f"buffer_ptr: expected Buffer for 'buf' but got {_kinds(buf)}")
        return _Elements(self, buf)

    def let(self, var_name: str, value: Any) -> Expr:
        """A value that is computed once."""
        name = self._fresh(var_name)
        if isinstance(value, Call):
            self._lines += [self._indent + line for line in _bound(value, name)]
            return te.scalar(name, value.dtype)
        value = te._expr(value)
        self._lines.append(f"{self._indent}let {name} = {value}")
        return Var(name) if _is_index(value) else te.scalar(name, value.dtype)

    def likely(self, expr: Any) -> Expr:
        return te.likely(expr)

    def scope_attr(self, *args: Any) -> None:
        raise NotImplementedError(
            "scope_attr: loops are bound to threads by a schedule, or by `for i in 0..n thread threadIdx.x` in the "
            "text of loop IR"
        )

    def __repr__(self) -> str:
        return f"<tenon.tir.IRBuilder of {len(self._lines)} lines>"

    def get(self) -> Statement:
        """What was written."""
        return Statement(self._lines)


def create() -> IRBuilder:
    """An empty builder (tir.ir_builder.create)."""
    return IRBuilder()


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def function_text(name: str, ins: Sequence[Buffer], outs: Sequence[Buffer], body: Any) -> str:
    """The device function of these parameters with the statements as its body."""

    def parameter(buffer: Buffer, out: str) -> str:
        shape = ", ".join(str(d) for d in buffer.shape)
        strides = f" strides ({', '.join(str(s) for s in buffer.strides)})" if buffer.strides else ""
        return f"{out}{buffer.name}: {_short(buffer.dtype)}[{shape}]{strides}"

    dims: dict[str, None] = {}
    for buffer in (*ins, *outs):
        for size in (*buffer.shape, *buffer.strides):
            dims.update(dict.fromkeys(_NAME.findall(str(size))))
    sizes = f"<{', '.join(dims)}>" if dims else ""
    parameters = [parameter(b, "") for b in ins] + [parameter(b, "out ") for b in outs]
    try:
        lines = "\n".join("  " + line for line in _lines(body))
    except TypeError as error:
        raise TypeError(f"'{name}': {error}") from None
    return f"func @{name}{sizes}({', '.join(parameters)}) kind device {{\n{lines}\n}}\n"


def of_tensors(tensors: Sequence[Tensor]) -> list[Buffer]:
    """Buffers called as the tensors are, each by a name of its own."""
    used: dict[str, int] = {}
    buffers = []
    for t in tensors:
        count = used[t.name] = used.get(t.name, -1) + 1
        buffers.append(Buffer(f"{t.name}_{count}" if count else t.name, list(t.shape), t.dtype))
    return buffers


def extern_body(name: str, inputs: Sequence[Tensor], outputs: Sequence[Buffer], fcompute: Callable) -> IrModule:
    """The module of te.extern's function, where that is one of Python's: fcompute(ins, outs) gives a statement."""
    ins = of_tensors(inputs)
    taken = {b.name for b in ins}
    for buffer in outputs:
        while buffer.name in taken:
            buffer.name += "_out"
            buffer._tensor = te.placeholder(buffer.shape, buffer.dtype, buffer.name)
        taken.add(buffer.name)
    return IrModule.parse(function_text(name, ins, outputs, fcompute(ins, list(outputs))))


_arguments.say_clearly(globals())
