"""A copy of the sources to which a test adds a toy, as a page of docs/ says it; and what the page says."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPIED = ["src", "include", "cmake", "scripts", "tools", "python", "examples", "test/unit", "test/support", "test/text/schedule",
          "test/fuzz/schedule", "test/CMakeLists.txt", "docs/command-line.md", "CMakeLists.txt"]


def section(page, heading):
    return (ROOT / "docs" / page).read_text().split(f"## {heading}\n")[1].split("\n## ")[0]


def table(page, heading):
    """The paths in the tables under a heading; the last column says what they hold and is no place for them."""
    rows = re.findall(r"^\|(.*)\|[^|]*\|$", section(page, heading), re.MULTILINE)
    return [path for path in re.findall(r"`([^`\s]+)`", "\n".join(rows)) if "/" in path]


class ToyTree(unittest.TestCase):
    """self.root is the copy; `edited` and `added` are the files that a test has changed in it and put there."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.edited, self.added = set(), set()
        files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *COPIED], cwd=ROOT, check=True,
                               capture_output=True, text=True).stdout.split("\n")
        for name in filter(None, files):
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)

    def text(self, name):
        return (self.root / name).read_text()

    def edit(self, name, after, text):
        """Puts the text behind the last line that begins like `after`, blanks aside."""
        lines = self.text(name).split("\n")
        at = max(i for i, line in enumerate(lines) if line.strip().startswith(after))
        lines[at + 1:at + 1] = text.split("\n")
        (self.root / name).write_text("\n".join(lines))
        self.edited.add(name)

    def replace(self, name, old, new):
        self.assertEqual(1, self.text(name).count(old), f"{name}: {old}")
        (self.root / name).write_text(self.text(name).replace(old, new))
        self.edited.add(name)

    def add(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)
        self.added.add(name)

    def run_in(self, *command, env=None):
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, env=env)
        self.assertEqual(0, done.returncode, f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout
