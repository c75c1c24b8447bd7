"""Helpers around the compiler."""

from .. import _left_out
from . import cc, utils

__all__ = ["cc", "utils"]

__getattr__ = _left_out.names_of("contrib.", __name__)
