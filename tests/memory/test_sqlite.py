"""The memory in a file: what goes in comes out, once, and nothing that does not fit goes in."""

import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2mad.errors import StoreError, UsageError
from r2mad.experience import Outcome, Remembered, case_id, question_key
from r2mad.memory import open_memory
from r2mad.protocols import Holder, MemoryStore
from r2mad.types import Failure, MemoryInfo, Question, Reply, Retrieved, Usage
from tests.memory.made import NAMES, made, same


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'memory.db'}"


@pytest.fixture
def store(url: str) -> Iterator[MemoryStore]:
    with closing(open_memory(url, embedder="fake/e:8", dimension=8)) as opened:
        yield opened


def reopened(store: MemoryStore) -> MemoryStore:
    store.close()
    return open_memory(store.url)


def ids(*debates: Remembered) -> list[str]:
    return [debate.record.id for debate in debates]


def check_all(store: MemoryStore, expected: list[Remembered]) -> None:
    """That a memory holds these debates, in this order, and every bank their cases."""
    snapshot, names = store.snapshot(), {agent.name for debate in expected for agent in debate.record.agents}
    found = list(store.debates())
    assert len(found) == len(expected)
    assert all(same(one, other) for one, other in zip(found, expected, strict=True))
    assert store.known() == set(ids(*expected))
    held = Counter[tuple[str, str]]()
    for name in names:
        cases = [
            (debate, place) for debate in expected for place in sorted(debate.states) if _name(debate, place) == name
        ]
        held.update((name, debate.record.agents[place[1]].model) for debate, place in cases)
        bank = snapshot.bank(name)
        if bank is None:
            assert not cases
            continue
        assert len(bank) == len(cases) == len(bank.ids) == len(bank.rewards)
        assert [int(one) for one in bank.ids] == [int(case_id(debate.record.id, *place), 16) for debate, place in cases]
        assert bank.states.dtype == bank.questions.dtype == bank.rewards.dtype == np.float32
        assert np.array_equal(bank.states, np.array([debate.states[place] for debate, place in cases]))
        assert np.array_equal(bank.questions, np.array([debate.question for debate, _ in cases]))
        rewards = [debate.outcome.rewards[place[1]] for debate, place in cases]
        assert np.array_equal(bank.rewards, np.array(rewards, np.float32), equal_nan=True)
        for index, (debate, place) in enumerate(cases):
            case = bank.case(index)
            assert same(case.debate, debate)
            assert (case.round, case.seat, int(case.id, 16)) == (*place, int(bank.ids[index]))
    assert {(holder.name, holder.model): holder.cases for holder in store.roster()} == held
    assert all(snapshot.knows(debate.record.question) for debate in expected)


def _name(debate: Remembered, place: tuple[int, int]) -> str:
    return debate.record.agents[place[1]].name


def test_debates_come_back_whole(store: MemoryStore) -> None:
    debates = [made(1), made(2, rounds=1), made(3, agents=5, rounds=4), made(4, names=("Ann", "Ann", "Zoë")), made(5)]
    assert store.add(debates) == 5
    check_all(store, debates)
    again = reopened(store)
    check_all(again, debates)
    assert (again.url, again.embedder, again.dimension, again.form) == (store.url, "fake/e:8", 8, "paper")
    assert again.roster()[0] == Holder("Ann", "fake/one", 2 + 3 + 2 + 2)
    again.close()
    again.close()


def test_an_empty_memory(store: MemoryStore) -> None:
    snapshot = store.snapshot()
    assert snapshot.version
    assert snapshot.bank("Ann") is None
    assert not snapshot.knows(Question("x"))
    assert (store.known(), store.roster(), list(store.debates())) == (set(), (), [])
    assert (store.add([]), store.forget([]), store.forget(["x"])) == (0, 0, 0)
    assert store.snapshot() is snapshot


def test_a_debate_is_stored_once(store: MemoryStore) -> None:
    one, two = made(1), made(2)
    assert store.add([one, one]) == 1
    assert store.add([two, one, two]) == 1
    assert store.add([replace(one, outcome=replace(one.outcome, source="feedback"))]) == 0
    check_all(store, [one, two])


def test_the_store_says_when(store: MemoryStore) -> None:
    before = datetime.now(UTC)
    store.add([replace(made(1), added="yesterday")])
    (found,) = store.debates()
    assert abs((datetime.fromisoformat(found.added) - before).total_seconds()) < 60


