"""What is wrong with a memory: questions that leaked into it, outcomes that cannot all be true, banks without contrast.

Debates are read one after another and only what the checks need is kept, so a memory may be larger than the machine's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from r2mad.answers import canonical
from r2mad.experience import Remembered, question_key
from r2mad.types import Item, Question, digest

if TYPE_CHECKING:
    from r2mad.experience import Vectors
    from r2mad.types import AnswerKind

Kind = Literal[
    "overlap",
    "contradiction",
    "no-contrast",
    "no-outcome",
    "near-duplicate",
    "repeated",
    "same-text",
    "unknown-outcome",
    "mixed-models",
]
Weight = Literal["wrong", "warning", "note"]

WEIGHTS: dict[Kind, Weight] = {
    "overlap": "wrong",
    "contradiction": "wrong",
    "no-contrast": "wrong",
    "no-outcome": "wrong",
    "near-duplicate": "warning",
    "repeated": "note",
    "same-text": "note",
    "unknown-outcome": "note",
    "mixed-models": "note",
}
"""How bad each kind of finding is, worst first: what makes numbers worthless, what may, and what one should know."""

NEAR = 0.98
"""Cosine from which two questions count as nearly the same: paraphrases and typing slips lie above it."""
BLOCK = 2048
"""Questions that are compared with all before them at a time; what one step needs stays below a hundred megabytes."""
TILE = 8192
"""Questions that a block is compared with in one matrix product."""
EXAMPLES = 3
"""Examples that a finding carries; all debates stand in its lists."""


@dataclass(frozen=True, slots=True)
class Experience:
    """What one agent has lived through in one data set, as one source judged it."""

    agent: str
    dataset: str
    source: str
    cases: int
    known: int
    """Cases whose reward is known; the others are left out of the share."""
    share: float | None
    """Share of the known cases that were rewarded (their mean reward); None where none is known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or that one should know."""

    kind: Kind
    weight: Weight
    text: str
    count: int
    """How many questions, debates or cases it is about; the text says which."""
    debates: tuple[str, ...]
    """Ids of all debates that it is about, in the memory's order."""
    forget: tuple[str, ...] = ()
    """Ids of the debates without which it is mended; none where forgetting would not help."""
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit came to."""

    debates: int
    cases: int
    experiences: tuple[Experience, ...]
    findings: tuple[Finding, ...]
    """Worst first."""

    @property
    def clean(self) -> bool:
        """Whether there is nothing worse than notes."""
        return all(finding.weight == "note" for finding in self.findings)

    @property
    def forget(self) -> tuple[str, ...]:
        """Ids of the debates to forget to be rid of what is wrong and of what there is a warning of, each once."""
        return tuple(dict.fromkeys(id for one in self.findings if one.weight != "note" for id in one.forget))


def audit(debates: Iterable[Remembered], against: Sequence[Item] = ()) -> Audit:
    """Look a memory through.

    Args:
        debates: all of a memory's, in its order.
        against: items that nothing in the memory should be about, such as those of a test split.
    """
    auditor = Auditor()
    for debate in debates:
        auditor.take(debate)
    return auditor.report(against)


@dataclass(slots=True)
class _Asked:
    """All that is known of one question."""

    question: Question
    vector: Vectors
    debates: list[str] = field(default_factory=list)
    verdicts: list[tuple[AnswerKind, str | None, dict[str, set[bool]]]] = field(default_factory=list)
    """For each debate its kind of answers, the right answer, and how each answer was judged."""


@dataclass(slots=True)
class _Tally:
    cases: int = 0
    known: int = 0
    rewarded: float = 0.0


@dataclass(slots=True)
class _Holder:
    """What is known of one agent's bank."""

    cases: int = 0
    rewards: set[float] = field(default_factory=set)
    models: Counter[str] = field(default_factory=Counter)
    debates: list[str] = field(default_factory=list)


