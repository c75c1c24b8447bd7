#!/usr/bin/env python3
"""Follows docs/extending.md on toys, each a twin of something small.

What is edited and added is what the page names; the floors hold, and what the tables reach compiles, with every switch over
operators complete.
"""

import concurrent.futures
import fnmatch
import os
import re
import subprocess
import sys
import tempfile
import unittest

import toy_tree

FLAGS = ("-std=c++20 -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Werror -DFMT_SHARED "
         "-DTENON_VERSION=\"0\" -Isrc -Iinclude -Itools -Itest").split()

# Compiled once for all files: what most of them include.
COMMON = ("algorithm array cmath filesystem functional map memory numeric optional set span sstream string unordered_map "
          "unordered_set variant vector fmt/format.h").split()

TOY_IMPORTER = {
    "import.h": """#pragma once
#include <string>
#include "graph/graph.h"
#include "support/expected.h"
namespace tenon::toy {
/// A graph whose result is its input.
Expected<graph::Graph> ImportToy(const std::string& path);
}  // namespace tenon::toy
""",
    "import.cc": """#include "frontend/toy/import.h"
#include "graph/builder.h"
namespace tenon::toy {
Expected<graph::Graph> ImportToy(const std::string& path) {
  graph::Builder builder;
  builder.Output("y", builder.Input("x", graph::TensorType{DType::Float(32), {IndexConst(4)}}));
  return std::move(builder).Finish();
}
}  // namespace tenon::toy
"""}

TOY_VERB = """// tenon twin: says nothing.
#include <CLI/CLI.hpp>

#include "verbs.h"

namespace tenon::tools {

Run AddTwin(CLI::App& app, const Common& common) {
  app.add_subcommand("twin", "say nothing");
  return [] { return static_cast<int>(kDone); };
}

}  // namespace tenon::tools
"""


