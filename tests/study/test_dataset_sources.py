"""Benchmarks by path, by folder and from the hub: the right file, its faults told, and the command that lists them."""

import hashlib
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from r2mad.cli.main import main
from r2mad.errors import StoreError, UsageError
from r2mad.study.datasets import DATASETS, _source, load, math500, truthfulqa
from r2mad.study.datasets._record import FolderFile, HubFile
from r2mad.types import LETTERS


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(file: HubFile) -> Path:
        raise _source.UnavailableError("no network in tests")

    monkeypatch.setattr(_source, "fetch", refuse)
    monkeypatch.setattr(_source, "_fetched", lambda file: None)


# Where a file comes from

PROBLEM = {"id": "test/algebra/1.json", "question": "What is $1+1$?", "answer": "2", "subject": "Algebra", "level": 5}


def _folder(monkeypatch: pytest.MonkeyPatch, folder: Path, *rows: Any, items: int = 1) -> Path:
    """A folder with a small MATH500 that the registry takes for the whole one."""
    file = folder / "math500.jsonl"
    file.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    hash_ = hashlib.sha256(file.read_bytes()).hexdigest()
    small = replace(math500.RECORD, items=items, train=0, files={"": FolderFile(file.name, hash_)})
    monkeypatch.setitem(DATASETS, "math500", small)
    monkeypatch.setenv("R2MAD_DATA", str(folder))
    return file


