"""How a debate turned out: by gold answers, a verifier model, a function of the user's, or what users said.

All of them come down to a verdict on each answer that was given: 1 right, 0 wrong, a value between, None for unknown.
`correct` (ζ) follows only from a certain verdict; a reward (r) may lie between.
"""

from __future__ import annotations

import asyncio
import csv
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from r2mad.answers import equivalent
from r2mad.api import load_pack_once
from r2mad.errors import UsageError
from r2mad.experience import Outcome
from r2mad.mask import read_verdict
from r2mad.protocols import ChatModel
from r2mad.scene import call_seed
from r2mad.types import DebateRecord, Item, Message, Question, Reply, Request, Sampling

Verdicts = Mapping[str, float | None]
"""For each answer that was given: how right it is, or None where that is not known."""


class Judge(Protocol):
    """Says how a finished debate turned out."""

    @property
    def source(self) -> str:
        """As outcomes name it."""
        ...

    async def __call__(self, record: DebateRecord, item: Item | None) -> Outcome | None:
        """The outcome, or None where nothing is known of this debate.

        Raises:
            ModelError: a verifier could not be asked.
            UsageError: a judge of the user's own failed.
        """
        ...


def given_answers(record: DebateRecord) -> list[str]:
    """Every answer of a debate, once, in order."""
    return list(dict.fromkeys(z.answer for one in record.rounds for z in one.replies if z.answer is not None))


def outcome_of(record: DebateRecord, source: str, verdicts: Verdicts, right: str | None = None) -> Outcome | None:
    """The outcome that verdicts on answers come to; None if they say nothing at all.

    A reply without an answer is not right, whatever the right answer is. Of one that failed nothing is known: neither
    its ζ nor, if it was the last, the agent's reward.
    """
    if all(value is None for value in verdicts.values()) and right is None:
        return None
    sure = {1.0: True, 0.0: False}

    def zeta(answer: str | None) -> bool | None:
        if answer is None:
            return False
        value = verdicts.get(answer)
        return None if value is None else sure.get(value)

    rows = []
    for one in record.rounds:
        said = {reply.agent: reply for reply in one.replies}
        rows.append(tuple(None if said[i].error else zeta(said[i].answer) for i in range(len(record.agents))))
    last = {reply.agent: reply for reply in record.rounds[-1].replies}

    def reward(reply: Reply) -> float | None:
        if reply.error:
            return None
        return 0.0 if reply.answer is None else verdicts.get(reply.answer)

    rewards = tuple(reward(last[agent]) for agent in range(len(record.agents)))
    return Outcome(source, rewards, tuple(rows), right)


@dataclass(frozen=True)
class Gold:
    """By the data set's right answers."""

    source: str = "gold"

    async def __call__(self, record: DebateRecord, item: Item | None) -> Outcome | None:
        """Right is what is equivalent to the gold answer."""
        if item is None:
            return None
        gold, kind = item.gold, item.question.kind

        def judge() -> dict[str, float | None]:
            return {answer: float(equivalent(answer, gold, kind)) for answer in given_answers(record)}

        verdicts = await asyncio.to_thread(judge) if kind == "math" else judge()
        return outcome_of(record, self.source, verdicts, gold)


@dataclass(frozen=True)
class Verifier:
    """By a model that is asked about every answer. Not sure, or no readable verdict, is unknown."""

    model: ChatModel
    sampling: Sampling = Sampling(temperature=0.0)
    seed: int = 0
    pack: str = "general"
    """The prompt pack whose verify.j2 asks."""

    @property
    def source(self) -> str:
        """`verifier:provider/name`."""
        return f"verifier:{self.model.name}"

    async def __call__(self, record: DebateRecord, item: Item | None) -> Outcome | None:
        """One call an answer, all at once."""
        answers = given_answers(record)
        verdicts = await asyncio.gather(*(self._ask(record.question, answer, n) for n, answer in enumerate(answers)))
        return outcome_of(record, self.source, dict(zip(answers, verdicts, strict=True)))

    async def _ask(self, question: Question, answer: str, sample: int) -> float | None:
        prompt = load_pack_once(self.pack).verify(question, _in_full(question, answer))
        seed = call_seed(self.seed, question.id, 0, 0, sample, "judge")
        request = Request((Message("user", prompt),), self.sampling, seed, sample=sample, kind="judge")
        said = read_verdict((await self.model.complete(request)).text)
        return {"yes": 1.0, "no": 0.0}.get(said or "")  # not sure, or unreadable, is not known


def _in_full(question: Question, answer: str) -> str:
    if answer in question.letters:
        return f"({answer}) {question.options[question.letters.index(answer)]}"
    return answer


