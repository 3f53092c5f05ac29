"""Words folded to what they say: case, articles, punctuation and spacing do not count."""

from __future__ import annotations

import re
import unicodedata

_ARTICLES = frozenset(["a", "an", "the"])
_MOST = 20_000  # characters; what is longer is no short answer, and is only compared as it is
_ROMAN = frozenset("ivxlcdm")
_JOINS = frozenset(["and", "or"])
_SILENT = str.maketrans(dict.fromkeys("'\u2018\u2019\u02bc`\u00b4\u00ad\u200b\u200c\u200d\u2060\ufeff", ""))
_MINUS = re.compile(r"(?<![\w)])[-\u2212](?=\.?\d)")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d])")
_INNER_DOT = re.compile(r"(?<=[^\W\d_])\.(?=[^\W\d_])")


def word_set(text: str) -> frozenset[str]:
    """The words of a text, to write long tables by."""
    return frozenset(text.split())


def folded(text: str, spaced: bool = False) -> str:
    """What is left of a text when it is folded; a text of nothing but signs keeps them.

    "U.S." and "US" are the same and so are "ice cream" and "ice-cream", hence no spaces are kept, but between digits;
    a minus sign before a number stays, and a letter that only looks like an article ("vitamin A") does as well. Where
    options are told apart, "I and II" must not become "III": `spaced` keeps the words apart.
    """
    if len(text) > _MOST:
        return " ".join(text.casefold().split())
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_SILENT)
    plain = _MINUS.sub("\0", plain.replace("\0", " ").replace("&", " and "))
    plain = _GROUPED.sub(lambda match: match.group().replace(",", ""), plain)
    plain = _INNER_DOT.sub("", plain)
    words = "".join(_letter(char) for char in plain).replace("\0", " -").split()
    kept = [word for index, word in enumerate(words) if not _article(words, index)]
    if spaced:
        return " ".join(kept) or "".join(plain.split())
    out: list[str] = []
    for word in kept:
        if out and ((out[-1][-1].isdigit() and word[0].isdigit()) or (set(word) <= _ROMAN and set(out[-1]) <= _ROMAN)):
            out.append(" ")
        out.append(word)
    return "".join(out) or "".join(plain.split())


def _letter(char: str) -> str:
    if char == "\0" or char.isalnum():
        return char
    return char if unicodedata.category(char)[0] == "M" or unicodedata.category(char) == "Sm" else " "


def _article(words: list[str], index: int) -> bool:
    return words[index] in _ARTICLES and index + 1 < len(words) and words[index + 1] not in _JOINS
