"""A run from its folder, or from the folders of its shards: its scores, and its debates one by one.

    run = load_run("logs/table1")       # logs/table1-shard-1-of-4 and its like, where that is not there itself

A folder may hold more than its study asks for now: a method that was taken out again, another seed, a question in an
older wording. Only the cells of `study.json` and the debates of `debates.ids` count then, and what was left out is
counted. A folder without one counts as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2mad.errors import StoreError, UsageError
from r2mad.study.datasets import parse_name
from r2mad.study.records import DEBATES, ITEMS, SCORES, Head, read
from r2mad.study.scores import Score, latest_scores
from r2mad.study.studies import HOW, IDS, read_study
from r2mad.types import DebateRecord, Item

_SHARD = re.compile(r"(?P<name>.+)-shard-(?P<part>\d+)-of-(?P<parts>\d+)")
_JOINED = ("datasets", "methods", "models", "seeds", "sweeps")
"""What of a configuration is put together from shards; of the rest the first one's is kept."""


@dataclass(frozen=True, slots=True)
class Run:
    """What tables and comparisons are made from."""

    path: Path
    """As it was named."""
    study: dict[str, Any] | None
    """Its study.json, that of its first shard with what the others add; None where there is none."""
    scores: list[Score]
    """Those of the study's cells, the last line of each debate counting, in the order of the files."""
    folders: tuple[Path, ...] = ()
    left_out: int = 0
    """Scores in the files that belong to no cell of the study."""
    missing: tuple[str, ...] = ()
    """Shards that are not there."""

    def records(self, only: Set[str] | None = None) -> Iterator[DebateRecord]:
        """The debates that have a score here, or those of them in `only`: read one by one, the last line of each.

        Raises:
            StoreError: see `r2mad.study.records.read`.
        """
        yield from last_debates(self.folders, {score.id for score in self.scores if only is None or score.id in only})

    def items(self) -> dict[str, Item]:
        """The questions with their golds, by id.

        Raises:
            StoreError: see `r2mad.study.records.read`.
        """
        return {item.question.id: item for folder in self.folders for item in read(Item, folder / ITEMS)}


def last_debates(folders: Sequence[Path], only: Set[str] | None = None) -> Iterator[DebateRecord]:
    """The debates of folders, or those in `only`, one by one: the last line of each id, in the order of these lines.

    Raises:
        StoreError: see `r2mad.study.records.read`.
    """
    last = {}
    for folder in folders:
        for place, head in enumerate(read(Head, folder / DEBATES)):
            if only is None or head.id in only:
                last[head.id] = folder, place
    places = set(last.values())
    for folder in folders:
        if any(where == folder for where, _ in places):
            for place, record in enumerate(read(DebateRecord, folder / DEBATES)):
                if (folder, place) in places:
                    yield record


def load_run(path: str | Path) -> Run:
    """A run, or the union of its shards.

    Raises:
        StoreError: there is none, or a file of it is damaged.
        UsageError: its shards are no shards of one study.
    """
    return load_runs([path])


def load_runs(paths: Sequence[str | Path]) -> Run:
    """Several folders as one run, such as the shards of a study that were moved about.

    Raises:
        StoreError: one of them is no run, or a file is damaged.
        UsageError: they were held under different settings, and no table must mix these.
    """
    named = [Path(path) for path in paths]
    folders = tuple(dict.fromkeys(folder for path in named for folder in folders_of(path)))
    studies = [(folder, study) for folder in folders if (study := read_study(folder)) is not None]
    _check_alike(studies)
    known = {score.id: score for folder in folders for score in latest_scores(folder / SCORES)}
    # the same debate in two folders was held twice, or copied: the later folder's counts
    found = list(known.values())
    whole = len(studies) == len(folders)
    study = _joined([one for _, one in studies]) if studies and whole else None
    belongs = _belongs(study, found) if study else None
    ids = _asked_for(folders)
    scores = [score for score in found if (belongs is None or belongs(score)) and (ids is None or score.id in ids)]
    return Run(named[0], study, scores, folders, len(found) - len(scores), _missing(folders))


def _asked_for(folders: Sequence[Path]) -> set[str] | None:
    """The debates of the studies as they were last run; None where a folder does not say.

    A folder may hold a question in an older wording, or debates that read a memory before it grew: a table that counted
    both would count a question twice.
    """
    ids: set[str] = set()
    for folder in folders:
        try:
            ids |= set((folder / IDS).read_text(encoding="utf-8").split())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StoreError(f"{folder / IDS}: cannot be read: {error}") from error
    return ids


def folders_of(path: Path) -> list[Path]:
    """The folders that a run's name stands for: itself, or its shards that lie where it would.

    Raises:
        StoreError: there is nothing.
        UsageError: there are shards of several divisions.
    """
    if (path / SCORES).is_file() or (path / DEBATES).is_file():
        return [path]
    shards = []
    if not path.exists() and path.parent.is_dir():
        for folder in path.parent.iterdir():
            match = _SHARD.fullmatch(folder.name)
            if match and match["name"] == path.name and (folder / SCORES).is_file():
                shards.append((int(match["parts"]), int(match["part"]), folder))
    if not shards:
        raise StoreError(f"{path}: no run there, for it has no {SCORES}")
    if len({parts for parts, _, _ in shards}) > 1:
        raise UsageError(f"{path} has shards of several divisions: name the folders that belong together")
    return [folder for _, _, folder in sorted(shards)]


