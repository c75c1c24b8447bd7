"""Arguments of the wrong kind: which one, what was expected and what came, in one line."""

import os
import tempfile
import unittest

import numpy as np

import tenon
from tenon import te, tir

n = te.var("n")
A = te.placeholder((n,), name="A")
C = te.compute((n,), lambda i: A[i] + 1, name="C")
k = te.reduce_axis((0, n), name="k")


def fresh():
    return te.create_schedule(C.op)


def stage():
    return fresh()[C]


AXIS = C.op.axis[0]

REFUSED = [
    (TypeError, "a shape is a list or tuple of expressions and integers, not str", lambda: te.placeholder("n")),
    (TypeError, "a shape is a list or tuple of expressions and integers, not tuple of float", lambda: te.placeholder((1.5,))),
    (TypeError, "placeholder: expected str for 'name' but got int", lambda: te.placeholder((n,), name=5)),
    (ValueError, "there is no type 'flot32'", lambda: te.placeholder((n,), "flot32")),
    (TypeError, "compute: expected Callable for 'fcompute' but got int", lambda: te.compute((n,), 5, name="D")),
    (TypeError, "expected an expression or a number but got NoneType", lambda: te.compute((n,), lambda i: None)),
    (TypeError, "an index of 'A': expected an expression or an integer but got str", lambda: A["x"]),
    (TypeError, "'A' is one tensor, where several things are expected", lambda: list(A)),
    (TypeError, "build: expected Sequence.Tensor . Var. . None for 'args' but got Tensor", lambda: tenon.build(fresh(), A)),
    (TypeError, "reduce_axis 'rv': expected .begin, end. but got int", lambda: te.reduce_axis(5)),
    (ValueError, "there is no thread axis 'threadIdx.w'; expected", lambda: te.thread_axis("threadIdx.w")),
    (TypeError, "create_schedule: expected operations or tensors but got int", lambda: te.create_schedule(5)),
    (TypeError, "split: expected IterVar for 'parent' but got str", lambda: stage().split("i", factor=4)),
    (TypeError, "split: expected int . str . None for 'factor' but got float", lambda: stage().split(AXIS, factor=4.0)),
    (TypeError, "tile: expected IterVar for 'y_parent' but got int", lambda: stage().tile(AXIS, 4)),
    (TypeError, "bind: expected IterVar for 'thread_ivar' but got str", lambda: stage().bind(AXIS, "threadIdx.x")),
    (TypeError, "compute_at: expected Stage for 'parent' but got Tensor", lambda: stage().compute_at(C, AXIS)),
    (TypeError, "parallel: there is no argument 'axis'; expected var", lambda: stage().parallel(axis=AXIS)),
    (TypeError, "vectorize: the argument 'var' of type IterVar is missing", lambda: stage().vectorize()),
    (TypeError, "Schedule.….: expected .Tensor. or .Operation. but got .str.", lambda: fresh()["C"]),
    (TypeError, "build: expected Schedule . tir.Schedule . IrModule .* for 'inputs' but got Tensor", lambda: tenon.build(C, [A, C])),
    (TypeError, "IrModule.parse: expected str for 'text' but got int", lambda: tenon.IrModule.parse(5)),
    (ValueError, r"sample_categorical.*: expected probabilities from 0 to 1",
     lambda: tir.Schedule(te.create_prim_func([A, C])).sample_categorical("x", [1, 2], [-0.5, 1.5])),
    (ValueError, r"sample_categorical.*: expected probabilities that add up to 1",
     lambda: tir.Schedule(te.create_prim_func([A, C])).sample_categorical("x", [1, 2], [0.5, 0.6])),
]  # fmt: skip


