"""Verdicts on replies: a quotation is none, and what is clear is read in any dress."""

import pytest

from r2mad.mask import read_verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("The reply says:\n\nYES\n\nbut option A is false, so the verdict is NO.", "no"),
        ('It holds that\nNO\n"is what remains", so my verdict is YES', "yes"),
        ("No. 1 is right: the reply is correct.", None),
        ("No, wait: it is right. YES, it is right.", None),
        ("YES\nNO2", "yes"),
        ("The verdict is NO.", "no"),
        ("Verdict: NO, because the sum is 5", "no"),
        ("**Verdict**: NO - the sum is 5", "no"),
        ("\\boxed{\\text{NO}}", "no"),
        ("\\boxed{YES}", "yes"),
        ("<answer>NO</answer>", "no"),
        ("\uff2e\uff2f", "no"),
        ("NOT-SURE", "not sure"),
        ("Unsure.", "not sure"),
        ("The answer is yes and no", None),
        ("", None),
    ],
)
def test_a_verdict_that_is_clear_is_read_and_no_other(text: str, verdict: str | None) -> None:
    assert read_verdict(text) == verdict
