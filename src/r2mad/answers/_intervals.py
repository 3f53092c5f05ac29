"""Unions and inequalities as intervals of the real line, in one canonical order and merged where they meet."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise
from typing import Any

from r2mad.answers._brackets import Tokens, closing, infinity, outside, split, unwrap
from r2mad.answers._evaluate import evaluate, number_key, rational
from r2mad.answers._formula import Node, names, parse
from r2mad.answers._latex import Unreadable

Interval = tuple[Any, Any, bool, bool]
"""Lower and upper end (None is infinite), and whether each is part of it."""


ORDER = frozenset(["<", ">", "<=", ">="])
_FLIP = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_INFINITE = float("inf")


def interval_key(low: str, high: str, low_closed: bool, high_closed: bool) -> str:
    """An open interval prints as the tuple of its ends, for it is written so."""
    return ("[" if low_closed else "(") + low + ";" + high + ("]" if high_closed else ")")


def union_key(intervals: list[Interval]) -> str:
    """The key of a union: one interval's own key if a single one remains."""
    merged: list[Interval] = []
    for interval in sorted((piece for piece in intervals if not _empty(piece)), key=_by_low):
        if merged and _meets(merged[-1], interval):
            merged[-1] = _joined(merged[-1], interval)
        else:
            merged.append(interval)
    if not merged:
        return "set{}"
    if merged == [(None, None, False, False)]:
        return "all"
    keys = [_key(piece) for piece in merged]
    return keys[0] if len(keys) == 1 else "union{" + ";".join(keys) + "}"


def _key(piece: Interval) -> str:
    low, high, low_closed, high_closed = piece
    if low is not None and low_closed and high_closed and number_key(low) == number_key(high):
        return number_key(low)
    low_key = "inf:-1" if low is None else number_key(low)
    high_key = "inf:1" if high is None else number_key(high)
    return interval_key(low_key, high_key, low_closed, high_closed)


def _float(end: Any, infinite: float) -> float:
    return infinite if end is None else float(end)


def _by_low(piece: Interval) -> tuple[float, bool, float]:
    return _float(piece[0], -_INFINITE), not piece[2], _float(piece[1], _INFINITE)


def _empty(piece: Interval) -> bool:
    low, high = _float(piece[0], -_INFINITE), _float(piece[1], _INFINITE)
    return low > high or (low == high and not (piece[2] and piece[3]))


def _meets(left: Interval, right: Interval) -> bool:
    end, start = _float(left[1], _INFINITE), _float(right[0], -_INFINITE)
    return start < end or (start == end and (left[3] or right[2]))


def _joined(left: Interval, right: Interval) -> Interval:
    end, other = _float(left[1], _INFINITE), _float(right[1], _INFINITE)
    if other > end:
        return left[0], right[1], left[2], right[3]
    return left[0], left[1], left[2], left[3] or (other == end and right[3])


def intersection(intervals: list[Interval]) -> Interval | None:
    """What all of them have in common, or nothing."""
    low = max(intervals, key=lambda piece: (_float(piece[0], -_INFINITE), not piece[2]))
    high = min(intervals, key=lambda piece: (_float(piece[1], _INFINITE), piece[3]))
    common = (low[0], high[1], low[2], high[3])
    return None if _empty(common) else common


