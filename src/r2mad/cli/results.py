"""A study's numbers on the terminal, in plain columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from r2mad.cli.common import printable

if TYPE_CHECKING:
    from r2mad.study.estimate import Estimate
    from r2mad.study.metrics import Metrics


def print_results(measured: Sequence[Metrics], out: TextIO) -> None:
    """A line a cell: accuracy with its interval, gain, transitions, what went wrong, what it took."""
    width = max((len(one.cell.method) for one in measured), default=6)
    place = ""
    for one in measured:
        where = f"{one.cell.model} on {one.cell.dataset}"
        if where != place:
            place = where
            print(f"\n{printable(where)}: {one.questions} questions, {one.seeds} seed{'s' * (one.seeds > 1)}", file=out)
            print(
                f"{'method':<{width}}  right        95 % interval   gain  rescued    lost  unparsed  failed  ties "
                f" calls  tokens",
                file=out,
            )
        low, high = one.right.interval
        moved = one.transitions
        print(
            f"{printable(one.cell.method):<{width}}  {f'{one.right.part}/{one.right.whole}':<11}"
            f"{f'{low:.1%} to {high:.1%}':>16} {_signed(one.gain)} {f'{moved.won}/{moved.wrong_before}':>8} "
            f"{f'{moved.lost}/{moved.right_before}':>7} {f'{one.unparsed}/{one.replies}':>9} {one.failed:>7} "
            f"{one.ties:>5} {one.calls or 0:>6.1f} {one.tokens or 0:>7.0f}",
            file=out,
        )
    if measured:
        print(
            "\ngain: points over a plain vote on round 0; rescued, lost: agents' answers that became right, or",
            file=out,
        )
        print(
            "ceased to be, from one round to the next, of those that were not, or were; calls, tokens: a debate",
            file=out,
        )


def _signed(gain: float | None) -> str:
    return f"{'':>6}" if gain is None else f"{100 * gain:>+6.1f}"


def print_estimate(rows: Sequence[Estimate], reply_tokens: int, out: TextIO) -> None:
    """What a study would take at most, a line a cell, and in all."""
    width = max((len(row.method) for row in rows), default=6)
    for row in rows:
        cost = f"  cost {row.cost:.2f}" if row.cost is not None else ""
        print(
            f"{printable(row.model)}  {printable(row.dataset)}  {row.method:<{width}}  {row.debates:>6} debates "
            f"{row.calls:>8} calls {row.prompt_tokens:>11} tokens read {row.completion_tokens:>10} written{cost}",
            file=out,
        )
    costs = [row.cost for row in rows if row.cost is not None]
    paid = f", cost {sum(costs):.2f}" if costs else ""
    print(
        f"At most: {sum(row.debates for row in rows)} debates, {sum(row.calls for row in rows)} calls, "
        f"{sum(row.prompt_tokens for row in rows)} tokens read, {sum(row.completion_tokens for row in rows)} written"
        f"{paid}",
        file=out,
    )
    print(
        f"if no debate ends early, no call is shared, and a reply has {reply_tokens} tokens (--reply-tokens).", file=out
    )
