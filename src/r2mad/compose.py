"""Methods written without Python: on one line, as `r2mad+objective-mask`, or as a TOML file.

Both name parts (`parts.py`). A part takes the place of what the base has in its slot, and nothing depends on the order
in which a line names parts: the method's own name has them in the order of the slots, so that `mad+judge+ring` is
`mad+ring+judge`, and its debates are the same debates.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from r2mad.context import Fresh
from r2mad.elicit import VerbalConfidence
from r2mad.errors import UsageError
from r2mad.method import Method
from r2mad.parts import PARTS as PARTS
from r2mad.parts import SKEW, SLOTS, Part, Slot, named, read, retrieval, shown, slot_of
from r2mad.parts import parts_table as parts_table
from r2mad.skew import Everyone, ShowVerbalConfidence
from r2mad.verdict import Weighted

LARGEST = 1_000_000
"""Bytes of a method's file; what is larger is none."""
_LATER = (*SKEW, "context", "stop")
"""Slots that do nothing in a method of one round."""
_KEYS = ("name", "summary", "base", "agents", "rounds", "elicit", "opening", "retrieval", "skew", "context", "stop")
KEYS = (*_KEYS, "vote")
"""What a method's file may set."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


def compose(base: Method, names: Sequence[str]) -> Method:
    """The base with some parts replaced, named `base+part+…` with the parts in the order of `SLOTS`.

    Raises:
        UnknownNameError: no such part.
        UsageError: two parts of one slot, a part that would do nothing, or parts that do not go together.
    """
    if not names:
        return base
    parts = sorted(map(_line_part, names), key=lambda part: (SLOTS.index(part.slot), part.name))
    for one, other in pairwise(parts):
        if one.slot == other.slot:
            raise UsageError(f"{base.name} takes one {one.slot}, not both {one.name} and {other.name}: leave one out")
    name = "+".join((base.name, *(part.name for part in parts)))
    for part in parts:
        if base.rounds == 1 and part.slot in _LATER:
            raise UsageError(f"{name}: {base.name} has one round, and {part.name} acts after it; leave {part.name} out")
    chosen = {
        part.slot: retrieval(part.fixed, base.retrieval) if part.slot == "retrieval" else part.built() for part in parts
    }
    summary = f"{base.summary}, with {_listed([part.name for part in parts])}"
    return _assembled(base, chosen, name=name, summary=summary, source=_source(base))


def _source(base: Method) -> str:
    return f"{base.source.removesuffix('; composed')}; composed"


def _line_part(name: str) -> Part:
    name = name.strip()
    part = PARTS[named(name, [one for one in PARTS if PARTS[one].instead is None or one == name], "part")]
    if part.instead:
        raise UsageError(f"{name} stands in a file and not on a line: {part.instead}")
    return part


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _assembled(base: Method, chosen: Mapping[Slot, Any], **about: Any) -> Method:
    """The base with the parts of some slots replaced (None takes one out), and with what these bring along.

    A stated confidence is shown to peers if nothing else is; a vote by it asks for it; a mask needs a fresh context.
    """
    parts: dict[Slot, Any] = {slot: getattr(base, slot) for slot in SLOTS if slot not in SKEW}
    parts |= {slot: next((one for one in base.skew if slot_of(one) == slot), None) for slot in SKEW}
    parts |= chosen
    if isinstance(parts["vote"], Weighted) and "elicit" not in chosen:
        parts["elicit"] = parts["elicit"] or VerbalConfidence()
    if chosen.get("elicit") and "label" not in chosen:
        parts["label"] = parts["label"] or ShowVerbalConfidence()
    if chosen.get("mask") and "context" not in chosen:
        parts["context"] = Fresh()
    skew = (parts["topology"] or Everyone(), parts["mask"], parts["label"])
    others: dict[str, Any] = {slot: part for slot, part in parts.items() if slot not in SKEW}
    return replace(base, skew=tuple(part for part in skew if part is not None), **others, **about)


def load_method(path: str, find: Callable[[str], Method], taken: Callable[[str], bool]) -> Method:
    """The method that a TOML file describes; docs/methods.md has the format.

    Args:
        path: the file.
        find: finds the method that the file's is based on.
        taken: whether a name is a listed method's, and so cannot be the file's.

    Raises:
        UsageError: no such file, no TOML, an unknown key or part, a value of another type, parts that do not go
            together. The message names the file, and the line where there is one.
    """
    text = _text(path)
    try:
        data = tomllib.loads(text)
    except RecursionError as error:
        raise UsageError(f"{path}: its lists and tables are nested too deeply") from error
    except ValueError as error:  # a number of too many digits is not a TOMLDecodeError
        raise UsageError(f"{path}: {error}") from error
    base, about, chosen = find("mad"), dict[str, Any](), dict[Slot, Any]()
    for key in sorted(data, key=lambda key: key != "base"):  # first what the others take the place of
        try:
            value = data[named(key, KEYS, "key")]
            if key == "base":
                base = find(_base(value))
            elif key in ("name", "summary", "agents", "rounds"):
                about[key] = _fact(key, value, taken)
            else:
                chosen |= _chosen(key, value, base)
        except UsageError as error:
            raise type(error)(f"{path}{_line(text, key)}: {error}") from error
    if "name" not in about:
        raise UsageError(f'{path}: a method needs a name, such as name = "my-method"')
    own = [key for key in KEYS if key in data and key not in ("name", "summary", "base")]
    about.setdefault("summary", f"{base.summary}, with its own {_listed(own)}" if own else base.summary)
    sizes = ("agents", "rounds")  # what the file changes was no definition, so a user may change it as well
    adjustable = tuple(
        key for key in sizes if key in base.adjustable or about.get(key, getattr(base, key)) != getattr(base, key)
    )
    try:
        return _assembled(base, chosen, source=_source(base), adjustable=adjustable, **about)
    except UsageError as error:
        raise type(error)(f"{path}: {error}") from error


def _text(path: str) -> str:
    """What a method's file says."""
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"{path}: there is no such file")
    try:
        with file.open("rb") as opened:
            raw = opened.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise UsageError(f"{path}: a method's file has at most {LARGEST:,} bytes")
        return raw.decode("utf-8-sig")  # some editors put a mark before the first line
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: it is not text in UTF-8") from error


