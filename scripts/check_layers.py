#!/usr/bin/env python3
"""Holds the code base to its floors.

LAYERS says which folder may include which. This script fails on any include outside it, on an edge of it that nobody
uses, on a cycle between folders, on a third-party header where it does not belong, and where the libraries' edges in CMake
differ from the table.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A row may include itself, what it names, and what those rows may include. A name that is a file is an edge to that
# file alone: nothing follows from it. Every row but those of BARE may include src/support.
LAYERS = {
    "include/tenon/ffi_types.h": [],
    "include/tenon/devices.h": ["include/tenon/ffi_types.h"],
    "include/tenon/c_api.h": ["include/tenon/ffi_types.h"],
    "include/tenon/ffi_values.hpp": ["include/tenon/ffi_types.h"],
    "include/tenon/kernel_abi.h": ["include/tenon/ffi_types.h"],
    "include/tenon/program_abi.h": ["include/tenon/ffi_types.h"],
    "include/tenon/library_checksums.hpp": [],
    "include/tenon/stage_primitives.def": [],
    "include/tenon": [],
    "src/support": [],
    "src/target": ["include/tenon/devices.h"],
    "src/cost": ["src/ir", "src/target"],
    "src/ir": [],
    "src/arith": ["src/ir"],
    "src/loop": ["src/arith", "src/target"],
    "src/intrin": ["src/loop"],
    "src/interp": ["src/loop"],
    "src/dependence": ["src/loop"],
    "src/schedule": ["src/intrin", "src/dependence"],
    "src/loop/pass": ["src/intrin", "src/dependence"],
    "src/te": ["src/loop"],
    "src/stages": ["src/schedule", "include/tenon/stage_primitives.def"],
    "src/graph": ["src/arith", "include/tenon/program_abi.h"],
    "src/ops": ["src/te", "src/schedule", "src/cost", "src/graph"],
    "src/sketch": ["src/ops"],
    "src/graph/pass": ["src/graph", "src/cost"],
    "src/plan": ["src/ops", "src/graph/pass"],
    "src/graph/lower": ["src/plan"],
    "src/measure": ["include/tenon/c_api.h", "include/tenon/devices.h"],
    "src/tune": ["src/graph/lower", "src/measure"],
    "src/frontend/onnx": ["src/graph"],
    "src/codegen": ["src/intrin", "include/tenon/kernel_abi.h", "include/tenon/ffi_types.h"],
    "src/artifact": [
        "src/target", "include/tenon/kernel_abi.h", "include/tenon/ffi_types.h", "include/tenon/library_checksums.hpp",
    ],
    "src/runtime": [
        "include/tenon/c_api.h", "include/tenon/devices.h", "include/tenon/kernel_abi.h", "include/tenon/ffi_types.h",
        "include/tenon/program_abi.h", "include/tenon/library_checksums.hpp",
    ],
    "src/driver": [
        "src/tune", "src/sketch", "src/loop/pass", "src/frontend/onnx", "src/codegen/*",
        "src/artifact", "include/tenon/kernel_abi.h",
    ],
    "src/api": ["src/driver", "src/stages", "src/interp", "include/tenon"],
    "tools": ["src/driver", "src/stages", "src/interp", "include/tenon/c_api.h", "include/tenon/ffi_values.hpp"],
    "python": ["include/tenon"],
    "examples": ["include/tenon"],
}
# Folders of one kind: each has a row of its own, and PATTERN in a row stands for all of them.
KINDS = {"src/codegen/*": ["src/codegen"], "src/runtime/device/*": ["src/runtime", "include/tenon/kernel_abi.h"]}
ROOMS = {"src/codegen/c_family", "src/codegen/gpu"}  # of src/codegen itself
KIND_OF = {}  # such a folder → its pattern
for pattern, edges_of_kind in KINDS.items():
    folders = sorted(str(p.relative_to(ROOT)) for p in ROOT.glob(pattern) if p.is_dir())
    folders = [f for f in folders if f not in ROOMS]
    for targets in LAYERS.values():
        if pattern in targets:
            targets[targets.index(pattern):targets.index(pattern) + 1] = folders
    LAYERS.update((folder, edges_of_kind) for folder in folders)
    KIND_OF.update((folder, pattern) for folder in folders)
BARE = ("include/", "src/runtime", "python", "examples")

# Third-party headers by their first part, and the rows that may include them.
THIRD_PARTY = {
    "llvm": ["src/codegen/llvm", "src/artifact"],
    "lld": ["src/artifact"],
    "protozero": ["src/frontend/onnx"],
    "CLI": ["tools"],
    "zip.h": ["tools"],
    "sqlite3.h": ["src/tune"],
    "fmt": [row for row in LAYERS if not row.startswith(BARE)],
    "nlohmann": [row for row in LAYERS if not row.startswith(BARE)],
}
# Of src/artifact, one file alone talks to the linker library.
ONE_FILE = {"src/artifact": ("llvm", "lld")}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
SUFFIXES = {".h", ".hpp", ".c", ".cc", ".cpp", ".def"}


def row_of(path):
    """The row that a file (relative to the root) belongs to: the longest one that contains it."""
    best = None
    for row in LAYERS:
        if (path == row or path.startswith(row + "/")) and len(row) > len(best or ""):
            best = row
    return best


def is_file(row):
    return pathlib.PurePath(row).suffix in SUFFIXES


def closure(row):
    """All rows and single files that a row may include."""
    rows = {row}
    queue = [row]
    while queue:
        for target in LAYERS[queue.pop()]:
            if not is_file(target) and target not in rows:
                rows.add(target)
                queue.append(target)
    if not row.startswith(BARE):
        rows.add("src/support")
    files = {f for f in LAYERS if is_file(f) and (f in LAYERS[row] or str(pathlib.PurePath(f).parent) in rows)}
    return rows | files


def sources():
    for top in ("include", "src", "tools", "python", "examples"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path


def resolve(spelling, folder):
    """The file that a quoted include in `folder` means, relative to the root, or None."""
    # Programs name the files beside them; in src every include is written from src.
    own = [] if folder.startswith("src") else [folder]
    for base in own + ["src", "include", ""]:
        if (ROOT / base / spelling).is_file():
            return str(pathlib.PurePath(base) / spelling)
    return None


def check_includes(errors):
    """Checks every include; returns the edges between folders with one witness each, and the edges between rows."""
    edges = {}
    row_edges = set()
    linker_files = {}
    for path in sources():
        name = str(path.relative_to(ROOT))
        row = row_of(name)
        if row is None:
            errors.append(f"{name}: no row of LAYERS holds this file")
            continue
        allowed = closure(row)
        for match in INCLUDE.finditer(path.read_text(encoding="utf-8", errors="replace")):
            bracket, spelling = match.groups()
            first = spelling.split("/")[0]
            # Programs may name the public headers as their users do.
            is_ours = bracket == '"' or (first == "tenon" and not name.startswith("src"))
            target = resolve(spelling, str(path.parent.relative_to(ROOT))) if is_ours else None
            if target is None:
                if first in THIRD_PARTY:
                    if row not in THIRD_PARTY[first]:
                        errors.append(f"{name}: {row} may not include <{spelling}>")
                    if first in ONE_FILE.get(row, ()):
                        linker_files.setdefault(row, set()).add(name)
                elif bracket == '"':
                    errors.append(f'{name}: "{spelling}" is no file of ours (includes are written from src/)')
                continue
            target_row = row_of(target)
            if target_row not in allowed:
                errors.append(f"{name}: {row} may not include {target}")
            row_edges.add((row, target_row))
            source_folder = str(pathlib.PurePath(name).parent)
            target_folder = str(pathlib.PurePath(target).parent)
            if source_folder != target_folder:
                edges.setdefault(source_folder, {}).setdefault(target_folder, f"{name} includes {target}")
    for row, files in linker_files.items():
        if len(files) > 1:
            errors.append(f"{row}: expected one file to include LLVM, found {', '.join(sorted(files))}")
    return edges, row_edges


def check_ghosts(row_edges, errors):
    """Reports rows without a file and edges of the table that no include uses. Folders of one kind count together."""
    used = {(KIND_OF.get(row, row), KIND_OF.get(target, target)) for row, target in row_edges}
    rows = {row_of(str(path.relative_to(ROOT))) for path in sources()}
    errors += [f"LAYERS: no file belongs to {row}" for row in LAYERS if row not in rows]
    allowed = {(KIND_OF.get(row, row), KIND_OF.get(target, target)) for row in LAYERS for target in LAYERS[row]}
    errors += [f"LAYERS: nothing in {row} includes {target}" for row, target in sorted(allowed - used)]


def check_cycles(edges, errors):
    """Reports each strongly connected set of folders once, by a cycle through it."""
    done = set()
    for start in sorted(edges):
        # Depth-first, with the path that leads to the current folder.
        stack = [(start, iter(sorted(edges[start])))]
        path = [start]
        while stack:
            folder, targets = stack[-1]
            target = next(targets, None)
            if target is None:
                stack.pop()
                path.pop()
                done.add(folder)
            elif target in path:
                cycle = path[path.index(target):] + [target]
                why = "; ".join(edges[a][b] for a, b in zip(cycle, cycle[1:]))
                errors.append(f"cycle {' -> '.join(cycle)}: {why}")
            elif target not in done and target in edges:
                stack.append((target, iter(sorted(edges[target]))))
                path.append(target)


def check_cmake(errors):
    """Compares the libraries' edges with the table."""
    call = re.compile(r"^tenon_layer\(\s*([^)]*)\)", re.MULTILINE)
    layers = {}
    for path in sorted((ROOT / "src").rglob("CMakeLists.txt")):
        for match in call.finditer(path.read_text()):
            name, folder, *deps = match.group(1).split("ROOMS")[0].split()
            layers["tn_" + name] = ("src/" + folder, deps)
    back_ends = [name for name in layers if name.startswith("tn_codegen_")]
    for _, deps in layers.values():
        if "${back_ends}" in deps:
            deps[deps.index("${back_ends}"):] = back_ends + deps[deps.index("${back_ends}") + 1:]
    for name, (row, deps) in layers.items():
        if row not in LAYERS:
            errors.append(f"CMake: {name} is made of {row}, which LAYERS does not have")
            continue
        linked = {layers[dep][0] for dep in deps if dep in layers} - {"src/support"}
        # Headers alone are no library.
        expected = {target for target in LAYERS[row] if not is_file(target) and not target.startswith("include/")}
        if linked != expected:
            errors.append(f"CMake: {name} links {sorted(linked)}, expected {sorted(expected)}")


def main():
    errors = []
    edges, row_edges = check_includes(errors)
    check_cycles(edges, errors)
    check_ghosts(row_edges, errors)
    check_cmake(errors)
    for error in errors:
        print(f"check_layers: {error}", file=sys.stderr)
    if not errors:
        print(f"check_layers: {sum(1 for _ in sources())} files keep to their floors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
