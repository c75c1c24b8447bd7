#!/usr/bin/env python3
"""Makes the pages of docs/ that show what the compiler does, from what it does.

usage: make_architecture.py [--build DIR] [--check] [PAGE…]      needs numpy and onnx

A page docs/NAME.md comes from its template docs/NAME.in.md. --check writes nothing and fails when a page is not what
its template makes. A template is Markdown with directives; everything runs in one empty folder that holds the small models,
with the tools of DIR/bin (default: build).

    @@ run COMMAND > FILE               runs a command in the folder; its standard output goes to FILE
    @@ show FILE | FILTER | …           a file's text as a code block, cut by filters:
         after PASS [FUNC]                the dump that --print-after wrote for that pass, and the function FUNC (a
                                          regular expression) in it
         func NAME                        one function of loop IR
         from "TEXT"                      from the first line that contains TEXT
         to "TEXT", before "TEXT"         up to the first line that contains TEXT, with or without it
         elide "TEXT" "TEXT"              the lines between the first with either TEXT become …
         head N                           the first N lines, then …
         width N                          longer lines are cut, with …
         keep REGEX, without REGEX        lines that match; all lines, less what matches in them
         trace                            the schedule trace in front of the dump of `schedule`
         json KEY …                       these keys of an object, one per line (all without a KEY)
    @@ page FILE | FILTER | …           the comment that opens a source file, after its first paragraph
    @@ table FILE MACRO COLUMN: NAME …  rows of a .def file as a table: COLUMN is a column's number from 0
    @@ passes                           the passes over graphs and loop IR: order, reasons, contracts
    @@ intrinsics PREFIX                the operations whose names begin so (intrinsic_table.py); a page with some has all ptx.*
    @@ primitives                       the schedule primitives: cases, trace, doors (primitive_table.py)

    ```example ARGUMENTS                a worked example: the block is the input of `tenon-opt ARGUMENTS`
    ```define NAME                      a function for the next two, shown as it stands
    ```replay NAME                      the block is a trace: shown with what it makes of the function
    ```refused NAME                     a trace that must be refused: shown with the message
"""
import argparse
import difflib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import zlib

import intrinsic_table
import primitive_table

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
ELLIPSIS = "…"
TIMEOUT_SECONDS = 120


class BadTemplate(Exception):
    """A directive that cannot be followed; the message says which and why."""


# ---- Small models ----


def make_models(folder: pathlib.Path) -> None:
    subprocess.run([sys.executable, ROOT / "bench" / "fill_weights.py", folder, "mlp-4-2"], check=True,
                   stdout=subprocess.DEVNULL)
    make_convolutions(folder / "convolutions.onnx")


