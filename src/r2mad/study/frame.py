"""A run as rows for an analysis of one's own: of debates, of single replies, or of what agents were shown of peers.

    to_frame(load_run("logs/table1")).groupby("method").correct.mean()

Rows of debates are made from scores alone; the others read the debates themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from typing import Any, Literal

from r2mad.errors import UsageError
from r2mad.study.runs import Run
from r2mad.study.scores import Score
from r2mad.study.table_data import variant
from r2mad.types import DebateRecord

Kind = Literal["debates", "replies", "peers"]
KINDS = ("debates", "replies", "peers")


def to_frame(run: Run, kind: Kind = "debates") -> Any:
    """The rows of `to_rows` as a pandas DataFrame.

    Raises:
        UsageError: pandas is not installed, or there is no such kind.
        StoreError: see `to_rows`.
    """
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise UsageError("a DataFrame needs pandas: pip install pandas") from error
    return pandas.DataFrame(to_rows(run, kind))


def to_rows(run: Run, kind: Kind = "debates") -> list[dict[str, Any]]:
    """A run as plain dictionaries, all with the same keys.

    `debates`: a score each, with `base`, `what` and `value` of a sweep's variant taken apart, and calls and tokens by
    kind in columns of their own. `replies`: one a reply, with whether it is right (None if it failed). `peers`: one
    for each reply that an agent was shown or not, with its memory confidence, label, weight, and whether it is right.

    Raises:
        UsageError: there is no such kind.
        StoreError: the debates cannot be read.
    """
    if kind not in KINDS:
        raise UsageError(f"no rows of {kind!r}; there are: {', '.join(KINDS)}")
    if kind == "debates":
        kinds = sorted({name for score in run.scores for name in score.spent})
        return [_debate(score, kinds) for score in run.scores]
    scores = {score.id: score for score in run.scores}
    rows = _replies if kind == "replies" else _peers
    return [row for record in run.records() for row in rows(record, scores[record.id])]


def _cell(score: Score) -> dict[str, Any]:
    """Whose a row is."""
    found = variant(score.method)
    return {
        "debate": score.id,
        "model": score.model,
        "dataset": score.dataset,
        "split": score.split,
        "group": score.group,
        "method": score.method,
        "base": found.base if found else score.method,
        "what": found.what if found else None,
        "value": found.value if found else None,
        "seed": score.seed,
        "question": score.question,
    }


def _debate(score: Score, kinds: list[str]) -> dict[str, Any]:
    row = _cell(score)
    told = {"id", "spent", "grades", "consensus", *row}
    row |= {one.name: getattr(score, one.name) for one in fields(Score) if one.name not in told}
    row |= {"rounds": len(score.grades), "grades": " ".join(score.grades)}
    row |= {"consensus_first": score.consensus[0] if score.consensus else None}
    row |= {"consensus_last": score.consensus[-1] if score.consensus else None}
    for kind in kinds:
        used = score.spent.get(kind)
        for part in ("calls", "prompt", "completion", "cached"):
            row[f"{kind}_{part}"] = getattr(used, part) if used else 0
    return row


def _right(score: Score, index: int, place: int) -> bool | None:
    """Whether a reply is right; None if it failed. One without an answer is not."""
    sign = score.grades[index][place]
    return None if sign == "x" else sign == "1"


def _replies(record: DebateRecord, score: Score) -> Iterator[dict[str, Any]]:
    for one in record.rounds:
        for place, reply in enumerate(one.replies):
            yield {
                **_cell(score),
                "round": one.index,
                "agent": reply.agent,
                "sample": reply.sample,
                "name": record.agents[reply.agent].name,
                "agent_model": record.agents[reply.agent].model,
                "answer": reply.answer,
                "class": reply.class_,
                "right": _right(score, one.index, place),
                "error": reply.error.kind if reply.error else None,
                "finish_reason": reply.finish_reason,
                "mean_logprob": reply.mean_logprob,
                "mean_top_logprob": reply.mean_top_logprob,
                "verbal_confidence": reply.verbal_confidence,
                "prompt_tokens": reply.usage.prompt_tokens,
                "completion_tokens": reply.usage.completion_tokens,
                "seconds": reply.seconds,
                "cached": reply.cached,
                "consensus": one.consensus,
                "characters": len(reply.text),
            }


def _peers(record: DebateRecord, score: Score) -> Iterator[dict[str, Any]]:
    for before, one in zip(record.rounds, record.rounds[1:], strict=False):
        places = {reply.agent: place for place, reply in enumerate(before.replies)}
        for view in one.views:
            for peer in view.peers:
                yield {
                    **_cell(score),
                    "round": one.index,
                    "agent": view.agent,
                    "peer": peer.agent,
                    "shown": peer.shown,
                    "confidence": peer.confidence,
                    "label": peer.label,
                    "weight": peer.weight,
                    "verdict": peer.verdict,
                    "score": peer.score,
                    "peer_answer": before.replies[places[peer.agent]].answer,
                    "peer_right": _right(score, before.index, places[peer.agent]),
                    "trade_off": view.trade_off,
                }
