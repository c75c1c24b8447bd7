"""A vector addition for every size: described, scheduled, built, called, saved and loaded again.

    vector_add.py                         for this machine
    vector_add.py --target TARGET FILE    for another one, which calls what is saved
"""

import argparse

import numpy as np

import tenon
from tenon import te

parser = argparse.ArgumentParser()
parser.add_argument("--target", default="llvm")
parser.add_argument("file", nargs="?")
args = parser.parse_args()

# What: the size n is known when the function is called.
n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.placeholder((n,), name="B")
C = te.compute((n,), lambda i: A[i] + B[i], name="C")

# How: pieces of 64 elements, divided over the cores, each in vectors.
s = te.create_schedule(C.op)
outer, inner = s[C].split(C.op.axis[0], factor=64)
s[C].parallel(outer)
s[C].vectorize(inner)
print(tenon.lower(s, [A, B, C], name="add"))

add = tenon.build(s, [A, B, C], args.target, name="add")
if args.file:
    add.save(args.file)
    print(f"{args.file} is for {args.target}")
    raise SystemExit

x = np.arange(1000, dtype="float32")
y = np.ones(1000, dtype="float32")
z = np.empty(1000, dtype="float32")
add(x, y, z)  # into z
np.testing.assert_array_equal(z, x + y)
np.testing.assert_array_equal(add(x, y).numpy(), x + y)  # or a new tensor

folder = tenon.contrib.utils.tempdir()
add.export_library(folder.relpath("add.so"))
loaded = tenon.runtime.load_module(folder.relpath("add.so"))
np.testing.assert_array_equal(loaded["add"](x, y).numpy(), x + y)
print("the results agree")
