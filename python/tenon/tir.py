"""Loop IR, as text."""

from ._tenon import IrModule

__all__ = ["IrModule"]
