"""What follows "the answer is", for answers that are no option: up to the end of its sentence."""

from __future__ import annotations

import re

from r2mad.answers._words import word_set

_ABBREVIATIONS = word_set(
    "dr mr mrs ms st prof jr sr vs mt ft inc ltd co corp no gen sen rep gov capt lt col approx fig eq ca cf al dept "
    "univ est min max etc e.g i.e"
)
_STARTERS = word_set(
    "The This That These Those It He She They We You I In On At A An As So Because Since Therefore Thus Hence However "
    "But And Note My Here There If When His Her Their Its For To By With Its Let Both Another Also"
)
_STOP = re.compile(r"(?<!\\)[.!?](?=[\"'\u201d\u2019)*_`\]$]{0,6}(?:\s|$))")
_LAST_WORD = re.compile(r"([^\s(\"'\u201c*_]{1,20})$")
_NEXT_WORD = re.compile(r"[\"'\u201d\u2019)*_`\]$]{0,6}\s{1,4}([\"'\u201c(]?\w{1,20})")
_REASON = re.compile(
    r"(?:\s|,\s|;\s|\s[-\u2013\u2014]\s)(?:because|since|as it|as they|which (?:is|was|are|has|means)|so that|"
    r"due to the fact|given that|where)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_PADDING = re.compile(
    r"(?:that|simply|just|indeed|therefore|thus|hence|then|clearly|obviously|equal to|given by|approximately|about|"
    r"roughly|exactly|probably|likely|most likely|definitely|also|still|now|:|=)[,:]?\s{1,3}(?=\S)",
    re.IGNORECASE,
)
_DISPLAY = re.compile(r"\s{0,8}(\$\$|\\\[|\$|\\\()\s{0,8}")
_CLOSER = {"$$": "$$", "\\[": "\\]", "$": "$", "\\(": "\\)"}
_THIN_SPACE = re.compile(r"(?:\\[,;:! ])+(?=\.?$)")  # \, and its like at the end: a space of LaTeX, not a backslash
_EDGES = " \t\r\n*_`"
_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb"}


def sentence(content: str) -> str:
    """The first sentence of a content, or the whole formula that it begins with; nothing of its markdown."""
    opening = _DISPLAY.match(content)
    if opening and opening[1] in ("$$", "\\["):
        end = content.find(_CLOSER[opening[1]], opening.end())
        if end >= 0:
            return content[opening.end() : end].strip()
    line = content.strip().split("\n", 1)[0]
    for stop in _STOP.finditer(line):
        if not _abbreviates(line, stop.start()):
            line = line[: stop.start() + (stop.group() == "!" and line[: stop.start()][-1:].isdigit())]
            break
    return tidy(_REASON.sub("", line))


def _abbreviates(line: str, at: int) -> bool:
    """Whether the full stop at `at` belongs to an abbreviation or an initial, and not to the sentence's end."""
    if line[at] != ".":
        return False
    last = _LAST_WORD.search(line[max(0, at - 20) : at])
    word = last[1] if last else ""
    following = _NEXT_WORD.match(line, at + 1)
    if following is None:
        return bool(re.fullmatch(r"(?:[A-Za-z]\.)+[A-Za-z]", word))
    if word.casefold() in _ABBREVIATIONS:
        return True
    initials = bool(re.fullmatch(r"(?:[A-Za-z]\.)*[A-Za-z]", word)) and (word[0].isupper() or "." in word)
    return initials and following[1] not in _STARTERS


def tidy(text: str) -> str:
    """Without markdown, quotes and mathematics' dollars around it, padding words before it and a stop after it."""
    for _ in range(8):  # markdown in quotes in mathematics ...: nobody nests deeper
        before = text
        text = _THIN_SPACE.sub("", text.strip(_EDGES)).rstrip(",;:")
        if text.endswith(".") and not re.search(r"(?:\b[A-Za-z]\.){2}$|\.\.$", text):
            text = text[:-1]
        for opener, closer in (*_QUOTES.items(), ("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")):
            long = len(text) > len(opener) + len(closer)
            if long and text.startswith(opener) and text.endswith(closer):
                inner = text[len(opener) : len(text) - len(closer)]
                if opener not in inner.replace("\\$", "") and closer not in inner.replace("\\$", ""):
                    text = inner
        text = _PADDING.sub("", text, count=1) if _PADDING.match(text) else text
        if text == before:
            break
    return text
