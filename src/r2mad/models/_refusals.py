"""What a server's refusal means: from status, headers and body to one error of the tree, with one clear line.

Servers agree on nothing but the status, so the words are read: OpenAI, vLLM, llama.cpp, SGLang, TGI, Ollama,
LM Studio, Gemini, Mistral, Groq, xAI and Cohere each say "too long" in their own way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from r2mad.errors import (
    AuthenticationError,
    ContextOverflowError,
    EndpointError,
    ModelError,
    ModelNotFoundError,
    RateLimitedError,
    RequestRejectedError,
    ServerFaultError,
)
from r2mad.models._retry import Refusal, retry_after

SHOWN = 300
"""Characters of the server's own message that an error shows: two lines of a terminal."""
READ = 4000
"""Characters of it that are searched: enough for any refusal, and no regular expression runs over a whole page."""

FOLD = "fold-system"
"""Quirk: the chat template refuses the system role, or two turns of one role in a row."""
COMPLETION_TOKENS = "max_completion_tokens"
"""Quirk: the model wants `max_completion_tokens` in place of `max_tokens`."""
DROPPABLE = ("temperature", "top_p", "seed", "logprobs")
"""Parameters that some models refuse; each is its own quirk, and is then no longer sent."""


class QuirkError(RequestRejectedError):
    """A refusal that the same request, written in another way, would not meet; `quirks` says how."""

    def __init__(self, message: str, quirks: frozenset[str]) -> None:
        super().__init__(message)
        self.quirks = quirks


_OVERFLOW = re.compile(
    r"context[ _-]?(?:length|size|window|limit)[ _-]?(?:exceeded|error)|exceed_context_size"
    r"|maximum context length|maximum model length|maximum prompt length|available context size"
    r"|exceeds? (?:the |its )?(?:model'?s )?(?:maximum |max )?(?:allowed )?context"
    r"|longer than the (?:model'?s )?(?:maximum )?(?:context|model)"
    r"|context (?:length|window|size|limit) of (?:only )?\d+|context the overflows"
    r"|prompt is too long|input is too long|prompt too long"
    r"|inputs?`? must have less than \d+ tokens|`?inputs`? tokens \+ `?max_new_tokens`? must be"
    r"|input tokens? (?:count )?(?:\(\d+\) )?exceeds?|too many tokens: total"
    r"|reduce (?:the length of )?(?:the|your) (?:messages?|prompt|input)(?: size)?"
    r"|(?:exceeds?|over|beyond) (?:the )?(?:model'?s )?(?:context|maximum number of tokens)",
    re.IGNORECASE,
)
_LIMIT = (
    r"maximum (?:context|model|prompt) length (?:is |of )(\d+)",
    r"(\d+) maximum context length",
    r"context (?:length|size|window|limit)(?: of)?(?: only)? \(?(\d+)",
    r"available context size \((\d+)",
    r"maximum number of tokens allowed \((\d+)",
    r"configured limit of (\d+)",
    r"must (?:be <=|have less than) (\d+)",
    r"cannot exceed (\d+)",
    r"> (\d+) maximum",
    r"\+ \d+ > (\d+)",
    r"limit:? (\d+)",
)
_PROMPT = (
    r"(\d+) (?:tokens? )?(?:in the messages|in your prompt|in the prompt|from the input)",
    r"(?:request has|resulted in|request contains|contains|keep the first) (\d+) (?:input )?tokens",
    r"(?:request|input|token count) \((\d+)",
    r"prompt \(length (\d+)",
    r"given: (\d+)",
    r"received (\d+)",
    r"too long: (\d+) tokens",
    r"limit: (\d+) \+",
    r"requested (\d+)",
)
_SYSTEM = re.compile(
    r"system (?:role|message|prompt|instruction)s?(?: role)? (?:is |are )?not (?:supported|allowed|enabled)"
    r"|(?:system|developer) instruction is not enabled|roles must alternate|must alternate between"
    r"|only user and assistant roles|unexpected role\W+system|unsupported role\W+system|invalid role\W+system"
    r"|(?:does not|doesn't) support (?:the )?system|system message must be (?:at the beginning|first)",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(
    r"unsupported|not support|n't support|not allowed|not permitted|extra inputs|extra_forbidden|unrecogni[sz]ed"
    r"|unknown (?:parameter|argument|field|name)|unexpected (?:parameter|argument|field)|not available|deprecated",
    re.IGNORECASE,
)
_NO_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "access_terminated"})


