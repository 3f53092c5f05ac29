"""Embedders: `open_embedder(name)` gives what turns texts into vectors for a memory.

    wordllama          the embedded one: 16 MB of word vectors, no server, no network (the default)
    openai/NAME        a model behind POST /v1/embeddings: vLLM, TEI, Ollama, a provider
    gguf/NAME          a GGUF file served in this process: a name of the catalogue, a path, or hf:owner/repo/file.gguf

Providers are imported when one of their embedders is opened, so that this module costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from r2mad.errors import UnknownNameError
from r2mad.protocols import Embedder

if TYPE_CHECKING:
    from r2mad.embed.cached import CachedEmbedder
    from r2mad.embed.gguf import GgufEmbedder
    from r2mad.embed.openai import OpenAIEmbedder
    from r2mad.embed.wordllama import WordLlamaEmbedder
    from r2mad.models import ModelOptions

__all__ = [
    "DEFAULT",
    "PROVIDERS",
    "CachedEmbedder",
    "GgufEmbedder",
    "OpenAIEmbedder",
    "WordLlamaEmbedder",
    "open_embedder",
]

DEFAULT = "wordllama"
"""The embedded one: it needs neither a server nor a download, and takes less than a millisecond a text."""

PROVIDERS: dict[str, str] = {
    "openai": "r2mad.embed.openai:open_openai",
    "gguf": "r2mad.embed.gguf:open_gguf",
}
"""Provider to `module:function`; the function takes the name after the slash and the `ModelOptions`."""

_WHERE = {
    "CachedEmbedder": "cached",
    "GgufEmbedder": "gguf",
    "OpenAIEmbedder": "openai",
    "WordLlamaEmbedder": "wordllama",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f"r2mad.embed.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def open_embedder(name: str = DEFAULT, options: ModelOptions | None = None) -> CachedEmbedder:
    """The embedder called `wordllama` or `provider/name`, behind a cache; the name itself may hold slashes.

    Raises:
        UnknownNameError: no such embedder or provider, or no such file.
        PullError: a model of the catalogue or the hub cannot be fetched.
        UsageError: an option cannot be used, or a package is missing.
    """
    from r2mad.embed.cached import CachedEmbedder

    return CachedEmbedder(_open(name, options))


def _open(name: str, options: ModelOptions | None) -> Embedder:
    if name == DEFAULT:
        from r2mad.embed.wordllama import WordLlamaEmbedder

        return WordLlamaEmbedder()
    provider, slash, model = name.partition("/")
    known = ", ".join([DEFAULT, *(f"{provider}/NAME" for provider in PROVIDERS)])
    if not slash or provider not in PROVIDERS:
        raise UnknownNameError(f"no embedder {name!r} (there are {known})")
    if not model.strip():
        raise UnknownNameError(f"{name!r} names no model: write {provider}/NAME")
    from r2mad.models import ModelOptions

    module, _, function = PROVIDERS[provider].partition(":")
    opener = cast(Callable[[str, ModelOptions], Embedder], getattr(import_module(module), function))
    return opener(model, options or ModelOptions())
