#!/usr/bin/env python3
"""Every reason that src/schedule, and src/dependence below it, give for a refusal, and the case that shows it.

    scripts/refusal_cases.py

A reason is what stands in the source as the argument of Because, OfBlock, MakeError or Fault, or as the value of `why`: its
literal parts, with anything between. What a primitive's own file says must be in what a text case expects of that primitive;
what is said by files that several share, in what any case expects; and what no trace can bring about, in a unit test.
Reasons without a case are printed, and make the status 1.
"""
import dataclasses
import pathlib
import re
import sys

SOURCES = "src/schedule"
BELOW = "src/dependence"
CASES = "test/text/schedule"
UNITS = "test/unit/schedule"
MAKERS = re.compile(r"\b(?:Because|OfBlock|MakeError|Fault)\(|\bwhy = ")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
LITERAL = re.compile(r'(?:std::string\()?"((?:[^"\\]|\\.)*)"\)?')


@dataclasses.dataclass
class Reason:
    place: str  # file:line
    shown: str  # with … for what is not literal
    pattern: re.Pattern
    primitives: list  # whose messages may show it; empty: all


def argument(text: str, at: int) -> str:
    """The source from `at` to the end of the arguments, or of the statement, that it is in."""
    depth, i = 0, at
    while i < len(text):
        if text[i] == '"':
            i = STRING.match(text, i).end()
            continue
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[i], 0)
        if depth < 0 or (depth == 0 and text[i] == ";"):
            break
        i += 1
    return text[at:i]


def parts_of(source: str) -> list:
    """The literal parts at the outermost level of a concatenation, in order; None stands for anything."""
    out, i, depth = [], 0, 0
    while i < len(source):
        match = LITERAL.match(source, i) if depth == 0 else None
        if match:
            text = re.sub(r"\\(.)", r"\1", match.group(1))
            if out and out[-1] is not None:
                out[-1] += text
            else:
                out.append(text)
            i = match.end()
            continue
        depth += {"(": 1, ")": -1}.get(source[i], 0)
        if not source[i].isspace() and source[i] != "+" and (not out or out[-1] is not None):
            out.append(None)
        i += 1
    return out


def primitives_of_files(root: pathlib.Path) -> dict:
    """The primitives that a file alone defines, as primitives.h groups them."""
    rows = re.findall(r'^TN_PRIMITIVE\((\w+), "(\w+)"', (root / SOURCES / "primitives.def").read_text(), re.M)
    names, out, file = dict(rows), {}, ""
    for line in (root / SOURCES / "primitive" / "primitives.h").read_text().splitlines():
        match = re.match(r"// (\w+\.cc)$", line)
        file = match.group(1) if match else file
        match = re.match(r"Result (\w+)\(", line)
        if match and match.group(1) in names:
            out.setdefault(file, []).append(names[match.group(1)])
    return out


def reasons(root: pathlib.Path) -> list:
    out, owners = [], primitives_of_files(root)
    for path in sorted([*(root / SOURCES).rglob("*.cc"), *(root / BELOW).glob("*.cc")]):
        text = re.sub(r"(?m)^[ \t]*//.*$", "", path.read_text())
        for match in MAKERS.finditer(text):
            parts = parts_of(argument(text, match.end()))
            if not any(part and re.search("[a-z]{2}", part) for part in parts):
                continue  # it passes on what another one says
            line = text[:match.start()].count("\n") + 1
            pattern = re.compile(".*".join("" if part is None else re.escape(part) for part in parts))
            out.append(Reason(f"{path.name}:{line}", "".join(part or "…" for part in parts), pattern,
                              owners.get(path.name, [])))
    return out


def messages(root: pathlib.Path) -> list:
    """What the cases expect to be said, and the strings of unit tests."""
    out = []
    for path in sorted((root / CASES).rglob("*.test")):
        expected = path.read_text().split("// EXPECT:")[-1]
        out += [line.removeprefix("// error: ") for line in expected.splitlines() if "error: " in line]
    for path in sorted((root / UNITS).glob("*.cc")):
        joined = re.sub(r'"\s*\n\s*"', "", path.read_text())
        out += [re.sub(r"\\(.)", r"\1", text[1:-1]) for text in STRING.findall(joined)]
    return out


def without_case(root: pathlib.Path) -> list:
    said = messages(root)

    def shows(reason: Reason, message: str) -> bool:
        own = not reason.primitives or message.partition("(")[0] in reason.primitives
        return own and reason.pattern.search(message) is not None

    return [reason for reason in reasons(root) if not any(shows(reason, message) for message in said)]


def main() -> int:
    missing = without_case(pathlib.Path(__file__).resolve().parent.parent)
    for reason in missing:
        print(f"{reason.place}: no case shows: {reason.shown}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