def test_any_value_of_a_record_comes_back(store: MemoryStore) -> None:
    debate = made(1, names=("", "a\0b", "\U0001f600 '; DROP TABLE cases; --"), failed=[(2, 1)])
    first, *rest = debate.record.rounds
    reply = replace(
        first.replies[0], text="é \0 \n'", mean_logprob=float("-inf"), usage=Usage(1, 2, 3, 4), error=Failure("x", "y")
    )
    first = replace(first, replies=(reply, *first.replies[1:]), candidates=(Reply(0, text="pool"),))
    view = replace(rest[0].views[0], candidates=(Retrieved("0" * 16, 0.5, None),), trade_off=0.1)
    rest[0] = replace(rest[0], views=(view, *rest[0].views[1:]))
    record = replace(debate.record, id="any ' id", rounds=(first, *rest), memory=MemoryInfo("u", "v", 3))
    outcome = Outcome("python:me", (None, 0.25, 1.0), ((None, True, False),) * 3)
    debate = replace(debate, record=record, outcome=outcome)
    store.add([debate])
    check_all(store, [debate])
    check_all(reopened(store), [debate])


def test_zeros_and_vectors_of_any_kind_of_float(store: MemoryStore) -> None:
    debate = made(1)
    wide = replace(
        debate,
        question=np.zeros(8, np.float32),
        replies=np.asfortranarray(debate.replies, np.float64),
        states={place: state.astype(">f4") for place, state in debate.states.items()},
    )
    store.add([wide])
    (found,) = store.debates()
    assert found.question.tolist() == [0.0] * 8
    assert np.array_equal(found.replies, debate.replies)
    for array in (found.question, found.replies, found.states[1, 0]):
        assert array.dtype == np.float32
        assert not array.flags.writeable


def _misfits() -> dict[str, Remembered]:
    debate = made(1)
    outcome, place = debate.outcome, (1, 0)
    unit = debate.states[place]

    def state(at: tuple[int, int], value: object) -> Remembered:
        return replace(debate, states={**debate.states, at: value})  # type: ignore[dict-item]

    nan = unit.copy()
    nan[0] = np.nan
    return {
        "2 rewards for 3 agents": replace(debate, outcome=replace(outcome, rewards=(1.0, 0.0))),
        "not between 0 and 1: .*nan": replace(debate, outcome=replace(outcome, rewards=(1.0, 0.0, float("nan")))),
        "not between 0 and 1: .*-1": replace(debate, outcome=replace(outcome, rewards=(-1.0, 0.0, None))),
        "for 3 rounds": replace(debate, outcome=replace(outcome, correct=outcome.correct[1:])),
        r"\[3, 3, 2\] replies": replace(
            debate, outcome=replace(outcome, correct=(*outcome.correct[:2], outcome.correct[2][:2]))
        ),
        "question have the shape": replace(debate, question=made(1, dimension=9).question),
        "replies have the shape": replace(debate, replies=debate.replies[:2]),
        "round 0": state((0, 0), unit),
        "in round 3": state((3, 0), unit),
        "agent 3": state((1, 3), unit),
        "agent -1": state((1, -1), unit),
        r"state \(1, 0\) have the shape": state(place, unit[:4]),
        "neither 1 nor 0": state(place, unit * 1.01),
        "length that": state(place, nan),
        "vector of the replies": replace(debate, replies=debate.replies * np.float32(np.inf)),
        "wrong kind": state(place, ["a"] * 8),
    }


@pytest.mark.parametrize("match", _misfits())
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_does_not_fit_is_refused_and_nothing_is_added(store: MemoryStore, match: str) -> None:
    with pytest.raises(UsageError, match=match) as caught:
        store.add([made(2), _misfits()[match]])
    assert made(1).record.id in str(caught.value)
    assert not store.known()


def test_half_a_surrogate_pair_is_refused(store: MemoryStore) -> None:
    debate = made(1)
    with pytest.raises(StoreError, match="cannot be written"):
        store.add([made(2), replace(debate, record=replace(debate.record, id="\ud800"))])
    assert not store.known()
    assert store.snapshot().bank("\ud800") is None
    assert store.forget(["\ud800"]) == 0
    assert not list(store.debates(["\ud800"]))


def test_forgetting(store: MemoryStore) -> None:
    debates = [made(number) for number in range(6)]
    store.add(debates)
    assert store.forget([*ids(debates[0], debates[3]), "no such"]) == 2
    left = [debates[1], debates[2], debates[4], debates[5]]
    check_all(store, left)
    assert not store.snapshot().knows(debates[3].record.question)
    store.add([debates[3]])
    check_all(reopened(store), [*left, debates[3]])


def test_forgetting_the_last_gives_its_number_to_nobody(store: MemoryStore, url: str) -> None:
    store.add([made(1), made(2)])
    store.forget(ids(made(2)))
    store.add([made(3)])
    with closing(sqlite3.connect(url.partition(":")[2])) as database:
        assert [row[0] for row in database.execute("SELECT number FROM debates ORDER BY number")] == [1, 3]
        assert [row[0] for row in database.execute("SELECT number FROM cases ORDER BY number")] == [
            *range(1, 7),
            *range(13, 19),
        ]


def test_some_debates(store: MemoryStore) -> None:
    debates = [made(number) for number in range(5)]
    store.add(debates)
    found = list(store.debates([*ids(debates[4], debates[1]), "no such"]))
    assert ids(*found) == ids(debates[1], debates[4])
    assert not list(store.debates([]))
    walk = store.debates()
    next(walk)
    store.forget(ids(*debates[1:3]))  # a walk goes on over what is left of what was there
    store.add([made(9)])
    assert ids(*walk) == ids(*debates[3:])


