"""Questions refuse what nobody could answer; seeds and digests are the same everywhere."""

import os
import subprocess
import sys
from typing import Any

import pytest

from r2mad.errors import BadQuestionError, ModelError, R2madError, UsageError, boundary
from r2mad.scene import call_seed
from r2mad.types import Failure, Question, Usage, clean, digest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": "  \n"}, "empty"),
        ({"text": "q", "options": ["one"]}, "at least two"),
        ({"text": "q", "options": ["one", " "]}, "an option is empty"),
        ({"text": "q", "options": ["one", "one"]}, "the same"),
        ({"text": "q", "options": [str(n) for n in range(27)]}, "at most 26"),
        ({"text": "q", "kind": "choice"}, "needs options"),
        ({"text": "q", "options": ["a", "b"], "kind": "math"}, "only a choice question"),
        ({"text": "q", "kind": "essay"}, "no such kind"),
    ],
)
def test_bad_questions(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BadQuestionError, match=message):
        Question(**arguments)


def test_a_question_is_its_text_and_its_options() -> None:
    assert Question("q", ("a", "b")).id == Question("q", ("a", "b")).id
    assert Question("q", ("a", "b")).id != Question("q", ("b", "a")).id
    assert Question("q", ("a", "b")).kind == "choice"
    assert Question("q").kind == "text"
    assert Question("q", ("Ab", "aB")).letters == ("A", "B")  # options that differ in case only are two


def test_seeds_are_the_same_in_every_process() -> None:
    code = (
        "from r2mad.scene import call_seed; print(call_seed(7, 'q/1', 2, 1, 0), call_seed(7, 'q/1', 2, 1, 0, 'judge'))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hashing},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hashing in ("0", "1", "4242")
    }
    assert seen == {f"{call_seed(7, 'q/1', 2, 1, 0)} {call_seed(7, 'q/1', 2, 1, 0, 'judge')}\n"}


def test_every_part_of_a_call_changes_its_seed() -> None:
    base = (7, "q", 0, 0, 0)
    changed = [(8, "q", 0, 0, 0), (7, "r", 0, 0, 0), (7, "q", 1, 0, 0), (7, "q", 0, 1, 0), (7, "q", 0, 0, 1)]
    seeds = {call_seed(*parts) for parts in [base, *changed]} | {call_seed(*base, "summary"), call_seed(*base, "judge")}
    assert len(seeds) == 8
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_digest_and_usage() -> None:
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})
    assert Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40) == Usage(11, 22, 33, 44)
    assert Usage(5, 7).total_tokens == 12


def test_clean_joins_and_replaces_surrogates() -> None:
    assert clean("a\ud83d\ude00b") == "a\U0001f600b"
    assert clean("a\ud83db") == "a\ufffdb"
    assert clean("plain ü") == "plain ü"


async def test_the_boundary_makes_data_of_failed_calls_and_of_nothing_else() -> None:
    async def fails(error: Exception) -> str:
        raise error

    async def works() -> str:
        return "fine"

    assert await boundary(works()) == "fine"
    assert await boundary(fails(ModelError("no"))) == Failure("model", "no")
    assert await boundary(fails(KeyError("k"))) == Failure("unexpected", "KeyError: 'k'")
    with pytest.raises(UsageError):
        await boundary(fails(UsageError("yours")))


def test_the_error_tree_is_the_one_drawn_in_its_docstring() -> None:
    from r2mad import errors

    def names(root: type[Exception]) -> set[str]:
        return {root.__name__}.union(*(names(child) for child in root.__subclasses__()))

    drawn = {word for word in errors.__doc__.split() if word.endswith("Error")} if errors.__doc__ else set()
    ours = {name for name in names(R2madError) if hasattr(errors, name)}
    assert ours == drawn - {"`Reply.error`"}
