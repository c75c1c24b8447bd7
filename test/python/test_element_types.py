"""Types of elements: arrays of those that NumPy lacks, and what operands of two types become."""

import unittest

import ml_dtypes
import numpy as np

import tenon
from tenon import te

FLOAT8 = ["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def doubled(dtype):
    n = te.var("n")
    a = te.placeholder((n,), dtype, name="A")
    b = te.compute((n,), lambda i: a[i] * 2, name="B")
    return tenon.build(te.create_schedule(b.op), [a, b], name="doubled")


class Arrays(unittest.TestCase):
    def test_in_both_directions(self):
        for name in ["bfloat16", *FLOAT8]:
            dtype = np.dtype(getattr(ml_dtypes, name))
            values = np.array([[0.5, 1, 2], [4, 8, 0.25]]).astype(dtype)
            with self.subTest(name):
                held = tenon.nd.array(values)
                self.assertEqual((held.dtype, held.shape, held.nbytes), (name, (2, 3), 6 * dtype.itemsize))
                back = held.numpy()
                self.assertEqual(back.dtype, dtype)
                np.testing.assert_array_equal(back.view(f"u{dtype.itemsize}"), values.view(f"u{dtype.itemsize}"))
                self.assertEqual(float(held[1, 1]), 8)
                held[0, 0] = 2
                self.assertEqual(float(held.numpy()[0, 0]), 2)
                for made in (tenon.nd.empty((2,), dtype), tenon.nd.empty((2,), name)):
                    made.copyfrom(np.array([1, 2], dtype))
                    np.testing.assert_array_equal(np.asarray(made).astype("float32"), [1, 2])
                self.assertIn("NDArray shape=(2, 3)", repr(held))

    def test_on_a_device(self):
        for device in (tenon.nd.device("opencl"), tenon.cuda()):
            if not device.exist:
                continue
            for name in ("bfloat16", "float8_e5m2"):
                values = np.array([1, 2, 4]).astype(getattr(ml_dtypes, name))
                np.testing.assert_array_equal(tenon.nd.array(values, device).numpy().astype("float32"), [1, 2, 4])

    def test_as_arguments(self):
        f = doubled("bfloat16")
        x = np.arange(6, dtype="float32").astype(ml_dtypes.bfloat16)
        for given in (x, x[::-1].copy(), tenon.nd.array(x), x.view(np.ndarray)):
            want = np.asarray(given).astype("float32") * 2
            np.testing.assert_array_equal(f(given).numpy().astype("float32"), want)
            out = np.zeros(6, ml_dtypes.bfloat16)
            f(given, out)
            np.testing.assert_array_equal(out.astype("float32"), want)
        fixed = np.zeros(6, ml_dtypes.bfloat16)
        fixed.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "argument 2, an output, is read-only"):
            f(x, fixed)
        with self.assertRaisesRegex(TypeError, "`A` expects dtype=bfloat16 but got dtype=float8_e4m3fn"):
            f(x.astype(ml_dtypes.float8_e4m3fn))
        with self.assertRaisesRegex(TypeError, "expected a tensor or a number but got numpy.ndarray of int4"):
            f(x.astype(ml_dtypes.int4))
        self.assertEqual(f.inputs[0].dtype, "bfloat16")

    def test_numbers(self):
        n, scale = te.var("n"), te.scalar("scale", "bfloat16")
        a = te.placeholder((n,), "bfloat16", name="A")
        b = te.compute((n,), lambda i: a[i] * scale, name="B")
        f = tenon.build(te.create_schedule(b.op), [a, scale, b])
        x = np.ones(3, ml_dtypes.bfloat16)
        for given in (1.5, ml_dtypes.bfloat16(1.5)):
            self.assertEqual(f(x, given).numpy().astype("float32").tolist(), [1.5] * 3)

    def test_names_that_are_none(self):
        with self.assertRaisesRegex(ValueError, "there is no type 'float31'"):
            tenon.nd.empty((2,), "float31")


def targets():
    yield "llvm", None
    yield "c", None
    for device in (tenon.nd.device("opencl"), tenon.cuda()):
        if device.exist:
            yield "opencl" if "opencl" in str(device) else "cuda", device


