"""The embedded embedder: the mean of static vectors, one a token, from the package wordllama.

Its 16 MB lie in the package itself, so nothing is fetched. A text of any length is taken whole. The order of words does
not count.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from r2mad.errors import UsageError
from r2mad.types import clean

if TYPE_CHECKING:
    from r2mad.experience import Vectors

DIMENSION = 256
"""Numbers of a vector: the only size that the package carries."""
THREAD = 2500
"""Characters from which the work goes to a thread: they take about a millisecond, as long as a loop may be held."""
GROUP = 64
"""Texts that are tokenised at a time: enough to keep all cores busy, few enough to hold little memory."""
BLOCK = 4096
"""Rows that are added up at a time: 4 MB, so that a text of millions of tokens does not fill the memory."""


class WordLlamaEmbedder:
    """Vectors of 256 numbers, without a server. Loaded by its first call, once a process (16 MB, 0.3 s).

    A text's vector depends on the text alone: each text is tokenised without padding and averaged by itself. (The
    package's own `embed` pads texts to one length, and so lets the last bits depend on the texts beside them.)

    Raises:
        UsageError: the package is not installed.
    """

    name = f"wordllama/{DIMENSION}"

    def __init__(self) -> None:
        if find_spec("wordllama") is None:
            raise _missing()

    async def dimension(self) -> int:
        """256."""
        return DIMENSION

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of `texts`, shape [len(texts), 256]; zeros for a text that is empty or blank.

        Raises:
            UsageError: the package is not installed, or is damaged.
        """
        if _loaded and sum(map(len, texts)) < THREAD:
            return _vectors(texts)
        return await asyncio.to_thread(_vectors, texts)

    async def aclose(self) -> None:
        """Nothing to do: the vectors stay for the next embedder of this process."""


_loaded: list[tuple[Any, npt.NDArray[np.float32]]] = []
"""The tokenizer and the table of vectors, once they are there."""
_loading = threading.Lock()


def _load() -> tuple[Any, npt.NDArray[np.float32]]:
    with _loading:
        if not _loaded:
            try:
                with _root_logger_untouched():
                    package = import_module("wordllama")
            except ImportError:
                raise _missing() from None
            try:
                folder = Path(str(package.__file__)).parent
                model = package.WordLlama.load(cache_dir=folder, disable_download=True, dim=DIMENSION)
            except Exception as error:  # several libraries read the files, each with errors of its own
                raise UsageError(
                    f"the package wordllama cannot be used ({error}); install it again: pip install 'r2mad[local]'"
                ) from error
            model.tokenizer.no_padding()
            model.tokenizer.no_truncation()
            model.tokenizer.encode_special_tokens = True  # "</s>" in a text is text, not the end of it
            _loaded.append((model.tokenizer, model.embedding))
        return _loaded[0]


def _missing() -> UsageError:
    return UsageError("the embedder wordllama is not installed: pip install 'r2mad[local]'")


@contextmanager
def _root_logger_untouched() -> Iterator[None]:
    """Let an import call `logging.basicConfig` without effect: wordllama's does, and every program would log more."""
    root = logging.getLogger()
    level, handlers, stand_in = root.level, list(root.handlers), logging.NullHandler()
    root.addHandler(stand_in)  # with a handler there, basicConfig does nothing
    try:
        yield
    finally:
        root.removeHandler(stand_in)
        for added in [handler for handler in root.handlers if handler not in handlers]:
            root.removeHandler(added)
        root.setLevel(level)


def _vectors(texts: Sequence[str]) -> Vectors:
    tokenizer, table = _load()
    vectors = np.zeros((len(texts), DIMENSION), np.float32)
    full = [index for index, text in enumerate(texts) if text.strip()]
    for start in range(0, len(full), GROUP):
        group = full[start : start + GROUP]
        read = tokenizer.encode_batch_fast([clean(texts[index]) for index in group], add_special_tokens=False)
        for index, tokens in zip(group, read, strict=True):
            vectors[index] = _mean(table, np.asarray(tokens.ids))
    return vectors


def _mean(table: npt.NDArray[np.float32], ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """The mean of some rows of the table, made a unit vector: so their sum will do."""
    total = np.zeros(table.shape[1])
    for start in range(0, len(ids), BLOCK):
        total += np.add.reduce(table.take(ids[start : start + BLOCK], axis=0), axis=0)
    length = float(np.sqrt(total @ total))
    return (total / length if length else total).astype(np.float32)
