#!/usr/bin/env python3
"""Runs text tests: files that hold a command, its input and what it must answer.

usage: run_text_tests.py [--build DIR] [--rebase] [--jobs N] PATH…

A test is a file whose first line is a RUN key; other files are left alone. PATHs are tests or folders of them.

    // RUN: tenon-opt --passes=simplify
    // EXIT: 1                             (optional; 0 unless said)
    // PROVES: one sentence that says what the case shows
    …the command's standard input…
    // EXPECT:
    …its whole standard output…
    // STDERR:                             (optional: without it nothing may be said there)
    …its whole standard error…

The command is a tool of DIR/bin with arguments as a shell would split them. It runs in the test's folder, so that it can
name files beside it. `{tmp}` in its arguments is an empty folder that goes away afterwards; in what it prints, that
folder's path reads `{tmp}` again. What the tool caches goes there too. The input keeps its line numbers (the keys become
empty lines), so places in diagnostics are places in the test. Outputs are compared without trailing blanks and without
empty lines at both ends.

--rebase writes the actual outputs into the files. It never changes the exit status that a test expects.
"""

import argparse
import concurrent.futures
import dataclasses
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

KEY = re.compile(r"^// (RUN|EXIT|PROVES): *(.*)$")
SECTIONS = {"// EXPECT:": "stdout", "// STDERR:": "stderr"}
TIMEOUT_SECONDS = 120


class BadTest(Exception):
    """The file is not a well-formed test."""


@dataclasses.dataclass
class Test:
    path: pathlib.Path
    head: list  # the lines up to the first section, as they are
    keys: dict
    expected: dict  # section -> text

    @classmethod
    def read(cls, path):
        head, keys, sections, section = [], {}, {}, None
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.rstrip() in SECTIONS:
                section = SECTIONS[line.rstrip()]
                if section in sections:
                    raise BadTest(f"two sections '{line.rstrip()}'")
                sections[section] = []
            elif section:
                sections[section].append(line)
            else:
                head.append(line)
        for line in head:
            match = KEY.match(line)
            if not match:
                break
            if match[1] in keys:
                raise BadTest(f"two keys '{match[1]}'")
            keys[match[1]] = match[2].strip()
        for key in ("RUN", "PROVES"):
            if not keys.get(key):
                raise BadTest(f"expected a key '// {key}:'")
        if not keys.get("EXIT", "0").isdigit():
            raise BadTest(f"expected a number after '// EXIT:' but got '{keys['EXIT']}'")
        return cls(path, head, keys, {name: normal("\n".join(lines)) for name, lines in sections.items()})

    @property
    def exit_status(self):
        return int(self.keys.get("EXIT", "0"))

    def input(self):
        body = [""] * len(self.keys) + self.head[len(self.keys):]
        return "\n".join(body) + "\n"

    def rewrite(self, actual):
        while self.head and not self.head[-1].strip():
            self.head.pop()
        text = "\n".join(self.head) + "\n// EXPECT:\n" + (actual["stdout"] + "\n" if actual["stdout"] else "")
        if actual["stderr"]:
            text += "// STDERR:\n" + actual["stderr"] + "\n"
        self.path.write_text(text, encoding="utf-8")


# A sanitizer's remarks, on an allocation that fails, as it fails without sanitizers, and on stacks that change: no output
# of the tool.
SANITIZER_REMARK = re.compile(r"^==\d+==WARNING: (AddressSanitizer failed to allocate|ASan doesn't fully support makecontext).*\n?",
                              re.MULTILINE)


def normal(text):
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def run_command(test, bin_dir):
    """The exit status and the two outputs of a test's command."""
    words = shlex.split(test.keys["RUN"])
    tool = bin_dir / words[0]
    if not tool.is_file():
        raise BadTest(f"there is no tool '{tool}'")
    with tempfile.TemporaryDirectory(prefix="tenon-test-") as tmp:
        result = subprocess.run(
            [str(tool)] + [word.replace("{tmp}", tmp) for word in words[1:]],
            input=test.input().encode(), capture_output=True, cwd=test.path.parent, timeout=TIMEOUT_SECONDS,
            env={**os.environ, "TENON_CACHE_DIR": f"{tmp}/cache"})

        def clean(data):
            text = data.decode("utf-8", errors="backslashreplace").replace(tmp, "{tmp}")
            return normal(SANITIZER_REMARK.sub("", text))

        return result.returncode, {"stdout": clean(result.stdout), "stderr": clean(result.stderr)}


def run_test(path, bin_dir, rebase):
    """What is wrong with a test, as text; empty when it passes."""
    try:
        test = Test.read(path)
        status, actual = run_command(test, bin_dir)
    except BadTest as error:
        return str(error)
    except subprocess.TimeoutExpired:
        return f"no end after {TIMEOUT_SECONDS} seconds"
    problem = ""
    if status != test.exit_status:
        problem += f"expected exit status {test.exit_status} but got {status}\n"
        if rebase:
            return problem + actual["stderr"]
    if rebase:
        if any(actual[name] != test.expected.get(name, "") for name in actual):
            test.rewrite(actual)
        return ""
    for name, text in actual.items():
        expected = test.expected.get(name, "")
        if text != expected:
            diff = difflib.unified_diff(expected.split("\n"), text.split("\n"), f"expected {name}", f"actual {name}",
                                        lineterm="")
            problem += "\n".join(diff) + "\n"
    return problem


def is_test(path):
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(7) == b"// RUN:"


def find_tests(paths):
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if is_test(p))
        elif is_test(path):
            yield path
        else:
            sys.exit(f"run_text_tests: expected a folder or a test but got '{path}'")


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n", 2)[1].removeprefix("usage: "))
    parser.add_argument("--build", type=pathlib.Path, default=root / "build")
    parser.add_argument("--rebase", action="store_true")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    options = parser.parse_args()

    tests = [path.resolve() for path in find_tests(options.paths)]
    bin_dir = options.build.resolve() / "bin"
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        problems = list(pool.map(lambda path: run_test(path, bin_dir, options.rebase), tests))
    failed = 0
    for path, problem in zip(tests, problems):
        if problem:
            failed += 1
            print(f"FAILED {os.path.relpath(path)}\n{problem.rstrip()}\n")
    print(f"{len(tests) - failed} of {len(tests)} text tests passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
