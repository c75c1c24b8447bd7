"""What code for TVM uses and Tenon leaves out says so in a sentence, however it is asked for; all else is an AttributeError."""

import importlib
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import tenon
from tenon import _left_out, te, tir

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] + 1, name="B")


def owners():
    """What has names of each prefix; those of a module first, as the longest prefix counts."""
    s = te.create_schedule(B.op)
    module = tenon.build(s, [A, B], "c")
    found = {"Stage": s[B], "Schedule": s, "tir.Schedule": tir.Schedule(te.create_prim_func([A, B])), "Module": module}
    found |= {"Operation": B.op, "IterVar": B.op.axis[0], "Device": tenon.cpu()}
    for name in ("te", "tir", "ir", "nd", "runtime", "contrib", "transform", "target", "testing", "autotvm", "auto_scheduler"):
        found[name] = getattr(tenon, name)
    return found | {"": tenon}


class LeftOut(unittest.TestCase):
    def refused(self, name, call):
        with self.subTest(name), self.assertRaises(NotImplementedError) as caught:
            call()
        self.assertEqual(str(caught.exception), f"tenon has no {name}: {_left_out.LEFT_OUT[name]}")

    def test_every_name_of_the_table(self):
        known = owners()
        for name in _left_out.LEFT_OUT:
            owner, _, last = name.rpartition(".")
            self.assertIn(owner, known, f"nobody is asked for {name}")
            self.refused(name, lambda: getattr(known[owner], last))

    def test_imports(self):
        self.refused("relay", lambda: importlib.import_module("tenon.relay"))
        self.refused("script", lambda: exec("from tenon.script import tir as T", {}))
        self.refused("topi", lambda: exec("from tenon import te, topi", {}))
        self.refused("te.gradient", lambda: exec("from tenon.te import gradient", {}))
        self.refused("contrib.cblas", lambda: exec("from tenon.contrib import cblas", {}))

    def test_no_name_is_there_and_left_out(self):
        for owner, value in owners().items():
            for name in getattr(value, "__all__", []):
                self.assertNotIn(f"{owner}.{name}" if owner else name, _left_out.LEFT_OUT)

    def test_other_names_are_attribute_errors(self):
        for owner, value in owners().items():
            with self.subTest(owner), self.assertRaisesRegex(AttributeError, "nonsense"):
                value.nonsense  # noqa: B018
            self.assertFalse(hasattr(value, "nonsense"))
        with self.assertRaises(ModuleNotFoundError):
            importlib.import_module("tenon.nonsense")
        with self.assertRaises(ImportError):
            exec("from tenon.te import nonsense", {})

    def test_settings(self):
        with self.assertRaisesRegex(NotImplementedError, "PassContext has no 'tir.UnrollLoop': Stage.pragma"):
            tenon.transform.PassContext(opt_level=3, config={"tir.UnrollLoop": {"auto_max_step": 16}})
        with self.assertRaisesRegex(NotImplementedError, "no such setting; relay.backend.use_auto_scheduler is taken, and refused with what there is instead are tir.UnrollLoop, "):
            tenon.ir.transform.PassContext(config={"tir.nothing": 1})
        with self.assertRaisesRegex(NotImplementedError, "PassContext has no disabled_pass"):
            tenon.transform.PassContext(disabled_pass=["FoldConstant"])
        with self.assertRaisesRegex(ValueError, "expected a level from 0 on but got -1"):
            tenon.transform.PassContext(opt_level=-1)
        with tenon.transform.PassContext(opt_level=1):
            with tenon.transform.PassContext(opt_level=3):
                self.assertEqual(tenon.transform.PassContext.current().opt_level, 2)
            self.assertEqual(tenon.transform.PassContext.current().opt_level, 1)

    def test_buffers_of_arguments(self):
        s = te.create_schedule(B.op)
        plain = tir.decl_buffer(A.shape, A.dtype, name="Ab")
        np.testing.assert_array_equal(tenon.build(s, [A, B], binds={A: plain})(np.ones(3, "float32")).numpy(), [2, 2, 2])

    def test_calls_in_expressions(self):
        with self.assertRaisesRegex(TypeError, "a call of a C function is no operand"):
            te.compute((n,), lambda i: tir.call_extern("float32", "cbrtf", A[i]) + 1)
        with self.assertRaisesRegex(TypeError, "expected an expression or a number but got Call"):
            te.compute((n,), lambda i: tir.call_extern("float32", "cbrtf", A[i]))
        with self.assertRaisesRegex(NotImplementedError, "there is no function 'tir.nothing'"):
            tir.call_intrin("float32", "tir.nothing", A[0])

    def test_functions_that_give_no_statement(self):
        for given in (None, 5, A[0]):
            with self.assertRaisesRegex(TypeError, "'E': expected a statement, of an IRBuilder or a call, but got"):
                te.extern((n,), [A], lambda ins, outs: given, name="E")
        with self.assertRaisesRegex(ValueError, "decl_tensor_intrin 'g': the function gave no statement that computes it"):
            te.decl_tensor_intrin(B.op, lambda ins, outs: None, name="g")
        with self.assertRaisesRegex(ValueError, "else_scope: it comes right after an if_scope"):
            tir.ir_builder.create().else_scope()
        with self.assertRaisesRegex(TypeError, "call_packed: expected buffers, expressions and numbers but got str"):
            tir.call_packed("f", "text")

    def test_sources_alone(self):
        """PYTHONPATH on the sources: what is missing, and where it is, is said."""
        source = pathlib.Path(tenon.__file__).resolve().parent
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "tenon"
            package.mkdir()
            for file in source.glob("*.py"):
                (package / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
            done = subprocess.run([sys.executable, "-c", "import tenon"], env={"PYTHONPATH": folder}, cwd=folder, capture_output=True, text=True, check=False)
        self.assertIn("has the package's sources alone; ./build.sh python builds", done.stderr)


if __name__ == "__main__":
    unittest.main()
