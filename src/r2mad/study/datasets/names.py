"""The grammar of data set names, for command lines and TOML files.

    NAME[:CATEGORY][:SPLIT][@SCHEME]            math500:test   mmlu-pro:economics:train@official
    NAME[:CATEGORY]=FILE[:SPLIT][@SCHEME]       math500=/data/math500.jsonl:test
    FILE[:SPLIT][@SCHEME][?MAPPING]             questions.csv:test?question=q&options=a,b,c,d&answer=key

SPLIT is `train`, `test` or `all`; SCHEME is `paper` or `official`. A path may hold colons and at-signs: only those
words count, and only at the end. In a mapping, %3A is a colon, %40 an at-sign, %2C a comma, %26 an ampersand, and %25
a percent sign.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from r2mad.errors import UnknownNameError, UsageError
from r2mad.study.datasets._record import DataSet
from r2mad.study.datasets.splits import SCHEMES, SPLITS, WHOLE

_ENDS = re.compile(rf"(?::({'|'.join((*SPLITS, WHOLE))})|@({'|'.join(SCHEMES)}))\Z")
SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
"""Endings by which a name is taken for a file, and by which a file is read."""


@dataclass(frozen=True, slots=True)
class Name:
    """A data set's name, taken apart."""

    base: str
    """A known set's name, or the path of a file of the user's."""
    category: str = ""
    split: str = ""
    """`train` or `test`; empty for all."""
    scheme: str = "paper"
    path: str | None = None
    """Where the user says that a known set's file is."""
    query: str = ""
    """For a file of the user's: which column is what."""
    known: bool = True
    """Whether `base` is a known set."""

    @property
    def dataset(self) -> str:
        """The set without split and path, as records name it; `load` understands it."""
        parts = [self.base, f":{self.category}" if self.category else "", f"?{self.query}" if self.query else ""]
        return "".join(parts) + ("" if self.scheme == "paper" else f"@{self.scheme}")

    @property
    def text(self) -> str:
        """The whole name, in the grammar's order."""
        head = self.base + (f":{self.category}" if self.category else "") + (f"={self.path}" if self.path else "")
        tail = (f":{self.split}" if self.split else "") + ("" if self.scheme == "paper" else f"@{self.scheme}")
        return head + tail + (f"?{self.query}" if self.query else "")

    def of(self, split: str) -> Name:
        """The same set's other split, by the same scheme."""
        return replace(self, split=split)


def slug(text: str) -> str:
    """A category as it stands in a name: lower case, with hyphens."""
    return re.sub(r"[\s_]+", "-", text.strip()).lower()


def parse(name: str, known: Mapping[str, DataSet]) -> Name:
    """Take a name apart.

    Raises:
        UnknownNameError: no such set, category, split or scheme; the message lists those there are.
        UsageError: the name contradicts itself.
    """
    rest, ends = _ends(name, name)
    head, equals, path = rest.partition("=")
    base = re.split("[:@]", head, maxsplit=1)[0]
    if base in known:
        if "?" in head:
            raise _own_columns(name, base)
        head, more = _ends(head, name)
        ends = _joined(ends, more, name)
        if equals and not path:
            raise UsageError(f"{name!r}: a path is missing after =")
        found = Name(base, _category(head, known[base]), path=path or None)
        if ends.get("scheme", "paper") not in known[base].schemes:
            raise UnknownNameError(f"{base} has no {ends['scheme']} split; leave @{ends['scheme']} out")
    else:
        path, _, query = rest.partition("?")
        path, more = _ends(path, name)
        ends = _joined(ends, more, name)
        if re.split("[:@]", path, maxsplit=1)[0] in known:
            raise _own_columns(name, path)
        if not path or not (query or _is_file(path)):
            raise _unknown(base, known)
        found = Name(path, query=query, known=False)
    split = ends.get("split", "")
    return replace(found, split="" if split == WHOLE else split, scheme=ends.get("scheme", "paper"))


def _ends(text: str, name: str) -> tuple[str, dict[str, str]]:
    """The text without the split and the scheme at its end, in whatever order, and these."""
    found: dict[str, str] = {}
    while match := _ENDS.search(text):
        found = _joined(found, {"split": match[1]} if match[1] else {"scheme": match[2]}, name)
        text = text[: match.start()]
    return text, found


def _joined(one: dict[str, str], other: dict[str, str], name: str) -> dict[str, str]:
    for key in one.keys() & other.keys():
        raise UsageError(f"{name!r} names two {key}s, {other[key]} and {one[key]}")
    return one | other


def _category(head: str, record: DataSet) -> str:
    said = head.removeprefix(record.name)
    if not said:
        return ""
    given = said.removeprefix(":")
    if said.startswith(":") and slug(given) in record.categories:
        return slug(given)
    splits = ", ".join((*SPLITS, WHOLE))
    if "@" in said:
        scheme = said.rpartition("@")[2]
        raise UnknownNameError(f"no scheme {scheme!r} of {record.name}; there are: {', '.join(record.schemes)}")
    if not record.categories:
        raise UnknownNameError(f"no split {given!r} of {record.name}; there are: {splits}")
    near = difflib.get_close_matches(slug(given), record.categories, n=1)
    hint = f"did you mean {near[0]}?" if near else f"categories: {', '.join(record.categories)}; splits: {splits}"
    raise UnknownNameError(f"no category or split {given!r} of {record.name}; {hint}")


def _is_file(path: str) -> bool:
    named = "/" in path or path.startswith("~") or path.lower().endswith(SUFFIXES)
    return named or (bool(path) and is_there(path))


def is_there(path: str | Path) -> bool:
    """Whether there is a file of that name; no name makes it raise."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # too long, or a sign that no file name can have
        return False


def _own_columns(name: str, base: str) -> UsageError:
    return UsageError(f"{name!r}: a mapping is for a file of yours; {base} has its own columns")


def _unknown(base: str, known: Mapping[str, DataSet]) -> UnknownNameError:
    near = difflib.get_close_matches(slug(base), known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return UnknownNameError(
        f"no data set {base!r}; {hint}there are: {', '.join(known)}; or a file ending in {', '.join(SUFFIXES)}"
    )
