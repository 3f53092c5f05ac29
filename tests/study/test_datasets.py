"""The benchmarks as they are: counted, split, their golds read back, and the same from either layout.

These tests run where `R2MAD_DATA` names the folder of the files.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from r2mad.answers import equivalent, extract
from r2mad.cli.main import main
from r2mad.errors import UsageError
from r2mad.experience import question_key
from r2mad.study.datasets import DATASETS, _source, load, math500
from r2mad.study.datasets._record import HubFile
from r2mad.types import LETTERS

HERE = os.environ.get("R2MAD_DATA", "")
real = pytest.mark.skipif(not HERE, reason="the benchmark data is not here (R2MAD_DATA)")
SETS = {
    "math500": 500, "mmlu-pro:economics": 844, "mmlu-pro:engineering": 969, "mmlu-pro-sample": 1200,
    "truthfulqa": 664, "gsm8k": 1319, "aime24": 30, "aime25": 30,
}  # fmt: skip
every_set = pytest.mark.parametrize("name", SETS)


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(file: HubFile) -> Path:
        raise _source.UnavailableError("no network in tests")

    monkeypatch.setattr(_source, "fetch", refuse)
    monkeypatch.setattr(_source, "_fetched", lambda file: None)


# The real files


@real
@every_set
def test_as_many_items_as_there_should_be(name: str) -> None:
    items = load(name)
    record = DATASETS[name.partition(":")[0]]
    assert len(items) == SETS[name]
    assert len({item.question.id for item in items}) == len(items)
    assert {item.question.kind for item in items} == set(record.kinds)
    assert {item.dataset for item in items} == {name}
    assert load(name, path=HERE) == items


@real
@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        ("math500", 366, 134),
        ("math500@official", 366, 134),
        ("mmlu-pro:economics", 633, 211),
        ("mmlu-pro:economics@official", 633, 211),
        ("mmlu-pro:engineering", 727, 242),
        ("mmlu-pro:engineering@official", 726, 243),
        ("truthfulqa", 498, 166),
        ("truthfulqa@official", 498, 166),
        ("mmlu-pro-sample", 900, 300),
        ("mmlu-pro-sample:law", 75, 25),
    ],
)
def test_the_papers_splits(name: str, train: int, test: int) -> None:
    halves = load(f"{name}:train"), load(f"{name}:test")
    assert tuple(map(len, halves)) == (train, test)
    known = {question_key(item.question) for item in halves[0]}
    assert not known & {question_key(item.question) for item in halves[1]}
    assert sorted(item.question.id for half in halves for item in half) == sorted(
        item.question.id for item in load(name)
    )


@real
def test_the_hardest_problems_are_the_test_split() -> None:
    levels = math500.levels()
    assert Counter(levels.values()) == {1: 43, 2: 90, 3: 105, 4: 128, 5: 134}
    assert {levels[item.question.id] for item in load("math500:test")} == {5}
    assert Counter(item.group for item in load("math500"))["Algebra"] == 124


@real
@pytest.mark.parametrize("name", ["gsm8k", "aime24", "aime25"])
def test_what_has_no_train_split_says_so(name: str) -> None:
    assert load(f"{name}:test") == load(name)
    with pytest.raises(UsageError, match=f"{name} has no train split, only test"):
        load(f"{name}:train")


@real
@every_set
def test_golds_are_answers_and_come_back_from_a_reply(name: str) -> None:
    for item in load(name):
        kind, gold = item.question.kind, item.gold
        ending = f"(({gold}))" if kind == "choice" else rf"The answer is \boxed{{{gold}}}."
        found = extract(f"Let me think it through.\n\n{ending}", kind, item.question.options)
        assert equivalent(found, gold, kind), (item.question.id, gold, found)
        assert equivalent(gold, gold, kind)
        assert kind == "number" or found == gold
        assert (kind == "choice") == (gold in item.question.letters)


@real
def test_padded_answers_are_the_integers_they_stand_for() -> None:
    padded = [item.gold for item in load("aime24") if item.gold.startswith("0")]
    assert len(padded) == 7
    assert all(equivalent(gold, str(int(gold)), "number") for gold in padded)


@real
def test_the_true_option_is_anywhere_and_its_place_depends_on_nothing_else() -> None:
    with (Path(HERE) / "truthfulqa_mc.jsonl").open(encoding="utf-8") as file:
        rows = {row["id"]: row for row in map(json.loads, file)}
    items = load("truthfulqa")
    places: Counter[tuple[int, str]] = Counter()
    for item in items:
        row, options = rows[item.question.id], item.question.options
        assert sorted(options) == sorted(row["options"])
        assert options[LETTERS.index(item.gold)] == row["options"][0]
        places[len(options), item.gold] += 1
    for size in range(4, 8):  # those of which there are many
        total = sum(count for (options, _), count in places.items() if options == size)
        assert all(abs(places[size, letter] / total - 1 / size) < 0.11 for letter in LETTERS[:size])
    assert len({item.group for item in items}) == 38


@real
def test_questions_that_recur_with_other_options_are_kept() -> None:
    texts = Counter(item.question.text for item in load("mmlu-pro:economics"))
    assert sorted(count for count in texts.values() if count > 1) == [2, 2, 3]


@real
def test_the_number_of_options_varies_and_case_counts() -> None:
    sizes = Counter(len(item.question.options) for item in load("mmlu-pro:economics"))
    assert sizes == {3: 3, 4: 88, 5: 8, 6: 6, 7: 12, 8: 30, 9: 50, 10: 647}
    folded = [
        item
        for item in load("mmlu-pro-sample")
        if len({option.casefold() for option in item.question.options}) < len(item.question.options)
    ]
    assert {item.question.id for item in folded} >= {f"mmlu_pro/{n}" for n in (2838, 2957, 3287, 3349, 3504)}
    control = [item for item in load("mmlu-pro:engineering") if "\x07" in "".join(item.question.options)]
    assert control  # kept as upstream has it


@real
def test_splits_and_orders_are_the_same_in_every_process() -> None:
    program = (
        "from r2mad.study.datasets import load\n"
        "for name in ('truthfulqa', 'mmlu-pro:economics', 'mmlu-pro:engineering@official', 'math500'):\n"
        "    print([(item.question.id, item.split, item.gold) for item in load(name)])\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "R2MAD_DATA": HERE, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


@real
def test_the_order_of_the_file_does_not_matter_to_the_papers_split(tmp_path: Path) -> None:
    lines = (Path(HERE) / "mmlu_pro_engineering.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    (tmp_path / "turned.jsonl").write_text("\n".join(lines[::-1]), encoding="utf-8")
    turned = load("mmlu-pro:engineering", path=tmp_path / "turned.jsonl")
    assert turned[::-1] == load("mmlu-pro:engineering")
    with_official = load(f"mmlu-pro:engineering={tmp_path / 'turned.jsonl'}@official")
    assert with_official[::-1] != load("mmlu-pro:engineering@official")


@real
@pytest.mark.parametrize("name", ["math500", "mmlu-pro:economics", "truthfulqa", "gsm8k", "aime24", "aime25"])
def test_the_upstreams_own_layout_gives_the_same_items(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    record = DATASETS[name.partition(":")[0]]
    with (Path(HERE) / record.files[name.partition(":")[2]].name).open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    files = _upstream(name, rows)
    expected = load(name)
    hub = tuple(replace(one, sha256=None) for one in record.hub)
    monkeypatch.setitem(DATASETS, record.name, replace(record, hub=hub))
    monkeypatch.delenv("R2MAD_DATA")
    for one in hub:
        _write(tmp_path / one.path, files[one.path])
    monkeypatch.setattr(_source, "fetch", lambda one: tmp_path / one.path)
    assert load(name) == expected


def _upstream(name: str, rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Our rows as the upstream has them, by file."""
    first = DATASETS[name.partition(":")[0]].hub[0].path
    if name == "math500":
        return {first: [{**row, "unique_id": row["id"], "problem": row["question"], "id": None} for row in rows]}
    if name == "gsm8k":
        texts = [{"question": row["question"], "answer": f"{row['solution']}\n#### {row['answer']}"} for row in rows]
        return {first: texts}
    if name == "truthfulqa":
        targets = [{"choices": row["options"], "labels": [1] + [0] * (len(row["options"]) - 1)} for row in rows]
        return {
            first: [{"question": row["question"], "mc1_targets": one} for row, one in zip(rows, targets, strict=True)],
            DATASETS[name].hub[1].path: [{"question": row["question"], "category": row["category"]} for row in rows],
        }
    if name == "aime24":
        page = "wiki/2024_AIME_{}_Problems/Problem_{}"
        return {
            first: [
                {"id": 60 + place, "problem": row["question"], "answer": row["answer"], "year": "2024",
                 "url": page.format(*row["id"].removeprefix("aime24/").split("-"))}
                for place, row in enumerate(rows[::-1])
            ]
        }  # fmt: skip
    if name == "aime25":
        return {
            file.path: [
                {"question": row["question"], "answer": row["answer"] + (r"^\circ" if row["id"][-1] == "5" else "")}
                for row in rows
                if f"aime{row['category']}.jsonl" == file.path
            ]
            for file in DATASETS[name].hub
        }
    ids = [int(row["id"].removeprefix("mmlu_pro/")) for row in rows]
    known = ("question", "options", "answer", "category", "src")
    others = [{"question": "?", "options": ["a"], "answer": "Z", "category": "law", "question_id": 1}]
    return {first: [{"question_id": id, **{key: row[key] for key in known}} for id, row in zip(ids, rows, strict=True)]
            + others}  # fmt: skip


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        parquet.write_table(pa.Table.from_pylist(rows), path)


@real
def test_every_real_file_is_found_good(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets", "--check", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    found = {name: one["items"] for row in rows for name, one in row["checked"].items()}
    assert {name: found[name] for name in SETS} == SETS
