#!/usr/bin/env python3
"""Runs official ONNX node tests through the whole compiler: model file to library to answer.

Usage: run_node_tests.py TENON [--cases FOLDER] [--form fixed|constant|dynamic] [--levels 0 1 2] [--in-turn]
                         [--list FILE | --match REGEX] [--jobs N] [--verbose] [--target opencl]
needs: pip install onnx onnxruntime numpy apache-tvm-ffi; for devices also the package tenon

A case is FOLDER/<name>/{model.onnx, tolerance.txt, test_data_set_0/{input,output}_N.pb}; without --cases the installed
onnx package's cases are written to a temporary folder. The form is what is made of the file: in the constant one parameters
of the nodes are constants (onnx/freeze.py); in the dynamic one every size of every input is open, and the library is asked at
a second size too, against ONNX's reference evaluator (onnx/dynamic.py). Each
case is compiled at each level and called in a child process, once with its outputs returned and once with them passed in;
count, shape, dtype and values must be those of the case, by the rules of ONNX's own backend test.

With --list (default: that of the form beside this file, unless --match is given) a case that does not pass is a failure.
With --match, a case that the compiler refuses with a message (exit status 1) counts as skipped. A form's list and the one
of what fails in it, which says of each case why, name every case of the folder between them: node_tests.txt and
node_tests_failing.txt of the constant form, node_tests_fixed.txt and node_tests_fixed_failing.txt of the fixed one,
node_tests_dynamic.txt and node_tests_dynamic_failing.txt of the dynamic one. With --share N, one part in N of the list is run:
which one the names and the commit decide. With --target opencl the fixed form runs on the first such device, and what does not
pass there though it does on CPUs is in node_tests_opencl_failing.txt; where there is no device the exit status is 77.
"""
import argparse
import collections
import concurrent.futures
import faulthandler
import multiprocessing
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

import ml_dtypes
import numpy as np
import onnx

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "onnx"))
from dlpack import as_bytes  # noqa: E402
from dynamic import open_sizes, second_size  # noqa: E402
from freeze import freeze  # noqa: E402
from values import differ, from_call, is_text, read, to_call  # noqa: E402

COMPILE_SECONDS = 120
RUN_SECONDS = 240  # a device's driver may compile kernels in that time
STANDSTILL_SECONDS = 480
LISTS = {"constant": ("node_tests.txt", "node_tests_failing.txt"),
         "fixed": ("node_tests_fixed.txt", "node_tests_fixed_failing.txt"),
         "dynamic": ("node_tests_dynamic.txt", "node_tests_dynamic_failing.txt")}  # what passes in a form, and what does not
DEVICE_FAILING = "node_tests_{}_failing.txt"  # of a device, what passes in the fixed form on CPUs
# status: passed, failed, refused; seconds: of compiling
Result = collections.namedtuple("Result", "case level status reason seconds", defaults=[0.0])


class Case:
    """One case as read from its folder: the model in a form, its inputs in the order of the graph, and its outputs."""

    def __init__(self, folder: pathlib.Path, form: str = "constant"):
        self.name = folder.name
        model = onnx.load(folder / "model.onnx")
        ops = sorted({node.op_type for node in model.graph.node})
        self.op = ops[0] if len(ops) == 1 else "(several operators)"
        data = folder / "test_data_set_0"
        inputs = [read(data / f"input_{i}.pb", info.type) for i, info in enumerate(model.graph.input)]
        self.outputs = [read(data / f"output_{i}.pb", info.type) for i, info in enumerate(model.graph.output)]
        self.rtol, self.atol = map(float, (folder / "tolerance.txt").read_text().split())
        arrays = {info.name: x for info, x in zip(model.graph.input, inputs)}
        self.form = form
        self.model = {"constant": freeze, "dynamic": open_sizes}[form](model, arrays) if form != "fixed" else model
        self.inputs = [arrays[info.name] for info in self.model.graph.input]
        # Sizes that the model leaves open are those of the case, but in the dynamic form.
        self.shapes = ["--empty-sizes"] if form == "dynamic" else []
        for info, x in zip(self.model.graph.input, self.inputs):
            if not info.type.HasField("tensor_type"):
                continue
            shape = info.type.tensor_type.shape
            if form == "dynamic":
                continue
            if any(not d.HasField("dim_value") for d in shape.dim) or not info.type.tensor_type.HasField("shape"):
                self.shapes += ["--shape", f"{info.name}:{'x'.join(map(str, x.shape))}"]

    def sizes(self):
        """What the library is asked, (inputs, outputs) of one size after the other."""
        def same(got, want):
            return compare(got, want, self.rtol, self.atol) is None

        other = second_size(self.name, self.model, self.inputs, self.outputs, same) if self.form == "dynamic" else None
        return [(self.inputs, self.outputs), *([other] if other else [])]


