"""Questions in a file of the user's own: JSON lines, CSV or Parquet, with a mapping that says which column is what.

A mapping has these keys, all of them optional:

    question       column of the question; `question` if not said
    options        a column that holds a list (in CSV a JSON list), or a list of columns, one an option;
                   `options` if there is such a column, else the columns A, B, C, … as far as they go
    answer         column of the answer; `answer` if not said. Of a choice: the letter, or the option's text
    answer_index   column of the right option's index, counted from 0, in place of `answer`
    id             column of the id; `id` if there is such a column, else a hash of question and options
    group          column by which results are broken down; `group` if there is such a column
    kind           how answers are compared: choice, math, number, text; or a column that says so for each row; `kind`
                   if there is such a column, else choice where there are options and text where there are none
    delimiter      between the fields of a CSV file: one character, or `tab`
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import get_args
from urllib.parse import unquote

from r2mad.errors import UsageError
from r2mad.settings import home_expanded
from r2mad.study.datasets import _rows
from r2mad.study.datasets._items import build
from r2mad.study.datasets._record import Raw, Row
from r2mad.study.datasets.names import is_there
from r2mad.types import LETTERS, AnswerKind, Item

KINDS: tuple[AnswerKind, ...] = get_args(AnswerKind)


@dataclass(frozen=True, slots=True)
class Columns:
    """A mapping, checked. What is not said is None."""

    question: str | None = None
    options: str | tuple[str, ...] | None = None
    answer: str | None = None
    answer_index: str | None = None
    id: str | None = None
    group: str | None = None
    kind: str | None = None
    delimiter: str | None = None


KEYS = tuple(one.name for one in fields(Columns))


def load_file(
    path: str | Path,
    mapping: Mapping[str, str | list[str]] | None = None,
    *,
    dataset: str | None = None,
    scheme: str = "paper",
) -> list[Item]:
    """The items of a file, in its order, each with its split.

    Args:
        path: a file that ends in .jsonl, .ndjson, .csv, .tsv or .parquet.
        mapping: which column is what; see the module.
        dataset: what records call the set; the path as given if not said.
        scheme: how it is split: `paper` or `official`.

    Raises:
        UsageError: no such file, an unknown key, a column that is not there, a malformed or contradictory row; the
            message names file and line.
    """
    columns = checked(mapping or {}, str(path))
    given = home_expanded(Path(path))
    if not is_there(given):
        raise UsageError(f"{given}: no such file")
    rows = list(_rows.read(given, UsageError, columns.delimiter))
    if not rows:
        raise UsageError(f"{given}: no rows")
    columns = _settled(columns, list(dict.fromkeys(name for row in rows for name in row.values)), given)
    return build((_raw(row, columns) for row in rows), dataset or str(path), scheme, UsageError)


def parse_mapping(query: str) -> dict[str, str | list[str]]:
    """A mapping as it is written behind a file's name: `question=q&options=a,b,c&answer=key`.

    Raises:
        UsageError: a part without `=`, or a key given twice.
    """
    mapping: dict[str, str | list[str]] = {}
    for part in query.split("&") if query else ():
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise UsageError(f"?{query}: a mapping is written key=column&key=column, and {part!r} is not")
        if unquote(key) in mapping:
            raise UsageError(f"?{query}: {unquote(key)!r} is given twice")
        names = [unquote(one) for one in value.split(",")] if key == "options" else [unquote(value)]
        mapping[unquote(key)] = names if len(names) > 1 else names[0]
    return mapping


def checked(mapping: Mapping[str, object], where: str) -> Columns:
    """A mapping with its keys and the forms of its values seen to.

    Raises:
        UsageError: an unknown key, with those like it, or a value that is no column's name.
    """
    found: dict[str, str | tuple[str, ...]] = {}
    for key, value in mapping.items():
        if key not in KEYS:
            near = difflib.get_close_matches(str(key), KEYS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(KEYS)}"
            raise UsageError(f"{where}: no mapping key {key!r}; {hint}")
        if isinstance(value, str) and value:
            found[key] = value
        elif key == "options" and isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value):
            if len(set(value)) < len(value) or len(value) < 2:
                raise UsageError(f"{where}: options must name two columns or more, each once, or one that holds a list")
            found[key] = tuple(value)
        else:
            more = ", or a list of them" if key == "options" else ""
            raise UsageError(f"{where}: {key} must be the name of a column{more}, not {value!r}")
    if "answer" in found and "answer_index" in found:
        raise UsageError(f"{where}: give answer or answer_index, not both")
    if "delimiter" in found:
        said = str(found["delimiter"])
        found["delimiter"] = "\t" if said in ("tab", "\\t") else said
        if len(found["delimiter"]) != 1 or found["delimiter"] in ('"', "\r", "\n"):
            raise UsageError(f"{where}: a delimiter is one character, or tab, not {said!r}")
    return Columns(**found)  # type: ignore[arg-type]  # only options is ever a tuple


def _settled(columns: Columns, present: Sequence[str], path: Path) -> Columns:
    """The mapping with its defaults filled in by the columns that there are.

    Raises:
        UsageError: a column that was named is not there.
    """

    def one(key: str, usual: str | None) -> str | None:
        name: str | None = getattr(columns, key)
        if name is None:
            return usual if usual in present else None
        if name not in present and not (key == "kind" and name in KINDS):
            near = difflib.get_close_matches(name, present, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(present)}"
            raise UsageError(f"{path}: no column {name!r} for {key}; {hint}")
        return name

    options = columns.options
    if isinstance(options, str):
        one("options", None)
    elif options is not None:
        missing = [name for name in options if name not in present]
        if missing:
            raise UsageError(f"{path}: no column {missing[0]!r} for options; there are: {', '.join(present)}")
    elif "options" in present:
        options = "options"
    elif "A" in present and "B" in present:
        options = tuple(letter for place, letter in enumerate(LETTERS) if set(LETTERS[: place + 1]) <= set(present))
    answer = one("answer", None if columns.answer_index else "answer")
    index = one("answer_index", None if answer else "answer_index")
    question = one("question", "question")
    for key, name in (("question", question), ("answer", answer or index)):
        if name is None:
            raise UsageError(
                f"{path}: no column {key!r}, so say which it is (?{key}=COLUMN); there are: {', '.join(present)}"
            )
    id, group, kind = one("id", "id"), one("group", "group"), one("kind", "kind")
    return Columns(question, options, answer, index, id, group, kind, columns.delimiter)


def _raw(row: Row, columns: Columns) -> Raw:
    options = _options(row, columns)
    kind = _kind(row, columns, bool(options))
    if kind != "choice" and options:
        raise UsageError(f"{row.where}: options, but the kind is {kind}")
    gold = _gold(row, columns, options, kind)
    question = _rows.text(row, (columns.question or "question",), UsageError)
    id = _cell(row, columns.id)
    if columns.id and not id.strip():
        raise UsageError(f"{row.where}: {columns.id} is empty")
    return Raw(row.where, id, question, gold, kind, options, _cell(row, columns.group))


def _cell(row: Row, column: str | None) -> str:
    """A cell's text; empty if there is none."""
    value = row.values.get(column) if column else None
    return "" if value is None else _rows.plain(value, f"{row.where}: {column}", UsageError)


