"""The names of parts: what a method's one-line form and its file (`compose.py`) may ask for, and with which fields."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, Literal, get_args, get_origin, get_type_hints

from r2mad.context import Fresh, History
from r2mad.diverse import Diverse
from r2mad.elicit import VerbalConfidence
from r2mad.errors import UnknownNameError, UsageError
from r2mad.mask import AutoMask, ObjectiveMask, SubjectiveMask
from r2mad.opening import Independent, Reminded
from r2mad.retrieval import POLICIES, Retrieval
from r2mad.skew import Everyone, Graph, MemoryConfidence, Ring, ShowVerbalConfidence
from r2mad.verdict import Judge, Never, Plurality, Selective, Unanimity, UnanimityUnlessDoubted, Weighted

Slot = Literal["elicit", "opening", "retrieval", "topology", "mask", "label", "context", "stop", "vote"]
SLOTS: tuple[Slot, ...] = get_args(Slot)
"""Every place that a part can have, in the order in which a method's name tells its parts."""
SKEW: tuple[Slot, ...] = ("topology", "mask", "label")
"""The filters of `Method.skew`, in their order."""

_KEPT_BACK = {
    "form": "--compat official sets it for all parts at once, and it must be the memory's",
    "official": "--compat official sets it",
    "choice": "it is made on labelled training items",
}
"""Fields that no user sets, and why."""
_INT64 = 2**63
"""Whole numbers of TOML are below; a larger one is a slip, and could be too long to print."""


@dataclass(frozen=True)
class Part:
    """A part by its name."""

    name: str
    slot: Slot
    help: str
    """One line."""
    make: type[Any]
    """Its class."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Fields that the name itself decides."""
    usual: Mapping[str, Any] = field(default_factory=dict)
    """Fields whose default is another than the class's."""
    instead: str | None = None
    """Why the one-line form does not take it, if it does not; a file takes every part."""

    @property
    def fields(self) -> dict[str, str]:
        """What a file may set: each field with its default as the file would write it, or `required`."""
        return {name: text for name, text in _fields(self.make, self.usual).items() if name not in self.fixed}

    def built(self, given: Mapping[str, object] | None = None) -> Any:
        """The part, with fields as a file gives them.

        Raises:
            UsageError: a field that it does not have, of another type, or out of range.
        """
        given = given or {}
        for name in given:
            if name in self.fixed:
                raise UsageError(f"{self.name} says by its name that {name} is {told(self.fixed[name])}; leave it out")
        return built(self.make, given, {**self.usual, **self.fixed})


def _retrieve(policy: str) -> Part:
    text = f"reminds agents of cases before each later round, chosen by {policy}"
    return Part(f"retrieve-{policy}", "retrieval", text, Retrieval, {"policy": policy})


PARTS: dict[str, Part] = {
    part.name: part
    for part in (
        Part("verbal-confidence", "elicit", "replies say how sure they are, from 0 to 10", VerbalConfidence),
        Part("independent", "opening", "each agent answers alone", Independent),
        Part("diverse", "opening", "the most varied of a pool of replies", Diverse),
        Part("low-diversity", "opening", "the least varied of a pool of replies", Diverse, {"lean": "low-diversity"}),
        Part("random-opening", "opening", "replies drawn from a pool", Diverse, {"lean": "random"}),
        Part("reminded", "opening", "each agent answers alone, shown cases like the question", Reminded),
        *(_retrieve(policy) for policy in POLICIES),
        Part("everyone", "topology", "each agent reads all its peers", Everyone),
        Part("ring", "topology", "each agent reads the one before it", Ring),
        Part(
            "graph",
            "topology",
            "agent i reads agent j where row i of a matrix has a 1 in column j",
            Graph,
            instead="it takes a matrix",
        ),
        Part("subjective-mask", "mask", "hides replies which the model itself calls wrong", SubjectiveMask),
        Part("strict-mask", "mask", "hides all but what the model calls right", SubjectiveMask, {"strict": True}),
        Part("objective-mask", "mask", "hides all but the reply of lowest perplexity", ObjectiveMask),
        Part("auto-mask", "mask", "the mask that tells right from wrong better, chosen on training items", AutoMask),
        Part("memory-confidence", "label", "says how each peer's stance fared in the cases", MemoryConfidence),
        Part(
            "show-confidence",
            "label",
            "says how sure each peer said it is",
            ShowVerbalConfidence,
            instead="verbal-confidence shows what it asks for",
        ),
        Part("history", "context", "an agent's conversation goes on", History),
        Part("fresh", "context", "one turn: the question and the replies that are shown", Fresh),
        Part("unanimity", "stop", "over as soon as all agree", Unanimity),
        Part("never", "stop", "all rounds are held", Never),
        Part("unless-doubted", "stop", "over when all agree, unless memory doubts it", UnanimityUnlessDoubted),
        # The class's own default, 1, is unanimity by another name; 0.6 is mad-selective's.
        Part("selective", "stop", "over after the opening if enough agree", Selective, usual={"enough": 0.6}),
        Part("plurality", "vote", "the answer that most agents hold", Plurality),
        Part("weighted", "vote", "the answer with the most stated confidence behind it", Weighted),
        Part("judge", "vote", "one call more reads the last round and writes the answer", Judge),
    )
}
"""Every part that has a name, by it."""


