"""Documentation runs: every Python block, and every `r2mad` command of the README, against a fake server."""

import asyncio
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from r2mad.api import open_table
from r2mad.cli.main import main
from r2mad.methods import METHODS
from r2mad.models.catalogue import DEFAULT, pull
from r2mad.models.fake_server import FakeServer, SpawnedServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.settings import Settings
from r2mad.study.records import DEBATES, latest
from r2mad.study.runner import run_study
from r2mad.types import Item, Question

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(scope="module")
def server() -> Iterator[SpawnedServer]:
    with FakeServer.spawn(FakeSettings(model="*")) as running:
        yield running


@pytest.fixture(autouse=True)
def _a_users_machine(server: SpawnedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pulled = pull(DEFAULT)  # into the developer's own cache, once
    models = tmp_path / "cache" / "models"
    models.mkdir(parents=True)
    (models / pulled.parent.name).symlink_to(pulled.parent)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("R2MAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("R2MAD_LOG_DIR", str(tmp_path / "logs"))


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


async def _make_a_run(folder: Path, base_url: str) -> None:
    items = [Item(Question(f"Which is case {n}?", ("this", "that")), "A") for n in range(20)]  # some right, some wrong
    async with open_table("openai/any", Settings(base_url=base_url, cache=":memory:")) as table:
        await run_study(table, items, ["mad", "mad-m2-s"], folder, seed=1)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page: Path, server: SpawnedServer, tmp_path: Path) -> None:
    asyncio.run(_make_a_run(tmp_path / "RUN", server.base_url))
    names: dict[str, object] = {}
    for block in _blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


def _commands(page: Path) -> list[list[str]]:
    text = "\n".join(_blocks(page, "sh")).replace("\\\n", " ")
    lines = [shlex.split(line, comments=True) for line in text.splitlines() if line.startswith("r2mad ")]
    return [line[1:] for line in lines]


@pytest.mark.parametrize(
    ("page", "least"),
    [("README.md", 18), ("docs/memory.md", 8), ("docs/metrics.md", 4), ("docs/studies.md", 1), ("docs/tables.md", 3)],
)
def test_the_commands_of_a_page_run(
    page: str, least: int, server: SpawnedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = _commands(ROOT / page)
    assert len(commands) >= least
    asyncio.run(_make_a_run(tmp_path / "RUN", server.base_url))
    held = latest(tmp_path / "RUN" / DEBATES).values()
    (tmp_path / "feedback.csv").write_text("debate,value\n" + "".join(f"{record.id},1\n" for record in held))
    for command in commands:
        if any(word.startswith("local//") for word in command):
            continue  # a file of the reader's own
        if "--base-url" in command:  # the addresses of the page are examples
            command[command.index("--base-url") + 1] = server.base_url
        assert main(command) == 0, command
        assert command[0] != "ask" or "Answer: " in capsys.readouterr().out


def test_every_method_stands_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in METHODS)


def test_every_field_of_a_record_is_described() -> None:
    from dataclasses import fields

    from r2mad import types as t

    text = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
    records = (t.DebateRecord, t.MemoryInfo, t.Round, t.View, t.Peer, t.Retrieved, t.Reply, t.Usage, t.Judgement)
    for record in (*records, t.MaskChoice, t.Separation):
        for field in fields(record):
            assert f"`{field.name.rstrip('_')}`" in text, f"{record.__name__}.{field.name}"
