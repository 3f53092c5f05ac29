"""Chat models: `open_model("provider/name")` gives anything that can take part in a debate.

Providers are imported when one of their models is opened, so that this module costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from r2mad.errors import UnknownNameError
from r2mad.models._slots import place
from r2mad.protocols import ChatModel

if TYPE_CHECKING:
    from r2mad.models._probe import Capabilities, probe, sends_logprobs
    from r2mad.models.cached import CachedModel, CallCache
    from r2mad.models.fake_server import FakeServer
    from r2mad.models.openai import Endpoint, OpenAIModel
    from r2mad.models.scripted import ScriptedModel

__all__ = [
    "PROVIDERS",
    "CachedModel",
    "CallCache",
    "Capabilities",
    "Endpoint",
    "FakeServer",
    "ModelOptions",
    "OpenAIModel",
    "ScriptedModel",
    "open_model",
    "place",
    "probe",
    "sends_logprobs",
]

PROVIDERS: dict[str, str] = {
    "openai": "r2mad.models.openai:open_openai",
    "local": "r2mad.models.local:open_local",
    "scripted": "r2mad.models.scripted:open_scripted",
    "simulated": "r2mad.models.simulated:open_simulated",
}
"""Provider to `module:function`; the function takes the name after the slash and the `ModelOptions`."""

_WHERE = {
    "CachedModel": "cached",
    "CallCache": "cached",
    "Capabilities": "_probe",
    "Endpoint": "openai",
    "FakeServer": "fake_server",
    "OpenAIModel": "openai",
    "ScriptedModel": "scripted",
    "probe": "_probe",
    "sends_logprobs": "_probe",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f"r2mad.models.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass(frozen=True)
class ModelOptions:
    """How to reach a model. A provider reads what concerns it and leaves the rest."""

    base_url: str | None = None
    """Base URL of an OpenAI-compatible server, with or without `/v1`; else OPENAI_BASE_URL, else OpenAI's own."""
    api_key: str | None = field(default=None, repr=False)
    """Key for it, if it wants one; else OPENAI_API_KEY."""
    max_connections: int = 64
    """Most calls in flight at one base URL, over all agents and debates."""
    timeout: float = 600.0
    """Seconds that one attempt of a call may take."""
    max_retries: int = 5
    """Attempts after the first, for rate limits, server faults, lost connections and broken replies."""


def open_model(name: str, options: ModelOptions | None = None) -> ChatModel:
    """The model called `provider/name`; the name itself may hold slashes.

    Raises:
        UnknownNameError: no such provider, or no such model at a provider that knows its models.
        UsageError: an option cannot be used.
    """
    if not name.isprintable():  # it would stand in every record, and a record must be text
        raise UnknownNameError(f"a model's name has no such characters: {name!r}")
    provider, slash, model = name.partition("/")
    known = ", ".join(sorted(PROVIDERS))
    if not slash:
        raise UnknownNameError(f"a model is written provider/name, not {name!r} (providers: {known})")
    if provider not in PROVIDERS:
        raise UnknownNameError(f"no provider {provider!r} in {name!r} (providers: {known})")
    if not model.strip():
        raise UnknownNameError(f"{name!r} names no model: write {provider}/NAME")
    module, _, function = PROVIDERS[provider].partition(":")
    opener = cast(Callable[[str, ModelOptions], ChatModel], getattr(import_module(module), function))
    return opener(model, options or ModelOptions())
