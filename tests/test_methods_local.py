"""Every method on the embedded model: real log-probabilities, real verdicts, real stated confidence, a real memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2mad.api import open_table
from r2mad.methods import METHODS, find_method
from r2mad.settings import Settings
from r2mad.study.datasets import load
from r2mad.study.demo import EMBEDDED, handful, make_memory
from r2mad.study.masking import choose_mask, with_choice

ALIKE = {"sc", "sc-6", "sc-9", *(name for name in METHODS if name.startswith("r2mad-"))} - {
    "r2mad-doubt",
    "r2mad-selective",
    "r2mad-no-memory",
}
"""Methods that ask a model nothing which another one here does not; they would only take time."""


@pytest.mark.slow
@pytest.mark.timeout(900)  # about two hundred calls of a model that writes a hundred tokens a second
async def test_each_method_runs_on_the_embedded_model(tmp_path: Path) -> None:
    memory = f"sqlite:{tmp_path / 'memory.db'}"
    settings = Settings(cache=":memory:", memory=memory)
    await make_memory(EMBEDDED, memory, settings, 1)
    question = handful(3)[0].question
    async with open_table(EMBEDDED, settings) as table:
        train = [item for item in load("starter:train") if item.group == "everyday"][3::7]  # some right, some wrong
        choice = await choose_mask(table, train)
        assert choice.right * choice.wrong > 0
        assert choice.objective is not None  # it sends log-probabilities
        assert choice.items == len(train)
        held = {}
        for name in [name for name in METHODS if name not in ALIKE]:
            method = find_method(name)
            method = with_choice(method, choice) if method.needs_choice else method
            method = (
                method.sized(rounds=2) if method.rounds > 2 else method
            )  # a third round asks nothing of another kind
            held[name] = record = await table.hold(question, method, seed=3)
            assert not record.degraded, name
            assert record.stopped != "failed"
            assert sum(record.calls.values()) <= method.calls
    scores = [z.mean_logprob for one in held["mad-m2-o"].rounds for z in one.replies]
    assert all(score is not None and score <= 0 for score in scores)
    assert len(held["mad-diverse"].rounds[0].candidates) == 10
    assert held["mad-judge"].judgements[-1].purpose == "vote"
    stated = [z.verbal_confidence for one in held["mad-confident"].rounds for z in one.replies]
    assert all(value is None or 0 <= value <= 10 for value in stated)
