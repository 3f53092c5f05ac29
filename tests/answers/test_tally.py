"""Classes of equivalent answers: counted once, whatever their order, and None never among them."""

import asyncio
import itertools

import pytest

from r2mad.answers import AnswerClass, extract, tally, tally_async
from r2mad.answers import math as formulas
from r2mad.types import AnswerKind


def test_counts_labels_and_consensus() -> None:
    result = tally(["B", None, "b", "C", None], "choice")
    assert result.classes == (AnswerClass("B", "B", 2), AnswerClass("C", "C", 1))
    assert result.labels == (0, None, 0, 1, None)
    assert result.total == 5
    assert result.consensus == pytest.approx(2 / 5)
    assert result.undecided == ()


@pytest.mark.parametrize("answers", [[], [None], [None, None, None]])
def test_replies_without_an_answer_agree_on_nothing(answers: list[str | None]) -> None:
    result = tally(answers, "math")
    assert result.classes == ()
    assert result.consensus == 0.0
    assert result.labels == (None,) * len(answers)
    assert result.total == len(answers)


def test_the_classes_do_not_depend_on_the_order() -> None:
    answers = ["1/2", "0.5", r"\frac12", "2", "2.0", None, "x"]
    seen = {tally(order, "math").classes for order in itertools.permutations(answers)}
    assert len(seen) == 1
    first, second, third = seen.pop()
    assert (first.answer, first.count) == ("0.5", 3)  # as common and as short as 1/2, and first in order
    assert (second.answer, second.count) == ("2", 2)
    assert (third.answer, third.count) == ("x", 1)


def test_the_most_common_spelling_is_shown() -> None:
    assert tally(["0.50", "0.50", "1/2"], "math").classes[0].answer == "0.50"


def test_labels_index_the_classes() -> None:
    answers = ["x+1", "1+x", None, "2", "x+1"]
    result = tally(answers, "math")
    assert [result.classes[label].answer if label is not None else None for label in result.labels] == [
        "x+1", "x+1", None, "2", "x+1",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["choice", "math", "number", "text"])
async def test_the_awaited_tally_is_the_same(kind: AnswerKind) -> None:
    answers = ["A", None, "a", "x^2", "12", "12.0"]
    assert await tally_async(answers, kind) == tally(answers, kind)


async def test_the_event_loop_goes_on_while_a_formula_is_read() -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.005)
            beats += 1

    task = asyncio.create_task(beat())
    await tally_async([rf"\sum_{{k=1}}^{{{number}}} k^2" for number in (11, 12, 13, 14)], "math")
    task.cancel()
    assert beats > 1


async def test_plain_answers_take_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_thread(*_: object) -> None:
        raise AssertionError("a thread was started")

    monkeypatch.setattr(asyncio, "to_thread", no_thread)
    await tally_async(["1", r"\frac{1}{2}", "0.5", None], "math")
    await tally_async(["one", "two"], "text")
    formulas.canonical("x+2")
    await tally_async(["x+2"], "math")  # remembered


def test_no_such_kind() -> None:
    with pytest.raises(ValueError, match="no such kind"):
        extract("x", "poem")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no such kind"):
        tally(["x"], "poem")  # type: ignore[arg-type]