def _missing(folders: Iterable[Path]) -> tuple[str, ...]:
    """The shards that should lie beside those that are there."""
    matches = [match for folder in folders if (match := _SHARD.fullmatch(folder.name))]
    there = {match[0] for match in matches}
    expected = {
        f"{match['name']}-shard-{part}-of-{match['parts']}": None
        for match in matches
        for part in range(1, int(match["parts"]) + 1)
    }
    return tuple(name for name in expected if name not in there)


def _check_alike(studies: Sequence[tuple[Path, dict[str, Any]]]) -> None:
    """Refuse folders whose debates were held under different settings, as a study refuses such a folder."""
    for folder, study in studies[1:]:
        first, config = studies[0][1]["config"], study["config"]
        for what in ("memory", "train"):
            if first.get(what) != config.get(what):
                raise UsageError(f"{studies[0][0]} and {folder} have another {what}, so they are no one run")
        settings = config.get("settings", {})
        for name, value in first.get("settings", {}).items():
            if name not in HOW and settings.get(name, value) != value:
                raise UsageError(f"{studies[0][0]} and {folder} have another {name}, so they are no one run")


def _joined(studies: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One study of several: methods and the like of all, questions added up where they are shards."""
    if len(studies) == 1:
        return studies[0]
    configs = [study["config"] for study in studies]
    config = dict(configs[0])
    for key in _JOINED:
        rows = [row for one in configs for row in one.get(key, [])]
        config[key] = [json.loads(row) for row in dict.fromkeys(json.dumps(row, sort_keys=True) for row in rows)]
    shards = [tuple(one.get("shard", (1, 1))) for one in configs]
    if len(set(shards)) == len(shards):
        config["shard"] = [1, 1]
    questions: dict[str, int] = {}
    for one in studies:
        for name, count in one.get("questions", {}).items():
            questions[name] = questions.get(name, 0) + count if config["shard"] == [1, 1] else count
    compositions = {name: text for one in studies for name, text in one.get("compositions", {}).items()}
    return {**studies[0], "config": config, "questions": questions, "compositions": compositions}


def method_names(study: dict[str, Any]) -> list[str]:
    """The methods of a study in its order, each value of a sweep as one, named as scores name them."""
    if study.get("compositions"):
        return list(study["compositions"])
    config = study["config"]
    swept = [f"{s['method']}[{s['what']}={value}]" for s in config.get("sweeps", []) for value in s["values"]]
    return [*config.get("methods", []), *swept]


def dataset_names(study: dict[str, Any]) -> list[str]:
    """The data sets of a study in its order, named as scores name them."""
    return list(dict.fromkeys(_named(name)[0] for name in study["config"].get("datasets", [])))


def _belongs(study: dict[str, Any], scores: Sequence[Score]) -> Callable[[Score], bool]:
    """Whether a score is of one of the study's cells."""
    config = study["config"]
    methods, seeds = set(method_names(study)), set(config.get("seeds", []))
    models = _models(config)
    if not any(score.model in models for score in scores):
        models = {score.model for score in scores}  # names that only the provider knows
    sets = [_named(name) for name in config.get("datasets", [])]

    def belongs(score: Score) -> bool:
        return (
            (not methods or score.method in methods)
            and (not seeds or score.seed in seeds)
            and (not score.model or score.model in models)
            and (not sets or any(_is_of(score, *one) for one in sets))
        )

    return belongs


def _models(config: dict[str, Any]) -> set[str]:
    """What scores may call the study's models: a method of fewer agents than there are seats has only the first."""
    found = set()
    for team in config.get("models", []):
        seats = [seat["model"] for seat in team.get("agents", [])]
        found |= {" + ".join(dict.fromkeys(seats[:count])) for count in range(1, len(seats) + 1)}
        found.add(team["name"])
    return found


def _named(name: str) -> tuple[str, str]:
    """(data set, split) of a name in a configuration; no split stands for all."""
    try:
        found = parse_name(name)
    except UsageError:  # a file that has gone since, or a set of a newer version
        base, _, split = name.rpartition(":")
        return (base, split) if split in ("train", "test") else (name, "")
    return found.dataset, found.split


def _is_of(score: Score, dataset: str, split: str) -> bool:
    return score.dataset == dataset and (not split or not score.split or score.split == split)


def expected_questions(run: Run) -> dict[str, int]:
    """How many questions each data set has in this run: those its study says, or as many as any method answered."""
    asked: dict[str, set[str]] = {}
    for score in run.scores:
        asked.setdefault(score.dataset, set()).add(score.question)
    said: dict[str, int] = {}
    for name, count in ((run.study or {}).get("questions") or {}).items():
        dataset, _ = _named(name)
        said[dataset] = said.get(dataset, 0) + int(count)  # two splits of a set are two names
    return {dataset: max(len(questions), said.get(dataset, 0)) for dataset, questions in asked.items()}
