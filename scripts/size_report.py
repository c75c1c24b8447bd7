#!/usr/bin/env python3
"""Prints lines of code per folder and warns of files and functions that have grown too long.

usage: size_report.py [--binaries BUILD_DIR]    with a build folder, the sizes of the products too

A file should stay below 500 lines and must end before 1,000; a function below 40 and before 80 (tables, *.def, are
exempt). What is over the second limit fails.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = {".h", ".hpp", ".c", ".cc", ".cpp", ".py", ".sh", ".def"}
FILE_SOFT, FILE_HARD = 500, 1000
FUNCTION_SOFT, FUNCTION_HARD = 40, 80

# clang-format puts a function's closing brace in the column of its first line, so indentation is enough to find ends. A
# name with an underscore behind it is a member that a constructor sets.
FUNCTION = re.compile(r"^(?P<indent>(?:  )*)(?!else|namespace|class|struct|enum|union|switch|if|for|while|do|return|extern|\w+_\()"
                      r"[A-Za-z_~].*\)[^;={]*\{$")


def tracked_files():
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listing.split("\0")):
        path = ROOT / name
        if (path.suffix in CODE or name == "build.sh") and path.is_file():
            yield pathlib.PurePath(name), path.read_text(encoding="utf-8", errors="replace").splitlines()


RAW_STRING = re.compile(r'R"(?P<mark>[^ ()\\]{0,16})\(')


def functions(lines):
    """(first line, length) of the functions of a C++ file, lambdas and local classes not counted on their own. Texts of
    other languages in raw strings have none."""
    start = raw_end = None
    for number, line in enumerate(lines, 1):
        if raw_end is not None:
            if raw_end not in line:
                continue
            raw_end = None
        elif (raw := RAW_STRING.search(line)) and f'){raw["mark"]}"' not in line[raw.end():]:
            raw_end = f'){raw["mark"]}"'
        elif start is None:
            match = FUNCTION.match(line)
            if match:
                start, closing = number, match["indent"] + "}"
        elif line.rstrip() in (closing, closing + ";"):
            yield start, number - start + 1
            start = None


def folder_of(name):
    parts = name.parts[:-1]
    return "/".join(parts[:3]) if parts else "."


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binaries")
    binaries = parser.parse_args().binaries

    folders = {}
    warnings, errors = [], []
    for name, lines in tracked_files():
        files, total = folders.get(folder_of(name), (0, 0))
        folders[folder_of(name)] = (files + 1, total + len(lines))
        if name.suffix != ".def" and len(lines) > FILE_SOFT:
            (errors if len(lines) >= FILE_HARD else warnings).append(f"{name}: {len(lines)} lines")
        if name.suffix in {".h", ".hpp", ".c", ".cc", ".cpp"}:
            for start, length in functions(lines):
                if length > FUNCTION_SOFT:
                    (errors if length >= FUNCTION_HARD else warnings).append(f"{name}:{start}: a function of {length} lines")

    print(f"{'folder':<40}{'files':>6}{'lines':>8}")
    for folder, (files, total) in sorted(folders.items()):
        print(f"{folder:<40}{files:>6}{total:>8}")
    print(f"{'total':<40}{sum(f for f, _ in folders.values()):>6}{sum(t for _, t in folders.values()):>8}")
    if binaries:
        for path in sorted(pathlib.Path(binaries).glob("lib/*.so")) + sorted(pathlib.Path(binaries).glob("bin/tenon*")):
            print(f"{str(path):<40}{path.stat().st_size:>14} bytes")
    for warning in warnings:
        print(f"long: {warning}")
    for error in errors:
        print(f"too long: {error}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
