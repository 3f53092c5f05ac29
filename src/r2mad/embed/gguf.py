"""GGUF files as embedders, in this process: llama.cpp's own server on a loopback port, as for chat models.

    gguf/smollm2-135m            a name of the catalogue (`r2mad models list`)
    gguf//path/to/model.gguf     a file, such as one of BGE-M3 or of Qwen3-Embedding
    gguf/hf:owner/repo/file.gguf  a file of the hub

A text's vector is the mean of its tokens' last states. Any model will do, but one that was trained for embeddings does
better.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from r2mad.embed.openai import OpenAIEmbedder
from r2mad.errors import UsageError
from r2mad.models._endpoint import Endpoint
from r2mad.models.catalogue import check_gguf, pull, verify
from r2mad.models.local import TIMEOUT, Serving, start, stop

if TYPE_CHECKING:
    from r2mad.experience import Vectors
    from r2mad.models import ModelOptions

CONTEXT = 2048
"""Tokens of context. llama.cpp takes less where the model was trained on less, and refuses what is longer."""
PIECE = 2000
"""Most bytes that are embedded as one text. No text has more tokens than bytes, so with a few for its beginning and
end it fits the context whatever it says; and a CPU takes seconds for it."""


class GgufEmbedder:
    """A GGUF file served in this process. Opened by its first call, closed by `aclose` of its last user.

    Raises:
        UsageError: the package xllamacpp is not installed, or the file does not load (at the first call).
    """

    def __init__(self, path: Path, piece: int = PIECE) -> None:
        self.path = path
        self.piece = piece
        self._serving = Serving(str(path.resolve()), CONTEXT, embeddings=True)
        self._inner: OpenAIEmbedder | None = None
        self._name = ""
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        """`gguf/FILE:HASH/DIMENSION`, the hash being the first twelve digits of the file's sha256.

        Raises:
            UsageError: the dimension is not known yet; await `dimension()` first.
        """
        if not self._name:
            raise UsageError(f"the name of gguf/{self.path.stem} ends with its dimension: await dimension() first")
        return self._name

    async def dimension(self) -> int:
        """d, found out by embedding a word.

        Raises:
            StoreError: the file has changed since it was fetched.
            UsageError: it does not load.
        """
        found = await (await self._open()).dimension()
        if not self._name:
            digest = await asyncio.to_thread(verify, self.path)
            self._name = f"gguf/{self.path.stem}:{digest[:12]}/{found}"
        return found

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of `texts`, shape [len(texts), d]; zeros for a text that is empty or blank.

        Raises:
            ModelError: see `OpenAIEmbedder.embed`.
            UsageError: the file does not load.
        """
        return await (await self._open()).embed(texts)

    async def aclose(self) -> None:
        """Stop the server, if no other embedder uses it. Safe to call twice."""
        if self._inner is not None:
            inner, self._inner = self._inner, None
            await inner.aclose()  # first: the server waits for open connections before it ends
            await asyncio.to_thread(stop, self._serving)

    async def _open(self) -> OpenAIEmbedder:
        async with self._opening:
            if self._inner is None:
                running = await asyncio.to_thread(start, self._serving)
                url, key = f"{running.address}/v1", running.key
                endpoint = Endpoint(url, key, max_connections=1, timeout=TIMEOUT, max_retries=1)
                self._inner = OpenAIEmbedder(self.path.name, endpoint, piece=self.piece, honest=True)
            return self._inner


def open_gguf(name: str, options: ModelOptions) -> GgufEmbedder:
    """The file of that name, pulled if need be.

    Raises:
        UnknownNameError: no such name or file.
        PullError: it cannot be fetched.
        UsageError: the file is no GGUF file.
    """
    path = pull(name, lambda line: print(line, file=sys.stderr, flush=True))
    check_gguf(path)
    return GgufEmbedder(path)
