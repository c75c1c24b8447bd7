"""Comparisons of results."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _left_out, nd

__all__ = ["assert_allclose"]


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7, verbose: bool = True) -> None:
    """NumPy's, of tensors on any device too, which also asks for equal shapes."""
    actual, desired = (v.numpy() if isinstance(v, nd.NDArray) else np.asarray(v) for v in (actual, desired))
    np.testing.assert_allclose(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=verbose)


__getattr__ = _left_out.names_of("testing.", __name__)
