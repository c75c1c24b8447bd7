"""What cases share that run the command line as its users do."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODELS = ["mlp-4-2", "bert-tiny"]
DONE, INPUT, USAGE, DIFFER, LIMIT = 0, 1, 2, 3, 5

options = None  # build, cxx, cc: set by cli_test.py
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

    def compile(self, model, output="model.so", *args, env=None, **kwargs):
        """Kernels that another case has had compiled are taken from there."""
        self.tenon("compile", self.model(model), "-o", f"{self.dir}/{output}", "--verify-each", *args,
                   env={"TENON_CACHE_DIR": str(models / "cache"), **(env or {})}, **kwargs)
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
