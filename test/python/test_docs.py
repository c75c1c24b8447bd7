"""The Python snippets of docs/tensor-expressions.md run as they stand, one after the other."""

import os
import pathlib
import re
import tempfile
import unittest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "tensor-expressions.md"


class Snippets(unittest.TestCase):
    def test_they_run(self):
        snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
        self.assertGreater(len(snippets), 3)
        names = {}
        with tempfile.TemporaryDirectory() as folder:
            before = os.getcwd()
            os.chdir(folder)
            try:
                for snippet in snippets:
                    exec(compile(snippet, str(PAGE), "exec"), names)  # pylint: disable=exec-used
            finally:
                os.chdir(before)
        self.assertEqual(names["z"].tolist(), [2.0] * 1000)
        self.assertEqual(names["u"].get_extent("R.i.1"), 8)


if __name__ == "__main__":
    unittest.main()
