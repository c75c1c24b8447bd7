"""Helpers around the compiler."""

from . import cc, utils

__all__ = ["cc", "utils"]