def _line(text: str, key: str) -> str:
    """Where a key is set, to go on after the file's name; "" where no line begins with it."""
    name = rf"""["']?{re.escape(key)}["']?[ \t]*"""
    found = re.search(rf"^[ \t]*(?:{name}[=.]|\[{{1,2}}[ \t]*{name}[\].])", text, re.MULTILINE)
    return f", line {text.count(chr(10), 0, found.start()) + 1}" if found else ""


def _base(value: object) -> str:
    name = str(read(str, value, "base"))
    if name.partition("+")[0].strip().endswith(".toml"):  # so that no file is based on itself
        raise UsageError(f"base is a listed method, with parts behind + if need be, and not a file: {shown(name)}")
    return name


def _fact(key: str, value: object, taken: Callable[[str], bool]) -> str | int:
    """A method's name, summary, or number of agents or rounds."""
    if key in ("agents", "rounds"):
        number: int = read(int, value, key)
        return number
    text = str(read(str, value, key))
    if key == "summary":
        if not text.strip() or not text.isprintable():
            raise UsageError(f"summary is one line of text, not {shown(text)}")
    elif not _NAME.fullmatch(text) or text.endswith(".toml"):
        raise UsageError(
            f"{shown(text)} is no name: it has up to 60 letters, digits, dots, dashes and underscores, "
            f"begins with a letter or digit, and does not end in .toml"
        )
    elif taken(text):
        raise UsageError(f"{text} is a listed method; give yours another name")
    return text


def _chosen(key: str, value: object, base: Method) -> dict[Slot, Any]:
    """What a key of a file puts into which slots."""
    if key == "skew":
        return _skew(value)
    slot = next(slot for slot in SLOTS if slot == key)
    if slot in ("elicit", "retrieval") and (value is False or value == "none"):
        return {slot: None}
    if slot != "retrieval":
        return {slot: _part(value, (slot,))[1]}
    given = {"policy": value} if isinstance(value, str) else value
    if not isinstance(given, dict):
        raise UsageError(f'retrieval is a policy, a table, or "none", not {shown(value)}')
    given = {"policy" if name == "part" and "policy" not in given else name: one for name, one in given.items()}
    if isinstance(given.get("policy"), str):
        given["policy"] = given["policy"].removeprefix("retrieve-")
    return {slot: retrieval(given, base.retrieval)}


def _skew(value: object) -> dict[Slot, Any]:
    """The filters of a file's list; what it does not name is not there, but for the topology."""
    if not isinstance(value, list):
        raise UsageError(f'skew is a list of filters, such as ["ring", "memory-confidence"], not {shown(value)}')
    found = [_part(entry, SKEW) for entry in value]
    places = [SKEW.index(part.slot) for part, _ in found]
    if places != sorted(set(places)):
        told = ", ".join(f"{part.name} ({part.slot})" for part, _ in found)
        raise UsageError(f"skew is one topology, then one mask, then one label, each if need be; not {told}")
    filters: dict[Slot, Any] = dict.fromkeys(SKEW)
    return filters | {part.slot: made for part, made in found}


def _part(entry: object, slots: Collection[Slot]) -> tuple[Part, Any]:
    """A part as a file writes it: a name, or a table of its name and fields."""
    given = {"part": entry} if isinstance(entry, str) else entry
    if not isinstance(given, dict) or not isinstance(name := given.get("part"), str):
        raise UsageError(f'a part is a name, or a table with part = "a name", not {shown(entry)}')
    if name in PARTS and (slot := PARTS[name].slot) not in slots:
        raise UsageError(f"{name} stands under {'skew' if slot in SKEW else slot}")
    part = PARTS[named(name, [one.name for one in PARTS.values() if one.slot in slots], "part")]
    try:
        return part, part.built({field: value for field, value in given.items() if field != "part"})
    except UsageError as error:
        raise type(error)(f"{name}: {error}") from error
