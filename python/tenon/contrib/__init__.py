"""Helpers around the compiler."""

from . import cc, graph_executor, utils

__all__ = ["cc", "graph_executor", "utils"]
