"""The simulated set: well-formed, split so that topics are shared and questions are not, and the same everywhere."""

from collections import Counter

import pytest

from r2mad.experience import question_key
from r2mad.models import _world as world
from r2mad.study.datasets import load
from r2mad.types import Item, digest

TRAIN, TEST = load("simulated:train"), load("simulated:test")


def topic_of(item: Item) -> str:
    return item.question.id.split("/")[1]


def test_sizes_and_splits() -> None:
    assert (len(TRAIN), len(TEST)) == (400, 5000)
    assert len(load("simulated")) == 5400
    assert Counter(topic_of(item) for item in TRAIN) == dict.fromkeys(world.names(), 4)
    assert Counter(topic_of(item) for item in TEST) == dict.fromkeys(world.names(), 50)
    assert {topic_of(item) for item in TEST[:100]} == set(world.names())


def test_no_two_questions_are_alike() -> None:
    items = TRAIN + TEST
    assert len({item.question.id for item in items}) == len(items)
    assert len({question_key(item.question) for item in items}) == len(items)
    assert len({item.question.text for item in items}) == len(items)


def test_golds_state_the_true_concept_in_every_place() -> None:
    for item in TRAIN + TEST:
        what = world.topic(topic_of(item))
        assert sorted(item.question.options) == sorted(what.concepts)
        assert item.question.options[item.question.letters.index(item.gold)] == what.concepts[what.true]
        assert world.find(item.question.text) is what
    for split in (TRAIN, TEST):
        letters = Counter(item.gold for item in split)
        assert set(letters) == set("ABCD")
        assert min(letters.values()) > 0.2 * len(split)


def test_groups_are_the_topics_and_about_even() -> None:
    groups = {topic_of(item): item.group for item in TRAIN}
    assert all(item.group == groups[topic_of(item)] for item in TEST)
    counts = Counter(groups.values())
    assert set(counts) == {"misconception", "sound"}
    assert 40 <= counts["misconception"] <= 60
    assert all((group == "sound") == world.topic(name).sound for name, group in groups.items())


def test_the_set_never_changes() -> None:
    told = [[item.question.id, item.question.text, list(item.question.options), item.gold] for item in TRAIN + TEST]
    assert digest(told) == "220f004d0f1cc97d"  # a change of it is a change of world.VERSION


def test_words_are_invented_and_of_one_topic() -> None:
    words = Counter(
        word
        for what in map(world.topic, world.names())
        for word in {what.name, *what.terms, *" ".join(what.concepts).split(), *sum(what.reasons, ())}
    )
    shared = sum(count > 1 for count in words.values())
    assert shared < 0.05 * len(words)
    for name in world.names():
        what = world.topic(name)
        own = [what.name, *what.terms, *" ".join(what.concepts).split(), *sum(what.reasons, ())]
        assert len(set(own)) == len(own)


def test_a_topic_has_no_more_questions_than_it_has_words_for() -> None:
    with pytest.raises(IndexError):
        world.wording(world.names()[0], 8 * 30)
