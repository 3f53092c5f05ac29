"""Power of the exact test, against other hands' code, simulation and published formulas."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from r2mad.study.paired import mcnemar
from r2mad.study.power import _approximate, detectable, mcnemar_power, questions_needed


def _by_hand(questions: int, difference: float, discordance: float) -> float:
    better = (discordance + difference) / 2 / discordance
    found = 0.0
    for count in range(questions + 1):
        wins = [b for b in range(count + 1) if 2 * b > count and mcnemar(b, count - b) < 0.05]
        found += binom.pmf(count, questions, discordance) * binom.pmf(wins, count, better).sum()
    return found


@pytest.mark.parametrize(("n", "difference", "discordance"), [(60, 0.1, 0.3), (166, 0.05, 0.15), (40, 0.2, 0.2)])
def test_power_is_the_sum_over_all_outcomes(n: int, difference: float, discordance: float) -> None:
    assert mcnemar_power(n, difference, discordance) == pytest.approx(_by_hand(n, difference, discordance), abs=1e-9)
    assert mcnemar_power(n, -difference, discordance) == mcnemar_power(n, difference, discordance)


def test_power_is_what_simulated_studies_find() -> None:
    drawn = np.random.default_rng(6).multinomial(166, [0.12, 0.04, 0.84], size=4000)
    found = np.mean([b > c and mcnemar(int(b), int(c)) < 0.05 for b, c, _ in drawn])
    assert mcnemar_power(166, 0.08, 0.16) == pytest.approx(found, abs=0.025)


def test_power_of_equal_methods_is_half_the_level() -> None:
    assert 0.005 < mcnemar_power(300, 0.0, 0.2) <= 0.025


def test_power_at_the_ends() -> None:
    assert mcnemar_power(0, 0.1, 0.2) == mcnemar_power(50, 0.0, 0.0) == 0.0
    assert mcnemar_power(5, 1.0, 1.0) == 0.0  # 2 · ½⁵ is above 5 %
    assert mcnemar_power(6, 1.0, 1.0) == pytest.approx(1.0)
    assert mcnemar_power(5000, 1.0, 1.0) == 1.0
    for wrong in ((10, 0.3, 0.2), (10, 0.1, 1.1), (-1, 0.1, 0.2), (10, float("nan"), 0.2)):
        with pytest.raises(ValueError, match="can differ"):
            mcnemar_power(*wrong)
    with pytest.raises(ValueError, match="level"):
        mcnemar_power(10, 0.1, 0.2, level=0.0)
    for power in (0.0, 1.0):
        with pytest.raises(ValueError, match="no power"):
            detectable(10, 0.2, power=power)


@pytest.mark.parametrize("difference", [0.01, 0.013, 0.02])
def test_the_approximation_joins_the_exact_power(difference: float) -> None:
    exact = mcnemar_power(6600, difference, 0.15)
    assert _approximate(6600, difference, 0.15, norm.ppf(0.975)) == pytest.approx(exact, abs=0.005)


def test_questions_needed_against_the_usual_formula() -> None:
    """Connor 1987: n = (1.96·√ψ + .8416·√(ψ − Δ²))²/Δ² = 468 for Δ .05, ψ .15; the exact test needs some more."""
    formula = (norm.ppf(0.975) * 0.15**0.5 + norm.ppf(0.8) * (0.15 - 0.05**2) ** 0.5) ** 2 / 0.05**2
    assert formula == pytest.approx(468, abs=1)
    assert formula < questions_needed(0.05, 0.15) < formula * 1.1
    assert questions_needed(-0.01, 0.1) == pytest.approx(7850, rel=0.05)
    assert questions_needed(0.15, 0.15) == 52
    with pytest.raises(ValueError, match="difference of 0"):
        questions_needed(0.0, 0.1)


@settings(max_examples=15, deadline=None)
@given(st.integers(60, 800), st.floats(0.1, 0.4))
def test_what_is_detectable_is_what_needs_so_many_questions(questions: int, discordance: float) -> None:
    least = detectable(questions, discordance)
    if least is None:
        assert mcnemar_power(questions, discordance, discordance) < 0.8
        return
    assert mcnemar_power(questions, least, discordance) >= 0.8 > mcnemar_power(questions, least - 2e-6, discordance)
    needed = questions_needed(least, discordance)
    assert needed <= questions + 1
    assert mcnemar_power(needed, least, discordance) >= 0.8 > mcnemar_power(needed - 1, least, discordance)


def test_too_few_questions_detect_nothing() -> None:
    assert detectable(5, 1.0) is None
    assert detectable(166, 0.03) is None
    assert detectable(0, 0.5) is None


def test_the_table_of_the_documentation() -> None:
    page = Path(__file__).parents[2] / "docs" / "statistics.md"
    rows = [line.strip("| ").split(" | ") for line in page.read_text(encoding="utf-8").splitlines()]
    head = next(row for row in rows if row[0] == "discordance")
    sizes = [int(cell.removesuffix(" questions").replace(",", "")) for cell in head[1:]]
    table = [row for row in rows if len(row) == len(head) and row[0].startswith("0.")]
    assert len(table) == 5
    for discordance, *cells in table:
        found = [detectable(size, float(discordance)) for size in sizes]
        assert cells == ["–" if one is None else f"{100 * one:.1f}" for one in found]
