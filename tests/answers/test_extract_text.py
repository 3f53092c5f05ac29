"""Which words a reply declares."""

import pytest

from r2mad.answers import extract

REPLIES: list[tuple[str, str | None]] = [
    ("The answer is: Paris.", "Paris"),
    ("The answer is Paris.", "Paris"),
    ("Final answer: Paris", "Paris"),
    ("**Answer:** Paris", "Paris"),
    ("**Final Answer:** **Paris**", "Paris"),
    (r"\boxed{\text{Paris}}", "Paris"),
    ("<answer>Paris</answer>", "Paris"),
    ("((Paris))", "Paris"),
    ('Answer: "Paris"', "Paris"),
    ("Paris", "Paris"),
    ("Paris.", "Paris"),
    ("It is Paris.", "Paris"),
    ("It's Paris", "Paris"),
    ("The capital is Paris, and I have long reasons to think so, since it has been the capital for ages.", None),
    ("The answer is Dr. Smith.", "Dr. Smith"),
    ("The answer is the U.S. because it is big.", "the U.S."),
    ("The answer is the U.S.", "the U.S."),
    ("The answer is John F. Kennedy.", "John F. Kennedy"),
    ("The answer is St. Petersburg. It lies on the Neva.", "St. Petersburg"),
    ("The answer is Paris. I am sure.", "Paris"),
    ("The answer is Paris because it is the capital.", "Paris"),
    ("The answer is Paris, which is the capital of France.", "Paris"),
    ("The answer is: Paris\n\nIt is in France.", "Paris"),
    ("Answer:\nParis", "Paris"),
    ("I do not know.", None),
    ("I'm not sure.", None),
    ("The answer is unclear.", None),
    ("The answer is Lyon. No, the answer is Paris.", "Paris"),
    ("<think>The answer is Lyon.</think>Paris", "Paris"),
    ("<think>The answer is Lyon.", None),
    ('{"answer": "Paris"}', "Paris"),
    ("#### Paris", "Paris"),
    ("The answer is 3.14.", "3.14"),
    ("The answer is [answer]", None),
    ("((answer))", None),
    (r"\boxed{}", None),
    (r"\boxed{Paris", None),
    ("", None),
    ("The Eiffel Tower", "The Eiffel Tower"),
    ("Answer: The Eiffel Tower.", "The Eiffel Tower"),
    ("The answer is “Paris”.", "Paris"),
    ("The answer is *Paris*.", "Paris"),
    ("The answer to the question is Paris.", "Paris"),
    ("The answer is 5 p.m. on Monday.", "5 p.m. on Monday"),
    ("What is the capital?", None),
    ("The correct answer is: New York City.", "New York City"),
    ("Yes", "Yes"),
    ("The answer is yes.", "yes"),
    ("The answer is No. 5.", "No. 5"),
    ("A: Paris", "Paris"),
]


@pytest.mark.parametrize(("reply", "answer"), REPLIES)
def test_extract(reply: str, answer: str | None) -> None:
    assert extract(reply, "text") == answer


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Answer: Right", "Right"),
        ("**Answer:** Wrong.", "Wrong"),
        ("The answer is: simple", "simple"),
        ("The answer is right.", None),
        ("The answer: not in the text", None),
    ],
)
def test_a_word_that_could_be_about_the_answer_is_one_after_a_colon(reply: str, answer: str | None) -> None:
    assert extract(reply, "text") == answer
