"""What a server sends for POST /v1/embeddings, read with care."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import numpy as np

from r2mad.embed._pieces import unit
from r2mad.errors import BadResponseError

if TYPE_CHECKING:
    from r2mad.experience import Vectors


def read_vectors(data: Any, count: int) -> Vectors:
    """The vectors of a reply in the order of the texts, made unit vectors, shape [count, d].

    Servers send them as numbers or, asked or not, as base64 of single-precision numbers; in any order, each with its
    index.

    Raises:
        BadResponseError: not `count` vectors of one length, or a number that is none.
    """
    entries = data.get("data") if isinstance(data, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BadResponseError("the reply holds no list of embeddings")
    if len(entries) != count:
        raise BadResponseError(f"{len(entries)} embeddings came for {count} texts")
    indices = [entry.get("index", place) for place, entry in enumerate(entries)]
    if any(type(index) is not int for index in indices) or sorted(indices) != list(range(count)):
        raise BadResponseError("the embeddings' indices do not count the texts")
    rows: list[Any] = [None] * count
    for index, entry in zip(indices, entries, strict=True):
        rows[index] = _numbers(entry.get("embedding"))
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            vectors = np.array(rows, np.float64)
            known = bool(np.isfinite(np.linalg.norm(vectors, axis=-1)).all())
    except (ValueError, TypeError, OverflowError):
        raise BadResponseError("the embeddings are not lists of numbers, all of one length") from None
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise BadResponseError("the embeddings are not lists of numbers, all of one length")
    if not known:
        raise BadResponseError("an embedding holds a number that is none, or infinite")
    return unit(vectors).astype(np.float32)


def _numbers(sent: Any) -> Any:
    if not isinstance(sent, str):
        if isinstance(sent, list) and all(isinstance(number, int | float) for number in sent):
            return sent  # checked one by one: numpy would read "1" as 1 and null as NaN
        raise BadResponseError("an embedding is neither a list of numbers nor base64")
    try:
        return np.frombuffer(base64.b64decode(sent, validate=True), "<f4")
    except (binascii.Error, ValueError):
        raise BadResponseError("an embedding is a string, and not base64 of numbers") from None
