"""The demo: its table adds up, its questions are the same each time, and the real model does what is said of it."""

import json
import re
from pathlib import Path

import pytest

from r2mad.api import open_table
from r2mad.cli.demo import _Progress
from r2mad.cli.main import main
from r2mad.memory.exchange import Import
from r2mad.models.scripted import ScriptedModel
from r2mad.settings import Settings
from r2mad.study.datasets import load
from r2mad.study.demo import EMBEDDED, MEMORY, METHODS, expected_calls, handful, make_memory, run_demo
from r2mad.study.records import DEBATES, dump, latest
from r2mad.study.runner import run_study
from r2mad.study.scores import summarise
from r2mad.study.stats import wilson
from r2mad.types import Completion, Request, Usage


def test_the_handful_is_the_same_each_time_and_has_every_group() -> None:
    assert handful(8) == handful(8)
    assert {item.group for item in handful(8)} == {
        "everyday",
        "arithmetic",
        "misconceptions",
        "economics",
        "engineering",
    }
    assert all(item.split == "test" for item in handful(20))
    assert len(handful(1)) == 1


async def test_the_table_adds_up(tmp_path: Path) -> None:
    def script(request: Request) -> Completion:
        said = f"Answer: {'Green' if request.agent < 2 else 'Red'}"
        return Completion(said, usage=Usage(10, 2, 0, 4), seconds=1.5)

    model = ScriptedModel(script)
    items = [item for item in handful(8) if item.group == "everyday"][:1]
    memory = f"sqlite:{tmp_path / 'memory.db'}"
    assert await make_memory(EMBEDDED, memory, Settings(), 1) == 124
    async with open_table(model, Settings(cache=":memory:", prompts="tiny", memory=memory)) as table:
        lines, record = await run_demo(table, items, tmp_path, seed=1)
    assert [line.method for line in lines] == list(METHODS)
    by_name = {line.method: line for line in lines}
    assert [by_name[name].calls for name in METHODS] == [1, 3, 3, 9, 9]
    assert sum(line.calls - line.shared for line in lines) == len(model.requests) == expected_calls(1)
    new = [line.calls - line.shared for line in lines]
    assert new == [1, 2, 2, 6, 6]
    assert [line.read_tokens for line in lines] == [6 * calls for calls in new]
    assert [line.completion_tokens for line in lines] == [2 * calls for calls in new]
    assert [line.seconds for line in lines] == [1.5 * calls for calls in new]
    assert (by_name["mad"].low, by_name["mad"].high) == wilson(by_name["mad"].right, 1)
    assert (by_name["mad"].rescued, by_name["mad"].lost) == (0, 0)
    assert record.method == "r2mad"
    assert all(len(view.retrieved) == 3 for one in record.rounds[1:] for view in one.views)


def test_the_memory_that_ships_is_of_the_train_split_and_small() -> None:
    assert MEMORY.stat().st_size < 2_000_000
    with MEMORY.open("rb") as lines:
        entries = list(Import(lines, "it").entries())
    items = {item.question.id: item for item in load("starter:train")}
    assert {entry.record.question.id for entry in entries} == set(items)
    assert len(entries) == len(items)
    for entry in entries:
        assert entry.record.agents[0].model == EMBEDDED
        assert entry.outcome.answer == items[entry.record.question.id].gold
        assert len(entry.record.rounds) == 3


async def test_another_model_remembers_a_few_train_questions_first(tmp_path: Path) -> None:
    memory = f"sqlite:{tmp_path / 'memory.db'}"
    settings = Settings(cache=":memory:")
    assert await make_memory("scripted/seeded", memory, settings, 2) == 2
    async with open_table("scripted/seeded", settings.changed(memory=memory)) as table:
        _, record = await run_demo(table, handful(2), tmp_path, seed=1)
    assert record.memory is not None
    assert record.memory.cases > 0