def make_convolutions(path: pathlib.Path) -> None:
    """Two padded convolutions, a batch norm and a residual sum, with weights that are easy to write down."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    def weight(name, *shape):
        count = int(np.prod(shape))
        values = ((np.arange(count) * 7 + zlib.crc32(name.encode())) % 11 - 5) / np.float32(32)
        return numpy_helper.from_array(values.astype(np.float32).reshape(shape), name)

    def tensor(name, *shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    weights = [weight("stem.weight", 16, 3, 3, 3), weight("body.weight", 16, 16, 3, 3), weight("body.bias", 16),
               numpy_helper.from_array(np.full(16, 0.5, np.float32), "norm.scale"), weight("norm.bias", 16),
               weight("norm.mean", 16), numpy_helper.from_array(np.full(16, 2, np.float32), "norm.var")]
    padded = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["image", "stem.weight"], ["stem"], "stem", **padded),
        helper.make_node("BatchNormalization", ["stem", "norm.scale", "norm.bias", "norm.mean", "norm.var"], ["norm"],
                         "norm"),
        helper.make_node("Relu", ["norm"], ["features"], "relu"),
        helper.make_node("Conv", ["features", "body.weight", "body.bias"], ["body"], "body", **padded),
        helper.make_node("Add", ["body", "features"], ["sum"], "residual"),
        helper.make_node("Relu", ["sum"], ["output"], "relu_1"),
    ]
    graph = helper.make_graph(nodes, "convolutions", [tensor("image", 1, 3, 8, 8)], [tensor("output", 1, 16, 8, 8)],
                              weights)
    opset = [helper.make_opsetid("", 17)]
    path.write_bytes(helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())


# ---- Filters: lists of lines to lists of lines ----


def find(lines: list, text: str, start: int = 0) -> int:
    for i in range(start, len(lines)):
        if text in lines[i]:
            return i
    raise BadTemplate(f"no line contains {text!r}")


def indent(line: str) -> str:
    return line[:len(line) - len(line.lstrip())]


def take_after(lines: list, name: str, func: str = "") -> list:
    sections, current = [], None
    for line in lines:
        if line.startswith("// after "):
            current = [] if line == f"// after {name}" else None
            if current is not None:
                sections.append(current)
        elif current is not None:
            current.append(line)
    for section in sections:
        if not func or any(re.match(rf"func @{func}\(", line) for line in section):
            return trim(take_func(section, func) if func else section)
    raise BadTemplate(f"nothing was printed after {name!r} {func}")


def take_func(lines: list, name: str) -> list:
    start = next((i for i, line in enumerate(lines) if re.match(rf"func @{name}\(", line)), None)
    if start is None:
        raise BadTemplate(f"no function is named {name}")
    return lines[start:find_equal(lines, "}", start) + 1]


def find_equal(lines: list, text: str, start: int = 0) -> int:
    for i in range(start, len(lines)):
        if lines[i] == text:
            return i
    raise BadTemplate(f"no line is {text!r}")


def take_trace(lines: list) -> list:
    return [line.removeprefix("//   ") for line in lines if line.startswith("//   ")]


def elide(lines: list, first: str, last: str) -> list:
    start = find(lines, first)
    end = find(lines, last, start + 1)
    return lines[:start + 1] + [indent(lines[start + 1]) + ELLIPSIS] + lines[end:]


def take_json(lines: list, *keys: str) -> list:
    value = json.loads("\n".join(lines))
    rows = [f"{json.dumps(k)}: {json.dumps(value[k], ensure_ascii=False)}" for k in keys or value]
    return [row + "," for row in rows[:-1]] + rows[-1:]


def trim(lines: list) -> list:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    while lines and not lines[0].strip():
        lines = lines[1:]
    return lines


FILTERS = {
    "after": take_after,
    "func": take_func,
    "from": lambda lines, text: lines[find(lines, text):],
    "before": lambda lines, text: lines[:find(lines, text)],
    "to": lambda lines, text: lines[:find(lines, text) + 1],
    "elide": elide,
    "head": lambda lines, n: lines[:int(n)] + ([ELLIPSIS] if len(lines) > int(n) else []),
    "width": lambda lines, n: [l if len(l) <= int(n) else l[:int(n) - 2] + " " + ELLIPSIS for l in lines],
    "keep": lambda lines, pattern: [line for line in lines if re.search(pattern, line)],
    "without": lambda lines, pattern: [re.sub(pattern, "", line) for line in lines],
    "trace": take_trace,
    "json": take_json,
}


def apply(filters: list, lines: list) -> list:
    for text in filters:
        name, *arguments = shlex.split(text)
        if name not in FILTERS:
            raise BadTemplate(f"unknown filter {name!r}")
        lines = FILTERS[name](lines, *arguments)
    return lines


# ---- Source files as pages and tables ----


def opening_comment(path: str) -> list:
    lines = []
    for line in (ROOT / path).read_text().splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].removeprefix(" ").rstrip())
    return lines


def split_columns(row: str) -> list:
    columns, depth, quoted, at = [""], 0, False, 0
    while at < len(row):
        c = row[at]
        if quoted:
            if c == "\\":
                at += 1
                c = row[at]
            elif c == '"':
                quoted, c = False, ""
        elif c == '"':
            quoted, c = True, ""
        elif c == "," and depth == 0:
            columns.append("")
            c = ""
        else:
            depth += (c in "({[") - (c in ")}]")
        columns[-1] += c
        at += 1
    return [c.strip() for c in columns]


def def_rows(path: str, macro: str) -> list:
    rows = []
    for line in (ROOT / path).read_text().splitlines():
        match = re.match(rf"{macro}\((.*)\)(\s*//.*)?$", line)
        if match:
            rows.append(split_columns(match.group(1)))
    if not rows:
        raise BadTemplate(f"{path} has no rows {macro}(…)")
    return rows


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def table(head: list, rows: list) -> list:
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + [
        "| " + " | ".join(cell(c) for c in row) + " |" for row in rows
    ]


def pipeline_steps(path: str) -> list:
    """Rows {"pass", …, "why"} of a pipeline's tables: (the function that returns the table, or "", pass, why)."""
    text = r'"(?:[^"\\]|\\.)*"'
    table_or_row = re.compile(rf'& (\w+Pipeline)\(\)|\{{\s*"(\w+)",[^"{{}}]*?((?:{text}\s*)+)\}}')
    steps, name = [], ""
    for match in table_or_row.finditer((ROOT / path).read_text()):
        name = match.group(1) or name
        if match.group(2):
            steps.append((name, match.group(2), "".join(part[1:-1] for part in re.findall(text, match.group(3)))))
    return steps


