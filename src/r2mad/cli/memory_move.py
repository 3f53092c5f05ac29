"""`r2mad memory export` and `import`: a memory as a file, and back."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from r2mad.cli.common import DONE, INCOMPLETE, INTERRUPTED, complain, log_to_stderr, print_bytes
from r2mad.cli.memory_look import counted
from r2mad.errors import ModelError, R2madError, StoreError, UsageError
from r2mad.settings import Settings, home_expanded

if TYPE_CHECKING:
    from r2mad.experience import Outcome, Remembered
    from r2mad.memory.exchange import Import
    from r2mad.protocols import Embedder, MemoryStore
    from r2mad.types import DebateRecord

FileOrDash = Annotated[Path, Parameter(allow_leading_hyphen=True)]
"""A file, or - for standard input or output."""
PAUSE = 5.0
"""Seconds between two lines that tell how far an import is."""


@dataclass(frozen=True)
class ExportOptions:
    """How to write a memory."""

    vectors: bool = False
    """Write the vectors too, so that a memory of the same embedder takes them as they are, to the last bit."""
    force: bool = False
    """Replace the file if it is there."""


@dataclass(frozen=True)
class ImportOptions:
    """What embeds debates that come without vectors, or with another embedder's."""

    embedder: str | None = None
    """`wordllama`, `openai/NAME` or `gguf/PATH`; by default the one that the memory was built with, and for a new one
    the file's own if it can be used here, else wordllama."""
    embedder_base_url: str | None = None
    """Address of the embedder's endpoint; --base-url if not given."""
    embedder_api_key: str | None = None
    """Key for an embedder's endpoint of its own, if it wants one. Never written to a record or a log."""
    base_url: str | None = None
    """Address of the OpenAI-compatible endpoint; OPENAI_BASE_URL, else OpenAI's own."""
    api_key: str | None = None
    """Key for the endpoint, if it wants one; OPENAI_API_KEY if not given. Never written to a record or a log."""
    timeout: float = 600.0
    """Seconds that one attempt of a call may take; a call that timed out is tried once more."""


def export(
    url: str,
    file: FileOrDash = Path("-"),
    /,
    *,
    options: Annotated[ExportOptions, Parameter(name="*")] = ExportOptions(),
) -> int:
    """Write a memory as lines of JSON: one that describes it, then one a debate.

    Args:
        url: The memory, as sqlite:PATH.
        file: Where to; standard output if it is left out or -. A file is there when it is whole, and not before.
    """
    from r2mad.memory import open_memory
    from r2mad.memory.exchange import export_lines

    _no_flag(file)
    with closing(open_memory(url)) as store:
        if str(file) == "-":
            for line in export_lines(store, options.vectors):
                print_bytes(line)
            return DONE
        number = -1  # the first line is no debate
        with _new_file(home_expanded(file), options.force) as write:
            for line in export_lines(store, options.vectors):
                write(line)
                number += 1
    print(f"exported {counted(number)} to {file}", file=sys.stderr)
    return DONE


def _no_flag(file: Path) -> None:
    """A - may stand for a file, so that a flag written wrong looks like one."""
    if str(file).startswith("-") and str(file) != "-":
        raise UsageError(f"no option {file} (a file of that name is written ./{file})")


@contextmanager
def _new_file(path: Path, force: bool) -> Iterator[Callable[[bytes], object]]:
    """Write a file under another name, and give it its own when all went well.

    Raises:
        UsageError: it is there, and not to be replaced.
        StoreError: it cannot be written.
    """
    if path.is_dir() or (path.exists() and not force):
        raise UsageError(f"{path} is there already; " + ("it is a folder" if path.is_dir() else "--force replaces it"))
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with beside.open("xb") as file:
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            beside.unlink()


def import_(
    url: str, file: FileOrDash, /, *, options: Annotated[ImportOptions, Parameter(name="*")] = ImportOptions()
) -> int:
    """Put an exported memory's debates into a memory, which is made if there is none. Doing it twice adds nothing.

    Debates without vectors of the memory's own embedder are embedded anew. An import that was interrupted is taken up
    by the same command.

        r2mad memory export sqlite:OLD | r2mad memory import sqlite:NEW - --embedder openai/NAME

    Args:
        url: The memory, as sqlite:PATH.
        file: What `r2mad memory export` wrote; - for standard input.
    """
    from r2mad.memory.exchange import Import

    _no_flag(file)
    log_to_stderr("warning")
    settings = Settings(**asdict(options))
    if str(file) == "-":
        if sys.stdin is None:
            raise UsageError("there is no standard input")
        return _import(Import(sys.stdin.buffer, "standard input"), url, settings)
    try:
        with home_expanded(file).open("rb") as lines:
            return _import(Import(lines, str(file)), url, settings)
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror}") from error


