"""Chat models behind any OpenAI-compatible URL.

A thin client of ours over aiohttp: one request a call, never `n`, never a stream. What a model refuses of the
request's form (a system role, `max_tokens`, a temperature) is learnt from its first refusal, said once in the log,
and written differently from then on.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakValueDictionary

from r2mad.errors import UsageError
from r2mad.models._endpoint import CONNECT_TIMEOUT, MAX_CONNECTIONS, MAX_RETRIES, TIMEOUT, Endpoint
from r2mad.models._parse import parse_completion
from r2mad.models._refusals import COMPLETION_TOKENS, DROPPABLE, FOLD, QuirkError
from r2mad.types import Completion, Message, Request

if TYPE_CHECKING:
    from r2mad.models import ModelOptions

__all__ = [
    "CONNECT_TIMEOUT",
    "MAX_CONNECTIONS",
    "MAX_RETRIES",
    "OPENAI_URL",
    "TIMEOUT",
    "Endpoint",
    "OpenAIModel",
    "fold_system",
    "open_openai",
    "shared_endpoint",
]

log = logging.getLogger(__name__)

OPENAI_URL = "https://api.openai.com/v1"
"""Where `openai/…` is if neither an option nor OPENAI_BASE_URL says otherwise."""

_SAID = {
    FOLD: "it takes no system role, so the system message goes into the first user turn",
    COMPLETION_TOKENS: "it wants max_completion_tokens in place of max_tokens",
    "temperature": "it refuses a temperature, so its own is used",
    "top_p": "it refuses top_p, so its own is used",
    "seed": "it refuses a seed, so its replies cannot be repeated",
    "logprobs": "it refuses log-probabilities, so there are none",
}


class OpenAIModel:
    """One chat model at an `Endpoint`.

    Args:
        model: the model's name as the server knows it, such as `Qwen/Qwen2.5-7B-Instruct`.
        endpoint: where it is; several models may share one.
    """

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        self.model = model
        self.endpoint = endpoint
        self.name = f"openai/{model}"
        self.identity = f"{model} at {endpoint.identity}"
        self.quirks: frozenset[str] = frozenset()
        """What was learnt about the form of its requests: see `r2mad.models._refusals`."""
        self._warned_logprobs = False
        self._open = True
        endpoint.hold()

    async def complete(self, request: Request) -> Completion:
        """Answer one request.

        Raises:
            ModelError: after the retries; `ContextOverflowError` if the prompt is too long.
            UsageError: `extra_body` asks for several replies or a stream, or is not JSON.
        """
        if not self._open:  # closed by one debate, used by the next
            self._open = True
            self.endpoint.hold()
        spent = 0.0
        while True:
            quirks = self.quirks
            try:
                completion, seconds = await self.endpoint.call(
                    "/chat/completions", self._body(request, quirks), parse_completion
                )
            except QuirkError as error:
                if error.quirks <= quirks:
                    raise
                self._learn(error)
                continue
            if request.sampling.logprobs and completion.mean_logprob is None and completion.text:
                self._warn_logprobs()
            return replace(completion, seconds=spent + seconds)

    async def context(self) -> int | None:
        """Tokens of context, where the server's list of models says so (vLLM and llama.cpp do)."""
        listed = await self.endpoint.get("/models")
        entries = listed.get("data") if isinstance(listed, dict) else None
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict) and entry.get("id") == self.model:
                meta = entry.get("meta")
                stated = [entry.get("max_model_len"), entry.get("context_length")]
                stated.append(meta.get("n_ctx") if isinstance(meta, dict) else None)
                return next((value for value in stated if isinstance(value, int) and value > 0), None)
        return None

    def _body(self, request: Request, quirks: frozenset[str]) -> dict[str, Any]:
        sampling = request.sampling
        messages = fold_system(request.messages) if FOLD in quirks else request.messages
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            COMPLETION_TOKENS if COMPLETION_TOKENS in quirks else "max_tokens": sampling.max_tokens,
            "seed": request.seed,
        }
        if sampling.logprobs:
            body["logprobs"] = True
            body["top_logprobs"] = 1
        for name in DROPPABLE:
            if name in quirks:
                body.pop(name, None)
                body.pop(f"top_{name}", None)
        if sampling.extra_body:
            body |= sampling.extra_body
            if body.get("n") not in (None, 1) or body.get("stream"):
                raise UsageError("extra_body must not ask for several replies (n) or a stream: one call is one reply")
        return body

    def _learn(self, error: QuirkError) -> None:
        for quirk in sorted(error.quirks - self.quirks):  # calls in flight together learn it together: say it once
            log.warning("%s: %s (%s)", self.name, _SAID[quirk], error)
        self.quirks |= error.quirks

    def _warn_logprobs(self) -> None:
        if not self._warned_logprobs:
            self._warned_logprobs = True
            log.warning("%s: log-probabilities were asked for, and the server sent none", self.name)

    async def aclose(self) -> None:
        """Let go of the endpoint; its last user closes the connections. Safe to call twice."""
        if self._open:
            self._open = False
            await self.endpoint.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def fold_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The same conversation for a chat template without a system role (Gemma's, for one).

    System messages become user turns, and turns of one role that follow each other become one.
    """
    folded: list[Message] = []
    for message in messages:
        role = "user" if message.role == "system" else message.role
        if folded and folded[-1].role == role:
            folded[-1] = Message(role, f"{folded[-1].content}\n\n{message.content}")
        else:
            folded.append(Message(role, message.content))
    return tuple(folded)


_shared: WeakValueDictionary[tuple[object, ...], Endpoint] = WeakValueDictionary()


def open_openai(model: str, options: ModelOptions) -> OpenAIModel:
    """The model of that name where the options or OPENAI_BASE_URL say.

    Models with the same options in one event loop share an `Endpoint`, so that `max_connections` holds for all.

    Raises:
        UsageError: the base URL or a number in the options cannot be used.
    """
    return OpenAIModel(model, shared_endpoint(options))


def shared_endpoint(options: ModelOptions) -> Endpoint:
    """The endpoint where the options or OPENAI_BASE_URL say, the same one for the same options in one event loop.

    Raises:
        UsageError: the base URL or a number in the options cannot be used.
    """
    url = options.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
    key = options.api_key or os.environ.get("OPENAI_API_KEY") or None
    try:
        loop = id(asyncio.get_running_loop())
    except RuntimeError:
        loop = 0
    parts = (loop, url, key, options.max_connections, options.timeout, options.max_retries)
    endpoint = _shared.get(parts)
    if endpoint is None:
        endpoint = _shared[parts] = Endpoint(
            url,
            key,
            max_connections=options.max_connections,
            timeout=options.timeout,
            max_retries=options.max_retries,
        )
    return endpoint
