"""Single debates for the page's browser: which are worth a look, what is told of them, and how they fit into a page."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from r2mad.study.report.safe import discreet, embedded, packed, visible
from r2mad.study.scores import Score
from r2mad.types import DebateRecord, Item

Asked = tuple[str, str, str, int]
"""(model, data set, question, seed)."""

KINDS = ("lost", "rescued", "tie", "unparsed", "failed", "degraded")
"""What makes a debate worth a look, the most telling first."""
CHUNK = 24
"""Debates that are unpacked together."""
PLAIN = 500_000
"""Characters of JSON up to which debates are embedded as they are, for any reader; what is larger is compressed."""
LONGEST = 20_000
"""Characters of a text that are shown; the records have the rest."""
LEAST = 400
"""Bytes that even a short debate takes when compressed; it bounds how many are prepared."""
PER_DEBATE = 150
"""Bytes of the list that are set aside for each."""
DROPPED: dict[str, Any] = {
    "question": True,
    "schema_": True,
    "agents": {"__all__": {"sampling"}},
    "rounds": {
        "__all__": {
            "candidates": True,
            "replies": {"__all__": {"seed", "model", "mean_top_logprob"}},
            "views": {"__all__": {"messages", "candidates"}},
        }
    },
}
"""Fields of a record that the page does not show."""


def kinds(score: Score) -> tuple[str, ...]:
    """Which of `KINDS` a debate is.

    Lost: a plain vote on the opening is right and the answer is not; rescued the other way round. An opening that is
    tied between right and wrong is neither. Unparsed and degraded: any reply without an answer, any failed call.
    """
    is_so = {
        "lost": score.opening > 1 - 1e-9 and not score.correct,
        "rescued": score.opening < 1e-9 and score.correct,
        "tie": score.tie,
        "unparsed": score.unparsed > 0,
        "failed": score.stopped == "failed",
        "degraded": score.degraded,
    }
    return tuple(kind for kind in KINDS if is_so[kind])


def ranked(scores: Iterable[Score]) -> list[Score]:
    """The debates that are most worth a look first; those of one question together, for they pack well."""

    def key(score: Score) -> tuple[int, str, str, int, str]:
        found = kinds(score)
        return KINDS.index(found[0]) if found else len(KINDS), score.dataset, score.question, score.seed, score.method

    return sorted(scores, key=key)


@dataclass(frozen=True, slots=True)
class Browser:
    """What the page embeds, and what it leaves out."""

    index: str
    """The list of debates; see `listed`. Ready to stand in a script element, as are the chunks."""
    chunks: tuple[str, ...]
    compressed: bool
    embedded: int
    left_out: int


class Packer:
    """Takes debates one by one, and makes chunks of those that fit."""

    def __init__(self, scores: Sequence[Score], limit: int | None, room: int) -> None:
        """Decide from the scores alone which debates to take.

        Args:
            scores: all of the run.
            limit: most debates to take.
            room: bytes that they may have on the page, at most.
        """
        self._all = len(scores)
        most = room // LEAST if limit is None else min(limit, room // LEAST)
        self._order = ranked(scores)[: max(most, 0)]
        self._wanted = {score.id: score for score in self._order}
        self._held: dict[str, bytes] = {}

    def add(self, record: DebateRecord) -> None:
        """Take a debate if it is wanted."""
        if score := self._wanted.get(record.id):
            told = slim(record, score)
            self._held[record.id] = zlib.compress(embedded(told).encode(), 1)

    def browser(self, items: Mapping[str, Item], shared: Set[Asked], room: int) -> Browser:
        """Everything that was taken and has room.

        Args:
            items: the questions by id.
            shared: those that are shared misconceptions.
            room: bytes that list and debates may have on the page.
        """
        chosen = [score for score in self._order if score.id in self._held]
        compressed = len(chosen) > PLAIN // LEAST or sum(map(len, map(self._unpacked, chosen))) > PLAIN
        pack = packed if compressed else embedded
        chunks: list[str] = []
        used, fitted = 0, 0
        for group in _grouped(chosen):
            chunk = pack([json.loads(self._unpacked(score)) for score in group])
            used += len(chunk.encode()) + PER_DEBATE * len(group)
            if used > room:
                break
            chunks.append(chunk)
            fitted += len(group)
        index = pack(listed(chosen[:fitted], items, shared))
        return Browser(index, tuple(chunks), compressed, fitted, self._all - fitted)

    def _unpacked(self, score: Score) -> bytes:
        return zlib.decompress(self._held[score.id])


def _grouped(scores: Sequence[Score]) -> Iterator[Sequence[Score]]:
    for start in range(0, len(scores), CHUNK):
        yield scores[start : start + CHUNK]


def listed(scores: Sequence[Score], items: Mapping[str, Item], shared: Set[Asked]) -> dict[str, Any]:
    """The list of debates as the page's script reads it: names once, and a short row a debate.

    A row is (id, method, data set, model, seed, question, flags, answer, right, grades): numbers are places in the
    lists beside; flags has bit k for the k-th of `KINDS`, and the next one for a shared misconception.
    """
    lists: dict[str, dict[str, int]] = {name: {} for name in ("methods", "datasets", "models", "questions")}

    def place(name: str, value: str) -> int:
        return lists[name].setdefault(value, len(lists[name]))

    rows = []
    for score in scores:
        flags = sum(1 << KINDS.index(kind) for kind in kinds(score))
        flags |= ((score.model, score.dataset, score.question, score.seed) in shared) << len(KINDS)
        rows.append(
            [
                visible(score.id),
                place("methods", score.method),
                place("datasets", score.dataset),
                place("models", score.model),
                score.seed,
                place("questions", score.question),
                flags,
                None if score.answer is None else _cut(score.answer, 200),
                int(score.correct),
                " ".join(score.grades),
            ]
        )
    return {
        "kinds": KINDS,
        **{name: [visible(value) for value in lists[name]] for name in ("methods", "datasets", "models")},
        "questions": [_question(id, items.get(id)) for id in lists["questions"]],
        "debates": rows,
        "chunk": CHUNK,
    }


def _question(id: str, item: Item | None) -> dict[str, Any]:
    if item is None:  # items.jsonl was lost: the debate has the text
        return {"id": visible(id)}
    asked = item.question
    return {
        "id": visible(id),
        "text": _cut(asked.text),
        "options": [_cut(option) for option in asked.options or ()],
        "kind": asked.kind,
        "gold": _cut(item.gold),
        "group": visible(item.group),
    }


def slim(record: DebateRecord, score: Score) -> dict[str, Any]:
    """A debate's record without what the page does not show, and with its grades; texts are made safe to show.

    The names of the fields are those of docs/records.md; what is as it is by default is left out.
    """
    plain = _adapter().dump_python(record, mode="json", by_alias=True, exclude_defaults=True, exclude=DROPPED)
    found: dict[str, Any] = _bare(plain)
    found["usage"] = {kind: [used.prompt_tokens, used.completion_tokens] for kind, used in record.usage.items()}
    found["votes"] = {visible(answer): count for answer, count in record.votes.items()}
    if record.memory:
        found["memory"]["url"] = visible(discreet(record.memory.url))
    for told, one, signs in zip(found["rounds"], record.rounds, score.grades, strict=True):
        for reply, sign in zip(told["replies"], signs, strict=True):
            reply["grade"] = sign
        if one.candidates:
            told["pool"] = [_cut(reply.answer or "–", 80) for reply in one.candidates]
    return found


@cache
def _adapter() -> TypeAdapter[DebateRecord]:
    return TypeAdapter(DebateRecord)


def _bare(value: Any) -> Any:
    """The same with texts cut and made safe, and numbers as long as they are shown."""
    kind = type(value)
    if kind is str:
        return _cut(value)
    if kind is dict:
        return {key: _bare(one) for key, one in value.items() if one is not None}
    if kind is list:
        return [_bare(one) for one in value]
    return round(value, 4) if kind is float else value


def _cut(text: str, longest: int = LONGEST) -> str:
    seen = visible(text[: longest + 1])
    return seen if len(text) <= longest else f"{seen[:longest]} … ({len(text) - longest} more characters in the record)"
