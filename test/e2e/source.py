import pathlib
import shutil
import subprocess

import numpy as np

import harness
from harness import Case, INPUT, USAGE, reference


class Source(Case):
    """A model as C source: without a warning, with the answers of the reference, without Tenon."""

    FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"]

    def compilers(self):
        return [str(harness.options.cc)] + ([shutil.which("gcc")] if shutil.which("gcc") else [])

    def program(self, name, arrays, load=""):
        """A C program that reads and writes the tensors as files of bytes."""
        inputs, outputs = arrays
        lines, arguments = [], []
        for kind, group, mode, io in [("in", inputs, "rb", "fread"), ("out", outputs, "wb", "fwrite")]:
            for k, array in enumerate(group.values()):
                lines.append(f"  static char {kind}{k}[{array.nbytes}];")
                arguments.append((f"{kind}{k}", array, mode, io))
        use = lambda which: [f'  file = fopen("{n}.bin", "{m}"); if (!file || {io}({n}, 1, sizeof {n}, file) != sizeof {n}) return 3;\n'
                             "  fclose(file);" for n, _, m, io in arguments if io == which]
        call = "".join(f"(void*){n}, " for n, *_ in arguments)
        return "\n".join(["#include <stdio.h>", f'#include "{name}.h"', "int main(void) {",
                          f"  static _Alignas(64) char workspace[{name.upper()}_WORKSPACE_BYTES + 1];", "  FILE* file;",
                          *lines, *use("fread"), load,
                          f'  if ({name}_run({call}workspace) != 0) return fprintf(stderr, "%s\\n", {name}_error()), 2;',
                          *use("fwrite"), "  return 0;", "}", ""])

    def run_program(self, compiler, name, arrays, load="", extra=(), runner=()):
        inputs, outputs = arrays
        (self.dir / "main.c").write_text(self.program(name, arrays, load))
        done = subprocess.run([compiler, *self.FLAGS, "main.c", f"{name}.c", *extra, "-lm", "-o", "program"], cwd=self.dir,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[:4000])
        for k, array in enumerate(inputs.values()):
            (self.dir / f"in{k}.bin").write_bytes(np.ascontiguousarray(array).tobytes())
        done = subprocess.run([*runner, self.path("program")], cwd=self.dir, capture_output=True, text=True)
        if done.returncode == 0:
            for k, want in enumerate(outputs.values()):
                got = np.frombuffer((self.dir / f"out{k}.bin").read_bytes(), want.dtype).reshape(want.shape)
                np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
        return done

    def test_embedded_weights(self):
        for compiler in self.compilers():
            with self.subTest(compiler):
                self.compile("mlp-4-2", "m.c", "--name", "m")
                self.assertEqual(self.run_program(compiler, "m", reference("mlp-4-2")).returncode, 0)

    def test_other_machines(self):
        machines = [m for m in ["aarch64", "riscv64"] if shutil.which(f"qemu-{m}") and shutil.which(f"{m}-linux-gnu-gcc")]
        if not machines:
            self.skipTest("neither qemu-aarch64 nor qemu-riscv64 with a compiler for it")
        self.compile("mlp-4-2", "m.c", "--name", "m")
        for machine in machines:
            with self.subTest(machine):
                done = self.run_program(f"{machine}-linux-gnu-gcc", "m", reference("mlp-4-2"), extra=["-static"],
                                        runner=[f"qemu-{machine}"])
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_separate_weights(self):
        self.compile("bert-tiny", "bert.c", "--format", "c", "--name", "bert", "--params", "separate")
        self.assertLess((self.dir / "bert.c").stat().st_size, 1 << 20)
        load = '  if (bert_load("bert.params") != 0) return fprintf(stderr, "%s\\n", bert_error()), 1;'
        arrays, compiler = reference("bert-tiny"), self.compilers()[-1]
        self.assertEqual(self.run_program(compiler, "bert", arrays, load).returncode, 0)
        # Without its weights, and with those of another model, it says so.
        self.assertIn("not been loaded", self.run_program(compiler, "bert", arrays).stderr)
        self.compile("mlp-4-2", "bert.so", "--params", "separate")
        self.assertIn("another model", self.run_program(compiler, "bert", arrays, load).stderr)
        (self.dir / "bert.params").unlink()
        self.assertIn("cannot be opened", self.run_program(compiler, "bert", arrays, load).stderr)

    def test_is_a_module_of_tvm_ffi(self):
        try:
            import tvm_ffi
        except ImportError:
            self.skipTest("no tvm_ffi")
        (self.dir / "m").mkdir()
        self.compile("mlp-4-2", "m/", "--target", "c", "--export")
        subprocess.run([self.compilers()[-1], *self.FLAGS, "-shared", "-fPIC", self.path("m/model.c"), "-lm", "-o",
                        self.path("model.so")], check=True)
        inputs, outputs = reference("mlp-4-2")
        (x,), (want,) = inputs.values(), outputs.values()
        module = tvm_ffi.load_module(self.path("model.so"))
        got = np.zeros_like(want)
        module.main(x, got)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.from_dlpack(module.main(x)), want, rtol=1e-4, atol=1e-5)
        with self.assertRaisesRegex(ValueError, "expects ndim=2 but got ndim=1"):
            module.main(x[0], got)

    def test_same_bytes_and_any_target(self):
        texts = [pathlib.Path(self.compile("mlp-4-2", f"{k}.c", "--jobs", k)).read_bytes() for k in "12"]
        self.assertEqual(*texts)
        self.compile("mlp-4-2", "m.so", "--emit", "c")
        self.assertIn("__tvm_ffi_main", (self.dir / "m.so.c").read_text())
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.so"), "--target", "c", status=INPUT)
        self.assertIn("ends in .c", err)
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.c"), "--format", "c", "--target",
                            "llvm -mcpu=x86-64", status=USAGE)
        self.assertIn("C source is for target 'c'", err)
