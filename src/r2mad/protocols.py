"""The seams: what a model, an embedder and a memory must do. Anything that does it can take part.

Only the seams that the engine uses today are here; each new one arrives with the part that needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from r2mad.types import Completion, Reply, Request, Round


@runtime_checkable
class ChatModel(Protocol):
    """A chat model behind some endpoint, in this process, or written by hand."""

    @property
    def name(self) -> str:
        """`provider/name`, as users write it."""
        ...

    @property
    def identity(self) -> str:
        """What decides a reply besides the request: model and address. Part of every cache key."""
        ...

    async def complete(self, request: Request) -> Completion:
        """Answer one request.

        Raises:
            ModelError: the call failed after its retries; `ContextOverflowError` if the prompt is too long.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections and files. Safe to call twice."""
        ...


Observer = Callable[[int, Reply | Round], None]
"""Told of each reply as it comes and of each round as it ends, with the round's index; for live views."""
