"""The papers' tables, as far as a run has something for them: each a function from results to a table, or to None."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from r2mad.study.mask_quality import MaskQuality
from r2mad.study.metrics import Transitions, transitions
from r2mad.study.published import is_model, published
from r2mad.study.scores import Score
from r2mad.study.stats import Proportion
from r2mad.study.table_data import Results, accuracy, common, debating, grouped, misconception, plain, share, variant
from r2mad.study.table_text import Entry, Number, Table

ABLATIONS = ("r2mad", "r2mad-no-confidence", "r2mad-no-memory")
MASKS = ("mad-m2-s", "mad-m2-s-strict", "mad-m2-o", "mad-m2-auto")
LARGER = ("Llama-3.3-70B-Instruct", "GPT-4o-mini")
"""The models of Table 7."""
FIGURE_4 = "Qwen3-8B"
"""The model of Figure 4; Figure 3 has the others."""

SHARES = "Shares of debates with a right answer, failed and unparsed ones in the denominator; ties as they were broken."
INTERVALS = "Intervals at 95 % (Wilson); under several seeds they allow for debates on one question belonging together."
AVERAGES = "The average is the plain mean of the columns; a dash where one is missing, and no interval."
SUBSET = (
    "The subset: questions on which more than half of mad's agents are not right in round 0. All rows of one model and "
    "data set are on the same n of them, those that every method there has answered (under several seeds: pairs of "
    "question and seed)."
)
CHOSEN = (
    "The subset is chosen by the opening that mad shares with most debates. A method with an opening of its own, as sc "
    "has, was not chosen to be wrong at first, so it has the easier part here."
)


def overall(held: Results) -> Table | None:
    """Table 1: accuracy of every method, and the average over data sets."""
    notes = (SHARES, INTERVALS, AVERAGES)
    return _grid(held, "table1", "Overall accuracy (Table 1)", plain(held.methods), held.models, notes)


def ablation(held: Results) -> Table | None:
    """Table 2: r2mad without one of its two components."""
    there = [name for name in ABLATIONS if name in held.methods]
    if not set(there) - {"r2mad"}:
        return None
    notes = (SHARES, INTERVALS, AVERAGES, "Whether two of them differ is told by the paired comparisons.")
    return _grid(held, "table2", "Ablation of components (Table 2)", there, held.models, notes)


def policies(held: Results) -> Table | None:
    """Table 3: retrieval policies, a column a model and data set."""
    rows = published("table3").rows
    there = [name for name in rows if name in held.methods]
    if not set(there) - {"r2mad"}:
        return None
    places = [
        (model, dataset)
        for model in held.models
        for dataset in held.datasets
        if any(held.of(model, dataset, name) for name in there if name != "r2mad")
    ]
    body: list[tuple[Entry, ...]] = []
    for name in sorted(there, key=lambda name: name == "r2mad"):
        values = [accuracy(held, model, dataset, name) for model, dataset in places]
        body.append((rows[name], *values, _average(values)))
    columns = ("policy", *(f"{model} on {dataset}" for model, dataset in places), "average")
    notes = (SHARES, INTERVALS, AVERAGES, "debate-state is the policy of r2mad itself.")
    return Table("table3", "Retrieval policies (Table 3)", columns, tuple(body), notes)


def stances(held: Results) -> Table | None:
    """Tables 4 and 8: how agents' stances move on the shared-misconception subset."""
    rows: list[tuple[Entry, ...]] = []
    for model, dataset, there in held.blocks():
        methods = [name for name in plain(there) if debating(held.of(model, dataset, name))]
        subset = misconception(held, model, dataset, methods)
        if subset is None or not subset.pairs:
            continue
        for name in methods:
            moved = moves(subset.scores[name])
            rows.append((model, dataset, name, subset.pairs, *_moved(moved.to_wrong), *_moved(moved.to_right)))
    if not rows:
        return None
    columns = ("model", "data set", "method", "n", "C→W", "of right", "W→C", "of wrong")
    notes = (
        SUBSET,
        "C→W: share of agents' right answers that are not right a round later (less is better); W→C: the reverse "
        "(more is better). No answer is not right. A debate that ended early has no later round.",
        "Intervals at 95 % (Wilson) take moves as independent; those of one debate are not, so they are too narrow.",
    )
    title = "Stance transitions on the shared-misconception subset (Tables 4 and 8)"
    return Table("table4", title, columns, tuple(rows), notes)


def moves(scores: Iterable[Score]) -> Transitions:
    """Agents' moves over many debates."""
    return sum((transitions(one) for one in scores), Transitions())


def _moved(found: Proportion) -> tuple[Number, int]:
    return proportion(found), found.whole


def proportion(found: Proportion) -> Number:
    """So many of so many as a share with Wilson's interval; a dash of nothing."""
    if found.share is None:
        return Number(None)
    low, high = found.interval
    return Number(found.share, low=low, high=high)


