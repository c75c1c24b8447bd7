"""The system's C compiler as a linker."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from typing import Sequence

from .. import _arguments, _tenon

__all__ = ["create_shared", "get_cc"]


def get_cc() -> str:
    """$CXX, or the first of g++, clang++, cc, clang on the path."""
    names = [os.environ["CXX"]] if "CXX" in os.environ else ["g++", "clang++", "cc", "clang", "clang++-19"]
    for name in names:
        if shutil.which(name):
            return name
    raise RuntimeError(f"no C compiler to link with; looked for {', '.join(names)}")


def create_shared(
    output: str | os.PathLike,
    objects: str | os.PathLike | Sequence[str | os.PathLike],
    options: Sequence[str] | None = None,
    cc: str | None = None,
) -> None:
    """Links objects, those of Module.save among them, into a shared library, which describes the functions of all."""
    objects = [objects] if isinstance(objects, (str, os.PathLike)) else list(objects)
    files = [os.fspath(file) for file in objects]
    with tempfile.TemporaryDirectory(prefix="tenon-") as folder:
        description = os.path.join(folder, "description.o")
        saved = [file for file in files if file.endswith(".o") and os.path.isfile(file)]
        if _tenon.describe_objects(saved, description):
            files.insert(0, description)
        command = [cc or get_cc(), "-shared", "-fPIC", "-Wl,-z,nodelete", "-o", os.fspath(output), *files, *(options or [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}")


_arguments.say_clearly(globals())
