"""The automatic mask: which mask tells right replies from wrong ones better for a model, on labelled training items.

"Multi-Agent Debate with Memory Masking" finds that weak models judge better than their log-probabilities, and strong
ones worse, and names the missing choice between the two masks as a limitation. Here a few training questions are
answered by the agents alone; every reply is then judged as the subjective mask would, and scored as the objective one
would. The mask whose score has the larger area under the ROC curve is chosen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from r2mad import engine
from r2mad.api import Table
from r2mad.errors import EndpointError, UsageError
from r2mad.experience import leak_key
from r2mad.mask import AutoMask, ObjectiveMask, ask_verdict
from r2mad.method import Method
from r2mad.methods import METHODS
from r2mad.study.runner import USELESS, refuse_known
from r2mad.study.scores import grade_async
from r2mad.study.stats import separation
from r2mad.types import Item, MaskChoice, Separation, digest

Announce = Callable[[int, int], None]
"""Told how many training items are done, and of how many."""

WORTH = {"yes": 1.0, "no": 0.0}
"""What a verdict says of a reply; not sure, and what cannot be read, is between."""
SEED = 0
"""Seed of the training debates. Always the same, so that a choice is made once and then comes from the cache."""


@dataclass(frozen=True, slots=True)
class _Graded:
    """One training reply as both masks see it."""

    item: str
    right: bool
    verdict: str | None
    score: float | None


async def choose_mask(table: Table, items: Sequence[Item], announce: Announce | None = None) -> MaskChoice:
    """Find out which mask suits the models of a table.

    For each item every agent answers once, alone, and its reply is judged once: 2n calls an item, all from the cache
    when they were made before. Where only the subjective mask is possible nothing is asked. These calls are not part of
    any debate, and no record counts them.

    Args:
        table: open models. Of several kinds, only the subjective mask can serve them all.
        items: labelled training items, none of which may be evaluated later; see `refuse_overlap`.
        announce: told of progress.

    Raises:
        UsageError: no items.
        EndpointError: the endpoint refuses every call alike.
        ModelError: the endpoint cannot be reached.
    """
    if not items:
        raise UsageError("the automatic mask needs labelled training items, and there are none")
    why = await _why_not_objective(table)
    if why:
        return MaskChoice(
            "subjective", f"the objective mask is not possible: {why}", data=_digest(items), questions=_keys(items)
        )
    # an opening has one round, and a debate's cap on calls is not meant for it
    alone = table.settings.changed(rounds=None, max_calls=None, logprobs=True)
    table = replace(table, settings=alone)
    done = 0

    async def one(item: Item) -> list[_Graded]:
        nonlocal done
        found = await _graded(table, item)
        done += 1
        if announce:
            announce(done, len(items))
        return found

    graded = [reply for found in await asyncio.gather(*(one(item) for item in items)) for reply in found]
    if not graded:
        raise UsageError("the automatic mask learned nothing: every training reply failed")
    subjective = _separation(graded, [WORTH.get(reply.verdict or "", 0.5) for reply in graded])
    withs = [reply for reply in graded if reply.score is not None]
    objective = _separation(withs, [reply.score or 0.0 for reply in withs])
    chosen, reason = _better(subjective, objective)
    return MaskChoice(
        chosen="objective" if chosen else "subjective",
        reason=reason,
        items=len(items),
        right=sum(reply.right for reply in graded),
        wrong=sum(not reply.right for reply in graded),
        subjective=subjective,
        objective=objective,
        data=_digest(items),
        questions=_keys(items),
    )


def with_choice(method: Method, choice: MaskChoice) -> Method:
    """The method with its automatic mask decided."""
    skew = tuple(replace(part, choice=choice) if isinstance(part, AutoMask) else part for part in method.skew)
    return replace(method, skew=skew)


def refuse_overlap(items: Sequence[Item], evaluated: Sequence[Item]) -> None:
    """Make sure that no evaluated question helps to choose (invariant 1).

    Raises:
        UsageError: some do.
    """
    refuse_known({leak_key(item.question) for item in items}, evaluated)


def training(items: Sequence[Item], limit: int) -> list[Item]:
    """`limit` training items, drawn by a hash of their ids: files are often sorted by topic."""
    return sorted(items, key=lambda item: digest(["train", item.question.id]))[:limit]


def _digest(items: Sequence[Item]) -> str:
    return digest([[item.question.id, item.gold] for item in items])


def _keys(items: Sequence[Item]) -> tuple[str, ...]:
    return tuple(leak_key(item.question) for item in items)


async def _why_not_objective(table: Table) -> str | None:
    """Why the objective mask is not possible at all; it needs one model, and log-probabilities from it."""
    if len({model.identity for model in table.models}) > 1:
        return "the agents are different models"
    try:
        await table.equip(METHODS["mad-m2-o"])
    except UsageError:
        return "the endpoint sends no log-probabilities"
    return None


async def _graded(table: Table, item: Item) -> list[_Graded]:
    """Every agent's reply to one item, judged and scored. What failed, or was not judged, teaches nothing."""
    scene, vote = table.prepare(item.question, "vote", seed=SEED)
    record = await engine.run(scene, vote)
    opening = record.rounds[0]
    kinds = {why.kind for _, _, why in record.failures}
    if record.stopped == "failed" and kinds <= USELESS:
        raise EndpointError(f"no mask can be chosen: {record.failures[0][2].message}")
    score = await grade_async(record, item)
    heard = [(reply, sign == "1") for reply, sign in zip(opening.replies, score.grades[0], strict=True) if sign != "x"]
    notes = await asyncio.gather(*(ask_verdict(scene, opening, reply.agent) for reply, _ in heard))
    mask = ObjectiveMask()
    return [
        _Graded(item.question.id, right, note.verdict, mask.of(reply))
        for (reply, right), note in zip(heard, notes, strict=True)
        if not note.error
    ]


def _separation(graded: Sequence[_Graded], score: Sequence[float]) -> Separation | None:
    return separation(score, [reply.right for reply in graded], [reply.item for reply in graded], seed=SEED)


def _better(subjective: Separation | None, objective: Separation | None) -> tuple[bool, str]:
    """(whether it is the objective mask, why)."""
    if subjective is None or objective is None:
        return (
            True,
            "the training replies are all right or all wrong, so neither mask can be told to be better; the "
            "objective one costs no call",
        )
    if objective.auc >= subjective.auc:
        return (
            True,
            f"log-probabilities separate right from wrong with an area of {objective.auc:.3f}, verdicts with "
            f"{subjective.auc:.3f}",
        )
    return (
        False,
        f"verdicts separate right from wrong with an area of {subjective.auc:.3f}, log-probabilities with "
        f"{objective.auc:.3f}",
    )
