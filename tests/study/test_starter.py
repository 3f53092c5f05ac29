"""The starter set: well-formed, balanced, split once and for all, and about facts that are noted."""

import re
from collections import Counter

import pytest

from r2mad.answers import extract
from r2mad.errors import UnknownNameError
from r2mad.study.datasets import DATASETS, load
from r2mad.study.datasets.starter import rows, split_of


def test_every_row_is_a_question_with_an_answer_of_its_kind() -> None:
    items = load("starter")
    assert 150 <= len(items) <= 180
    assert len({item.question.id for item in items}) == len(items)
    assert len({(item.question.text, item.question.options) for item in items}) == len(items)
    for item in items:
        question = item.question
        kind = question.kind
        if kind == "choice":
            assert item.gold in question.letters
            assert len(question.options) == 4
        elif kind == "text":
            assert len(item.gold.split()) <= 3
            assert item.gold.casefold() not in re.findall(r"\w+", question.text.casefold())
        assert extract(f"Answer: {item.gold}", kind, question.options) == item.gold
    assert all(row.source for row in rows())


def test_the_groups_and_the_right_letters_are_balanced() -> None:
    items = load("starter")
    groups = Counter(item.group for item in items)
    assert set(groups) == {"everyday", "arithmetic", "misconceptions", "economics", "engineering"}
    assert min(groups.values()) >= 15
    letters = Counter(item.gold for item in items if item.question.options)
    assert max(letters.values()) - min(letters.values()) <= 6


def test_arithmetic_is_right() -> None:
    checked = 0
    for item in load("starter"):
        words = item.question.text.removeprefix("What is ").removesuffix("?").split()
        if item.group == "arithmetic" and len(words) == 3 and words[1] in "+-":
            left, sign, right = words
            assert int(item.gold) == (int(left) + int(right) if sign == "+" else int(left) - int(right))
            checked += 1
    assert checked >= 5


def test_the_split_is_a_quarter_and_never_moves() -> None:
    train, test = load("starter:train"), load("starter:test")
    assert len(train) + len(test) == len(load("starter"))
    assert 0.2 <= len(test) / (len(train) + len(test)) <= 0.3
    assert {item.group for item in test} == {item.group for item in train}
    pinned = {"everyday/001": "train", "everyday/002": "test", "arithmetic/001": "train", "economics/003": "train"}
    assert {name: split_of(f"starter/{name}") for name in pinned} == pinned


def test_unknown_sets_and_splits() -> None:
    assert "starter" in DATASETS
    with pytest.raises(UnknownNameError, match="starter"):
        load("startre")
    with pytest.raises(UnknownNameError, match="train, test"):
        load("starter:dev")
