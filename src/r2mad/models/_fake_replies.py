"""What the fake server sends: completions, refusals, embeddings. No state and no network here."""

from __future__ import annotations

import base64
import json
import math
from array import array
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from r2mad.models._babble import Habits, Turn, babble, filler, hashed, logprobs
from r2mad.models._fake_settings import Settings

PLACES = 8
"""Components that one word moves in an embedding: texts that share words are near, others nearly orthogonal."""


def read_turns(body: dict[str, Any]) -> list[Turn]:
    """The conversation as roles and texts.

    Raises:
        ValueError: the body has no usable messages.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ValueError("'messages' must be a list with at least one message")
    turns = []
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ValueError("every message needs a 'role'")
        content = message.get("content") or ""
        if isinstance(content, list):
            content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
        turns.append((message["role"], str(content)))
    return turns


def count_tokens(turns: list[Turn]) -> int:
    """Words of the prompt, which stand for its tokens."""
    return sum(len(text.split()) for _, text in turns)


def refusal(
    settings: Settings, body: dict[str, Any], turns: list[Turn], tokens: int
) -> tuple[int, dict[str, Any]] | None:
    """Status and body of a refusal, or None for a request that is served."""
    name = str(body.get("model", ""))
    known = settings.model.split(",")
    if name not in known and "*" not in known:
        return 404, problem(f"The model `{name}` does not exist.", "NotFoundError", 404)
    for param in filter(None, settings.refuse_params.split(",")):
        if param in body:
            hint = " Use 'max_completion_tokens' instead." if param == "max_tokens" else ""
            said = f"Unsupported parameter: '{param}' is not supported with this model.{hint}"
            return 400, problem(said, "invalid_request_error", "unsupported_parameter", param)
    roles = [role for role, _ in turns]
    if settings.no_system and "system" in roles:
        return 400, problem("System role not supported", "BadRequestError", 400)
    if settings.alternate:
        spoken = roles[1:] if roles[0] == "system" else roles
        if any(role != ("user", "assistant")[index % 2] for index, role in enumerate(spoken)):
            said = "Conversation roles must alternate user/assistant/user/assistant/..."
            return 400, problem(said, "BadRequestError", 400)
    return _too_long(settings, tokens, _most(body)) if settings.context else None


def _most(body: dict[str, Any]) -> int:
    most = body.get("max_tokens") or body.get("max_completion_tokens")
    return most if isinstance(most, int) and most > 0 else 1_000_000


def _too_long(settings: Settings, tokens: int, room: int) -> tuple[int, dict[str, Any]] | None:
    limit = settings.context
    if settings.context_style == "llama.cpp":
        if tokens <= limit:
            return None
        said = f"request ({tokens} tokens) exceeds the available context size ({limit} tokens), try increasing it"
        refused = problem(said, "exceed_context_size_error", 400)
        refused["error"] |= {"n_prompt_tokens": tokens, "n_ctx": limit}
        return 400, refused
    if tokens + room <= limit:
        return None
    said = (
        f"This model's maximum context length is {limit} tokens. However, you requested {tokens + room} tokens "
        f"({tokens} in the messages, {room} in the completion). Please reduce the length of the messages or completion."
    )
    if settings.context_style == "openai":
        return 400, problem(said, "invalid_request_error", "context_length_exceeded", "messages")
    return 400, problem(said, "BadRequestError", 400)


def problem(message: str, kind: str, code: int | str, param: str | None = None) -> dict[str, Any]:
    """An error as OpenAI-compatible servers send it."""
    return {"error": {"message": message, "type": kind, "code": code, "param": param}}


def completion(
    settings: Settings, body: dict[str, Any], turns: list[Turn], tokens: int, seed: int, cached: int, truncate: bool
) -> tuple[dict[str, Any], int]:
    """A chat completion, and the number of tokens in it. `truncate` cuts it in half, as a fault."""
    habits = Habits(settings.reply_tokens, settings.summary_tokens, settings.bias, settings.adopt)
    text = babble(turns, seed, habits)
    words = text.split()
    room = _most(body)
    reasoning = min(settings.reasoning_tokens, room)
    room -= reasoning
    if truncate:
        room = min(room, len(words) // 2)
    finish = "stop"
    if len(words) > room:
        words = words[:room]
        text, finish = " ".join(words), "length"
    draws = hashed(text, str(seed))
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if reasoning:
        message["reasoning_content"] = filler(reasoning, draws)
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    if body.get("logprobs") and not settings.ignore_logprobs:
        choice["logprobs"] = {"content": _tokens(words, draws, int(body.get("top_logprobs") or 0))}
    reply: dict[str, Any] = {
        "id": f"chatcmpl-{draws:032x}",
        "object": "chat.completion",
        "created": 0,  # the clock would make equal replies differ
        "model": body.get("model"),
        "choices": [choice],
    }
    written = len(words) + reasoning
    if not settings.no_usage:
        reply["usage"] = {
            "prompt_tokens": tokens,
            "completion_tokens": written,
            "total_tokens": tokens + written,
            "completion_tokens_details": {"reasoning_tokens": reasoning},
            "prompt_tokens_details": {"cached_tokens": cached},
        }
    return reply, written


def _tokens(words: list[str], draws: int, top: int) -> list[dict[str, Any]]:
    pairs = logprobs(len(words), draws)
    return [
        {
            "token": word,
            "logprob": sampled,
            "bytes": None,
            "top_logprobs": [{"token": word, "logprob": best, "bytes": None}] if top else [],
        }
        for word, (sampled, best) in zip(words, pairs, strict=True)
    ]


@lru_cache(maxsize=65536)
def _places(word: str, dimension: int) -> tuple[tuple[int, float], ...]:
    raw = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=PLACES * 4).digest()
    numbers = [int.from_bytes(raw[4 * i : 4 * i + 4], "big") for i in range(PLACES)]
    return tuple((number // 2 % dimension, 1.0 if number % 2 else -1.0) for number in numbers)


def embed(text: str, dimension: int) -> list[float]:
    """A unit vector made of the text's words, the same in every process."""
    vector = [0.0] * dimension
    for word in text.lower().split():
        for place, sign in _places(word, dimension):
            vector[place] += sign
    length = math.sqrt(math.fsum(value * value for value in vector))
    if length == 0:
        vector[0], length = 1.0, 1.0
    return [value / length for value in vector]


def embeddings(settings: Settings, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The reply to POST /v1/embeddings."""
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        return 400, problem("'input' must be a string or a list of strings", "BadRequestError", 400)
    limit, longest = settings.embed_context, max(len(text.split()) for text in texts)
    if limit and longest > limit:
        said = (
            f"This model's maximum context length is {limit} tokens. However, you requested {longest} tokens in the "
            "input for embedding generation. Please reduce the length of the input."
        )
        return 400, problem(said, "BadRequestError", 400)
    asked = body.get("dimensions")
    dimension = asked if isinstance(asked, int) and asked > 0 else settings.dimension
    packed = body.get("encoding_format") == "base64"
    data = []
    for index, text in enumerate(texts):
        vector = embed(text, dimension)
        shown = base64.b64encode(array("f", vector).tobytes()).decode() if packed else vector
        data.append({"object": "embedding", "index": index, "embedding": shown})
    tokens = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return 200, {"object": "list", "model": body.get("model"), "data": data, "usage": usage}


def encode(data: object) -> bytes:
    """JSON bytes."""
    return json.dumps(data).encode()
