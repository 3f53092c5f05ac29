"""Knowing when not to answer: features, the fit, its file, and what withholding is worth."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.errors import StoreError, UsageError
from r2mad.study.abstain import Area, Calibrator, Features, area, coverage, crossed, features, fit, load, votes
from r2mad.study.calibration import assess
from r2mad.study.stats import wilson
from r2mad.types import Peer
from tests.study.by_hand import Held, debate, parted

OUTCOMES = st.lists(st.tuples(st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 1.0]), st.booleans()), min_size=1, max_size=40)


def _ended(name: str, vote: float, right: bool, memory: float | None = None, **changes: Any) -> Held:
    """A debate with that vote share and memory confidence, right or wrong."""
    peers = {1: [[Peer(1, confidence=memory)], [Peer(0, confidence=memory)]]}
    return debate(name, "AA", "AA", gold="A" if right else "B", confidence=vote, peers=peers, **changes)


def _simulated(count: int, seed: int, memory: bool = True) -> list[Held]:
    """Chance σ(−.5 + 1·logit(vote) + .8·logit(memory)), without memory in a third, where it is σ(.3 + logit(vote))."""
    drawn = np.random.default_rng(seed)
    held = []
    for n in range(count):
        vote, said = float(drawn.choice([1 / 3, 2 / 3, 0.95])), float(drawn.choice([0.2, 0.5, 0.8]))
        told = memory and n % 3 > 0
        logit = log(vote / (1 - vote)) + (-0.5 + 0.8 * log(said / (1 - said)) if told else 0.3)
        right = bool(drawn.random() < 1 / (1 + np.exp(-logit)))
        held.append(_ended(f"q{n}", vote, right, said if told else None))
    return held


# features


def test_features_by_hand() -> None:
    """Round 2 speaks of round 1, A B A: of A agents 0 and 2 had .9, .5 and .4 (mean .6), of B .1. Round 1 is older."""
    peers = {
        1: [[Peer(1, confidence=0.0)], [Peer(0, confidence=0.0)], []],
        2: [
            [Peer(1, confidence=0.1), Peer(2, confidence=0.9)],
            [Peer(0, confidence=0.5), Peer(2)],
            [Peer(0, confidence=0.4), Peer(1)],
        ],
    }
    (record, _) = debate("q", "BBA", "ABA", "AAB", peers=peers)
    found = features(record)
    assert found.memory == pytest.approx(0.6)
    assert found.vote == pytest.approx(2 / 3)
    assert features(replace(record, answer="D")).memory is None  # nobody held it
    assert features(replace(record, answer=" a ")).memory == pytest.approx(0.6)  # the same answer, written otherwise
    assert features(replace(record, answer=None, confidence=None)) == Features(0.0, None)


def test_the_last_round_with_any_confidence_counts() -> None:
    peers = {1: [[Peer(1, confidence=0.3)], [Peer(0, confidence=0.7)]], 2: [[Peer(1)], [Peer(0)]]}
    assert features(debate("q", "AA", "AA", "AA", peers=peers)[0]).memory == pytest.approx(0.5)
    assert features(debate("q", "AA", "AA")[0]).memory is None


def test_what_memory_said_of_the_last_round_itself_comes_first() -> None:
    record, _ = debate("q", "AA")
    assert features(replace(record, rounds=(replace(record.rounds[0], trust=0.25),))).memory == 0.25


# the fit


def test_a_fit_that_can_be_done_by_hand() -> None:
    """All votes ½, whose logit is 0, and no memory: only the intercept can tell, so the chance is 9 of 12."""
    held = [_ended(f"q{n}", 0.5, n < 9) for n in range(12)]
    found = fit(*parted(held))
    assert found.coefficients == pytest.approx((log(9 / 3), 0, 0, 0), abs=1e-7)
    assert found(held[0][0]) == pytest.approx(0.75)
    assert (found.method, found.models, found.debates, found.right) == ("mad", ("fake/one",), 12, 9)


def test_the_fit_is_where_the_penalised_likelihood_is_flat() -> None:
    """Σ (σ(b·x) − y)·x + ridge·b = 0, with the ridge of 1 on all but the intercept."""
    held = _simulated(200, 4)
    found = fit(*parted(held))
    slope = np.array([0.0, *found.coefficients[1:]])
    for record, score in held:
        one = features(record)
        vote = min(max(one.vote, 0.02), 0.98)
        row = [1, log(vote / (1 - vote)), 0.0 if one.memory is None else log(one.memory / (1 - one.memory))]
        slope += (found(record) - score.correct) * np.array([*row, one.memory is None])
    assert slope == pytest.approx(np.zeros(4), abs=1e-6)


def test_a_fit_finds_what_it_was_made_from() -> None:
    """Intercept −.5, vote 1, memory .8, and .8 more without memory."""
    found = fit(*parted(_simulated(4000, 1)))
    assert found.coefficients == pytest.approx((-0.5, 1.0, 0.8, 0.8), abs=0.2)


def test_data_that_can_be_parted_stay_finite() -> None:
    held = [_ended(f"q{n}", 1.0 if n % 2 else 0.0, n % 2 == 1, 0.99 if n % 2 else 0.0) for n in range(40)]
    found = fit(*parted(held))
    assert found(held[1][0]) > 0.95 > 0.05 > found(held[0][0]) > 0.0
    assert max(map(abs, found.coefficients)) < 10


def test_no_answer_is_never_right_and_teaches_nothing() -> None:
    held = [_ended(f"q{n}", 0.5, n < 9) for n in range(12)]
    nothing = [debate(f"n{n}", "--") for n in range(5)]
    found = fit(*parted([*held, *nothing]))
    assert found == fit(*parted(held))
    assert found(nothing[0][0]) == 0.0


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ([], "here are 0, 0 right"),
        ([_ended(f"q{n}", 0.5, n < 4) for n in range(9)], "here are 9, 4 right"),
        ([_ended(f"q{n}", 0.5, True) for n in range(20)], "here are 20, 20 right"),
        ([_ended(f"q{n}", 0.5, False) for n in range(20)], "here are 20, 0 right"),
        ([_ended(f"q{n}", 0.5, n < 9, method="ab"[n % 2]) for n in range(20)], "of one method, and .* a, b"),
    ],
)
def test_what_cannot_be_fitted(held: Sequence[Held], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        fit(*parted(held))


def test_the_order_of_debates_does_not_matter() -> None:
    held = _simulated(60, 2)
    assert fit(*parted(held)) == fit(*parted(held[::-1]))


# its file


def test_a_calibrator_comes_back_as_it_was(tmp_path: Path) -> None:
    found, path = fit(*parted(_simulated(60, 3))), tmp_path / "c.json"
    path.write_text("what stood there before")
    found.save(path)
    assert load(path) == found
    assert [one.name for one in tmp_path.iterdir()] == ["c.json"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not a Calibrator"),
        ("[]", "not a Calibrator"),
        ('{"coefficients": [1, 2], "method": "mad", "models": [], "debates": 9, "right": 3}', "coefficients"),
        ('{"coefficients": [0, 0, 0, NaN], "method": "mad", "models": [], "debates": 9, "right": 3}', "Calibrator"),
        (
            '{"coefficients": [0, 0, 0, 1e999], "method": "mad", "models": [], "debates": 9, "right": 3, "schema": 1}',
            "Calibrator",
        ),
        ('{"schema": 2, "weights": []}', "schema 2"),
        (
            '{"coefficients": [0, 0, 0, 0], "method": "m", "models": [], "debates": 9, "right": 3, "schema": 0}',
            "schema 0",
        ),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(StoreError, match=told) as error:
        load(path)
    assert "\n" not in str(error.value)


def test_a_place_that_cannot_be_written_or_read(tmp_path: Path) -> None:
    found = Calibrator((0, 1, 0, 0), "mad", (), 10, 5)
    with pytest.raises(StoreError, match="cannot be written"):
        found.save(tmp_path / "no" / "c.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        found.save(tmp_path / "folder")
    with pytest.raises(StoreError, match="cannot be read"):
        load(tmp_path / "none.json")
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]


# out of fold


def test_what_was_crossed_did_not_see_its_question() -> None:
    """Turning a debate's outcome must not change its own confidence."""
    held = _simulated(80, 5)
    before = crossed(*parted(held)).confidence
    record, score = held[7]
    turned = [*held[:7], (record, replace(score, correct=not score.correct)), *held[8:]]
    after = crossed(*parted(turned))
    assert after.confidence[7] == before[7]
    assert after.confidence != before
    assert after.right[7] is not score.correct


