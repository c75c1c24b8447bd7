#!/usr/bin/env python3
"""Tests of scripts/run_text_tests.py, with a tool made on the spot."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

RUNNER = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "run_text_tests.py"

# Numbers its input lines, lists its folder and its arguments, complains when told to.
TOOL = """#!/bin/bash
if [[ $1 == fail ]]; then echo "line 4: bad $2" >&2; exit 1; fi
if [[ $1 == beside ]]; then cat "$2"; exit; fi
cat -n | grep '[a-z]'
"""


class RunnerTest(unittest.TestCase):

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.directory.name)
        tool = self.root / "bin" / "tool"
        tool.parent.mkdir()
        tool.write_text(TOOL)
        tool.chmod(0o755)

    def tearDown(self):
        self.directory.cleanup()

    def run_on(self, text, *options):
        path = self.root / "case.test"
        path.write_text(text)
        result = subprocess.run([sys.executable, RUNNER, "--build", self.root, *options, path],
                                capture_output=True, text=True)
        return result.returncode, result.stdout, path.read_text()

    def test_passes_on_equal_output_up_to_blanks(self):
        status, _, _ = self.run_on("// RUN: tool\n// PROVES: x\n\nabc\n// EXPECT:\n\n     4\tabc   \n\n")
        self.assertEqual(status, 0)

    def test_fails_on_other_output_and_says_how(self):
        status, out, _ = self.run_on("// RUN: tool\n// PROVES: x\nabc\n// EXPECT:\nabd\n")
        self.assertEqual(status, 1)
        self.assertIn("-abd", out)
        self.assertIn("0 of 1 text tests passed", out)

    def test_compares_exit_status_and_stderr(self):
        good = "// RUN: tool fail {tmp}\n// EXIT: 1\n// PROVES: x\n// EXPECT:\n// STDERR:\nline 4: bad {tmp}\n"
        self.assertEqual(self.run_on(good)[0], 0)
        self.assertEqual(self.run_on(good.replace("// EXIT: 1\n", ""))[0], 1)
        self.assertEqual(self.run_on(good.replace("line 4", "line 5"))[0], 1)
        self.assertEqual(self.run_on(good.split("// STDERR:")[0])[0], 1)

    def test_runs_beside_its_file(self):
        (self.root / "other").write_text("hello\n")
        self.assertEqual(self.run_on("// RUN: tool beside other\n// PROVES: x\n// EXPECT:\nhello\n")[0], 0)

    def test_rebase_writes_outputs_but_not_the_exit_status(self):
        status, _, text = self.run_on("// RUN: tool\n// PROVES: x\nabc\n// EXPECT:\n", "--rebase")
        self.assertEqual(status, 0)
        self.assertEqual(text, "// RUN: tool\n// PROVES: x\nabc\n// EXPECT:\n     3\tabc\n")
        self.assertEqual(self.run_on(text)[0], 0)
        status, _, text = self.run_on("// RUN: tool fail x\n// PROVES: x\n// EXPECT:\n", "--rebase")
        self.assertEqual(status, 1)
        self.assertNotIn("line 4", text)

    def test_refuses_malformed_tests(self):
        for text in ("// RUN: tool\nabc\n// EXPECT:\n", "// RUN: tool\n// PROVES: x\n// EXIT: y\n// EXPECT:\n",
                     "// RUN: none\n// PROVES: x\n// EXPECT:\n", "abc\n"):
            self.assertEqual(self.run_on(text)[0], 1, text)


if __name__ == "__main__":
    unittest.main()
