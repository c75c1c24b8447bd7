"""Temporary folders."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref

__all__ = ["TempDirectory", "tempdir"]


class TempDirectory:
    """A folder that is removed with this object."""

    def __init__(self) -> None:
        self.temp_dir = tempfile.mkdtemp(prefix="tenon-")
        self._remove = weakref.finalize(self, shutil.rmtree, self.temp_dir, ignore_errors=True)

    def __repr__(self) -> str:
        return f"TempDirectory({self.temp_dir!r})"

    def relpath(self, name: str) -> str:
        return os.path.join(self.temp_dir, name)

    path = property(lambda self: self.temp_dir)

    def listdir(self) -> list:
        return os.listdir(self.temp_dir)

    def remove(self) -> None:
        self._remove()


def tempdir() -> TempDirectory:
    return TempDirectory()
