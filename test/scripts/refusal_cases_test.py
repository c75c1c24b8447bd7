"""Every reason for a refusal has a case; and the script that says so finds what has none."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import refusal_cases  # noqa: E402

SOURCE = """
Result Split(State& s) {
  // return Because("this is a comment");
  if (a) return Because("loop " + name + " is too "
                        "long");
  if (b) return OfBlock(block.name, "it is " + std::string(c ? "here" : "there") + ", not both");
  std::string why = "it reads \\"nothing\\"";
  return Because(why);
}
"""
CASE = """// RUN: tenon-opt --replay -
//> ! split("i")
// EXPECT:
// error: split(i): loop i is too long
// error: split(i) of block B: it is here, not both
// error: split(i) of block B: it reads "nothing"
"""


class RefusalCases(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.write("src/schedule/primitives.def", 'TN_PRIMITIVE(Split, "split", false)\nTN_PRIMITIVE(Fuse, "fuse", false)\n')
        self.write("src/schedule/primitive/primitives.h", "// loops.cc\nResult Split(State& s);\n// fuse.cc\nResult Fuse(State& s);\n")
        self.write("src/schedule/primitive/loops.cc", SOURCE)
        self.write("test/text/schedule/split.test", CASE)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def missing(self):
        return [f"{r.place} {r.shown}" for r in refusal_cases.without_case(self.root)]

    def test_all_are_shown(self):
        self.assertEqual(len(refusal_cases.reasons(self.root)), 3)
        self.assertEqual(self.missing(), [])

    def test_names_what_is_not_shown(self):
        self.write("test/text/schedule/split.test", CASE.replace("too long", "too short"))
        self.assertEqual(self.missing(), ["loops.cc:4 loop … is too long"])

    def test_another_primitive_does_not_show_it(self):
        self.write("test/text/schedule/split.test", CASE.replace("split(i): loop", "fuse(i): loop"))
        self.assertEqual(self.missing(), ["loops.cc:4 loop … is too long"])

    def test_what_files_share_any_primitive_shows(self):
        self.write("src/dependence/body.cc", SOURCE)
        self.write("src/schedule/primitive/loops.cc", "")
        self.write("test/text/schedule/split.test", CASE.replace("split(i): loop", "fuse(i): loop"))
        self.assertEqual(self.missing(), [])

    def test_unit_tests_show_too(self):
        self.write("src/dependence/body.cc", SOURCE)
        self.write("src/schedule/primitive/loops.cc", "")
        self.write("test/text/schedule/split.test", CASE.replace("too long", "too short"))
        self.write("test/unit/schedule/a_test.cc", 'ExpectError(s, "split(i): loop i is "\n            "too long");')
        self.assertEqual(self.missing(), [])

    def test_of_this_project(self):
        self.assertEqual([f"{r.place}: no case shows: {r.shown}" for r in refusal_cases.without_case(ROOT)], [])


if __name__ == "__main__":
    unittest.main()