class Float8(unittest.TestCase):
    """Types of 8 bits, which ml_dtypes knows to convert, round and compute with: all codes, on all targets."""

    def assert_same(self, got, want, signs=True):
        got, want = got.astype("float32"), np.asarray(want).astype("float32")
        np.testing.assert_array_equal(got, want)
        if not signs:
            return
        np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(want[~np.isnan(want)]))

    def run_on(self, target, device, f, out, *arrays):
        tensors = [te.placeholder(x.shape, x.dtype.name, name=f"X{i}") for i, x in enumerate(arrays)]
        made = te.compute(arrays[0].shape, lambda i: f(*(x[i] for x in tensors)), name="Y")
        self.assertEqual(made.dtype, out)
        built = tenon.build(te.create_schedule(made.op), [*tensors, made], target)
        return built(*(x if device is None else tenon.nd.array(x, device) for x in arrays)).numpy()

    def types(self):
        for name in FLOAT8:
            for target, device in targets():
                with self.subTest(name, target=target):
                    dtype = np.dtype(getattr(ml_dtypes, name))
                    yield dtype, np.arange(256, dtype="uint8").view(dtype), target, device

    def test_numbers_of_all_codes(self):
        for dtype, codes, target, device in self.types():
            for wide in ("float32", "float16", "float64"):
                if target == "opencl" and wide == "float64":
                    continue
                self.assert_same(self.run_on(target, device, lambda x: x.astype(wide), wide, codes), codes.astype(wide))

    def test_rounding(self):
        rng = np.random.default_rng(0)
        for dtype, codes, target, device in self.types():
            numbers = codes.astype("float64")
            numbers = np.sort(numbers[np.isfinite(numbers)])
            middles = (numbers[1:] + numbers[:-1]) / 2  # ties, and what is next to them
            x = np.concatenate([numbers, middles, middles * (1 + 2**-20), middles * (1 - 2**-20), [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 1e-30],
                                rng.standard_normal(200) * 2.0 ** rng.integers(-20, 20, 200)])
            x = x[(x == 0) | ~(abs(x) < 2.0**-126)]  # of f32's denormal numbers ml_dtypes rounds one to the farther power of two
            self.assert_same(self.run_on(target, device, lambda v: v.astype(dtype.name), dtype.name, x.astype("float32")), x.astype("float32").astype(dtype))
            if target != "opencl":  # once, not by way of f32
                x = np.concatenate([x, middles * (1 + 2**-40), middles * (1 - 2**-40)])
                self.assert_same(self.run_on(target, device, lambda v: v.astype(dtype.name), dtype.name, x), self.nearest(x, numbers, dtype), signs=False)
            ints = np.array([0, 1, 2, 3, 5, 17, 100, 127, 128, 1000, 40000], "int32")
            self.assert_same(self.run_on(target, device, lambda v: v.astype(dtype.name), dtype.name, ints), ints.astype("float32").astype(dtype))

    @staticmethod
    def nearest(x, numbers, dtype):
        """What ml_dtypes makes of f64, whose own conversion goes by way of f32: of what lies beside a middle, the nearer number."""
        out = x.astype("float32").astype(dtype)
        inside = (x > numbers[0]) & (x < numbers[-1]) & (x != 0)
        above = np.searchsorted(numbers, x[inside], side="left")
        low, high = numbers[np.maximum(above - 1, 0)], numbers[above]
        near = np.where(x[inside] - low == high - x[inside], np.nan, np.where(x[inside] - low < high - x[inside], low, high))
        whole = out.astype("float64")
        whole[inside] = np.where(np.isnan(near), whole[inside], near)
        return whole.astype(dtype)

    def test_arithmetic(self):
        rng = np.random.default_rng(1)
        for dtype, codes, target, device in self.types():
            x, y = codes[rng.integers(0, 256, 5000)], codes[rng.integers(0, 256, 5000)]
            with np.errstate(all="ignore"):
                for f in (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a * b + a):
                    self.assert_same(self.run_on(target, device, f, dtype.name, x, y), f(x, y))
                less = self.run_on(target, device, lambda a, b: a < b, "bool", x, y)
                np.testing.assert_array_equal(less, x.astype("float32") < y.astype("float32"))

    def test_sums_by_f32(self):
        x = np.ones((3, 4096), ml_dtypes.float8_e4m3fn)
        a = te.placeholder(x.shape, x.dtype.name, name="A")
        k = te.reduce_axis((0, 4096), name="k")
        wide = te.compute((3,), lambda i: te.sum(a[i, k].astype("float32"), axis=k), name="wide")
        b = te.compute((3,), lambda i: (wide[i] / 4096).astype("float8_e4m3fn"), name="B")
        f = tenon.build(te.create_schedule(b.op), [a, b], "llvm")
        self.assertEqual(f(x).numpy().astype("float32").tolist(), [1.0] * 3)
        with self.assertRaisesRegex(TypeError, "`A` expects dtype=float8_e4m3fn but got dtype=float8_e5m2"):
            f(x.astype(ml_dtypes.float8_e5m2))

    def test_vectors(self):
        for name in FLOAT8:
            dtype = np.dtype(getattr(ml_dtypes, name))
            x = np.arange(256, dtype="uint8").view(dtype)
            a = te.placeholder((256,), name, name="A")
            b = te.compute((256,), lambda i: (a[i].astype("float32") * 0.75).astype(name), name="B")
            s = te.create_schedule(b.op)
            s[b].vectorize(s[b].split(b.op.axis[0], factor=16)[1])
            with np.errstate(all="ignore"):
                self.assert_same(tenon.build(s, [a, b], "llvm")(x).numpy(), (x.astype("float32") * np.float32(0.75)).astype(dtype))