def _import(source: Import, url: str, settings: Settings) -> int:
    try:
        asyncio.run(_read_in(source, url, settings))
    except KeyboardInterrupt:
        complain(f"interrupted after {counted(source.added)} were added; the same command takes it up")
        return INTERRUPTED
    except (StoreError, ModelError):
        if source.added:
            complain(f"{counted(source.added)} were added before this:")
        raise
    print(f"read {counted(source.read)}, {source.added} of them new", file=sys.stderr)
    if source.torn:
        complain(f"{source.where}, line {source.torn}: not whole, so it was left out")
    elif not source.complete:
        complain(f"{source.where}: {counted(source.promised)} should stand in it, so its end is missing")
    return DONE if source.complete else INCOMPLETE


async def _read_in(source: Import, url: str, settings: Settings) -> None:
    from r2mad.memory.exchange import read_in

    source.begin()
    embedding = _Embedding(settings)
    told = time.monotonic()

    def announce(number: int) -> None:
        nonlocal told
        if time.monotonic() - told >= PAUSE:
            told = time.monotonic()
            print(f"read {number} of {source.promised} debates, {source.added} of them new", file=sys.stderr)

    try:
        with closing(await _open(source, url, embedding)) as store:
            await read_in(source, store, embedding.renewing(store), announce)
    finally:
        await embedding.aclose()


class _Embedding:
    """The embedder, opened when a debate first needs it: with all vectors in the file none does."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = asyncio.Lock()
        self._embedder: Embedder | None = None

    async def open(self, known: str | None = None) -> Embedder:
        """The one of the settings, else the one called `known`.

        Raises:
            UsageError: there is no such embedder.
            ModelError: it cannot be reached.
        """
        from r2mad.api import open_embedding

        async with self._lock:
            if self._embedder is None:
                self._embedder = await open_embedding(self.settings, known)
        return self._embedder

    def renewing(self, store: MemoryStore) -> Callable[[DebateRecord, Outcome], Any]:
        """What embeds a debate for that memory."""
        from r2mad.memory.cases import embed_debate

        async def renew(record: DebateRecord, outcome: Outcome) -> Remembered:
            embedder = await self.open(store.embedder)
            if embedder.name != store.embedder:
                raise UsageError(f"{store.url} was built with the embedder {store.embedder}, not {embedder.name}")
            return await embed_debate(record, outcome, embedder, store.form)

        return renew

    async def aclose(self) -> None:
        """Let go of the embedder, if it was opened."""
        if self._embedder:
            await self._embedder.aclose()


async def _open(source: Import, url: str, embedding: _Embedding) -> MemoryStore:
    """The memory that is there, or a new one for what the file holds."""
    from r2mad.memory import open_memory

    about = source.about
    assert about is not None
    given = embedding.settings.embedder
    try:
        store = await asyncio.to_thread(open_memory, url)
    except StoreError:
        if _is_there(url):  # and cannot be used
            raise
    else:
        try:
            if given and (embedder := await embedding.open()).name != store.embedder:
                raise UsageError(f"{url} was built with the embedder {store.embedder}, not {embedder.name}")
        except BaseException:
            store.close()
            raise
        return store
    if about.vectors and not given:
        name, dimension = about.embedder, about.dimension
    else:
        try:
            embedder = await embedding.open(about.embedder)
        except R2madError as error:
            if given:
                raise
            complain(f"{about.embedder} cannot be used here ({error}); wordllama embeds the debates instead")
            embedder = await embedding.open()
        name, dimension = embedder.name, await embedder.dimension()
    return await asyncio.to_thread(open_memory, url, embedder=name, dimension=dimension, form=about.form)


def _is_there(url: str) -> bool:
    """Whether a memory stands at that place already."""
    place = url.partition(":")[2]
    return bool(place.strip()) and home_expanded(Path(place)).exists()
