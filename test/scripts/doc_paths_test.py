#!/usr/bin/env python3
"""Every file and folder that a page names is there, and every link between pages leads somewhere."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOPS = "bench cmake docs examples include python scripts src test tools".split()
SUFFIXES = "c cc cmake def h hpp in.md md py sh test tn txt".split()
# A path in code: it begins with a folder of the tree, or ends like a source.
PATH = re.compile(r"^[\w.*{},…-]+(?:/[\w.*{},…-]+)*/?$")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")


def pages():
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, check=True, capture_output=True,
                           text=True).stdout.split()
    return [name for name in names if (ROOT / name).is_file()]


def is_path(text):
    if "/" not in text or not PATH.match(text):
        return False
    return text.split("/")[0] in TOPS or text.endswith(tuple("." + s for s in SUFFIXES))


def patterns(text):
    """A path as patterns: {a,b} is both, a word in capitals stands for any name."""
    braces = re.search(r"\{([^{}]*)\}", text)
    if braces:
        return [p for choice in braces.group(1).split(",")
                for p in patterns(text[:braces.start()] + choice + text[braces.end():])]
    return [re.sub(r"(?!README)(?<![A-Z])[A-Z]{3,}(?![A-Z])|…", "*", text.rstrip("/"))]


def exists(pattern, folder):
    """From the root; as sources and programs include; or from the page's own folder."""
    for base in (ROOT, ROOT / "src", ROOT / "include", ROOT / "include/tenon/compat", ROOT / folder):
        if any(base.glob(pattern)) if "*" in pattern else (base / pattern).exists():
            return True
    return False


def problems(name, text):
    folder = str(pathlib.PurePath(name).parent)
    out = []
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for link in LINK.findall(outside):
        target = link.split("#")[0]
        if target and "://" not in target and not (ROOT / folder / target).exists():
            out.append(f"{name}: no {link}")
    for code in CODE.findall(outside):
        if is_path(code):
            out += [f"{name}: no {code}" for pattern in patterns(code) if not exists(pattern, folder)]
    return out


class DocPathsTest(unittest.TestCase):

    def test_paths_and_links_of_all_pages(self):
        found = [problem for name in pages() for problem in problems(name, (ROOT / name).read_text())]
        self.assertEqual([], found, "\n".join(["", *found]))

    def test_what_is_not_there_is_found(self):
        self.assertEqual([], problems("docs/x.md", "`src/ops/algorithm.h`, `ops/algorithm.h`, [a](README.md), `src/codegen/KIND`,"
                                                   " `src/{ops,plan}`, `a/b`, `n/2`, [b](https://x.y/z)"))
        for text in ("`src/ops/no.h`", "`ops/no.h`", "[a](no.md)", "`src/codegen/KIND/no.cc`", "`src/{ops,no}`", "`test/no/`"):
            self.assertEqual(1, len(problems("docs/x.md", text)), text)


if __name__ == "__main__":
    unittest.main()
