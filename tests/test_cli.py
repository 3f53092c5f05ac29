"""The command line: what a person sees, what a script reads, and one clear line for every mistake."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from r2mad import __version__
from r2mad.cli.main import main
from r2mad.models.fake_server import FakeServer, SpawnedServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.study.records import DEBATES, Writer, latest, load
from r2mad.types import DebateRecord

WALL = "Is the Great Wall of China visible from the Moon with the naked eye?"


@pytest.fixture(scope="module")
def server() -> Iterator[SpawnedServer]:
    with FakeServer.spawn(FakeSettings(bias=0.3)) as running:
        yield running


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R2MAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("R2MAD_LOG_DIR", str(tmp_path / "logs"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "R2MAD_MODEL"):
        monkeypatch.delenv(name, raising=False)


def _ask(server: SpawnedServer, *more: str) -> list[str]:
    return [
        "ask",
        WALL,
        "--option",
        "Yes",
        "--option",
        "No",
        "--model",
        "openai/fake",
        "--base-url",
        server.base_url,
        *more,
    ]


def test_ask_shows_three_agents_debating_and_ends_with_an_answer(
    server: SpawnedServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(_ask(server, "--method", "mad", "--seed", "4")) == 0
    out, err = capsys.readouterr()
    assert all(f"round 0  {name}: " in err for name in ("theorist", "practitioner", "generalist"))
    assert "round 0 over: " in err
    assert re.match(r"Answer: (A  Yes|B  No)\nVotes: ", out)
    assert "Took: " in out
    (record,) = latest(tmp_path / "logs" / "ask" / DEBATES).values()
    assert record.id in out
    assert record.question.text == WALL


def test_json_is_one_record_on_stdout_and_nothing_else(
    server: SpawnedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_ask(server, "--method", "sc-3", "--json")) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    assert load(DebateRecord, out).method == "sc-3"


def test_the_question_is_read_from_standard_input(server: SpawnedServer, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "r2mad", "ask", "--kind", "number", "--model", "openai/fake", "--json",
               "--base-url", server.base_url, "--method", "cot"]  # fmt: skip
    done = subprocess.run(command, input="What is 17 * 23?\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    record = load(DebateRecord, done.stdout)
    assert (record.question.text, record.question.kind) == ("What is 17 * 23?", "number")
    assert record.answer is not None


@pytest.mark.parametrize("question", ["-", None])
def test_a_dash_is_standard_input(server: SpawnedServer, question: str | None) -> None:
    command = [sys.executable, "-m", "r2mad", "ask", *([question] if question else []), "--model", "openai/fake"]
    command += ["--base-url", server.base_url, "--method", "cot", "--json"]
    done = subprocess.run(command, input="Who?", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert load(DebateRecord, done.stdout).question.text == "Who?"


def test_a_question_may_begin_with_a_minus(server: SpawnedServer, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["ask", "-5 + 3 = ?", "--kind", "number", "--model", "openai/fake", "--base-url", server.base_url]
    assert main([*arguments, "--json", "--method", "cot"]) == 0
    assert load(DebateRecord, capsys.readouterr().out).question.text == "-5 + 3 = ?"


@pytest.mark.parametrize(
    "redirection",
    ["2>/dev/full", "2>&-", "| head -0", "2>&1 | head -1", ">/dev/null 2>&1 | true"],
)
def test_who_does_not_listen_does_not_end_the_debate(server: SpawnedServer, redirection: str, tmp_path: Path) -> None:
    ask = shlex.join([sys.executable, "-m", "r2mad", *_ask(server, "--method", "vote", "--display", "plain")])
    done = subprocess.run(
        ["bash", "-c", f"{ask} {redirection}; exit ${{PIPESTATUS[0]}}"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr + done.stdout
    assert len(latest(tmp_path / "logs" / "ask" / DEBATES)) == 1


@pytest.mark.parametrize("redirection", [">/dev/full", ">&-"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_an_answer_that_cannot_be_printed(
    server: SpawnedServer, redirection: str, form: list[str], tmp_path: Path
) -> None:
    ask = shlex.join([sys.executable, "-m", "r2mad", *_ask(server, "--method", "vote", *form)])
    done = subprocess.run(["bash", "-c", f"{ask} {redirection}"], capture_output=True, check=False)
    assert done.returncode == (1 if "full" in redirection else 0)
    assert b"Traceback" not in done.stderr
    assert len(latest(tmp_path / "logs" / "ask" / DEBATES)) == 1


def test_a_terminal_without_the_letters(server: SpawnedServer) -> None:
    command = [sys.executable, "-m", "r2mad", "ask", "é?", "--option", "é", "--option", "漢", "--model", "openai/fake",
               "--base-url", server.base_url]  # fmt: skip
    for form in ([], ["--json"]):
        done = subprocess.run(
            [*command, *form], capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False
        )
        assert done.returncode == 0, done.stderr
    assert load(DebateRecord, done.stdout).question.options == ("é", "漢")


def test_a_busy_record_file_does_not_cost_the_answer(
    server: SpawnedServer, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "logs" / "ask" / DEBATES
    holder = Writer[DebateRecord](path)
    try:
        monkeypatch.setattr("r2mad.study.records.Writer.when_free", _at_once)
        assert main(_ask(server, "--method", "vote")) == 1
    finally:
        holder.close()
    out, err = capsys.readouterr()
    assert out.startswith("Answer: ")
    assert "not on record" in err


async def _at_once(path: Path) -> Writer[DebateRecord]:
    return Writer(path)


def test_lists_in_variables_stand_one_a_line(
    server: SpawnedServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("R2MAD_OPTION", "Very cold\nHot, and dry")
    assert main(["ask", "How?", "--model", "openai/fake", "--base-url", server.base_url, "--json"]) == 0
    assert load(DebateRecord, capsys.readouterr().out).question.options == ("Very cold", "Hot, and dry")


def test_several_models_are_taken_in_turn(server: SpawnedServer, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = _ask(server, "--json", "--model", "scripted/always-A")
    assert main(arguments) == 0
    record = load(DebateRecord, capsys.readouterr().out)
    assert [agent.model for agent in record.agents] == ["openai/fake", "scripted/always-A", "openai/fake"]


def test_variables_stand_for_flags(
    server: SpawnedServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("R2MAD_MODEL", "openai/fake")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("R2MAD_METHOD", "cot")
    assert main(["ask", WALL, "--json"]) == 0
    record = load(DebateRecord, capsys.readouterr().out)
    assert (record.method, record.agents[0].model) == ("cot", "openai/fake")


def test_methods_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods"]) == 0
    assert "mad" in capsys.readouterr().out
    assert main(["methods", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"]: row["calls"] for row in rows}["sc-9"] == 9
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == __version__


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "ask" in capsys.readouterr().out
    assert main(["ask", "--help"]) == 0
    text = capsys.readouterr().out
    for flag in (
        "--option",
        "--method",
        "--model",
        "--base-url",
        "--temperature",
        "--max-connections",
        "--no-cache",
        "--json",
    ):
        assert flag in text
    assert "--no-no-cache" not in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["ask", "Q?", "--model", "openai/fake", "--method", "madd"], 2, "Did you mean mad"),
        (["ask", "Q?", "--model", "nobody/fake"], 2, "nobody"),
        (["ask", "Q?", "--model", "fake"], 2, "provider/name"),
        (["ask", "Q?"], 2, "no model given"),
        (["ask", "  ", "--model", "openai/fake"], 2, "the question is empty"),
        (["ask", "Q?", "--option", "only", "--model", "openai/fake"], 2, "at least two options"),
        (["ask", "Q?", "--option", "x", "--option", "x", "--model", "openai/fake"], 2, "the same"),
        (["ask", "Q?", "--model", "openai/fake", "--temperature", "hot"], 2, "temperature"),
        (["ask", "Q?", "--model", "openai/fake", "--temperature", "-1"], 2, "out of range"),
        (["ask", "Q?", "--model", "openai/fake", "--agents", "0"], 2, "out of range"),
        (["ask", "Q?", "--model", "openai/fake", "--method", "cot", "--agents", "3"], 2, "by definition"),
        (["ask", "Q?", "--model", "openai/fake", "--extra-body", "{"], 2, "not JSON"),
        (["ask", "Q?", "--model", "openai/fake", "--prompts", "no-such-pack"], 2, "no prompt pack"),
        (["ask", "Q?", "--model", "openai/fake", "--base-url", "not a url"], 2, "not a url"),
        (["ask", "Q?", "--no-such-flag"], 2, "--no-such-flag"),
        (["nonsense"], 2, "nonsense"),
        (["ask", "Q?", "--model", "openai/fake", "--base-url", "http://127.0.0.1:9/v1"], 1, "127.0.0.1:9"),
    ],
)
def test_a_mistake_is_one_clear_line(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--log-level", "error"] if arguments[0] == "ask" and code == 1 else arguments) == code
    out, err = capsys.readouterr()
    complaints = [line for line in err.splitlines() if line.startswith("r2mad: ")]
    assert len(complaints) == 1, err
    assert message in complaints[0]
    assert "Traceback" not in out + err


def test_a_wrong_key_is_named_and_not_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with FakeServer.spawn(FakeSettings(api_key="right-key")) as guarded:
        arguments = ["ask", "Q?", "--model", "openai/fake", "--base-url", guarded.base_url]
        assert main([*arguments, "--api-key", "wrong-key"]) == 1
        out, err = capsys.readouterr()
        assert "401" in err
        assert "wrong-key" not in out + err
        assert "wrong-key" not in (tmp_path / "logs" / "ask" / DEBATES).read_text()
        assert main([*arguments, "--api-key", "right-key"]) == 0


def test_a_damaged_cache_a_blocked_folder(
    server: SpawnedServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"this is no database" * 1000)
    assert main(_ask(server, "--cache", str(damaged))) == 1
    assert "damaged.sqlite" in capsys.readouterr().err
    blocker = tmp_path / "a-file"
    blocker.write_text("in the way")
    assert main(_ask(server, "--log-dir", str(blocker))) == 1
    assert "cannot be written" in capsys.readouterr().err
    assert main(_ask(server, "--cache", str(blocker / "calls.sqlite"))) == 1
    assert "a-file" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_asked(
    server: SpawnedServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "a-file").write_text("in the way")
    server.reset()
    assert main(_ask(server, "--log-dir", str(tmp_path / "a-file"))) == 1
    assert "cannot be written" in capsys.readouterr().err
    assert server.read_log() == []
    assert main(_ask(server, "--log-dir", str(tmp_path / "elsewhere"))) == 0
    assert server.read_log() != []


def test_nothing_that_a_model_says_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    from r2mad.cli.common import printable

    assert "\x1b" not in printable("\x1b[2J\x1b]0;title\x07 text\u202e")
    assert printable("\U0001f469\u200d\U0001f467") == "\U0001f469\u200d\U0001f467"  # joiners only shape
    assert printable("two\n lines\t and  gaps") == "two lines and gaps"


def test_interrupting_ends_with_130(tmp_path: Path) -> None:
    with FakeServer.spawn(FakeSettings(latency_ms=60_000.0)) as slow:
        command = [sys.executable, "-m", "r2mad", "ask", "Q?", "--model", "openai/fake", "--base-url", slow.base_url]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            process.stderr.readline()  # the debate has begun
            time.sleep(0.3)
            os.kill(process.pid, signal.SIGINT)
            rest = process.stderr.read()
            assert process.wait(20) == 130
        assert "Traceback" not in rest
        assert re.search(r"interrupted; the same command with --seed \d+", rest)


def test_import_and_help_are_light() -> None:
    """No HTTP client, no numpy, no pydantic, no template engine for `import r2mad` and `r2mad --help`."""
    heavy = "{'aiohttp', 'numpy', 'httpx', 'pydantic', 'jinja2', 'sympy', 'sqlite3'}"
    for code in ("import r2mad; r2mad.Question('q')", "from r2mad.cli.main import main; main(['--help'])"):
        check = f"{code}\nimport sys; found = {heavy} & set(sys.modules); sys.exit(repr(found) if found else 0)"
        done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
