"""The shape of an answer (tuple, list, set, interval, matrix, relation, words), and the key of the whole.

Runs in the worker. Every function gives a string, the key; two answers are equivalent if their keys are equal. The
conventions, so that equality can be read off: a tuple is ordered; a bare list and a set are not, and a set forgets
repeats; an interval's brackets count, and an open one is the tuple of its ends, as it is written; an inequality in one
variable is its interval; a lone name before an equals sign is dropped; `\\pm` is both signs.
"""

from __future__ import annotations

from r2mad.answers._brackets import Tokens, closing, expanded, infinity, outside, split, unwrap, wrap
from r2mad.answers._evaluate import POINTS, evaluate, point, rational, scalar_key, values_key
from r2mad.answers._formula import Node, names, parse
from r2mad.answers._intervals import ORDER, Interval, intersection, interval_key, pieces, union_key
from r2mad.answers._latex import Unreadable, tokenize
from r2mad.answers._words import folded, word_set

_CLOSERS = {"(": "([", "[": "([", "<": "<"}
_MATRICES = word_set("pmatrix bmatrix matrix Bmatrix smallmatrix array")


def canonical_key(text: str) -> str:
    """The key of an answer.

    Raises:
        Unreadable: it is not a formula that we can read.
    """
    tokens = fraction_units(tokenize(text))
    while tokens and tokens[-1][0] == "comma":
        tokens.pop()
    return answer_key(tokens)


def fraction_units(tokens: Tokens) -> Tokens:
    """A fraction of two units is one unit: `\\frac{\\text{m}}{\\text{s}}`."""
    found: Tokens = []
    index = 0
    while index < len(tokens):
        part = tokens[index : index + 7]
        if part[:1] == [("func", "frac")] and [kind for kind, _ in part[1:]] == ["open", "text", "close"] * 2:
            found.append(("text", "unit"))
            index += 7
        else:
            found.append(tokens[index])
            index += 1
    return found


def answer_key(tokens: Tokens) -> str:
    """The key of the tokens of a whole answer, or of an element of one."""
    tokens = unwrap(tokens)
    if not tokens:
        raise Unreadable("nothing")
    if all(kind in ("text", "word") for kind, _ in tokens):
        return "t:" + folded(" ".join(value for _, value in tokens))
    items = split(tokens, "comma")
    if len(items) > 1:
        return list_key(items, ("comma", "or") in outside(tokens))
    return relation_key(tokens)


def list_key(items: list[Tokens], alternatives: bool) -> str:
    """Unordered. Names before equals signs are dropped if they are all the same one, else they tell values apart.
    Inequalities in one variable are one set: a union if they are *alternatives* or exclude each other."""
    items = [item for item in items if item]
    if all(any(kind == "rel" and sign in (*ORDER, "!=", "in") for kind, sign in item) for item in items):
        try:
            if len({value for item in items for kind, value in item if kind == "name"}) == 1:
                return conditions_key([pieces(item) for item in items], alternatives)
        except Unreadable:
            pass  # inequalities that are not linear are a list of conditions
    heads = {head for item in items if (head := lone_name(split(item, "rel")[0])) and len(split(item, "rel")) > 1}
    keys = []
    for item in items:
        for variant in expanded(item):
            key = relation_key(variant)
            keys.append(f"{lone_name(split(variant, 'rel')[0])}:{key}" if len(heads) > 1 else key)
    if any(len(expanded(item)) > 1 for item in items):
        keys = list(set(keys))
    return joined("list", keys)


def conditions_key(sets: list[list[Interval]], alternatives: bool) -> str:
    """Several sets of the real line that one variable lies in, as the set that is meant."""
    if not alternatives and all(len(intervals) == 1 for intervals in sets):
        common = intersection([intervals[0] for intervals in sets])
        if common:
            return union_key([common])
    return union_key([piece for intervals in sets for piece in intervals])


