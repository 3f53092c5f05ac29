"""Tokens of one scalar formula to a tree; the reading is what a mathematician means, not what LaTeX prints."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from r2mad.answers._latex import Token, Unreadable

Node = tuple[Any, ...]
"""("num", Fraction) · ("name", str) · ("const", str) · (function or operator, argument nodes...)."""

_CLOSERS = {"(": "(", "[": "[", "{": "{", "floor": "floor", "ceil": "ceil"}
_INVERSE = {"sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot"}
_ONE: Node = ("num", Fraction(1))


def parse(tokens: list[Token]) -> Node:
    """The tree of a scalar formula.

    Raises:
        Unreadable: it is not one, or it uses something that this reader does not know.
    """
    if not tokens:
        raise Unreadable("nothing")
    reader = _Reader(list(tokens))
    node = reader.choose()
    if reader.at != len(reader.tokens):
        raise Unreadable("something is left over")
    return node


def literal(text: str) -> Fraction:
    """A decimal literal's exact value.

    Raises:
        Unreadable: it is absurdly long.
    """
    if len(text) > 1000:
        raise Unreadable("a number of more than a thousand digits")
    return Fraction(text if text[-1] != "." else text + "0")


class _Reader:
    """Recursive descent. Precedence: sum < product and quotient, left to right < sign < power < factorial."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    def peek(self, ahead: int = 0) -> Token:
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else ("", "")

    def take(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def expect(self, kind: str, value: str) -> None:
        if self.take() != (kind, value):
            raise Unreadable(f"no {value}")

    def sum(self) -> Node:
        node = self.product()
        while self.peek() in (("op", "+"), ("op", "-")):
            sign = self.take()[1]
            node = (sign, node, self.product())
        return node

    def choose(self) -> Node:
        """The contents of braces, which may be `n \\choose k`."""
        node = self.sum()
        if self.peek() == ("cmd", "choose"):
            self.take()
            node = ("binom", node, self.sum())
        return node

    def product(self) -> Node:
        node = self.signed()
        while True:
            token = self.peek()
            if token in (("op", "*"), ("op", "/")):
                self.take()
                if token[1] == "/" and self.peek()[0] in ("text", "word"):
                    self.units()
                else:
                    node = (token[1], node, self.signed())
            elif token[0] in ("text", "word"):
                self.units()
            elif self.starts_factor():
                if token[0] == "num" and self.tokens[self.at - 1][0] in ("num", "name"):
                    raise Unreadable("two numbers side by side")
                node = ("*", node, self.power())
            else:
                return node

    def units(self) -> None:
        """Skip a unit. It must end its number: after it, only another unit or an operator makes sense."""
        while self.peek()[0] in ("text", "word"):
            self.take()
            if self.peek() == ("op", "^"):
                self.take()
                self.argument()
            if self.peek() == ("op", "/") and self.peek(1)[0] in ("text", "word"):
                self.take()
        if self.starts_factor() or self.peek()[0] == "op":
            raise Unreadable("something follows a unit")

    def starts_factor(self) -> bool:
        kind, value = self.peek()
        if kind == "open":
            return value in _CLOSERS
        return kind in ("num", "name", "func") or (kind == "const" and value in ("pi", "e", "i", "infty"))

    def signed(self) -> Node:
        token = self.peek()
        if token in (("op", "+"), ("op", "-")):
            self.take()
            node = self.signed()
            return ("neg", node) if token[1] == "-" else node
        return self.power()

    def power(self) -> Node:
        node = self.postfix(self.atom())
        if self.peek() == ("op", "^"):
            self.take()
            node = self.postfix(("^", node, self.exponent()))
        if self.peek() == ("op", "^"):
            raise Unreadable("a double power")
        return node

    def exponent(self) -> Node:
        if self.peek() == ("op", "-"):
            self.take()
            return ("neg", self.exponent())
        if self.peek()[0] == "func":
            return self.atom()
        return self.argument()

    def postfix(self, node: Node) -> Node:
        while self.peek() in (("op", "!"), ("op", "deg")):
            mark = self.take()[1]
            node = ("factorial", node) if mark == "!" else ("deg", node)
        return node

    def argument(self, digit: bool = False) -> Node:
        """What a command takes: a braced group, or else one token; one *digit* for `\\frac12` and `\\sqrt2`."""
        kind, value = self.peek()
        if (kind, value) == ("open", "{"):
            return self.group("{")
        if kind == "num":
            if digit and value.isdigit() and len(value) > 1:
                self.tokens[self.at] = ("num", value[1:])
                return ("num", Fraction(int(value[0])))
            return self.number()
        if kind in ("name", "const") or (kind == "open" and value in ("(", "[")) or kind == "func":
            return self.atom()
        raise Unreadable("a command without its argument")

    def group(self, opener: str) -> Node:
        self.expect("open", opener)
        node = self.choose() if opener == "{" else self.sum()
        self.expect("close", _CLOSERS[opener])
        return node

    def atom(self) -> Node:
        kind, value = self.peek()
        if kind == "num":
            return self.mixed(self.number())
        if kind == "name":
            self.take()
            return self.subscripted(value)
        if kind == "const" and value in ("pi", "e", "i"):
            self.take()
            return (kind, value)
        if kind == "open" and value in _CLOSERS:
            node = self.group(value)
            return (value, node) if value in ("floor", "ceil") else node
        if kind == "bar":
            return self.absolute()
        if kind == "func":
            return self.function()
        raise Unreadable(f"{kind} {value}")

    def absolute(self) -> Node:
        self.take()
        node = self.sum()
        self.expect("bar", "|")
        return ("abs", node)

    def number(self) -> Node:
        text = self.take()[1]
        if self.peek() == ("func", "overline") and "." in text:  # 0.\overline{3}
            self.take()
            self.expect("open", "{")
            kind, digits = self.take()
            if kind != "num" or not digits.isdigit():
                raise Unreadable("an overline over something else")
            self.expect("close", "{")
            places = len(text.partition(".")[2])
            return ("num", literal(text) + Fraction(int(digits), (10 ** len(digits) - 1) * 10**places))
        while self.peek()[0] == "comma" and self.peek()[1] == ",3" and self.peek(1)[0] == "num":
            self.take()
            text += self.take()[1]
        if self.peek() == ("op", "_"):  # the base of a numeral is dropped
            self.take()
            if self.peek() == ("open", "{"):
                self.skip_group()
            else:
                self.take()
        return ("num", literal(text))

    def mixed(self, whole: Node) -> Node:
        """A whole number and a proper fraction of whole numbers side by side are added: `1\\frac{4}{5}` is 9/5."""
        value: Fraction = whole[1]
        before = self.tokens[self.at - 1]
        if value.denominator != 1 or before[0] != "num" or "." in before[1]:
            return whole
        start = self.at
        if self.peek() == ("func", "frac"):
            self.take()
            top, bottom = self.argument(digit=True), self.argument(digit=True)
        elif self.peek()[0] == "num" and self.peek(1) == ("op", "/") and self.peek(2)[0] == "num":
            top = self.number()
            self.take()
            bottom = self.number()
        else:
            return whole
        if top[0] == bottom[0] == "num" and top[1].denominator == bottom[1].denominator == 1 and top[1] < bottom[1]:
            return ("num", value + top[1] / bottom[1])
        self.at = start
        if self.peek()[0] == "num":
            raise Unreadable("two numbers side by side")
        return whole

    def subscripted(self, name: str) -> Node:
        if self.peek() == ("op", "_"):
            self.take()
            start = self.at
            if self.peek() == ("open", "{"):
                self.skip_group()
            else:
                self.take()
            inside = [value for _, value in self.tokens[start : self.at] if value != "{"]
            name += "_" + "".join(inside)
        while self.peek() == ("op", "prime"):
            self.take()
            name += "'"
        return ("name", name)

    def skip_group(self) -> None:
        depth = 0
        while self.at < len(self.tokens):
            token = self.take()
            depth += (token == ("open", "{")) - (token == ("close", "{"))
            if depth == 0:
                return
        raise Unreadable("a brace is never closed")

    def function(self) -> Node:
        name = self.take()[1]
        if name in ("frac", "binom"):
            top = self.argument(digit=True)
            bottom = self.argument(digit=True)
            return ("/", top, bottom) if name == "frac" else ("binom", top, bottom)
        if name == "sqrt":
            degree: Node | None = None
            if self.peek() == ("open", "["):
                degree = self.group("[")
            radicand = self.argument(digit=True)
            return ("^", radicand, ("num", Fraction(1, 2))) if degree is None else ("root", radicand, degree)
        if name == "overline":
            raise Unreadable("a conjugate or a segment")
        base: Node | None = None
        if name in ("log", "lg") and self.peek() == ("op", "_"):
            self.take()
            base = self.argument(digit=True)
        raised: Node | None = None
        if self.peek() == ("op", "^"):
            self.take()
            raised = self.exponent()
            if raised == ("neg", _ONE) and name in _INVERSE:
                name, raised = _INVERSE[name], None
        node: Node = (name, self.operand()) if base is None else ("/", ("ln", self.operand()), ("ln", base))
        return node if raised is None else ("^", node, raised)

    def operand(self) -> Node:
        """A function's argument without its own brackets runs over a product, up to the next function or sign."""
        if self.peek()[0] == "open":
            return self.postfix(self.group(self.peek()[1])) if self.peek()[1] in _CLOSERS else self.atom()
        if self.peek()[0] == "func" and self.peek()[1] not in ("frac", "sqrt", "binom"):
            return self.atom()
        if self.peek() == ("op", "-"):
            self.take()
            return ("neg", self.operand())
        node = self.power()
        while self.peek()[0] in ("num", "name", "const") or self.peek() in (("func", "frac"), ("func", "sqrt")):
            node = ("*", node, self.power())
        if self.peek() == ("op", "/") and self.peek(1)[0] in ("num", "name"):
            self.take()
            node = ("/", node, self.power())
        return node


def names(node: Node) -> set[str]:
    """The variables of a formula."""
    found: set[str] = set()
    stack = [node]
    while stack:
        top = stack.pop()
        if top[0] == "name":
            found.add(top[1])
        else:
            stack.extend(part for part in top[1:] if isinstance(part, tuple))
    return found