def parts_table() -> list[dict[str, Any]]:
    """`PARTS` as rows that JSON can hold: slot, name, help, class, fields with defaults, and if a line takes it."""
    return [
        {
            "slot": part.slot,
            "name": part.name,
            "help": part.help,
            "class": part.make.__name__,
            "fields": part.fields,
            "line": part.instead is None,
        }
        for part in PARTS.values()
    ]


def slot_of(part: object) -> Slot | None:
    """The slot of a part of ours; None for a user's own."""
    return next((known.slot for known in PARTS.values() if isinstance(part, known.make)), None)


def named(name: str, known: Collection[str], noun: str) -> str:
    """The name, if it is known.

    Raises:
        UnknownNameError: it is not; the message names the nearest, and all there are.
    """
    if name in known:
        return name
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise UnknownNameError(f"no {noun} {shown(name)}.{hint} There are: {', '.join(known)}")


def built(make: type[Any], given: Mapping[str, object], preset: Mapping[str, Any]) -> Any:
    """An object of a part's class from fields as TOML gives them.

    Equal fields give equal objects with the same `repr`, which decides a debate's id: 1 becomes 1.0 where it is meant.

    Args:
        make: the class.
        given: what the user set.
        preset: what else is not as the class has it.

    Raises:
        UsageError: an unknown field, a wrong type, a missing field, or what the class itself refuses.
    """
    hints, known = get_type_hints(make), _settable(make)
    for name in given:
        if name in _KEPT_BACK and name in hints:
            raise UsageError(f"{name} is not for a file to set: {_KEPT_BACK[name]}")
        if not known:
            raise UsageError(f"it has no fields, so {shown(name)} cannot be one")
        named(name, known, "field")
    values = {**preset, **{name: read(hints[name], value, name) for name, value in given.items()}}
    if missing := [name for name, default in known.items() if default is dataclasses.MISSING and name not in values]:
        raise UsageError(f"it needs {' and '.join(missing)}")
    return make(**values)


def retrieval(given: Mapping[str, object], before: Retrieval | None) -> Retrieval:
    """A retrieval from fields as TOML gives them; what is not given stays as it was before.

    Raises:
        UsageError: see `built`.
    """
    if isinstance(policy := given.get("policy"), str):
        named(policy, POLICIES, "retrieval policy")
    found: Retrieval = built(Retrieval, given, vars(before or Retrieval()))
    return found


def read(hint: Any, value: object, name: str) -> Any:
    """A value of TOML as a field of that type.

    Raises:
        UsageError: it is of another type. A yes or no is no number here.
    """
    within = get_args(hint)
    if get_origin(hint) is Literal:
        if isinstance(value, str) and value in within:
            return value
        raise UsageError(f"{name} is one of {', '.join(within)}, not {shown(value)}")
    if nested := next((one for one in (MemoryConfidence, Retrieval) if one is hint or one in within), None):
        if isinstance(value, dict):
            try:
                return retrieval(value, Retrieval("similarity")) if nested is Retrieval else built(nested, value, {})
            except UsageError as error:
                raise type(error)(f"{name}: {error}") from error
        raise UsageError(f"{name} is a table such as {told(nested())}, not {shown(value)}")
    if get_origin(hint) is tuple:
        if isinstance(value, list) and all(isinstance(row, list) and all(map(_whole, row)) for row in value):
            return tuple(tuple(row) for row in value)
        raise UsageError(f"{name} is a matrix of 0 and 1, such as [[0, 1], [1, 0]], not {shown(value)}")
    if (hint is str and isinstance(value, str)) or (hint is bool and isinstance(value, bool)):
        return value
    if hint is int and _whole(value):
        return value
    if hint is float and isfinite(number := _number(value)):
        return number + 0.0  # -0.0 is written otherwise than 0.0, and means the same
    noun = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}[hint]
    raise UsageError(f"{name} is {noun}, not {shown(value)}")


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64


def _number(value: object) -> float:
    return float(value) if isinstance(value, float) or (isinstance(value, int) and _whole(value)) else inf


def shown(value: object) -> str:
    """A value as a message shows it: short, on one line."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        return "a number beyond 64 bits"
    text = told(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def told(value: object) -> str:
    """A value as a file would write it; `required` for a field without a default."""
    if value is dataclasses.MISSING:
        return "required"
    if value is None or isinstance(value, bool):
        return {True: "true", False: "false", None: "none"}[value]
    if dataclasses.is_dataclass(value):
        return f"{{ {', '.join(f'{name} = {text}' for name, text in _fields(type(value), vars(value)).items())} }}"
    return repr(value)


def _settable(make: type[Any]) -> dict[str, Any]:
    """The fields that a user may set, each with its default."""
    return {one.name: one.default for one in dataclasses.fields(make) if one.name not in _KEPT_BACK}


def _fields(make: type[Any], preset: Mapping[str, Any]) -> dict[str, str]:
    return {name: told(preset.get(name, default)) for name, default in _settable(make).items()}
