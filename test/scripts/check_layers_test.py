#!/usr/bin/env python3
"""Tests of scripts/check_layers.py on a small tree of its own."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import check_layers  # noqa: E402


class CheckLayersTest(unittest.TestCase):

    def check(self, files, ghosts=False):
        errors = []
        with tempfile.TemporaryDirectory() as directory:
            root = check_layers.ROOT
            check_layers.ROOT = pathlib.Path(directory)
            try:
                for name, text in files.items():
                    path = check_layers.ROOT / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text)
                edges, row_edges = check_layers.check_includes(errors)
                check_layers.check_cycles(edges, errors)
                if ghosts:
                    check_layers.check_ghosts(row_edges, errors)
                check_layers.check_cmake(errors)
            finally:
                check_layers.ROOT = root
        return errors

    def test_edges_of_the_table_are_allowed(self):
        self.assertEqual([], self.check({
            "src/ir/a.h": '#include <vector>\n#include <fmt/format.h>\n',
            "src/loop/b.h": '#include "ir/a.h"\n',
            "src/graph/op.h": "",
            "src/graph/pass/c.cc": '#include "graph/op.h"\n',
            "include/tenon/c_api.h": "",
            "src/runtime/d.cc": '#include "tenon/c_api.h"\n',
        }))

    def test_other_edges_are_not(self):
        for files in ({"src/ir/a.h": '#include "loop/b.h"\n', "src/loop/b.h": ""},
                      {"src/graph/pass/a.h": '#include "ops/b.h"\n', "src/ops/b.h": ""},
                      {"src/runtime/a.h": '#include "support/b.h"\n', "src/support/b.h": ""},
                      {"src/runtime/a.h": "#include <fmt/format.h>\n"},
                      {"src/ir/a.h": "#include <llvm/IR/IRBuilder.h>\n"},
                      {"src/ir/a.h": '#include "b.h"\n', "src/ir/b.h": ""},
                      {"src/nowhere/a.h": ""}):
            self.assertEqual(1, len(self.check(files)), files)

    def test_cycles_inside_a_row_are_found(self):
        errors = self.check({"src/runtime/a.h": '#include "runtime/core/b.h"\n',
                             "src/runtime/core/b.h": '#include "runtime/a.h"\n'})
        self.assertEqual(1, len(errors))
        self.assertIn("cycle src/runtime -> src/runtime/core -> src/runtime", errors[0])

    def test_cmake_has_the_same_edges(self):
        self.assertEqual([], self.check({"src/CMakeLists.txt": "tenon_layer(target target tn_support)\n"
                                                               "tenon_layer(ir ir tn_support)\n"
                                                               "tenon_layer(cost cost tn_ir tn_target)\n"}))
        self.assertEqual(1, len(self.check({"src/CMakeLists.txt": "tenon_layer(target target tn_support)\n"
                                                                  "tenon_layer(cost cost tn_support)\n"})))

    def test_edges_that_nobody_uses_are_found(self):
        table, kinds = check_layers.LAYERS, check_layers.KIND_OF
        check_layers.LAYERS = {"src/support": [], "src/ir": [], "src/arith": ["src/ir"], "src/codegen": ["src/ir"],
                               "src/codegen/a": ["src/codegen"], "src/codegen/b": ["src/codegen"]}
        check_layers.KIND_OF = {"src/codegen/a": "src/codegen/*", "src/codegen/b": "src/codegen/*"}
        files = {"src/support/s.h": "", "src/ir/i.h": "", "src/arith/a.h": '#include "ir/i.h"\n',
                 "src/codegen/c.h": '#include "ir/i.h"\n', "src/codegen/a/x.cc": '#include "codegen/c.h"\n',
                 "src/codegen/b/y.cc": ""}
        try:
            self.assertEqual([], self.check(files, ghosts=True))
            self.assertEqual(["LAYERS: nothing in src/arith includes src/ir"],
                             self.check(files | {"src/arith/a.h": ""}, ghosts=True))
            self.assertEqual(["LAYERS: nothing in src/codegen/* includes src/codegen"],
                             self.check(files | {"src/codegen/a/x.cc": ""}, ghosts=True))
            del files["src/support/s.h"]
            self.assertEqual(["LAYERS: no file belongs to src/support"], self.check(files, ghosts=True))
        finally:
            check_layers.LAYERS, check_layers.KIND_OF = table, kinds


if __name__ == "__main__":
    unittest.main()
