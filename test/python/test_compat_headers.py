"""Names of TVM's C++ runtime, as its programs use them, over what is built here."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import tenon
from tenon import te

INCLUDE = pathlib.Path(__file__).parents[2] / "include"
LIBRARIES = pathlib.Path(os.environ.get("TENON_TOOL", "tenon")).parent.parent / "lib"

MAIN = r"""
#include <dlpack/dlpack.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <cstdio>

using namespace tvm::runtime;

TVM_REGISTER_GLOBAL("sum").set_body([](TVMArgs args, TVMRetValue* result) {
  *result = int64_t{args[0]} + int64_t{args[1]};
});
TVM_REGISTER_GLOBAL("product").set_body([](TVMArgs args, TVMRetValue* result) {
  *result = int64_t{args[0]} * int64_t{args[1]};
});

int main(int, char** argv) {
  const int64_t sum = (*Registry::Get("sum"))(2, 3), product = (*Registry::Get("product"))(2, 3);
  Registry::Register("add").set_body(Module::LoadFromFile(argv[1]).GetFunction("add"));
  NDArray x = NDArray::Empty({1}, {kDLFloat, 32, 1}, {kDLCPU, 0});
  *static_cast<float*>(x->data) = 4;
  const NDArray y = (*Registry::Get("add"))(x);
  std::printf("%d %d %g\n", static_cast<int>(sum), static_cast<int>(product), *static_cast<float*>(y->data));
  for (const std::string& name : Registry::ListNames()) std::printf("%s ", name.c_str());
  const bool removed = Registry::Remove("add") && !Registry::Remove("add") && !Registry::Get("add");
  std::printf("\n%d %d\n", removed, Registry::Get("runtime.SystemLib") == nullptr);
  try {
    Registry::Register("sum");
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
  Registry::Register("sum", true).set_body([](TVMArgs, TVMRetValue* result) { *result = int64_t{7}; });
  std::printf("%d\n", static_cast<int>(int64_t{(*Registry::Get("sum"))()}));
}
"""


@unittest.skipUnless((LIBRARIES / "libtenon_runtime.so").exists(), "needs TENON_TOOL, a build's, with its runtime")
class CompatHeaders(unittest.TestCase):
    def test_functions_by_global_names(self):
        a = te.placeholder((1,), name="A")
        b = te.compute((1,), lambda i: a[i] + 1, name="B")
        with tempfile.TemporaryDirectory() as folder:
            library, source, program = (os.path.join(folder, name) for name in ("add.so", "main.cc", "main"))
            tenon.build(te.create_schedule(b.op), [a, b], name="add").export_library(library)
            pathlib.Path(source).write_text(MAIN)
            strict = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{INCLUDE}", f"-I{INCLUDE}/tenon/compat"]
            subprocess.run(["c++", *strict, source, f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", "-ltenon_runtime", "-o", program], check=True)
            printed = subprocess.run([program, library], check=True, capture_output=True, text=True).stdout
        self.assertEqual(printed.splitlines(), ["5 6 5", "add product sum ", "1 1", "there is a function 'sum' already", "7"])


if __name__ == "__main__":
    unittest.main()
