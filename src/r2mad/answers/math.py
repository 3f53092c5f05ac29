"""Formulas: the answer in a reply, and its canonical form."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from fractions import Fraction

from r2mad.answers import _pool
from r2mad.answers._canonical import Canonical
from r2mad.answers._clause import sentence
from r2mad.answers._clause import tidy as clause_tidy
from r2mad.answers._declare import Mark, echo, marks
from r2mad.answers._latex import FUNCTIONS, tidy
from r2mad.answers._words import folded

_INTEGER = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)"
_DECIMAL = re.compile(rf"([+-]?)({_INTEGER}(?:\.[0-9]*)?|\.[0-9]+)")
_SCIENTIFIC = re.compile(
    r"[-+\u2212]?[0-9]{1,30}(?:\.[0-9]{1,30})?[eE][-+\u2212]?[0-9]{1,3}"
)  # 1.5e-3, as programs write it
_QUOTIENT = re.compile(
    r"([+-]?)(?:\\[dt]?frac ?\{([0-9]+)\} ?\{([0-9]+)\}|([0-9]+) ?/ ?([0-9]+)|\\[dt]?frac ?([0-9]) ?([0-9]))"
)
_LOOKS = re.compile(r"\s+|\\left(?![a-z])|\\right(?![a-z])|\\displaystyle|\\[,;:! ]|\$")
_FRACTION = re.compile(r"\\[dtc]frac")
_SIGNS = frozenset("\\=<>^_{}[]()+*/|")
_MOST = 4_000
"""Characters of an answer that are read as a formula; longer ones are compared as strings."""
_REMEMBERED = 20_000

_NOUNS = re.compile(r"\b(?:answers?|(?:final|correct) (?:result|value|solution|expression))\b", re.IGNORECASE)
_COMMANDS = re.compile(
    r"\\(?:begin|end)\s?\{[a-zA-Z*]{1,20}\}|\\(?:text|mbox|mathrm|textbf)\s?\{[^{}]{0,200}\}|\\[a-zA-Z]{1,30}"
)
_WORDS = re.compile(r"[A-Za-z]{3,}")
_ABOUT = re.compile(
    r"(?:not|correct|right|wrong|incorrect|above|below|clear|obvious|as follows|shown|unclear|in the|in simplest|"
    r"given above|the same|unchanged|unknown|i |we |sorry|cannot|unable|boxed)\b",
    re.IGNORECASE,
)
_MOST_WORDS = 4

_memory: OrderedDict[str, Canonical] = OrderedDict()
_lock = threading.Lock()


def canonical(answer: str) -> Canonical:
    """The canonical form of a formula. It may take a worker process; see `needs_worker`."""
    known = quick(answer)
    if known is not None:
        return known
    verdict = _pool.ask(answer)
    if verdict.given_up:
        form = Canonical("?" + answer, decided=False)
        if not verdict.lasting:
            return form
    else:
        form = Canonical(verdict.key or plain_key(answer))
    with _lock:
        _memory[answer] = form
        while len(_memory) > _REMEMBERED:
            _memory.popitem(last=False)
    return form


def needs_worker(answer: str) -> bool:
    """Whether the canonical form has to be computed in a worker: it is neither a plain number nor remembered."""
    return quick(answer) is None


def quick(answer: str) -> Canonical | None:
    """The canonical form if it takes no worker."""
    text = answer.strip().strip("$").strip()
    if len(text) <= 200:
        value = rational(text)
        if value is not None:
            return Canonical(f"={value}")
    if len(answer) > _MOST:
        return Canonical(plain_key(answer))
    with _lock:
        form = _memory.get(answer)
        if form is not None:
            _memory.move_to_end(answer)
        return form


def rational(text: str) -> Fraction | None:
    """The value of an integer, a decimal or a quotient of integers, written without anything else."""
    match = _DECIMAL.fullmatch(text)
    if match:
        value = Fraction(match[2].replace(",", "").rstrip(".") or "0")
        return -value if match[1] == "-" else value
    match = _SCIENTIFIC.fullmatch(text)
    if match:
        return Fraction(match[0].replace("\u2212", "-"))
    match = _QUOTIENT.fullmatch(text)
    if match:
        top, bottom = (int(part) for part in match.groups()[1:] if part is not None)
        if bottom:
            value = Fraction(top, bottom)
            return -value if match[1] == "-" else value
    return None


def plain_key(answer: str) -> str:
    """The key of what is no formula: its words, or else its characters without spacing."""
    if not _SIGNS & set(answer):
        return "t:" + folded(answer)
    return "s:" + _FRACTION.sub(r"\\frac", _LOOKS.sub("", tidy(answer))).rstrip(".,")


# Extraction


def find(text: str) -> str | None:
    """The LaTeX that the last declaration of a reply (without its reasoning) holds, or a reply that is only a formula.

    A box or another slot counts wherever it stands. "The answer is ..." counts if what follows reads as a formula or
    is short; after a box, only if it reads as a formula.
    """
    found = marks(text, parentheses=False, nouns=_NOUNS)
    slots = any(mark.source == "box" for mark in found)
    for mark in reversed(found):
        if mark.content is None:
            return None
        said = _declared(mark, strict=slots)
        if said:
            return said
    return None if found else _bare(text)


def _declared(mark: Mark, strict: bool) -> str | None:
    content = mark.content or ""
    if echo(content) or len(content) > 20_000:
        return None
    if mark.source == "tag" and marks(content, parentheses=False, nouns=_NOUNS):
        return None  # what stands inside is a declaration of its own
    if mark.source == "phrase":
        said = clause_tidy(sentence(content))
        if "\\boxed" in said or "\\fbox" in said:
            return None  # what stands inside is a declaration of its own
        return said if said and _formula_like(said, strict) and not echo(said) else None
    said = clause_tidy(content)
    if mark.source == "hash" and not _formula_like(said, strict=True):
        return None
    return said or None


def _formula_like(said: str, strict: bool) -> bool:
    """Whether a clause is an answer: it shows a number or a sign, or it is a word or two."""
    words = _WORDS.findall(_COMMANDS.sub(" ", said))
    if _ABOUT.match(said) or len(words) > (1 if strict else _MOST_WORDS):
        return False
    shows = bool(re.search(r"[0-9\\=^+/<>]", said)) or len(said) == 1
    if shows and words and said.startswith(words[0]) and words[0].islower() and words[0] not in FUNCTIONS:
        return False  # "positive, so x = 3"
    return shows or (not strict and 0 < len(said.split()) <= _MOST_WORDS)


def _bare(text: str) -> str | None:
    line = text.strip()
    if not line or "\n" in line.strip("$\\[] \n") or len(line) > 500 or line.endswith("?"):
        return None
    said = clause_tidy(line)
    words = _WORDS.findall(_COMMANDS.sub(" ", said))
    shows = bool(re.search(r"[0-9\\=^]|(?:^|\W)[a-zA-Z]\s?[-+*/]\s?[a-zA-Z](?:\W|$)", said))
    if echo(said) or len(words) > (1 if shows else 2) or (not shows and len(said.split()) > 2) or _ABOUT.match(said):
        return None
    return said or None
