"""Models that follow a script: doubles for tests, and `scripted/…` for tries without a server.

`scripted/seeded`      answers as the fake server does, from a hash of messages and seed
`scripted/always-B`    always answers B, in the form that the prompt asks for; any text may stand for B
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from r2mad.errors import UnknownNameError, UsageError
from r2mad.models._babble import Habits, Turn, asked, babble, conclusion, hashed, logprobs
from r2mad.types import Completion, Request, Usage, digest

if TYPE_CHECKING:
    from r2mad.models import ModelOptions

__all__ = ["NAMES", "Script", "Scripted", "ScriptedModel", "open_scripted"]

Scripted = str | Completion | BaseException
"""One reply of a script; an exception is raised."""

Script = (
    Callable[[Request], Scripted | Awaitable[Scripted]]
    | Sequence[Scripted]
    | Mapping[str, Scripted]
    | Mapping[int, Scripted]
)

NAMES = ("seeded", "always-TEXT")
"""What may follow `scripted/`."""


class ScriptedModel:
    """A model that says what its script says.

    Args:
        script: one of
            a function of the request, plain or async, that returns a reply or raises;
            a sequence of replies, one a call, in the order of the calls;
            a mapping: the first key found in the request's last turn decides, or the agent's index if the keys
            are integers; the key "" fits everything.
            A reply is a text, a whole `Completion`, or an exception to raise.
        name: as it stands in records.
        identity: what the cache knows it by. By default it depends on the script's content, and for a function on
            this object alone, as nobody can tell if two functions are the same.
        seconds: how long each call takes.

    `requests` holds every request that came.
    """

    def __init__(self, script: Script, name: str = "scripted/custom", identity: str = "", seconds: float = 0.0) -> None:
        self.name = name
        self.identity = identity or f"{name}#{_content(script)}"
        self.requests: list[Request] = []
        self.seconds = seconds
        self._script = script

    async def complete(self, request: Request) -> Completion:
        """Answer as the script says.

        Raises:
            UsageError: the script has no reply for this request.
            BaseException: what the script holds or raises.
        """
        index = len(self.requests)
        self.requests.append(request)
        if self.seconds:
            await asyncio.sleep(self.seconds)
        said = self._look_up(index, request)
        if inspect.isawaitable(said):
            said = await said
        if isinstance(said, BaseException):
            raise said
        if isinstance(said, Completion):
            return said
        return _completion(request, said, self.name, self.seconds)

    def _look_up(self, index: int, request: Request) -> Scripted | Awaitable[Scripted]:
        script = self._script
        if callable(script):
            return script(request)
        if isinstance(script, Mapping):
            last = request.messages[-1].content if request.messages else ""
            for key, reply in script.items():
                if request.agent == key if isinstance(key, int) else key in last:
                    return reply
            raise UsageError(f"{self.name}: no key of the script fits agent {request.agent}, last turn {last[:80]!r}")
        if index >= len(script):
            raise UsageError(f"{self.name}: the script has {len(script)} replies, and this is call {index + 1}")
        return script[index]

    async def aclose(self) -> None:
        """Nothing to let go of."""


def _content(script: Script) -> str:
    values = list(script.values()) if isinstance(script, Mapping) else script
    if callable(values) or not all(isinstance(value, str) for value in values):
        return secrets.token_hex(8)
    keys = list(script) if isinstance(script, Mapping) else []
    return digest([keys, list(values)])


def _completion(request: Request, text: str, model: str, seconds: float) -> Completion:
    """A text as a completion: words counted as tokens, cut at `max_tokens`, with log-probabilities if asked for."""
    words = text.split()
    finish = "stop"
    if len(words) > request.sampling.max_tokens:
        words = words[: request.sampling.max_tokens]
        text, finish = " ".join(words), "length"
    pairs = logprobs(len(words), hashed(text, str(request.seed))) if request.sampling.logprobs else []
    return Completion(
        text=text,
        finish_reason=finish,
        mean_logprob=sum(sampled for sampled, _ in pairs) / len(pairs) if pairs else None,
        mean_top_logprob=sum(top for _, top in pairs) / len(pairs) if pairs else None,
        usage=Usage(sum(len(message.content.split()) for message in request.messages), len(words)),
        seconds=seconds,
        model=model,
    )


def _turns(request: Request) -> list[Turn]:
    return [(message.role, message.content) for message in request.messages]


def open_scripted(model: str, options: ModelOptions | None = None) -> ScriptedModel:
    """The scripted model of that name.

    Raises:
        UnknownNameError: there is none.
    """
    name = f"scripted/{model}"
    if model == "seeded":
        habits = Habits()
        return ScriptedModel(lambda request: babble(_turns(request), request.seed, habits), name, identity=name)
    text = model.removeprefix("always-")
    if text and text != model:
        return ScriptedModel(lambda request: _always(request, text), name, identity=name)
    raise UnknownNameError(f"no scripted model {model!r} (scripted: {', '.join(NAMES)})")


def _always(request: Request, text: str) -> str:
    form = asked(_turns(request)).form
    return (
        f"Whatever was said, the answer stands.\n{conclusion(form, text)}"
        if form != "summary"
        else "Nothing has changed."
    )