@pytest.mark.parametrize("limit", ["0", "41", "-3"])
def test_a_limit_out_of_range_is_refused(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--limit", limit]) == 2
    assert "out of range" in capsys.readouterr().err


def test_a_demo_without_any_reply_is_incomplete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert main(["demo", "--limit", "1", "--model", "openai/any", "--log-dir", str(tmp_path)]) == 1
    assert "127.0.0.1:9" in capsys.readouterr().err


async def test_nothing_that_a_model_answers_steers_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [item for item in handful(8) if item.group == "everyday"][:1]
    model = ScriptedModel(lambda request: "Answer: \x1b[31m\x1b]0;pwn\x07")
    async with open_table(model, Settings(cache=":memory:", prompts="tiny")) as table:
        scores = await run_study(table, items, ["cot"], tmp_path, seed=1)
    (record,) = latest(tmp_path / DEBATES).values()
    assert "\x1b" in (scores[0].answer or "")
    _Progress(items, 0.0).announce(record, scores[0])
    shown = capsys.readouterr().err
    assert shown.endswith("(wrong)\n")
    assert "\x1b" not in shown
    assert "\x07" not in shown


async def test_flips_are_counted_both_ways(tmp_path: Path) -> None:
    (item,) = [item for item in load("starter") if item.question.text == "What color is healthy grass?"]

    def script(request: Request) -> str:
        late = sum(message.role == "assistant" for message in request.messages) > 4  # after the pack's four examples
        right = request.agent == 0 if late else request.agent != 0
        return "Answer: Green" if right else "Answer: Red"

    memory = f"sqlite:{tmp_path / 'memory.db'}"
    await make_memory(EMBEDDED, memory, Settings(), 1)
    settings = Settings(cache=":memory:", prompts="tiny", memory=memory)
    async with open_table(ScriptedModel(script), settings) as table:
        lines, _ = await run_demo(table, [item], tmp_path, seed=1)
    mad = lines[-2]
    assert (mad.rescued, mad.lost) == (1, 2)


def _untimed(path: Path) -> list[str]:
    records = []
    for record in latest(path).values():
        data = json.loads(dump(record))
        for name in ("seconds", "started", "study"):
            del data[name]
        if data["memory"]:
            del data["memory"]["url"]  # in the run's own folder
        for one in data["rounds"]:
            for reply in one["replies"]:
                del reply["seconds"]
        records.append(json.dumps(data, sort_keys=True))
    return records


@pytest.mark.timeout(400)
def test_two_demos_with_one_seed_give_the_same_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the real model, from the command line, in the same order, but for times."""
    runs = []
    for name in ("one", "two"):
        assert main(["demo", "--limit", "3", "--log-dir", str(tmp_path / name), "--seed", "4"]) == 0
        (folder,) = (tmp_path / name / "demo").iterdir()
        runs.append(_untimed(folder / DEBATES))
        out, err = capsys.readouterr()
        assert re.search(r"^mad +\d/3", out, re.MULTILINE)
        assert str(folder) in out
        assert "[15/15, about 0 s left]" in err
        assert "was reminded of 3 cases" in out
    assert runs[0] == runs[1]
    assert len(runs[0]) == 15


@pytest.mark.slow
@pytest.mark.timeout(900)  # 165 questions: a minute on two free cores, many on busy ones
async def test_the_embedded_model_answers_a_quarter_of_the_everyday_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The claim of the README: right at least one time in four, unparsed at most one in ten; choices as they are."""
    said = []
    async with open_table("local/smollm2-135m", Settings(cache=":memory:", max_connections=1)) as table:
        for group in ("everyday", "arithmetic", "misconceptions", "economics", "engineering"):
            items = [item for item in load("starter") if item.group == group]
            total = summarise(await run_study(table, items, ["cot"], tmp_path / group, seed=1))
            low, high = wilson(total.correct, total.debates)
            said.append(
                f"{group}: {total.correct} of {total.debates} right ({low:.0%} to {high:.0%}), "
                f"{total.unparsed} unparsed"
            )
            if group == "everyday":
                everyday = total
    with capsys.disabled():
        print("\n" + "\n".join(said))
    assert everyday.accuracy >= 0.25
    assert everyday.unparsed <= 0.1 * everyday.replies
