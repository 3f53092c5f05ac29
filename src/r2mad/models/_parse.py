"""From a chat completion's JSON to a `Completion`, whatever the JSON: nothing but `BadResponseError` is raised."""

from __future__ import annotations

import math
from typing import Any

from r2mad.errors import BadResponseError
from r2mad.types import Completion, Usage, clean

LONGEST_REASON = 40
"""Characters of a finish reason that are kept; real ones are one word."""
LONGEST_NAME = 200
"""Characters of a model's name that are kept, for the same reason."""
LEAST_LOGPROB = -9999.0
"""What stands for minus infinity, as at OpenAI and vLLM: a record must stay valid JSON, which knows no infinity."""


def parse_completion(data: Any) -> Completion:
    """Read the first choice of a chat completion; `seconds` and `cached` are left to the caller.

    Raises:
        BadResponseError: no object, no choices, no message, or neither a text nor a reason for ending.
    """
    if not isinstance(data, dict):
        raise BadResponseError(f"the reply is a JSON {type(data).__name__}, not an object")
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        raise BadResponseError("the reply has no choices")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise BadResponseError("the reply's first choice has no message")
    text, thought = _content(message.get("content"))
    finish = choice.get("finish_reason")
    finish = finish if isinstance(finish, str) else ""
    refusal = message.get("refusal")
    if not text and isinstance(refusal, str):
        text = refusal
    reasoning = _text(message.get("reasoning_content")) or _text(message.get("reasoning")) or thought
    if not text and not finish:
        raise BadResponseError("the reply has neither text nor a finish reason")
    if finish == "error":  # routers report a backend that died in mid-reply this way
        raise BadResponseError("the server broke the reply off with an error")
    sampled, top = _logprobs(choice.get("logprobs"))
    model = data.get("model")
    return Completion(
        text=clean(text),
        reasoning=clean(reasoning) or None,
        finish_reason=clean(finish)[:LONGEST_REASON],
        mean_logprob=sampled,
        mean_top_logprob=top,
        usage=parse_usage(data.get("usage")),
        model=clean(model)[:LONGEST_NAME] if isinstance(model, str) else "",
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _content(content: object) -> tuple[str, str]:
    """Text and reasoning of a message's content: a string, nothing, or a list of parts."""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, list):
        return "", ""
    texts, thoughts = [], []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            texts.append(_text(part.get("text")))
            thinking = part.get("thinking")
            if isinstance(thinking, list):  # Mistral: the thoughts are parts again
                thinking = "".join(_text(one.get("text")) for one in thinking if isinstance(one, dict))
            thoughts.append(_text(thinking))
    return "".join(texts), "".join(thoughts)


def parse_usage(usage: object) -> Usage:
    """Token counts; whatever is missing or no count is zero."""
    if not isinstance(usage, dict):
        return Usage()
    completion, prompt = usage.get("completion_tokens_details"), usage.get("prompt_tokens_details")
    return Usage(
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        reasoning_tokens=_count(completion.get("reasoning_tokens")) if isinstance(completion, dict) else 0,
        cached_tokens=_count(prompt.get("cached_tokens")) if isinstance(prompt, dict) else 0,
    )


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    if isinstance(value, float) and not math.isfinite(value):
        return 0
    return max(0, int(value))


def _logprobs(logprobs: object) -> tuple[float | None, float | None]:
    """Mean log-probability of the sampled tokens and of the first of each place's top ones."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return None, None
    try:  # as servers send it; five times as fast as looking at each thing
        sampled = [token["logprob"] for token in content]
        top = [token["top_logprobs"][0]["logprob"] for token in content]
    except (TypeError, KeyError, IndexError):
        tokens = [token for token in content if isinstance(token, dict)]
        sampled = [token.get("logprob") for token in tokens]
        top = [_best(token.get("top_logprobs")) for token in tokens]
    return _mean(sampled), _mean(top)


def _best(top: object) -> object:
    return top[0].get("logprob") if isinstance(top, list) and top and isinstance(top[0], dict) else None


def _mean(values: list[Any]) -> float | None:
    """Mean of the log-probabilities among the values: not null, no NaN, no text."""
    usual = all(type(value) is float for value in values) and math.isfinite(sum(values))
    if not usual or not LEAST_LOGPROB <= min(values, default=0) <= max(values, default=0) <= 0:
        values = [_logprob(value) for value in values if _number(value)]
    return math.fsum(values) / len(values) if values else None


def _logprob(value: float) -> float:
    """Finite, and at most 0: servers' rounding goes a little above."""
    return float(min(0.0, max(LEAST_LOGPROB, value)))


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
