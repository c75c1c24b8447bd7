"""Stages are scheduled, and tensors passed, by what they are; what was asked of stages is a text that runs."""

import pathlib
import random
import re
import subprocess
import unittest

import numpy as np

import tenon
from tenon import te

SOURCES = pathlib.Path(__file__).resolve().parents[2]
ROWS = SOURCES / "include/tenon/stage_primitives.def"
OPT = pathlib.Path(tenon.__file__).parents[2] / "bin" / "tenon-opt"


def sums(n):
    a, b = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    return a, b, te.compute((n,), lambda i: a[i] + b[i], name="C")


def carried_out(text):
    done = subprocess.run([OPT, "--stages", "-", "--check"], input=text, capture_output=True, text=True, timeout=100)
    if done.returncode != 0:
        raise AssertionError(f"{done.stderr}\n{text}")
    return done.stdout


def body(text):
    """Of a function, without its name, parameters and attributes."""
    return text.split("\n", 1)[1].strip()


class Arguments(unittest.TestCase):
    """Tensors are told apart by what they are, whatever they are called."""

    def refused(self, message, schedule, args):
        for function in (tenon.build, tenon.lower):
            with self.assertRaisesRegex(ValueError, message):
                function(schedule, args)

    def test_a_tensor_that_was_made_again(self):
        a, b, c = sums(8)
        s = te.create_schedule(c.op)
        again = te.compute((8,), lambda i: a[i] - b[i], name=c.name)
        self.refused(r"the argument 'C' \(float32\[8\]\) is another tensor than the 'C' \(float32\[8\]\) of this schedule", s, [a, b, again])
        other = te.placeholder((5, 3), name=a.name)
        self.refused(r"the argument 'A' \(float32\[5, 3\]\) is another tensor than the 'A' \(float32\[8\]\)", s, [other, b, c])
        self.refused("'D' .* is not computed by this schedule", s, [a, b, te.compute((8,), lambda i: a[i], name="D"), c])
        x, y = (np.arange(8, dtype="float32") for _ in range(2))
        unread = te.placeholder((3,), name="unread")
        np.testing.assert_array_equal(tenon.build(s, [a, unread, b, c])(x, np.zeros(3, "float32"), y).numpy(), x + y)
        np.testing.assert_array_equal(tenon.build(te.create_schedule(again.op), [a, b, again])(x + 1, y).numpy(), 1)

    def test_tensors_of_one_name(self):
        a, b = (te.placeholder((4,), name="X") for _ in range(2))
        c = te.compute((4,), lambda i: a[i] - b[i], name="X")
        x, y = np.arange(4, dtype="float32"), np.ones(4, "float32")
        s = te.create_schedule(c.op)
        np.testing.assert_array_equal(tenon.build(s, [a, b, c])(x, y).numpy(), x - y)
        np.testing.assert_array_equal(tenon.build(s, [b, a, c])(x, y).numpy(), y - x)

    def test_rows_as_long_as_a_tensor_says(self):
        starts = te.placeholder((9,), "int32", name="starts")
        said = "reduce_axis 'k': its bound .* has the loop 'i' in it; .* compute them by a function of loop IR .te.extern"
        with self.assertRaisesRegex(ValueError, said):
            te.compute((8,), lambda i: te.reduce_axis((starts[i], starts[i + 1]), name="k"), name="C")


