"""Long texts in pieces: where they are cut, and what one vector their vectors make.

Sizes are bytes of UTF-8, since these tell tokens better than characters do: a Chinese character has three bytes, and
is often a token of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from r2mad.experience import Vectors

LEAST = 32
"""Bytes below which no piece is cut further: a server that refuses these does not refuse them for their length."""


def size(text: str) -> int:
    """Bytes of a text."""
    return len(text) if text.isascii() else len(text.encode())


def halve(text: str) -> tuple[str, str]:
    """Cut a text at the white space nearest to its middle; a text of one word is cut inside the word.

    Args:
        text: two characters at least, without white space around them.
    """
    middle = len(text) // 2
    if text[middle - 1].isspace() or text[middle].isspace():
        at = middle
    else:  # in the middle of a word: before it, or behind it
        before, after = text[:middle].rsplit(None, 1), text[middle:].split(None, 1)
        ends = [len(before[0])] if len(before) == 2 else []
        ends += [middle + len(after[0])] if len(after) == 2 else []
        at = min(ends, key=lambda end: abs(end - middle), default=middle)
    return text[:at].rstrip(), text[at:].lstrip()


def cut(text: str, limit: int) -> list[str]:
    """A text as pieces of at most `limit` bytes each, cut at white space where there is any, and of similar sizes.

    Args:
        limit: 4 at least, the bytes of the largest character.
    """
    text = text.strip()
    if size(text) <= limit:
        return [text] if text else []
    left, right = halve(text)
    return [*cut(left, limit), *cut(right, limit)]


def blend(parts: Iterable[tuple[int, Vectors]]) -> npt.NDArray[np.float64]:
    """The mean of some vectors, each weighted by the size of its text, made a unit vector."""
    return unit(np.add.reduce([weight * vector.astype(np.float64) for weight, vector in parts]))


def unit(vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A vector, or the rows of a matrix, scaled to length 1; zeros stay zeros."""
    length = np.linalg.norm(vector, axis=-1, keepdims=True)
    return vector / np.where(length == 0, 1.0, length)
