"""How well masks find false memories: the third figure of "Multi-Agent Debate with Memory Masking".

A false memory is a reply of the round before that is not right. A mask is meant to hide those and no others, so its
precision is the share of hidden replies that are false, its recall the share of false replies that it hides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from r2mad.study.graded import Graded, by_method, graded
from r2mad.study.scores import Score
from r2mad.study.stats import Proportion
from r2mad.types import DebateRecord, Round

SPOKEN = ("yes", "no", "not sure", "unreadable", "failed")
"""What the verdict of a subjective mask may be."""


@dataclass(frozen=True, slots=True)
class Told:
    """How often a verdict was given, by whether the reply was right."""

    verdict: str
    right: int
    wrong: int


@dataclass(frozen=True, slots=True)
class MaskQuality:
    """A mask's judgements against the truth: one a debate, round and reply, since one mask serves all agents."""

    debates: int
    """Debates in which it judged anything."""
    masked_wrong: int
    """False memories that were hidden (true positives)."""
    masked_right: int
    """Right replies that were hidden (false positives)."""
    kept_wrong: int
    """False memories that were shown (false negatives)."""
    kept_right: int
    """Right replies that were shown (true negatives)."""
    unscored: int
    """Replies of rounds in which no reply had a log-probability, so none was hidden; counted nowhere else."""
    verdicts: tuple[Told, ...]
    """Of a subjective mask, in the order of `SPOKEN`; those that were never given are left out."""

    @property
    def judged(self) -> int:
        """All of them."""
        return self.masked_wrong + self.masked_right + self.kept_wrong + self.kept_right

    @property
    def precision(self) -> Proportion:
        """The share of hidden replies that are false. A mask that hides at random has `false`'s share."""
        return Proportion(self.masked_wrong, self.masked_wrong + self.masked_right)

    @property
    def recall(self) -> Proportion:
        """The share of false replies that are hidden."""
        return Proportion(self.masked_wrong, self.masked_wrong + self.kept_wrong)

    @property
    def right_masked(self) -> Proportion:
        """The share of right replies that are hidden: what the mask costs."""
        return Proportion(self.masked_right, self.masked_right + self.kept_right)

    @property
    def false(self) -> Proportion:
        """The share of all judged replies that are false."""
        return Proportion(self.masked_wrong + self.kept_wrong, self.judged)


def qualities(records: Iterable[DebateRecord], scores: Iterable[Score]) -> dict[str, MaskQuality]:
    """How well the mask of each method found what was false; methods without a mask are left out.

    A reply is masked if any view that lists it says so. What failed was not judged, and does not count. Wilson's
    intervals take replies as independent; those of one debate are not, so the true intervals are somewhat wider.
    """
    found = {method: _quality(debates) for method, debates in by_method(graded(records, scores)).items()}
    return {method: quality for method, quality in found.items() if quality.judged or quality.unscored}


def _quality(debates: Sequence[Graded]) -> MaskQuality:
    truth: Counter[tuple[bool, bool]] = Counter()
    verdicts: Counter[tuple[str, bool]] = Counter()
    judging = unscored = 0
    for one in debates:
        any_judged = False
        for index in range(1, len(one.record.rounds)):
            judged = _judged(one.record.rounds[index])
            any_judged |= bool(judged)
            if all(verdict == "unscored" and not masked for verdict, masked in judged.values()):
                unscored += len(judged)
                continue
            for reply, right in one.replies(index - 1):
                if reply.agent in judged:
                    verdict, masked = judged[reply.agent]
                    truth[masked, right] += 1
                    verdicts[verdict, right] += 1
        judging += any_judged
    told = [Told(verdict, verdicts[verdict, True], verdicts[verdict, False]) for verdict in SPOKEN]
    return MaskQuality(
        debates=judging,
        masked_wrong=truth[True, False],
        masked_right=truth[True, True],
        kept_wrong=truth[False, False],
        kept_right=truth[False, True],
        unscored=unscored,
        verdicts=tuple(one for one in told if one.right or one.wrong),
    )


def _judged(settled: Round) -> dict[int, tuple[str, bool]]:
    """For each agent whose reply of the round before a mask judged: the verdict, and whether the reply was hidden."""
    found: dict[int, tuple[str, bool]] = {}
    for view in settled.views:
        for peer in view.peers:
            if peer.verdict is None or peer.verdict == "error":
                continue
            if peer.agent not in found or not peer.shown:  # a view that hides it has the last word
                found[peer.agent] = peer.verdict, not peer.shown
    return found
