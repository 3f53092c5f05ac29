"""Memories for tests of the command line, and what they come to."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from r2mad.experience import Remembered
from r2mad.memory import open_memory
from tests.memory.made import made

MIXED = ((1.0, 0.0, 1.0), (0.0, 1.0, 0.0))


def sound(number: int, **more: Any) -> Remembered:
    """A debate of a memory with which nothing is wrong."""
    return made(number, **{"rewards": MIXED[number % 2], "models": ("fake/one",), "split": "train", **more})


def fill(debates: Sequence[Remembered], place: str = "m.db", embedder: str = "words/8", dimension: int = 8) -> str:
    """The URL of a memory of these debates, in the working folder."""
    url = f"sqlite:{place}"
    with closing(open_memory(url, embedder=embedder, dimension=dimension)) as store:
        store.add(debates)
    return url


def everything(url: str) -> list[Remembered]:
    """All debates of a memory."""
    with closing(open_memory(url)) as store:
        return list(store.debates())


def version(url: str) -> str:
    """A memory's version."""
    with closing(open_memory(url)) as store:
        return store.snapshot().version
