"""A formula's value, and the key it is compared by.

Two formulas are the same if they take the same values. We evaluate at a few fixed generic points, exactly in rational
arithmetic as long as it goes and else with 80 digits, and print what comes out: equal formulas print the same, and
comparing printed keys is transitive. The points of different names have different signs, so that sqrt(x^2) is not x.
Only the worker process imports this module, since a formula may take for ever.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import mpmath

from r2mad.answers._formula import Node, names
from r2mad.answers._latex import Unreadable

mpmath.mp.dps = 80
POINTS = 7
DIGITS = 40
"""Digits that a key prints: far fewer than are computed, so that rounding on the way does not show."""
_TINY = mpmath.mpf(10) ** -55
_MOST_BITS = 20_000
"""Exact powers longer than this are refused: nobody's answer, and the way to fill the memory."""

Value = Any
"""A Fraction where exact, else an mpmath number (mpmath has no types)."""


def point(name: str, index: int) -> Fraction:
    """Where the variable `name` stands at evaluation `index`: point 0 all positive, 1 all negative, then mixed."""
    seed = hashlib.blake2b(f"{name}/{index}".encode(), digest_size=4).digest()
    size = Fraction(int.from_bytes(seed, "big") % 99_991 + 20_011, 50_021)  # in (0.4, 2.4), over a prime
    code = ord(name) - 96 if len(name) == 1 else hashlib.blake2b(name.encode(), digest_size=1).digest()[0]
    negative = index == 1 or (index > 1 and bool(code >> (index - 2) & 1))
    return -size if negative else size


def scalar_key(node: Node) -> str:
    """The key of a scalar formula: `=a/b` for a rational number, `~digits` for another, else values at the points.

    Raises:
        Unreadable: it has no value (a division by zero, say), or an absurdly large one.
    """
    free = names(node)
    if not free:
        return number_key(evaluate(node, {}))
    values = [evaluate(node, {name: point(name, index) for name in free}) for index in range(POINTS)]
    return values_key(values)


def values_key(values: list[Value]) -> str:
    """The key of a function from its values at the points; a constant function has its constant's key."""
    printed = [_digits(value) for value in values]
    if len(set(printed)) == 1:
        return number_key(values[0])
    return "f:" + hashlib.blake2b("|".join(printed).encode(), digest_size=16).hexdigest()


def number_key(value: Value) -> str:
    """The key of one number."""
    exact = rational(value)
    if exact is None:
        return "~" + _digits(value)
    if exact.numerator.bit_length() + exact.denominator.bit_length() > 4000:  # Python prints long numbers slowly
        text = f"{exact.numerator:x}/{exact.denominator:x}"
        return "=" + hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return f"={exact}"


def rational(value: Value) -> Fraction | None:
    """The value as a fraction, if it is one; a computed value is one if it is as near as 80 digits can tell."""
    if isinstance(value, Fraction):
        return value
    if abs(mpmath.im(value)) > _TINY * max(1, abs(value)):
        return None
    real = mpmath.re(value)
    if not mpmath.isfinite(real):
        raise Unreadable("not finite")
    if abs(real) < _TINY:
        return Fraction(0)
    if mpmath.mag(real) > 120:
        return None
    near = _exactly(real).limit_denominator(10**12)
    return near if abs(_inexact(near) - real) < _TINY * max(1, abs(real)) else None


def _exactly(real: Any) -> Fraction:
    sign, mantissa, exponent, _ = real._mpf_
    return Fraction(-int(mantissa) if sign else int(mantissa)) * Fraction(2) ** int(exponent)


def _inexact(value: Value) -> Any:
    if isinstance(value, Fraction):
        return mpmath.mpf(value.numerator) / value.denominator
    return value


def _digits(value: Value) -> str:
    number = _inexact(value)
    size = abs(number)
    if not mpmath.isfinite(size):
        raise Unreadable("not finite")
    parts = []
    for part in (mpmath.re(number), mpmath.im(number)):
        small = abs(part) <= _TINY * max(1, size)
        parts.append("0" if small else mpmath.nstr(part, DIGITS, strip_zeros=True))
    return parts[0] if parts[1] == "0" else "i".join(parts)


def evaluate(node: Node, at: Mapping[str, Fraction], degrees: bool = False) -> Value:
    """The value of a formula where its variables stand `at` these points; `degrees` inside a trigonometric function.

    Raises:
        Unreadable: there is none.
    """
    try:
        return _evaluate(node, at, degrees)
    except (ZeroDivisionError, ValueError, OverflowError, TypeError) as error:
        raise Unreadable(str(error)) from error


