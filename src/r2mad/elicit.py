"""What a reply must carry besides its answer: how sure the model says it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from r2mad.answers import spoken
from r2mad.prompts import Pack

HIGHEST = 10
"""Confidence is stated from 0 to 10."""

# "Confidence: 8/10", "**Confidence level** (0-10): 8.5", "my confidence is 80 %", "Confidence = \boxed{7}". Every gap
# is bounded, so that a long blank text stays linear.
_GAP = r"[ \t]{0,4}"
_MARK = r"[*_]{0,3}"
_NUMBER = r"(?P<value>[-+]?\d{1,4}(?:[.,]\d{1,6})?)(?![.,]?\d)"
_UNIT = rf"(?:{_GAP}(?P<percent>%|\\%|per ?cent\b)|{_MARK}{_GAP}(?:/|\b(?:out )?of\b){_GAP}(?P<of>\d{{1,4}})\b)?"
_AMOUNT = rf"(?:\$?\\boxed\{{|\({{1,2}}|[\[`$])?{_MARK}{_GAP}{_NUMBER}{_UNIT}{_MARK}(?:\}}\$?|\){{1,2}}|[\]`$])?{_MARK}"
_NOUN = rf"(?:\b(?:my|overall|final){_GAP})?\bconfidence(?:{_GAP}(?P<noun>level|score|rating))?{_MARK}"
_RANGE = rf"(?:{_GAP}[(\[][^()\[\]\n]{{0,24}}[)\]])?{_MARK}"
_SAYS = rf"{_GAP}(?P<says>[:=]|\bis\b)?(?:{_GAP}\bof\b)?{_MARK}{_GAP}"
_STATED = rf"{_NOUN}{_RANGE}{_SAYS}{_AMOUNT}"
_BULLET = rf"^{_GAP}(?:\d{{1,2}}[.)])?[-#>*_(\[]{{0,4}}{_GAP}"
_LINE = re.compile(
    rf"{_BULLET}{_STATED}{_GAP}(?:\([^()\n]{{0,40}}\))?[)\]]?[.!]?[ \t]{{0,8}}$", re.IGNORECASE | re.MULTILINE
)
_END = re.compile(rf"{_GAP}[(\[,;]?{_GAP}{_STATED}[)\]]?[.!]?\s*\Z", re.IGNORECASE)
_BEHIND = re.compile(rf"{_GAP}[(\[,;]{_GAP}{_NUMBER}{_UNIT}{_GAP}confidence[)\]]?[.!]?\s*\Z", re.IGNORECASE)
_SENTENCE = re.compile(_STATED, re.IGNORECASE)
TAIL = 200
"""Characters of a reply's end in which a statement that shares its line with the answer is looked for."""


REPEATED = 5
"""Statements one after another that are taken off a reply's end."""


class Elicit(Protocol):
    """Asks for more than an answer, and reads it."""

    def request(self, pack: Pack) -> str:
        """What is added to every prompt."""
        ...

    def read(self, text: str) -> tuple[str, float | None]:
        """A reply without what was asked for, and its value; None where it is missing."""
        ...


@dataclass(frozen=True)
class VerbalConfidence:
    """Each reply says how sure it is, as an integer from 0 to 10 (Demystifying Multi-Agent Debate)."""

    def request(self, pack: Pack) -> str:
        """The pack's confidence.j2."""
        return pack.confidence()

    def read(self, text: str) -> tuple[str, float | None]:
        """See `stated_confidence`."""
        return stated_confidence(text)


def stated_confidence(text: str) -> tuple[str, float | None]:
    """What a reply says of its own confidence, as (the reply without saying so, the value from 0 to 10).

    `8`, `8/10`, `8.5`, `8,5`, `8 out of 10`, `80%` and `80/100` are read, after the word confidence. A decimal under 1
    is a share (0.85 is 8.5), and so is a number from 20 to 100 (85 is 8.5), since nothing else can be meant. The last
    line that says nothing else counts; else what the reply ends with; else the last sentence that has the word with a
    colon, an equals sign or "is". What is out of range is None. A confidence level in per cent is taken for part of the
    problem. Reasoning that a model kept to itself is not looked at.
    """
    said = spoken(text)
    lines = [found for found in _LINE.finditer(said) if not _level(found)]
    if lines:
        last = lines[-1]
        return f"{said[: last.start()].rstrip()}{said[last.end() :].rstrip()}", _value(last)
    if ending := _ending(said):
        value = _value(ending)
        for _ in range(REPEATED):  # one that states another before its last would leave it in the answer
            if ending := _ending(said):
                said = said[: ending.start()].rstrip()
        return said, value
    sentences = [found for found in _SENTENCE.finditer(said) if found["says"] and not _level(found)]
    return text, _value(sentences[-1]) if sentences else None


def _ending(said: str) -> re.Match[str] | None:
    """The statement that a text ends with."""
    start = max(0, len(said.rstrip()) - TAIL)
    found = _END.search(said, start) or _BEHIND.search(said, start)
    return found if found and not _level(found) else None


def _level(found: re.Match[str]) -> bool:
    """Whether it is a statistician's confidence level, such as 95 %."""
    groups = found.groupdict()
    return bool(groups["percent"]) and (groups.get("noun") or "").lower() == "level"


def _value(found: re.Match[str]) -> float | None:
    stated = float(found["value"].replace(",", "."))
    if found["percent"]:
        value = stated / 100 * HIGHEST
    elif found["of"]:
        whole = float(found["of"])
        value = stated / whole * HIGHEST if whole else -1.0
    elif 2 * HIGHEST <= stated <= 100:
        value = stated / 100 * HIGHEST
    else:
        value = stated * HIGHEST if 0.0 < stated < 1.0 else stated
    return round(value, 6) if 0.0 <= value <= HIGHEST else None
