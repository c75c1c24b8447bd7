"""Functions of te against NumPy: where they are easy, and where things happen."""

import pathlib
import re
import unittest
import warnings

import numpy as np

import tenon
from tenon import te

ROOT = pathlib.Path(__file__).parents[2]
WIDE = np.longdouble

# Each with what it is in NumPy, and how many units of the last place it may be off in f32 and f64.
OF_ONE = {
    "exp": (np.exp, 1.5, 4), "exp2": (np.exp2, 1.5, 4), "exp10": (lambda x: np.power(WIDE(10), x), 1, 4),
    "expm1": (np.expm1, 1, 4), "log": (np.log, 1.5, 4), "log2": (np.log2, 2, 4), "log10": (np.log10, 1, 4),
    "log1p": (np.log1p, 1, 4), "sqrt": (np.sqrt, 0.5, 0.5), "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5, 1.5),
    "asin": (np.arcsin, 1, 4), "acos": (np.arccos, 1, 4), "atan": (np.arctan, 1, 4), "sinh": (np.sinh, 1, 4),
    "cosh": (np.cosh, 1, 4), "tanh": (np.tanh, 4, 4), "asinh": (np.arcsinh, 1, 4), "acosh": (np.arccosh, 1, 4),
    "atanh": (np.arctanh, 1, 4), "abs": (np.abs, 0, 0), "floor": (np.floor, 0, 0), "ceil": (np.ceil, 0, 0),
    "trunc": (np.trunc, 0, 0), "round": (np.rint, 0, 0), "nearbyint": (np.rint, 0, 0), "rint": (np.rint, 0, 0),
}  # fmt: skip
TESTS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
OF_TWO = {"atan2": (np.arctan2, 1, 4), "hypot": (np.hypot, 1, 4), "fmod": (np.fmod, 0, 0),
          "copysign": (np.copysign, 0, 0), "nextafter": (np.nextafter, 0, 0)}  # fmt: skip


def samples(dtype):
    info = np.finfo(dtype)
    special = [0, 0.25, 0.5, 0.7, 1, 1.5, 2, 2.5, 3, 10, 88.7, 700, 745, info.max, info.tiny, info.smallest_subnormal, np.inf]
    special = np.array(special, dtype)
    random = np.random.default_rng(5).standard_normal(500)
    with np.errstate(over="ignore"):
        random = np.concatenate([random, np.exp(random * 20)]).astype(dtype)
    return np.concatenate([special, -special, [np.nan], random, -random]).astype(dtype)


def units(got, want, dtype):
    """How far apart, in units of the last place."""
    with np.errstate(all="ignore"):
        rounded = want.astype(dtype)
        same = (got == rounded) & (np.signbit(got) == np.signbit(rounded)) | np.isnan(got) & np.isnan(rounded)
        top = np.finfo(dtype).max
        near_infinity = np.isinf(got) & (np.abs(rounded) == top) | np.isinf(rounded) & (np.abs(got) == top)
        unit = np.spacing(np.abs(rounded)).astype(WIDE)
        off = np.abs(got.astype(WIDE) - want.astype(WIDE)) / unit
        off = np.where(near_infinity, 1, np.where(np.isfinite(off), off, np.inf))
    # The sign of a zero counts.
    off = np.where((got == 0) & (rounded == 0) & (np.signbit(got) != np.signbit(rounded)), np.inf, off)
    return np.where(same, np.minimum(np.nan_to_num(off), 0.5), off)


def run(functions, *arrays, target="llvm"):
    places = [te.placeholder(a.shape, a.dtype.name, f"x{k}") for k, a in enumerate(arrays)]
    out = te.compute(arrays[0].shape, lambda i: tuple(f(*(p[i] for p in places)) for f in functions), name="out")
    s = te.create_schedule(out[0].op)
    results = tenon.build(s, [*places, *out], target)(*arrays)
    return [r.numpy() for r in (results if len(functions) > 1 else [results])]


