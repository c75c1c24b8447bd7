"""`pip install .` into a fresh environment, and the package used from there. It takes minutes, so no test runs it:

    python3 test/python/wheel.py [FOLDER]

The environment is made in FOLDER (a temporary one otherwise); pip builds in build-python/."""

import pathlib
import subprocess
import sys
import tempfile
import time
import venv

SOURCE = pathlib.Path(__file__).resolve().parents[2]

USE = """
import pathlib
import numpy as np
import tenon
from tenon import te

folder = pathlib.Path(tenon.__file__).parent
assert "site-packages" in str(folder), folder
for name in ("_tenon.pyi", "py.typed", "lib"):
    assert (folder / name).exists(), f"the wheel lacks {name}"
assert "def build_schedule" in (folder / "_tenon.pyi").read_text()

n = te.var("n")
A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
C = te.compute((n,), lambda i: A[i] + B[i], name="C")
s = te.create_schedule(C.op)
outer, inner = s[C].split(C.op.axis[0], factor=64)
s[C].parallel(outer)
s[C].vectorize(inner)
add = tenon.build(s, [A, B, C], name="add")
x, y = np.arange(1000, dtype="float32"), np.ones(1000, "float32")
np.testing.assert_array_equal(add(x, y).numpy(), x + y)
add.export_library("add.so")
np.testing.assert_array_equal(tenon.load("./add.so")["add"](x, y).numpy(), x + y)
print("tenon", tenon.__version__, "in", folder)
"""


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tenon-wheel-"))
    start = time.monotonic()
    venv.create(folder / "env", clear=True, with_pip=True)
    python = folder / "env/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", "."], cwd=SOURCE, check=True)
    print(f"pip install . took {time.monotonic() - start:.0f} s")
    subprocess.run([python, "-c", USE], cwd=folder, check=True)


if __name__ == "__main__":
    main()
