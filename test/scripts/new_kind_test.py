#!/usr/bin/env python3
"""Follows docs/new-target.md on a toy: in a copy of the tree, the kind `opencl` under another name.

What has to be edited outside the kind's own folders is what the page lists, at most five files, build files included; the
copy's floors hold, and a target library, the back end, its entry in the driver's list and the runtime's driver compile.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
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


def page(heading):
    """The paths in the first column of the table under a heading of the page."""
    text = (ROOT / "docs/new-target.md").read_text()
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


class NewKindTest(unittest.TestCase):

    def copy(self, root):
        files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "src", "include", "cmake", "scripts",
                                "tools", "python", "examples", "test/unit", "test/support", "CMakeLists.txt"],
                               cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
        for name in filter(None, files):
            if (ROOT / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, root / name)
        for name in ("python", "tools", "examples", "bench", "test"):  # what the build lists and this does not need
            (root / name).mkdir(exist_ok=True)
            (root / name / "CMakeLists.txt").write_text("")

    def edit(self, root, name, after, text):
        """Puts the row behind the first line that begins like `after`, and what continues it."""
        path = root / name
        lines = path.read_text().split("\n")
        at = max(i for i, line in enumerate(lines) if line.strip().startswith(after))
        lines[at + 1:at + 1] = text.split("\n")
        path.write_text("\n".join(lines))
        self.edited.add(name)

    def add_kind(self, root):
        for folder in page("Folders of its own"):
            old, new = root / folder.replace("KIND", OLD), root / folder.replace("KIND", NEW)
            shutil.copytree(old, new)
            for path in list(new.iterdir()):
                path.write_text(renamed(path.read_text()))
                path.rename(path.with_name(renamed(path.name)))
        kinds = (root / "src/target/kinds.def").read_text()
        row = kinds[kinds.index(f"TN_KIND({OLD},"):kinds.index("#undef")].strip()
        self.edit(root, "src/target/kinds.def", '.forms = "cl")', renamed(row))
        self.edit(root, "src/target/targets.def", 'TN_GPU("generic", opencl', f'TN_GPU("generic", {NEW}, 256, 16384, 16384, 1, "")')
        self.edit(root, "src/driver/code_generators.cc", '#include "codegen/opencl', f'#include "codegen/{NEW}/emit.h"')
        self.edit(root, "src/driver/code_generators.cc", '{"opencl"',
                  f'    {{"{NEW}", Makes::kDeviceCode, codegen::MakeTwinclCode}},')
        self.edit(root, "include/tenon/devices.h", "X(opencl", f'  X({NEW}, "{NEW}", 99, 1) \\')
        self.edit(root, "src/runtime/device/drivers.def", "TN_DRIVER(opencl",
                  f"TN_DRIVER({NEW}, TENON_WITH_{NEW.upper()})")

    def run_in(self, root, *command, env=None):
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=env)
        self.assertEqual(0, done.returncode, f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout

    def test_a_copy_of_opencl_touches_what_the_page_lists(self):
        self.edited = set()
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            self.copy(root)
            self.add_kind(root)
            self.assertEqual(sorted(page("Files to edit")), sorted(self.edited))
            self.assertLessEqual(len(self.edited), MOST_EDITED)
            self.run_in(root, sys.executable, "scripts/check_layers.py")
            (root / "probe.cc").write_text(PROBE)
            with open(root / "CMakeLists.txt", "a") as build:
                build.write("add_executable(probe probe.cc)\ntarget_link_libraries(probe PRIVATE tn_target)\n")
            objects = [f"src/codegen/{NEW}/CMakeFiles/tn_codegen_{NEW}.dir/emit.cc.o",
                       f"src/codegen/{NEW}/CMakeFiles/tn_codegen_{NEW}.dir/language.cc.o",
                       "src/driver/CMakeFiles/tn_driver.dir/code_generators.cc.o",
                       f"src/runtime/CMakeFiles/tenon_runtime_static.dir/device/{NEW}/{NEW}.cc.o",
                       "src/runtime/CMakeFiles/tenon_runtime_static.dir/device/device.cc.o"]
            environment = dict(os.environ, CCACHE_BASEDIR=str(root), CCACHE_NOHASHDIR="1")
            self.run_in(root, "cmake", "-G", "Ninja", "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Debug",
                        "-DTENON_BUILD_TESTS=OFF", "-DCMAKE_CXX_FLAGS=-O0 -g0", "-DCMAKE_CXX_COMPILER=clang++-19",
                        "-DCMAKE_C_COMPILER=clang-19")
            self.run_in(root, "ninja", "-C", "build", "probe", *objects, env=environment)
            text = self.run_in(root, "build/bin/probe")
            self.assertEqual(f"{NEW} -max_threads_per_block=128 -host=llvm -mcpu=x86-64|{NEW}|{NEW}|99\n", text)


if __name__ == "__main__":
    unittest.main()
