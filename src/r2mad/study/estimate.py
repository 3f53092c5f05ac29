"""What a study will take, before anything is asked: calls exactly, tokens from the prompts that will be sent.

One debate a data set and method is held with a made-up model whose replies have the length that is asked about and
never agree, so that every round is held. Its prompts are the real ones, personas, options and all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from r2mad import engine
from r2mad.api import Table
from r2mad.context import History
from r2mad.diverse import Diverse
from r2mad.method import Method
from r2mad.models.scripted import ScriptedModel
from r2mad.opening import Independent, Reminded
from r2mad.settings import Settings
from r2mad.study.config import StudyConfig, Team
from r2mad.study.masking import with_choice
from r2mad.study.plan import Variant, make_plan
from r2mad.types import Completion, Item, MaskChoice, Request, Usage, total
from r2mad.verdict import Never

LETTERS = 4
"""Characters a token; English prose and formulas have about so many."""
CASE_TOKENS = 250
"""Tokens of a remembered case in a prompt: a question with options, the summary, who held what."""
SUMMARY_TOKENS = 80
VERDICT_TOKENS = 3
SAMPLE = 5
"""Questions of a data set whose prompts are measured: the longest, the shortest, and some between."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One cell of a study, at most."""

    model: str
    dataset: str
    method: str
    debates: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    """None without a price."""


async def estimate(config: StudyConfig, reply_tokens: int) -> list[Estimate]:
    """Every cell of a study, and what it would take if no debate ended early, no call were shared, and none was held.

    Args:
        config: the study.
        reply_tokens: tokens of a reply.

    Raises:
        UsageError: see `make_plan`.
    """
    plan = make_plan(config)
    return [
        await _row(config, team, name, items, variant, reply_tokens)
        for team in config.teams
        for name, items in plan.items.items()
        for variant in plan.variants
    ]


async def _row(
    config: StudyConfig, team: Team, name: str, items: Sequence[Item], variant: Variant, reply_tokens: int
) -> Estimate:
    method = variant.method
    if method.needs_choice:
        method = with_choice(method, MaskChoice("subjective", "the dearer of the two"))
    sizes = [await _size(config.settings, item, method, reply_tokens) for item in _spread(items)]
    count = len(items) * len(config.seeds)
    read_, written = (round(count * sum(part) / len(sizes)) for part in zip(*sizes, strict=True))
    known = [config.prices[seat.model] for seat in team.seats if seat.model in config.prices]
    cost = None
    if known:
        cost = (read_ * sum(p.input for p in known) + written * sum(p.output for p in known)) / len(known) / 1e6
    return Estimate(team.name, name, variant.method.name, count, count * method.calls, read_, written, cost)


def _spread(items: Sequence[Item]) -> list[Item]:
    """A few items from the shortest to the longest."""
    by_length = sorted(items, key=lambda item: len(item.question.text) + sum(map(len, item.question.options)))
    count = min(SAMPLE, len(by_length))
    return [by_length[round(place * (len(by_length) - 1) / max(1, count - 1))] for place in range(count)]


async def _size(settings: Settings, item: Item, method: Method, reply_tokens: int) -> tuple[int, int]:
    """Tokens read and written in one debate of all rounds."""

    def script(request: Request) -> Completion:
        asked = sum(len(message.content) for message in request.messages) // LETTERS
        length = {"summary": SUMMARY_TOKENS, "judge": VERDICT_TOKENS}.get(request.kind, reply_tokens)
        # as long as a reply, and of no answer, so that nobody agrees
        text = "YES" if request.kind == "judge" else "word" * length
        return Completion(text, mean_logprob=-0.5, mean_top_logprob=-0.5, usage=Usage(asked, length))

    opening = method.opening
    if isinstance(opening, Diverse):
        opening = replace(opening, lean="random")  # it costs the same, and needs no embedder
    elif isinstance(opening, Reminded):
        opening = Independent()
    plain = replace(  # no memory is there to read yet: its cases are added below
        method,
        opening=opening,
        retrieval=None,
        summarise=method.summarises,
        skew=tuple(part for part in method.skew if not getattr(part, "needs_memory", False)),
        stop=Never(),
    )
    model = ScriptedModel(script, "scripted/estimate")
    table = Table((model,), settings.changed(memory=None, max_calls=None), as_given=True)
    scene, sized = table.prepare(item.question, plain, seed=0)
    record = await engine.run(scene, sized)
    used = total(record.usage.values())
    return used.prompt_tokens + _remembered(method, sized), used.completion_tokens


def _remembered(method: Method, sized: Method) -> int:
    """Tokens of the cases that would stand in its prompts; in a conversation they stand in every later one too."""
    if not method.needs_memory:
        return 0
    if method.retrieval is None:
        return 3 * CASE_TOKENS
    if not method.retrieval.shown:
        return 0
    later = sized.rounds - 1
    times = later * (later + 1) // 2 if isinstance(sized.context, History) else later
    return method.retrieval.k * CASE_TOKENS * sized.agents * times
