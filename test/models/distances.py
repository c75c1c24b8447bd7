"""How far answers are from those that are wanted."""
import numpy as np


def distance(got, want):
    """The largest difference of NumPy arrays, by what each may be: over the largest wanted number of it, or 1."""
    worst = 0.0
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape, f"{a.shape}, expected {b.shape}"
        if b.size:
            far = float(np.max(np.abs(a - b)) / max(1, np.max(np.abs(b))))
            worst = far if not far <= worst else worst  # NaN too
    return worst
