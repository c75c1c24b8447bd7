"""The system's C compiler as a linker."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

__all__ = ["create_shared", "get_cc"]


def get_cc() -> str:
    """$CXX, or the first of g++, clang++, cc, clang on the path."""
    names = [os.environ["CXX"]] if "CXX" in os.environ else ["g++", "clang++", "cc", "clang", "clang++-19"]
    for name in names:
        if shutil.which(name):
            return name
    raise RuntimeError(f"no C compiler to link with; looked for {', '.join(names)}")


def create_shared(output: Any, objects: Any, options: Any = None, cc: str | None = None) -> None:
    """Links objects, those of Module.save among them, into a shared library."""
    objects = [objects] if isinstance(objects, (str, os.PathLike)) else list(objects)
    command = [cc or get_cc(), "-shared", "-fPIC", "-Wl,-z,nodelete", "-o", os.fspath(output), *map(os.fspath, objects), *(options or [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}")
