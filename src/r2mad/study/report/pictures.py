"""The figures of a report: which there are, what they are called, and what a reader must know to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from r2mad.study import figures
from r2mad.study.figures import Drawn
from r2mad.study.report.gather import Gathered


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure with its words."""

    name: str
    """Of its files."""
    section: str
    """Where on the page it stands."""
    title: str
    caption: str
    chart: Drawn


def drawn(found: Gathered) -> list[Figure]:
    """All figures that there is something to draw for, in the order of the page."""
    return [
        Figure(name, section, title, caption, chart)
        for name, section, title, caption, draw in _figures(found)
        if (chart := draw()) is not None
    ]


Made = tuple[str, str, str, str, Callable[[], Drawn | None]]


def _figures(found: Gathered) -> Iterable[Made]:
    measured, cells, trust = found.measured, found.cells, found.trust
    order = list(dict.fromkeys(cell.method for cell in cells))
    yield (
        "accuracy",
        "results",
        "Accuracy by method",
        "Share of debates whose answer is right, with Wilson's 95 % interval. Failed debates and replies without an "
        "answer are not right, and stay in the denominator.",
        lambda: figures.accuracy(measured),
    )
    yield (
        "gain",
        "debate",
        "Debate gain",
        "What debating adds to a plain vote on round 0 of the same debates, ties broken evenly, with a paired 95 % "
        "interval over questions. Methods that hold no debate are left out.",
        lambda: figures.gain(cells),
    )
    yield (
        "transitions",
        "debate",
        "Answers that turn",
        "Over all agents and rounds: of answers that were wrong, the share that is right a round later (rescued), and "
        "of answers that were right, the share that is wrong a round later (lost). Shared misconceptions are the "
        "questions on which more than half of mad's agents are not right in round 0.",
        lambda: figures.transitions(measured, found.subset),
    )
    yield (
        "consensus",
        "debate",
        "Consensus by round",
        "Mean share of agents that hold the most popular answer, over the debates that held the round: debates that "
        "ended in agreement are no longer in the later rounds.",
        lambda: figures.consensus(measured),
    )
    for of in ("tokens", "calls"):
        yield (
            f"cost-{of}",
            "cost",
            f"Accuracy against {of}",
            f"Mean {of} a debate, those that were shared with other methods included. The line joins methods that no "
            "cheaper one reaches. Names without room are left out; point at a mark to see them.",
            lambda of=of: figures.cost(measured, of),  # type: ignore[misc]
        )
    yield (
        "sweeps",
        "sweeps",
        "Sweeps",
        "Accuracy of a method with each value of what was swept, with Wilson's 95 % interval.",
        lambda: figures.sweeps(measured),
    )
    yield (
        "agents",
        "sweeps",
        "Number of agents",
        "Accuracy of a method with as many agents, with Wilson's 95 % interval.",
        lambda: figures.agents(cells, measured),
    )
    if trust is not None:
        by_method = {name: trust.calibrations[name] for name in order if name in trust.calibrations}
        masks = {name: trust.masks[name] for name in order if name in trust.masks}
        yield (
            "calibration",
            "trust",
            "Can confidence be believed?",
            "Of what was said with so much confidence, how much was right: on the dashed line confidence is what it "
            "says. Bins are a tenth wide; larger marks hold more. Wilson's 95 % intervals, as if independent.",
            lambda: figures.calibration(by_method),
        )
        yield (
            "masks",
            "trust",
            "Do masks hide what is false?",
            "Precision: of hidden replies the share that is false; a mask that hides at random has the share below it. "
            "Recall: of false replies the share that is hidden.",
            lambda: figures.masks(masks),
        )
    yield (
        "coverage",
        "trust",
        "Accuracy if only the surest are answered",
        "Debates enter by the winner's share of the votes, the surest first; those with equal shares enter together.",
        lambda: figures.coverage(cells),
    )
