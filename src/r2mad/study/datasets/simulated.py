"""The simulated set: questions on invented topics, for `simulated/shared-misconception` and whoever else reads them.

Groups: `misconception` (most of the simulated agents hold the same wrong concept) and `sound` (most hold the true one).
Nothing is read from a file: topics, wordings, the order of options and so the golds follow from hashes of the topics'
names (`r2mad.models._world`), which is also where the model has its beliefs from. No two questions are alike, so none
of the test split is in the train split, but each topic is in both: a memory of the one carries evidence for the other.
"""

from __future__ import annotations

from functools import cache

from r2mad.study.datasets._record import DataSet
from r2mad.types import LETTERS, Item, Question

SUMMARY = "invented topics, half of them with a shared misconception, for the model simulated/shared-misconception"
TRAIN = 4
"""Train questions a topic: debated in full they leave about as many cases of a topic in an agent's memory as retrieval
looks at by default (9 candidates), so that what is chosen among them matters."""
TEST = 50
"""Test questions a topic: 5,000 in all, for a paired difference of two points to stand clear of chance."""


@cache
def _items() -> tuple[Item, ...]:
    from r2mad.models import _world as world  # only when made: naming data sets stays cheap

    return tuple(_item(name, index) for index in range(TRAIN + TEST) for name in world.names())


def _item(name: str, index: int) -> Item:
    from r2mad.models import _world as world

    topic, order = world.topic(name), world.options(name, index)
    question = Question(
        world.wording(name, index),
        tuple(topic.concepts[concept] for concept in order),
        "choice",
        f"simulated/{name}/{index:02d}",
    )
    gold = LETTERS[order.index(topic.true)]
    group = "sound" if topic.sound else "misconception"
    return Item(question, gold, "simulated", "train" if index < TRAIN else "test", group)


def load() -> list[Item]:
    """All items: every topic's first question, every topic's second, and so on; so any run of 100 has all topics."""
    return list(_items())


RECORD = DataSet(
    name="simulated",
    title=SUMMARY,
    items=5400,
    kinds=("choice",),
    upstream="made by r2mad",
    licence="Apache-2.0, as r2mad itself",
    note="for simulated agents: nobody else can know the answers",
    split_note="four questions of each topic for training, fifty for the test",
    train=400,
    made=load,
)