class Auditor:
    """`audit` in two steps, for who learns from the debates themselves what to hold them against."""

    def __init__(self) -> None:
        self.datasets: set[str] = set()
        """Names of the data sets that the debates taken so far come from."""
        self._debates = 0
        self._cases = 0
        self._tallies: defaultdict[tuple[str, str, str], _Tally] = defaultdict(_Tally)
        self._holders: defaultdict[str, _Holder] = defaultdict(_Holder)
        self._asked: dict[str, _Asked] = {}
        self._unknown: list[str] = []

    def take(self, debate: Remembered) -> None:
        """Look at one more debate."""
        record, outcome = debate.record, debate.outcome
        self._debates += 1
        if record.dataset:
            self.datasets.add(record.dataset)
        if all(reward is None for reward in outcome.rewards):
            self._unknown.append(record.id)
        for _, seat in debate.states:
            agent, reward = record.agents[seat], outcome.rewards[seat]
            tally, holder = self._tallies[agent.name, record.dataset, outcome.source], self._holders[agent.name]
            self._cases += 1
            tally.cases += 1
            holder.cases += 1
            holder.models[agent.model] += 1
            if not holder.debates or holder.debates[-1] != record.id:
                holder.debates.append(record.id)
            if reward is not None:
                tally.known += 1
                tally.rewarded += reward
                holder.rewards.add(reward)
        asked = self._asked.setdefault(question_key(record.question), _Asked(record.question, debate.question))
        asked.debates.append(record.id)
        asked.verdicts.append((record.question.kind, outcome.answer, _judged(debate)))

    def report(self, against: Sequence[Item] = ()) -> Audit:
        """What was found in the debates taken so far; formulas are compared here, which may take seconds."""
        findings = [
            *self._overlaps(against),
            *self._contradictions(),
            *self._banks(),
            *self._doubles(),
            *self._unknowns(),
        ]
        order = list(WEIGHTS)
        return Audit(
            self._debates,
            self._cases,
            tuple(
                Experience(*key, one.cases, one.known, one.rewarded / one.known if one.known else None)
                for key, one in sorted(self._tallies.items())
            ),
            tuple(sorted(findings, key=lambda finding: order.index(finding.kind))),
        )

    def _overlaps(self, against: Sequence[Item]) -> Iterable[Finding]:
        by_question: defaultdict[str, list[_Asked]] = defaultdict(list)
        by_text: defaultdict[str, list[_Asked]] = defaultdict(list)
        for asked in self._asked.values():
            by_question[_loosely(asked.question)].append(asked)
            by_text[_squeezed(asked.question.text)].append(asked)
        items = {_loosely(item.question) for item in against}
        same: defaultdict[str, dict[str, _Asked]] = defaultdict(dict)
        alike: defaultdict[str, dict[str, _Asked]] = defaultdict(dict)
        for item in against:
            where, own = f"{item.dataset or 'items'}:{item.split or 'all'}", _loosely(item.question)
            same[where] |= {question_key(one.question): one for one in by_question.get(own, ())}
            for one in by_text.get(_squeezed(item.question.text), ()):
                if _loosely(one.question) not in items:  # what is itself an item is an overlap, and told as one
                    alike[where][question_key(one.question)] = one
        for where, found in sorted(same.items()):
            if found:
                ids = _ids(found.values())
                text = f"{where}: {_count(len(found), 'question')} in {_count(len(ids), 'debate')}"
                yield _finding("overlap", text, len(found), ids, ids, _texts(found.values()))
        for where, found in sorted(alike.items()):
            ids = _ids(found.values())
            text = f"{where}: {_count(len(found), 'text')} with other options, in {_count(len(ids), 'debate')}"
            yield _finding("same-text", text, len(found), ids, (), _texts(found.values()))

    def _contradictions(self) -> Iterable[Finding]:
        two_truths, both_ways = [], []
        for asked in self._asked.values():
            if len(asked.debates) > 1:
                right, judged = _contradicting(asked)
                two_truths += [asked] if right else []
                both_ways += [asked] if judged else []
        for found, what in ((two_truths, "different right answers"), (both_ways, "an answer judged right and wrong")):
            if found:
                ids = _ids(found)
                text = f"{_count(len(found), 'question')} with {what}, in {_count(len(ids), 'debate')}"
                yield _finding("contradiction", text, len(found), ids, ids, _texts(found))

    def _banks(self) -> Iterable[Finding]:
        for name, holder in sorted(self._holders.items()):
            cases, ids = _count(holder.cases, "case"), tuple(holder.debates)
            if not holder.rewards:
                yield _finding("no-outcome", f"{name}: of {cases} no outcome is known", holder.cases, ids)
            elif len(holder.rewards) == 1:
                (reward,) = holder.rewards
                all_ = {1.0: "right", 0.0: "wrong"}.get(reward, f"rewarded {reward:g}")
                yield _finding("no-contrast", f"{name}: {cases}, all {all_}", holder.cases, ids)
            if len(holder.models) > 1:
                shares = ", ".join(f"{model} ({number})" for model, number in holder.models.most_common())
                yield _finding("mixed-models", f"{name}: cases of several models, {shares}", len(holder.models), ids)

    def _doubles(self) -> Iterable[Finding]:
        asked = list(self._asked.values())
        near = _near(asked)
        if near:
            ids = _ids(asked[index] for index in sorted({*near, *near.values()}))
            later = _ids(asked[index] for index in near)
            text = f"{_count(len(near), 'question')} nearly the same as another, in {_count(len(later), 'debate')}"
            pairs = [
                f"{asked[late].question.text} / {asked[early].question.text}"
                for late, early in list(near.items())[:EXAMPLES]
            ]
            yield _finding("near-duplicate", text, len(near), ids, later, tuple(pairs))
        again = [one for one in asked if len(one.debates) > 1]
        if again:
            ids = _ids(again)
            text = f"{_count(len(again), 'question')} debated more than once, in {_count(len(ids), 'debate')}"
            later = tuple(id for one in again for id in one.debates[1:])
            yield _finding("repeated", text, len(again), ids, later, _texts(again))

    def _unknowns(self) -> Iterable[Finding]:
        if self._unknown:
            ids = tuple(self._unknown)
            text = f"{_count(len(ids), 'debate')} without any known outcome; such cases count as failures"
            yield _finding("unknown-outcome", text, len(ids), ids, ids)