class Arguments(unittest.TestCase):
    def test_of_the_wrong_kind(self):
        for kind, message, call in REFUSED:
            with self.subTest(message=message):
                with self.assertRaisesRegex(kind, message) as caught:
                    call()
                self.assertEqual(len(str(caught.exception).splitlines()), 1)

    def test_of_kinds_that_numpy_has(self):
        self.assertEqual(te.placeholder((np.int64(4),), np.float64).dtype, "float64")
        self.assertEqual(te.compute((n,), lambda i: np.float32(3)).dtype, "float32")
        self.assertEqual(len(stage().split(AXIS, factor=np.int32(4))), 2)

    def test_of_calls(self):
        f = tenon.build(fresh(), [A, C])
        x = np.ones(3, "float32")
        locked = np.ones(3, "float32")
        locked.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "argument 2, an output, is read-only"):
            f(x, locked)
        with self.assertRaisesRegex(TypeError, "argument 1: expected a tensor or a number but got numpy.ndarray of >f4"):
            f(x.astype(">f4"))

    def test_of_replays(self):
        t = tir.Schedule(te.create_prim_func([A, C]))
        t.split(t.get_loops("C")[0], [None, f"${'rows'}"] if t.decide("rows", [2, 4], 4) else [])
        again = tir.Schedule(te.create_prim_func([A, C]))
        again.use_decisions({"row": 2})
        with self.assertRaisesRegex(ValueError, "use_decisions: the schedule has no choice 'row'; it has rows"):
            again.replay(t.trace.as_json())
        again.use_decisions({"rows": 2})
        again.replay(t.trace.as_json())
        with self.assertRaisesRegex(ValueError, "the choice 'rows' is made already, as 2; its value is given before"):
            again.use_decisions({"rows": 4})
        other = tir.Schedule(te.create_prim_func([A, C]))
        other.use_decisions({"row": 2})
        other.decide("rows", [2, 4], 4)
        with self.assertRaisesRegex(ValueError, "use_decisions: the schedule has no choice 'row'; it has rows"):
            tenon.build(other)
        other.use_decisions({"columns": 3})
        with self.assertRaisesRegex(ValueError, "use_decisions: the choice 'columns' is among 1, 2, but was given as 3"):
            other.decide("columns", [1, 2], 1)
        self.assertIn("0..2", str(again))

    def test_of_files(self):
        f = tenon.build(fresh(), [A, C])
        with tempfile.TemporaryDirectory() as folder:
            for name, message in [("x.wasm", "expected .so"), ("x.dll", "expected .so"), ("x.o", "expected .so")]:
                with self.assertRaisesRegex(ValueError, message):
                    f.export_library(os.path.join(folder, name))
            with self.assertRaisesRegex(ValueError, "x.wasm. does not end as a library for x86_64"):
                f.save(os.path.join(folder, "x.wasm"))
            for name, function, message in [
                ("x.o", "", "a C program has a function 'main' of its own; give this one another name"),
                ("x.c", "printf", "the name 'printf' is a function of C's library; choose another"),
                ("x.o", "double", "the name 'double' is a word of C or C"),
                ("x.h", "add", "expected a file that ends in .o or .c, beside which the header is written"),
            ]:
                with self.assertRaisesRegex(ValueError, message):
                    f.export_to_c(os.path.join(folder, name), function_name=function)
            self.assertEqual(os.listdir(folder), [])

    def test_of_loading_and_measuring(self):
        f = tenon.build(fresh(), [A, C], name="add")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.tar")
            with open(path, "w", encoding="ascii") as file:
                file.write("no archive")
            with self.assertRaisesRegex(RuntimeError, "x.tar': it is no archive with a deploy_lib.so, as Module.save writes it"):
                tenon.load(path)
            f.save(path)
            self.assertEqual(repr(tenon.load(path)), f"<tenon.runtime.Module from '{path}'>")
            self.assertEqual((f.type_key, tenon.build(fresh(), [A, C], "c").type_key, tenon.load(path).type_key), ("llvm", "c", "library"))
        with self.assertRaisesRegex(ValueError, "expected at least 1 for 'number' and 'repeat' but got 0 and 1"):
            f.time_evaluator("add", number=0)

    def test_what_things_say_of_themselves(self):
        self.assertEqual(repr(tenon.build(fresh(), [A, C], "c", name="add")), "<tenon.runtime.Module of add, target c>")
        self.assertEqual(repr(fresh()), "<tenon.Schedule of A, C>")
        self.assertEqual(repr(stage()), "<tenon.Stage of C: i>")
        self.assertEqual(repr(tir.Schedule(te.create_prim_func([A, C]))), "<tenon.tir.Schedule of @main>")

    def test_of_other_machines(self):
        f = tenon.build(fresh(), [A, C], "llvm -mtriple=riscv64-linux-gnu")
        with self.assertRaisesRegex(RuntimeError, "cannot load what was built for target 'llvm .*': it is for riscv64"):
            f(np.ones(3, "float32"))

    def test_of_kernels_without_a_name(self):
        f = tenon.build(fresh(), [A, C], "cuda -arch=null")
        self.assertIn("main_kernel(", f.get_source())
        with self.assertRaisesRegex(ValueError, "`A` expects device=null but got device=cpu; copy the tensor there first .*\nwhen calling: `main"):
            f(np.ones(3, "float32"))

    def test_of_intrinsics_of_one_name(self):
        def tile(m):
            P, Q = te.placeholder((m,), name="P"), te.placeholder((m,), name="Q")
            return [P, Q, te.compute((m,), lambda i: P[i] + Q[i], name="R")]

        tir.TensorIntrin.register("of_one_name", tile(4))
        tir.TensorIntrin.register("of_one_name", tile(4))
        with self.assertRaisesRegex(ValueError, "intrinsic 'of_one_name' is registered already"):
            tir.TensorIntrin.register("of_one_name", tile(8))


if __name__ == "__main__":
    unittest.main()