class ExtendingTest(toy_tree.ToyTree):

    def check_page(self, heading, sometimes=()):
        """Every file that was touched is named; every file that is named was touched, but for those for some cases only."""
        named = toy_tree.table("extending.md", heading)
        pattern = {path: re.sub(r"(?<![A-Z])(NAME|FOLDER)(?![A-Z])", "*", path) for path in named}
        touched = self.edited | self.added
        for file in touched:
            self.assertTrue(any(fnmatch.fnmatch(file, p) or file.startswith(p + "/") for p in pattern.values()),
                            f"the page does not name {file}")
        for path, p in pattern.items():
            used = any(fnmatch.fnmatch(file, p) or file.startswith(p + "/") for file in touched)
            self.assertTrue(used or path in sometimes, f"the page names {path}, which the toy does not need")

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.common = f"{folder.name}/common.pch"
        subprocess.run(["clang++-19", *FLAGS, "-x", "c++-header", "-", "-o", cls.common], check=True, text=True,
                       input="".join(f"#include <{name}>\n" for name in COMMON))

    def check_compiles(self, *files):
        def compile_one(file):
            return subprocess.run(["clang++-19", "-fsyntax-only", *FLAGS, "-include-pch", self.common, file], cwd=self.root,
                                  capture_output=True, text=True)
        with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            for file, done in zip(files, pool.map(compile_one, files)):
                self.assertEqual(0, done.returncode, f"{file}\n{done.stderr[-3000:]}")

    def twin(self, source, target, *words):
        """A copy of a file under another name, with words changed in it."""
        text = self.text(source)
        for old, new in words:
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.add(target, text)

    def test_an_operator(self):
        self.replace("src/graph/ops.def", 'TN_UNARY_OP(HardSwish, "hard_swish", UnaryFloat)\n',
                     'TN_UNARY_OP(HardSwish, "hard_swish", UnaryFloat)\nTN_UNARY_OP(Twin, "twin", Twin)\n')
        self.replace("src/graph/type_elementwise.cc", "}  // namespace tenon::graph::rules",
                     "Expected<TensorType> TypeTwin(const OpView& v) { return TypeUnaryFloat(v); }\n\n"
                     "}  // namespace tenon::graph::rules")
        self.edit("src/ops/define_elementwise.cc", "case OpKind::kRelu:", "    case OpKind::kTwin: return x + x;")
        self.edit("src/frontend/onnx/ops_elementwise.cc", '{"HardSwish"', '    {"Twin", 1, ImportUnary, OpKind::kTwin},')
        rules = [p for p in toy_tree.table("extending.md", "An operator") if "/type_" in p or "/define_" in p]
        self.check_page("An operator", sometimes=["src/graph/value_rules.cc", *rules])
        about_operators = [str(p.relative_to(self.root)) for p in (self.root / "src").rglob("*.cc")
                           if re.search(r"switch \(.*op\)", p.read_text()) and "OpKind::" in p.read_text()]
        self.check_compiles("src/graph/op.cc", "src/graph/infer.cc", "src/graph/type_elementwise.cc",
                            "src/frontend/onnx/ops_elementwise.cc", *about_operators)

    def test_an_algorithm(self):
        self.twin("src/ops/algorithm/rows.cc", "src/ops/algorithm/twin.cc", ("kRows", "kTwin"), ('"rows"', '"twin"'))
        self.edit("src/ops/algorithms.def", "TN_ALGORITHM(kRows)", "TN_ALGORITHM(kTwin)")
        self.check_page("An algorithm")
        self.check_compiles("src/ops/algorithm.cc", "src/ops/algorithm/twin.cc")

    def test_passes(self):
        words = ("Unroll(", "Twin("), ("loops/unroll.h", "loops/twin.h")
        self.twin("src/loop/pass/loops/unroll.h", "src/loop/pass/loops/twin.h", words[0])
        self.twin("src/loop/pass/loops/unroll.cc", "src/loop/pass/loops/twin.cc", *words)
        self.edit("src/loop/pass/passes.def", "TN_LOOP_PASS(Unroll", 'TN_LOOP_PASS(Twin, twin, "likewise")')
        self.edit("src/driver/pipeline.cc", '{"unroll"', '      {"twin", "likewise"},')
        self.add("test/text/loop_pass/loops/twin.test", "")
        words = ("EliminateDeadCode", "Twin"), ("graph/pass/dead_code.h", "graph/pass/twin.h")
        self.twin("src/graph/pass/dead_code.h", "src/graph/pass/twin.h", words[0])
        self.twin("src/graph/pass/dead_code.cc", "src/graph/pass/twin.cc", *words)
        self.edit("src/graph/pass/passes.def", "TN_GRAPH_PASS(EliminateDeadCode", 'TN_GRAPH_PASS(Twin, twin, "likewise")')
        self.edit("src/driver/graph_pipeline.cc", '{"dead_code"', '    {"twin", 0, "likewise"},')
        self.add("test/text/graph_pass/twin.test", "")
        # Their sources stand beside the headers that the page names.
        self.added -= {"src/loop/pass/loops/twin.cc", "src/graph/pass/twin.cc"}
        self.check_page("A pass", sometimes=["src/plan/NAME.h", "src/plan/passes.def", "test/text/plan"])
        self.check_compiles("src/loop/pass/pass.cc", "src/loop/pass/loops/twin.cc", "src/driver/pipeline.cc",
                            "src/graph/pass/pass.cc", "src/graph/pass/twin.cc", "src/driver/graph_pipeline.cc")

    def test_a_primitive(self):
        self.add("src/schedule/primitive/twin.cc", '#include "schedule/primitive/primitives.h"\n\nnamespace tenon::primitive {\n\n'
                 "Result Twin(State& s, const std::string& loop) { return Unroll(s, loop); }\n\n}  // namespace tenon::primitive\n")
        self.edit("src/schedule/primitive/primitives.h", "Result Unroll(", "Result Twin(State& s, const std::string& loop);")
        self.edit("src/schedule/primitives.def", "TN_PRIMITIVE(Unroll", 'TN_PRIMITIVE(Twin, "twin", false)')
        self.edit("src/schedule/schedule.h", "void Unroll(", "  void Twin(const std::string& loop);")
        self.edit("src/schedule/schedule.cc", "void Schedule::Unroll(",
                  'void Schedule::Twin(const std::string& loop) { Steps::Apply(*this, "twin", {loop}, 0); }')
        self.edit("include/tenon/ir.hpp", "void Unroll(", "  void Twin(const std::string& loop);")
        self.edit("src/api/ir.cc", "void IrSchedule::Unroll(",
                  'void IrSchedule::Twin(const std::string& loop) { Run(data_.get(), "twin", {loop}); }')
        self.edit("python/tenon/tir.py", 'self._s.apply("unroll"',
                  '\n    def twin(self, loop: str) -> None:\n        self._s.apply("twin", [loop])')
        self.add("test/text/schedule/twin.test", '// RUN: tenon-opt --replay -\n//> twin("i")\n')
        self.add("test/text/schedule/twin_refused.test", '// RUN: tenon-opt --replay -\n//> ! twin("z")\n')
        self.edit("test/fuzz/schedule/mover.cc", "void Unroll(Mover& m)", 'void Twin(Mover& m) { m.Try("twin", {m.Loop()}); }')
        self.edit("test/fuzz/schedule/mover.cc", '{"unroll", Unroll', '    {"twin", Twin, 1},')
        self.check_page("A primitive of schedules")
        self.check_compiles("src/schedule/run.cc", "src/schedule/schedule.cc", "src/schedule/primitive/twin.cc", "src/api/ir.cc",
                            "test/fuzz/schedule/mover.cc")
        self.run_in(sys.executable, "-c", "import pathlib, sys; sys.path.insert(0, 'scripts'); import primitive_table\n"
                                          "rows = primitive_table.primitive_rows(pathlib.Path('.'))\n"
                                          "assert any(row[0] == '`twin`' for row in rows)")

    def test_a_primitive_of_stages(self):
        self.edit("include/tenon/stage_primitives.def", "TN_STAGE_STEP_WAITS(\"tensorize\"",
                  'TN_STAGE_WAITS(PartitionEqual, "partition_equal", kParts, (const Loop& loop, const Number& parts), (loop, parts),\n'
                  '               "Consecutive loops of equal length.", nb::arg("var"), nb::arg("parts"))')
        self.add("test/text/stages/partition_equal.test", '// RUN: tenon-opt --stages -\n//> partition_equal("C", "i", 2)\n')
        self.check_page("A primitive of stages")
        self.add("twin.cc", '#include "tenon/schedule.hpp"\nvoid F(tenon::Stage s, tenon::te::IterVar i) { s.PartitionEqual(i, 2); }\n')
        self.check_compiles("src/stages/steps.cc", "twin.cc")
        self.run_in(sys.executable, "-c", "import pathlib, sys; sys.path.insert(0, 'scripts'); import primitive_table\n"
                                          "doors = primitive_table.python_doors(pathlib.Path('.'))\n"
                                          "assert 'te: partition_equal' in doors['partition_equal']")

    def test_a_front_end(self):
        for name, text in TOY_IMPORTER.items():
            self.add(f"src/frontend/toy/{name}", text)
        self.edit("src/CMakeLists.txt", "tenon_layer(onnx", "tenon_layer(toy frontend/toy tn_graph)")
        self.replace("scripts/check_layers.py", '    "src/frontend/onnx": ["src/graph"],\n',
                     '    "src/frontend/onnx": ["src/graph"],\n    "src/frontend/toy": ["src/graph"],\n')
        self.replace("scripts/check_layers.py", '"src/frontend/onnx", "src/codegen/*"',
                     '"src/frontend/onnx", "src/frontend/toy", "src/codegen/*"')
        self.replace("src/driver/CMakeLists.txt", "tn_onnx", "tn_onnx tn_toy")
        self.edit("src/driver/source.cc", '#include "frontend/onnx', '#include "frontend/toy/import.h"')
        self.edit("src/driver/source.cc", "Expected<graph::Program> ImportModel",
                  '  if (options.model.ends_with(".toy")) {\n'
                  "    TN_ASSIGN_OR_RETURN(graph::Graph g, toy::ImportToy(options.model));\n"
                  "    graph::Program program;\n"
                  "    program.parts.push_back(std::move(g));\n"
                  "    return program;\n"
                  "  }")
        self.add("test/unit/toy/import_test.cc", "")
        self.edit("test/CMakeLists.txt", "tenon_unit_test(onnx", "  tenon_unit_test(toy tn_toy)")
        self.add("test/fuzz/toy.cc", "")
        self.check_page("A front end")
        self.check_compiles("src/frontend/toy/import.cc", "src/driver/source.cc")
        self.run_in(sys.executable, "scripts/check_layers.py")

    def test_a_verb(self):
        self.add("tools/twin.cc", TOY_VERB)
        self.edit("tools/verbs.h", "Run AddInspect(", "Run AddTwin(CLI::App& app, const Common& common);")
        self.edit("tools/tenon.cc", '{"inspect"', '      {"twin", AddTwin(app, common)},')
        self.replace("tools/CMakeLists.txt", "report_page.cc run.cc", "report_page.cc run.cc twin.cc")
        self.edit("docs/command-line.md", "# ", "")
        self.check_page("A verb of the command line")
        self.check_compiles("tools/tenon.cc", "tools/twin.cc")


if __name__ == "__main__":
    unittest.main()
