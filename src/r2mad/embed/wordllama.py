"""The embedded embedder: the mean of static vectors, one a token, from the package wordllama.

Its 16 MB lie in the package itself, so nothing is fetched. A text of any length is taken whole. The order of words does
not count.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
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
LINES = 8192
"""Lines whose sums are kept, 2 kB each: a debate state repeats the question and a reply that were read already, so what
is left to read once the summary is there is the summary."""
BLOCK = 4096
"""Rows that are added up at a time: 4 MB, so that a text of millions of tokens does not fill the memory."""


class WordLlamaEmbedder:
    """Vectors of 256 numbers, without a server. Loaded by its first call, once a process (16 MB, 0.3 s).

    A text's vector depends on the text alone: each of its lines is tokenised by itself, without padding, and the sums
    of the lines are added in order. (The package's own `embed` pads texts to one length, and so lets the last bits
    depend on the texts beside them.)

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
        if _loaded and sum(map(len, _fresh(texts))) < THREAD:
            return _vectors(texts)
        return await asyncio.to_thread(_vectors, texts)

    async def aclose(self) -> None:
        """Nothing to do: the vectors stay for the next embedder of this process."""


_loaded: list[tuple[Any, npt.NDArray[np.float32]]] = []
"""The tokenizer and the table of vectors, once they are there."""
_loading = threading.Lock()
_sums: OrderedDict[str, npt.NDArray[np.float64]] = OrderedDict()
"""Sums of lines read before, the one used longest ago first."""
_keeping = threading.Lock()


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


def _lines(text: str) -> list[str]:
    return [line for line in clean(text).split("\n") if line.strip()]


def _fresh(texts: Sequence[str]) -> list[str]:
    """The lines of some texts that are still to be read, each once."""
    with _keeping:
        return [line for line in dict.fromkeys(line for text in texts for line in _lines(text)) if line not in _sums]


def _vectors(texts: Sequence[str]) -> Vectors:
    tokenizer, table = _load()
    fresh, sums = _fresh(texts), dict[str, npt.NDArray[np.float64]]()
    for start in range(0, len(fresh), GROUP):
        group = fresh[start : start + GROUP]
        read = tokenizer.encode_batch_fast(group, add_special_tokens=False)
        for line, tokens in zip(group, read, strict=True):
            sums[line] = _sum(table, np.asarray(tokens.ids))
    vectors = np.zeros((len(texts), DIMENSION), np.float32)
    for index, text in enumerate(texts):
        total = np.zeros(DIMENSION)
        for line in _lines(text):
            total += _kept(line, sums, tokenizer, table)
        length = float(np.sqrt(total @ total))
        if length:
            vectors[index] = total / length
    with _keeping:
        _sums.update(sums)
        while len(_sums) > LINES:
            _sums.popitem(last=False)
    return vectors


def _kept(
    line: str, sums: dict[str, npt.NDArray[np.float64]], tokenizer: Any, table: npt.NDArray[np.float32]
) -> npt.NDArray[np.float64]:
    """A line's sum: just made, or kept from before. What another thread has dropped meanwhile is made again."""
    if line in sums:
        return sums[line]
    with _keeping:
        found = _sums.get(line)
        if found is not None:
            _sums.move_to_end(line)
            return found
    sums[line] = _sum(table, np.asarray(tokenizer.encode(line, add_special_tokens=False).ids))
    return sums[line]


def _sum(table: npt.NDArray[np.float32], ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The sum of some rows of the table; a unit vector is the same whether made of their mean or of their sum."""
    total = np.zeros(table.shape[1])
    for start in range(0, len(ids), BLOCK):
        total += np.add.reduce(table.take(ids[start : start + BLOCK], axis=0), axis=0)
    return total
