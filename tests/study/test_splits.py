"""Names of data sets and their splits: one grammar, and splits that nothing but the questions decides."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.errors import UnknownNameError, UsageError
from r2mad.study.datasets import DATASETS, load, names, parse_name, with_split
from r2mad.study.datasets.names import slug
from r2mad.study.datasets.splits import official, paper, train_ids, train_size

IDS = [f"q/{number}" for number in range(969)]


def test_three_in_four_rounded() -> None:
    assert [train_size(count) for count in (844, 969, 664, 1, 2, 3, 4, 0)] == [633, 727, 498, 1, 2, 2, 3, 0]
    assert len(paper(IDS)) == 727
    assert len(official(IDS)) == 726


def test_the_papers_split_never_moves_and_does_not_depend_on_the_order() -> None:
    pinned = {"q/0", "q/1", "q/2", "q/3", "q/5", "q/6"}
    assert paper(IDS[:8]) == pinned
    assert paper(IDS[:8][::-1]) == pinned


def test_the_official_split_is_a_shuffle_of_the_files_order() -> None:
    places = list(range(969))
    random.Random(42).shuffle(places)
    assert official(IDS) == {f"q/{place}" for place in places[:726]}
    assert official(IDS[::-1]) != official(IDS)


@given(st.sets(st.text(max_size=8), max_size=60), st.sampled_from(["paper", "official"]))
def test_a_split_takes_each_id_once(ids: set[str], scheme: str) -> None:
    ordered = sorted(ids)
    train = train_ids(ordered, scheme)
    assert train <= ids
    assert len(train) == (train_size(len(ids)) if scheme == "paper" else int(0.75 * len(ids)))


def test_splits_are_the_same_in_every_process(tmp_path: Path) -> None:
    file = tmp_path / "many.csv"
    file.write_text("id,question,answer\n" + "".join(f"{n},What is {n}?,{n}\n" for n in range(200)))
    program = (
        "from r2mad.study.datasets import load\n"
        f"for name in ({str(file)!r}, {str(file) + '@official'!r}, 'simulated', 'starter'):\n"
        "    print([(item.question.id, item.split) for item in load(name)])\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_naming_data_sets_reads_nothing() -> None:
    program = (
        "import sys\nimport r2mad.study.datasets\n"
        "print([name for name in ('pydantic', 'numpy', 'pyarrow', 'huggingface_hub') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "base", "category", "split", "scheme", "path", "query"),
    [
        ("math500", "math500", "", "", "paper", None, ""),
        ("math500:test", "math500", "", "test", "paper", None, ""),
        ("math500:all", "math500", "", "", "paper", None, ""),
        ("truthfulqa:train@official", "truthfulqa", "", "train", "official", None, ""),
        ("truthfulqa@official:train", "truthfulqa", "", "train", "official", None, ""),
        ("mmlu-pro:economics:train@official", "mmlu-pro", "economics", "train", "official", None, ""),
        ("mmlu-pro:computer science", "mmlu-pro", "computer-science", "", "paper", None, ""),
        ("math500=/d/x.jsonl", "math500", "", "", "paper", "/d/x.jsonl", ""),
        ("math500=C:/d@home/x.jsonl:test", "math500", "", "test", "paper", "C:/d@home/x.jsonl", ""),
        ("mmlu-pro:law:test=/d/x.parquet", "mmlu-pro", "law", "test", "paper", "/d/x.parquet", ""),
        ("my.csv", "my.csv", "", "", "paper", None, ""),
        ("my.csv:test@official", "my.csv", "", "test", "official", None, ""),
        ("a:b@c/my.jsonl:train", "a:b@c/my.jsonl", "", "train", "paper", None, ""),
        ("my.csv:test?question=q&options=a,b", "my.csv", "", "test", "paper", None, "question=q&options=a,b"),
        ("my.csv?question=q:test", "my.csv", "", "test", "paper", None, "question=q"),
        ("my.csv?question=q%3Atest", "my.csv", "", "", "paper", None, "question=q%3Atest"),
        ("./math500", "./math500", "", "", "paper", None, ""),
        ("x=y.csv", "x=y.csv", "", "", "paper", None, ""),
    ],
)
def test_names(name: str, base: str, category: str, split: str, scheme: str, path: str | None, query: str) -> None:
    found = parse_name(name)
    assert (found.base, found.category, found.split, found.scheme) == (base, category, split, scheme)
    assert (found.path, found.query) == (path, query)
    assert found.known == (base in DATASETS)
    assert parse_name(found.text) == found
    assert parse_name(found.dataset).base == base


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("math5000", UnknownNameError, "did you mean math500"),
        ("", UnknownNameError, "no data set ''"),
        ("truthfulqa:dev", UnknownNameError, "train, test, all"),
        ("mmlu-pro:econmics", UnknownNameError, "did you mean economics"),
        ("mmlu-pro:xyzzy", UnknownNameError, "philosophy"),
        ("math500:test@mine", UnknownNameError, "paper, official"),
        ("gsm8k@official", UnknownNameError, "leave @official out"),
        ("starter:test@official", UnknownNameError, "leave @official out"),
        ("math500:test:train", UsageError, "two splits, test and train"),
        ("math500:test=/x.jsonl:train", UsageError, "two splits"),
        ("my.csv@paper@official", UsageError, "two schemes"),
        ("math500=", UsageError, "a path is missing"),
        ("math500:test?question=q", UsageError, "has its own columns"),
        ("my.jsonl:dev", UnknownNameError, "no data set"),
    ],
)
def test_names_that_are_refused(name: str, error: type[UsageError], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_name(name)


@given(st.sampled_from(names()), st.sampled_from(["", ":train", ":test", ":all"]), st.sampled_from(["", "@paper"]))
def test_every_known_name_is_read_back(name: str, split: str, scheme: str) -> None:
    found = parse_name(name + split + scheme)
    assert ":".join(filter(None, (found.base, found.category))) == name
    assert found.split == split.removeprefix(":").replace("all", "")
    assert parse_name(found.text) == found
    assert parse_name(with_split(name + split, "train")).split == "train"


_ENDS = st.sampled_from(["", ":test", ":train@official", "@official"])


@given(st.text(st.characters(exclude_characters="?=", exclude_categories=["Cs"]), max_size=20), _ENDS)
def test_any_path_is_kept(stem: str, end: str) -> None:
    name = f"./{stem}.csv"
    found = parse_name(name + end)
    assert found.base == name
    assert parse_name(found.text) == found


@given(st.text(max_size=60))
def test_no_name_makes_it_fall_over(name: str) -> None:
    try:
        found = parse_name(name)
    except UsageError:
        return
    assert parse_name(found.text) == found


def test_the_other_split_of_a_name() -> None:
    assert with_split("math500:test", "train") == "math500:train"
    assert with_split("mmlu-pro:law", "train") == "mmlu-pro:law:train"
    assert with_split("x.csv:test@official?id=n", "train") == "x.csv:train@official?id=n"
    assert with_split("truthfulqa:test@official", "") == "truthfulqa@official"


def test_the_registry_says_what_is_where() -> None:
    assert list(DATASETS)[:2] == ["starter", "simulated"]
    assert {"math500", "mmlu-pro", "truthfulqa", "gsm8k", "aime24", "aime25"} <= set(DATASETS)
    assert "mmlu-pro:computer-science" in names()
    for record in DATASETS.values():
        assert record.upstream
        assert record.licence
        assert sum(record.splits.values()) == record.items
        assert all(slug(part) == part for part in record.categories)
        assert (record.made is None) == (record.read is not None)
        for file in record.hub:
            assert file.revision is None or len(file.revision) == 40
        assert all(len(known) == 64 for known in (*record.sha256.values(), *record.others))
    assert DATASETS["mmlu-pro"].items == 12032


@pytest.mark.parametrize("name", ["starter", "simulated"])
def test_the_sets_that_come_along_are_as_registered(name: str) -> None:
    record, items = DATASETS[name], load(name)
    assert len(items) == record.items
    assert {split: sum(item.split == split for item in items) for split in record.splits} == record.splits
    assert {item.question.kind for item in items} == set(record.kinds)
    assert load(f"{name}:all") == items
    assert load(f"{name}:train") + load(f"{name}:test") != []
    with pytest.raises(UsageError, match="comes with r2mad"):
        load(name, path="/tmp/x.jsonl")
