"""Over the benchmarks' own answers, where they are at hand: R2MAD_DATA, or a folder beside the checkout."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from r2mad.answers import canonical, equivalent, extract

FOLDER = Path(os.environ.get("R2MAD_DATA", Path(__file__).parents[3] / "shared" / "data"))
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmark data is not here")


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", ["math500", "aime24", "aime25"])
def test_every_gold_formula_is_read_back_and_equals_itself(name: str) -> None:
    for row in rows(name):
        gold = row["answer"]
        for reply in (rf"\boxed{{{gold}}}", rf"Thus $\boxed{{{gold}}}$.", f"The answer is ${gold}$.", gold):
            assert extract(reply, "math") == gold
        form = canonical(gold, "math")
        assert form.decided
        assert not form.key.startswith("s:"), gold  # read as a formula, not compared as a string


def test_the_solutions_of_math500_give_their_gold() -> None:
    for row in rows("math500"):
        assert equivalent(extract(row["solution"], "math"), row["answer"], "math"), row["id"]


def test_no_two_golds_of_math500_are_the_same_by_accident() -> None:
    meant = {
        "=90": {"90", r"90^\circ"}, "=5": {"5", "x=5"}, "list{=-2;=1}": {"1,-2", "-2,1"}, "=40": {"40", "40_9"},
        "=120": {"120", r"120^\circ"}, "=36": {r"\$36", "36", r"36^\circ"}, "=1/4": {r"\frac{1}{4}", r"\frac14"},
        "=30": {"30", r"30^\circ"}, "=10080": {r"10,\!080", "10080"}, "=15": {"15", r"15\mbox{ cm}^2"},
    }  # fmt: skip
    found: dict[str, set[str]] = {}
    for row in rows("math500"):
        found.setdefault(canonical(row["answer"], "math").key, set()).add(row["answer"])
    same = {key: golds for key, golds in found.items() if len({"".join(gold.split()) for gold in golds}) > 1}
    assert same == meant


def test_every_gold_number_is_read_back() -> None:
    for row in rows("gsm8k_test"):
        gold, plain = row["answer"], row["answer"].replace(",", "")
        for reply in (f"#### {gold}", f"The answer is {gold}.", f"The answer is ${gold}.", rf"\boxed{{{gold}}}", gold):
            assert extract(reply, "number") == plain
        assert extract(row["solution"] + f"\n#### {gold}", "number") == plain
        assert equivalent(gold, plain, "number")


@pytest.mark.parametrize(
    "name", ["mmlu_pro_economics", "mmlu_pro_engineering", "mmlu_pro_other_sample", "truthfulqa_mc"]
)
def test_every_key_is_read_back_beside_its_options_text(name: str) -> None:
    for row in rows(name):
        letter, options = row["answer"], row["options"]
        text = options[ord(letter) - ord("A")]
        for reply in (f"(({letter}))", rf"\boxed{{\text{{{letter}}}}}", f"The answer is {letter} because I think so.",
                      f"(({letter}: {text}))", f"**Answer: {letter}. {text}**", f"{letter}. {text}"):  # fmt: skip
            assert extract(reply, "choice", options) == letter, (row["id"], reply)
