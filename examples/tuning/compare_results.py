"""Prints two results of run_autotvm.py side by side.

compare_results.py A B    # folders of --artifacts, or their metadata.json
"""

import json
import pathlib
import sys


def load(where: str) -> dict:
    path = pathlib.Path(where)
    path = path / "metadata.json" if path.is_dir() else path
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SystemExit(f"'{where}' holds no results: {error}") from None
    if "latency" not in data:
        raise SystemExit(f"'{where}' holds no results: there is no latency in it")
    return data


def rows(a: dict, b: dict) -> list:
    def trials(d: dict) -> str:
        t = d.get("tuning")
        return f"{t['trials']} by {t['by']}, {t['seconds']} s" if t else "none"

    def time(d: dict) -> str:
        return "{mean_ms:.3f} ± {std_ms:.3f}".format(**d["latency"])

    return [
        ("model", a.get("model"), b.get("model")),
        ("target", a.get("target"), b.get("target")),
        ("trials", trials(a), trials(b)),
        ("compiling, s", a.get("compile_seconds"), b.get("compile_seconds")),
        ("latency, ms", time(a), time(b)),
        ("least, ms", f"{a['latency']['min_ms']:.3f}", f"{b['latency']['min_ms']:.3f}"),
    ]


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit(__doc__.strip())
    a, b = (load(where) for where in sys.argv[1:])
    table = [("", sys.argv[1], sys.argv[2]), *rows(a, b)]
    widths = [max(len(str(row[k])) for row in table) for k in range(3)]
    for row in table:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())
    ratio = a["latency"]["mean_ms"] / b["latency"]["mean_ms"]
    print(f"\nthe second is {ratio:.3f} times as fast as the first")


if __name__ == "__main__":
    main()