def test_debates_on_one_question_are_in_one_fold() -> None:
    held = [one for seed in (1, 2) for one in _on_each(seed)]
    found = crossed(*parted(held))
    assert found.fold[:40] == found.fold[40:]
    assert len(set(found.fold)) == 5


def _on_each(seed: int) -> list[Held]:
    return [_ended(f"q{n}", 2 / 3, n % 2 == 0, seed=seed) for n in range(40)]


def test_folds_are_the_same_in_every_process() -> None:
    program = (
        "from tests.study.test_abstain import _on_each, parted; from r2mad.study.abstain import crossed;"
        "print(crossed(*parted(_on_each(1))).fold)"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
            env={"PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in "12"
    ]
    assert told == [str(crossed(*parted(_on_each(1))).fold)] * 2


def test_crossing_is_honest_where_there_is_nothing_to_learn() -> None:
    """Outcomes are drawn whatever the vote. Put in one order, folds would rank worse than chance: a fold with more
    right answers is told of fewer by the others. Within folds the mean area of 40 runs is ½."""
    areas, pooled = [], []
    for seed in range(40):
        drawn = np.random.default_rng(seed)
        found = crossed(*parted([_ended(f"q{n}", 1.0, bool(drawn.random() < 0.4)) for n in range(60)]))
        within, together = assess(found, draws=2).auc, assess(replace(found, fold=()), draws=2).auc
        assert within is not None
        assert together is not None
        areas.append(within.auc)
        pooled.append(together.auc)
    assert np.mean(areas) == pytest.approx(0.5)
    assert np.mean(pooled) < 0.45  # what the folds are kept for


def test_crossing_is_calibrated_where_the_vote_is_not() -> None:
    """The vote says .9 of what is right half the time."""
    held = [_ended(f"q{n}", 0.9, n % 2 == 0) for n in range(200)]
    raw, found = assess(votes(*parted(held)), draws=2), assess(crossed(*parted(held)), draws=2)
    assert raw.ece == pytest.approx(0.4)
    assert found.ece is not None
    assert found.ece < 0.1


def test_what_cannot_be_crossed() -> None:
    with pytest.raises(UsageError, match="at least 2 folds"):
        crossed(*parted(_on_each(1)), folds=1)
    with pytest.raises(UsageError, match="at least 10 graded"):
        crossed(*parted(_on_each(1)[:10]))
    with pytest.raises(UsageError, match="one method"):
        crossed(*parted([*_on_each(1), _ended("q", 0.5, True, method="sc")]))


# coverage


def test_a_curve_by_hand() -> None:
    """.9 right; .7 right and wrong, together; .2 wrong. Risks 0, 1/3, 1/2 at coverages 1/4, 3/4, 1: the area is
    ¼·0 + ½·⅓ + ¼·½ = 7/24. To answer half, three of four must be answered."""
    points = coverage([0.7, 0.9, 0.2, 0.7], [True, True, False, False])
    assert [(one.threshold, one.count, one.coverage) for one in points] == [
        (0.9, 1, 0.25),
        (0.7, 3, 0.75),
        (0.2, 4, 1.0),
    ]
    assert [one.accuracy for one in points] == pytest.approx([1, 2 / 3, 1 / 2])
    assert points[1].interval == wilson(2, 3)
    found = area(points)
    assert found is not None
    assert found.aurc == pytest.approx(7 / 24)
    assert found == Area(found.aurc, points[1], points[2], points[2])
    assert coverage([], []) == ()
    assert area(()) is None


def test_without_ties_the_area_is_the_mean_of_risks() -> None:
    """Right, wrong, right, wrong by confidence: (0 + 1/2 + 1/3 + 1/2) / 4."""
    found = area(coverage([0.9, 0.8, 0.7, 0.6], [True, False, True, False]))
    assert found is not None
    assert found.aurc == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert (found.at_50.coverage, found.at_80.coverage, found.at_100.coverage) == (0.5, 1.0, 1.0)


def test_folds_are_answered_in_step() -> None:
    """Fold 0: .9 right, .8 wrong; fold 1: .2 right, .1 wrong. Half of each first: both right; then all."""
    points = coverage([0.9, 0.8, 0.2, 0.1], [True, False, True, False], [0, 0, 1, 1])
    assert [(one.coverage, one.accuracy, one.threshold) for one in points] == [(0.5, 1.0, 0.2), (1.0, 0.5, 0.1)]


@given(OUTCOMES, st.randoms())
def test_laws_of_curves(outcomes: list[tuple[float, bool]], random: object) -> None:
    """They end at the plain accuracy, coverage and count rise, thresholds fall, and order does not matter."""
    sure, right = [one for one, _ in outcomes], [one for _, one in outcomes]
    points = coverage(sure, right)
    assert (points[-1].coverage, points[-1].accuracy) == (1.0, sum(right) / len(right))
    assert [one.count for one in points] == sorted({one.count for one in points})
    assert [one.threshold for one in points] == sorted(set(sure), reverse=True)
    for one in points:
        chosen = [good for value, good in outcomes if value >= one.threshold]
        assert (one.count, one.accuracy) == (len(chosen), sum(chosen) / len(chosen))
    found = area(points)
    assert found is not None
    assert 0.0 <= found.aurc <= 1.0
    shuffled = list(outcomes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis' own Random
    assert coverage([one for one, _ in shuffled], [one for _, one in shuffled]) == points


def test_a_vote_without_an_answer_is_answered_last() -> None:
    found = votes(*parted([debate("q1", "AAB"), debate("q2", "---")]))
    assert found.confidence == pytest.approx((2 / 3, 0.0))
    assert (found.right, found.missing) == ((True, False), 0)
    assert coverage(found.confidence, found.right)[-1].accuracy == 0.5


@pytest.mark.parametrize(("sure", "fold"), [([0.1], ()), ([0.1, float("nan")], ()), ([0.1, 0.2], (1,))])
def test_what_has_no_curve(sure: list[float], fold: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"not pairs|finite"):
        coverage(sure, [True, False], fold)


def test_a_calibration_takes_no_device_s_place_and_is_read_from_none(tmp_path: Path) -> None:
    found = Calibrator((0, 1, 0, 0), "mad", (), 10, 5)
    os.mkfifo(tmp_path / "pipe")
    for act in (found.save, load):
        with pytest.raises(StoreError, match="not a file"):
            act(tmp_path / "pipe")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    found.save(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert load(tmp_path / "real.json") == found
    Calibrator((1e308, 0, 0, 1e308), "mad", (), 10, 5).save(tmp_path / "steep.json")
    with pytest.raises(StoreError, match="out of all reason"):
        load(tmp_path / "steep.json")