def one_of(levels, name: str):
    """The same one always, whatever other cases there are."""
    return levels[zlib.crc32(name.encode()) % len(levels)]


def a_share(names, parts: int):
    commit = subprocess.run(["git", "-C", str(HERE), "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    return [name for name in names if zlib.crc32(f"{name} {commit}".encode()) % parts == 0]


def compile_case(tenon: str, case: Case, level: int, target: str, tmp: pathlib.Path):
    """The Result that says why there is no library, or else one that passes as yet."""
    model, library = tmp / f"{case.name}.O{level}.onnx", tmp / f"{case.name}.O{level}.so"
    model.write_bytes(case.model.SerializeToString())
    command = [tenon, "compile", str(model), "-o", str(library), f"-O{level}", "--jobs", "1", "--verify-each", "--target", target, *case.shapes]
    start = time.monotonic()
    try:
        run = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=COMPILE_SECONDS)
    except subprocess.TimeoutExpired:
        return Result(case, level, "failed", f"compile: no end after {COMPILE_SECONDS} s")
    if run.returncode == 0:
        return Result(case, level, "passed", "", time.monotonic() - start)
    said = [line for line in (run.stderr + run.stdout).splitlines() if "rror" in line or "failed" in line]
    reason = (said or run.stderr.splitlines() or ["nothing said"])[0].replace(f"{model}: ", "").strip()
    if run.returncode == 1:
        return Result(case, level, "refused", reason)
    return Result(case, level, "failed", f"compile: exit status {run.returncode}: {reason}")


def compare(got, want: np.ndarray, rtol: float, atol: float):
    """None, or how `got` differs."""
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    try:
        if want.dtype == ml_dtypes.bfloat16:
            rtol = max(rtol, 2**-6)  # two units in its last place, as ONNX's runner has it
        if want.dtype.kind == "V":  # of ml_dtypes
            got, want = got.astype(np.float32), want.astype(np.float32)
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
    except AssertionError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return "values: " + "; ".join(line for line in lines if re.match(r"Mismatched|Max|nan|x and y|\[|ACTUAL|DESIRED", line))[:300]
    return None


class OnHost:
    """How libraries for CPUs are called."""

    def __init__(self, library: str):
        import tvm_ffi

        self.main, self.give, self.take = tvm_ffi.load_module(library).main, to_call, from_call

    def passed(self, value):
        return self.give(value), value  # written in place


class OnDevice:
    """How those for a device are."""

    def __init__(self, library: str, device: str):
        import tenon

        self.main, self.place = tenon.runtime.load_module(library)["main"], getattr(tenon, device)(0)
        self.array = tenon.nd.array

    def give(self, x):
        if x is None:
            return None
        if isinstance(x, list):
            return [self.give(item) for item in x]
        return x.astype(object) if is_text(x) else self.array(as_bytes(x), self.place)

    def take(self, got, want):
        if isinstance(want, list) and got is not None:
            items = list(got)
            return [self.take(g, w) for g, w in zip(items, want)] if len(items) == len(want) else items
        if got is None or not isinstance(want, np.ndarray):
            return from_call(got, want)
        if is_text(want):
            return np.asarray(got, object).reshape(np.shape(got))
        return got.numpy().view(want.dtype)

    def passed(self, value):
        given = self.give(value)
        return given, given


def call(library: str, device: str, inputs, outputs, rtol: float, atol: float):
    """None, or what is wrong with the library's answer."""
    way = OnDevice(library, device) if device else OnHost(library)
    main = way.main
    inputs = [way.give(x) for x in inputs]
    returned = main(*inputs)
    returned = list(returned) if len(outputs) > 1 else [returned]
    if len(returned) != len(outputs):
        return f"{len(returned)} outputs, expected {len(outputs)}"
    ways = [("returned", returned)]
    try:
        passed = [np.full(want.shape, 1, want.dtype) if isinstance(want, np.ndarray) else want for want in outputs]
        passed = [way.passed(x) for x in passed]
        main(*inputs, *(given for given, _ in passed))
        ways.append(("passed in", [way.take(kept, want) if device else kept for (_, kept), want in zip(passed, outputs)]))
    except TypeError as error:
        if not re.search("the sizes of outputs depend on values|the call makes all outputs", str(error)):
            raise
    for how, all_got in ways:
        for i, (got, want) in enumerate(zip(all_got, outputs)):
            difference = differ(way.take(got, want) if how == "returned" else got, want,
                                lambda g, w: compare(g, w, rtol, atol))
            if difference:
                return f"output {i} ({how}): {difference}"
    return None


def child(pipe):
    """Answers calls until the pipe closes; says first that it listens."""
    pipe.send(None)
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        try:
            answer = call(*job)
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"[:400]
        pipe.send(answer)


class Runner:
    """A child process that calls libraries, started again when it dies. Not forked: this process has threads, whose locks
    a fork would copy as they are at that moment."""

    def __init__(self):
        self.process = None

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=child, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        if not self.pipe.poll(RUN_SECONDS):
            raise TimeoutError("the process that calls libraries does not start")
        self.pipe.recv()

    def run(self, *job):
        if self.process is None:
            self.start()
        try:
            self.pipe.send(job)
            if self.pipe.poll(RUN_SECONDS):
                return self.pipe.recv()
            answer = f"run: no end after {RUN_SECONDS} s"
        except (EOFError, ConnectionError):
            self.process.join()
            answer = f"run: the process died, status {self.process.exitcode}"
        self.process.kill()
        self.process.join()
        self.process = None
        return answer


def run_all(tenon: str, runs, target: str, jobs: int, tmp: pathlib.Path):
    """The results of all (case, level); what failed is said at once. Where a run stands still is written to stderr now and
    then."""
    faulthandler.dump_traceback_later(STANDSTILL_SECONDS, repeat=True)
    runner, results, asked_twice = Runner(), [], 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        work = [(case, level, pool.submit(compile_case, tenon, case, level, target, tmp)) for case, level in runs]
        for case, level, compiled in work:
            result = compiled.result()
            if result.status == "passed":
                library = tmp / f"{case.name}.O{level}.so"
                sizes = case.sizes()
                asked_twice += len(sizes) > 1
                for where, (inputs, outputs) in zip(("", "second size: "), sizes):
                    wrong = runner.run(str(library), "" if target == "llvm" else target.split()[0], inputs, outputs, case.rtol, case.atol)
                    if wrong:
                        result = result._replace(status="failed", reason=where + wrong)
                        break
                library.unlink()
            if result.status == "failed":
                print(f"{case.name} -O{level}: {result.reason}", flush=True)
            results.append(result)
            faulthandler.dump_traceback_later(STANDSTILL_SECONDS, repeat=True)
    faulthandler.cancel_dump_traceback_later()
    if asked_twice:
        print(f"{asked_twice} of {len(results)} libraries were asked at a second size")
    return results


def print_table(results, verbose: bool):
    by_op = collections.defaultdict(collections.Counter)
    for r in results:
        by_op[r.case.op][r.status] += 1
    print(f"{'operator':40s} {'passed':>7s} {'failed':>7s} {'refused':>8s}")
    for op, count in sorted(by_op.items()):
        print(f"{op[:40]:40s} {count['passed']:7d} {count['failed']:7d} {count['refused']:8d}")
    for status in ("refused", "failed"):
        reasons = collections.defaultdict(list)
        for r in results:
            if r.status == status:
                reasons[r.reason if status == "refused" else f"{r.case.name} -O{r.level}: {r.reason}"].append(r.case.name)
        if reasons:
            print(f"\n{status}:")
        for reason, names in sorted(reasons.items()):
            names = sorted(set(names))
            print(f"  {reason}" + (f"  [{' '.join(names if verbose else names[:3])}]" if status == "refused" else ""))


def read_list(path: pathlib.Path):
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def unlisted(cases: pathlib.Path, form: str):
    """Cases that neither list of a form names, or both do, and names without a case."""
    passing = read_list(HERE / LISTS[form][0])
    failing = [line.split(":")[0] for line in read_list(HERE / LISTS[form][1])]
    named = collections.Counter([*passing, *failing])
    folders = {p.name for p in cases.iterdir()}
    return sorted({*folders ^ set(named), *(name for name, count in named.items() if count > 1)})


def update_lists(results, unread, form: str):
    """Writes both lists of a form as the results are."""
    reasons = {name: f"not read by this script: {reason}" for name, reason in unread.items()}
    for r in results:
        if r.status != "passed":
            reasons[r.case.name] = re.sub(r"^tenon: |; .*|node of '[^']*' |error: ", "", " ".join(r.reason.split()))[:160].strip()
    for name, lines in zip(LISTS[form], ({r.case.name for r in results} - set(reasons),
                                         [f"{name}: {reason}" for name, reason in reasons.items()])):
        path = HERE / name
        comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
        path.write_text("".join(f"{line}\n" for line in [*comments, *sorted(lines)]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("--cases", type=pathlib.Path)
    parser.add_argument("--levels", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--in-turn", action="store_true", help="each case at one of the levels, instead of at all")
    parser.add_argument("--list", type=pathlib.Path)
    parser.add_argument("--match", help="regular expression: the names of the cases to run, whatever the list says")
    parser.add_argument("--form", choices=list(LISTS), default="constant",
                        help="the file as it stands, with parameters as constants (default), or with all sizes open")
    parser.add_argument("--share", type=int, default=1, metavar="N",
                        help="one part in N of the list; the names and the commit decide")
    parser.add_argument("--target", default="llvm", help="a device's: its cases are those of the fixed form")
    parser.add_argument("--results", type=pathlib.Path, help="write a line for each case here: name, status, reason")
    parser.add_argument("--update", action="store_true", help="with --match .: write both lists as the results are")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--passed", type=pathlib.Path, help="write the names of the cases that pass at every level here")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    kept_out = set()
    if args.target != "llvm":
        import tenon
        device = args.target.split()[0]
        if not getattr(tenon, device)(0).exist:
            print(f"there is no {device} device here")
            return 77
        kept_out = {line.split(":")[0] for line in read_list(HERE / DEVICE_FAILING.format(device))}
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        if args.cases is None:
            args.cases = tmp / "cases"
            subprocess.run([sys.executable, HERE.parents[1] / "bench" / "dump_node_tests.py", args.cases],
                           check=True, stdout=subprocess.DEVNULL)
        whole = args.match is None and args.list is None
        if whole and (strays := unlisted(args.cases, args.form)):
            print("neither list names, or both do, or there is no case:", *strays)
            return 1
        if args.match is None:
            names = read_list(args.list or HERE / LISTS[args.form][0])
            names = [name for name in names if name not in kept_out]
            names = a_share(names, args.share)
        else:
            names = sorted(p.name for p in args.cases.iterdir() if re.search(args.match, p.name))
        cases, skipped, unread = [], 0, {}
        for name in names:
            try:
                cases.append(Case(args.cases / name, args.form))
            except Exception as error:  # element types that NumPy has not
                unread[name] = str(error).splitlines()[0] if str(error) else type(error).__name__
                if args.match is None:
                    raise
                skipped += 1
                if args.verbose:
                    print(f"skipped {name}: {error}")
        runs = [(case, level) for case in cases
                for level in ([one_of(args.levels, case.name)] if args.in_turn else args.levels)]
        results = run_all(args.tenon, runs, args.target, args.jobs, tmp)
    print_table(results, args.verbose)
    count = collections.Counter(r.status for r in results)
    if args.results:
        said = {r.case.name: f"{r.status}\t{r.reason}" for r in sorted(results, key=lambda r: r.status, reverse=True)}
        said |= {name: f"skipped\t{reason}" for name, reason in unread.items()}
        args.results.write_text("".join(f"{name}\t{said[name]}\n" for name in sorted(said)))
    if args.update:
        update_lists(results, unread, args.form)
    if args.passed:
        bad = {r.case.name for r in results if r.status != "passed"}
        args.passed.write_text("".join(f"{case.name}\n" for case in cases if case.name not in bad))
    if seconds := sorted(r.seconds for r in results if r.seconds):
        print(f"\ncompiling took {statistics.median(seconds):.3f} s in the middle, {seconds[len(seconds) * 99 // 100]:.3f} s for "
              f"99 of 100, {seconds[-1]:.3f} s at most")
        slowest = sorted(results, key=lambda r: r.seconds, reverse=True)[:20 if args.verbose else 3]
        print("slowest:", ", ".join(f"{r.case.name} {r.seconds:.3f}" for r in slowest))
    refused = count["refused"]
    failed = count["failed"] + (refused if args.match is None else 0)
    skipped += refused if args.match is not None else 0
    print(f"\n{count['passed']} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