def masks(held: Results) -> Table | None:
    """Table 5: strategies of masking."""
    there = [name for name in MASKS if name in held.methods]
    if len(there) < 2:
        return None
    return _grid(held, "table5", "Strategies of masking (Table 5)", there, held.models, (SHARES, INTERVALS, AVERAGES))


def paths(held: Results) -> Table | None:
    """Table 6: self-consistency by the number of its samples."""
    there = sorted((name for name in held.methods if samples(name)), key=lambda name: (samples(name) or 0, name))
    if len({samples(name) for name in there}) < 2:
        return None
    title = "Self-consistency by number of paths (Table 6)"
    return _grid(held, "table6", title, there, held.models, (SHARES, INTERVALS, AVERAGES))


def samples(method: str) -> int | None:
    """How many samples a self-consistency has; None for another method."""
    if method == "sc":
        return 9
    number = method.removeprefix("sc-")
    return int(number) if method.startswith("sc-") and number.isdecimal() else None


def larger(held: Results) -> Table | None:
    """Table 7: the paper's two larger models."""
    models = [model for model in held.models if any(is_model(model, name) for name in LARGER)]
    there = [name for name in ("cot", "mad", "r2mad") if name in held.methods]
    return _grid(held, "table7", "Larger models (Table 7)", there, models, (SHARES, INTERVALS, AVERAGES))


def retrieval_alone(held: Results) -> Table | None:
    """Table 9: against one agent that is shown cases from the same memory."""
    if "icl-cot" not in held.methods:
        return None
    methods = [name for name in ("cot", "icl-cot", "r2mad") if name in held.methods]
    rows: list[tuple[Entry, ...]] = []
    values: list[list[Number]] = []
    for model, dataset, there in held.blocks():
        if "icl-cot" in there:
            values.append([accuracy(held, model, dataset, name) for name in methods])
            rows.append((model, dataset, *values[-1]))
    if len(rows) > 1:
        rows.append(("average", "", *(_average(column) for column in zip(*values, strict=True))))
    notes = (SHARES, INTERVALS, AVERAGES.replace("columns", "rows"))
    return Table(
        "table9", "Against one agent with retrieval (Table 9)", ("model", "data set", *methods), tuple(rows), notes
    )


def tokens_and_time(held: Results) -> Table | None:
    """Table 10: tokens and time that a question takes."""
    rows: list[tuple[Entry, ...]] = []
    for model, dataset, there in held.blocks():
        for name in plain(there):
            scores = held.of(model, dataset, name)
            spent = [mean_tokens(scores, kind) for kind in ("debate", "summary", "judge")]
            waited, seconds = (fmean(getattr(one, what) for one in scores) for what in ("waited", "seconds"))
            rows.append(
                (
                    model,
                    dataset,
                    name,
                    len(scores),
                    *_whole(spent),
                    Number(waited, "plain", digits=2),
                    Number(seconds, "plain", digits=2),
                )
            )
    if not rows:
        return None
    columns = (
        "model",
        "data set",
        "method",
        "n",
        "debate tokens",
        "summary tokens",
        "judge tokens",
        "seconds of calls",
        "seconds",
    )
    notes = (
        "Means a debate. Tokens are those read and written, what was shared with other methods or came from the cache "
        "among them: what the method alone would take.",
        "Seconds of calls add up what each call took when it was made; seconds are those on the wall, in which debates "
        "of a batch overlap. Neither can be compared between machines.",
    )
    return Table("table10", "Cost of a question (Table 10)", columns, tuple(rows), notes)


def mean_tokens(scores: Sequence[Score], kind: str) -> float:
    """Tokens read and written a debate, in calls of one kind."""
    return fmean(one.spent[kind].prompt + one.spent[kind].completion if kind in one.spent else 0 for one in scores)


def _whole(values: Iterable[float]) -> list[Number | None]:
    return [Number(value, "plain", digits=0) if value else None for value in values]


def misconceptions(held: Results) -> list[Table]:
    """Figures 3 and 4: accuracy on the shared-misconception subset."""
    found = []
    for id, title, wanted in (
        ("figure3", "Accuracy on the shared-misconception subset (Figure 3)", False),
        ("figure4", f"Accuracy on the shared-misconception subset, {FIGURE_4} (Figure 4)", True),
    ):
        rows: list[tuple[Entry, ...]] = []
        for model, dataset, there in held.blocks():
            if is_model(model, FIGURE_4) != wanted:
                continue
            subset = misconception(held, model, dataset, plain(there))
            if subset is None or not subset.pairs:
                continue
            for name in plain(there):
                right = share(grouped(subset.scores[name], lambda one: float(one.correct)))
                rows.append(
                    (
                        model,
                        dataset,
                        name,
                        subset.pairs,
                        right,
                        share(grouped(subset.scores[name], lambda one: one.opening)),
                    )
                )
        if rows:
            columns = ("model", "data set", "method", "n", "accuracy", "vote on round 0")
            found.append(Table(id, title, columns, tuple(rows), (SUBSET, CHOSEN, SHARES, INTERVALS)))
    return found


