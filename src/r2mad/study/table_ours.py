"""Tables that no paper has and every study should: cost, errors, ties, spread over seeds, what debating itself gains,
self-consistency at the same budget, groups of questions, and every pair of methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from r2mad.study.comparison import compare, outcome
from r2mad.study.contrasts import Contrast, every_pair
from r2mad.study.metrics import Cell, Metrics, measure
from r2mad.study.scores import Score
from r2mad.study.stats import Proportion
from r2mad.study.table_data import Results, common, debating, grouped, partly, plain, share
from r2mad.study.table_paper import INTERVALS, samples
from r2mad.study.table_text import Entry, Number, Table
from r2mad.study.yardsticks import AtBudget, BudgetPoint, at_equal_budget, several_seeds

Row = tuple[Entry, ...]
PLACE = ("model", "data set", "method")


def _table(
    held: Results,
    head: tuple[str, str],
    columns: tuple[str, ...],
    row: Callable[[Metrics, Sequence[Score]], Sequence[Entry] | None],
    notes: tuple[str, ...],
) -> Table | None:
    """A table with a row for each cell that has something to say.

    Args:
        held: the results.
        head: id and title.
        columns: behind the cell's own.
        row: a cell's entries, or None to leave it out.
        notes: of the table.
    """
    rows = []
    for model, dataset, there in held.blocks():
        for name in there:
            scores = held.of(model, dataset, name)
            entries = row(measure(Cell(model, dataset, name), scores), scores)
            if entries is not None:
                rows.append((model, dataset, name, *entries))
    return Table(*head, (*PLACE, *columns), tuple(rows), notes) if rows else None


def cost(held: Results) -> Table | None:
    """Calls and tokens a debate, by kind, and how much of it was shared."""

    def row(one: Metrics, scores: Sequence[Score]) -> Sequence[Entry]:
        calls = [_mean(one.calls_by_kind.get(kind, 0.0)) for kind in ("debate", "summary", "judge")]
        spent = [used for score in scores for used in score.spent.values()]
        read, written, cached = (
            sum(getattr(used, part) for used in spent) / one.debates for part in ("prompt", "completion", "cached")
        )
        shared = one.shared_tokens or 0.0
        return (
            one.debates, *calls, _mean(read, 0), _mean(written, 0), _mean(cached, 0),
            _mean(one.shared or 0.0), _mean(shared, 0), _mean((one.tokens or 0.0) - shared, 0),
        )  # fmt: skip

    columns = (
        "n", "calls of agents", "for summaries", "for judgements", "tokens read", "tokens written",
        "read from the server's cache", "calls shared", "tokens shared", "tokens not shared",
    )  # fmt: skip
    notes = (
        "Means a debate. Calls and tokens are what the method alone would take; shared ones had been made for another "
        "method, or in an earlier run, and were not made again.",
    )
    return _table(held, ("cost", "Calls and tokens"), columns, row, notes)


def _mean(value: float, digits: int = 1) -> Number:
    return Number(value, "plain", digits=digits)


def errors(held: Results) -> Table | None:
    """What went wrong, counted and as rates."""

    def row(one: Metrics, scores: Sequence[Score]) -> Sequence[Entry]:
        whole = [_rate(part, one.debates) for part in (one.failed, one.partial, one.degraded, one.ties)]
        replies = [_rate(part, one.replies) for part in (one.errors, one.unparsed, one.truncated)]
        return one.debates, *whole, one.replies, *replies, partly(held, one.cell.dataset, scores)

    columns = (
        "debates", "failed", "cut short", "degraded", "tied",
        "replies", "failed replies", "without an answer", "truncated", "missing",
    )  # fmt: skip
    notes = (
        "Each as a share, with the count. All of these stay in every denominator: a failed debate, or one without an "
        "answer, is wrong. Degraded: a call failed and the debate went on without it.",
    )
    return _table(held, ("errors", "Errors, unparsed answers and ties"), columns, row, notes)


def _rate(part: int, whole: int) -> Number:
    return Number(part / whole if whole else None, digits=3, mark=f"[{part}]" if whole else "")


def ties(held: Results) -> Table | None:
    """Accuracy as ties were broken, and what it would be if each were broken evenly."""

    def row(one: Metrics, scores: Sequence[Score]) -> Sequence[Entry] | None:
        fair = share(grouped(scores, lambda score: score.expected))
        luck = None if one.expected is None or one.right.share is None else one.right.share - one.expected
        return one.debates, one.ties, Number(one.right.share), fair, Number(luck, "points")

    notes = (
        "A tie is broken by a hash of seed and question, the same in every process. Expected: the share of the tied "
        "answers that are right, in place of the one that was drawn. Luck: the first less the second, in points.",
        INTERVALS,
    )
    columns = ("n", "ties", "accuracy", "expected", "luck")
    return _table(held, ("ties", "Expected accuracy over ties"), columns, row, notes)


def seeds(held: Results) -> Table | None:
    """Accuracy of each seed, where there are several."""
    if held.seeds < 2:
        return None

    def row(one: Metrics, scores: Sequence[Score]) -> Sequence[Entry]:
        mean, sd, n = several_seeds(one.by_seed)
        ends = (Number(min(one.by_seed)), Number(max(one.by_seed)))
        return n, Number(mean), Number(sd), *ends, partly(held, one.cell.dataset, scores)

    notes = ("Standard deviation over seeds (n − 1): how far sampling anew moves accuracy on the same questions.",)
    columns = ("seeds", "mean", "sd", "least", "most", "missing")
    return _table(held, ("seeds", "Spread over seeds"), columns, row, notes)


def consensus(held: Results) -> Table | None:
    """Mean consensus after each round."""
    most = max((len(score.consensus) for score in held.scores()), default=0)

    def row(one: Metrics, scores: Sequence[Score]) -> Sequence[Entry] | None:
        if not debating(scores):
            return None
        by_round: list[Entry] = []
        for index in range(most):
            reached = sum(len(score.consensus) > index for score in scores)
            by_round.append(Number(one.consensus[index], mark=f"[{reached}]") if reached else None)
        return one.debates, *by_round

    notes = (
        "Share of all agents that hold the most popular answer; the mean over the debates that held the round, whose "
        "number is in brackets. Debates end when all agree, so later rounds are those that still disagreed.",
    )
    columns = ("n", *(f"round {index}" for index in range(most)))
    return _table(held, ("consensus", "Consensus by round"), columns, row, notes)


def gain(held: Results) -> Table | None:
    """What debate adds to a vote on its own opening."""

    def row(one: Metrics, scores: Sequence[Score]) -> Sequence[Entry] | None:
        if not debating(scores):
            return None
        before, after = (grouped(scores, value) for value in (lambda s: s.opening, lambda s: s.expected))
        found = compare(after, before)
        moved = one.transitions
        difference = Number(found.difference, "points", found.low, found.high)
        return one.debates, share(before), share(after), difference, Number(found.p, digits=3), moved.won, moved.lost

    notes = (
        "Both with ties broken evenly. The gain is paired, in points, with its 95 % interval and an exact sign-flip p "
        "that is not corrected for the other rows. Won, lost: agents' answers that became right, or ceased to be.",
        INTERVALS,
    )
    columns = ("n", "vote on round 0", "after debate", "gain", "p", "won", "lost")
    return _table(held, ("gain", "What debating gains"), columns, row, notes)


def equal_budget(held: Results) -> Table | None:
    """Each method against self-consistency at the same mean budget, in calls and in tokens."""
    rows: list[Row] = []
    for model, dataset, there in held.blocks():
        paths = {samples(name) or 1: name for name in there if samples(name) or name == "cot"}
        if set(paths) <= {1}:
            continue
        for name in plain(there):
            if name not in paths.values() and not samples(name):
                both = common(held, model, dataset, [name, *paths.values()])
                if both.pairs:
                    sides = {count: both.scores[path] for count, path in paths.items()}
                    rows.append((model, dataset, name, both.pairs, *_at_budgets(both.scores[name], sides)))
    if not rows:
        return None
    columns = (*PLACE, "n", "accuracy")
    more = [(what, f"sc at equal {what}", f"method − sc at equal {what}") for what in ("calls", "tokens")]
    notes = (
        "Self-consistency at the method's own mean budget, on the same n debates, interpolated between two numbers of "
        "samples that lie around it (cot is one sample); a dash where none lies on one side.",
        "The difference is paired by question, in points with its 95 % interval, not corrected for the other rows.",
        INTERVALS,
    )
    return Table(
        "equal-budget",
        "Against self-consistency at the same budget",
        (*columns, *more[0], *more[1]),
        tuple(rows),
        notes,
    )


def _at_budgets(scores: Sequence[Score], sides: dict[int, Sequence[Score]]) -> list[Entry]:
    right = grouped(scores, lambda score: float(score.correct))
    entries: list[Entry] = [share(right)]
    for what in ("calls", "tokens"):
        budget = fmean(getattr(score, what) for score in scores)
        points: dict[float, BudgetPoint] = {}
        for count, rows in sorted(sides.items()):
            taken = fmean(getattr(score, what) for score in rows)
            points[taken] = BudgetPoint(count, taken, fmean(score.correct for score in rows))
        found = at_equal_budget(list(points.values()), budget)
        entries += [_mean(budget, 1 if what == "calls" else 0), *_against(right, sides, found)]
    return entries


def _against(right: dict[str, list[float]], sides: dict[int, Sequence[Score]], found: AtBudget) -> list[Entry]:
    """(self-consistency's accuracy at the budget, the method's less that)."""
    if found.accuracy is None or found.below is None or found.above is None or found.weight is None:
        outside = found.below or found.above
        side = "above" if found.below else "below"
        return [Number(None, mark=f"[{side} sc-{outside.samples}]" if outside else ""), Number(None)]
    low, high = (
        grouped(sides[point.samples], lambda score: float(score.correct)) for point in (found.below, found.above)
    )
    weight = found.weight
    mixed = {
        key: [(1 - weight) * a + weight * b for a, b in zip(row, high[key], strict=True)] for key, row in low.items()
    }
    apart = compare(right, mixed)
    return [Number(found.accuracy), Number(apart.difference, "points", apart.low, apart.high)]


def groups(held: Results) -> Table | None:
    """Accuracy by groups of questions, such as subjects, where a data set has several."""
    rows: list[Row] = []
    methods = plain(held.methods)
    for model, dataset, there in held.blocks():
        named = sorted({score.group for name in there for score in held.of(model, dataset, name)})
        for group in named if len(named) > 1 else ():
            entries: list[Entry] = []
            asked: set[str] = set()
            for name in methods:
                scores = [score for score in held.of(model, dataset, name) if score.group == group]
                asked |= {score.question for score in scores}
                right = Proportion(sum(score.correct for score in scores), len(scores))
                entries.append(Number(right.share, mark=f"[{right.part}/{right.whole}]" if scores else ""))
            rows.append((model, dataset, group or "(none)", len(asked), *entries))
    if not rows:
        return None
    notes = ("Right debates of all in brackets. Groups are small, and their figures swing: see the counts.",)
    return Table("groups", "Accuracy by group", ("model", "data set", "group", "n", *methods), tuple(rows), notes)


def pairs(held: Results) -> Table | None:
    """Every pair of methods, corrected for all of them together; variants of a sweep are left to `r2mad compare`."""
    return pairs_table(every_pair(held, plain(held.methods)))


def pairs_table(found: Sequence[Contrast], title: str = "Every pair of methods") -> Table | None:
    """Comparisons of one family as a table."""
    rows: list[Row] = []
    for one in found:
        row = one.comparison
        alone = len(row.only_in_one) + len(row.only_in_other)
        difference = Number(row.difference, "points", row.low, row.high)
        tests = [None if p is None else Number(p, "plain", digits=4) for p in (row.p, row.adjusted)]
        left: Entry = f"{alone} questions, {one.unpaired} answers" if alone or one.unpaired else ""
        rows.append(
            (
                one.model,
                one.dataset,
                *row.names,
                row.pairs,
                difference,
                row.only_one,
                row.only_other,
                *tests,
                outcome(row),
                left,
            )
        )
    columns = (
        "model", "data set", "one", "other", "n", "one − other", "only one right", "only other right", "p", "Holm's p",
        "so one is", "left out",
    )  # fmt: skip
    notes = (
        "On questions that both have answered, paired by question and seed; in points, with the 95 % interval of each "
        "pair alone. p: exact sign-flip test, which for a single seed is McNemar's. Holm's p allows for all rows of "
        "this table that have a p.",
        "better, worse: the interval leaves out 0 and Holm's p is below 0.05. equal: the whole interval lies within ±2 "
        "points. same: no question tells them apart. few: fewer than six questions. unclear: all else, which is no "
        "sign that they are equal.",
    )
    return Table("pairs", title, columns, tuple(rows), notes) if rows else None
