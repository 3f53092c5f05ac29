"""Files of the user's own: every layout that is read, and every fault told with its line."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.answers import equivalent
from r2mad.errors import UsageError
from r2mad.study.datasets import load, load_file
from r2mad.study.datasets.files import KEYS, checked, parse_mapping
from r2mad.types import Item

GOOD = {"question": "Which is a prime?", "options": ["4", "7", "9"], "answer": "B"}


def _jsonl(folder: Path, *rows: Any, name: str = "q.jsonl") -> Path:
    file = folder / name
    file.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return file


def _csv(folder: Path, *lines: str, name: str = "q.csv") -> Path:
    file = folder / name
    file.write_text("\n".join(lines) + "\n")
    return file


def test_json_lines_as_they_come(tmp_path: Path) -> None:
    file = _jsonl(
        tmp_path,
        {**GOOD, "id": 1, "group": "primes"},
        "",
        {"question": "Capital of France?", "answer": "Paris", "id": "two", "group": None},
        {"question": "2 + 2.50?", "answer": "4.50", "kind": "number", "id": "3"},
    )
    first, second, third = load(str(file))
    assert (first.question.kind, first.gold, first.question.id, first.group) == ("choice", "B", "1", "primes")
    assert (second.question.kind, second.gold, second.question.options, second.group) == ("text", "Paris", (), "")
    assert (third.question.kind, third.gold) == ("number", "4.50")
    assert {item.dataset for item in (first, second, third)} == {str(file)}
    assert {item.split for item in (first, second, third)} <= {"train", "test"}


def test_a_csv_with_a_mapping_in_its_name(tmp_path: Path) -> None:
    file = _csv(
        tmp_path,
        "num,topic,q,a,b,c,d,key",
        "7,sums,What is 1 + 1?,1,2,3,4,b",
        '8,words,"Which, if any,\nis a colour?",red,cow,,,red',
    )
    first, second = load(f"{file}?question=q&options=a,b,c,d&answer=key&kind=choice&id=num&group=topic")
    assert (first.question.options, first.gold, first.question.id) == (("1", "2", "3", "4"), "B", "7")
    assert (second.question.options, second.gold, second.group) == (("red", "cow"), "A", "words")
    assert second.question.text == "Which, if any,\nis a colour?"
    again = load_file(
        file,
        {"question": "q", "options": ["a", "b", "c", "d"], "answer": "key", "kind": "choice", "id": "num"},
    )
    assert [item.gold for item in again] == ["B", "A"]
    assert load(str(file), columns={"question": "q", "options": ["a", "b", "c", "d"], "answer": "key"})[0].gold == "B"


def test_options_in_columns_named_by_letters_and_other_delimiters(tmp_path: Path) -> None:
    file = _csv(tmp_path, "question;A;B;C;answer", "Pick one?;x;y;z;C", "Again?;x;y;;A")
    items = load(f"{file}?delimiter=;")
    assert [item.gold for item in items] == ["C", "A"]
    assert [len(item.question.options) for item in items] == [3, 2]
    tabs = _csv(tmp_path, "question\tanswer", "Say\thi", name="q.tsv")
    assert load(str(tabs))[0].gold == "hi"
    assert load(f"{_csv(tmp_path, 'question	answer', 'Say	hi', name='t.csv')}?delimiter=tab")[0].gold == "hi"
    listed = _csv(tmp_path, "question,options,answer_index", 'Pick?,"[""x"", ""y"", 1.50]",2', name="l.csv")
    assert load(str(listed))[0].question.options == ("x", "y", "1.50")
    assert load(str(listed))[0].gold == "C"


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    file = tmp_path / "q.parquet"
    parquet.write_table(pa.Table.from_pylist([{**GOOD, "id": 4}, {"question": "2 + 2?", "answer": "4"}]), file)
    with pytest.raises(UsageError, match=r"q\.parquet, row 2: id is empty"):
        load(str(file))
    first, second = load_file(file, {"id": "question"})
    assert (first.gold, second.gold, second.question.kind) == ("B", "4", "text")
    file.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(UsageError, match=r"q\.parquet: (not|cannot be read as) Parquet"):
        load(str(file))


def test_ids_follow_from_question_and_options_where_none_are_given(tmp_path: Path) -> None:
    other = {**GOOD, "options": ["4", "7", "11"], "answer": "7"}
    items = load(str(_jsonl(tmp_path, GOOD, other)))
    assert len({item.question.id for item in items}) == 2
    assert items == load(str(_jsonl(tmp_path, GOOD, other)))


def test_options_that_differ_in_case_alone_are_two(tmp_path: Path) -> None:
    row = {"question": "Which genotype?", "options": ["Aa", "AA", "aa"], "answer": "aa"}
    assert load(str(_jsonl(tmp_path, row)))[0].gold == "C"


def test_what_stands_in_a_text_stays_as_it_is(tmp_path: Path) -> None:
    text = "Angle\x07 of\u2028 a\x0bline\ttab"
    row = {"question": text, "options": ["\x08eta", "nan", "None"], "answer": "nan"}
    file = _jsonl(tmp_path, row)
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(row, ensure_ascii=False).replace("\\u2028", "\u2028").encode())
    (item,) = load(str(file))
    assert item.question.text == text
    assert item.question.options == ("\x08eta", "nan", "None")


def test_splits_of_a_file(tmp_path: Path) -> None:
    file = _jsonl(tmp_path, *({"question": f"{n}?", "answer": str(n), "id": n} for n in range(10)))
    assert len(load(f"{file}:train")) == 8
    assert len(load(f"{file}:test")) == 2
    assert len(load(f"{file}:train@official")) == 7
    assert load(f"{file}:all") == load(str(file))
    assert load(f"{file}:test")[0].dataset == str(file)
    assert load(f"{file}:test@official")[0].dataset == f"{file}@official"
    assert load(load(f"{file}:test@official")[0].dataset + ":test") == load(f"{file}:test@official")
    one = _jsonl(tmp_path, GOOD, name="one.jsonl")
    with pytest.raises(UsageError, match="no test split: all 1"):
        load(f"{one}:test")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"question": "a?", "answer"', "line 2: not JSON: Expecting ':'"),
        ('["a?", "b"]', "line 2: must be a JSON object"),
        ('{"question": "a?\\ud800"}', "line 2: answer is empty|line 2: no column 'answer'"),
        ({"answer": "B"}, "line 2: no column 'question'; there are: answer"),
        ({"question": None, "answer": "B"}, "line 2: question is empty"),
        ({"question": " ", "answer": "B"}, "line 2: the question is empty"),
        ({"question": 7.5, "answer": " "}, "line 2: the answer is empty"),
        ({"question": ["a?"], "answer": "B"}, "line 2: question must be a text"),
        ({"question": "a?", "answer": True}, "line 2: answer must be a text"),
        ({**GOOD, "answer": "D"}, "line 2: the answer 'D' is none of the 3 options"),
        ({**GOOD, "answer": "five"}, "line 2: the answer 'five' is none"),
        ({**GOOD, "answer": 1}, "line 2: the answer '1' is none of the 3 options; if it is an index"),
        ({**GOOD, "options": ["4", "7", "7 "]}, "line 2: two options are the same"),
        ({**GOOD, "options": ["4"], "answer": "A"}, "line 2: a choice question needs at least two"),
        ({**GOOD, "options": ["4", ""], "answer": "A"}, "line 2: an option is empty"),
        ({**GOOD, "options": "4, 7"}, "line 2: options must be a JSON list"),
        ({**GOOD, "options": {"A": "4"}}, "line 2: options must be a list"),
        ({**GOOD, "options": ["4", None]}, "line 2: options must be a text"),
        ({**GOOD, "options": ["B", "C", "A"], "answer": "B"}, "line 2: the answer 'B' is the letter of one option and"),
        ({**GOOD, "options": [str(n) for n in range(27)]}, "line 2: a choice question has at most 26"),
        ({**GOOD, "kind": "essay"}, "line 2: no such kind of answer: 'essay' .choice, math"),
        ({**GOOD, "kind": "number"}, "line 2: options, but the kind is number"),
        ({"question": "a?", "answer": "A", "kind": "choice"}, "line 2: the answer 'A' is none of the 0 options"),
        ({"question": "a?", "answer": "many", "kind": "number"}, "line 2: the answer 'many' is no number"),
        ({"question": "x?", "answer": "1"}, "line 2: the same question with the same options stands at .*line 1"),
    ],
)
def test_a_bad_row_is_told_with_its_line(row: Any, message: str, tmp_path: Path) -> None:
    file = _jsonl(tmp_path, {"question": "x?", "answer": "1"}, row)
    with pytest.raises(UsageError, match=f"q.jsonl, {message}"):
        load(str(file))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["question,answer", "a?,b,c"], "line 2: 3 fields, but the header has 2"),
        (["question,answer", '"a', "?,b"], "line 2: not CSV"),
        (["question,question", "a?,b"], "line 1: two columns are called 'question'"),
        (["question,A,B,answer", "a?,1,2,A", '"b', '?",1,,A'], "line 3: a choice question needs at least two"),
        (["question,A,B,C,answer", "a?,1,,3,A"], "line 2: an option is empty"),
        (["question,options,answer_index", 'a?,"[""x"", ""y""]",2'], "line 2: answer_index must be 0 to 1, not '2'"),
        (["question,options,answer_index", 'a?,"[""x"", ""y""]",-1'], "line 2: answer_index must be 0 to 1"),
        (["question,answer_index", "a?,0"], "line 2: answer_index needs options"),
        (["question,answer,id", "a?,b,1", "c?,d,1"], "line 3: the id '1' stands at .*line 2 as well"),
        (["question,answer,id", "a?,b,"], "line 2: id is empty"),
        (["question,key", "a?,b"], "no column 'answer', so say which it is .*there are: question, key"),
        (["question,answer"], "no rows"),
        ([""], "q.csv: empty"),
    ],
)
def test_a_bad_line_of_csv(lines: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        load(str(_csv(tmp_path, *lines)))


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        load(str(tmp_path / "absent.csv"))
    with pytest.raises(UsageError, match="no such file"):
        load(f"{tmp_path / 'absent.csv'}:dev")
    with pytest.raises(UsageError, match=r"end in \.jsonl"):
        load(str(_jsonl(tmp_path, GOOD, name="q.txt")))
    with pytest.raises(UsageError, match="no rows"):
        load(str(_jsonl(tmp_path)))
    for name, content in (("x.jsonl", b'{"a": 1}\n\xff\n'), ("x.csv", b"question,answer\n\xff,b\n")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError, match=f"{name}, line 2: not UTF-8"):
            load(str(tmp_path / name))
    with pytest.raises(UsageError, match="a path goes with"):
        load(str(_jsonl(tmp_path, GOOD)), path="other.jsonl")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("qestion=q", "did you mean question"),
        ("wibble=q", "there are: question, options"),
        ("question=nope", "no column 'nope' for question; there are: question, options, answer"),
        ("answer=anwser", "did you mean answer"),
        ("options=a,b", "no column 'a' for options"),
        ("options=question,question", "two columns or more, each once"),
        ("kind=essay", "no column 'essay' for kind"),
        ("question", "written key=column"),
        ("question=", "written key=column"),
        ("id=a&id=b", "'id' is given twice"),
        ("delimiter=ab", "a delimiter is one character"),
        ("answer=answer&answer_index=answer", "not both"),
    ],
)
def test_a_mapping_that_is_wrong(query: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        load(f"{_jsonl(tmp_path, GOOD)}?{query}")


def test_a_mapping_is_for_files_of_the_users(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has its own columns"):
        load("starter", columns={"question": "q"})
    wrong: Any = {"question": ["a", "b"]}
    with pytest.raises(UsageError, match="question must be the name of a column, not"):
        load_file(_jsonl(tmp_path, GOOD), wrong)


_NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(st.dictionaries(st.sampled_from([key for key in KEYS if key not in ("options", "delimiter")]), _NAME))
def test_a_mapping_is_read_back(mapping: dict[str, str]) -> None:
    from urllib.parse import quote

    query = "&".join(f"{key}={quote(value, safe='')}" for key, value in mapping.items())
    assert parse_mapping(query) == mapping


@given(st.lists(_NAME, min_size=2, max_size=5, unique=True))
def test_columns_of_options_are_read_back(columns: list[str]) -> None:
    from urllib.parse import quote

    query = "options=" + ",".join(quote(name, safe="") for name in columns)
    assert checked(parse_mapping(query), "x").options == tuple(columns)


@given(st.text(max_size=40))
def test_no_mapping_makes_it_fall_over(query: str) -> None:
    with suppress(UsageError):
        checked(parse_mapping(query), "x.csv")


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.fixed_dictionaries({"question": _TEXT, "options": st.lists(_TEXT, max_size=5), "answer": _TEXT})))
def test_any_file_gives_good_items_or_a_line(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    file = _jsonl(tmp_path_factory.getbasetemp(), *rows, name="any.jsonl")
    items: list[Item] = []
    with suppress(UsageError):
        items = load(str(file))
    for item, row in zip(items, rows, strict=bool(items)):
        question = item.question
        assert (question.text, list(question.options)) == (row["question"], row["options"])
        assert not question.options or item.gold in question.letters
        assert equivalent(item.gold, item.gold, question.kind)
