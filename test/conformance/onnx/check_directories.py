"""Runs the cases that the onnx package has as folders through the C++ runner, and a share of the node tests written as such; and
shows that the runner sees what is wrong.

Usage: check_directories.py RUN_DIRECTORIES      needs: pip install onnx numpy
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.backend.test
from onnx import numpy_helper

RUNNER = sys.argv[1]
ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = pathlib.Path(onnx.backend.test.__file__).parent / "data"
EVERY = 12  # of the node tests


def run(*folders):
    done = subprocess.run([RUNNER, *map(str, folders)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def failing():
    """Names of node tests that do not pass as files, which a list of the project's gives reasons for."""
    lines = (ROOT / "test/conformance/node_tests_fixed_failing.txt").read_text().splitlines()
    return {line.split()[0].rstrip(":") for line in lines if line and not line.startswith("#")}


def must(what, holds, said=""):
    if not holds:
        sys.exit(f"{what}\n{said}")


with tempfile.TemporaryDirectory() as tmp:
    nodes, chosen = pathlib.Path(tmp, "nodes"), pathlib.Path(tmp, "chosen")
    subprocess.run([sys.executable, ROOT / "bench/dump_node_tests.py", nodes], check=True, stdout=subprocess.DEVNULL)
    chosen.mkdir()
    bad = failing()
    for folder in [f for f in sorted(nodes.iterdir()) if f.name not in bad][::EVERY]:
        folder.rename(chosen / folder.name)
    # Gradients are of training.
    simple = [f for f in sorted((DATA / "simple").iterdir()) if "gradient" not in f.name]
    status, said = run(DATA / "pytorch-converted", DATA / "pytorch-operator", *simple, chosen)
    print(said.splitlines()[-1])
    must("cases do not pass", status == 0, said)
    # What is wrong is seen: another number, another shape, no such output, no case at all.
    good = chosen / sorted(f.name for f in chosen.iterdir() if f.name.startswith("test_a"))[0]
    wanted = good / "test_data_set_0/output_0.pb"
    kept = numpy_helper.to_array(onnx.load_tensor(wanted))
    for array, word in ((kept + np.ones((), kept.dtype), "differ"), (kept[None], "expected shape")):
        wanted.write_bytes(numpy_helper.from_array(np.asarray(array)).SerializeToString())
        status, said = run(good)
        must(f"an output that is wrong passes: {good.name}", status == 1 and word in said, said)
    wanted.unlink()
    status, said = run(good)
    must("an output that is not there passes", status == 1 and "outputs" in said, said)
    shutil.rmtree(chosen)
    must("no case passes", run(chosen)[0] == 1)
