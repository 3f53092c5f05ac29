"""Closed forms against Monte Carlo: how near is near enough."""

import numpy as np

from r2mad.theory._arrays import Floats

DRAWS = 200_000
ERRORS = 4.5
"""Standard errors: one check in 150,000 would fail by chance, and the seeds are fixed anyway."""


def agrees(values: Floats, expected: float) -> bool:
    """Whether the mean of independent draws is within 4.5 standard errors of what it should be."""
    error = float(values.std(ddof=1)) / np.sqrt(values.size)
    return bool(abs(float(values.mean()) - expected) <= ERRORS * error + 1e-12)
