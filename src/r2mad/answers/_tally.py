"""The public functions, over the four kinds of answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from r2mad.answers import choice, math, number
from r2mad.answers import text as words
from r2mad.answers._canonical import Canonical
from r2mad.answers._strip import TAIL, spoken
from r2mad.types import AnswerKind


@dataclass(frozen=True, slots=True)
class AnswerClass:
    """Equivalent answers of one round."""

    key: str
    answer: str
    """How the class is shown: its most common spelling, then the shortest, then the first in order."""
    count: int


@dataclass(frozen=True, slots=True)
class Tally:
    """The classes of equivalent answers among a round's replies."""

    classes: tuple[AnswerClass, ...]
    """Most popular first, then by key; does not depend on the order of the answers."""
    labels: tuple[int | None, ...]
    """For each answer, in the order given, the index of its class; None for no answer."""
    total: int
    """All replies, those without an answer included."""
    undecided: tuple[str, ...] = ()
    """Answers whose canonical form was given up; each counts as different from all others but itself."""

    @property
    def consensus(self) -> float:
        """The share of all replies that hold the most popular answer (Eq. 5); 0 where there is no answer."""
        return self.classes[0].count / self.total if self.classes else 0.0


def extract(text: str, kind: AnswerKind, options: Sequence[str] | None = None) -> str | None:
    """The final answer that a reply declares, or None.

    The last declaration counts; reasoning between `<think>` tags does not; a declaration that was cut off means that
    the last word is missing, so there is no answer. See each kind's module for what is a declaration.

    Args:
        text: the reply.
        kind: `choice` gives an upper-case letter, `math` LaTeX as written, `number` plain digits, `text` words.
        options: the options' texts, for `choice`; letters outside them are no answer.

    Raises:
        ValueError: there is no such kind. No text makes it raise.
    """
    reply = spoken(text)[-TAIL:]
    if kind == "choice":
        return choice.find(reply, options)
    if kind == "math":
        return math.find(reply)
    if kind == "number":
        return number.find(reply)
    if kind == "text":
        return words.find(reply)
    raise ValueError(f"no such kind of answer: {kind!r} (choice, math, number, text)")


def canonical(answer: str, kind: AnswerKind) -> Canonical:
    """The canonical form by which answers of a kind are compared.

    Raises:
        ValueError: there is no such kind. No answer makes it raise.
    """
    if kind == "choice":
        return choice.canonical(answer)
    if kind == "math":
        return math.canonical(answer)
    if kind == "number":
        return number.canonical(answer)
    if kind == "text":
        return words.canonical(answer)
    raise ValueError(f"no such kind of answer: {kind!r} (choice, math, number, text)")


def equivalent(a: str | None, b: str | None, kind: AnswerKind) -> bool:
    """Whether two answers are the same. Symmetric and transitive, for both are compared in canonical form; no answer
    is equivalent to nothing, not even to another missing one.

    Raises:
        ValueError: there is no such kind.
    """
    if a is None or b is None:
        return False
    return canonical(a, kind).key == canonical(b, kind).key


def tally(answers: Sequence[str | None], kind: AnswerKind) -> Tally:
    """Count equivalent answers.

    Raises:
        ValueError: there is no such kind.
    """
    forms = {answer: canonical(answer, kind) for answer in sorted({a for a in answers if a is not None})}
    spellings: dict[str, Counter[str]] = {}
    for answer in answers:
        if answer is not None:
            spellings.setdefault(forms[answer].key, Counter())[answer] += 1
    classes = [AnswerClass(key, _shown(counts), counts.total()) for key, counts in spellings.items()]
    classes.sort(key=lambda one: (-one.count, one.key))
    index = {one.key: place for place, one in enumerate(classes)}
    return Tally(
        classes=tuple(classes),
        labels=tuple(None if answer is None else index[forms[answer].key] for answer in answers),
        total=len(answers),
        undecided=tuple(answer for answer, form in forms.items() if not form.decided),
    )


async def tally_async(answers: Sequence[str | None], kind: AnswerKind) -> Tally:
    """The same as `tally`, without keeping the event loop from its work while a formula is read.

    Raises:
        ValueError: there is no such kind.
    """
    if kind == "math" and any(answer is not None and math.needs_worker(answer) for answer in answers):
        return await asyncio.to_thread(tally, answers, kind)
    return tally(answers, kind)


def _shown(counts: Counter[str]) -> str:
    return min(counts, key=lambda answer: (-counts[answer], len(answer), answer))