class Steps(unittest.TestCase):
    """What str() of a schedule says is what tenon-opt carries out."""

    @unittest.skipUnless(OPT.exists(), "no tenon-opt beside the package")
    def test_of_stages(self):
        k = te.reduce_axis((0, 24), name="k")
        a, b = te.placeholder((20, 24), name="A"), te.placeholder((24, 18), name="B")
        c = te.compute((20, 18), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
        d = te.compute((20, 18), lambda i, j: c[i, j] + 1, name="C")

        def tiles(s):
            cache = s.cache_write(c, "local")
            xo, yo, _, yi = s[d].tile(*d.op.axis, 4, 6)
            s[d].vectorize(yi)
            s[c].compute_at(s[d], yo)
            s[cache].compute_at(s[c], c.op.axis[0])
            _, ki = s[cache].split(k, factor=8)
            s[cache].unroll(ki)
            s[d].parallel(xo)

        def fast(s):
            s.decide("part", [4, 8], 4)
            ko, ki = s[c].split(k, factor="$part")
            s[c].reorder(ko, *c.op.axis, ki)
            tile = s.cache_read(a, "local", [c])
            s[tile].compute_at(s[c], ko)
            s[tile].double_buffer()
            s[tile].storage_align(tile.op.axis[0], 8, 1)
            s[c].partition(ko, [1])
            s[c].pragma(c.op.axis[0], "cooperative")

        def parts(s):
            _, ki = s[c].split(k, nparts=3)
            part = s.rfactor(c, ki, 1)
            s[part].parallel(part.op.axis[0])
            s[c].compute_at(s[d], d.op.axis[0])

        for schedule in (tiles, fast, parts):
            with self.subTest(schedule.__name__):
                s = te.create_schedule(d.op)
                schedule(s)
                lowered = str(tenon.lower(s, [a, b, d]))
                self.assertEqual(body(carried_out(str(s))), body(lowered))

    @unittest.skipUnless(OPT.exists(), "no tenon-opt beside the package")
    def test_drawn_at_random(self):
        """Steps of different stages come in any order; tenon-opt compares with the interpreter."""
        accepted = 0
        for seed in range(24):
            draw = random.Random(seed)
            a, k = te.placeholder((12, 10), name="A"), te.reduce_axis((0, 10), name="k")
            b = te.compute((12, 10), lambda i, j: a[i, j] * 2, name="B")
            c = te.compute((12, 7), lambda i, j: te.sum(b[i, k] * (j + 1).astype("float32"), axis=k), name="C")
            d = te.compute((12, 7), lambda i, j: c[i, j] + 1, name="D")
            s = te.create_schedule(d.op)
            steps = [b, c, d]
            if draw.random() < 0.3:
                steps.append(s.cache_read(a, "local", [b]))
            elif draw.random() < 0.3:
                steps.append(s.cache_write(c, "local"))
            draw.shuffle(steps)
            for t in steps:
                unrolled = []
                for _ in range(draw.randrange(4)):
                    loops = [x for x in s[t].leaf_iter_vars if x not in unrolled]
                    if not loops:
                        break
                    what = draw.choice(["split", "fuse", "reorder", "unroll"])
                    if what == "split":
                        s[t].split(draw.choice(loops), factor=draw.choice([1, 2, 3, 5, 16]))
                    elif what == "fuse" and len(loops) > 1 and t is not c and not unrolled:
                        s[t].fuse(*loops[:2])
                    elif what == "reorder":
                        s[t].reorder(*draw.sample(loops, len(loops)))
                    elif what == "unroll":
                        unrolled.append(draw.choice(loops))
                        s[t].unroll(unrolled[-1])
            for producer, consumer in ((c, d), (b, c)):
                if draw.random() < 0.5:
                    s[producer].compute_at(s[consumer], draw.choice(s[consumer].leaf_iter_vars))
            with self.subTest(seed=seed):
                try:
                    lowered = str(tenon.lower(s, [a, d]))
                except ValueError:
                    continue
                accepted += 1
                self.assertEqual(body(carried_out(str(s))), body(lowered))
                program = [line for line in str(s).splitlines() if not line.startswith("//>")]
                lines = [line for line in str(s).splitlines() if line.startswith("//>")]
                made = [line for line in lines if " = cache_" in line]
                rest = [line for line in lines if line not in made]
                # Consumers first, so that the loops that others hang on are there; each stage's own in order.
                rest.sort(key=lambda line: next(i for i, x in enumerate("DCBA") if f'("{x}' in line))
                self.assertEqual(body(carried_out("\n".join(program + made + rest))), body(lowered))
        self.assertGreater(accepted, 8)


class Cases(unittest.TestCase):
    @unittest.skipUnless(ROWS.exists(), "not in the sources")
    def test_that_every_primitive_has_one(self):
        """A text that tenon-opt carries out; with --check, if the interpreter can."""
        names = re.findall(r'^TN_STAGE_\w+\((?:\w+, )?"(\w+)"', ROWS.read_text(), re.M) + ["specialize", "decide", "sample_categorical", "sample_perfect_tile"]
        self.assertGreater(len(names), 30)
        texts = [path.read_text() for path in (SOURCES / "test/text/stages").glob("*.test")]
        steps = set(re.findall(r"^//> (?:[^!\"(]*= )?(\w+)\(", "\n".join(texts), re.M))
        self.assertEqual(sorted(set(names) - steps), [])


if __name__ == "__main__":
    unittest.main()
