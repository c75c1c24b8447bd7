"""Helpers around the compiler."""

from .. import _left_out
from . import cc, graph_executor, utils

__all__ = ["cc", "graph_executor", "utils"]

__getattr__ = _left_out.names_of("contrib.", __name__)
