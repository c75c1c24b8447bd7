"""The Python snippets of some pages run as they stand, those of a page one after the other."""

import os
import pathlib
import re
import tempfile
import unittest

DOCS = pathlib.Path(__file__).parents[2] / "docs"


def run(page):
    """The names that the snippets of a page leave behind, and how many snippets there are."""
    snippets = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S)
    names = {}
    with tempfile.TemporaryDirectory() as folder:
        before = os.getcwd()
        os.chdir(folder)
        try:
            for snippet in snippets:
                exec(compile(snippet, page, "exec"), names)  # pylint: disable=exec-used
        finally:
            os.chdir(before)
    return names, len(snippets)


NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


class Counts(unittest.TestCase):
    def test_steps_of_programs(self):
        """How many steps a page says that an example has."""
        examples = DOCS.parent / "examples" / "tensor_expressions"
        for example, page, said in (
            ("matmul", "tensor-expressions.md", r"`matmul.py`, which makes a matrix product fast in\s+(\w+) steps"),
            ("matmul", "tutorial.md", r"`matmul` \| .* in (\w+) steps"),
            ("convolution", "tutorial.md", r"`convolution` \| .* in (\w+) steps"),
        ):
            steps = re.search(r"^STEPS = \[(.*?)\]", (examples / f"{example}.py").read_text(), re.S | re.M)[1]
            words = re.search(said, (DOCS / page).read_text())[1]
            self.assertEqual(NUMBERS.index(words), len(re.findall(r"\w+", steps)), f"{page}: {words} steps of {example}")


class Snippets(unittest.TestCase):
    def test_tensor_expressions(self):
        names, count = run("tensor-expressions.md")
        self.assertGreater(count, 3)
        self.assertEqual(names["z"].tolist(), [2.0] * 1000)
        self.assertEqual(names["u"].get_extent("R.i.1"), 8)
        self.assertEqual(names["sums"].numpy().tolist(), [2, 4, 6, 8])

    def test_gpus(self):
        names, count = run("gpu.md")
        self.assertEqual(count, 1)
        self.assertIn("atomic", names["histogram"].get_source())
        if not names["device"].exist:
            self.skipTest("no OpenCL device here")
        counted = [int((names["values"] == i).sum()) for i in range(64)]
        self.assertEqual(names["counts"].numpy().tolist(), counted)

    def test_operations_of_gpus(self):
        names, count = run("gpu-operations.md")
        self.assertEqual(count, 1)
        source = names["product"].get_source()
        for operation in ("mma.sync.aligned.m16n8k16", "ldmatrix.sync.aligned.m8n8.x4.trans", "cp.async.wait_group 1"):
            self.assertIn(operation, source)
        # What a bare target lacks is named, with what has it.
        for target in ("cuda", "cuda -arch=sm_70"):
            with self.assertRaisesRegex(ValueError, r"'ptx.mma.m16n8k16.f16', an operation .* does not have: it needs sm_80 \(target cuda -arch=sm_80\)"):
                names["tenon"].build(names["s"], [names["A"], names["B"], names["C"]], target)
        # Registers have no addresses.
        self.assertRegex(source, r"#pragma unroll\n *for .*\n *#pragma unroll\n *for .*\n *ptx_mma_m16n8k16_f16")


if __name__ == "__main__":
    unittest.main()
