"""Numbers with their units: the answer in a reply, and its canonical form.

Without any declaration, a number that is merely mentioned is no answer, since the reply may have been cut off in the
middle of its arithmetic. Two things still are one: a reply that is nothing but a number with its unit, and a closing
sentence that draws a conclusion ("So she has 3 + 4 = 7 apples."), is whole, and leaves no choice of numbers.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

from r2mad.answers._canonical import Canonical
from r2mad.answers._clause import sentence
from r2mad.answers._declare import Mark, echo, marks
from r2mad.answers._words import folded

_NOUNS = re.compile(r"\b(?:answers?|(?:final|correct) (?:result|total|number|value|amount))\b", re.IGNORECASE)
_TO_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_SMALL = {word: value for value, word in enumerate(_TO_TWENTY.split())} | {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
    "hundred": 100,
}
_SCALE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_LATEX = (
    (re.compile(r"\\[dt]?frac\s?\{\s?(-?[0-9]{1,50})\s?\}\s?\{\s?([0-9]{1,50})\s?\}"), r" \1/\2"),
    (re.compile(r"\\[dt]?frac\s?([0-9])\s?([0-9])"), r" \1/\2"),
    (re.compile(r"\\(?:text|mbox|mathrm|textbf|mathbf|textrm)\s?\{([^{}]{0,200})\}"), r" \1"),
    (re.compile(r"(?<=[0-9])(?:\\!|\{,\}|,\\!|\\,|[\u202f\u2009\xa0])\s?(?=[0-9]{3}(?![0-9]))"), ""),
    (re.compile(r"(?<=[0-9])\s?(?:\\times|\\cdot|[\u00d7*x])\s?10\s?\^\s?\{?\s?([-+]?[0-9]{1,12})\s?\}?"), r"e\1"),
    (re.compile(r"\\(?:[!,;: %$&#]|left|right|quad|approx|boxed)"), " "),
    (re.compile(r"[$\u20ac\u00a3\u00a5\u20b9{}*_`]"), " "),
)
_NUMBER = re.compile(
    r"(?<![\w.,])(?P<sign>[-+]\s?)?(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)?(?P<part>\.[0-9]+)?(?(whole)|(?(part)|\b\B))"
    r"(?P<exp>[eE][-+]?[0-9]{1,12}(?![0-9a-zA-Z]))?"
    r"(?:\s?/\s?(?P<under>[0-9]+)(?![0-9.,/]|\s?/)|\s(?P<top>[0-9]+)/(?P<bottom>[0-9]+)(?![0-9.,/]))?"
    r"(?:\s(?P<scale>thousand|million|billion|trillion)\b)?",
    re.IGNORECASE,
)
_WORD_NUMBER = re.compile(r"\b(?:" + "|".join(_SMALL) + r")\b", re.IGNORECASE)
_GOES_ON = re.compile(r"\s{0,3}(?:[+*/\u00d7\u00f7^=:\u2013]|-\s{0,2}[0-9]|(?:or|to)\s{1,3}[-+]?[0-9])")
_DENIED = re.compile(r"\b(?:not|isn't|isn\u2019t|never|than|between|either)\b\W{0,6}$", re.IGNORECASE)
_CONCLUSION = re.compile(
    r"^\W{0,6}(?:so|therefore|thus|hence|in total|altogether|in all|consequently|finally|that means|this means)\b",
    re.IGNORECASE,
)
_MOST = 5_000
_LARGEST_EXPONENT = 400


def canonical(answer: str) -> Canonical:
    """The exact value, whatever its unit, sign of currency or percentage; words folded if it is no number."""
    plain = _plain(answer[:_MOST])
    match = _NUMBER.search(plain)
    if match is None or len(answer) > _MOST or _GOES_ON.match(plain, match.end()):
        return Canonical("t:" + folded(answer))
    if re.search(r"[0-9]", plain[: match.start()] + plain[match.end() :]) or len(plain[: match.start()].split()) > 3:
        return Canonical("t:" + folded(answer))
    return Canonical(_key(match))


def find(text: str) -> str | None:
    """The number that the last declaration of a reply (without its reasoning) gives, digits only."""
    for mark in reversed(marks(text, parentheses=True, nouns=_NOUNS)):
        if mark.content is None:
            return None
        found = _declared(mark)
        if found is not None:
            return found or None
    return _bare(text)


def _plain(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text.replace("\u2212", "-").replace("\u00bd", " 1/2"))
    plain = plain.replace("\u2212", "-").replace("\u2044", "/")
    for pattern, replacement in _LATEX:
        plain = pattern.sub(replacement, plain)
    return re.sub(r"-[ ]{1,4}(?=[0-9.])", "-", plain.strip()) if plain.strip().startswith("-") else plain.strip()


def _declared(mark: Mark) -> str | None:
    """The number of a declaration; "" if it certainly gives none, nothing if it says nothing about a number."""
    content = mark.content or ""
    if echo(content):
        return None
    if mark.source == "tag" and marks(content, parentheses=True, nouns=_NOUNS):
        return None
    if mark.source == "phrase":
        content = sentence(content)
    plain = _plain(content[:_MOST])
    if mark.source in ("hash", "parens"):
        number = _NUMBER.search(plain)
        if number is None or len(plain.split()) > 6 or re.match(r"(?:step|part|case|method|section)\b", plain, re.I):
            return None
    return _number(plain)


def _number(plain: str) -> str | None:
    """The number that a clause gives: what its last equals sign leads to, or else the first that is not denied."""
    _, equals, tail = plain.rpartition("=")
    if equals and _NUMBER.search(tail):
        plain = tail
    for match in _NUMBER.finditer(plain):
        if _DENIED.search(plain[max(0, match.start() - 30) : match.start()]):
            if re.search(r"\b(?:between|either)\b", plain[max(0, match.start() - 30) : match.start()], re.I):
                return ""
            continue
        if _GOES_ON.match(plain, match.end()):
            return ""
        return _spelled(match)
    words = _WORD_NUMBER.findall(plain)
    return str(_SMALL[words[0].lower()]) if len(words) == 1 and not _DENIED.search(plain.split(words[0])[0]) else None


def _spelled(match: re.Match[str]) -> str:
    """A match as a plain number: no separators, no sign of plus; scales and mixed fractions worked out."""
    sign = "-" if (match["sign"] or "").startswith("-") else ""
    whole = (match["whole"] or "").replace(",", "")
    digits = (whole or "0") + (match["part"] or "") + (match["exp"] or "")
    if match["under"]:
        return f"{sign}{digits}/{match['under']}"
    if match["top"] and int(match["bottom"][:40]) and not match["part"]:
        value = Fraction(int(whole[:400] or "0")) + Fraction(int(match["top"][:400]), int(match["bottom"][:400]))
        return sign + str(value)
    if match["scale"] and len(digits) < 60 and not match["exp"]:
        value = Fraction(digits) * _SCALE[match["scale"].lower()]
        return sign + (str(value) if value.denominator == 1 else digits + " " + match["scale"].lower())
    return sign + digits


def _key(match: re.Match[str]) -> str:
    """The exact value of a match. A huge exponent is never written out: sign, digits and exponent are the key."""
    spelled = _spelled(match).split(" ")[0]
    sign, body = ("-", spelled[1:]) if spelled[0] == "-" else ("", spelled)
    top, _, bottom = body.partition("/")
    mantissa, _, exponent = top.lower().partition("e")
    power = int(exponent or "0")
    if abs(power) <= _LARGEST_EXPONENT and len(body) < 1000 and (not bottom or int(bottom)):
        value = Fraction(mantissa) * Fraction(10) ** power / int(bottom or "1")
        if match["scale"] and " " in _spelled(match):
            value *= _SCALE[match["scale"].lower()]
        return f"={-value if sign else value}"
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    power -= len(part)
    stripped = digits.rstrip("0")
    if not stripped:
        return "=0" if not bottom else f"{spelled}"
    return f"{sign}{stripped}e{power + len(digits) - len(stripped)}" + (f"/{bottom}" if bottom else "")


def _bare(text: str) -> str | None:
    lines = [line.strip() for line in text.strip().split("\n") if line.strip()]
    if not lines:
        return None
    plain = _plain(lines[0][:_MOST])
    if len(lines) == 1 and len(plain.split()) <= 6 and not plain.endswith("?"):
        numbers = list(_NUMBER.finditer(plain.rpartition("=")[2]))
        if len(numbers) == 1:
            return _number(plain) or None
        word = _WORD_NUMBER.fullmatch(plain.strip(".! "))
        return str(_SMALL[word.group().lower()]) if word else None
    last = lines[-1][-1000:]
    if not re.search(r"[.!][*_$\s)]{0,6}$", last):
        return None
    final = re.split(r"(?<=[.!?])\s+(?=[A-Z*$\\])", last)[-1]
    if not _CONCLUSION.match(final):
        return None
    plain = _plain(final)
    tail = plain.rpartition("=")[2]
    return (_number(plain) or None) if len(list(_NUMBER.finditer(tail))) == 1 else None
