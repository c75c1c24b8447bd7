"""Objects: several of them in one program and in one library."""

import os
import subprocess
import unittest

import numpy as np

import tenon
from tenon import te

HEADERS = os.path.join(os.path.dirname(__file__), "../../include")

MAIN = r"""
#include <stdio.h>
#include "tenon/ffi_types.h"

int32_t __tvm_ffi_add(void* self, const tn_ffi_any* args, int32_t n, tn_ffi_any* result);
int32_t __tvm_ffi_mul(void* self, const tn_ffi_any* args, int32_t n, tn_ffi_any* result);

int main(void) {
  float x[5] = {1, 2, 3, 4, 5}, y[5] = {2, 2, 2, 2, 2}, z[5];
  int64_t shape[1] = {5};
  tn_ffi_any args[3], result;
  tn_dl_tensor tensors[3];
  float* data[3] = {x, y, z};
  for (int i = 0; i < 3; ++i) {
    tensors[i] = (tn_dl_tensor){data[i], {TN_DL_CPU, 0}, 1, {TN_DL_FLOAT, 32, 1}, shape, NULL, 0};
    args[i] = (tn_ffi_any){TN_FFI_DL_TENSOR_PTR, 0, {0}};
    args[i].u.v_ptr = &tensors[i];
  }
  if (__tvm_ffi_add(NULL, args, 3, &result) != 0 || z[4] != 7) return 1;
  if (__tvm_ffi_mul(NULL, args, 3, &result) != 0 || z[4] != 10) return 2;
  shape[0] = 5;
  args[0].type_index = TN_FFI_INT;
  return __tvm_ffi_mul(NULL, args, 3, &result) == 0 ? 3 : 0; /* a wrong argument is an error */
}
"""


def build(name, combine, target="llvm"):
    n = te.var(f"n_{name}", lo=1, hi=1000)
    a, b = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    c = te.compute((n,), lambda i: combine(a[i], b[i]), name="C")
    return tenon.build(te.create_schedule(c.op), [a, b, c], target, name=name)


class Objects(unittest.TestCase):
    def setUp(self):
        self.folder = tenon.contrib.utils.tempdir()
        self.objects = []
        for name, combine in (("add", lambda x, y: x + y), ("mul", lambda x, y: x * y)):
            self.objects.append(self.folder.relpath(name + ".o"))
            build(name, combine).save(self.objects[-1])

    def test_two_in_one_program(self):
        main, program = self.folder.relpath("main.c"), self.folder.relpath("main")
        with open(main, "w", encoding="ascii") as file:
            file.write(MAIN)
        subprocess.run(["cc", "-std=c11", "-I", HEADERS, "-o", program, main, *self.objects], check=True)
        self.assertEqual(subprocess.run([program], check=False).returncode, 0)

    def test_a_library_of_two_describes_both(self):
        path = self.folder.relpath("both.so")
        tenon.contrib.cc.create_shared(path, self.objects)
        both = tenon.runtime.load_module(path)
        x, y = np.arange(4, dtype="float32"), np.full(4, 3, "float32")
        np.testing.assert_array_equal(both["add"](x, y).numpy(), x + 3)
        np.testing.assert_array_equal(both["mul"](x, y).numpy(), x * 3)
        info = both.runtime_module.info()
        for word in ('"add"', '"mul"', '"n_add"', '"n_mul"'):
            self.assertIn(word, info)
        # Each function knows its inputs: an output that must not be written is refused for both.
        fixed = np.zeros(4, "float32")
        fixed.flags.writeable = False
        for name in ("add", "mul"):
            with self.assertRaisesRegex(ValueError, "an output, is read-only"):
                both[name](x, y, fixed)

    def test_objects_of_others_are_linked_too(self):
        source, other = self.folder.relpath("other.c"), self.folder.relpath("other.o")
        with open(source, "w", encoding="ascii") as file:
            file.write("int other(void) { return 5; }\n")
        subprocess.run(["cc", "-fPIC", "-c", "-o", other, source], check=True)
        path = self.folder.relpath("mixed.so")
        tenon.contrib.cc.create_shared(path, [other, self.objects[1]])
        x = np.ones(3, "float32")
        np.testing.assert_array_equal(tenon.runtime.load_module(path)["mul"](x, 2 * x).numpy(), 2 * x)

    def test_objects_for_different_machines_are_refused(self):
        other = self.folder.relpath("other.o")
        build("sub", lambda x, y: x - y, "llvm -mtriple=riscv64-linux-gnu").save(other)
        with self.assertRaisesRegex(ValueError, "for different machines: .* and .*riscv64"):
            tenon.contrib.cc.create_shared(self.folder.relpath("none.so"), [self.objects[0], other])


if __name__ == "__main__":
    unittest.main()