def test_nowhere_to_be_had(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("R2MAD_DATA", raising=False)
    for name in ("math500", "truthfulqa:test", "mmlu-pro:law", "mmlu-pro"):
        with pytest.raises(UsageError) as caught:
            load(name)
        said = str(caught.value)
        base = name.removesuffix(":test")
        assert f"{base}=/path/to/" in said
        assert "R2MAD_DATA" in said
        assert "huggingface_hub" in said
        assert "no network in tests" in said
    monkeypatch.setenv("R2MAD_DATA", str(tmp_path))
    with pytest.raises(UsageError, match="the one it names now does not"):
        load("math500")
    monkeypatch.setenv("R2MAD_DATA", str(tmp_path / "absent"))
    with pytest.raises(UsageError, match="R2MAD_DATA: no folder"):
        load("math500")


def test_a_folders_file_must_be_the_one_that_we_know(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = _folder(monkeypatch, tmp_path, PROBLEM)
    assert load("math500")[0].gold == "2"
    known = hashlib.sha256(file.read_bytes()).hexdigest()
    file.write_text(json.dumps({**PROBLEM, "answer": "3"}) + "\n")
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    with pytest.raises(StoreError, match=f"math500.jsonl: not the file that we know: sha256 {found}, not {known}"):
        load("math500")
    with caplog.at_level(logging.WARNING):
        assert load(f"math500={file}")[0].gold == "3"
        assert load("math500:test", path=file)[0].gold == "3"
        assert load("math500", path=tmp_path)[0].gold == "3"
    assert caplog.text.count("no copy of math500 that we know") == 3
    with pytest.raises(UsageError, match="names a file already"):
        load(f"math500={file}", path=file)
    with pytest.raises(UsageError, match="no such file"):
        load(f"math500={tmp_path / 'absent.jsonl'}")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "line 2: not JSON"),
        ({**PROBLEM, "id": "2", "level": 6}, "line 2: a level is 1 to 5, not '6'"),
        ({key: value for key, value in PROBLEM.items() if key != "subject"}, "line 2: no column 'subject'"),
        (PROBLEM, "line 2: the id 'test/algebra/1.json' stands at .*line 1 as well"),
        ({**PROBLEM, "id": "2", "question": " "}, "line 2: the question is empty"),
        ({**PROBLEM, "id": "2", "answer": ""}, "line 2: the answer is empty"),
    ],
)
def test_a_damaged_row_is_told_before_anything_runs(
    row: Any, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = _folder(monkeypatch, tmp_path, PROBLEM, row)
    with pytest.raises(StoreError, match=f"math500.jsonl, {message}"):
        load("math500")
    with pytest.raises(UsageError, match=f"math500.jsonl, {message}"):
        load("math500", path=file)


def test_another_number_of_items_is_another_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = _folder(monkeypatch, tmp_path, PROBLEM, items=2)
    with pytest.raises(StoreError, match="1 items, but math500 has 2: another version"):
        load("math500")
    with caplog.at_level(logging.WARNING):
        load("math500", path=file)
    assert "another version" in caplog.text


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        ("truthfulqa", {"question": "x?", "options": ["a", "b"], "answer": "C"}, "'C' is none of the 2 options"),
        ("truthfulqa", {"question": "x?", "mc1_targets": {"choices": ["a", "b"], "labels": [1, 1]}}, "exactly one"),
        ("truthfulqa", {"question": "x?", "answer": "A"}, "options must be a list"),
        ("mmlu-pro", {"id": 1, "question": "x?", "options": ["a", "b"], "answer": "C", "category": "law"}, "none of"),
        ("mmlu-pro", {"id": 1, "question": "x?", "options": ["a", "a"], "answer": "A", "category": "law"}, "the same"),
        ("aime24", {"id": "1", "question": "x?", "answer": "5"}, "does not say which problem"),
        ("aime24", {"id": "II-3", "question": "x?", "answer": "1000"}, "an integer from 0 to 999"),
        ("aime25", {"id": "I-3", "question": "x?", "answer": "5"}, "like aime25/II-3"),
        ("gsm8k", {"question": "x?", "answer": "so #### "}, "the answer is empty"),
    ],
)
def test_bad_rows_of_each_set(name: str, row: dict[str, Any], message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(json.dumps(row) + "\n")
    with pytest.raises(UsageError, match=rf"bad\.jsonl, line 1: .*{message}"):
        load(name, path=file)


def test_upstreams_json_of_truthfulqa_and_options_permuted(tmp_path: Path) -> None:
    file = tmp_path / "mc.jsonl"
    targets = {"yes": 1, "no": 0, "maybe": 0, "never": 0}
    file.write_text("".join(json.dumps({"question": f"{n}?", "mc1_targets": targets}) + "\n" for n in range(40)))
    items = load("truthfulqa", path=file)
    assert [item.question.id for item in items[:2]] == ["truthfulqa/0", "truthfulqa/1"]
    assert {item.question.options[LETTERS.index(item.gold)] for item in items} == {"yes"}
    assert {item.gold for item in items} == set("ABCD")
    assert truthfulqa.order("truthfulqa/0", 5) == [1, 3, 2, 0, 4]  # never moves


# The hub, as a stand-in on this machine


class _Hub(BaseHTTPRequestHandler):
    """As much of the hub as the client asks of one for a file of a data set."""

    content = b""
    seen: list[str] = []  # noqa: RUF012  (reset by the fixture)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        self.seen.append(f"{self.command} {self.path} {self.headers.get('Authorization')}")
        if "/datasets/HuggingFaceH4/MATH-500/resolve/" not in self.path:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.sha256(self.content).hexdigest()}"')
        self.send_header("X-Repo-Commit", math500.RECORD.revision or "")
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        if body:
            self.wfile.write(self.content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _hub(content: bytes) -> Iterator[tuple[str, list[str]]]:
    handler = type("Hub", (_Hub,), {"seen": [], "content": content})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", handler.seen  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


UPSTREAM = b'{"unique_id": "a/1", "problem": "1+1?", "answer": "2", "subject": "Algebra", "level": 5, "solution": ""}\n'


def _from_hub(url: str, cache: Path, sha256: str, name: str = "math500") -> subprocess.CompletedProcess[str]:
    """In a process of its own: the client reads the hub's address once, when it is imported."""
    program = (
        "from dataclasses import replace\n"
        "from r2mad.study.datasets import DATASETS, load\n"
        "from r2mad.errors import R2madError\n"
        "one = DATASETS['math500']\n"
        f"hub = (replace(one.hub[0], sha256={sha256!r}),)\n"
        "DATASETS['math500'] = replace(one, items=1, train=0, hub=hub)\n"
        "try:\n"
        f"    print(load({name!r})[0].question.id)\n"
        "except R2madError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        env={"HF_ENDPOINT": url, "HF_HOME": str(cache), "HF_TOKEN": "hf_secret", "HF_HUB_DISABLE_XET": "1",
             "HF_HUB_ETAG_TIMEOUT": "2", "HOME": str(cache), "PATH": ""},
        capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip


def test_a_file_of_the_hub_at_its_revision_and_nobody_is_told_who_reads_it(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    right = hashlib.sha256(UPSTREAM).hexdigest()
    with _hub(UPSTREAM) as (url, seen):
        assert _from_hub(url, tmp_path, right).stdout == "a/1\n"
        assert {request.split()[0] for request in seen} == {"HEAD", "GET"}
        assert all(f"/resolve/{math500.RECORD.revision}/test.jsonl None" in request for request in seen), seen
        asked = len(seen)
        assert _from_hub(url, tmp_path, right).stdout == "a/1\n"
        assert len(seen) == asked  # nothing is fetched twice, nor asked about
        wrong = _from_hub(url, tmp_path, "0" * 64).stdout
    assert wrong.startswith("StoreError")
    assert right in wrong
    assert "0" * 64 in wrong
    assert _from_hub("http://127.0.0.1:9", tmp_path, right).stdout == "a/1\n"  # kept, so no hub is needed


def test_a_hub_that_is_not_there_or_has_not_got_it(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    done = _from_hub("http://127.0.0.1:9", tmp_path, "0" * 64)
    assert "the hub cannot be reached" in done.stdout
    assert "math500=/path/to/math500.jsonl" in done.stdout
    assert done.stderr == ""
    with _hub(b"") as (url, _):
        done = _from_hub(url, tmp_path, "0" * 64, "gsm8k")
    assert "the hub says 404 for openai/gsm8k/main/test-00000-of-00001.parquet" in done.stdout


@pytest.mark.parametrize(("missing", "name"), [("huggingface_hub", "math500"), ("pyarrow", "x.parquet")])
def test_what_the_extra_brings_is_named_where_it_is_missing(missing: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"")
    program = (
        f"import sys\nsys.modules[{missing!r}] = None\n"
        "from r2mad.study.datasets import load\nfrom r2mad.errors import UsageError\n"
        f"try:\n    load({name!r})\nexcept UsageError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"HF_HOME": str(tmp_path), "HOME": str(tmp_path), "PATH": ""},
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "pip install 'r2mad[study]'" in done.stdout


# The command


def _listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    code = main(["datasets", "--json", *arguments])
    return code, {row["name"]: row for row in json.loads(capsys.readouterr().out)}


def test_sets_are_listed_with_what_is_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _folder(monkeypatch, tmp_path, PROBLEM)
    code, rows = _listed(capsys)
    assert code == 0
    assert list(rows) == list(DATASETS)
    assert rows["math500"]["here"] == {"": "R2MAD_DATA"}
    assert rows["gsm8k"]["here"] == {}
    assert "checked" not in rows["math500"]
    assert main(["datasets"]) == 0
    out = capsys.readouterr().out
    assert "here: no" in out
    assert "Apache-2.0" in out


def test_sets_that_are_here_are_checked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = _folder(monkeypatch, tmp_path, PROBLEM)
    code, rows = _listed(capsys, "--check")
    assert code == 0
    assert rows["math500"]["checked"]["math500"]["splits"] == {"test": 1}
    assert rows["starter"]["checked"]["starter"]["items"] == rows["starter"]["items"]
    assert rows["gsm8k"]["checked"] == {}
    file.write_text("{}\n")
    assert main(["datasets", "--check"]) == 1
    assert "WRONG math500" in capsys.readouterr().out


def test_a_file_of_ones_own_is_checked_by_its_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "my.csv"
    file.write_text("q,answer\nWhat is 1 + 1?,2\nWhat is 1 + 1?,2\n")
    assert main(["datasets", f"{file}?question=q", "--check"]) == 1
    assert "my.csv, line 3: the same question" in capsys.readouterr().out
    file.write_text("q,answer\nWhat is 1 + 1?,2\nWhat is 1 + 2?,3\n")
    code, rows = _listed(capsys, f"{file}?question=q", "--check")
    assert code == 0
    assert rows[f"{file}?question=q"]["checked"][f"{file}?question=q"]["items"] == 2
    assert main(["datasets", "nope"]) == 2
