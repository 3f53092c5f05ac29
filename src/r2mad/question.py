"""What is asked, x, and what is right, y; and how text becomes a digest that is the same everywhere.

Everything here is a name of `r2mad.types` as well, which is where the rest of the code takes it from.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from dataclasses import dataclass
from typing import Literal

AnswerKind = Literal["choice", "math", "number", "text"]
"""How an answer is read and compared: an option's letter, a formula, a number, or words."""


def digest(value: object, size: int = 8) -> str:
    """A stable hexadecimal digest of any JSON value: the same in every process and on every machine."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def clean(text: str) -> str:
    """`text` as it can be written to a file: halves of surrogate pairs are joined, lone ones replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


@dataclass(frozen=True, slots=True)
class Question:
    """A question x as the agents see it. It holds no gold answer (invariant 1).

    Args:
        text: the question itself.
        options: the options' texts in order, or nothing for an open question.
        kind: how answers are read and compared. A question with options is a `choice`, whatever else is not said.
        id: identity in records; a digest of text and options if not given. Texts recur with other options, so
            both count.

    Raises:
        BadQuestionError: no text, one option only, an empty option, two options alike, more than 26, or options
            on a question of another kind (and the reverse).
    """

    text: str
    options: tuple[str, ...] = ()
    kind: AnswerKind = "text"
    id: str = ""

    def __post_init__(self) -> None:
        set_ = object.__setattr__  # frozen: normalised once, here
        if not isinstance(self.text, str) or isinstance(self.options, str):  # type: ignore[redundant-expr]  # untyped callers
            from r2mad.errors import BadQuestionError

            raise BadQuestionError("a question's text is one text, and its options are a sequence of texts")
        set_(self, "text", clean(self.text))
        set_(self, "options", tuple(clean(option) for option in self.options or ()))
        if self.kind == "text" and self.options:
            set_(self, "kind", "choice")
        set_(self, "id", clean(self.id) or digest([self.text, list(self.options)]))
        problem = _question_problem(self)
        if problem:
            from r2mad.errors import BadQuestionError

            raise BadQuestionError(problem)

    @property
    def letters(self) -> tuple[str, ...]:
        """The options' letters, A first; empty for an open question."""
        return tuple(LETTERS[: len(self.options)])

    @property
    def lettered(self) -> tuple[tuple[str, str], ...]:
        """The options with their letters."""
        return tuple(zip(LETTERS, self.options, strict=False))


def _question_problem(question: Question) -> str | None:
    options = question.options
    if not question.text.strip():
        return "the question is empty"
    if question.kind not in ("choice", "math", "number", "text"):
        return f"no such kind of answer: {question.kind!r} (choice, math, number, text)"
    if (question.kind == "choice") != bool(options):
        return "a choice question needs options, and only a choice question has them"
    if len(options) == 1:
        return "a choice question needs at least two options"
    if len(options) > 26:
        return f"a choice question has at most 26 options, not {len(options)}"
    if any(not option.strip() for option in options):
        return "an option is empty"
    if len({unicodedata.normalize("NFC", option.strip()) for option in options}) < len(options):
        return "two options are the same"
    return None


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its gold answer (x, y). Only `study` and memory building ever see one.

    `gold` is written as an answer of the question's kind: the letter of the right option, a formula, a number, words.
    """

    question: Question
    gold: str
    dataset: str = ""
    split: str = ""
    group: str = ""

    def __post_init__(self) -> None:
        for name in ("gold", "dataset", "split", "group"):
            object.__setattr__(self, name, clean(getattr(self, name)))
