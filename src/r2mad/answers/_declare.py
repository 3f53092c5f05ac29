"""Where a reply declares its answer: boxes, double parentheses, tags, `####`, JSON, and the words "the answer is".

Every function here is linear in the text: brackets are matched in one pass, and a regular expression only ever looks a
bounded distance ahead of the place it was started from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Source = Literal["box", "parens", "tag", "hash", "json", "phrase"]


@dataclass(frozen=True, slots=True)
class Mark:
    """One declaration: where it is and what it holds; no content if the reply was cut off inside it."""

    at: int
    source: Source
    content: str | None


_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])\s{0,20}")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_PAREN = re.compile(r"[()]")
_BARE_BOX = re.compile(r"\\[a-zA-Z]{1,20}(?:\{[^{}]{0,100}\}){0,2}[0-9]{0,2}|[-+]?[0-9.,/]{1,60}|[^\s\\{}$.,]{1,60}")
_ANSWER_TAG = re.compile(r"<(/?)(?:final_?)?answer\b[^<>\n]{0,100}>", re.IGNORECASE)
_HASH = re.compile(r"^[ \t]{0,8}#{4}(?!#)[ \t]{0,8}", re.MULTILINE)
_JSON = re.compile(
    r"[\"'](?:final_?|correct_?)?(?:answer|choice|option|letter)(?:_?(?:choice|letter|option))?[\"']\s{0,8}:\s{0,8}"
    r"(\"(?:[^\"\\\n]|\\.){0,2000}\"|'[^'\n]{0,2000}'|[-+0-9.eE]{1,60}|null)",
    re.IGNORECASE,
)

_MOST_NOUNS = 2_000
_MOST_MARKS = 100
"""Declarations that are looked at, from the end: a reply that repeats itself thousands of times is not read all."""

_BE = (
    r"(?:is|are|was|equals?|remains|becomes|(?:should|must|would|will|might|may|could|has\ to|have\ to|needs?\ to|"
    r"ought\ to|seems?\ to|"
    r"appears?\ to|turns?\ out\ to|works\ out\ to|comes\ out\ to|is\ going\ to)(?:\ [a-z]{1,12}ly)?\ be|"
    r"seems|appears|comes\ out\ (?:as|to)|works\ out\ (?:as|to))\b"
)
_CONNECTIVE = re.compile(
    r"(?:\ from\ \S{1,6})?\ (?:to|of|as)(?=\ (?:option\ )?[(*_]{0,3}(?-i:[A-Z])[)*_]{0,3}(?:[.,;!\s]|$))|"
    r"\ (?=[*_]{0,3}\((?-i:[A-Z])\))|"
    r"[\s*_`\"')\]]{0,6}(?:\([^()\n]{0,40}\)[\s*_]{0,4})?"
    r"(?:(?:to|for|of|that|in|here|which|I|we|choice|option|letter|number|value)\b[^.\n:=?!]{0,100}?\s)??"
    rf"(?:(?:(?:therefore|thus|then|hence|so|clearly|now)\ )?(?:{_BE}(?:\s{{0,4}}[*_]{{0,4}}:)?|'s\b|\u2019s\b)"
    r"|[*_`\"]{0,4}(?:choice|option|letter)?[*_`\"]{0,4}\s{0,3}(?::|=(?!=)|\u2192|->|=>|-{1,2}(?=\s)|[\u2013\u2014]))",
    re.IGNORECASE | re.VERBOSE,
)
_HEADING_BEFORE = re.compile(r"(?:^|\n)[\s#*_>]{0,12}(?:(?:the|my|our|final|correct|short)\s){0,3}$", re.IGNORECASE)
_HEADING_AFTER = re.compile(r"[#*_: \t]{0,12}\r?\n")
_ASIDE = re.compile(
    r"(?:\b(?:if|whether|suppose|supposing|assume|assuming|unless|until|whose|their|his|her|your|previous|earlier|"
    r"initial|first|original|wrong|incorrect|alternative|tempting|another|possible|candidate|plausible|intermediate|"
    r"peers?['\u2019]s?|others['\u2019])\W{1,3}(?:\w{1,20}\W{1,3}){0,2}"
    r"|\b(?:agent|peer|model|assistant|colleague|participant|solver|student|friend|other)s?\W{0,3}(?:\w{1,10})?"
    r"(?:'s|\u2019s|s'|s\u2019)\W{1,3}(?:\w{1,20}\W{1,3}){0,2}|\bnot\W{1,3}the\W{1,3}(?:\w{1,20}\W{1,3}){0,1})$",
    re.IGNORECASE,
)
_WOULD = re.compile(r"\b(?:would|could|might|were)\b", re.IGNORECASE)
_IF = re.compile(r"[^.\n]{0,60}\b(?:if|had)\b", re.IGNORECASE)
_SENTENCE_START = re.compile(r"[.!?](?=\s|$)|[\r\n]")
_LEAD = re.compile(r"[\s*_`:>\u2192]{1,40}")
_TEXT = re.compile(r"\\(?:text|mathrm|textbf|mathbf|mbox)\s?\{")
_ECHO_LIST = (
    "answer|your answer|the answer|final answer|your final answer|the final answer|my answer|letter|option|choice|"
    "number|value|x|...|\u2026|?|_|__|___|\\ldots|\\dots|result|your choice|option letter|answer here|"
    "your answer here|the letter|correct option|correct answer|the correct option|the correct answer|"
    "insert answer|final_answer|your_answer|answer letter|the option letter|the letter of your choice|"
    "\\cdot|\\cdots|\\text{answer}|\\text{your answer}|\\text{final answer}"
)
_ECHO = frozenset(_ECHO_LIST.split("|"))


def marks(text: str, *, parentheses: bool, nouns: re.Pattern[str]) -> list[Mark]:
    """All declarations of a reply in the order they stand; *nouns* are the words that "is" may declare."""
    found = [*_boxes(text), *_tags(text), *_hashes(text), *_fields(text), *_phrases(text, nouns)]
    if parentheses:
        found.extend(_double_parentheses(text))
    return sorted(found, key=lambda mark: mark.at)[-_MOST_MARKS:]


def echo(content: str) -> bool:
    """Whether a slot holds only the instruction it was copied from: `[answer]`, `<your answer>`, or nothing."""
    inner = _TEXT.sub("{", content).strip().strip("$*_`\"' \t\n").strip()
    bracketed = len(inner) > 2 and inner[0] + inner[-1] in ("[]", "<>", "{}")
    inner = inner.strip("[]<>{}").strip().casefold()
    return not inner or (inner in _ECHO and (inner != "x" or bracketed))


def _boxes(text: str) -> Iterator[Mark]:
    starts = list(_BOX.finditer(text))
    if not starts:
        return
    closing: dict[int, int] = {}
    stack: list[int] = []
    for match in _BRACE.finditer(text, starts[0].end()):
        if match.group() == "{":
            stack.append(match.start())
        elif match.group() == "}" and stack:
            closing[stack.pop()] = match.start()
    for start in starts:
        at = start.end()
        if text.startswith("{", at):
            yield Mark(start.start(), "box", text[at + 1 : closing[at]] if at in closing else None)
        else:
            bare = _BARE_BOX.match(text, at)
            if bare:
                yield Mark(start.start(), "box", bare.group())
            elif not text[at:].strip():
                yield Mark(start.start(), "box", None)


def _double_parentheses(text: str) -> Iterator[Mark]:
    """`((X))`, spaces allowed between the parentheses; not `((x+1)(x-1))`, whose pairs do not nest directly."""
    last = len(text.rstrip(" \t\n*_.$")) - 1
    stack: list[int] = []
    closing: dict[int, int] = {}
    opens: list[int] = []
    closes: list[int] = []
    for match in _PAREN.finditer(text):
        if match.group() == "(":
            stack.append(match.start())
            opens.append(match.start())
        elif stack:
            closing[stack.pop()] = match.start()
            closes.append(match.start())
    after = dict(pairwise(closes))
    for outer, inner in pairwise(opens):
        if inner - outer > 4 or text[outer + 1 : inner].strip():
            continue
        end, inner_end = closing.get(outer), closing.get(inner)
        if end is None:
            if inner_end is None or inner_end >= last:
                yield Mark(outer, "parens", None)  # cut off; a slip of the pen where the reply goes on
        elif inner_end is not None and after.get(inner_end) == end and text[inner_end + 1 : end].strip(" ") == "":
            yield Mark(outer, "parens", text[inner + 1 : inner_end])


def _tags(text: str) -> Iterator[Mark]:
    opened: re.Match[str] | None = None
    for tag in _ANSWER_TAG.finditer(text):
        if not tag[1]:
            opened = tag
        elif opened is not None:
            yield Mark(opened.start(), "tag", text[opened.end() : tag.start()])
            opened = None
    if opened is not None:
        yield Mark(opened.start(), "tag", None)


def _hashes(text: str) -> Iterator[Mark]:
    for match in _HASH.finditer(text):
        end = text.find("\n", match.end())
        yield Mark(match.start(), "hash", text[match.end() : end if end >= 0 else len(text)][:1000])


def _fields(text: str) -> Iterator[Mark]:
    for match in _JSON.finditer(text):
        value = match[1]
        if value[0] == '"':
            try:
                value = str(json.loads(value))
            except ValueError:
                value = value[1:-1]
        elif value == "null":
            value = ""
        yield Mark(match.start(), "json", value.strip("'"))


def _phrases(text: str, nouns: re.Pattern[str]) -> Iterator[Mark]:
    yielded = 0
    for noun in reversed(list(nouns.finditer(text))[-_MOST_NOUNS:]):
        if yielded == _MOST_MARKS:
            return
        before = text[max(0, noun.start() - 60) : noun.start()]
        end = 0
        match = _CONNECTIVE.match(text, noun.end())
        if match:
            end = match.end()
        elif _HEADING_BEFORE.search(before if noun.start() > 60 else "\n" + before):
            match = _HEADING_AFTER.match(text, noun.end())
            end = match.end() if match else 0
        if _JSON.match(text, noun.start() - 1 if noun.start() else 0):
            continue  # a field's name, which is a declaration of its own
        if not end or (match and _WOULD.search(match.group()) and _IF.match(text, end)):
            continue
        breaks = list(_SENTENCE_START.finditer(before))
        if _ASIDE.search(before[breaks[-1].end() :] if breaks else before):
            continue
        lead = _LEAD.match(text, end)
        start = lead.end() if lead else end
        content = text[start : start + 600]
        yielded += 1
        yield Mark(noun.start(), "phrase", content if content.strip(" .*_$\n\t") else None)
