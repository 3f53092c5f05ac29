"""What masks hide against the truth, counted by hand."""

from pathlib import Path

import pytest

from r2mad.api import Table
from r2mad.models.scripted import ScriptedModel
from r2mad.settings import Settings
from r2mad.study.mask_quality import Told, qualities
from r2mad.study.records import DEBATES, SCORES, latest
from r2mad.study.runner import run_study
from r2mad.study.scores import latest_scores
from r2mad.study.stats import wilson
from r2mad.types import Item, Peer, Question, Request
from tests.study.by_hand import OPTIONS, Held, debate, parted


def _views(*peers: Peer, agents: int = 3) -> list[list[Peer]]:
    """All agents are shown the same."""
    return [list(peers)] * agents


def _judged(name: str, word: str, *verdicts: str, strict: bool = False, method: str = "mad-m2-s") -> Held:
    """A subjective mask's verdicts on the replies of a word."""
    kept = {"yes"} if strict else {"yes", "not sure", "unreadable", "failed"}
    peers = [Peer(seat, shown=verdict in kept, verdict=verdict) for seat, verdict in enumerate(verdicts)]
    return debate(name, word, "AAA", method=method, peers={1: _views(*peers)})


def test_a_subjective_mask_by_hand() -> None:
    """A B -, judged yes, no, no: kept right, masked wrong, masked wrong, for no answer is not right. A B B,
    judged no, not sure, yes: masked right, kept wrong twice. 3 views show the same, and count once."""
    found = qualities(*parted([_judged("q1", "AB-", "yes", "no", "no"), _judged("q2", "ABB", "no", "not sure", "yes")]))
    quality = found["mad-m2-s"]
    assert (quality.masked_wrong, quality.masked_right, quality.kept_wrong, quality.kept_right) == (2, 1, 2, 1)
    assert (quality.precision.share, quality.recall.share) == (2 / 3, 1 / 2)
    assert (quality.right_masked.share, quality.false.share) == (1 / 2, 4 / 6)
    assert quality.precision.interval == wilson(2, 3)
    assert quality.verdicts == (Told("yes", 1, 1), Told("no", 1, 2), Told("not sure", 0, 1))
    assert (quality.debates, quality.judged, quality.unscored) == (2, 6, 0)


def test_a_failed_verdict_is_a_verdict_and_a_failed_reply_is_not() -> None:
    """Strict: `failed` hides a right reply; the reply that failed has nothing to hide."""
    error = Peer(1, shown=False, verdict="error")
    peers = _views(Peer(0, shown=False, verdict="failed"), error, Peer(2, verdict="yes"))
    quality = qualities(*parted([debate("q1", "AxB", "AAA", peers={1: peers})]))["mad"]
    assert (quality.masked_wrong, quality.masked_right, quality.kept_wrong, quality.kept_right) == (0, 1, 1, 0)
    assert quality.verdicts == (Told("yes", 0, 1), Told("failed", 1, 0))


def test_an_objective_mask_hides_what_has_no_score_unless_nothing_has() -> None:
    """Round 1: A kept, B masked, A without a score hidden. Round 2: nobody has a score, so nothing was hidden."""
    scored = _views(
        Peer(0, verdict="kept", score=-0.1),
        Peer(1, shown=False, verdict="masked", score=-0.9),
        Peer(2, shown=False, verdict="unscored"),
    )
    unscored = _views(*(Peer(seat, verdict="unscored") for seat in range(3)))
    quality = qualities(*parted([debate("q1", "ABA", "ABB", "AAA", peers={1: scored, 2: unscored})]))["mad"]
    assert (quality.masked_wrong, quality.masked_right, quality.kept_wrong, quality.kept_right) == (1, 1, 0, 1)
    assert (quality.unscored, quality.verdicts) == (3, ())


def test_a_reply_is_hidden_if_any_view_hides_it() -> None:
    """On a topology each view has a choice of its own: agent 0's shows B, agent 1's hides it."""
    peers = {1: [[Peer(1, verdict="kept")], [Peer(1, shown=False, verdict="masked"), Peer(0, verdict="kept")]]}
    for rows in (peers[1], peers[1][::-1]):
        quality = qualities(*parted([debate("q1", "AB", "AA", peers={1: rows})]))["mad"]
        assert (quality.masked_wrong, quality.kept_right, quality.judged) == (1, 1, 2)


def test_only_masks_are_listed_and_methods_are_apart() -> None:
    held = [
        _judged("q1", "ABB", "yes", "no", "yes"),
        _judged("q1", "ABB", "no", "no", "no", method="mad-m2-s-strict"),
        debate("q2", "AB", "AA", peers={1: [[Peer(1)], [Peer(0)]]}, method="mad"),
        debate("q3", "AAA", method="mad-m2-o"),  # agreed at once: nothing to hide
    ]
    found = qualities(*parted(held))
    assert list(found) == ["mad-m2-s", "mad-m2-s-strict"]
    assert [one.masked_wrong for one in found.values()] == [1, 2]
    assert qualities(*parted(held[::-1])) == found
    assert qualities([], []) == {}


def test_nothing_hidden_has_no_precision() -> None:
    quality = qualities(*parted([_judged("q1", "AAA", "yes", "yes", "yes")]))["mad-m2-s"]
    assert quality.precision.share is quality.recall.share is None
    assert (quality.precision.interval, quality.right_masked.share) == ((0.0, 1.0), 0.0)


@pytest.mark.parametrize(("method", "hidden"), [("mad-m2-s", 1), ("mad-m2-s-strict", 2)])
async def test_a_mask_that_was_held(tmp_path: Path, method: str, hidden: int) -> None:
    """Agents answer A, B and C, of which A is right, and the model says yes, no and not sure of them."""

    def said(request: Request) -> str:
        if request.kind == "judge":
            return ("YES", "NO", "NOT SURE")[
                next(n for n in range(3) if f"(({'ABC'[n]}))" in str(request.messages[-1]))
            ]
        return f"(({'ABC'[request.agent]}))"

    table = Table((ScriptedModel(said, identity="m"),), Settings(cache=":memory:", rounds=2))
    await run_study(table, [Item(Question("Which?", OPTIONS, id="q"), "A")], [method], tmp_path, seed=1)
    found = qualities(latest(tmp_path / DEBATES).values(), latest_scores(tmp_path / SCORES))
    quality = found[method]
    assert (quality.masked_wrong, quality.masked_right) == (hidden, 0)
    assert (quality.kept_wrong, quality.kept_right) == (2 - hidden, 1)
    assert quality.verdicts == (Told("yes", 1, 0), Told("no", 0, 1), Told("not sure", 0, 1))
