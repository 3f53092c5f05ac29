"""The seams: what a model, an embedder and a memory must do. Anything that does it can take part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from r2mad.experience import Case, Form, Remembered
from r2mad.types import Completion, Question, Reply, Request, Round

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from r2mad.experience import Vectors


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


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors whose cosine tells how alike the texts are."""

    @property
    def name(self) -> str:
        """Provider, model and dimension as a memory remembers them; vectors of another name are refused."""
        ...

    async def dimension(self) -> int:
        """d, found out by embedding a word if need be.

        Raises:
            ModelError: the embedder cannot be reached.
        """
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of `texts`, shape [len(texts), d]; a text without any content has a vector of zeros.

        Raises:
            ModelError: the call failed after its retries.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections and files. Safe to call twice."""
        ...


class Bank(Protocol):
    """M_i: one agent's cases as of one version of a memory. Nothing in it ever changes.

    `ids`, `rewards`, `states` and `questions` run in parallel, in the order in which the cases were added.
    """

    def __len__(self) -> int:
        """c, the number of cases."""
        ...

    @property
    def ids(self) -> npt.NDArray[np.uint64]:
        """The cases' names as numbers (`int(case.id, 16)`), shape [c]."""
        ...

    @property
    def rewards(self) -> npt.NDArray[np.float32]:
        """r_i(e), shape [c]; NaN where it is not known."""
        ...

    @property
    def states(self) -> Vectors:
        """Vectors of the debate states, shape [c, d]."""
        ...

    @property
    def questions(self) -> Vectors:
        """Vectors of the questions, shape [c, d]; read when first asked for, since few policies need them."""
        ...

    def case(self, index: int) -> Case:
        """One case in full.

        Raises:
            StoreError: it cannot be read.
        """
        ...


class Snapshot(Protocol):
    """A memory as of one version: what one debate reads, whatever is written meanwhile."""

    @property
    def version(self) -> str:
        """A digest of everything in it."""
        ...

    def bank(self, name: str) -> Bank | None:
        """The cases of the agent of that name; None if it has none."""
        ...

    def knows(self, question: Question) -> bool:
        """Whether a debate on the very same question (text and options) is in it."""
        ...


@dataclass(frozen=True, slots=True)
class Holder:
    """One line of a memory's roster: an agent, one of the models that spoke for it, and its cases with that model."""

    name: str
    model: str
    cases: int


class MemoryStore(Protocol):
    """Where debates are remembered. Any number of processes may read and write one store at once.

    The methods block, for milliseconds as a rule: call them in a thread where that matters. They may be called from
    any thread.
    """

    @property
    def url(self) -> str:
        """`scheme:place`, as users write it."""
        ...

    @property
    def embedder(self) -> str:
        """Name of the embedder that all its vectors come from."""
        ...

    @property
    def dimension(self) -> int:
        """d of its vectors."""
        ...

    @property
    def form(self) -> Form:
        """How its debate states were written down."""
        ...

    def snapshot(self) -> Snapshot:
        """Everything that is in it now. Cheap when nothing was written since the last one.

        Raises:
            StoreError: the store cannot be read.
        """
        ...

    def add(self, debates: Sequence[Remembered]) -> int:
        """Remember debates, all of them or, after an error or a crash, none; those known already are passed over.

        Returns:
            How many were new.

        Raises:
            StoreError: the store cannot be written.
            UsageError: vectors of another dimension, or shapes that do not fit the debate.
        """
        ...

    def known(self) -> set[str]:
        """The ids of all debates in it."""
        ...

    def roster(self) -> tuple[Holder, ...]:
        """Who has cases in it, by name and model."""
        ...

    def debates(self, ids: Collection[str] | None = None) -> Iterator[Remembered]:
        """Every debate, or those in `ids`, in the order in which they were added."""
        ...

    def forget(self, ids: Collection[str]) -> int:
        """Take debates out with all their cases, in one transaction, and tell how many there were."""
        ...

    def close(self) -> None:
        """Let go of the file. Safe to call twice."""
        ...