class Promotion(unittest.TestCase):
    def test_integers_as_numpy(self):
        tensors = {t: te.placeholder((4,), t, name=t) for t in INTS}
        for a in INTS:
            for b in INTS:
                want = np.result_type(a, b)
                with self.subTest(a=a, b=b):
                    if want.kind == "f":
                        with self.assertRaisesRegex(TypeError, f"{a} and {b} meet in no integer type; cast one of them"):
                            tensors[a][0] + tensors[b][0]
                        continue
                    for made in (tensors[a][0] + tensors[b][0], te.max(tensors[a][0], tensors[b][0]), te.select(te.var("c") > 0, tensors[a][0], tensors[b][0])):
                        self.assertEqual(made.dtype, want.name)

    def test_values_of_mixed_signs(self):
        a, b = te.placeholder((256,), "int8", name="A"), te.placeholder((256,), "uint8", name="B")
        c = te.compute((256,), lambda i: a[i] * b[i], name="C")
        less = te.compute((256,), lambda i: a[i] < b[i], name="less")
        x, y = np.arange(-128, 128).astype("int8"), np.arange(255, -1, -1).astype("uint8")
        product, order = tenon.build(te.create_schedule([c.op, less.op]), [a, b, c, less])(x, y)
        np.testing.assert_array_equal(product.numpy(), x * y)
        np.testing.assert_array_equal(order.numpy(), x < y)

    def test_numbers_that_a_type_lacks(self):
        u, i = te.placeholder((4,), "uint8", name="U"), te.placeholder((4,), "int8", name="I")
        for call in (lambda: u[0] + -1, lambda: u[0] < -1, lambda: te.max(u[0], -1), lambda: -1 - u[0], lambda: u[0] + np.int64(-1)):
            with self.assertRaisesRegex(ValueError, "-1 is no value of type uint8; cast the other operand"):
                call()
        with self.assertRaisesRegex(ValueError, "300 is no value of type uint8"):
            u[0] + 300  # noqa: B018
        self.assertEqual((u[0] - 1).dtype, "uint8")
        self.assertEqual((i[0] & 0xFF).dtype, "int8")
        self.assertEqual(te.const(-1, "uint8").dtype, "uint8")


class NumpysFunctions(unittest.TestCase):
    def test_they_name_ours(self):
        import math

        a = te.placeholder((4,), name="A")
        for call, ours in (
            (lambda: math.exp(a[0]), "te.exp and te's others take expressions"),
            (lambda: math.sqrt(a[0]), "'A.0.' is an expression, no number yet"),
            (lambda: np.exp(a[0]), "np.exp takes numbers, but 'A.0.' is an expression: te.exp is the function of expressions"),
            (lambda: np.maximum(a[0], 0), "te.max is the function"),
            (lambda: np.arctan2(a[0], 1.0), "te.atan2 is the function"),
            (lambda: np.gcd(a[0], 1), "functions of expressions are te's"),
            (lambda: np.ones(3) * a[0], r"it does not meet an array of shape \(3,\)"),
            (lambda: a[0] + np.ones(3), r"it does not meet an array of shape \(3,\)"),
        ):
            with self.assertRaisesRegex(TypeError, ours):
                call()

    def test_scalars_meet_expressions(self):
        a = te.placeholder((4,), "int32", name="A")
        x = np.arange(4, dtype="int32") + 3
        for f in (
            lambda v: np.int32(7) - v, lambda v: v * np.int32(2), lambda v: np.int32(17) // v, lambda v: np.int32(17) % v, lambda v: np.int32(1) << v,
            lambda v: np.array(5, "int32") + v, lambda v: np.int32(5) < v, lambda v: np.int32(5) & v,
        ):  # fmt: skip
            b = te.compute((4,), lambda i: f(a[i]), name="B")
            np.testing.assert_array_equal(tenon.build(te.create_schedule(b.op), [a, b])(x).numpy(), f(x))


if __name__ == "__main__":
    unittest.main()
