"""Laws that hold for any answers: equivalence is one, tallies do not know order, and what is rendered is read back."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2mad.answers import equivalent, extract, tally
from r2mad.types import AnswerKind

OPTIONS = ["Demand falls", "Supply rises", "Both fall", "Neither changes", "A car moves", "I do", "x", "7", "8", "9"]

numbers = st.integers(-9, 9)
atoms = st.one_of(
    numbers.map(lambda n: f"({n})" if n < 0 else str(n)), st.sampled_from(["x", "y", r"\pi", r"\sqrt{2}"])
)


@st.composite
def formulas(draw: st.DrawFn) -> str:
    """A small formula: sums, products, powers and fractions of numbers and two variables."""
    left, right = draw(atoms), draw(atoms)
    shape = draw(st.sampled_from(["{a}+{b}", "{a}-{b}", "{a} \\cdot {b}", "({a}+{b})^2", "\\frac{{{a}}}{{7}}+{b}"]))
    return shape.format(a=left, b=right)


def rewrites(formula: str) -> list[str]:
    """The same value, written otherwise."""
    return [
        f"({formula})", f"1 \\cdot ({formula})", f"({formula})+x-x", f"\\frac{{2({formula})}}{{2}}", f"-(-({formula}))",
        f"\\left({formula}\\right)", f"${formula}$", f"z = {formula}", f"{formula}.", f"({formula})^{{1}}",
    ]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(formulas())
def test_a_rewritten_formula_is_the_same(formula: str) -> None:
    for other in rewrites(formula):
        assert equivalent(formula, other, "math"), other
    assert not equivalent(formula, f"({formula})+1", "math")


@settings(max_examples=40, deadline=None)
@given(st.lists(formulas(), min_size=3, max_size=6))
def test_equivalence_is_symmetric_and_transitive(pool: list[str]) -> None:
    same = {(a, b): equivalent(a, b, "math") for a in pool for b in pool}
    for a in pool:
        assert same[a, a]
        for b in pool:
            assert same[a, b] == same[b, a]
            for c in pool:
                assert not (same[a, b] and same[b, c]) or same[a, c]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.none(), formulas(), st.sampled_from(["1/2", "0.5", r"\frac12", "1,2", "2,1"]))), st.randoms()
)
def test_a_tally_does_not_know_the_order(answers: list[str | None], chance: random.Random) -> None:
    shuffled = answers[:]
    chance.shuffle(shuffled)
    one, other = tally(answers, "math"), tally(shuffled, "math")
    assert one.classes == other.classes
    assert one.undecided == other.undecided
    assert sorted(map(str, one.labels)) == sorted(map(str, other.labels))
    assert sum(each.count for each in one.classes) == len([answer for answer in answers if answer is not None])


SLOTS = [
    "(({}))",
    "So (({})).",
    "The answer is {}.",
    "**Answer:** {}",
    r"\boxed{{{}}}",
    "<answer>{}</answer>",
    '{{"answer": "{}"}}',
]
BEFORE = ["", "I considered ((A)) first. ", "<think>The answer is C.</think>", "Neither (A) nor (B) is a car.\n\n"]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("slot", [*SLOTS, "The answer is {} because I checked a case.", "{}", "({})", "I choose {}."])
def test_a_rendered_letter_is_read_back(slot: str, before: str) -> None:
    for letter in "ABCDEFGHIJ":
        reply = before + slot.format(letter)
        if "((A))" in before and slot in ("{}", "({})", "I choose {}."):
            continue  # a slot is stronger than a passing remark
        if slot in ("{}", "({})") and "case" not in before and "Neither" not in before and before.startswith("I "):
            continue
        assert extract(reply, "choice", OPTIONS) == letter, reply


FORMULA_SLOTS = [
    r"\boxed{@}",
    r"So $@$ is right. $\boxed{@}$",
    "The answer is $@$.",
    "Final answer: @",
    "<answer>@</answer>",
]


@settings(max_examples=100, deadline=None)
@given(formulas(), st.sampled_from(FORMULA_SLOTS))
def test_a_rendered_formula_is_read_back(formula: str, slot: str) -> None:
    assert extract(slot.replace("@", formula), "math") == formula


@settings(max_examples=200, deadline=None)
@given(st.integers(-(10**9), 10**9))
def test_a_rendered_number_is_read_back(number: int) -> None:
    for reply in (
        f"#### {number:,}",
        f"The answer is {number}.",
        f"\\boxed{{{number}}}",
        f"{number} apples",
        f"{number}",
    ):
        found = extract(reply, "number")
        assert found == str(number)
        assert equivalent(found, f"{number:,}.0", "number")


@given(st.sampled_from(["Paris", "New York", "Dr. Smith", "3.14", "the U.S.", "Yes"]))
def test_rendered_words_are_read_back(words: str) -> None:
    for reply in (
        f"The answer is {words}.",
        f"**Answer:** {words}",
        f"\\boxed{{\\text{{{words}}}}}",
        f"(({words}))",
        words,
    ):
        found = extract(reply, "text")
        assert equivalent(found, words, "text")


ANSWERED = {
    "choice": ["The answer is B.", "Final answer: B", "**Answer: B**", "((B))", "The correct option is (B)."],
    "math": ["The answer is 12.", "**Answer:** 12", "\\boxed{12}", "Final answer: $12$"],
    "number": ["The answer is 12.", "#### 12", "Final answer: 12 apples", "**Answer:** 12"],
    "text": ["The answer is: Paris", "Final answer: Paris.", "**Answer:** Paris"],
}
LINES = (
    "A is wrong", "On reflection that was incorrect:", "A - incorrect", "I checked this against the original question:",
    "Working backwards from the candidate", "Compare it with the other", "This was my first", "What if",
    "The answer is A.", "So is it possible", "A similar", "her previous", "Suppose the",
)  # fmt: skip


@pytest.mark.parametrize("kind", ANSWERED)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_no_line_before_a_declaration_changes_it(kind: AnswerKind, end: str) -> None:
    options = ("this", "that", "neither") if kind == "choice" else None
    for declared in ANSWERED[kind]:
        alone = extract(declared, kind, options)
        assert alone is not None
        for line in LINES:
            assert extract(f"{line}{end}{declared}", kind, options) == alone, (line, declared)


@given(
    st.sampled_from(sorted(ANSWERED)),
    st.text(alphabet=st.characters(codec="ascii", exclude_characters="\\(){}<>`$#"), max_size=60),
    st.data(),
)
def test_hardly_any_line_before_a_declaration_changes_it(kind: AnswerKind, line: str, data: st.DataObject) -> None:
    """Lines without brackets and markup, which may open something that the declaration would stand in."""
    declared = data.draw(st.sampled_from(ANSWERED[kind]))
    options = ("this", "that", "neither") if kind == "choice" else None
    assert extract(f"{line}\n{declared}", kind, options) == extract(declared, kind, options)