def test_the_same_question_whatever_its_id(store: MemoryStore) -> None:
    asked = Question("Which?", ("a", "b"), id="one")
    store.add([made(1, question=asked)])
    snapshot = store.snapshot()
    assert snapshot.knows(Question("Which?", ("a", "b"), id="two"))
    assert snapshot.knows(Question(" which? ", ("B", "a"), id="one"))  # who knows one's answer knows the other's
    assert not snapshot.knows(Question("Which?", id="one"))


def test_the_version_is_the_content_s(tmp_path: Path) -> None:
    def version(*debates: Remembered, embedder: str = "e", form: str = "paper") -> str:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            kind = {"embedder": embedder, "dimension": 8, "form": form}
            with closing(open_memory(f"sqlite:{folder}/memory.db", **kind)) as store:  # type: ignore[arg-type]
                store.add(debates)
                return store.snapshot().version

    one, two = made(1), made(2)
    assert version(one, two) == version(two, one)
    different = [version(), version(one), version(two), version(one, two)]
    different += [version(one, embedder="f"), version(one, form="official")]
    different += [version(replace(one, outcome=replace(one.outcome, source="feedback")))]
    different += [version(replace(one, outcome=replace(one.outcome, rewards=(0.5, 0.5, 0.5))))]
    different += [version(replace(one, record=replace(one.record, answer="other")))]
    assert len(set(different)) == len(different)

    def late(reply: Reply) -> Reply:
        return replace(reply, seconds=9.0, cached=True, usage=replace(reply.usage, cached_tokens=7))

    rounds = tuple(replace(each, replies=tuple(map(late, each.replies))) for each in one.record.rounds)
    usage = {kind: replace(used, cached_tokens=7) for kind, used in one.record.usage.items()}
    again = replace(one.record, seconds=9.0, started="later", study="other", rounds=rounds, usage=usage)
    assert version(replace(one, record=again, added="later")) == version(one)
    for which in ("here", "there"):
        moved = replace(one, record=replace(one.record, memory=MemoryInfo(which, "v", 1)))
        assert version(moved) == version(replace(moved, record=replace(moved.record, memory=MemoryInfo("x", "v", 1))))
    known = replace(one.outcome, rewards=(1, True, None))
    assert version(replace(one, outcome=known)) == version(
        replace(one, outcome=replace(known, rewards=(1.0, 1.0, None)))
    )


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "add", "forget", "look", "reopen"]), st.lists(st.integers(0, 9), max_size=5)),
    min_size=3,
    max_size=12,
)


def _any(number: int) -> Remembered:
    """Debates of different sizes on few questions, so that agents have more and fewer cases, and questions recur."""
    asked = Question(f"Question {number % 4}?")
    return made(number, agents=1 + number % 4, rounds=1 + number % 3, names=NAMES[number % 2 :], question=asked)


@settings(max_examples=40, deadline=None)
@given(STEPS, st.randoms(use_true_random=False))
def test_any_history_is_like_a_plain_dictionary(steps: list[tuple[str, list[int]]], random: object) -> None:
    model = dict[str, Remembered]()
    with tempfile.TemporaryDirectory() as folder:
        store = open_memory(f"sqlite:{folder}/memory.db", embedder="e", dimension=8)
        for what, numbers in steps:
            debates = [_any(number) for number in numbers]
            if what == "add":
                new = {debate.record.id: debate for debate in debates if debate.record.id not in model}
                assert store.add(debates) == len(new)
                model |= new
            elif what == "forget":
                gone = {debate.record.id for debate in debates} & model.keys()
                assert store.forget(ids(*debates)) == len(gone)
                model = {name: debate for name, debate in model.items() if name not in gone}
            elif what == "reopen":
                store = reopened(store)
            else:
                check_all(store, list(model.values()))
        check_all(store, list(model.values()))
        known = {question_key(debate.record.question) for debate in model.values()}
        for number in range(4):
            question = _any(number).record.question
            assert store.snapshot().knows(question) == (question_key(question) in known)
        shuffled = list(model.values())
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        with closing(open_memory(f"sqlite:{folder}/other.db", embedder="e", dimension=8)) as other:
            other.add(shuffled)
            assert other.snapshot().version == store.snapshot().version
        store.close()


def test_a_closed_memory(store: MemoryStore) -> None:
    store.add([made(1)])
    snapshot = store.snapshot()
    bank = snapshot.bank("Ann")
    assert bank is not None
    store.close()
    assert bank.states.shape == (2, 8)
    for use in (store.snapshot, store.known, store.roster, lambda: store.add([made(2)]), lambda: bank.case(0)):
        with pytest.raises(StoreError, match="is closed"):
            use()
    with pytest.raises(IndexError):
        bank.case(2)
