"""GGUF models in this process: llama.cpp's own server on a loopback port, asked by the same client as any endpoint.

    local/smollm2-135m            a name of the catalogue (`r2mad models list`)
    local//path/to/model.gguf     a file
    local/hf:owner/repo/file      a file of the hub

A model of the catalogue or the hub is pulled when it is first opened. One server a file serves all agents. It has one
slot: on a CPU more slots do not make more tokens a second, one keeps the conversation it read last ready for the next
call, and one makes replies independent of what else is asked meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r2mad.errors import UsageError
from r2mad.models.catalogue import CATALOGUE, check_gguf, pull, verify
from r2mad.models.openai import Endpoint, OpenAIModel
from r2mad.types import Completion, Request, Suggestions

if TYPE_CHECKING:
    from r2mad.models import ModelOptions

CONTEXT = 4096
"""Tokens of context: three rounds of three short replies take under half of it, and it costs little memory."""
MAX_TOKENS = 512
"""Most tokens of a reply by default: a model on a CPU writes 10 to 130 a second, and a debate is nine replies."""
TIMEOUT = 1800.0
"""Seconds for one call: calls wait for each other at the one slot, so a call's time holds those before it."""
SAMPLER = {"top_k": 0, "min_p": 0.0, "cache_prompt": True}
"""llama.cpp cuts the distribution by default; the papers sample from all of it. The prompt cache is what makes a
debate bearable on a CPU."""


TINY = Suggestions(prompts="tiny", temperature=0.7, max_tokens=24, extra_body={**SAMPLER, "stop": ["\n"]})
"""For models of the `tiny` pack, found by trying: cooler than the papers' 1.0, which such a model does not stand, and
one short line, since whatever it says after its answer is about something else."""
REPEATABLE_BATCH = 32
"""Tokens read at a time where replies must repeat. llama.cpp's sums depend on how a prompt is cut into batches and
threads; in batches this small, written by one thread, the same prompt gives the same numbers to the last bit however
much of it was still in the cache. Larger models would pay for it dearly: theirs may differ in late digits."""


@dataclass(frozen=True)
class Serving:
    """One server: the file, the context in tokens, and whether it gives speed away to repeat itself exactly."""

    path: str
    context: int
    repeatable: bool = False
    embeddings: bool = False
    """Whether it serves embeddings, and no chat."""


@dataclass
class Running:
    """A server that runs, and how to reach it."""

    server: Any
    address: str
    key: str
    users: int = 0


_running: dict[Serving, Running] = {}
_lock = threading.Lock()


class LocalModel:
    """A GGUF file served in this process. Opened by its first call, closed by `aclose` of its last user."""

    def __init__(self, name: str, path: Path, suggestions: Suggestions, repeatable: bool) -> None:
        self.name = f"local/{name}"
        self.path = path
        self.suggestions = suggestions
        self._serving = Serving(str(path.resolve()), CONTEXT, repeatable)
        self._inner: OpenAIModel | None = None
        self._identity = ""
        self._opening = asyncio.Lock()

    @property
    def identity(self) -> str:
        """The file's own hash and the context: a reply depends on nothing else about where it was made."""
        if not self._identity:
            self._identity = f"gguf {verify(self.path)} context {self._serving.context}"
        return self._identity

    async def complete(self, request: Request) -> Completion:
        """Answer one request.

        Raises:
            ModelError: see `OpenAIModel.complete`.
            UsageError: the file is damaged, or is not a model that llama.cpp can load.
        """
        async with self._opening:
            if self._inner is None:
                running = await asyncio.to_thread(start, self._serving)
                url, key = f"{running.address}/v1", running.key
                endpoint = Endpoint(url, key, max_connections=1, timeout=TIMEOUT, max_retries=1)
                self._inner = OpenAIModel(self.path.name, endpoint)
        # its server calls the model by its path, which tells a record's reader only whose machine it was
        return replace(await self._inner.complete(request), model=self.path.name)

    async def context(self) -> int | None:
        """Tokens of context that the server was started with."""
        return self._serving.context

    async def aclose(self) -> None:
        """Stop the server, if no other model uses it. Safe to call twice."""
        if self._inner is not None:
            inner, self._inner = self._inner, None
            await inner.aclose()  # first: the server waits for open connections before it ends
            await asyncio.to_thread(stop, self._serving)


def start(serving: Serving) -> Running:
    """The server for a file, started if it is not running; each call needs one of `stop`. Both block for a while.

    Raises:
        UsageError: llama.cpp cannot load the file.
    """
    with _lock:
        running = _running.get(serving)
        if running is None:
            running = _running[serving] = _load(serving)
        running.users += 1
        return running


def stop(serving: Serving) -> None:
    """Undo one `start`; the last one ends the server."""
    with _lock:
        running = _running[serving]
        running.users -= 1
        if running.users <= 0:
            del _running[serving]
            running.server = None  # its last reference: llama.cpp's threads end before this returns


def _load(serving: Serving) -> Running:
    try:
        import xllamacpp
    except ImportError:
        raise UsageError("models in this process need xllamacpp: pip install 'r2mad[local]'") from None
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    cores, key = max(1, len(allowed)), secrets.token_hex(16)
    params = xllamacpp.CommonParams()
    params.model.path = serving.path
    params.n_ctx = serving.context
    params.n_parallel = 1
    params.cpuparams.n_threads = 1 if serving.repeatable else cores
    params.cpuparams_batch.n_threads = cores
    if serving.repeatable:
        params.n_ubatch = REPEATABLE_BATCH
        params.cache_ram_mib = 0  # prompts that it restores unasked are cut elsewhere
    if serving.embeddings:
        # A core is left over for whatever else runs: threads that wait for one that shares its core lose tenfold.
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, cores - 1)
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
        params.n_batch = params.n_ubatch = serving.context  # a text is read in one batch, or else refused
    params.verbosity = -1  # its log would go over the live view; errors come back as exceptions and replies
    # Loopback, but other users of the machine are there too: no page, no peeking into slots, and a key.
    params.ui = params.endpoint_slots = False
    params.api_keys = [key]
    params.cors_origins = "http://localhost"
    try:
        server = xllamacpp.Server(params)
    except Exception as error:  # a RuntimeError today; whatever it is, it says that the file does not load
        kind = "embedding" if serving.embeddings else "chat"
        raise UsageError(
            f"{serving.path}: llama.cpp cannot load it: "
            f"it is damaged, or no {kind} model, or needs more memory ({error})"
        ) from error
    return Running(server, server.listening_address, key)


def open_local(name: str, options: ModelOptions) -> LocalModel:
    """The model of that name, pulled if need be.

    Raises:
        UnknownNameError: no such name or file.
        PullError: it cannot be fetched.
        UsageError: the file is no GGUF file.
    """
    path = pull(name, lambda line: print(line, file=sys.stderr, flush=True))
    check_gguf(path)
    entry = CATALOGUE.get(name)
    small = entry is not None and entry.prompts == "tiny"
    suggestions = TINY if small else Suggestions(max_tokens=MAX_TOKENS, extra_body=SAMPLER)
    return LocalModel(name, path, suggestions, repeatable=small)
