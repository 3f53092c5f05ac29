"""From raw rows to items: each checked, all of them split, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable

from r2mad.errors import BadQuestionError
from r2mad.study.datasets._record import Fault, Raw
from r2mad.study.datasets.splits import train_ids
from r2mad.types import Item, Question, clean


def build(raws: Iterable[Raw], dataset: str, scheme: str, fault: Fault) -> list[Item]:
    """Items in the order of the rows.

    Raises:
        R2madError: of the kind `fault`: an empty question or answer, options alike or too few, an answer that is none
            of the options, an id that comes twice; it names file and line.
    """
    seen: dict[str, str] = {}
    asked: list[tuple[Raw, Question]] = []
    for raw in raws:
        question = _question(raw, fault)
        if question.id in seen:
            what = f"the id {clean(raw.id)!r}" if raw.id else "the same question with the same options"
            raise fault(f"{raw.where}: {what} stands at {seen[question.id]} as well")
        seen[question.id] = raw.where
        asked.append((raw, question))
    parts: dict[str, list[str]] = {}
    for raw, question in asked:
        if not raw.split:
            parts.setdefault(raw.part, []).append(question.id)
    train = set().union(*(train_ids(ids, scheme) for ids in parts.values()))
    return [
        Item(question, raw.gold, dataset, raw.split or ("train" if question.id in train else "test"), raw.group)
        for raw, question in asked
    ]


def _question(raw: Raw, fault: Fault) -> Question:
    try:
        question = Question(raw.question, raw.options, raw.kind, raw.id)
    except BadQuestionError as error:
        raise fault(f"{raw.where}: {error}") from error
    if not raw.gold.strip():
        raise fault(f"{raw.where}: the answer is empty")
    if question.options and raw.gold not in question.letters:
        raise fault(f"{raw.where}: the answer {raw.gold!r} is none of the options {', '.join(question.letters)}")
    return question
