"""`r2mad datasets`: what there is to ask, where it comes from, and whether it is here and whole."""

from __future__ import annotations

import json as json_module
from collections import Counter
from typing import TYPE_CHECKING, Any

from r2mad.cli.common import DONE, INCOMPLETE, log_to_stderr, printable

if TYPE_CHECKING:
    from r2mad.study.datasets import DataSet


def datasets(*names: str, check: bool = False, json: bool = False) -> int:
    """List the data sets: how many questions, how they are split, whose they are, whether they are here.

        r2mad datasets
        r2mad datasets --check
        r2mad datasets truthfulqa:test 'my.csv?question=q&answer=key' --check

    With --check each set that is here is read and all its rows are looked at; the exit code is 1 if one is not right.

    Args:
        names: Data sets, or files of your own; all known sets if none is named.
        check: Read them, and print what was found with a hash, the same on every machine with the same questions.
        json: Print one JSON array instead of text.
    """
    from r2mad.study.datasets import DATASETS, parse_name

    log_to_stderr("warning")
    asked = list(names) or list(DATASETS)
    rows: list[dict[str, Any]] = []
    for name in asked:
        parsed = parse_name(name)
        record = DATASETS.get(parsed.base)
        here = {parsed.category: "path"} if parsed.path or record is None else _here(record)
        row = {"name": name, **(_row(record) if record else {}), "here": here}
        if check:
            row["checked"] = _checked(name, here, named=bool(names))
        rows.append(row)
    if json:
        print(json_module.dumps(rows, indent=2, ensure_ascii=False))
    else:
        for row in rows:
            _print(row)
    wrong = any("error" in found for row in rows for found in row.get("checked", {}).values())
    return INCOMPLETE if wrong else DONE


def _row(record: DataSet) -> dict[str, Any]:
    groups = record.categories or (Counter(item.group for item in record.made()) if record.made else {})
    return {
        "summary": record.title,
        "items": record.items,
        "splits": record.splits,
        "split_note": record.split_note,
        "groups": dict(groups),
        "kinds": list(record.kinds),
        "source": record.upstream,
        "licence": record.licence,
        "revision": record.revision,
        "sha256": record.sha256,
        "note": record.note,
    }


def _here(record: DataSet) -> dict[str, str]:
    """Which parts of a set can be read without asking anybody, and from where; "" is the whole set."""
    from r2mad.study.datasets import _source

    if record.made:
        return {"": "ships with r2mad" if record.name == "starter" else "made when asked for"}
    parts = ("", *record.categories)
    cached = dict.fromkeys(parts if _source.in_hub_cache(record) else (), "the hub client's cache")
    return cached | {part: _source.FOLDER for part in parts if _source.in_folder(record, part)}


def _checked(name: str, here: dict[str, str], named: bool) -> dict[str, dict[str, Any]]:
    """What reading a set, or those of its categories that are here, came to."""
    if named:
        return {name: _read(name)}
    parts = [""] if "" in here else list(here)
    wanted = [f"{name}:{part}" if part else name for part in parts]
    return {one: _read(one) for one in wanted}


def _read(name: str) -> dict[str, Any]:
    from r2mad.errors import R2madError
    from r2mad.study.datasets import load
    from r2mad.types import digest

    try:
        items = load(name)
    except R2madError as error:
        return {"error": str(error)}
    asked = [[item.question.id, item.question.text, list(item.question.options), item.gold] for item in items]
    return {
        "items": len(items),
        "splits": dict(sorted(Counter(item.split for item in items).items(), reverse=True)),
        "kinds": dict(Counter(item.question.kind for item in items)),
        "hash": digest(asked),
    }


def _print(row: dict[str, Any]) -> None:
    if "items" in row:
        print(f"{row['name']}: {row['items']} items; {row['summary']}")
        counts = ", ".join(f"{name} {count}" for name, count in row["splits"].items() if count)
        print(f"  splits: {counts} ({row['split_note']})")
        if row["groups"]:
            print("  groups: " + ", ".join(f"{name} {count}" for name, count in row["groups"].items()))
        print(f"  {row['source']}; {row['licence']}")
        if row["note"]:
            print(f"  note: {row['note']}")
        print(f"  here: {_places(row['here'])}")
    else:
        print(f"{printable(row['name'])}: a file of yours")
    for name, found in row.get("checked", {}).items():
        if "error" in found:
            print(f"  WRONG {printable(name)}: {printable(found['error'])}")
        else:
            counts = ", ".join(f"{split} {count}" for split, count in found["splits"].items())
            print(f"  good  {printable(name)}: {found['items']} items ({counts}), hash {found['hash']}")


def _places(here: dict[str, str]) -> str:
    if not here:
        return "no; see docs/datasets.md"
    if "" in here:
        return here[""]
    places: dict[str, list[str]] = {}
    for part, place in here.items():
        places.setdefault(place, []).append(part)
    return "; ".join(f"{', '.join(parts)} ({place})" for place, parts in places.items())
