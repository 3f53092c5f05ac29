"""Runs written down by hand: scores of debates that are a word a round, and folders of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from r2mad.study.records import DEBATES, ITEMS, SCORES, Writer
from r2mad.study.runs import Run
from r2mad.study.scores import Score
from r2mad.study.studies import STUDY
from r2mad.types import DebateRecord, Item
from tests.study.by_hand import Held, debate

MODEL, SET = "fake/one", "made"


def scored(name: str, *rounds: str, method: str = "mad", seed: int = 1, gold: str = "A", **changes: Any) -> Score:
    """The score of a debate on question `name`; `A` is right if nothing else is said.

    Args:
        name: the question's id.
        rounds: one letter a reply; `-` for no answer, `x` for a reply that failed.
        method: its method.
        seed: its seed.
        gold: the right letter.
        changes: fields of the score, `dataset` and `model` among them.
    """
    _, score = debate(name, *rounds, gold=gold, method=method, seed=seed)
    changes = {"dataset": SET, "split": "test", **changes}
    id = f"{changes.get('model', MODEL)} {changes['dataset']} {score.id}"
    return replace(score, **{"id": id, **changes})


def run_of(*scores: Score, study: dict[str, Any] | None = None) -> Run:
    """A run that is in no folder."""
    return Run(Path("RUN"), study, list(scores))


def write_run(
    folder: Path, held: Sequence[Held], *, items: Sequence[Item] = (), study: dict[str, Any] | None = None
) -> Path:
    """A run's folder, with a study.json of this configuration if there is one."""
    for path, rows in ((DEBATES, [one for one, _ in held]), (SCORES, [two for _, two in held]), (ITEMS, list(items))):
        writer = Writer[DebateRecord | Score | Item](folder / path)
        try:
            writer.append_now(*rows)
        finally:
            writer.close()
    if study is not None:
        (folder / STUDY).write_text(json.dumps({"schema": 1, **study}), encoding="utf-8")
    return folder