def one_line(text: str, limit: int = SHOWN) -> str:
    """The text on one line, without control characters, shortened."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: limit * 4]).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def read_json(raw: bytes) -> Any:
    """The JSON in a body.

    Raises:
        ValueError: it is not JSON, is nested too deeply, or holds a number too long to read.
    """
    try:
        return json.loads(raw)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def server_message(raw: bytes) -> tuple[str, dict[str, Any]]:
    """What the server says is wrong, in its own words, and the fields that came with it (code, type, param…)."""
    try:
        data = read_json(raw)
    except ValueError:
        text = raw[: READ * 4].decode("utf-8", "replace")
        title = re.search(r"<title>([^<]*)", text, re.IGNORECASE)
        return (title.group(1) if title else re.sub(r"<[^<>]*>", " ", text))[:READ], {}
    fields: dict[str, Any] = data if isinstance(data, dict) else {}
    inner = fields.get("error", fields.get("detail", fields.get("errors")))
    if isinstance(inner, dict):
        fields = {**fields, **inner}
    elif isinstance(inner, list) and inner:
        return "; ".join(_validation(one) for one in inner[:8])[:READ], fields
    elif isinstance(inner, str):
        fields = {"message": inner, **fields}
    message = fields.get("message")
    if not isinstance(message, str):
        message = json.dumps(data)[:READ] if data else ""
    return message[:READ], fields


def _validation(one: object) -> str:
    """One entry of a FastAPI-like list of problems, with the place it speaks of."""
    if not isinstance(one, dict):
        return str(one)
    place = one.get("loc")
    where = ".".join(str(part) for part in place) if isinstance(place, list) else ""
    return f"{where}: {one.get('msg') or one.get('message') or one.get('type') or ''}".strip(": ")


def refuse(status: int, headers: Mapping[str, str], raw: bytes, where: str, secrets: tuple[str, ...] = ()) -> Refusal:
    """Turn a response that is not a 200 into a `Refusal`.

    Args:
        where: the URL as an error may show it: host and path.
        secrets: strings that a server may echo and nobody may see.
    """
    said, fields = server_message(raw)
    codes = {str(fields.get(name)) for name in ("code", "type", "status")}
    shown = said
    for secret in secrets:
        shown = shown.replace(secret, "…")
    line = f"{status} from {where}" + (f": {shown}" if (shown := one_line(shown)) else "")
    readable = f"{said} {' '.join(codes)}"
    error: ModelError
    if status in (400, 413, 422, 500):
        special = _overflow(line, readable, fields) or _quirk(line, readable, fields)
        if special:
            return Refusal(special, status)
    if status == 429 and codes & _NO_QUOTA:
        error = EndpointError(line)
    elif status == 429:
        return Refusal(RateLimitedError(line), status, retry=True, retry_after=retry_after(headers))
    elif status in (408, 409) or status >= 500:
        return Refusal(ServerFaultError(line), status, retry=True, retry_after=retry_after(headers))
    elif status in (401, 403):
        error = AuthenticationError(line + ("" if status == 403 else " (is OPENAI_API_KEY set, and right?)"))
    elif status == 404:
        error = ModelNotFoundError(line)
    elif status < 400:
        error = EndpointError(
            f"{line} (it redirects to {one_line(headers.get('Location', 'nowhere').partition('?')[0])}; use that URL)"
        )
    elif status in (402, 405):
        error = EndpointError(line)
    else:
        error = RequestRejectedError(line)
    return Refusal(error, status)


def speaks_of_model(refusal: Refusal) -> bool:
    """Whether a 404 is about the model's name rather than the path."""
    return "model" in str(refusal.error).partition(": ")[2].lower()


def _overflow(line: str, text: str, fields: Mapping[str, Any]) -> ContextOverflowError | None:
    if not _OVERFLOW.search(text):
        return None
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", text)  # "8,192 tokens"
    limit, prompt = _count(fields.get("n_ctx")), _count(fields.get("n_prompt_tokens"))
    return ContextOverflowError(line, limit or _first(_LIMIT, plain), prompt or _first(_PROMPT, plain))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _first(patterns: tuple[str, ...], text: str) -> int | None:
    for pattern in patterns:
        found = re.search(pattern, text, re.IGNORECASE)
        if found and len(found.group(1)) < 12:  # no context has more digits; int() refuses 4,300 of them
            return int(found.group(1))
    return None


def _quirk(line: str, text: str, fields: Mapping[str, Any]) -> QuirkError | None:
    if _SYSTEM.search(text):
        return QuirkError(line, frozenset({FOLD}))
    if not _UNSUPPORTED.search(text):
        return None
    if COMPLETION_TOKENS in text and "max_tokens" in text:
        return QuirkError(line, frozenset({COMPLETION_TOKENS}))
    param = fields.get("param")
    where = (param if isinstance(param, str) and param else text).replace("top_logprobs", "logprobs")
    named = frozenset(name for name in DROPPABLE if re.search(rf"(?<![a-z_]){name}(?![a-z])", where))
    return QuirkError(line, named) if named else None
