"""Every public name, called with things of a kind that nothing takes: one line, which names the argument."""

import inspect
import operator
import types
import unittest

import numpy as np

import tenon
from tenon import te, tir

n = te.var("n")
A = te.placeholder((n,), name="A")
C = te.compute((n,), lambda i: A[i] + 1, name="C")
NO_CONSTRUCTOR = "no constructor defined!"
MADE_BY_TENON = {"DeviceModule", "Module", "TempDirectory"}


class Wrong:
    """What nothing takes."""


def objects():
    schedule = te.create_schedule(C.op)
    loops = tir.Schedule(te.create_prim_func([A, C]))
    module = tenon.build(schedule, [A, C], "c")
    return [schedule, schedule[C], loops, loops.trace, loops.mod, A, C.op, n + 1, module, tenon.nd.empty((2,)), tenon.cpu(0)]


def loops_result():
    """A result of a compiled function, on the CPU."""
    return tenon.build(te.create_schedule(C.op), [A, C], "llvm")(np.ones(2, "float32"))


def required(function):
    """How many arguments a function takes at least; of one that does not say, one."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    if not parameters:
        return 0
    return max(1, sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters))


def public_names():
    for module in (te, tir, tenon, tenon.nd, tenon.runtime, tenon.target, tenon.contrib.cc, tenon.contrib.utils):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not isinstance(value, types.ModuleType) and name != "IndexMap":
                yield f"{module.__name__}.{name}", value


def methods():
    for owner in objects():
        for name in dir(type(owner)):
            kind = inspect.getattr_static(type(owner), name)
            if not name.startswith("_") and not isinstance(kind, property) and callable(getattr(owner, name)):
                yield f"{type(owner).__name__}.{name}", getattr(owner, name)


class Kinds(unittest.TestCase):
    def check(self, what, function, *args, **kwargs):
        message = ""
        with self.subTest(what=what):
            with self.assertRaises(TypeError) as caught:
                function(*args, **kwargs)
            message = str(caught.exception)
        self.assertEqual(len(message.splitlines()), 1, f"{what}: {message}")
        for detail in ("incompatible function arguments", "bad_cast", "object at 0x"):
            self.assertNotIn(detail, message, what)
        return message

    def test_public_names(self):
        count = 0
        for what, function in public_names():
            short = what.rpartition(".")[2]
            if short in MADE_BY_TENON or required(function) == 0:
                continue
            keywords = {"axis": Wrong()} if short in ("sum", "prod", "max", "min") else {}
            message = self.check(what, function, *[Wrong()] * required(function), **keywords)
            self.assertRegex(message, f"for '|axis|shape|type|{short}|{NO_CONSTRUCTOR}", what)
            count += 1
        self.assertGreater(count, 90)

    def test_methods(self):
        count = 0
        for what, function in methods():
            if required(function) > 0 and not what.endswith(("Target.current", "NDArray.numpy", "NDArray.asnumpy")):
                message = self.check(what, function, *[Wrong()] * required(function))
                self.assertRegex(message, "for '|for each loop|arguments|Callable|NDArray|number", what)
                count += 1
        self.assertGreater(count, 90)

    def test_operators_and_what_python_calls(self):
        """None of what Python calls by itself lets the binding's own words out."""
        binary = [getattr(operator, name) for name in dir(operator) if not name.startswith("_") and name not in ("attrgetter", "call", "methodcaller")]
        calls = [lambda v: v[Wrong()], lambda v: v[Wrong(), 1], lambda v: v(Wrong()), lambda v: v(nonsense=1), lambda v: v.__dlpack__(Wrong())]
        calls += [lambda v, f=f: f(v, Wrong()) for f in binary] + [lambda v, f=f: f(Wrong(), v) for f in binary]
        calls += [lambda v, f=f: f(v) for f in (len, iter, hash, float, int, complex, bool, round, bytes, list, np.asarray)]
        count = 0
        for owner in [*objects(), A[0] > 1, C.op.axis[0], te.thread_axis("threadIdx.x"), loops_result(), te.create_schedule(C.op)[C].split(C.op.axis[0], 2)[0]]:
            for call in calls:
                try:
                    call(owner)
                except Exception as error:  # pylint: disable=broad-except
                    with self.subTest(owner=type(owner).__name__, error=str(error)):
                        for detail in ("incompatible function arguments", "bad_cast"):
                            self.assertNotIn(detail, str(error))
                    count += 1
        self.assertGreater(count, 500)
        for cls in (te.Expr, te.Var, te.Tensor, te.Operation, te.IterVar, tenon.Schedule, tenon.Stage, tenon.IrModule, tir.Trace, tenon.nd.NDArray):
            nothing = [] if cls is tenon.IrModule else [((), {})]  # a module may have no function
            for args, kwargs in (*nothing, ((Wrong(),), {}), ((1, 2, 3, 4, 5, 6), {}), ((), {"nonsense": 1})):
                with self.subTest(constructor=cls.__name__), self.assertRaises(TypeError) as caught:
                    cls(*args, **kwargs)
                self.assertNotIn("incompatible function arguments", str(caught.exception))

    def test_of_each_argument(self):
        loops = tir.Schedule(te.create_prim_func([A, C]))
        stage = te.create_schedule(C.op)[C]
        i = C.op.axis[0]
        for expected, call in {
            r"split: expected Sequence\[int \| str \| None\] for 'factors' but got int": lambda: loops.split("C.i", 8),
            r"split: expected .* for 'factors' but got list of NoneType, Wrong": lambda: loops.split("C.i", [None, Wrong()]),
            r"cache_read: expected str for 'scope' but got int": lambda: loops.cache_read("C", "A", 5),
            r"tile: expected Sequence\[str\] for 'loops' but got str": lambda: loops.tile("C.i", [4]),
            r"transform_layout: expected str \| Callable for 'layout' but got int": lambda: loops.transform_layout("A", 4),
            r"tensorize: expected TensorIntrin \| str for 'intrin' but got int": lambda: loops.tensorize("C.i", 4),
            r"software_pipeline: .* for 'order' but got int": lambda: loops.software_pipeline("C.i", [0], 1),
            r"Schedule: expected str for 'func_name' but got int": lambda: tir.Schedule(loops.mod, 5),
            r"Schedule: expected IrModule \| str for 'mod' but got int": lambda: tir.Schedule(5),
            r"Var: expected \(name: str, lo: int = 0, .*\) but got \(int, lo=int\)": lambda: te.Var(5, lo=1),
            r"Expr: expected \(int \| float\) but got \(str\)": lambda: te.Expr("x"),
            r"var: expected int for 'lo' but got str": lambda: te.var("n", lo="0"),
            r"placeholder: expected str for 'name' but got int": lambda: te.placeholder((n,), name=5),
            r"exp: expected an expression or a number for 'x' but got str": lambda: te.exp("x"),
            r"exp: too many positional arguments": lambda: te.exp(1.0, 2.0),
            r"pow: missing a required argument: 'y'": lambda: te.pow(1.0),
            r"select: .* for 'false_value' but got NoneType": lambda: te.select(n > 1, 1, None),
            r"a reduction is over axes of reduce_axis, not over list of int, int": lambda: te.sum(A[0], axis=[1, 2]),
            r"a reduction needs an axis, not Wrong; see reduce_axis": lambda: te.sum(A[0], axis=Wrong()),
            r"const: .* for 'dtype'|expected a type, such as \"float32\", but got Wrong": lambda: te.const(1, Wrong()),
            r"fuse: expected IterVar for each loop but got int": lambda: stage.fuse(i, 4),
            r"reorder: expected IterVar for each loop but got str": lambda: stage.reorder(["C.i"]),
            r"cache_read: expected Tensor \| Operation for 'readers' but got .*Wrong":
                lambda: te.create_schedule(C.op).cache_read(A, "local", [Wrong()]),
            r"build: expected Sequence\[Tensor \| Var\] \| None for 'args' but got Tensor":
                lambda: tenon.build(te.create_schedule(C.op), A),
            r"Target: expected Target \| str \| Mapping for 'target' but got int": lambda: tenon.target.Target(5),
            r"empty: expected int \| Sequence\[int\] for 'shape' but got str": lambda: tenon.nd.empty("x"),
            r"cuda: expected int for 'index' but got str": lambda: tenon.cuda("0"),
        }.items():  # fmt: skip
            self.assertRegex(self.check(expected, call), f"^({expected})$")

    def test_that_tensors_are_no_operands(self):
        for call in (lambda: A + C, lambda: A * 2, lambda: 2 - A, lambda: n / A, lambda: A > 1, lambda: -A, lambda: te.exp(A)):
            with self.assertRaisesRegex(TypeError, "^'A' is a tensor; what is computed with are its elements, A.i, "):
                call()

    def test_of_functions_of_users(self):
        """Their own mistakes are not those of the call that they are in."""
        with self.assertRaisesRegex(TypeError, "unsupported operand"):
            te.compute((n,), lambda i: A[i] + None)
        with self.assertRaisesRegex(AttributeError, "no attribute 'nothing'"):
            te.compute((n,), lambda i: A.nothing)

    def test_that_numpy_has(self):
        loops = tir.Schedule(te.create_prim_func([A, C]))
        self.assertEqual(len(loops.split("C.i", [None, np.int64(8)])), 2)
        self.assertEqual(te.const(np.float32(1.5), np.float64).dtype, "float64")
        self.assertEqual(te.max_value(np.int8).dtype, "int8")
        self.assertEqual(te.var("x", np.float32).dtype, "float32")


if __name__ == "__main__":
    unittest.main()