class Functions(unittest.TestCase):
    def check(self, table, arrays, target):
        dtype = arrays[0].dtype
        got = run([getattr(te, name) for name in table], *arrays, target=target)
        for (name, (reference, ulps32, ulps64)), values in zip(table.items(), got):
            exact = name in ("fmod", "nextafter")
            with np.errstate(all="ignore"):
                want = reference(*(a if exact else a.astype(WIDE) for a in arrays))
            most = {"float64": ulps64, "float32": ulps32, "float16": 0.51}[dtype.name] + (0.01 if ulps32 else 0)
            off = units(values, np.asarray(want), dtype)
            worst = int(np.argmax(off))
            self.assertLessEqual(off[worst], max(most, 0.51), f"{name} of {dtype} {[a[worst] for a in arrays]} is "
                                 f"{values[worst]} but {want[worst]} ({target})")  # fmt: skip

    def test_of_one_number(self):
        for target, dtypes in (("llvm", ("float16", "float32", "float64")), ("c", ("float32",))):
            for dtype in dtypes:
                self.check(OF_ONE, [samples(dtype)], target)

    def test_of_two_numbers(self):
        for target, dtypes in (("llvm", ("float16", "float32", "float64")), ("c", ("float64",))):
            for dtype in dtypes:
                special = np.unique(samples(dtype)[:34])
                x, y = (g.ravel() for g in np.meshgrid(np.concatenate([special, [np.nan, -0.0]]), special))
                self.check(OF_TWO, [x.astype(dtype), y.astype(dtype)], target)

    def test_remainders_of_f64(self):
        random = np.random.default_rng(7)
        x = (random.integers(0, 2**63, 4000, "int64") | random.integers(0, 2, 4000) << 63).view("float64")
        near = x.view("int64") + random.integers(-(2**54), 2**54, 4000)  # of a like exponent
        y = np.concatenate([random.permutation(x)[:2000], near[:1000].view("float64"), x[:1000] / 3])
        for target in ("llvm", "llvm -mcpu=x86-64"):
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(run([te.fmod], x, y, target=target)[0], np.fmod(x, y), target)
        a, b = te.placeholder((8,), "float64", "a"), te.placeholder((8,), "float64", "b")
        c = te.compute((8,), lambda i: te.fmod(a[i], b[i]), name="c")
        s = te.create_schedule(c.op)
        s[c].vectorize(c.op.axis[0])
        np.testing.assert_array_equal(tenon.build(s, [a, b, c])(x[:8], y[:8]).numpy(), np.fmod(x[:8], y[:8]))

    @unittest.skipUnless(tenon.opencl(0).exist, "there is no OpenCL device")
    def test_on_a_device(self):
        """Which has functions of its own: OpenCL allows these up to 5 units, and none where ours are exact."""
        x = samples("float32")
        place, device = te.placeholder(x.shape, "float32", "x"), tenon.opencl(0)
        out = te.compute(x.shape, lambda i: tuple(getattr(te, name)(place[i]) for name in OF_ONE), name="out")
        s = te.create_schedule(out[0].op)
        outer, inner = s[out[0]].split(out[0].op.axis[0], factor=64)
        s[out[0]].bind(outer, te.thread_axis("blockIdx.x"))
        s[out[0]].bind(inner, te.thread_axis("threadIdx.x"))
        results = tenon.build(s, [place, *out], "opencl")(tenon.nd.array(x, device))
        for (name, (reference, ulps, _)), got in zip(OF_ONE.items(), results):
            with np.errstate(all="ignore"):
                off = units(got.numpy(), np.asarray(reference(x.astype(WIDE))), x.dtype)
            worst = int(np.argmax(off))
            self.assertLessEqual(off[worst], 5 if ulps > 0.5 else 0.51, f"{name} of {x[worst]} is {got.numpy()[worst]}")

    def test_questions(self):
        for dtype in ("float16", "float32", "float64"):
            x = samples(dtype)
            for (name, reference), got in zip(TESTS.items(), run([getattr(te, n) for n in TESTS], x)):
                np.testing.assert_array_equal(got, reference(x), name)

    def test_powers_of_two(self):
        for dtype in ("float16", "float32", "float64"):
            x = samples(dtype)
            powers = (0, 1, -1, 7, -20, 127, -126, 200, -149, -300, 1100, -1100, 5000, -5000)
            got = run([te.ldexp], np.tile(x, len(powers)), np.repeat(np.array(powers, "int32"), len(x)))[0]
            with np.errstate(all="ignore"):
                want = np.concatenate([np.ldexp(x, n) for n in powers])
            np.testing.assert_array_equal(got, want, f"ldexp of {dtype}")
        powers = np.array([-3, 100, 7], "int8")
        np.testing.assert_array_equal(run([lambda n: te.ldexp(1.5, n)], powers)[0], np.ldexp(np.float32(1.5), powers))

    def test_most_and_least_of_halves(self):
        x = samples("float16")
        limits = (2, 0, -0.5)
        for target in ("llvm", "llvm -mcpu=x86-64", "c"):
            pairs = [(pick, reference, n) for pick, reference in ((te.max, np.fmax), (te.min, np.fmin)) for n in limits]
            got = run([lambda a, pick=pick, n=n: pick(a, n) for pick, _, n in pairs], x, target=target)
            for (_, reference, n), values in zip(pairs, got):
                np.testing.assert_array_equal(values, reference(x, np.float16(n)), f"{reference} and {n} ({target})")

    def test_bits(self):
        for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
            info = np.iinfo(name)
            x = np.array([0, 1, 2, 3, 64, info.max, info.min, info.max // 3], name)
            bits = [format(int(v) & (2**info.bits - 1), f"0{info.bits}b") for v in x]
            for target in ("llvm", "c") if info.bits in (8, 64) else ("llvm",):
                ones, zeros = run([te.popcount, te.clz], x, target=target)
                np.testing.assert_array_equal(ones, [b.count("1") for b in bits])
                np.testing.assert_array_equal(zeros, [len(b) - len(b.lstrip("0")) for b in bits])
        with self.assertRaisesRegex(TypeError, "popcount is of integers, not of float32"):
            te.popcount(te.const(1.0, "float32"))

    def test_values_of_types(self):
        one = np.zeros(1, "float32")
        for name in ("int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64"):
            info = np.finfo(name) if name.startswith("f") else np.iinfo(name)
            got = run([lambda v: te.min_value(name), lambda v: te.max_value(name)], one)
            self.assertEqual([g[0] for g in got], [info.min, info.max])
        self.assertEqual(run([lambda v: te.infinity("float32")], one)[0][0], np.inf)
        with self.assertRaisesRegex(TypeError, "int32 has no infinity"):
            te.infinity("int32")

    def test_divisions(self):
        x = np.array([-7, -6, -1, 0, 5, 9], "int32")
        for y in (2, -3):
            rows = run([lambda a: te.truncdiv(a, y), lambda a: te.truncmod(a, y), lambda a: te.floordiv(a, y),
                        lambda a: te.floormod(a, y), lambda a: te.div(a, y)], x)  # fmt: skip
            cut = np.trunc(x / y).astype("int32")
            for got, want in zip(rows, (cut, x - cut * y, x // y, x % y, cut)):
                np.testing.assert_array_equal(got, want)
        # Loop variables floor by themselves.
        b = te.compute((6,), lambda i: (te.truncdiv(i - 3, 2), te.truncmod(i - 3, 2), te.indexdiv(i - 3, 2)), name="B")
        got = tenon.build(te.create_schedule(b[0].op), list(b))()
        self.assertEqual([list(g.numpy()) for g in got], [[-1, -1, 0, 0, 0, 1], [-1, 0, -1, 0, 1, 0], [-2, -1, -1, 0, 0, 1]])
        f = np.array([-7.5, 7.5], "float32")
        got = run([lambda a: te.truncdiv(a, 2), lambda a: te.div(a, 2), lambda a: te.floordiv(a, 2)], f)
        self.assertEqual([list(g) for g in got], [[-3, 3], [-3.75, 3.75], [-4, 3]])

    def test_the_rest(self):
        x = np.array([-2.0, -0.0, 0.5, 3.0], "float32")
        got = run([lambda a: te.reinterpret(a, "int32"), lambda a: te.reinterpret("int32", a), lambda a: -a,
                   lambda a: te.fma(a, 2, 1), lambda a: te.if_then_else(te.likely(te.any(a < 0, a > 2)), a, 0.25),
                   lambda a: te.add(a, 1) * te.subtract(a, 1) + te.multiply(a, 2), lambda a: te.pow(a, 2)], x)  # fmt: skip
        wants = (x.view("int32"), x.view("int32"), -x, x * 2 + 1, np.where((x < 0) | (x > 2), x, np.float32(0.25)),
                 (x + 1) * (x - 1) + x * 2, x * x)  # fmt: skip
        for values, want in zip(got, wants):
            np.testing.assert_array_equal(values, want)
        self.assertTrue(np.signbit(got[2][3]) and not np.signbit(got[2][1]))


class Operands(unittest.TestCase):
    def test_scalars_of_numpy_are_numbers(self):
        x = np.array([1, 2, 3], "float32")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = run([lambda a: a * np.float32(2), lambda a: np.float32(2) * a, lambda a: a + np.int64(1),
                       lambda a: np.float64(1) - a, lambda a: te.max(a, np.float16(2)), lambda a: a ** np.array(2.0),
                       lambda a: te.select(a > np.float32(1.5), a, np.int8(0))], x)  # fmt: skip
        for values, want in zip(got, (x * 2, x * 2, x + 1, 1 - x, np.maximum(x, 2), x * x, np.where(x > 1.5, x, 0))):
            self.assertEqual(values.dtype, x.dtype)
            np.testing.assert_array_equal(values, want)
        k = te.reduce_axis((np.int64(0), np.int32(3)), name="k")
        a = te.placeholder((np.int64(3),), name="A")
        total = te.compute((np.int32(1),), lambda i: te.sum(a[k] * np.float32(0.5), axis=k), name="total")
        self.assertEqual(tenon.build(te.create_schedule(total.op), [a, total])(x.astype("float32")).numpy()[0], 3)

    def test_operators_from_the_right(self):
        x = np.array([1, 2, 5], "int32")
        got = run([lambda a: 6 & a, lambda a: 8 | a, lambda a: 1 ^ a, lambda a: 1 << a, lambda a: 64 >> a, lambda a: 2**a], x)
        for values, want in zip(got, (6 & x, 8 | x, 1 ^ x, 1 << x, 64 >> x, 2**x)):
            np.testing.assert_array_equal(values, want)

    def test_what_is_no_operand(self):
        a = te.placeholder((4, 4), name="A")
        for wrong, message in (
            (lambda: a[0], "'A' has 2 dims but got 1 indices"),
            (lambda: a[0:2, 1], "'A' is indexed element by element: a slice is no value"),
            (lambda: a[..., 1], "'A' is indexed element by element"),
            (lambda: a["x", 1], "an index of 'A': expected an expression or an integer but got str"),
            (lambda: te.exp(a), r"'A' is a tensor; what is computed with are its elements, A\[i, ...\]"),
            (lambda: te.exp("x"), "exp: expected an expression or a number for 'x' but got str"),
        ):
            with self.assertRaisesRegex((TypeError, ValueError), message):
                wrong()

    def test_parameters_of_what_is_computed(self):
        a = te.placeholder((3, 4), name="A")
        x = np.arange(12, dtype="float32").reshape(3, 4)
        for function in (lambda i, j, k=3: a[i, j] * k, lambda *i: a[i] * 3, lambda i, *rest: a[(i, *rest)] * 3,
                         lambda i=0, j=0: a[i, j] * 3):  # fmt: skip
            b = te.compute((3, 4), function, name="B")
            np.testing.assert_array_equal(tenon.build(te.create_schedule(b.op), [a, b])(x).numpy(), x * 3)
        self.assertEqual([v.name for v in te.compute((3, 4), lambda row, *i: a[row, i[0]], name="B").op.axis], ["row", "i1"])
        for function, count in ((lambda i: a[i, 0], "1"), (lambda i, j, k: a[i, j], "3"), (lambda i, j, k, l=0: a[i, j], "3 to 4")):
            with self.assertRaisesRegex(ValueError, f"compute 'B': the shape has 2 dims but the function takes {count} variables"):
                te.compute((3, 4), function, name="B")

    def test_equal_names(self):
        a, b = te.placeholder((3,), name="T"), te.placeholder((3,), name="T")
        c = te.compute((3,), lambda i: a[i] - b[i], name="T")
        d = te.compute((3,), lambda i: c[i] * 2, name="T")
        s = te.create_schedule(d.op)
        s[c].compute_at(s[d], s[d].split(d.op.axis[0], 2)[0])
        x, y = np.array([5, 6, 7], "float32"), np.array([1, 1, 2], "float32")
        np.testing.assert_array_equal(tenon.build(s, [a, b, d])(x, y).numpy(), (x - y) * 2)


class Page(unittest.TestCase):
    def test_the_table_of_functions_is_whole(self):
        page = (ROOT / "docs" / "tensor-expressions.md").read_text()
        table = page[page.index("### Functions of numbers") :]
        table = table[: table.index("\n## ")]
        rows = [[c.strip() for c in line.split("|")[1:-1]] for line in table.splitlines() if "`te." in line]
        header = (ROOT / "include" / "tenon" / "te.hpp").read_text()
        listed = set()
        for cpp, python, _, _ in rows:
            for name in re.findall(r"`(\w+)", cpp):
                self.assertRegex(header, rf"\b{name}\(", name)
            names = re.findall(r"`te\.(\w+)", python)
            listed.update(names)
            for name in names:
                self.assertTrue(callable(getattr(te, name)), name)
        others = {n for n in te.__all__ if n[0].isupper()} | set(
            "add subtract multiply comm_reducer compute create_prim_func create_schedule decl_tensor_intrin extern placeholder prod reduce_axis scalar "
            "scan select size_var sum thread_axis var".split())  # fmt: skip
        self.assertEqual(set(te.__all__) - others, listed)
        self.assertFalse(others - set(te.__all__))
        # Whatever is a function of numbers in C++ is in the table, too.
        section = header[header.index("// ---- Functions of numbers") : header.index("// ---- Reductions")]
        declared = set(re.findall(r"Expr (\w+)\(", section))
        self.assertEqual(declared - {n for row in rows for n in re.findall(r"`(\w+)", row[0])}, set())


if __name__ == "__main__":
    unittest.main()
