#!/usr/bin/env python3
"""Follows docs/new-target.md on a toy: in a copy of the tree, the kind `opencl` under another name.

What has to be edited outside the kind's own folders is what the page lists, at most five files, build files included; the
copy's floors hold, and a target library, the back end, its entry in the driver's list and the runtime's driver compile.
"""

import os
import shutil
import sys
import unittest

import toy_tree

OLD, NEW = "opencl", "twincl"
MOST_EDITED = 5

PROBE = """#include <cstdio>

#include "target/target.h"

int main() {
  auto target = tenon::Target::Parse("twincl -max_threads_per_block=128 -host=llvm -mcpu=x86-64");
  if (!target) return printf("%s", tenon::ToString(target.errors()).c_str()), 1;
  const tenon::TargetKind& kind = target->kind();
  printf("%s|%s|%s|%d\\n", target->ToString().c_str(), std::string(kind.code_generator).c_str(),
         std::string(target->device().name).c_str(), static_cast<int>(target->device().type));
  return 0;
}
"""


def renamed(text):
    for old, new in ((OLD, NEW), ("OpenCl", "Twincl"), ("OpenCL", "Twincl"), ("OPENCL", "TWINCL")):
        text = text.replace(old, new)
    return text


class NewKindTest(toy_tree.ToyTree):

    def add_kind(self):
        for folder in toy_tree.table("new-target.md", "Folders of its own"):
            old, new = self.root / folder.replace("KIND", OLD), self.root / folder.replace("KIND", NEW)
            shutil.copytree(old, new)
            for path in list(new.iterdir()):
                path.write_text(renamed(path.read_text()))
                path.rename(path.with_name(renamed(path.name)))
        kinds = self.text("src/target/kinds.def")
        row = kinds[kinds.index(f"TN_KIND({OLD},"):kinds.index("#undef")].strip()
        self.edit("src/target/kinds.def", '.forms = "cl")', renamed(row))
        self.edit("src/target/targets.def", 'TN_GPU("generic", opencl', f'TN_GPU("generic", {NEW}, 256, 16384, 16384, 1, "")')
        self.edit("src/driver/code_generators.cc", '#include "codegen/opencl', f'#include "codegen/{NEW}/emit.h"')
        self.edit("src/driver/code_generators.cc", '{"opencl"', f'    {{"{NEW}", Makes::kDeviceCode, codegen::MakeTwinclCode}},')
        self.edit("include/tenon/devices.h", "X(opencl", f'  X({NEW}, "{NEW}", 99, 1) \\')
        self.edit("src/runtime/device/drivers.def", "TN_DRIVER(opencl", f"TN_DRIVER({NEW}, TENON_WITH_{NEW.upper()})")

    def test_a_copy_of_opencl_touches_what_the_page_lists(self):
        self.add_kind()
        self.assertEqual(sorted(toy_tree.table("new-target.md", "Files to edit")), sorted(self.edited))
        self.assertLessEqual(len(self.edited), MOST_EDITED)
        self.run_in(sys.executable, "scripts/check_layers.py")
        for name in ("python", "tools", "examples", "bench", "test"):  # what the build lists and this does not need
            self.add(f"{name}/CMakeLists.txt", "")
        self.add("probe.cc", PROBE)
        self.add("CMakeLists.txt", self.text("CMakeLists.txt") +
                 "add_executable(probe probe.cc)\ntarget_link_libraries(probe PRIVATE tn_target)\n")
        objects = [f"src/codegen/{NEW}/CMakeFiles/tn_codegen_{NEW}.dir/emit.cc.o",
                   f"src/codegen/{NEW}/CMakeFiles/tn_codegen_{NEW}.dir/language.cc.o",
                   "src/driver/CMakeFiles/tn_driver.dir/code_generators.cc.o",
                   f"src/runtime/CMakeFiles/tenon_runtime_static.dir/device/{NEW}/{NEW}.cc.o",
                   "src/runtime/CMakeFiles/tenon_runtime_static.dir/device/device.cc.o"]
        environment = dict(os.environ, CCACHE_BASEDIR=str(self.root), CCACHE_NOHASHDIR="1")
        self.run_in("cmake", "-G", "Ninja", "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Debug", "-DTENON_BUILD_TESTS=OFF",
                    "-DCMAKE_CXX_FLAGS=-O0 -g0", "-DCMAKE_CXX_COMPILER=clang++-19", "-DCMAKE_C_COMPILER=clang-19")
        self.run_in("ninja", "-C", "build", "probe", *objects, env=environment)
        text = self.run_in("build/bin/probe")
        self.assertEqual(f"{NEW} -max_threads_per_block=128 -host=llvm -mcpu=x86-64|{NEW}|{NEW}|99\n", text)


if __name__ == "__main__":
    unittest.main()
