"""Where a benchmark's file is: named by the user, in the folder `R2MAD_DATA`, or on the hub; and that it is whole."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from r2mad.errors import StoreError, UsageError
from r2mad.settings import home_expanded
from r2mad.study.datasets import _rows
from r2mad.study.datasets._record import DataSet, Fault, HubFile, Table
from r2mad.study.datasets.names import is_there

log = logging.getLogger(__name__)

FOLDER = "R2MAD_DATA"
"""The variable that names the folder of benchmark files."""


class UnavailableError(Exception):
    """A file of the hub cannot be had; what else can be done is for the caller to say."""


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a set, and how they came to be found."""

    how: str
    """`path`, `folder` or `hub`."""
    paths: tuple[Path, ...]

    @property
    def fault(self) -> Fault:
        """What a bad row is: the user's to mend, or a damaged file."""
        return UsageError if self.how == "path" else StoreError

    def tables(self) -> list[Table]:
        """The files' rows."""
        return [Table(path.name, _rows.read(path, self.fault)) for path in self.paths]


def find(record: DataSet, category: str, path: str | Path | None) -> Found:
    """The files of a set, or of one of its categories: the user's, else the folder's, else the hub's.

    Raises:
        UsageError: it is in none of these places; the message says all three ways to have it.
        StoreError: a file is there and is not the one that we know.
    """
    if path is not None:
        return _given(record, category, path)
    if found := in_folder(record, category):
        _check(found, record.files[category].sha256)
        return Found("folder", (found,))
    try:
        paths = tuple(fetch(file) for file in record.hub)
        for file, fetched in zip(record.hub, paths, strict=True):
            _check(fetched, file.sha256)
    except UnavailableError as error:
        raise UsageError(_three_ways(record, category, str(error))) from error
    if not paths:
        raise UsageError(_three_ways(record, category, ""))
    return Found("hub", paths)


def in_folder(record: DataSet, category: str) -> Path | None:
    """The set's file in the folder that `R2MAD_DATA` names, if there is one.

    Raises:
        UsageError: the variable names no folder.
    """
    named = os.environ.get(FOLDER)
    if not named:
        return None
    folder = home_expanded(Path(named))
    if not folder.is_dir():
        raise UsageError(f"{FOLDER}: no folder {folder}")
    if category not in record.files:
        return None
    file = folder / record.files[category].name
    return file if file.is_file() else None


def in_hub_cache(record: DataSet) -> bool:
    """Whether the hub's files were fetched before and are still in the hub client's cache."""
    if not record.hub:
        return False
    try:
        return all(_fetched(file) for file in record.hub)
    except ImportError:
        return False


def fetch(file: HubFile) -> Path:
    """A file of the hub, from the client's cache if it was fetched before.

    Raises:
        UnavailableError: it cannot be had; the message says why.
    """
    try:
        if kept := _fetched(file):
            return kept
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError:
        raise UnavailableError("huggingface_hub is missing: pip install 'r2mad[study]'") from None
    try:  # no token: the sets are public, and nobody need be told who reads them
        url = hf_hub_url(file.repo, file.path, repo_type="dataset", revision=file.revision)
        get_hf_file_metadata(url, token=False)  # asks once, where the download would ask six times before it gives up
        return Path(hf_hub_download(file.repo, file.path, repo_type="dataset", revision=file.revision, token=False))
    except HfHubHTTPError as error:
        raise UnavailableError(f"the hub says {error.response.status_code} for {file.repo}/{file.path}") from error
    except Exception as error:  # the client's HTTP library has errors of its own, and changes from release to release
        line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnavailableError(f"the hub cannot be reached ({line})") from error


def _fetched(file: HubFile) -> Path | None:
    """The file in the hub client's cache, if it was fetched before; nobody is asked."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when the client is imported; we tell nobody anything
    from huggingface_hub import try_to_load_from_cache

    kept = try_to_load_from_cache(file.repo, file.path, revision=file.revision, repo_type="dataset")
    return Path(kept) if isinstance(kept, str) else None


def _given(record: DataSet, category: str, path: str | Path) -> Found:
    given = home_expanded(Path(path))
    if category in record.files and is_there(given / record.files[category].name):
        given = given / record.files[category].name
    if not is_there(given):
        raise UsageError(f"{given}: no such file")
    known = {*record.sha256.values(), *record.others}
    found = sha256(given)
    if found not in known:
        expected = ", ".join(sorted(one.sha256[:12] for one in record.files.values())) or "none of ours"
        log.warning("%s: sha256 %s is no copy of %s that we know (%s)", given, found[:12], record.name, expected)
    return Found("path", (given,))


def sha256(path: Path) -> str:
    """The hash of a file.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


def _check(path: Path, expected: str | None) -> None:
    if expected is not None and (found := sha256(path)) != expected:
        raise StoreError(f"{path}: not the file that we know: sha256 {found}, not {expected}")


def _three_ways(record: DataSet, category: str, why: str) -> str:
    name = record.name + (f":{category}" if category else "")
    file = record.files.get(category)
    ways = [f"name its file ({name}=/path/to/{file.name if file else 'FILE.parquet'})"]
    if file:
        so_far = " (the one it names now does not)" if os.environ.get(FOLDER) else ""
        ways.append(f"set {FOLDER} to a folder that holds {file.name}{so_far}")
    else:
        ways.append(f"set {FOLDER} to a folder of benchmark files, which has none for this one")
    repos = ", ".join(dict.fromkeys(one.repo for one in record.hub))
    ways.append(f"let huggingface_hub fetch {repos}{f', which failed: {why}' if why else ''}" if repos else "")
    more = f"; {record.instead}" if record.instead else ""
    return f"{name} is not here: {'; or '.join(filter(None, ways))}{more}"


def checked(dataset: str, count: int, expected: int, found: Found) -> None:
    """See that a set has as many items as it should; the hash of some of the hub's files is not known to us.

    Raises:
        StoreError: it has not, and the user did not name the file.
    """
    if count == expected:
        return
    line = f"{_named(found.paths)}: {count} items, but {dataset} has {expected}: another version?"
    if found.how != "path":
        raise StoreError(line)
    log.warning("%s", line)


def _named(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths))