def pass_pages() -> list:
    lines = []
    loop, graph = "src/loop/pass", "src/graph/pass"
    plan = "src/plan"
    orders = [("Over graphs", graph, "TN_GRAPH_PASS", pipeline_steps("src/driver/graph_pipeline.cc"), None),
              ("Over kernels", loop, "TN_LOOP_PASS", pipeline_steps("src/driver/pipeline.cc"), "KernelPipeline"),
              ("Over host functions", loop, "TN_LOOP_PASS", pipeline_steps("src/driver/pipeline.cc"), "HostPipeline")]
    for title, _, _, steps, name in orders:
        rows = [(f"`{p}`", why) for n, p, why in steps if name in (None, n)]
        lines += [f"## {title}, in order", ""] + table(["pass", "why it stands here"], rows) + [""]
    for title, folder, macro in (("Graph passes", graph, "TN_GRAPH_PASS"), ("Plan passes", plan, "TN_GRAPH_PASS"),
                                 ("Loop passes", loop, "TN_LOOP_PASS")):
        lines += [f"## {title}, one by one", ""]
        for _, name, doc in def_rows(f"{folder}/passes.def", macro):
            header = next((ROOT / folder).rglob(f"{name}.h"), None)
            lines += [f"### {name}", ""]
            if not header:
                lines += [doc[:1].upper() + doc[1:] + ".", ""]
                continue
            lines += ["```text"] + opening_comment(header.relative_to(ROOT)) + ["```", ""]
    return lines[:-1]


def primitive_page() -> list:
    try:
        return table(primitive_table.HEAD, primitive_table.primitive_rows(ROOT))
    except primitive_table.EmptyCells as error:
        raise BadTemplate(str(error)) from error


# ---- Pages ----