def joined(label: str, keys: list[str]) -> str:
    """An unordered collection's key; a collection of one is that one."""
    if len(keys) == 1:
        return keys[0]
    return label + "{" + ";".join(sorted(keys)) + "}"


def relation_key(tokens: Tokens) -> str:
    """An equation, inequality or membership; or else a single thing."""
    signs = [value for kind, value in outside(tokens) if kind == "rel"]
    if not signs:
        return thing_key(tokens)
    parts = split(tokens, "rel")
    if not all(parts):
        raise Unreadable("half a relation")
    if all(sign in ("=", "~") for sign in signs):
        return equation_key(parts, signs)
    if signs == ["in"] and lone_name(parts[0]):
        return answer_key(parts[1])
    try:
        return union_key(pieces(tokens))
    except Unreadable:
        return "rel(" + ",".join(signs) + ";" + ";".join(thing_key(part) for part in parts) + ")"


def lone_name(tokens: Tokens) -> str:
    """What a left-hand side names, if it only names: `x`, `x_1`, `f(x)`, `f^{-1}(x)`, `(x,y)`, `AB`, words."""
    text = " ".join(value for _, value in tokens)
    if not tokens or len(tokens) > 24:
        return ""
    if all(kind in ("text", "word") for kind, _ in tokens):
        return text
    if all(kind == "name" and len(value) == 1 and value.isupper() for kind, value in tokens):
        return text  # a segment, an angle, a triangle
    if tokens[0] == ("open", "(") and closing(tokens, 0) == len(tokens) - 1:
        inner = split(tokens[1:-1], "comma", inside=True)
        return text if len(inner) > 1 and all(lone_name(part) for part in inner) else ""
    if tokens[0][0] != "name" and tokens[0] not in (("const", "i"), ("const", "e"), ("func", "overline")):
        return ""
    rest = list(tokens[1:])
    while rest:
        if rest[0] == ("op", "prime"):
            rest = rest[1:]
        elif rest[0] == ("op", "_") and len(rest) > 1:
            rest = rest[closing(rest, 1) + 1 :] if rest[1][0] == "open" else rest[2:]
        elif rest[:5] == [("op", "^"), ("open", "{"), ("op", "-"), ("num", "1"), ("close", "{")]:
            rest = rest[5:]
        elif rest[0] == ("open", "(") and closing(rest, 0) == len(rest) - 1:
            arguments = split(rest[1:-1], "comma", inside=True)
            return text if all(part and part[0][0] in ("name", "num", "const") for part in arguments) else ""
        else:
            return ""
    return text


def equation_key(parts: list[Tokens], signs: list[str]) -> str:
    """`x = 5` is 5 (`5 = x` as well); a chain is its last part, but the exact one before a rounded one; another
    equation is the left side minus the right, up to a constant factor."""
    if signs[-1] == "~" and not (len(parts) == 2 and lone_name(parts[0])):
        parts, signs = parts[:-1], signs[:-1]
    elif lone_name(parts[0]):
        parts = [parts[-1]] if len(parts) > 2 or not lone_name(parts[1]) else parts[1:]
    elif len(parts) == 2 and lone_name(parts[1]):
        parts = parts[:1]
    if len(parts) == 1:
        return answer_key(parts[0])
    trees = [parse(part) for part in parts]
    if not any(names(tree) for tree in trees):
        keys = {scalar_key(tree) for tree in trees}
        if len(keys) == 1:
            return keys.pop()  # 3 + 4 = 7
    if len(trees) > 2:
        return "eq(" + ";".join(sorted(scalar_key(tree) for tree in trees)) + ")"
    return "eq(" + proportional_key(("-", trees[0], trees[1])) + ")"


def proportional_key(node: Node) -> str:
    """The key of a formula up to a constant factor."""
    free = names(node)
    values = [evaluate(node, {name: point(name, index) for name in free}) for index in range(POINTS)]
    first = next((value for value in values if rational(value) != 0), None)
    if first is None:
        return "0"
    return values_key([evaluate(("/", ("num", value), ("num", first)), {}) for value in values])


