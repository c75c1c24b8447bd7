"""The table of tile intrinsics as a page shows it: one row for all types that operands differ in alone.

Read from what `tenon-opt --list-intrinsics` prints; make_architecture.py puts it into docs/gpu-operations.md.
"""
import re

TYPES = ("f16", "bf16", "f32", "tf32", "i8")
HEAD = ["operation", "from", "operands", "rows"]


def rows_of(text: str) -> list:
    """(name, feature, strides, operands) of the rows that a schedule names: those that have operands in memory or registers."""
    rows = [tuple(line.split("\t")) for line in text.splitlines()]
    return [row for row in rows if row[3] and " in barrier" not in row[3]]


def without_type(name: str, operands: str) -> tuple:
    """The type in the name, and both with TYPE in its place."""
    parts = name.split(".")
    found = next((p for p in parts if p in TYPES), "")
    if not found:
        return "", name, operands
    held = "f32" if found == "tf32" else found
    return found, ".".join("TYPE" if p == found else p for p in parts), re.sub(rf": {held}\[", ": TYPE[", operands)


def table_rows(rows: list) -> list:
    """Cells, in the order of the table."""
    merged: dict = {}
    for name, feature, strides, operands in rows:
        found, family, plain = without_type(name, operands)
        merged.setdefault((family, plain, strides), []).append((found, feature, name, operands))
    out = []
    for (family, plain, strides), types in merged.items():
        features = list(dict.fromkeys(f for _, f, _, _ in types))
        title = f"`{family}`: " + ", ".join(t for t, _, _, _ in types)
        by_type = features[0] if len(features) == 1 else ", ".join(f"{f} ({t})" for t, f, _, _ in types)
        if len(types) == 1:
            title, plain = f"`{types[0][2]}`", types[0][3]
        plain = plain.replace(" strides (s, 1)", "").replace("; ", "`, `")
        step = re.fullmatch(r"s step (\d+)", strides)
        out.append([title, by_type, f"`{plain}`", f"multiples of {step.group(1)} apart" if step else ""])
    return out