class Page:
    """One template being followed."""

    def __init__(self, folder: pathlib.Path, tools: pathlib.Path):
        self.folder = folder
        self.environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}", TENON_NUM_THREADS="1",
                                TENON_CACHE_DIR=str(folder / "cache"))
        self.functions = {}
        self.shown = None  # names of intrinsics

    def render(self, template: str) -> str:
        out, lines, at = [], template.splitlines(), 0
        while at < len(lines):
            line = lines[at]
            at += 1
            block = re.match(r"```(example|define|replay|refused) (.*)$", line)
            try:
                if line.startswith("@@ "):
                    out += self.directive(*line[3:].split(" ", 1))
                elif block:
                    end = find_equal(lines, "```", at)
                    out += getattr(self, block.group(1))(block.group(2), lines[at:end])
                    at = end + 1
                else:
                    out.append(line)
            except (BadTemplate, subprocess.SubprocessError, OSError) as error:
                raise BadTemplate(f"line {at}: {line}\n  {error}") from error
        self.check_intrinsics()
        return "\n".join(out) + "\n"

    def directive(self, word: str, rest: str = "") -> list:
        directives = {"run": self.run_silently, "show": self.show, "page": self.page, "table": self.table,
                      "passes": lambda _: pass_pages(), "intrinsics": self.intrinsics, "primitives": lambda _: primitive_page()}
        if word not in directives:
            raise BadTemplate(f"unknown directive {word!r}")
        return directives[word](rest)

    def run_silently(self, rest: str) -> list:
        command, _, file = rest.rpartition(" > ")
        result = self.call(shlex.split(command))
        if result.returncode:
            raise BadTemplate(f"exit {result.returncode}: {result.stderr or result.stdout}")
        (self.folder / file.strip()).write_text(result.stdout)
        return []

    def call(self, command: list, text: str = "") -> subprocess.CompletedProcess:
        return subprocess.run(command, cwd=self.folder, env=self.environment, input=text, capture_output=True,
                              text=True, timeout=TIMEOUT_SECONDS, check=False)

    def show(self, rest: str) -> list:
        file, *filters = rest.split(" | ")
        return ["```"] + trim(apply(filters, (self.folder / file).read_text().splitlines())) + ["```"]

    def page(self, rest: str) -> list:
        file, *filters = rest.split(" | ")
        comment = opening_comment(file)
        return ["```text"] + trim(apply(filters, comment[find_equal(comment, "") + 1:])) + ["```"]

    def table(self, rest: str) -> list:
        path, macro, columns = rest.split(" ", 2)
        numbers = [int(n) for n in re.findall(r"(\d+): ", columns)]
        names = [n.strip() for n in re.split(r"\d+: ", columns)[1:]]
        rows = def_rows(path, macro)
        return table(names, [[f"`{row[n]}`" if k == 0 else row[n] for k, n in enumerate(numbers)] for row in rows])

    def intrinsics(self, prefix: str) -> list:
        own = [row for row in self.all_intrinsics() if row[0].startswith(prefix)]
        self.shown = (self.shown or []) + [row[0] for row in own]
        return table(intrinsic_table.HEAD, intrinsic_table.table_rows(own))

    def all_intrinsics(self) -> list:
        return intrinsic_table.rows_of(self.call(["tenon-opt", "--list-intrinsics"]).stdout)

    def check_intrinsics(self) -> None:
        if self.shown is None:
            return
        missing = [row[0] for row in self.all_intrinsics() if row[0].startswith("ptx.") and row[0] not in self.shown]
        if missing:
            raise BadTemplate("operations that the page does not have: " + ", ".join(missing))

    def example(self, arguments: str, body: list) -> list:
        result = self.call(["tenon-opt", *shlex.split(arguments)], "\n".join(body) + "\n")
        if result.returncode not in (0, 1):
            raise BadTemplate(f"exit {result.returncode}: {result.stderr}")
        answer = trim((result.stdout + result.stderr).splitlines())
        if answer == body:
            return ["```", *body, "```", "", f"`tenon-opt {arguments}` prints it unchanged."]
        return ["```", *body, "```", "", f"`tenon-opt {arguments}` answers", "", "```", *answer, "```"]

    def define(self, name: str, body: list) -> list:
        self.functions[name] = "\n".join(body) + "\n"
        return ["```", *body, "```"]

    def replay(self, name: str, body: list) -> list:
        result = self.call_replay(name, body, "--check")
        if result.returncode:
            raise BadTemplate(f"refused: {result.stderr}")
        lines = trim(result.stdout.splitlines())
        return ["```", *body, "```", "", "makes", "", "```", *lines, "```"]

    def refused(self, name: str, body: list) -> list:
        result = self.call_replay(name, body)
        if result.returncode != 1:
            raise BadTemplate(f"expected a refusal, but got exit {result.returncode}")
        return ["```", *body, "```", "", "is refused:", "", "```", *trim(result.stderr.splitlines()), "```"]

    def call_replay(self, name: str, trace: list, *flags: str) -> subprocess.CompletedProcess:
        (self.folder / "trace.txt").write_text("\n".join(trace) + "\n")
        return self.call(["tenon-opt", "--replay", "trace.txt", *flags], self.functions[name])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("pages", nargs="*")
    args = parser.parse_args()
    wrong = 0
    names = args.pages or sorted(p.name.removesuffix(".in.md") for p in DOCS.glob("*.in.md"))
    with tempfile.TemporaryDirectory(prefix="tenon-docs-") as folder:
        make_models(pathlib.Path(folder))
        for name in names:
            page, template = DOCS / f"{name}.md", (DOCS / f"{name}.in.md").read_text()
            try:
                text = Page(pathlib.Path(folder), args.build.resolve() / "bin").render(template)
            except BadTemplate as error:
                print(f"{name}.in.md, {error}", file=sys.stderr)
                wrong += 1
                continue
            before = page.read_text() if page.exists() else ""
            if not args.check:
                page.write_text(text)
            elif before != text:
                wrong += 1
                diff = difflib.unified_diff(before.splitlines(), text.splitlines(), str(page), "made now", lineterm="")
                print("\n".join(list(diff)[:60]))
    if args.check and wrong:
        print("pages are not what their templates make; run scripts/make_architecture.py and read the difference",
              file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