def _options(row: Row, columns: Columns) -> tuple[str, ...]:
    if columns.options is None:
        return ()
    if isinstance(columns.options, str):
        value = row.values.get(columns.options)
        if value is None or value in ("", []):
            return ()
        return _rows.texts(value, f"{row.where}: {columns.options}", UsageError)
    cells = [_cell(row, name) for name in columns.options]
    while cells and not cells[-1].strip():  # a row may have fewer options than there are columns
        cells.pop()
    return tuple(cells)


def _kind(row: Row, columns: Columns, options: bool) -> AnswerKind:
    said = columns.kind if columns.kind in KINDS else _cell(row, columns.kind).strip()
    if not said:
        return "choice" if options else "text"
    for kind in KINDS:
        if said == kind:
            return kind
    raise UsageError(f"{row.where}: no such kind of answer: {said!r} ({', '.join(KINDS)})")


def _gold(row: Row, columns: Columns, options: tuple[str, ...], kind: AnswerKind) -> str:
    if columns.answer_index:
        said = _rows.text(row, (columns.answer_index,), UsageError).strip()
        if not options:
            raise UsageError(f"{row.where}: {columns.answer_index} needs options")
        if not (said.isascii() and said.isdigit() and int(said) < len(options)):
            raise UsageError(f"{row.where}: {columns.answer_index} must be 0 to {len(options) - 1}, not {said!r}")
        return LETTERS[int(said)]
    gold = _rows.text(row, (columns.answer or "answer",), UsageError)
    if kind == "choice":
        return _letter(row, gold, options)
    if kind == "number" and gold.strip():
        from r2mad.answers import extract  # only when needed: listing data sets stays cheap

        if extract(gold, "number") is None:
            raise UsageError(f"{row.where}: the answer {gold!r} is no number")
    return gold


def _letter(row: Row, gold: str, options: tuple[str, ...]) -> str:
    """The letter of a choice's answer, which may be given as the letter or as the option's text."""
    said = gold.strip()
    letters = {LETTERS.index(said.upper())} if len(said) == 1 and said.upper() in LETTERS else set()
    named = {place for place in letters if place < len(options)}
    named |= {place for place, option in enumerate(options) if option.strip() == said}
    if len(named) > 1:
        raise UsageError(f"{row.where}: the answer {said!r} is the letter of one option and the text of another")
    if not named:
        hint = "; if it is an index, map it as answer_index" if said.isdigit() else ""
        raise UsageError(f"{row.where}: the answer {said!r} is none of the {len(options)} options{hint}")
    return LETTERS[named.pop()]