def _judged(debate: Remembered) -> dict[str, set[bool]]:
    """How each answer given in a debate was judged; by the rewards where the last replies themselves were not."""
    verdicts: defaultdict[str, set[bool]] = defaultdict(set)
    outcome, last = debate.outcome, len(debate.record.rounds) - 1
    for settled, row in zip(debate.record.rounds, outcome.correct, strict=False):
        for reply in settled.replies:
            if reply.answer is None or reply.sample:  # an outcome tells of one reply an agent
                continue
            right = row[reply.agent]
            if right is None and settled.index == last:
                right = _verdict(outcome.rewards[reply.agent])
            if right is not None:
                verdicts[reply.answer].add(right)
    return dict(verdicts)


def _verdict(reward: float | None) -> bool | None:
    """What a reward says of the answer; a value between says nothing that could be contradicted."""
    return bool(reward) if reward in (0.0, 1.0) else None


def _contradicting(asked: _Asked) -> tuple[bool, bool]:
    """Whether a question has different right answers, and whether one of its answers was judged both ways.

    Answers of one canonical form are the equivalent ones; see `r2mad.answers`.
    """
    right: defaultdict[AnswerKind, set[str]] = defaultdict(set)
    judged: defaultdict[tuple[AnswerKind, str], set[bool]] = defaultdict(set)
    for kind, answer, verdicts in asked.verdicts:
        form = None if answer is None else canonical(answer, kind)
        if form and form.decided:  # a formula that was given up may be the same as any other
            right[kind].add(form.key)
        for given, signs in verdicts.items():
            judged[kind, canonical(given, kind).key] |= signs
    return any(len(keys) > 1 for keys in right.values()), any(len(signs) > 1 for signs in judged.values())


def _near(asked: Sequence[_Asked]) -> dict[int, int]:
    """For each question that is nearly the same as an earlier one that stays: which one that is.

    Without the questions that are keys here no two are left that are nearly the same. So many questions are alike in
    some memories that the pairs would fill the machine; this keeps one partner each.
    """
    import numpy as np

    if len(asked) < 2:
        return {}
    vectors: Vectors = np.stack([one.vector for one in asked])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0.0] = 1.0  # zeros stay zeros, and are like nothing
    vectors /= lengths
    partner: dict[int, int] = {}
    stay = np.zeros(0, dtype=np.int64)
    for start in range(0, len(vectors), BLOCK):
        block = vectors[start : start + BLOCK]
        for first in range(0, len(stay), TILE):
            columns = stay[first : first + TILE]
            hits = block @ vectors[columns].T >= NEAR
            for row in np.flatnonzero(hits.any(axis=1)):
                partner.setdefault(start + int(row), int(columns[hits[row].argmax()]))
        alone = np.array([start + row not in partner for row in range(len(block))])
        within = np.tril(block @ block.T >= NEAR, -1)
        for row in np.flatnonzero(within.any(axis=1) & alone):  # in order: what goes away itself makes no other go
            earlier = np.flatnonzero(within[row] & alone)
            if len(earlier):
                partner[start + int(row)] = start + int(earlier[0])
                alone[row] = False
        stay = np.concatenate([stay, start + np.flatnonzero(alone)])
    return dict(sorted(partner.items()))


def _finding(
    kind: Kind,
    text: str,
    count: int,
    debates: tuple[str, ...],
    forget: tuple[str, ...] = (),
    examples: tuple[str, ...] = (),
) -> Finding:
    return Finding(kind, WEIGHTS[kind], text, count, debates, forget, examples)


def _ids(asked: Iterable[_Asked]) -> tuple[str, ...]:
    return tuple(id for one in asked for id in one.debates)


def _texts(asked: Iterable[_Asked]) -> tuple[str, ...]:
    return tuple(one.question.text for one in asked)[:EXAMPLES]


def _squeezed(text: str) -> str:
    """A text without what a copy may change in it: spacing and case."""
    return " ".join(text.split()).casefold()


def _loosely(question: Question) -> str:
    """What a question and its copy share: neither spacing and case nor the order of the options counts."""
    return digest([_squeezed(question.text), sorted(map(_squeezed, question.options))])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
