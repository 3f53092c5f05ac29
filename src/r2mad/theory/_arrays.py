"""Arrays of the theory: taken in as anything numpy reads, checked once, and binomial and multinomial chances."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SUM = 1e-9
"""How far a chance may exceed 1, and the chances of a distribution miss the sum 1: far above rounding, below a slip."""


def real(name: str, value: npt.ArrayLike) -> Floats:
    """The value as an array of finite numbers.

    Raises:
        ValueError: a number that is not finite.
    """
    array = np.asarray(value, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: only finite numbers")
    return array


def nonnegative(name: str, value: npt.ArrayLike) -> Floats:
    """The value as an array of finite numbers of at least 0.

    Raises:
        ValueError: any other number.
    """
    array = real(name, value)
    if (array < 0).any():
        raise ValueError(f"{name}: no negative numbers")
    return array


def positive(name: str, value: npt.ArrayLike) -> Floats:
    """The value as an array of finite numbers above 0.

    Raises:
        ValueError: any other number.
    """
    array = real(name, value)
    if (array <= 0).any():
        raise ValueError(f"{name}: only numbers above 0")
    return array


def chance(name: str, value: npt.ArrayLike) -> Floats:
    """The value as an array of numbers in [0, 1]; what exceeds 1 by rounding is 1.

    Raises:
        ValueError: any other number.
    """
    array = nonnegative(name, value)
    if (array > 1 + SUM).any():
        raise ValueError(f"{name}: a chance lies between 0 and 1")
    return np.minimum(array, 1.0)


def distribution(name: str, value: npt.ArrayLike) -> Floats:
    """The value as an array whose last axis sums to 1.

    Raises:
        ValueError: a number outside [0, 1], or another sum.
    """
    array = chance(name, value)
    if array.ndim == 0 or (np.abs(array.sum(axis=-1) - 1) > SUM).any():
        raise ValueError(f"{name}: chances of all cases sum to 1")
    return array


def whole(name: str, value: int, least: int = 0) -> int:
    """The value, if it is at least so much.

    Raises:
        ValueError: it is less.
    """
    if value < least:
        raise ValueError(f"{name}: at least {least}, not {value}")
    return value


def log(value: Floats) -> Floats:
    """The natural logarithm, −∞ at 0 without a warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(value), dtype=np.float64)


def times_log(factor: Floats, value: Floats) -> Floats:
    """factor · log value, where 0 · log 0 = 0: what nobody counts cannot matter, however impossible it is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        product = factor * np.log(value)
    return np.where(factor == 0, 0.0, product)


@lru_cache(maxsize=256)
def log_factorials(most: int) -> Floats:
    """log 0!, …, log most!, shape [most + 1]."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])


def binomial(trials: int, share: Floats) -> Floats:
    """The chances of 0 to `trials` successes, shape [..., trials + 1] for shares of shape [...]."""
    count, factorials = np.arange(trials + 1, dtype=np.float64), log_factorials(trials)
    ways = factorials[trials] - factorials - factorials[::-1]
    share = share[..., None]
    chances = np.exp(ways + times_log(count, share) + times_log(trials - count, 1 - share))
    # the logarithms of large factorials leave some 1e-13, which would let a mean of ones differ from 1
    return np.asarray(chances / chances.sum(axis=-1, keepdims=True), dtype=np.float64)
