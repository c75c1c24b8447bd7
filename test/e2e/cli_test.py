#!/usr/bin/env python3
"""The command line from outside.   cli_test.py --build DIR --cxx COMPILER --cc COMPILER [Class[.test]]…"""
import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODELS = ["mlp-4-2", "bert-tiny"]
DONE, INPUT, USAGE, DIFFER, LIMIT = 0, 1, 2, 3, 5
BENCH_KEYS = "mean_ms std_ms p50_ms p90_ms p99_ms min_ms runs threads compile_ms load_ms peak_rss_mb artifact_bytes"

options = None  # of the command line, set by main
models = None  # a folder with the models and their weights


def reference(model):
    arrays = np.load(HERE / "references" / f"{model}.npz")
    part = lambda kind: {name.removeprefix(kind): arrays[name] for name in arrays if name.startswith(kind)}
    return part("in/"), part("out/")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def path(self, name):
        return str(self.dir / name)

    def model(self, name):
        return str(models / f"{name}.onnx")

    def tenon(self, *args, status=DONE, env=None):
        """Runs a verb; returns (stdout, stderr)."""
        environment = {**os.environ, "TENON_CACHE_DIR": self.path("cache"), **(env or {})}
        done = subprocess.run([options.build / "bin" / "tenon", *map(str, args)], capture_output=True, text=True,
                              env=environment, timeout=300)
        self.assertEqual(done.returncode, status, f"{args}\n{done.stdout}{done.stderr}")
        return done.stdout, done.stderr

    def compile(self, model, output="model.so", *args, **kwargs):
        self.tenon("compile", self.model(model), "-o", f"{self.dir}/{output}", "--verify-each", *args, **kwargs)
        return f"{self.dir}/{output}"

    def save(self, name, arrays):
        np.savez(self.path(name), **arrays)
        return self.path(name)

    def build(self, output, *sources, libraries=()):
        """Compiles C++ sources against the runtime of the build."""
        command = [options.cxx, "-std=c++17", "-I", ROOT / "include", *sources, "-o", self.path(output), *libraries,
                   "-L", options.build / "lib", "-ltenon_runtime", f"-Wl,-rpath,{options.build / 'lib'}"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path(output)

    def assert_only(self, *names):
        self.assertEqual(sorted(p.name for p in self.dir.iterdir() if p.name != "cache"), sorted(names))


class Models(Case):
    """Compile, run, compare."""

    def test_results_are_those_of_the_reference(self):
        for model in MODELS:
            with self.subTest(model):
                inputs, outputs = reference(model)
                library = self.compile(model)
                given, wanted = self.save("in.npz", inputs), self.save("want.npz", outputs)
                self.tenon("run", library, "-i", given, "--expect", wanted, "--rtol", "1e-3", "--atol", "1e-4",
                           "-o", self.path("out.npz"))
                got = np.load(self.path("out.npz"))
                self.assertEqual(set(got), set(outputs))
                for name, want in outputs.items():
                    self.assertEqual((got[name].dtype, got[name].shape), (want.dtype, want.shape))
                    error = np.linalg.norm((got[name] - want).astype(np.float64)) / np.linalg.norm(want)
                    self.assertLess(error, 1e-4)

    def test_every_level_gives_the_same_answer(self):
        inputs, outputs = reference("mlp-4-2")
        given, wanted = self.save("in.npz", inputs), self.save("want.npz", outputs)
        out, _ = self.tenon("run", self.model("mlp-4-2"), "-i", given, "--expect", wanted)
        self.assertRegex(out, r"^output: as expected; the worst difference is [0-9.e-]+\n$")
        for level in ["-O0", "-O1", "-O2", "-O3"]:
            self.tenon("run", self.model("mlp-4-2"), level, "-i", given, "--expect", wanted)

    def test_an_onnx_file_is_compiled_once(self):
        inputs, outputs = reference("mlp-4-2")
        given, wanted = self.save("in.npz", inputs), self.save("want.npz", outputs)
        run = lambda *args: self.tenon("run", self.model("mlp-4-2"), "-i", given, "--expect", wanted, *args)
        cached = lambda: {p.name: p.stat().st_mtime_ns for p in (self.dir / "cache").iterdir()}
        run()
        first = cached()
        self.assertEqual(len(first), 1)
        run()
        self.assertEqual(cached(), first)
        run("-O1")
        self.assertEqual(len(cached()), 2)

    def test_differences_are_named(self):
        inputs, outputs = reference("mlp-4-2")
        library, given = self.compile("mlp-4-2"), self.save("in.npz", inputs)
        (name, array), = outputs.items()
        wrong = array.copy()
        wrong.flat[1] += 0.5
        for bad, message in [(wrong, "1 of 2 elements differ"), (array.astype(np.float64), "expected float64 but got float32"),
                             (array[:, :1], "expected shape 1x1 but got 1x2")]:
            _, err = self.tenon("run", library, "-i", given, "--expect", self.save("want.npz", {name: bad}), status=DIFFER)
            self.assertIn(f"output '{name}': ", err)
            self.assertIn(message, err)
        nan = self.save("want.npz", {name: np.full_like(array, np.nan)})
        self.tenon("run", library, "-i", given, "--expect", nan, status=DIFFER)
        self.tenon("run", library, "-i", given, "--expect", self.save("want.npz", {"other": array}), status=INPUT)

    def test_npy_files(self):
        inputs, outputs = reference("mlp-4-2")
        (in_name, x), = inputs.items()
        (out_name, y), = outputs.items()
        library = self.compile("mlp-4-2")
        np.save(self.path("x.npy"), x)
        np.save(self.path("columns.npy"), np.asfortranarray(np.vstack([x, x])))
        self.tenon("run", library, "-i", f"{in_name}={self.path('x.npy')}", "-o", f"{out_name}={self.path('y.npy')}")
        np.testing.assert_allclose(np.load(self.path("y.npy")), y, rtol=1e-4, atol=1e-5)
        self.tenon("run", library, "-i", self.path("x.npy"), "-o", self.path("z.npy"))
        np.testing.assert_array_equal(np.load(self.path("z.npy")), np.load(self.path("y.npy")))
        self.tenon("run", library, "-i", self.path("columns.npy"), status=INPUT)  # read, and of a wrong shape

    def test_print_top(self):
        out, _ = self.tenon("run", self.compile("mlp-4-2"), "--fill", "ones", "--print-top", "1")
        self.assertRegex(out, r"the 1 largest of 2\n  \[0, \d\] +-?\d")

    def test_bench(self):
        library = self.compile("mlp-4-2")
        out, _ = self.tenon("bench", library, "--repeat", "7", "--threads", "1", "--json", self.path("b.json"))
        self.assertIn("7 runs", out)
        figures = json.loads(pathlib.Path(self.path("b.json")).read_text())
        self.assertEqual(list(figures), BENCH_KEYS.split())
        self.assertEqual((figures["runs"], figures["threads"], figures["compile_ms"]), (7, 1, 0))
        self.assertEqual(figures["artifact_bytes"], os.path.getsize(library))
        self.assertGreater(figures["peak_rss_mb"], 1)
        self.assertLessEqual(figures["min_ms"], figures["p50_ms"])
        self.tenon("bench", self.model("mlp-4-2"), "--duration", "0", "--json", self.path("b.json"))
        figures = json.loads(pathlib.Path(self.path("b.json")).read_text())
        self.assertGreaterEqual(figures["runs"], 3)
        self.assertGreater(figures["compile_ms"], 0)


class Outputs(Case):
    """What compile writes."""

    def test_same_input_same_bytes(self):
        for model in MODELS:
            contents = []
            for jobs in ["1", "2"]:
                contents.append(pathlib.Path(self.compile(model, f"{jobs}.so", "--jobs", jobs)).read_bytes())
            self.assertEqual(*contents)

    def test_separate_weights(self):
        inputs, outputs = reference("bert-tiny")
        library = self.compile("bert-tiny", "model.so", "--params", "separate")
        self.assert_only("model.so", "model.params")
        out, _ = self.tenon("compile", self.model("bert-tiny"), "-o", library, "--params", "separate")
        self.assertIn(f"{library} and {self.path('model.params')}: ", out)
        self.assertLess(os.path.getsize(library), 2_000_000)
        self.tenon("run", library, "-i", self.save("in.npz", inputs), "--expect", self.save("want.npz", outputs),
                   "--rtol", "1e-3", "--atol", "1e-4")
        os.remove(self.path("model.params"))
        _, err = self.tenon("run", library, "-i", self.path("in.npz"), status=INPUT)
        self.assertIn("model.params", err)

    def test_emit(self):
        self.compile("mlp-4-2", "m.so", "--emit", "graph,loop,llvm,asm")
        self.assert_only("m.so", "m.so.graph.txt", "m.so.loop.txt", "m.so.ll", "m.so.s")
        for name, word in [("m.so.graph.txt", "graph"), ("m.so.loop.txt", "func @"), ("m.so.ll", "define"), ("m.so.s", ".text")]:
            self.assertIn(word, pathlib.Path(self.path(name)).read_text())

    def test_dumps_read_back(self):
        """Weights are found from where the model was compiled, beside the dump, or where --weights says."""
        shutil.copy(self.model("bert-tiny"), self.dir)
        shutil.copy(self.model("bert-tiny").replace(".onnx", ".weights"), self.dir)
        (self.dir / "out").mkdir()
        self.tenon("compile", "--emit", "graph", self.path("bert-tiny.onnx"), "-o", self.path("out/m.so"))
        opt = lambda *args: subprocess.run([options.build / "bin" / "tenon-opt", *args], capture_output=True, text=True, cwd="/")
        dump = self.path("out/m.so.graph.txt")
        lost = opt("--parse-only", dump)
        self.assertEqual(lost.returncode, INPUT)
        self.assertIn("name it with --weights", lost.stderr)
        for args in [["--weights", self.path("bert-tiny.weights")], ["--weights", str(self.dir)]]:
            found = opt("--parse-only", *args, dump)
            self.assertEqual((found.returncode, found.stdout), (DONE, pathlib.Path(dump).read_text()), found.stderr)
        shutil.copy(self.path("bert-tiny.weights"), self.dir / "out")
        self.assertEqual(opt("--passes=dead_code", dump).returncode, DONE)
        os.truncate(self.dir / "out" / "bert-tiny.weights", 100)
        short = opt("--parse-only", dump)
        self.assertEqual(short.returncode, INPUT)
        self.assertIn("beyond the end of the weight file (100 bytes)", short.stderr)

    def test_quiet(self):
        out, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.so"), "-q")
        self.assertEqual((out, err), ("", ""))

    def test_table_and_phases(self):
        out, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.so"), "--time-passes")
        for word in ["kernel", "matmul", "MFLOP", "est. µs", "total", "plan_storage", "of all launches", "phase  ", "pass (sum over threads)", "code generation (LLVM)",
                     f"{self.path('m.so')}: "]:
            self.assertIn(word, out)
        self.assertEqual(err.split(), ["import", "graph", "lower", "kernels", "link", "weights"])
        out, _ = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.so"), "--print-after", "lower_blocks")
        self.assertIn("// after lower_blocks", out)

    def test_code_for_another_cpu_is_refused(self):
        for target in ["llvm -mattr=+amx-fp16,+avx512vp2intersect,+avxvnniint16"]:
            library = self.compile("mlp-4-2", "other.so", "--target", target)
            _, err = self.tenon("run", library, "--fill", "ones", status=INPUT)
            for words in ["compiled for another CPU: it lacks", "amx-fp16", "the code needs:", "this CPU has:"]:
                self.assertIn(words, err)
            out, err = self.tenon("inspect", library, status=INPUT)
            self.assertIn("avx512vp2intersect", out)
            self.assertIn("compiled for another CPU", err)


class Bundles(Case):
    """The folder form, names and objects: what other programs link and include."""

    def test_the_example_builds_and_runs(self):
        for model in MODELS:
            with self.subTest(model):
                self.compile(model, f"{model}/")
                bundle = self.dir / model
                self.assertEqual({p.name for p in bundle.iterdir()}, {"model.so", "metadata.json", "inference_example.cpp"})
                metadata = json.loads((bundle / "metadata.json").read_text())
                self.assertEqual(metadata["functions"][0]["name"], "main")
                program = self.build("example", bundle / "inference_example.cpp")
                done = subprocess.run([program], cwd=bundle, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                for output in reference(model)[1]:
                    self.assertIn(f"{output}: ", done.stdout)
                self.assertNotEqual(subprocess.run([program, "nowhere.so"], capture_output=True).returncode, 0)

    PROGRAM = """
#include <cstdio>
#include "first.h"
#include "second.h"
static tn_dl_tensor View(float* data, int64_t* shape) {
  return {data, {TN_DL_CPU, 0}, 2, {TN_DL_FLOAT, 32, 1}, shape, nullptr, 0};
}
int main() {
  float x[4] = {1, 2, 3, 4}, y[2] = {}, z[2] = {};
  int64_t in[2] = {1, 4}, out[2] = {1, 2};
  tn_dl_tensor a = View(x, in), b = View(y, out), c = View(z, out);
  if (first(&a, &b) != 0 || second(&a, &c) != 0) return 1;
  std::printf("%g %g\\n%g %g\\n", y[0], y[1], z[0], z[1]);
  return first(&b, &b) == 0;
}
"""

    def check_two_models(self, suffix, *flags):
        self.compile("mlp-4-2", f"first{suffix}", "--name", "first", *flags)
        self.compile("mlp-4-2", f"second{suffix}", "--name", "second", "-O0", *flags)
        source = self.dir / "program.cc"
        source.write_text(self.PROGRAM)
        program = self.build("program", source, "-I", self.dir, libraries=[self.path(f"first{suffix}"), self.path(f"second{suffix}")])
        done = subprocess.run([program], capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": str(self.dir)})
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [list(map(float, line.split())) for line in done.stdout.splitlines()]
        np.testing.assert_allclose(rows[0], rows[1], rtol=1e-4)
        self.assertNotEqual(rows[0], [0, 0])

    def test_two_libraries_in_one_program(self):
        self.check_two_models(".so")
        self.tenon("run", self.path("first.so"), "--fill", "ones")

    def test_two_objects_in_one_program(self):
        self.check_two_models(".o", "--format", "obj")

    def test_a_session_finds_the_function_by_its_name(self):
        self.compile("mlp-4-2", "first.so", "--name", "first")
        source = self.dir / "session.cc"
        source.write_text("""
#include <cstdio>
#include <cstring>
#include <tenon/tenon.hpp>
int main(int, char** argv) {
  tenon::Session session(argv[1]);
  auto x = tenon::Tensor::Empty(session.inputs()[0].shape, session.inputs()[0].dtype);
  std::memset(x.data(), 0, static_cast<size_t>(x.bytes()));
  auto results = session.Run({{session.inputs()[0].name, x}});
  std::printf("%s %zu\\n", session.module().Name().c_str(), results.size());
}
""")
        program = self.build("session", source)
        done = subprocess.run([program, self.path("first.so")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "first 1\n"), done.stderr)

    def test_header_is_c(self):
        self.compile("mlp-4-2", "m.so", "--name", "net")
        (self.dir / "use.c").write_text('#include "net.h"\nint main(void) { return net(0, 0) == 0; }\n')
        subprocess.run([options.cc, "-std=c11", "-Wall", "-Werror", "-I", ROOT / "include", "-c", self.path("use.c"), "-o",
                        self.path("use.o")], check=True)


class Source(Case):
    """A model as C source: without a warning, with the answers of the reference, without Tenon."""

    FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"]

    def compilers(self):
        return [str(options.cc)] + ([shutil.which("gcc")] if shutil.which("gcc") else [])

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
        self.compile("mlp-4-2", "m/", "--target", "c")
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


class Machines(Case):
    """Libraries for other machines, under their emulators."""

    TARGETS = {"aarch64": "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", "riscv64": "llvm -mtriple=riscv64-linux-gnu",
               "wasm32": "llvm -mtriple=wasm32-unknown-unknown"}

    def machines(self):
        there = {arch: os.environ[f"TENON_REMOTE_{arch}"] for arch in self.TARGETS if f"TENON_REMOTE_{arch}" in os.environ}
        if not there:
            self.skipTest("no emulator, or no runtime core for what it emulates")
        return there

    def call(self, runner, library, arrays, outputs, name="__tvm_ffi_main"):
        """Calls a function there (test/remote/runner.c); its outputs, or the message of its failure."""
        request = struct.pack("<II", 1, len(name)) + name.encode() + struct.pack("<II", len(arrays) + len(outputs), 0)
        for array in [*arrays, *(np.zeros_like(a) for a in outputs)]:
            code = {"f": 2, "i": 0, "u": 1, "b": 6}[array.dtype.kind]
            data = np.ascontiguousarray(array).tobytes()
            request += struct.pack(f"<II{array.ndim}qQ", code | array.dtype.itemsize << 11 | 1 << 16, array.ndim,
                                   *array.shape, len(data)) + data
        done = subprocess.run([*runner.split(), library], input=request, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        if struct.unpack("<i", done.stdout[:4])[0]:
            return done.stdout[8:].decode()
        at, results = 4 + sum(a.nbytes for a in arrays), []
        for want in outputs:
            results.append(np.frombuffer(done.stdout[at:at + want.nbytes], want.dtype).reshape(want.shape))
            at += want.nbytes
        return results

    def check(self, arch, runner, model, inputs, outputs, *args):
        library = self.compile(model, f"{arch}.so", "--target", self.TARGETS[arch], *args)
        got = self.call(runner, library, list(inputs.values()), list(outputs.values()))
        for have, want in zip(got, outputs.values(), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-3, atol=1e-4)
        return library

    def test_networks(self):
        for arch, runner in self.machines().items():
            with self.subTest(arch):
                inputs, outputs = reference("mlp-4-2")
                library = self.check(arch, runner, "mlp-4-2", inputs, outputs)
                (x,) = inputs.values()
                self.assertIn("expects ndim=2 but got ndim=1",
                              self.call(runner, library, [x[0]], list(outputs.values())))
                separate = [] if arch == "wasm32" else ["--params", "separate"]
                self.check(arch, runner, "bert-tiny", *reference("bert-tiny"), *separate)

    def test_tensor_expressions(self):
        """The same source of a vector addition, with a size known at the call."""
        for arch, runner in self.machines().items():
            with self.subTest(arch):
                library = self.path(f"add-{arch}.wasm" if arch == "wasm32" else f"add-{arch}.so")
                subprocess.run([options.build / "bin" / "vector_add", "--target", self.TARGETS[arch], library], check=True,
                               stdout=subprocess.DEVNULL)
                for n in [0, 1, 63, 64, 65, 1000]:
                    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
                    (z,) = self.call(runner, library, [x, y], [x], "__tvm_ffi_add")
                    np.testing.assert_array_equal(z, x + y)
                self.assertIn("Shape mismatch: n=3", self.call(runner, library, [x[:3], y[:2]], [x[:3]], "__tvm_ffi_add"))
                if arch == "wasm32":
                    program = ROOT / "examples/tensor_expressions/vector_add.mjs"
                    done = subprocess.run([runner.split()[0], program, library], capture_output=True, text=True)
                    self.assertEqual((done.returncode, done.stdout), (0, "the results agree\n"), done.stderr)

    def test_convolutions(self):
        machines = self.machines()
        try:
            import onnx
        except ImportError:
            self.skipTest("no onnx")
        draw = np.random.default_rng(5)
        weights = {"w1": (24, 3, 3, 3), "b1": (24,), "w2": (40, 24, 1, 1), "w3": (40, 1, 3, 3), "w4": (10, 40)}
        helper = onnx.helper
        nodes = [helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1], strides=[2, 2]),
                 helper.make_node("Relu", ["c1"], ["r1"]),
                 helper.make_node("Conv", ["r1", "w2"], ["c2"]),
                 helper.make_node("Sigmoid", ["c2"], ["s2"]),
                 helper.make_node("Conv", ["s2", "w3"], ["c3"], pads=[1, 1, 1, 1], group=40),
                 helper.make_node("GlobalAveragePool", ["c3"], ["p"]),
                 helper.make_node("Flatten", ["p"], ["f"]),
                 helper.make_node("Gemm", ["f", "w4"], ["g"], transB=1),
                 helper.make_node("Softmax", ["g"], ["y"], axis=1)]
        tensor = lambda name, shape: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        constants = [onnx.numpy_helper.from_array(draw.standard_normal(shape).astype(np.float32) / 2, name)
                     for name, shape in weights.items()]
        graph = helper.make_graph(nodes, "net", [tensor("x", [2, 3, 19, 17])], [tensor("y", [2, 10])], constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.path("net.onnx"))
        x = draw.standard_normal((2, 3, 19, 17)).astype(np.float32)
        given = self.save("in.npz", {"x": x})
        self.tenon("run", self.path("net.onnx"), "-i", given, "-o", self.path("out.npz"))
        want = {"y": np.load(self.path("out.npz"))["y"]}
        self.model = lambda name: self.path(f"{name}.onnx")
        for arch, runner in machines.items():
            with self.subTest(arch):
                self.check(arch, runner, "net", {"x": x}, want)

    def test_inner_loops_use_vectors(self):
        self.compile("bert-tiny", "m.so", "--target", self.TARGETS["aarch64"], "--emit", "asm")
        text = (self.dir / "m.so.s").read_text()
        loops = re.findall(r"\n(\.LBB\w+):((?:(?!\n\.LBB).)*?b\.\w+\t\1\n)", text, re.DOTALL)
        most = max(body.count("\tfmla\tv") for _, body in loops)
        self.assertGreaterEqual(most, 16)
        self.assertEqual([body for _, body in loops if body.count("\tfmla\tv") == most and "[sp" in body], [])

    def test_objects(self):
        """Linked by that machine's own linker, with the C program that calls it."""
        for arch, runner in self.machines().items():
            compiler = shutil.which(f"{arch}-linux-gnu-gcc")
            if not compiler:
                continue
            with self.subTest(arch):
                self.compile("mlp-4-2", "m.o", "--target", self.TARGETS[arch], "--format", "obj")
                subprocess.run([compiler, "-shared", "-o", self.path("m.so"), self.path("m.o")], check=True)
                inputs, outputs = reference("mlp-4-2")
                got = self.call(runner, self.path("m.so"), list(inputs.values()), list(outputs.values()))
                np.testing.assert_allclose(got[0], *outputs.values(), rtol=1e-3, atol=1e-4)

    def test_without_a_core(self):
        musl = "llvm -mtriple=aarch64-linux-musl"
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.so"), "--target", musl, status=INPUT)
        self.assertIn("no runtime core for the target 'aarch64-unknown-linux-musl'", err)
        self.assertIn("libc6-dev-arm64-cross", err)
        self.assert_only()
        out, _ = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.o"), "--target", musl)
        self.assertIn("links libtenon_core.a for aarch64-unknown-linux-musl besides", out)
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.o"), "--target", "apple/m1", status=INPUT)
        self.assertIn("not for 'arm64-apple-macosx11.0.0'", err)


class Statuses(Case):
    """Exit statuses and messages."""

    def test_wrong_usage(self):
        for args, message in [([], ""), (["compil"], "did you mean 'compile'"), (["run"], "model is required"),
                              (["run", "x.so", "--frob"], "--frob"), (["compile", "m.onnx"], "--output is required"),
                              (["compile", "m.onnx", "-o", "m.so", "--shape", "x:1xx2"], "is not a size"),
                              (["compile", "m.onnx", "-o", "m.so", "--max-memory", "lots"], "a size such as 512M"),
                              (["compile", "m.onnx", "-o", "m.so", "--disable", "simplif"], "did you mean 'simplify'"),
                              (["compile", "m.onnx", "-o", "m.so", "-O7"], "7"),
                              (["compile", "m.onnx", "-o", "m.so", "--name", "a-b"], "identifier"),
                              (["compile", "m.onnx", "-o", "m.so", "--name", "printf"], "a function of C's library"),
                              (["compile", "m.onnx", "-o", "m.so", "--name", "while"], "a word of C"),
                              (["compile", "m.onnx", "-o", "m.so", "--target", "llvm -mcpu=i9"], "i9"),
                              (["compile", "m.onnx", "-o", "m.so", "--disable", "make_packed"], "cannot be left out"),
                              (["run", "m.so", "-i", "x.txt"], "expected x.npz"), (["run", "m.so", "-o", "x.txt"], "expected x.npz"),
                              (["bench", "m.so", "--repeat", "3", "--duration", "2"], "excludes")]:
            _, err = self.tenon(*args, status=USAGE)
            self.assertIn(message, err)
            _, err = self.tenon(*args, "--error-format", "json", status=USAGE)
            if args:
                found = json.loads(err)
                self.assertEqual(found["kind"], "usage")
                self.assertIn(message, found["message"])
        self.assert_only()

    def test_help_and_version(self):
        for verb in [[], ["compile"], ["run"], ["bench"], ["inspect"]]:
            out, _ = self.tenon(*verb, "--help")
            self.assertIn("tenon", out)
        out, _ = self.tenon("--version")
        self.assertRegex(out, r"^tenon \d+\.\d+\.\d+$")

    def test_files_at_fault(self):
        (self.dir / "text.onnx").write_text("not a model")
        (self.dir / "empty.so").write_bytes(b"")
        library = self.compile("mlp-4-2")
        (self.dir / "cut.so").write_bytes(pathlib.Path(library).read_bytes()[:9000])
        for args, message in [(["compile", self.path("none.onnx"), "-o", self.path("m.so")], "none.onnx"),
                              (["compile", self.path("text.onnx"), "-o", self.path("m.so")], "text.onnx"),
                              (["run", self.path("cut.so")], "truncated"), (["run", self.path("empty.so")], "empty.so"),
                              (["run", library], "is not given; give it with -i"),
                              (["run", library, "-i", self.path("text.onnx") + ".npz"], "cannot open it"),
                              (["compile", self.model("mlp-4-2"), "-o", self.path("no/such/m.so")], "no/such"),
                              (["compile", library, "-o", self.path("m.so")], "not an ONNX model but a compiled library"),
                              (["compile", self.path("text.onnx"), "-o", self.path("m.so")], "not an ONNX model"),
                              (["run", library, "-O0", "--fill", "ones"], "is compiled already"),
                              (["run", library, "--shape", "input:1x4", "--fill", "ones"], "--shape says how to compile"),
                              (["run", "/bin/ls"], "/bin/ls: error: cannot load it: cannot dynamically load"),
                              (["inspect", "/dev/null"], "")]:
            _, err = self.tenon(*args, status=INPUT)
            self.assertIn(message, err)
        self.assert_only("text.onnx", "empty.so", "cut.so", "model.so")

    def test_output_is_checked_first(self):
        _, err = self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("no/such/m.so"), status=INPUT)
        self.assertEqual(len(err.splitlines()), 1, err)  # no phase came before

    def test_every_pass_that_can_be_left_out(self):
        """What --disable takes gives a library that works."""
        passes = subprocess.run([options.build / "bin" / "tenon-opt", "--list-passes"], capture_output=True, text=True).stdout
        inputs, outputs = reference("mlp-4-2")
        given, wanted = self.save("in.npz", inputs), self.save("want.npz", outputs)
        left_out = 0
        for name in [line.split()[1] for line in passes.splitlines()]:
            with self.subTest(name):
                done = subprocess.run([options.build / "bin" / "tenon", "compile", self.model("mlp-4-2"), "-o", self.path("m.so"),
                                       "--disable", name], capture_output=True, text=True)
                self.assertIn(done.returncode, [DONE, USAGE], done.stderr)
                if done.returncode == DONE:
                    left_out += 1
                    self.tenon("run", self.path("m.so"), "-i", given, "--expect", wanted)
        self.assertGreater(left_out, 10)

    def test_threads(self):
        library = self.compile("mlp-4-2")
        for value in ["abc", "0", "2x", ""]:
            _, err = self.tenon("run", library, "--fill", "ones", status=INPUT, env={"TENON_NUM_THREADS": value})
            self.assertIn(f"TENON_NUM_THREADS is '{value}'", err)

    def test_arrays_without_a_name(self):
        np.save(self.path("x.npy"), np.zeros((1, 4), np.float32))
        _, err = self.tenon("run", self.compile("bert-tiny"), "-i", self.path("x.npy"), "--fill", "ones", status=INPUT)
        self.assertIn("say which it is: ", err)

    def test_wrong_inputs(self):
        library = self.compile("mlp-4-2")
        (name,) = reference("mlp-4-2")[0]
        for array, message in [(np.zeros((1, 5), np.float32), "5"), (np.zeros((1, 4)), "float32"), (np.zeros(4, np.float32), "ndim=2")]:
            _, err = self.tenon("run", library, "-i", self.save("in.npz", {name: array}), status=INPUT)
            self.assertIn(message, err)
        _, err = self.tenon("run", library, "-i", self.save("in.npz", {"y": np.zeros(1)}), status=INPUT)
        self.assertIn(f"there is no input 'y'; there are {name}", err)

    def test_broken_arrays(self):
        library = self.compile("mlp-4-2")
        good = self.path("x.npy")
        np.save(good, np.zeros((1, 4), np.float32))
        whole = pathlib.Path(good).read_bytes()
        for size in list(range(0, 128, 7)) + [len(whole) - 1]:
            pathlib.Path(good).write_bytes(whole[:size])
            self.tenon("run", library, "-i", good, status=INPUT)
        for old, new in [(b"<f4", b">f4"), (b"<f4", b"|O4"), (b"(1, 4)", b"(9, 4)"), (b"(1, 4)", b"(-1,4)"), (b"False", b"Fals ")]:
            pathlib.Path(good).write_bytes(whole.replace(old, new))
            self.tenon("run", library, "-i", good, status=INPUT)
        archive = pathlib.Path(self.save("in.npz", reference("mlp-4-2")[0]))
        whole = archive.read_bytes()
        at = whole.index(b"NUMPY") + 140
        archive.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        self.tenon("run", library, "-i", archive, status=INPUT)

    def test_broken_libraries(self):
        """Cut anywhere, or with a changed head or other information: refused with a message."""
        library = self.compile("mlp-4-2")
        whole = pathlib.Path(library).read_bytes()
        broken = {f"cut at {size}": whole[:size] for size in [0, 1, 4, 63, 64, 100, 1000, 4096, len(whole) // 2, len(whole) - 1]}
        for at in [4, 5, 16, 18, 32, 54, 56]:  # class, byte order, type, machine, tables
            broken[f"byte {at}"] = whole[:at] + bytes([whole[at] ^ 0x7F]) + whole[at + 1:]
        refused = set(broken)
        begin = whole.index(b'{"', whole.index(b'"functions"') - 4000)
        end = whole.index(b"\0", begin)
        for old, new in [(b'"inputs"', b'"inqots"'), (b'"float32"', b'"float99"'), (b'"name"', b'"nome"'), (b'"abi"', b'"abj"'),
                         (b'"target"', b'"torget"'), (b'"kernels"', b'"colonel"'), (b"[", b"{"), (b":", b","), (b"{", b"["),
                         (b'"', b"5"), (b"1", b'"'), (b"}", b" ")]:
            broken[f"{old} as {new}"] = whole[:begin] + whole[begin:end].replace(old, new) + whole[end:]
        for what, content in broken.items():
            pathlib.Path(library).write_bytes(content)
            for verb in [["run", library, "--fill", "ones"], ["inspect", library]]:
                with self.subTest(what, verb=verb[0]):
                    done = subprocess.run([options.build / "bin" / "tenon", *verb], capture_output=True, timeout=60)
                    self.assertIn(done.returncode, [INPUT] if what in refused else [DONE, INPUT], done.stderr)
                    if done.returncode == INPUT:
                        self.assertIn(b"tenon: ", done.stderr)

    def test_errors_as_json(self):
        _, err = self.tenon("--error-format", "json", "compile", self.path("none.onnx"), "-o", self.path("m.so"), status=INPUT)
        (line,) = err.splitlines()
        self.assertEqual(json.loads(line)["severity"], "error")
        for verb in [["run"], ["inspect"], ["compile", "-o", self.path("m.so")]]:
            _, err = self.tenon("--error-format", "json", *verb, self.path("none.onnx"), status=INPUT)
            self.assertEqual(json.loads(err.splitlines()[-1])["file"], self.path("none.onnx"))


class Stopping(Case):
    """Limits and signals leave nothing behind."""

    def test_limits(self):
        for flag, value in [("--max-time", "0.02s"), ("--max-memory", "20M")]:
            _, err = self.tenon("compile", self.model("bert-tiny"), "-o", self.path("m.so"), flag, value, status=LIMIT)
            self.assertIn(flag, err)
            self.assert_only()
        self.tenon("compile", self.model("mlp-4-2"), "-o", self.path("m.so"), "--max-time", "5m", "--max-memory", "8G")

    def test_signals(self):
        """Neither a half library nor anything of the linker's survives."""
        scratch = self.dir / "scratch"
        scratch.mkdir()
        for number in [signal.SIGINT, signal.SIGTERM]:
            for delay in [0.05, 0.15, 0.25, 0.35, 0.45]:
                process = subprocess.Popen([options.build / "bin" / "tenon", "compile", self.model("bert-tiny"), "-o",
                                            self.path("m.so")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                           env={**os.environ, "TMPDIR": str(scratch)})
                time.sleep(delay)
                process.send_signal(number)
                self.assertIn(process.wait(), [-number, 0])
                # The signal may come after the library has got its name: then it is whole.
                if process.returncode == 0 or (self.dir / "m.so").exists():
                    self.tenon("run", self.path("m.so"), "--fill", "ones")
                    os.remove(self.path("m.so"))
                self.assert_only("scratch")
                self.assertEqual(list(scratch.iterdir()), [])

    def test_killed(self):
        """A library under its own name is whole, whatever happened to the process that wrote it."""
        for delay in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]:
            process = subprocess.Popen([options.build / "bin" / "tenon", "compile", self.model("bert-tiny"), "-o",
                                        self.path("m.so")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            process.kill()
            process.wait()
            if (self.dir / "m.so").exists():
                self.tenon("run", self.path("m.so"), "--fill", "ones")
                os.remove(self.path("m.so"))

    def test_full_disk(self):
        """Writing fails in the code, in the weights, in what stands beside them: an error, and nothing is left."""
        for limit in [0, 4096, 200_000, 3_000_000]:
            for output, flags in [("m.so", []), ("m.so", ["--params", "separate"]), ("m.o", ["--format", "obj"]), ("folder/", [])]:
                command = [options.build / "bin" / "tenon", "compile", self.model("bert-tiny"), "-o", f"{self.dir}/{output}", *flags]
                done = subprocess.run(command, capture_output=True, text=True,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
                self.assertEqual(done.returncode, LIMIT, done.stderr)
                self.assertIn("File too large", done.stderr)
                self.assertEqual([p for p in self.dir.rglob("*") if p.is_file()], [])

    def test_weights_that_become_shorter(self):
        """While they are read: an error, not a crash."""
        ends = []
        for delay in [0.02, 0.05, 0.1, 0.15, 0.2, 0.3]:
            for file in models.glob("bert-tiny*"):
                shutil.copy(file, self.dir)
            process = subprocess.Popen([options.build / "bin" / "tenon", "compile", self.path("bert-tiny.onnx"), "-o",
                                        self.path("m.so")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(delay)
            os.truncate(max(self.dir.glob("bert-tiny*"), key=os.path.getsize), 100)
            _, err = process.communicate()
            ends.append(process.returncode)
            self.assertIn(process.returncode, [DONE, INPUT], err)
            if process.returncode == INPUT:
                self.assertTrue("external data" in err or "has become shorter" in err, err)
            self.assertEqual((self.dir / "m.so").exists(), process.returncode == DONE)
            for file in self.dir.glob("*"):
                self.assertTrue(file.name == "m.so" or file.name.startswith("bert-tiny"), file)
                os.remove(file)
        self.assertIn(INPUT, ends)


class Inspecting(Case):
    def test_model(self):
        out, _ = self.tenon("inspect", self.model("bert-tiny"))
        for words in ["ONNX model", "operator set ai.onnx", "inputs:", "outputs:", "MatMul", "weights: "]:
            self.assertIn(words, out)
        out, _ = self.tenon("inspect", self.model("bert-tiny"), "--json")
        model = json.loads(out)
        self.assertEqual({t["name"] for t in model["inputs"]}, set(reference("bert-tiny")[0]))
        self.assertGreater(model["operators"]["MatMul"], 10)

    def test_artifact(self):
        library = self.compile("mlp-4-2")
        out, _ = self.tenon("inspect", library)
        for words in ["Tenon library", "target: llvm", "CPU features needed: ", "matmul", "memory plan", "hash of source"]:
            self.assertIn(words, out)
        out, _ = self.tenon("inspect", library, "--json")
        info = json.loads(out)
        self.assertEqual((info["kind"], info["abi"], len(info["kernels"])), ("artifact", 1, 3))
        self.assertTrue(all(kernel["estimated_us"] > 0 for kernel in info["kernels"]))

    def test_unsupported_operators_are_told_all_at_once(self):
        try:
            from onnx import TensorProto, helper, save
        except ImportError:
            self.skipTest("needs onnx")
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
        nodes = [helper.make_node("Frobnicate", ["x"], ["a"], name="one"), helper.make_node("Relu", ["a"], ["b"]),
                 helper.make_node("Frobnicate", ["b"], ["c"], name="two"),
                 helper.make_node("Turn", ["c"], ["y"], name="three", domain="org.other")]
        graph = helper.make_graph(nodes, "g", [x], [y])
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid("org.other", 1)]),
             self.path("m.onnx"))
        out, err = self.tenon("inspect", self.path("m.onnx"), status=INPUT)
        self.assertRegex(out, r"Frobnicate +2")
        self.assertIn("n x 4", out)
        for words in ["'Frobnicate'", "one", "two", "'Turn'", "three", "org.other"]:
            self.assertIn(words, err)


def main():
    global options, models
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--cc", default="cc")
    options, rest = parser.parse_known_args()
    options.build = options.build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, ROOT / "bench" / "fill_weights.py", folder], check=True)
        models = pathlib.Path(folder)
        unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
