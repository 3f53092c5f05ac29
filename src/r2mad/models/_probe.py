"""What a model's server can do, found out by asking rather than by trusting its documentation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from r2mad.errors import ModelError
from r2mad.protocols import ChatModel
from r2mad.types import Completion, Message, Request, Sampling

TOKENS = 24
"""Tokens a probe's reply may have: enough that two samples at temperature 1 hardly ever agree by chance."""
_ASKED = (
    Message("system", "You write short, surprising sentences."),
    Message("user", "Write one sentence about anything you like."),
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What `probe` found."""

    logprobs: bool = False
    """Whether log-probabilities come back when they are asked for."""
    seeds: bool | None = None
    """Whether a seed decides a reply: the same seed the same text, another seed another. None: cannot be told."""
    system_role: bool = False
    """Whether it takes a system message as it is."""
    error: str | None = None
    """Why the probe ended early, in one line; what else stands here is then what was known by then."""
    tokens_per_second: float | None = None
    """Completion tokens a second over the probe's calls, one at a time; None where the server counts none."""


async def probe(model: ChatModel) -> Capabilities:
    """Ask a model three or four short questions, past any cache, and say what it can do. Raises nothing of a call."""
    model = getattr(model, "uncached", model)
    replies: list[Completion] = []
    error: str | None = None
    try:
        for sample, seed in enumerate((1, 1, 2, 3)):
            if sample == 3 and not _alike(replies[0], replies[1], replies[2]):
                break  # the fourth is asked only where the third came out like the first two
            sampling = Sampling(max_tokens=TOKENS, logprobs=True)
            replies.append(await model.complete(Request(_ASKED, sampling, seed=seed, sample=sample)))
    except ModelError as failure:
        error = str(failure)
    tokens = sum(reply.usage.completion_tokens for reply in replies)
    seconds = sum(reply.seconds for reply in replies)
    return Capabilities(
        logprobs=any(reply.mean_logprob is not None for reply in replies),
        seeds=_seeds(replies),
        system_role=bool(replies) and "fold-system" not in getattr(model, "quirks", ()),
        error=error,
        tokens_per_second=round(tokens / seconds, 1) if tokens and seconds > 0 else None,
    )


async def sends_logprobs(model: ChatModel, sampling: Sampling, *, top: bool = False) -> bool:
    """Whether a model's replies come with log-probabilities, by one short question; a cached yes is believed.

    Args:
        model: what is asked.
        sampling: as its replies will be sampled; the probe's is shorter, unless the model spends it all on reasoning.
        top: whether those of the likeliest tokens must be among them.

    Raises:
        ModelError: the question could not be asked.
    """

    def found(reply: Completion) -> bool:
        return (reply.mean_top_logprob if top else reply.mean_logprob) is not None

    quiet = logging.getLogger("r2mad.models.openai")
    before = quiet.disabled
    quiet.disabled = True  # that none came is our answer, and no warning
    try:
        return await _sent(model, sampling, found)
    finally:
        quiet.disabled = before


async def _sent(model: ChatModel, sampling: Sampling, found: Callable[[Completion], bool]) -> bool:
    for tokens in (TOKENS, max(TOKENS, sampling.max_tokens)):
        request = Request(_ASKED, replace(sampling, max_tokens=tokens, logprobs=True), seed=1)
        reply = await model.complete(request)
        if not found(reply) and reply.cached:  # the server may have been set up anew since
            reply = await getattr(model, "uncached", model).complete(request)
        if found(reply) or reply.text.strip():
            return found(reply)
    return False


def _alike(*replies: Completion) -> bool:
    return len({(reply.text, reply.reasoning) for reply in replies}) == 1


def _seeds(replies: list[Completion]) -> bool | None:
    if len(replies) < 2 or not (replies[0].text or replies[0].reasoning):
        return None
    if not _alike(replies[0], replies[1]):
        return False
    return None if len(replies) < 3 or _alike(*replies) else True
