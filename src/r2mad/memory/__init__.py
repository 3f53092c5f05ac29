"""Memories: `open_memory("sqlite:PATH")` gives a place where debates are remembered.

Stores are imported when one is opened, so that this module costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast, get_args

from r2mad.errors import UnknownNameError, UsageError
from r2mad.experience import Form
from r2mad.protocols import MemoryStore

__all__ = ["SCHEMES", "open_memory"]

SCHEMES: dict[str, str] = {"sqlite": "r2mad.memory.sqlite:open_sqlite"}
"""Scheme to `module:function`; the function takes the place after the colon, and the rest as `open_memory` does."""


def open_memory(
    url: str, *, embedder: str | None = None, dimension: int | None = None, form: Form = "paper"
) -> MemoryStore:
    """The memory at `scheme:place`, such as `sqlite:~/memory.db`. It blocks: the file is opened and looked at.

    Args:
        url: where it is; a leading `~` is the user's home.
        embedder: name of the embedder that its vectors come from. With it and `dimension`, a memory that is not there
            yet is made; without them it must be there, and nothing is asked of it.
        dimension: d of its vectors.
        form: how its debate states are written down; looked at only together with `embedder`.

    Raises:
        UnknownNameError: no such scheme.
        UsageError: not a place, or the memory there was made with another embedder, dimension or form.
        StoreError: there is no memory, or what is there cannot be used; the message says why and what to do.
    """
    scheme, colon, place = url.partition(":")
    known = ", ".join(sorted(SCHEMES))
    if not colon:
        raise UsageError(f"a memory is written scheme:place, as sqlite:memory.db, not {url!r} (schemes: {known})")
    if scheme not in SCHEMES:
        raise UnknownNameError(f"no kind of memory {scheme!r} in {url!r} (schemes: {known})")
    if not place.strip():
        raise UsageError(f"{url!r} names no place: write {scheme}:PATH (schemes: {known})")
    if dimension is not None and dimension < 1:
        raise UsageError(f"vectors have at least one dimension, not {dimension}")
    if form not in get_args(Form):
        raise UsageError(f"no form of debate states {form!r}; there are: {', '.join(get_args(Form))}")
    module, _, function = SCHEMES[scheme].partition(":")
    opener = cast(Callable[[str, str | None, int | None, Form], MemoryStore], getattr(import_module(module), function))
    return opener(place, embedder or None, dimension, form)