@dataclass(frozen=True)
class Checker:
    """By a function of the user's, `check(question, answer)`, plain or async: True, False, a value in [0, 1], None.

    It may run the answer, look it up, or ask anything; `question` is a `Question`, `answer` the extracted text.
    """

    check: Callable[[Question, str], Any]
    name: str

    @property
    def source(self) -> str:
        """`python:NAME`."""
        return f"python:{self.name}"

    async def __call__(self, record: DebateRecord, item: Item | None) -> Outcome | None:
        """One question an answer, in turn."""
        verdicts: dict[str, float | None] = {}
        for answer in given_answers(record):
            try:
                found = self.check(record.question, answer)
                found = await found if inspect.isawaitable(found) else found
            except (Exception, SystemExit) as error:
                raise UsageError(f"{self.name} failed on {answer!r}: {type(error).__name__}: {error}") from error
            verdicts[answer] = None if found is None else _value(found, self.name)
        return outcome_of(record, self.source, verdicts)


@dataclass(frozen=True)
class Feedback:
    """By what users said of answers: a table of debates or questions with values from 0 (wrong) to 1 (right).

    A value speaks of one answer: the debate's own, unless the line names another. That it is right makes all others
    wrong; that it is wrong, or something between, says nothing of those who held another answer.
    """

    lines: Mapping[str, tuple[float, str | None]]
    """By the id of a debate or of a question: the value, and the answer it speaks of."""
    source: str = "feedback"

    async def __call__(self, record: DebateRecord, item: Item | None) -> Outcome | None:
        """The line of the debate, else that of its question."""
        line = self.lines.get(record.id) or self.lines.get(record.question.id)
        if line is None:
            return None
        value, named = line
        about = record.answer if named is None else _resolved(record.question, named)
        if about is None:
            return None
        others = 0.0 if value == 1.0 else None
        kind = record.question.kind
        verdicts = {a: value if equivalent(a, about, kind) else others for a in given_answers(record)}
        return outcome_of(record, self.source, verdicts, about if value == 1.0 else None)


def _resolved(question: Question, named: str) -> str:
    """An answer as a user wrote it, as answers are kept: an option by its letter, whether named by letter or by text.

    Raises:
        UsageError: it names no option of the question.
    """
    if not question.options:
        return named
    letter = named.strip(" ().").upper()
    if letter in question.letters:
        return letter
    texts = [" ".join(option.split()).casefold() for option in question.options]
    wanted = " ".join(named.split()).casefold()
    if wanted in texts:
        return question.letters[texts.index(wanted)]
    raise UsageError(f"the feedback on {question.id} names {named!r}, which is none of its options")


def read_feedback(path: Path) -> Feedback:
    """Read a CSV of feedback: columns `debate` or `question` (an id), `value`, and `answer` if it is another one's.

    Of several lines on one debate the last counts.

    Raises:
        UsageError: no such file, no such columns, or a line that says nothing; the message names the line.
    """
    lines: dict[str, tuple[float, str | None]] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file)
            columns = set(table.fieldnames or ())
            if "value" not in columns or not columns & {"debate", "question"}:
                raise UsageError(f"{path}: needs a column `value`, and one of `debate` and `question` (ids)")
            for row in table:
                where = f"{path}, line {table.line_num}"
                id = (row.get("debate") or row.get("question") or "").strip()
                if not id:
                    raise UsageError(f"{where}: neither a debate nor a question")
                lines[id] = (_value((row.get("value") or "").strip(), where), (row.get("answer") or "").strip() or None)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: cannot be read as CSV: {error}") from error
    return Feedback(lines)


def _value(found: object, where: str) -> float:
    try:
        value = float(found)  # type: ignore[arg-type]  # whatever it is, it may be a number
    except (TypeError, ValueError):
        value = float("nan")
    if not 0.0 <= value <= 1.0:
        raise UsageError(f"{where}: {found!r} is not a value from 0 (wrong) to 1 (right)")
    return value


def load_checker(place: str) -> Checker:
    """The function `FILE.py:NAME` or `module:NAME`.

    Raises:
        UsageError: there is none.
    """
    module, _, name = place.rpartition(":")
    if not module or not name:
        raise UsageError(f"a function is written FILE.py:NAME or module:NAME, not {place!r}")
    try:
        if module.endswith(".py"):
            spec = importlib.util.spec_from_file_location(f"_outcome_{Path(module).stem}", module)
            assert spec is not None
            assert spec.loader is not None
            loaded = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = loaded  # dataclasses look their module up there
            spec.loader.exec_module(loaded)
        else:
            loaded = importlib.import_module(module)
        check = getattr(loaded, name)
    except (Exception, SystemExit) as error:  # it is the user's own program, and may fail in any way
        raise UsageError(f"{place}: {type(error).__name__}: {error}") from error
    if not callable(check):
        raise UsageError(f"{place} is not a function")
    return Checker(check, f"{Path(module).name}:{name}")
