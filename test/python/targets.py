"""One source, every target: the library that each gets is loaded and run where it belongs.

targets.py [ARCH=COMMAND]…: the command runs libraries of ARCH (test/remote); machines that have none are passed over."""

import os
import shlex
import struct
import subprocess
import sys
import unittest

import numpy as np

import tenon
from tenon import te

RUNNERS = {}

MAIN = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "gate.h"

int main(void) {
  enum { N = 77 };
  float x[N], y[N];
  for (int i = 0; i < N; ++i) x[i] = (float)(i - 30) / 8;
  void* workspace = aligned_alloc(64, (GATE_WORKSPACE_BYTES / 64 + 1) * 64);
  if (!workspace || gate(x, y, N, workspace) != 0) return 1;
  for (int i = 0; i < N; ++i) {
    if (fabs(y[i] - x[i] / (1 + exp(-(double)x[i]))) > 1e-5) return printf("wrong at %d\n", i), 2;
  }
  free(workspace);
  return 0;
}
"""

NUMBERS = r"""
#include <stdio.h>
#include "numbers.h"

int main(void) {
  float x[3] = {1, 2, -3}, y[3];
  if (numbers(x, y, 3, 1, 0.5f, NULL) != 0 || y[0] != 1 || y[2] != -3) return 1;
  if (numbers(x, y, 3, 0, 0.5f, NULL) != 0 || y[0] != 0.5f || y[2] != -1.5f) return 2;
  return 0;
}
"""


def build(target):
    """Every size, vectors with a tail, a function of numbers, pieces for the cores."""
    n = te.var("n")
    x = te.placeholder((n,), name="X")
    y = te.compute((n,), lambda i: x[i] * te.sigmoid(x[i]), name="Y")
    s = te.create_schedule(y.op)
    outer, inner = s[y].split(y.op.axis[0], factor=16)
    s[y].parallel(outer)
    s[y].vectorize(inner)
    return tenon.build(s, [x, y], target, name="gate")


def inputs():
    for n in (0, 1, 15, 16, 17, 1000):
        x = np.random.default_rng(n).random(n, dtype="float32") * 20 - 10
        yield x, x / (1 + np.exp(-x.astype("float64")))


def check(call):
    for x, want in inputs():
        y = np.full(x.size, np.nan, "float32")
        call(x, y)
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)


class Runner:
    """A library on another machine: the protocol of test/remote/runner.c."""

    def __init__(self, command, library, environment=None):
        self.process = subprocess.Popen(
            [*shlex.split(command), library],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **(environment or {})},
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def read(self, count):
        data = self.process.stdout.read(count)
        if len(data) != count:
            raise RuntimeError("the runner has ended: the function crashed")
        return data

    def call(self, name, *arrays):
        float32 = 2 | 32 << 8 | 1 << 16
        out = [struct.pack("<II", 1, len(name)), name.encode(), struct.pack("<II", len(arrays), 0)]
        for a in arrays:
            out += [struct.pack("<IIqQ", float32, 1, a.size, a.nbytes), a.tobytes()]
        self.process.stdin.write(b"".join(out))
        self.process.stdin.flush()
        (status,) = struct.unpack("<i", self.read(4))
        if status != 0:
            raise RuntimeError(self.read(struct.unpack("<I", self.read(4))[0]).decode())
        for a in arrays:
            a[:] = np.frombuffer(self.read(a.nbytes), a.dtype)


class OneSource(unittest.TestCase):
    def setUp(self):
        self.folder = tenon.contrib.utils.tempdir()

    def test_this_machine(self):
        for target in ("llvm", "llvm -mcpu=x86-64" if os.uname().machine == "x86_64" else "llvm", "c"):
            with self.subTest(target):
                path = self.folder.relpath("gate.so")
                build(target).export_library(path)
                gate = tenon.runtime.load_module(path)["gate"]
                check(gate)

    def test_other_machines(self):
        for arch, command in RUNNERS.items():
            triple = arch + ("-unknown-unknown" if arch == "wasm32" else "-linux-gnu")
            with self.subTest(arch):
                path = self.folder.relpath(f"gate-{arch}" + (".wasm" if arch == "wasm32" else ".so"))
                build(f"llvm -mtriple={triple}").save(path)
                with Runner(command, path) as runner:
                    check(lambda x, y, r=runner: r.call("__tvm_ffi_gate", x, y))
                    with self.assertRaisesRegex(RuntimeError, "Shape mismatch: n=2"):
                        runner.call("__tvm_ffi_gate", np.zeros(2, "float32"), np.zeros(3, "float32"))

    def test_vectors_of_riscv(self):
        if "riscv64" not in RUNNERS:
            self.skipTest("riscv64 is not emulated here")
        path = self.folder.relpath("gate.so")
        build("llvm -mtriple=riscv64-linux-gnu -mattr=+v").save(path)
        with Runner(RUNNERS["riscv64"], path) as runner, self.assertRaisesRegex(RuntimeError, "it lacks v"):
            runner.call("__tvm_ffi_gate", np.zeros(2, "float32"), np.zeros(2, "float32"))
        for bits in (128, 256):  # of a register, which the code does not know
            cpu = {"QEMU_CPU": f"rv64,v=true,vlen={bits},vext_spec=v1.0"}
            with self.subTest(bits=bits), Runner(RUNNERS["riscv64"], path, cpu) as runner:
                check(lambda x, y, r=runner: r.call("__tvm_ffi_gate", x, y))

    def test_programs_of_c(self):
        with open(self.folder.relpath("main.c"), "w", encoding="ascii") as file:
            file.write(MAIN)
        for target, end in (("llvm", ".o"), ("llvm", ".c"), ("c", ".c"), ("c", ".o")):
            with self.subTest(target=target, end=end):
                code = self.folder.relpath("gate" + end)
                build(target).export_to_c(code, function_name="gate")
                self.run_program("main.c", code)

    def test_numbers_in_c(self):
        n, scale, keep = te.var("n"), te.var("scale", "float32"), te.scalar("keep", "bool")
        x = te.placeholder((n,), name="X")
        y = te.compute((n,), lambda i: te.if_then_else(keep, x[i], x[i] * scale), name="Y")
        with open(self.folder.relpath("numbers_main.c"), "w", encoding="ascii") as file:
            file.write(NUMBERS)
        for target, end in (("llvm", ".o"), ("c", ".c")):
            with self.subTest(target=target):
                code = self.folder.relpath("numbers" + end)
                f = tenon.build(te.create_schedule(y.op), [x, scale, keep, y], target, name="numbers")
                f.export_to_c(code)
                self.run_program("numbers_main.c", code)

    def run_program(self, main, code):
        program = self.folder.relpath("main")
        strict = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(["cc", *strict, "-o", program, self.folder.relpath(main), code, "-lm"], check=True)
        subprocess.run([program], check=True)


if __name__ == "__main__":
    RUNNERS.update(a.split("=", 1) for a in sys.argv[1:])
    if not RUNNERS:
        print("no other machine is emulated here")
    unittest.main(argv=sys.argv[:1])
