"""The archive of `./build.sh dist`, unpacked in a folder of its own and used from there:

    python3 test/python/archive.py build-dist/tenon-0.1.0-x86_64-linux.tar.xz [PYTHON …]

It compiles and runs a network with this system's libc and, where build-dist.sysroot lies beside the archive's folder, with the
oldest that is promised; builds a C++ program by its CMake package; and uses the Python package with every PYTHON (this one by
default), which has NumPy. Making an archive takes minutes, so no test runs this."""

import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]

USE = """
import pathlib, sys
import numpy as np
import tenon
from tenon import te

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] + 1, name="B")
s = te.create_schedule(B.op)
s[B].vectorize(s[B].split(B.op.axis[0], factor=16)[1])
add = tenon.build(s, [A, B], "llvm")
np.testing.assert_array_equal(add(np.arange(100, dtype="float32")).numpy(), np.arange(100) + 1)
for call in ([1, "x"], {}):
    try:
        add(call)
    except TypeError as error:
        assert "argument" in str(error) or "expects" in str(error), error
    else:
        raise AssertionError(f"{call} was taken")
session = tenon.InferenceSession(sys.argv[1])
print("Python", sys.version.split()[0], session.run(None, {"input": np.ones((1, 4), np.float32)})[0])
"""

CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(use CXX)
find_package(Tenon REQUIRED COMPONENTS runtime)
add_executable(use use.cc)
target_link_libraries(use PRIVATE Tenon::runtime)
"""

PROGRAM = """
#include <tenon/tenon.hpp>
int main(int, char** argv) {
  auto run = tenon::Module::LoadFromFile(argv[1]).GetFunction("main");
  auto x = tenon::Tensor::Empty({1, 4}, tenon::DataType::kFloat32);
  const float ones[4] = {1, 1, 1, 1};
  x.CopyFromBytes(ones, sizeof ones);
  tenon::Tensor y = run(x);
  return y.shape().size() == 2 ? 0 : 1;
}
"""


def say(*words):
    print("--", *words, flush=True)


def run(*words, **options):
    subprocess.run([str(word) for word in words], check=True, **options)


def main():
    archive = pathlib.Path(sys.argv[1]).resolve()
    pythons = sys.argv[2:] or [sys.executable]
    with tempfile.TemporaryDirectory(prefix="tenon archive ") as folder:
        folder = pathlib.Path(folder)
        run("tar", "-C", folder, "-xf", archive)
        (top,) = folder.iterdir()
        run(sys.executable, SOURCE / "bench/fill_weights.py", folder, "mlp-4-2", stdout=subprocess.DEVNULL)
        model = folder / "mlp-4-2.onnx"
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TENON_CACHE_DIR": str(folder / "cache")}
        say("compile and run here")
        run(top / "bin/tenon", "compile", model, "-o", folder / "mlp.so", env=environment)
        run(top / "bin/tenon", "run", folder / "mlp.so", "--fill", "ones", env=environment)
        old = archive.parent.parent / "build-dist.sysroot"
        if old.exists():
            say("with the oldest libc that is promised")
            libc = old / "lib/x86_64-linux-gnu"
            loader = [old / "lib64/ld-linux-x86-64.so.2", "--library-path", libc]
            (folder / "old").mkdir()
            run(*loader, top / "bin/tenon", "compile", model, "-o", folder / "old/mlp.so", env=environment)
            run(*loader, top / "bin/tenon", "run", folder / "old/mlp.so", "--fill", "ones", env=environment)
            run("cmp", folder / "mlp.so", folder / "old/mlp.so")
        say("a program by find_package")
        (folder / "CMakeLists.txt").write_text(CMAKE)
        (folder / "use.cc").write_text(PROGRAM)
        run("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={top}", stdout=subprocess.DEVNULL)
        run("cmake", "--build", folder / "build", stdout=subprocess.DEVNULL)
        run(folder / "build/use", folder / "mlp.so")
        for python in pythons:
            say(python)
            run(python, "-c", USE, folder / "mlp.so", env={**os.environ, "PYTHONPATH": str(top / "python")})


if __name__ == "__main__":
    main()
