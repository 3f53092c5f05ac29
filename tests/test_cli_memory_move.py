"""`r2mad memory` export and import, and one clear line for every mistake with any of its commands."""

import json
import shlex
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from r2mad.cli.main import main
from r2mad.experience import Remembered
from r2mad.memory import open_memory
from r2mad.memory.cases import embed_debate
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from tests.memory.filled import everything, fill, sound, version
from tests.memory.made import same

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R2MAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("R2MAD_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.chdir(tmp_path)


def test_there_and_back_with_vectors(capsys: Capture) -> None:
    debates = [sound(number) for number in range(3)]
    url = fill(debates)
    assert main(["memory", "export", url, "m.jsonl", "--vectors"]) == 0
    assert capsys.readouterr() == ("", "exported 3 debates to m.jsonl\n")
    assert sorted(path.name for path in Path().iterdir() if path.is_file()) == ["m.db", "m.jsonl"]
    assert main(["memory", "import", "sqlite:new.db", "m.jsonl"]) == 0
    assert capsys.readouterr() == ("", "read 3 debates, 3 of them new\n")
    assert version("sqlite:new.db") == version(url)
    assert all(map(same, everything(url), everything("sqlite:new.db")))
    assert main(["memory", "import", "sqlite:new.db", "m.jsonl"]) == 0
    assert capsys.readouterr().err == "read 3 debates, 0 of them new\n"


def test_there_and_back_through_a_pipe() -> None:
    url = fill([sound(number) for number in range(3)])
    r2mad = shlex.join([sys.executable, "-m", "r2mad", "memory"])
    command = f"set -o pipefail; {r2mad} export {url} --vectors | {r2mad} import sqlite:new.db -"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert version("sqlite:new.db") == version(url)
    command = f"{r2mad} export {url} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["memory"]["debates"] == 3
    assert done.stderr == ""


async def _embedded(embedder: str, base_url: str | None = None) -> list[Remembered]:
    from r2mad.api import model_options
    from r2mad.embed import open_embedder
    from r2mad.settings import Settings

    opened = open_embedder(embedder, model_options(Settings(base_url=base_url)))
    try:
        return [await embed_debate(one.record, one.outcome, opened) for one in (sound(1), sound(2, failed=[(1, 1)]))]
    finally:
        await opened.aclose()


def test_text_is_embedded_by_the_embedder_it_was_embedded_by(capsys: Capture) -> None:
    import asyncio

    debates = asyncio.run(_embedded("wordllama"))
    url = fill(debates, embedder="wordllama/256", dimension=256)
    assert main(["memory", "export", url, "m.jsonl"]) == 0
    assert main(["memory", "import", "sqlite:new.db", "m.jsonl"]) == 0
    assert version("sqlite:new.db") == version(url)
    for old, new in zip(everything(url), everything("sqlite:new.db"), strict=True):
        assert old.record == new.record
        assert np.array_equal(old.question, new.question)
        assert np.array_equal(old.replies, new.replies)
    assert main(["memory", "import", url, "m.jsonl"]) == 0
    assert capsys.readouterr().err.endswith("read 2 debates, 0 of them new\n")


def test_an_embedder_that_is_not_here_is_replaced_and_that_is_told(capsys: Capture) -> None:
    url = fill([sound(1)])
    assert main(["memory", "export", url, "m.jsonl"]) == 0
    assert main(["memory", "import", "sqlite:new.db", "m.jsonl"]) == 0
    assert "words/8 cannot be used here" in capsys.readouterr().err
    with closing(open_memory("sqlite:new.db")) as store:
        assert (store.embedder, store.dimension, len(store.known())) == ("wordllama/256", 256, 1)


def test_an_embedder_that_one_names(capsys: Capture) -> None:
    with FakeServer.spawn(FakeSettings(model="*")) as server:
        url = fill([sound(number) for number in range(3)])
        assert main(["memory", "export", url, "m.jsonl", "--vectors"]) == 0
        flags = ["--embedder", "openai/fake", "--base-url", server.base_url]
        assert main(["memory", "import", "sqlite:new.db", "m.jsonl", *flags]) == 0
        with closing(open_memory("sqlite:new.db")) as store:
            name, known = store.embedder, store.known()
        assert name.startswith("openai/fake/")
        assert len(known) == 3
        capsys.readouterr()
        assert main(["memory", "import", "sqlite:new.db", "m.jsonl", "--embedder", "wordllama"]) == 2
        assert f"was built with the embedder {name}, not wordllama/256" in capsys.readouterr().err
        more = fill([sound(9)], "more.db")
        assert main(["memory", "export", more, "more.jsonl"]) == 0
        flags = ["--embedder-base-url", server.base_url]
        assert main(["memory", "import", "sqlite:new.db", "more.jsonl", *flags]) == 0  # the memory's own, and its place
    capsys.readouterr()
    assert main(["memory", "export", fill([sound(10)], "last.db"), "last.jsonl"]) == 0
    assert main(["memory", "import", "sqlite:new.db", "last.jsonl", "--base-url", server.base_url]) == 1
    assert "127.0.0.1" in capsys.readouterr().err
    assert len(everything("sqlite:new.db")) == 4


def test_export_never_replaces_a_file_unasked(capsys: Capture) -> None:
    url = fill([sound(1)])
    Path("notes.txt").write_text("mine")
    assert main(["memory", "export", url, "notes.txt"]) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert Path("notes.txt").read_text() == "mine"
    assert main(["memory", "export", url, "notes.txt", "--force"]) == 0
    assert Path("notes.txt").read_text().count("\n") == 2
    Path("folder").mkdir()
    assert main(["memory", "export", url, "folder", "--force"]) == 2
    assert "it is a folder" in capsys.readouterr().err


def test_an_export_that_fails_leaves_nothing(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    url = fill([sound(1)])
    Path("old.jsonl").write_text("mine")

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", broken)
    assert main(["memory", "export", url, "old.jsonl", "--force"]) == 1
    assert "old.jsonl: cannot be written: No space left on device" in capsys.readouterr().err
    assert Path("old.jsonl").read_text() == "mine"
    assert not list(Path().glob(".*.new"))


def _exported(capsys: Capture, *, vectors: bool = True) -> list[bytes]:
    url = fill([sound(number) for number in range(4)])
    assert main(["memory", "export", url, "m.jsonl", *(["--vectors"] if vectors else [])]) == 0
    capsys.readouterr()
    return Path("m.jsonl").read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"damaged\n", "m.jsonl, line 4: not a MemoryLine"),
        (b'{"schema": 2, "record": {}}\n', "m.jsonl, line 4: schema 2 is newer than this r2mad knows"),
    ],
)
def test_a_damaged_or_newer_line_ends_an_import(line: bytes, message: str, capsys: Capture) -> None:
    lines = _exported(capsys)
    Path("m.jsonl").write_bytes(b"".join([*lines[:3], line, *lines[4:]]))
    assert main(["memory", "import", "sqlite:new.db", "m.jsonl"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == "r2mad: 2 debates were added before this:"
    assert message in second
    assert len(everything("sqlite:new.db")) == 2
    Path("m.jsonl").write_bytes(b"".join(lines))
    assert main(["memory", "import", "sqlite:new.db", "m.jsonl"]) == 0
    assert capsys.readouterr().err == "read 4 debates, 2 of them new\n"


def test_a_torn_and_a_missing_end(capsys: Capture) -> None:
    lines = _exported(capsys)
    Path("m.jsonl").write_bytes(b"".join(lines)[:-50])
    assert main(["memory", "import", "sqlite:new.db", "m.jsonl"]) == 1
    err = capsys.readouterr().err
    assert "read 3 debates, 3 of them new" in err
    assert "m.jsonl, line 5: not whole, so it was left out" in err
    Path("m.jsonl").write_bytes(b"".join(lines[:3]))
    assert main(["memory", "import", "sqlite:other.db", "m.jsonl"]) == 1
    assert "m.jsonl: 4 debates should stand in it, so its end is missing" in capsys.readouterr().err


def test_a_damaged_first_line_makes_no_memory(capsys: Capture) -> None:
    Path("m.jsonl").write_text("# notes\n")
    assert main(["memory", "import", "sqlite:new.db", "m.jsonl"]) == 1
    assert "m.jsonl, line 1" in capsys.readouterr().err
    assert not Path("new.db").exists()


def test_an_interrupted_import_says_how_to_go_on(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    _exported(capsys)

    async def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("r2mad.memory.exchange.read_in", interrupted)
    assert main(["memory", "import", "sqlite:new.db", "m.jsonl"]) == 130
    assert "the same command takes it up" in capsys.readouterr().err


def test_a_long_import_tells_how_far_it_is(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    _exported(capsys)
    monkeypatch.setattr("r2mad.cli.memory_move.PAUSE", 0.0)
    assert main(["memory", "import", "sqlite:new.db", "m.jsonl"]) == 0
    assert capsys.readouterr().err.startswith("read 4 of 4 debates, 4 of them new\n")


# mistakes


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["info"], 2, "URL"),
        (["info", "m.db"], 2, "scheme:place"),
        (["info", "redis:m.db"], 2, "no kind of memory 'redis'"),
        (["info", "sqlite:"], 2, "names no place"),
        *(([verb, "sqlite:none.db"], 1, "none.db") for verb in ("info", "audit", "list", "export")),
        (["show", "sqlite:none.db", "1"], 1, "none.db"),
        (["forget", "sqlite:none.db", "--source", "x"], 1, "none.db"),
        (["show", "{url}", "nothing"], 2, "no debate, case or question 'nothing'"),
        (["show", "{url}", " "], 2, "an id is needed"),
        (["show", "{url}", "made/"], 2, "'made/' is of 3 debates"),
        (["list", "{url}", "--limit", "0"], 2, "out of range"),
        (["list", "{url}", "--limit", "many"], 2, "many"),
        (["audit", "{url}", "--against", "nothing"], 2, "no data set 'nothing'"),
        (["audit", "{url}", "--against", "starter:dev"], 2, "no split 'dev'"),
        (["audit", "{url}", "--run", "nowhere"], 1, "no run there"),
        (["audit", "{url}", "--ids", "there.txt"], 2, "is there already"),
        (["audit", "{url}", "--against", "starter", "--ids", "none/ids.txt"], 1, "cannot be written"),
        (["forget", "{url}"], 2, "say what is to go"),
        (["forget", "{url}", "--yes"], 2, "say what is to go"),
        (["forget", "{url}", "--source", "gold"], 2, "give --yes"),
        (["forget", "{url}", "--older-than", "soon"], 2, "neither an age"),
        (["forget", "{url}", "--older-than", "999999w"], 2, "neither an age"),
        (["forget", "{url}", "--ids", "none.txt"], 1, "none.txt: cannot be read"),
        (["forget", "{url}", "--ids", "bad.json"], 2, "neither ids, one a line"),
        (["forget", "{url}", "--ids", "worse.json"], 2, "not a list of ids"),
        (["export", "{url}", "none/m.jsonl"], 1, "cannot be written"),
        (["export", "{url}", "there.txt"], 2, "there already"),
        (["export", "{url}", "--vektors"], 2, "no option --vektors"),
        (["export", "{url}", "m.jsonl", "--vektors"], 2, "--vektors"),
        (["import", "sqlite:new.db", "--embeder"], 2, "no option --embeder"),
        (["import", "sqlite:new.db", "good.jsonl", "--embeder", "wordllama"], 2, "--embeder"),
        (["import", "sqlite:new.db", "none.jsonl"], 1, "none.jsonl: cannot be read"),
        (["import", "sqlite:new.db", "empty.txt"], 1, "it is empty"),
        (["import", "sqlite:new.db", "there.txt"], 1, "its first line is not whole"),
        (["import", "new.db", "good.jsonl"], 2, "scheme:place"),
        (["import", "sqlite:new.db", "good.jsonl", "--embedder", "nobody"], 2, "no embedder 'nobody'"),
        (["import", "sqlite:new.db", "good.jsonl", "--timeout", "-1"], 2, "out of range"),
        (["import", "sqlite:new.db"], 2, "FILE"),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_a_mistake_is_one_clear_line(arguments: list[str], code: int, message: str, capsys: Capture) -> None:
    url = fill([sound(number) for number in range(3)])
    assert main(["memory", "export", url, "good.jsonl"]) == 0
    Path("there.txt").write_text("mine")
    Path("empty.txt").touch()
    Path("bad.json").write_text("[1, 2]")
    Path("worse.json").write_text('{"forget": "all"}')
    capsys.readouterr()
    assert main(["memory", *(argument.replace("{url}", url) for argument in arguments)]) == code
    out, err = capsys.readouterr()
    complaints = [line for line in err.splitlines() if line.startswith("r2mad: ")]
    assert len(complaints) == 1, err
    assert message in complaints[0]
    assert "Traceback" not in out + err
    assert len(everything(url)) == 3
    assert not Path("new.db").exists()