def masked_debate(held: Results) -> Table | None:
    """The main table of the paper on masking: accuracy, and tokens relative to mad."""
    there = [name for name in ("cot", "sc-6", "sc", "mad", *MASKS) if name in held.methods]
    if not set(there) & set(MASKS):
        return None
    datasets = [
        one for one in held.datasets if any(held.of(model, one, name) for model in held.models for name in MASKS)
    ]
    rows: list[tuple[Entry, ...]] = []
    for model in held.models:
        for name in there:
            cells: list[Entry] = []
            for dataset in datasets:
                cells += [accuracy(held, model, dataset, name), relative_tokens(held, model, dataset, name)]
            if any(held.of(model, dataset, name) for dataset in datasets):
                rows.append((model, name, *cells))
    columns = ("model", "method", *(name for dataset in datasets for name in (dataset, f"{dataset} × tokens")))
    notes = (SHARES, INTERVALS, "× tokens: tokens over those of mad, on the questions that both have answered.")
    return Table("mad-m2", "Debate with masked memory", columns, tuple(rows), notes)


def relative_tokens(held: Results, model: str, dataset: str, method: str) -> Number:
    """A method's tokens over those of mad, on the same questions; a dash where there are none."""
    if not held.of(model, dataset, method) or not held.of(model, dataset, "mad"):
        return Number(None)
    both = common(held, model, dataset, list(dict.fromkeys((method, "mad"))))
    base = sum(one.tokens for one in both.scores["mad"])
    return Number(sum(one.tokens for one in both.scores[method]) / base if base else None, "plain", digits=2)


def masks_found(found: Mapping[tuple[str, str, str], MaskQuality]) -> Table | None:
    """The third figure of the paper on masking: whether masks hide what is false, by (model, data set, method)."""
    rows: list[tuple[Entry, ...]] = [
        (*where, one.judged, *map(proportion, (one.precision, one.recall, one.right_masked, one.false)))
        for where, one in found.items()
        if one.judged
    ]
    if not rows:
        return None
    columns = ("model", "data set", "method", "replies judged", "precision", "recall", "right hidden", "false in all")
    notes = (
        "precision: share of hidden replies that are false; recall: share of false replies that are hidden. Whatever "
        "hides at random has the precision 'false in all'. One mask serves all agents, so each reply counts once.",
        "Intervals at 95 % (Wilson) take replies as independent; those of one debate are not, so they are too narrow.",
    )
    return Table("mask-quality", "What masks hide", columns, tuple(rows), notes)


def sweeps(held: Results) -> list[Table]:
    """One table a method and what was varied of it: `base[what=value]`, and the base itself as it is by default."""
    families: dict[tuple[str, str], list[str]] = {}
    for method in held.methods:
        if found := variant(method):
            families.setdefault((found.base, found.what), []).append(method)
    tables = []
    for (base, what), methods in families.items():
        there = [base, *methods] if base in held.methods else methods
        title = f"{base} by {what.replace('_', ' ')}"
        notes = (SHARES, INTERVALS, AVERAGES, f"{base} alone is as it is by default, or as the study's settings say.")
        table = _grid(held, f"sweep-{base}-{what}", title, there, held.models, notes)
        tables += [table] if table else []
    return tables


def _grid(
    held: Results, id: str, title: str, methods: Sequence[str], models: Sequence[str], notes: tuple[str, ...]
) -> Table | None:
    """Models and methods by data sets, with the average over these; data sets that none of them has are left out."""
    datasets = [d for d in held.datasets if any(held.of(m, d, name) for m in models for name in methods)]
    rows: list[tuple[Entry, ...]] = []
    for model in models:
        for name in methods:
            values = [accuracy(held, model, dataset, name) for dataset in datasets]
            if any(value.value is not None for value in values):
                average = (_average(values),) if len(datasets) > 1 else ()
                rows.append((model, name, *values, *average))
    if not rows:
        return None
    columns = ("model", "method", *datasets, *(("average",) if len(datasets) > 1 else ()))
    kept = notes if len(datasets) > 1 else tuple(note for note in notes if note is not AVERAGES)
    return Table(id, title, columns, tuple(rows), kept)


def _average(values: Sequence[Number]) -> Number:
    """The plain mean; a dash if one is missing, and a mark if one is not whole."""
    known = [one.value for one in values if one.value is not None]
    if len(known) < len(values) or not known:
        return Number(None)
    return Number(fmean(known), mark="[partial]" if any(one.mark for one in values) else "")
