"""Tokens and their brackets: what stands outside all of them, and where to cut."""

from __future__ import annotations

from itertools import product

from r2mad.answers._latex import Token, Unreadable

Tokens = list[Token]

_MOST_SIGNS = 4  # 2**4 formulas from the plus-minus signs of one answer
_STEPS = {"open": 1, "begin": 1, "close": -1, "end": -1}


def unwrap(tokens: Tokens) -> Tokens:
    """Without the braces, or the parentheses round a single thing, that enclose the whole."""
    while len(tokens) > 1 and tokens[0] in (("open", "{"), ("open", "(")) and closing(tokens, 0) == len(tokens) - 1:
        if tokens[0][1] != tokens[-1][1] or (
            tokens[0][1] == "(" and len(split(tokens[1:-1], "comma", inside=True)) > 1
        ):
            break
        tokens = tokens[1:-1]
    return tokens


def closing(tokens: Tokens, start: int) -> int:
    """Where the bracket at `start` closes; an interval's may close with the other sort. -1 if it never does."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += _STEPS.get(tokens[index][0], 0)
        if depth == 0:
            return index
    return -1


def split(tokens: Tokens, *kinds: str, inside: bool = False) -> list[Tokens]:
    """Cut at the tokens of these kinds outside all brackets. A comma that may be a thousands separator cuts only
    *inside* a tuple or set, where it would be ambiguous; `58,500` is a number and `(58,500)` a pair."""
    parts: list[Tokens] = [[]]
    depth = 0
    for index, token in enumerate(tokens):
        depth += _STEPS.get(token[0], 0)
        if depth == 0 and token[0] in kinds and (token != ("comma", ",3") or inside or not _thousands(tokens, index)):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _thousands(tokens: Tokens, index: int) -> bool:
    """Whether the comma at `index` belongs to a number such as 1,234,567: one to three digits, then threes."""
    start = index - 1
    while start > 1 and tokens[start - 1] == ("comma", ",3") and tokens[start - 2][0] == "num":
        start -= 2
    first = tokens[start][1]
    return tokens[start][0] == "num" and first.isdigit() and 1 <= len(first) <= 3 and first != "0"


def expanded(tokens: Tokens) -> list[Tokens]:
    """The formulas that plus-minus signs stand for: one sign for all if there is a minus-plus, else each its own."""
    places = [index for index, token in enumerate(tokens) if token in (("op", "pm"), ("op", "mp"))]
    if not places:
        return [tokens]
    if len(places) > _MOST_SIGNS:
        raise Unreadable("too many plus-minus signs")
    tied = any(tokens[index][1] == "mp" for index in places)
    choices = [(sign,) * len(places) for sign in (1, -1)] if tied else list(product((1, -1), repeat=len(places)))
    variants = []
    for signs in choices:
        variant = list(tokens)
        for index, sign in zip(places, signs, strict=True):
            variant[index] = ("op", "+" if (sign > 0) == (tokens[index][1] == "pm") else "-")
        variants.append(variant)
    return variants


def outside(tokens: Tokens) -> Tokens:
    """The tokens outside all brackets."""
    found, depth = [], 0
    for token in tokens:
        depth += _STEPS.get(token[0], 0)
        if depth == 0:
            found.append(token)
    return found


def wrap(tokens: Tokens) -> Tokens:
    return [("open", "("), *tokens, ("close", "(")]


def infinity(tokens: Tokens) -> int:
    """1 or -1 for an infinite answer, else 0."""
    signs = [value for _, value in tokens[:-1]]
    if tokens[-1:] != [("const", "infty")] or signs not in ([], ["+"], ["-"]):
        return 0
    return -1 if signs == ["-"] else 1
