"""The table of primitives finds what is there, and says which cell is empty."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import primitive_table  # noqa: E402

CASE = """// RUN: tenon-opt --replay -
//> i.0, i.1 = split("i", [-1, 8])
//> ! a, b = split("z", [2, 2])
//> 4 = decide("f", [4], 4)
//> ! 4 = decide("f", [4], 5)
//> 4 = sample_categorical("g", [4], [1.0])
//> ! 4 = sample_categorical("g", [], [])
//> 4 = sample_perfect_tile("t", "i", 1, 4)
//> ! 4 = sample_perfect_tile("t", "z", 1, 4)
"""
HEADER = """class TN_API IrSchedule {
 public:
  Names Split(const std::string& loop, const Values& factors);
  int64_t Decide(const std::string& name);
  int64_t SampleCategorical(const std::string& name);
  std::vector<int64_t> SamplePerfectTile(const std::string& name);
};
"""
PYTHON = "class Schedule:\n" + "".join(
    f"    def {name}(self, x):\n        pass\n" for name in ("split", *primitive_table.CHOICES))


class PrimitiveTable(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.write("src/schedule/primitives.def", 'TN_PRIMITIVE(Split, "split", false)\n')
        self.write("test/text/schedule/split.test", CASE)
        self.write("include/tenon/ir.hpp", HEADER)
        self.write("python/tenon/tir.py", PYTHON)
        self.write("python/src/schedules.cc", '  stage.def("_split", &Split);\n')
        self.write("python/tenon/te.py", "Stage.split = _split\n")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def test_finds_what_is_there(self):
        case = "[split](../test/text/schedule/split.test)"
        self.assertEqual(primitive_table.primitive_rows(self.root)[0], [
            "`split`", case, case, '`i.0, i.1 = split("i", [-1, 8])`', "`IrSchedule::Split`",
            "`tir.Schedule.split`, `te: split`"
        ])

    def test_names_an_empty_cell(self):
        for path, text, cell in (("include/tenon/ir.hpp", HEADER.replace("Split", "Cut"), "split has nothing under 'C++'"),
                                 ("test/text/schedule/split.test", CASE.replace("! a, b", "a, b"),
                                  "split has nothing under 'refused'")):
            with self.subTest(cell=cell):
                self.setUp()
                self.write(path, text)
                with self.assertRaisesRegex(primitive_table.EmptyCells, cell.replace("+", r"\+")):
                    primitive_table.primitive_rows(self.root)


if __name__ == "__main__":
    unittest.main()
