"""No text makes an answer raise or take long: properties, and inputs that hurt careless patterns."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2mad.answers import canonical, equivalent, extract, tally
from r2mad.types import AnswerKind

KINDS: tuple[AnswerKind, ...] = ("choice", "math", "number", "text")
OPTIONS = ["Demand falls", "Supply rises", "Both fall", "Neither changes"]

PIECES = [
    "((", "))", "(", ")", "B", "a", "I", " ", "\n", "\\boxed{", "}", "{", "\\boxed", "<think>", "</think>", "<answer>",
    "</answer>", "####", "The answer is ", "Answer: ", "**", "$", "\\frac", "12", "1,234", ".", ",", "\\text{", "=",
    "not ", " or ", "\\pm", "^", "_", "\\begin{pmatrix}", "\\end{pmatrix}", "&", "\\\\", "<", "|", "\\cup", "[", "]",
    "\\{", "\\}", "%", "!", "\\sqrt", "\\infty", "x", "\\circ", "e", "-", "/", "\\overline", "'", '"answer": "', "Ⅳ",
    "²", "１", "\ud800", "\x00", "\u202e", "½", "\\", ":", ";", "\\in", "\\log", "I choose ", " is correct",
]  # fmt: skip
texts = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=()), max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=25).map("".join),
)

HARD = [
    " ", "\n", "\t", "(", "((", "( ", ")", "))", "()", "((x", "((A))", "(A)", "(A) and ", "<think>", "</think>",
    "<think", "<answer>", "<answer", "</answer>", "answer", "answer:", "answer: ", "answer is ", "answer is B or ",
    "the answer is\n", "\nanswer", "final answer\n", "answer to a ", "\\boxed{", "\\boxed", "\\boxed ", "\\boxed{1}",
    "{", "}", "\\", "1", "1,", "1,000", "1 ", "1/", "1/2 ", "1e", "=", ",", ".", ". ", "!", "*", "**", "#", "####",
    "#### ", "#### 1\n", "$", "$$", "\\(", '"answer":', '"answer": "', "'answer': '", "a", "A", "A ", "B or ", "I ",
    "it is ", "so ", "therefore ", "not ", "-", "- ", "only ", "option ", "the correct option ", "agent's ", "U.S. ",
    "Dr. ", "is the ", "B is correct ", "i think ", "A. ", "A) x\n", "\x00", "\ud800", "\u202e", "（（", "é", "\u0301",
    "\\frac{", "\\text{", "twelve ", "7 apples ", "½", "'", "`", "_", "\r\n", "[think]", "<|", "if ", "that is ",
]  # fmt: skip


HARDEST = [" ", "((", "<think>", "answer is ", "\\boxed{", "1,", "**", "{", "#### "]


@settings(max_examples=400, deadline=None)
@given(texts, st.sampled_from(KINDS))
def test_nothing_raises_and_no_answer_is_empty(text: str, kind: AnswerKind) -> None:
    answer = extract(text, kind, OPTIONS if kind == "choice" else None)
    assert answer is None or answer.strip()
    if kind == "choice":
        assert answer in (None, "A", "B", "C", "D")
    result = tally([text, answer, None], kind)
    assert result.total == 3
    assert equivalent(text, text, kind)


LOADS = [*((unit, 150_000) for unit in HARD), *((unit, 1_000_000) for unit in HARDEST)]


@pytest.mark.parametrize(("unit", "size"), LOADS)
def test_a_great_deal_of_anything_takes_less_than_a_second(unit: str, size: int) -> None:
    text = (unit * (size // len(unit) + 1))[:size]
    for kind in KINDS:
        start = time.process_time()
        extract(text, kind, OPTIONS if kind == "choice" else None)
        extracted = time.process_time()
        canonical(text, kind)
        assert extracted - start < 1.0
        assert time.process_time() - extracted < 1.0


def test_a_hundred_thousand_open_braces_take_less_than_a_second() -> None:
    for text in (r"\boxed{" + "{" * 100_000, "(" * 100_000, r"\frac{" * 100_000, "<think>" * 100_000):
        for kind in KINDS:
            start = time.process_time()
            assert extract(text, kind, OPTIONS if kind == "choice" else None) is None
            assert time.process_time() - start < 1.0


@pytest.mark.parametrize(
    "unit", ["{", "(", "-", "\\sqrt ", "x^", "\\frac", "|", "[", "\\{", "+", "1,", "\\pm ", "!", "!!x"]
)
def test_formulas_as_long_as_we_read_are_read_in_time(unit: str) -> None:
    text = unit * (3900 // len(unit)) + "1"
    assert canonical(text, "math").decided


def test_an_answer_at_the_end_of_a_long_reply_is_found() -> None:
    assert extract("word " * 200_000 + "The answer is ((B)).", "choice", OPTIONS) == "B"
    assert extract("<think>" + "hmm " * 200_000 + "</think>" + r"\boxed{5}", "math") == "5"
