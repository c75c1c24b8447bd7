"""The table of schedule primitives: where each is shown to be legal and to be refused, and its doors in C++ and Python.

Read from the table of primitives, the text cases, the public headers and the Python package; make_architecture.py puts it
into docs/schedules.md. A cell that would be empty is an error that names it.
"""
import pathlib
import re

CASES = "test/text/schedule"
CHOICES = ("decide", "sample_categorical", "sample_perfect_tile")  # steps of traces that no row of the table has
HEAD = ["primitive", "legal", "refused", "trace", "C++", "Python"]


class EmptyCells(Exception):
    """The message lists them."""


def primitive_names(root: pathlib.Path) -> list:
    rows = re.findall(r'^TN_PRIMITIVE\(\w+, "(\w+)"', (root / "src/schedule/primitives.def").read_text(), re.M)
    return rows + list(CHOICES)


def steps_of_cases(root: pathlib.Path) -> list:
    """(case, primitive, step, refused?) for every step that a text case's trace has, in the order of names."""
    out = []
    for path in sorted((root / CASES).rglob("*.test"), key=lambda p: p.name):
        for line in path.read_text().splitlines():
            match = re.match(r"//>\s*(!?)\s*((?:[^\"(]*=\s*)?(\w+)\(.*)$", line)
            if match:
                out.append((path, match.group(3), match.group(2), bool(match.group(1))))
    return out


def best_step(steps: list, primitive: str, refused: bool) -> tuple:
    """Of the steps of this kind the one whose case is called after the primitive; (None, "") where there is none."""
    own = [(case, step) for case, name, step, no in steps if name == primitive and no == refused]
    wanted = [f"{primitive}_refused", primitive] if refused else [primitive]
    for name in wanted:
        for case, step in own:
            if case.stem == name:
                return case, step
    return own[0] if own else (None, "")


def camel(primitive: str) -> str:
    return "RFactor" if primitive == "rfactor" else "".join(part.title() for part in primitive.split("_"))


def methods(text: str) -> set:
    """Class::Method of a header that is written as ours are."""
    out, owner = set(), ""
    for line in text.splitlines():
        match = re.match(r"class (?:TN_API )?(\w+) ", line)
        owner = match.group(1) if match else "" if line == "};" else owner
        match = re.match(r"  (?:[\w:<>, ]+[ >&*])(\w+)\(", line)
        if owner and match:
            out.add(f"{owner}::{match.group(1)}")
    return out


def stage_rows(root: pathlib.Path) -> list:
    """(method in C++, name) of the primitives of stages whose forms follow from their rows."""
    path = root / "include/tenon/stage_primitives.def"
    return re.findall(r'^TN_STAGE_(?:WAITS|DOES)\((\w+), "(\w+)"', path.read_text() if path.exists() else "", re.M)


def cpp_doors(root: pathlib.Path) -> dict:
    doors = {method: [f"Stage::{method}"] for method, _ in stage_rows(root)}
    for path in sorted((root / "include/tenon").glob("*.hpp")):
        for method in methods(path.read_text()):
            owner, name = method.split("::")
            if owner in ("IrSchedule", "Schedule", "Stage"):
                doors.setdefault(name, []).append(method)
    return {name: sorted(found) for name, found in doors.items()}


def python_doors(root: pathlib.Path) -> dict:
    doors = {}
    for name in re.findall(r"^    def (\w+)\(self", (root / "python/tenon/tir.py").read_text(), re.M):
        doors.setdefault(name, []).append(f"tir.Schedule.{name}")
    bound = re.findall(r'\.def\(\s*"(\w+)"', (root / "python/src/schedules.cc").read_text())
    bound += [name for _, name in stage_rows(root)]
    bound += re.findall(r"^(?:Stage|Schedule)\.(\w+) = ", (root / "python/tenon/te.py").read_text(), re.M)
    for name in sorted(set(bound)):
        doors.setdefault(name, []).append(f"te: {name}")
    return doors


def link(root: pathlib.Path, case: pathlib.Path) -> str:
    return f"[{case.stem}](../{case.relative_to(root)})" if case else ""


def codes(names: list) -> str:
    return ", ".join(f"`{name}`" for name in names)


def primitive_rows(root: pathlib.Path) -> list:
    """One row of HEAD for each primitive. Raises EmptyCells."""
    steps, cpp, python = steps_of_cases(root), cpp_doors(root), python_doors(root)
    rows, empty = [], []
    for primitive in primitive_names(root):
        legal, step = best_step(steps, primitive, refused=False)
        refused, _ = best_step(steps, primitive, refused=True)
        row = [f"`{primitive}`", link(root, legal), link(root, refused), f"`{step}`" if step else "",
               codes(cpp.get(camel(primitive), [])), codes(python.get(primitive, []))]
        empty += [f"{primitive} has nothing under {title!r}" for title, cell in zip(HEAD, row) if not cell]
        rows.append(row)
    if empty:
        raise EmptyCells("; ".join(empty))
    return rows