def pieces(tokens: Tokens) -> list[Interval]:
    """The intervals that a union, an inequality or a list of them stands for, in the order written.

    Raises:
        Unreadable: it is nothing of the kind.
    """
    tokens = unwrap(tokens)
    signs = [value for kind, value in outside(tokens) if kind == "rel"]
    if signs == ["in"]:
        return pieces(split(tokens, "rel")[1])
    if signs:
        return inequality(split(tokens, "rel"), signs)
    operators = [value for kind, value in outside(tokens) if kind == "setop"]
    if operators:
        parts = split(tokens, "setop")
        if operators == ["setminus"] and pieces(parts[0]) == [(None, None, False, False)]:
            return punctured([number(item) for item in split(unset(parts[1]), "comma", inside=True)])
        if set(operators) != {"cup"}:
            raise Unreadable("an intersection or a difference")
        return [piece for part in parts for piece in pieces(part)]
    if tokens == [("const", "reals")]:
        return [(None, None, False, False)]
    if len(tokens) > 3 and tokens[0][0] == "open" and closing(tokens, 0) == len(tokens) - 1:
        items = split(tokens[1:-1], "comma", inside=True)
        if tokens[0][1] == "set":
            return [(value, value, True, True) for value in map(number, items)]
        if len(items) == 2 and tokens[0][1] in "([" and tokens[-1][1] in "([":
            low, high = (None if infinity(item) else number(item) for item in items)
            return [(low, high, tokens[0][1] == "[", tokens[-1][1] == "[")]
    raise Unreadable("no interval")


def unset(tokens: Tokens) -> Tokens:
    if len(tokens) < 3 or tokens[0] != ("open", "set"):
        raise Unreadable("no set")
    return tokens[1:-1]


def punctured(points: list[Any]) -> list[Interval]:
    """The real line without these points."""
    ends = [None, *sorted(points, key=lambda value: float(value)), None]
    return [(low, high, False, False) for low, high in pairwise(ends)]


def number(tokens: Tokens) -> Any:
    """The value of a constant real formula."""
    node = parse(tokens)
    if names(node):
        raise Unreadable("a bound with a variable")
    value = evaluate(node, {})
    exact = rational(value)
    if exact is None and number_key(value).count("i"):
        raise Unreadable("a complex bound")
    return value if exact is None else exact


def inequality(parts: list[Tokens], signs: list[str]) -> list[Interval]:
    """`a < x <= b`, or one inequality that is linear in its one variable."""
    if signs == ["!="]:
        signs, excluded = ["<"], True
    else:
        excluded = False
    if not all(sign in ORDER for sign in signs):
        raise Unreadable("a mixed relation")
    if len(parts) == 3:
        if {sign[0] for sign in signs} == {"<", ">"}:
            raise Unreadable("a chain that turns round")
        if signs[0][0] == ">":
            parts, signs = parts[::-1], [_FLIP[sign] for sign in signs[::-1]]
        if len({value for part in parts for kind, value in part if kind == "name"}) != 1:
            raise Unreadable("not one variable")
        common = intersection([*inequality(parts[:2], signs[:1]), *inequality(parts[1:], signs[1:])])
        return [common] if common else []
    if len(parts) != 2:
        raise Unreadable("too long a chain")
    for side in (0, 1):  # x < infinity
        if infinity(parts[side]):
            return [(None, None, False, False)]
    slope, root = linear(("-", parse(parts[0]), parse(parts[1])))
    if excluded:
        return punctured([root])
    closed = signs[0].endswith("=")
    below = (signs[0][0] == "<") == (slope > 0)
    return [(None, root, False, closed)] if below else [(root, None, closed, False)]


def linear(node: Node) -> tuple[Any, Any]:
    """Slope and root of a formula that is linear in its only variable."""
    free = names(node)
    if len(free) != 1:
        raise Unreadable("not one variable")
    name = free.pop()
    values = [evaluate(node, {name: Fraction(x)}) for x in (0, 1, 2, -3, 7)]
    slope = evaluate(("-", ("num", values[1]), ("num", values[0])), {})
    for x, value in zip((2, -3, 7), values[2:], strict=True):
        line = ("+", ("num", values[0]), ("*", ("num", Fraction(x)), ("num", slope)))
        if number_key(evaluate(("-", line, ("num", value)), {})) != "=0":
            raise Unreadable("not linear")
    if number_key(slope) == "=0" or re.search("i", number_key(slope)):
        raise Unreadable("no slope")
    root = evaluate(("neg", ("/", ("num", values[0]), ("num", slope))), {})
    exact = rational(root)
    return slope, root if exact is None else exact
