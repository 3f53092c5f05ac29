"""A memory in plain lists and an embedder of hashed words: what tests compare the real ones with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from r2mad.errors import ServerFaultError
from r2mad.experience import Case, Form, Remembered, question_key
from r2mad.models._fake_replies import embed
from r2mad.scene import Memory
from r2mad.types import Question

if TYPE_CHECKING:
    import numpy.typing as npt

    from r2mad.experience import Vectors


class WordEmbedder:
    """Vectors of hashed words; it can be told to fail, and keeps what it was asked."""

    def __init__(self, dimension: int = 64) -> None:
        self.name = f"words/{dimension}"
        self.asked: list[str] = []
        self.broken = False
        self._dimension = dimension

    async def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.broken:
            raise ServerFaultError("503 from the embedder")
        self.asked += texts
        rows = [embed(text, self._dimension) if text.strip() else [0.0] * self._dimension for text in texts]
        return np.array(rows, np.float32)

    async def aclose(self) -> None:
        pass


@dataclass
class ListBank:
    """One agent's cases in a list."""

    cases: list[Case]

    def __len__(self) -> int:
        return len(self.cases)

    @property
    def ids(self) -> npt.NDArray[np.uint64]:
        return np.array([int(case.id, 16) for case in self.cases], np.uint64)

    @property
    def rewards(self) -> npt.NDArray[np.float32]:
        return np.array([np.nan if case.reward is None else case.reward for case in self.cases], np.float32)

    @property
    def states(self) -> Vectors:
        return np.array([case.debate.states[case.round, case.seat] for case in self.cases])

    @property
    def questions(self) -> Vectors:
        return np.array([case.debate.question for case in self.cases])

    def case(self, index: int) -> Case:
        return self.cases[index]


@dataclass
class ListSnapshot:
    """Debates in a list, as a memory of one version."""

    debates: list[Remembered]
    version: str = "v1"

    def bank(self, name: str) -> ListBank | None:
        cases = [
            Case(debate, t, i)
            for debate in self.debates
            for t, i in debate.states
            if debate.record.agents[i].name == name
        ]
        return ListBank(cases) if cases else None

    def knows(self, question: Question) -> bool:
        return question_key(question) in {question_key(debate.record.question) for debate in self.debates}


def memory_of(debates: Sequence[Remembered], embedder: WordEmbedder | None = None, form: Form = "paper") -> Memory:
    """A memory that holds just these debates."""
    return Memory("list:", ListSnapshot(list(debates)), embedder or WordEmbedder(), form)
