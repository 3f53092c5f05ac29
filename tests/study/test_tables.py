"""Tables: the numbers of many worked out by hand, what is left out, what is a dash, and odd names in three formats."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from r2mad.api import Table as Desk
from r2mad.models.scripted import ScriptedModel
from r2mad.settings import Settings
from r2mad.study.runner import run_study
from r2mad.study.runs import load_run
from r2mad.study.scores import Score, Spent
from r2mad.study.table_text import DASH, Entry, Number, Table, latex, shown
from r2mad.study.tables import all_tables, write_tables
from r2mad.types import Item, Peer, Question
from tests.study.by_hand import debate
from tests.study.runs_by_hand import run_of, scored, write_run

QWEN = "openai/Qwen/Qwen2.5-7B-Instruct"


def _tables(*scores: Score, study: dict[str, Any] | None = None) -> dict[str, Table]:
    return {table.id: table for table in all_tables(run_of(*scores, study=study))}


def _row(table: Table, *where: str) -> dict[str, Entry]:
    """The one row that begins like this."""
    (found,) = [row for row in table.rows if row[: len(where)] == where]
    return dict(zip(table.columns, found, strict=True))


def _number(entry: Entry) -> Number:
    assert isinstance(entry, Number)
    return entry


def _told(entries: dict[str, Entry], *columns: str) -> list[str]:
    return [shown(entries[column]) for column in columns]


# Accuracy


def test_accuracy_with_its_interval_by_hand() -> None:
    """3 of 4: z² = 3.8415. Centre (.75 + .4802)/(1 + .9604) = .6275; half .9998·√(.1875/4 + 3.8415/64) = .3268."""
    scores = [scored(f"q{n}", "AAB" if n else "BBA") for n in range(4)]
    other = [scored("q0", "A", method="cot"), scored("q1", "B", method="cot")]
    table = _tables(*scores, *other)["table1"]
    assert table.columns == ("model", "method", "made")
    mad = _row(table, "fake/one", "mad")["made"]
    assert shown(mad) == "0.750 (0.301 to 0.954)"
    # 1 of 2, of which two are missing: centre .5, half 1.3859/(1 + 1.9207)·… = .4055
    cot = _number(_row(table, "fake/one", "cot")["made"])
    assert cot.text == "0.500 (0.095 to 0.905) [2/4 questions]"
    assert [row[1] for row in table.rows] == ["cot", "mad"]


def test_an_average_needs_every_column() -> None:
    table = _tables(
        scored("q1", "AAA"), scored("q2", "BBB", dataset="other"), scored("q1", "A", method="cot")
    )["table1"]  # fmt: skip
    assert table.columns == ("model", "method", "made", "other", "average")
    assert _told(_row(table, "fake/one", "mad"), "made", "other", "average")[2] == "0.500"
    assert _told(_row(table, "fake/one", "cot"), "other", "average") == [DASH, DASH]


def test_failed_and_unparsed_debates_are_wrong() -> None:
    tables = _tables(scored("q1", "AAA"), scored("q2", "xxx"), scored("q3", "---"), scored("q4", "AB-"))
    # q4 is a tie of A and B: right by luck or not, so its share is 0 or 1 of 4
    right = _number(_row(tables["table1"], "fake/one", "mad")["made"]).value
    assert right in (0.25, 0.5)
    row = _row(tables["errors"], "fake/one", "made", "mad")
    assert _told(row, "debates", "failed", "degraded", "tied") == ["4", "0.250 [1]", "0.250 [1]", "0.250 [1]"]
    # 12 replies: three failed, four had no answer
    assert _told(row, "replies", "failed replies", "without an answer") == ["12", "0.250 [3]", "0.333 [4]"]
    ties = _row(tables["ties"], "fake/one", "made", "mad")
    # 1 + 0 + 0 + ½ of 4
    assert (_number(ties["expected"]).value, ties["ties"]) == (0.375, 1)
    assert right is not None
    assert _number(ties["luck"]).value == pytest.approx(right - 0.375)


def test_seeds_of_one_question_are_not_independent() -> None:
    """Both seeds right on q1, both wrong on q2: two questions' worth, so Wilson's interval of 1 of 2.

    Deviations from .5 are +1 and −1 a question; variance 2/1·(1 + 1)/4² = ¼; p(1 − p)/¼ = 1, and never under 2.
    """
    scores = [scored(q, word, seed=seed) for seed in (1, 2) for q, word in (("q1", "AAA"), ("q2", "BBB"))]
    tables = _tables(*scores)
    assert shown(_row(tables["table1"], "fake/one", "mad")["made"]) == "0.500 (0.095 to 0.905)"
    seeds = _row(tables["seeds"], "fake/one", "made", "mad")
    assert _told(seeds, "seeds", "mean", "sd") == ["2", "0.500", "0.000"]
    # q1 right under seed 1 alone, q2 under seed 2 alone: as good as four answers, the most there are
    mixed = [scored("q1", "A", seed=1), scored("q1", "B", seed=2), scored("q2", "B", seed=1), scored("q2", "A", seed=2)]
    assert shown(_row(_tables(*mixed)["table1"], "fake/one", "mad")["made"]) == "0.500 (0.150 to 0.850)"
    alike = [scored(q, "A", seed=seed) for seed in (1, 2) for q in ("q1", "q2")]  # Wilson's of 2 of 2
    assert shown(_row(_tables(*alike)["table1"], "fake/one", "mad")["made"]) == "1.000 (0.342 to 1.000)"


# Stances


def _misconceived() -> list[Score]:
    return [
        # in the subset: one of three right at first. 0 and 1 become right, 2 wrong
        scored("q1", "BBA", "AAB"),
        scored("q2", "AAB", "AAA"),  # not in it
        scored("q3", "BBB"),  # in it, and over at once
        scored("q4", "AAB", gold="B"),  # in it: gold is B, so one is right
        scored("q1", "BBA", "BBA", method="r2mad"),
        scored("q2", "AAB", "BBB", method="r2mad"),
        scored("q4", "AAB", "BBB", gold="B", method="r2mad"),
        scored("q1", "A", method="cot"),
    ]


def test_stances_on_the_subset_by_hand() -> None:
    """r2mad has not answered q3, so the subset of these two is q1 and q4.

    mad on q1: right before 1, lost 1; wrong before 2, won 2; on q4 no second round.
    r2mad on q1: right before 1, lost 0; wrong before 2, won 0. On q4: right before 1, lost 0; wrong before 2, won 2.
    """
    table = _tables(*_misconceived())["table4"]
    mad = _row(table, "fake/one", "made", "mad")
    assert (mad["n"], _number(mad["C→W"]).value, mad["of right"]) == (2, 1.0, 1)
    assert (_number(mad["W→C"]).value, mad["of wrong"]) == (1.0, 2)
    r2mad = _row(table, "fake/one", "made", "r2mad")
    assert (r2mad["n"], _number(r2mad["C→W"]).value, r2mad["of right"]) == (2, 0.0, 2)
    assert (_number(r2mad["W→C"]).value, r2mad["of wrong"]) == (0.5, 4)
    assert shown(r2mad["W→C"]) == "0.500 (0.150 to 0.850)"  # Wilson's of 2 of 4
    assert len(table.rows) == 2  # cot does not debate


def test_figure_3_is_on_what_all_methods_have_answered() -> None:
    """cot has answered q1 alone, so that is the subset of all three; mad ends right there, and r2mad wrong."""
    table = _tables(*_misconceived())["figure3"]
    found = {row[2]: (row[3], _number(row[4]).value, _number(row[5]).value) for row in table.rows}
    assert found == {"cot": (1, 1.0, 1.0), "mad": (1, 1.0, 0.0), "r2mad": (1, 0.0, 0.0)}
    assert any("easier part" in note for note in table.notes)


def test_without_mad_there_is_no_subset() -> None:
    tables = _tables(scored("q1", "BBA", "AAB", method="r2mad"))
    assert not {"table4", "figure3", "figure4"} & set(tables)


def test_figure_4_is_of_its_model() -> None:
    tables = _tables(scored("q1", "BBB", model="openai/Qwen/qwen3-8b"))
    assert "figure4" in tables
    assert "figure3" not in tables


# What debating gains, consensus, cost


def test_the_gain_by_hand() -> None:
    """Votes on round 0: wrong, right, wrong, and a tie of B and C; after: right, right, wrong, right."""
    table = _tables(
        scored("q1", "BBA", "AAA"), scored("q2", "AAB", "AAB"), scored("q3", "BBB"), scored("q4", "BC-", "AAB")
    )["gain"]  # fmt: skip
    row = _row(table, "fake/one", "made", "mad")
    assert _number(row["vote on round 0"]).value == 0.25
    assert _number(row["after debate"]).value == 0.75
    assert _number(row["gain"]).value == 0.5
    assert _number(row["gain"]).text.startswith("+50.0 (")
    assert _number(row["p"]).value == 0.5  # two questions of two: 2 · ½²
    assert (row["won"], row["lost"]) == (2 + 2, 0)
    consensus = _row(
        _tables(scored("q1", "BBA", "AAA"), scored("q3", "BBB"))["consensus"], "fake/one", "made", "mad"
    )  # fmt: skip
    # 2/3 and 1 at first; later only q1
    assert _told(consensus, "round 0", "round 1") == ["0.833 [2]", "1.000 [1]"]


def _costly(name: str, word: str, method: str, calls: int, tokens: int, **more: Any) -> Score:
    spent = {"debate": Spent(calls, tokens - 10, 10, 2)}
    if method == "r2mad":
        spent["summary"] = Spent(1, 30, 5)
        calls, tokens = calls + 1, tokens + 35
    return scored(name, word, method=method, calls=calls, tokens=tokens, spent=spent, **more)


def test_cost_by_hand() -> None:
    scores = [
        _costly("q1", "AAA", "r2mad", 3, 100, shared=2, shared_tokens=60, waited=2.0, seconds=1.0),
        _costly("q2", "AAA", "r2mad", 9, 300, shared=0, waited=4.0, seconds=2.0),
    ]
    tables = _tables(*scores)
    row = _row(tables["cost"], "fake/one", "made", "r2mad")
    # calls (3 + 9)/2 and 1; read (90 + 290)/2 + 30, written 10 + 5, cached 2
    assert _told(row, "calls of agents", "for summaries", "for judgements") == ["6.0", "1.0", "0.0"]
    assert _told(row, "tokens read", "tokens written", "read from the server's cache") == ["220", "15", "2"]
    # 60 of one debate are shared: 30 a debate of 235
    assert _told(row, "calls shared", "tokens shared", "tokens not shared") == ["1.0", "30", "205"]
    told = _row(tables["table10"], "fake/one", "made", "r2mad")
    assert _told(told, "n", "debate tokens", "summary tokens", "judge tokens") == ["2", "200", "35", DASH]
    assert _told(told, "seconds of calls", "seconds") == ["3.00", "1.50"]


def test_the_equal_budget_by_hand() -> None:
    """mad takes 2 calls: half way between cot (1) and sc-3 (3), which are right on ½ and on all of two questions.

    So self-consistency would have ¾ at 2 calls, and mad, right on one of two, −¼. mad takes 50 tokens, more than any.
    """
    scores = [
        _costly("q1", "A", "cot", 1, 20), _costly("q2", "B", "cot", 1, 20),
        _costly("q1", "AAA", "sc-3", 3, 40), _costly("q2", "AAA", "sc-3", 3, 40),
        _costly("q1", "AAA", "mad", 2, 50), _costly("q2", "BBB", "mad", 2, 50),
        _costly("q3", "AAA", "mad", 9, 90),  # the others have not answered it
    ]  # fmt: skip
    row = _row(_tables(*scores)["equal-budget"], "fake/one", "made", "mad")
    assert (row["n"], _number(row["accuracy"]).value) == (2, 0.5)
    assert _told(row, "calls", "sc at equal calls") == ["2.0", "0.750"]
    assert _number(row["method − sc at equal calls"]).value == -0.25
    assert _told(row, "tokens", "sc at equal tokens", "method − sc at equal tokens") == [
        "50",
        f"{DASH} [above sc-3]",
        DASH,
    ]


# Which tables there are


def test_a_run_of_one_method_has_no_table_of_others() -> None:
    assert set(_tables(scored("q1", "A", method="cot"))) == {"table1", "table10", "ties", "cost", "errors"}
    assert _tables() == {}


def test_each_paper_table_appears_with_its_methods() -> None:
    names = {
        "table2": ("r2mad", "r2mad-no-memory"),
        "table3": ("r2mad", "r2mad-random"),
        "table5": ("mad-m2-s", "mad-m2-o"),
        "table6": ("sc-3", "sc-9"),
        "table9": ("cot", "icl-cot"),
        "mad-m2": ("mad", "mad-m2-o"),
    }
    for id, methods in names.items():
        there = _tables(*(scored("q1", "AAA", method=method) for method in methods))
        assert id in there
        assert not set(names) - {id, "table5", "mad-m2"} & set(there)
        assert len(there[id].rows) == len(methods) if id != "table9" else 1
    assert "table7" in _tables(scored("q1", "AAA", model="openai/gpt-4o-mini"))
    assert "table7" not in _tables(scored("q1", "AAA"))


def test_sweeps_are_tables_of_their_own() -> None:
    tables = _tables(
        *(scored("q1", "AAA", method=method) for method in ("r2mad[k=1]", "r2mad[k=10]", "r2mad[k=5]", "r2mad"))
    )
    assert [row[1] for row in tables["sweep-r2mad-k"].rows] == ["r2mad", "r2mad[k=1]", "r2mad[k=5]", "r2mad[k=10]"]
    assert [row[1] for row in tables["table1"].rows] == ["r2mad"]


def test_policies_and_paths_are_in_order() -> None:
    tables = _tables(
        *(scored("q1", "AAA", method=name) for name in ("r2mad", "r2mad-similarity", "sc-10", "sc-9", "sc-3"))
    )
    assert [row[0] for row in tables["table3"].rows] == ["similarity", "debate-state"]
    assert [row[1] for row in tables["table6"].rows] == ["sc-3", "sc-9", "sc-10"]


def test_groups_are_shown_where_there_are_several() -> None:
    scores = [scored("q1", "AAA", group="law"), scored("q2", "BBB", group="art"), scored("q3", "AAA", group="art")]
    table = _tables(*scores)["groups"]
    assert [shown(_row(table, "fake/one", "made", name)["mad"]) for name in ("art", "law")] == [
        "0.500 [1/2]",
        "1.000 [1/1]",
    ]


def test_every_pair_is_corrected_for_all_of_them() -> None:
    scores = [scored(f"q{n}", "A", method="sc-3") for n in range(8)] + [
        scored(f"q{n}", "B", method="cot") for n in range(8)
    ]
    scores += [scored(f"q{n}", "B", method="vote") for n in range(7)]
    table = _tables(*scores)["pairs"]
    found = {row[2:4]: row for row in table.rows}
    row = dict(zip(table.columns, found["cot", "sc-3"], strict=True))
    # all eight questions one way: p = 2 · ½⁸ = .0078, the least of three, so Holm's is 3 times that
    assert _number(row["p"]).value == pytest.approx(2 / 256)
    assert _number(row["Holm's p"]).value == pytest.approx(6 / 256)
    assert (row["so one is"], row["only one right"], row["only other right"], row["left out"]) == ("worse", 0, 8, "")
    row = dict(zip(table.columns, found["cot", "vote"], strict=True))
    assert (row["n"], row["so one is"], row["left out"]) == (7, "same", "1 questions, 0 answers")


def test_what_masks_hide_is_read_from_the_debates(tmp_path: Path) -> None:
    """Round 0 is right, wrong, wrong; the mask hides the right one and one wrong one."""
    mask = [Peer(0, shown=False, verdict="no"), Peer(1, shown=False, verdict="no"), Peer(2, verdict="yes")]
    one = debate("q1", "ABB", "AAA", method="mad-m2-s", peers={1: [mask] * 3})
    run = load_run(write_run(tmp_path / "RUN", [one, debate("q1", "ABB", "AAA")]))
    table = next(table for table in all_tables(run) if table.id == "mask-quality")
    row = _row(table, "fake/one", "", "mad-m2-s")
    found = [_number(row[name]).value for name in ("precision", "recall", "right hidden", "false in all")]
    assert row["replies judged"] == 3
    assert found == [0.5, 0.5, 1.0, pytest.approx(2 / 3)]
    assert "mask-quality" not in {table.id for table in all_tables(replace(run, folders=()))}


async def test_the_tables_of_a_run_that_was_held(tmp_path: Path) -> None:
    """Three agents always say A; gold is A for one question of two, and B for the other."""
    items = [Item(Question(f"Question {n}?", ("this", "that"), id=f"q/{n}"), "AB"[n], "made", "test") for n in range(2)]
    table = Desk((ScriptedModel(lambda request: "((A))", identity="A"),), Settings(cache=":memory:"))
    await run_study(table, items, ["cot", "sc-3", "mad"], tmp_path / "RUN", seed=1)
    tables = {table.id: table for table in all_tables(load_run(tmp_path / "RUN"))}
    assert [shown(row[2])[:5] for row in tables["table1"].rows] == ["0.500"] * 3
    assert {row[3] for row in tables["figure3"].rows} == {1}  # all three are wrong on one question
    costs = {row[2]: shown(row[4]) for row in tables["cost"].rows}
    assert costs == {"cot": "1.0", "sc-3": "3.0", "mad": "3.0"}
    budget = _row(tables["equal-budget"], "scripted/custom", "made", "mad")
    assert shown(budget["sc at equal calls"]) == "0.500"  # sc-3's, which takes just as many


# Beside the published figures


def _qwen(right: int, whole: int, **more: Any) -> list[Score]:
    return [
        scored(f"q{n}", "AAA" if n < right else "BBB", **{"model": QWEN, "dataset": "truthfulqa", **more})
        for n in range(whole)
    ]


def test_published_figures_stand_beside_ours_by_hand() -> None:
    """mad on TruthfulQA has .681 there, 113 of 166: interval .607 to .747. Ours is 3 of 4: .301 to .954."""
    table = _tables(*_qwen(3, 4))["table1-published"]
    row = _row(table, QWEN, "truthfulqa", "mad")
    assert _told(row, "ours", "n") == ["0.750 (0.301 to 0.954)", "4"]
    assert _told(row, "theirs", "their n", "ours − theirs") == ["0.681 (0.607 to 0.747)", "166", "+6.9"]
    assert _told(row, "theirs in ours", "ours in theirs") == ["yes", "no"]


def test_a_figure_that_cannot_be_is_marked() -> None:
    table = _tables(*_qwen(3, 4, method="sc"))["table1-published"]
    assert "[no multiple of 1/n]" in shown(_row(table, QWEN, "truthfulqa", "sc")["theirs"])


def test_training_questions_are_held_against_nothing() -> None:
    assert not [id for id in _tables(*_qwen(3, 4, split="train")) if id.endswith("published")]
    assert not [id for id in _tables(*_qwen(3, 4, method="mad[rounds=5]")) if id.endswith("published")]


def test_the_average_stands_beside_theirs_only_with_all_their_sets() -> None:
    sets = ("math500", "mmlu-pro:economics", "mmlu-pro:engineering@official", "truthfulqa")
    scores = [score for name in sets for score in _qwen(1, 2, dataset=name)]
    row = _row(_tables(*scores)["table1-published"], QWEN, "average", "mad")
    assert _told(row, "ours", "theirs", "ours − theirs", "theirs in ours") == ["0.500", "0.571", "−7.1", DASH]
    assert not [row for row in _tables(*scores[:6])["table1-published"].rows if row[1] == "average"]


def test_stances_cost_and_masks_stand_beside_theirs() -> None:
    scores = [
        scored("q1", "BBA", "AAA", model=QWEN, dataset="mmlu-pro:economics"),
        _costly("q1", "BBB", "r2mad", 6, 2705, model=QWEN, dataset="mmlu-pro:economics", grades=("001", "101")),
        scored("q1", "AAA", model=QWEN, dataset="gsm8k", tokens=100),
        scored("q1", "AAA", "AAA", method="mad-m2-s", model=QWEN, dataset="gsm8k", tokens=150),
    ]
    tables = _tables(*scores)
    # one agent of two wrong ones became right
    row = [one for one in tables["table4-published"].rows if one[3] == "wrong to correct"]
    assert [(one[2], shown(one[4])[:5], shown(one[6]), one[7]) for one in row] == [("r2mad", "0.500", "0.172", None)]
    debate = next(one for one in tables["table10-published"].rows if one[2:4] == ("r2mad", "debate tokens"))
    assert [shown(one) for one in debate[4:]] == ["2 705", "1", "5 410", "0.50"]
    tokens = next(one for one in tables["mad-m2-published"].rows if one[3] == "× tokens")
    assert [shown(one) for one in tokens[4:7]] == ["1.50", "1", "1.25"]
    assert shown(_row(tables["figure3-published"], QWEN, "mmlu-pro:economics", "r2mad")["theirs"]) == "0.294"


def test_a_study_of_other_settings_is_told() -> None:
    config = {
        "models": [], "methods": ["mad"], "datasets": ["truthfulqa:test"], "seeds": [1], "sweeps": [],
        "settings": {"temperature": 0.3, "embedder": "openai/BAAI/bge-m3", "rounds": 3, "agents": None},
    }  # fmt: skip
    notes = _tables(*_qwen(3, 4), study={"config": config})["table1-published"].notes
    assert [note for note in notes if note.startswith("Ours has")] == ["Ours has temperature = 0.3, theirs 1.0."]


# Formats

ODD = ["a_b&c%d", 'say "so", then', "two\nlines", "$x^2$ ~ {y} \\z #1 <i>|*`", "[k=1]--", "−4 → λ"]


def _odd() -> Table:
    rows = tuple((name, Number(0.5, low=0.25, high=0.75, mark="[1/2]"), index) for index, name in enumerate(ODD))
    return Table("odd", "Odd & co_", ("na_me", "50% of it", "n"), (*rows, (None, Number(None), None)), ("1 < 2 & 3_4",))


def test_csv_comes_back_as_it_was() -> None:
    head, *rows = csv.reader(io.StringIO(_odd().to_csv(), newline=""))
    assert head == ["na_me", "50% of it", "50% of it low", "50% of it high", "50% of it note", "n"]
    assert [row[0] for row in rows[:-1]] == ODD
    assert [row[1:] for row in rows[:-1]] == [["0.5", "0.25", "0.75", "[1/2]", str(n)] for n in range(len(ODD))]
    assert rows[-1] == ["", "", "", "", "", ""]


def _unlatex(text: str) -> str:
    """What LaTeX would set: the reverse of the signs that are escaped."""
    words = {
        r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textless{}": "<",
        r"\textgreater{}": ">", r"\textbar{}": "|", r"\textquotedbl{}": '"', r"\textquotesingle{}": "'",
        r"\textasciigrave{}": "`", "{[}": "[", "{]}": "]", "{*}": "*", "{--}": "–", "$-$": "−", r"$\rightarrow$": "→",
        r"$\lambda$": "λ", "-{}": "-",
        **{rf"\{sign}": sign for sign in "&%$#_{}"},
    }  # fmt: skip
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.sub(pattern, lambda match: words[match[0]], text)


def test_latex_comes_back_as_it_was() -> None:
    text = _odd().to_latex()
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")].splitlines()[1:]
    names = [_unlatex(line.split(" & ")[0]) for line in body]
    assert names == [" ".join(name.split()) for name in ODD] + [DASH]
    assert all(line.endswith(r" \\") and line.count(" & ") == 2 for line in body)
    assert not any(line.startswith(("[", "*")) for line in body)
    assert r"\toprule" in text
    assert r"\caption{Odd \& co\_}" in text
    assert r"\begin{tabular}{lrr}" in text
    for name in ODD:
        assert _unlatex(latex(name)) == " ".join(name.split())


def test_markdown_keeps_its_cells() -> None:
    lines = _odd().to_markdown().splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == len(ODD) + 3
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 4 for line in table)
    assert table[1] == "|---|---:|---:|"
    assert r"\<i\>\|\*\`" in table[5]
    assert table[-1] == f"| {DASH} | {DASH} | {DASH} |"
    assert lines[-1] == r"- 1 \< 2 \& 3\_4"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Number(0.7014), "0.701"),
        (Number(0.042, "points"), "+4.2"),
        (Number(-0.0001, "points"), "−0.01"),
        (Number(0.0, "points"), "0.0"),
        (Number(-0.05, "points", -0.1, 0.001), "−5.0 (−10.0 to +0.1)"),
        (Number(12345.6, "plain", digits=0), "12 346"),
        (Number(None, low=0.1, high=0.2), DASH),
        (Number(None, mark="[below sc-3]"), f"{DASH} [below sc-3]"),
    ],
)
def test_numbers_as_they_are_shown(number: Number, text: str) -> None:
    assert number.text == text


def test_a_row_of_another_length_is_no_row() -> None:
    with pytest.raises(ValueError, match="as many entries"):
        Table("t", "t", ("a", "b"), (("x",),))


def test_files_are_written_one_of_each_kind(tmp_path: Path) -> None:
    tables = [*_tables(scored("q1", "A", method="a/b[k=1]"), scored("q1", "A", method="a:b[k=1]")).values()]
    assert {"sweep-a-b-k", "sweep-a-b-k-2"} <= {table.id for table in tables}
    paths = write_tables(tables, tmp_path / "tables")
    assert sorted(paths) == sorted((tmp_path / "tables").iterdir())
    assert len(paths) == 3 * len(tables)
    assert (tmp_path / "tables" / "errors.csv").read_bytes().count(b"\r\n") == 3