def _evaluate(node: Node, at: Mapping[str, Fraction], degrees: bool) -> Value:
    kind = node[0]
    if kind == "num":
        return node[1]
    if kind == "name":
        return at[node[1]]
    if kind == "const":
        return {"pi": +mpmath.pi, "e": +mpmath.e, "i": mpmath.mpc(0, 1)}[node[1]]
    if kind in _FUNCTIONS:
        return _FUNCTIONS[kind](_inexact(_evaluate(node[1], at, kind in _TRIGONOMETRIC)))
    parts = [_evaluate(part, at, degrees) for part in node[1:]]
    if kind in ("+", "-", "*", "/"):
        return _arithmetic(kind, parts[0], parts[1])
    if kind == "neg":
        return -parts[0]
    if kind == "deg":
        return parts[0] if not degrees else _inexact(parts[0]) * mpmath.pi / 180
    if kind == "^":
        return _power(parts[0], parts[1])
    if kind == "root":
        degree = rational(parts[1])
        return _power(parts[0], 1 / degree if degree is not None else 1 / parts[1])
    if kind == "binom":
        return _binomial(parts[0], parts[1])
    if kind == "factorial":
        return _factorial(parts[0])
    return _rounded(kind, parts[0])


def _arithmetic(sign: str, left: Value, right: Value) -> Value:
    if not (isinstance(left, Fraction) and isinstance(right, Fraction)):
        left, right = _inexact(left), _inexact(right)
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    if sign == "*":
        return left * right
    if not isinstance(right, Fraction) and abs(right) < _TINY:
        raise ZeroDivisionError("a division by zero")
    return left / right


def _power(base: Value, exponent: Value) -> Value:
    power = rational(exponent)
    exact = rational(base) if isinstance(base, Fraction) else None
    if power is None:
        return mpmath.power(_inexact(base), _inexact(exponent))
    if power.denominator == 1:
        if exact is not None:
            _check_size(exact, power.numerator)
            return exact**power.numerator
        if abs(power.numerator) > 10**9:
            raise OverflowError("too large a power")
        return mpmath.power(_inexact(base), power.numerator)
    number = _inexact(base)
    if mpmath.im(number) == 0 and mpmath.re(number) < 0 and power.denominator % 2 and power.denominator < 100:
        root = mpmath.power(-mpmath.re(number), _inexact(power))  # the real root, which answers mean by (-8)^{1/3}
        return -root if power.numerator % 2 else root
    if exact is not None and exact > 0 and power.denominator < 100:
        roots = [_whole_root(part, power.denominator) for part in (exact.numerator, exact.denominator)]
        if None not in roots:
            return _power(Fraction(roots[0] or 0, roots[1] or 1), Fraction(power.numerator))
    return mpmath.power(number, _inexact(power))


def _check_size(base: Fraction, exponent: int) -> None:
    bits = max(abs(base.numerator).bit_length(), base.denominator.bit_length())
    if abs(base) != 1 and base != 0 and bits * abs(exponent) > _MOST_BITS:
        raise OverflowError("too large a power")


def _whole_root(value: int, degree: int) -> int | None:
    """The root of a positive integer if it is one, found by halving: exact where floating point is not."""
    low, high = 1, 1 << (value.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**degree < value:
            low = middle + 1
        else:
            high = middle
    return low if low**degree == value else None


def _factorial(value: Value) -> Value:
    whole = rational(value)
    if whole is not None and whole.denominator == 1:
        if whole < 0 or whole > 2000:
            raise OverflowError("no factorial, or too large a one")
        return Fraction(math.factorial(int(whole)))
    return mpmath.gamma(_inexact(value) + 1)


def _binomial(n: Value, k: Value) -> Value:
    top, bottom = rational(n), rational(k)
    if bottom is not None and bottom.denominator == 1 and 0 <= bottom <= 2000 and top is not None:
        result = Fraction(1)
        for step in range(int(bottom)):
            result = result * (top - step) / (step + 1)
        return result
    return mpmath.binomial(_inexact(n), _inexact(k))


def _rounded(kind: str, value: Value) -> Value:
    exact = rational(value)
    if kind == "abs":
        return abs(exact) if exact is not None else abs(value)
    if exact is None:
        exact = Fraction(int(mpmath.floor(mpmath.re(value)))) + Fraction(1, 2)  # anything inside the unit interval
    if kind == "floor":
        return Fraction(exact.numerator // exact.denominator)
    if kind == "ceil":
        return Fraction(-(-exact.numerator // exact.denominator))
    raise ValueError(f"no such operation: {kind}")


def _log10(value: Any) -> Any:
    return mpmath.log(value) / mpmath.log(10)


def _checked_log(value: Any) -> Any:
    if abs(value) < _TINY:
        raise ZeroDivisionError("the logarithm of zero")
    return mpmath.log(value)


_FUNCTIONS: dict[str, Any] = {
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan, "cot": mpmath.cot, "sec": mpmath.sec, "csc": mpmath.csc,
    "arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": mpmath.atan, "arccot": mpmath.acot, "sinh": mpmath.sinh,
    "cosh": mpmath.cosh, "tanh": mpmath.tanh, "ln": _checked_log, "log": _log10, "lg": _log10, "exp": mpmath.exp,
}  # fmt: skip
_TRIGONOMETRIC = frozenset(["sin", "cos", "tan", "cot", "sec", "csc"])