def thing_key(tokens: Tokens) -> str:
    """A union, a bracketed collection, a matrix, a ratio, or a scalar."""
    tokens = unwrap(tokens)
    if any(kind == "setop" for kind, _ in outside(tokens)):
        return union_key(pieces(tokens))
    whole = len(tokens) > 1 and tokens[0][0] == "open" and closing(tokens, 0) == len(tokens) - 1
    if whole and tokens[0][1] == "set":
        return set_key(tokens)
    variants = expanded(tokens)
    if len(variants) > 1:
        return joined("list", sorted({thing_key(variant) for variant in variants}))
    if whole:
        collection = collection_key(tokens)
        if collection:
            return collection
    if any(kind == "begin" for kind, _ in tokens):
        return matrix_key(tokens)
    ratio = split(tokens, "colon")
    if len(ratio) > 1:
        return "ratio(" + ";".join(scalar([*wrap(part), ("op", "/"), *wrap(ratio[0])]) for part in ratio[1:]) + ")"
    if tokens in ([("const", "reals")], [("const", "emptyset")]):
        return "all" if tokens[0][1] == "reals" else "set{}"
    infinite = infinity(tokens)
    return f"inf:{infinite}" if infinite else scalar(tokens)


def scalar(tokens: Tokens) -> str:
    """The key of a single number or formula."""
    return scalar_key(parse(tokens))


def set_key(tokens: Tokens) -> str:
    """Elements in braces, or the condition of `{x | ...}`."""
    if tokens[-1][1] != "set":
        raise Unreadable("a brace closed by another bracket")
    if not tokens[1:-1]:
        return "set{}"
    builder = split(tokens[1:-1], "bar", "colon")
    if len(builder) == 2:
        return answer_key(builder[1])
    items = split(tokens[1:-1], "comma", inside=True)
    return joined("list", list({answer_key(variant) for item in items if item for variant in expanded(item)}))


def collection_key(tokens: Tokens) -> str:
    """A tuple, an interval or a vector; nothing if the brackets enclose a single formula."""
    opener, closer = tokens[0][1], tokens[-1][1]
    items = split(tokens[1:-1], "comma", inside=True)
    if (opener == "<") != (closer == "<") or closer not in _CLOSERS.get(opener, opener):
        raise Unreadable("brackets that do not match")
    if len(items) == 1 or opener not in _CLOSERS:
        return answer_key(tokens[1:-1]) if opener == "[" and len(items) == 1 else ""
    if not all(items):
        raise Unreadable("an empty place in a tuple")
    if len(items) == 2 and opener != "<" and (opener, closer) != ("(", "("):
        return interval_key(answer_key(items[0]), answer_key(items[1]), opener == "[", closer == "[")
    if [infinity(item) for item in items] == [-1, 1]:
        return "all"
    brackets = ("[", "]") if opener == "[" else ("(", ")")
    return brackets[0] + ";".join(answer_key(item) for item in items) + brackets[1]


def matrix_key(tokens: Tokens) -> str:
    """Rows of scalars; a scalar factor before or after is multiplied in."""
    start = next(index for index, token in enumerate(tokens) if token[0] == "begin")
    end = closing(tokens, start)
    if tokens[start][1] not in _MATRICES or end < 0:
        raise Unreadable("an environment that is no matrix")
    factor = [token for token in (*tokens[:start], *tokens[end + 1 :]) if token != ("op", "*")]
    if factor == [("op", "-")]:
        factor = [("op", "-"), ("num", "1")]
    rows = [row for row in split(tokens[start + 1 : end], "row") if row]
    keys = []
    for row in rows:
        cells = split(row, "amp")
        keys.append(",".join(scalar([*wrap(factor), *wrap(cell)] if factor else cell) for cell in cells))
    return "matrix[" + ";".join(keys) + "]"
