"""Words: the answer in a reply, and its canonical form."""

from __future__ import annotations

import re
import unicodedata

from r2mad.answers._canonical import Canonical
from r2mad.answers._clause import sentence, tidy
from r2mad.answers._declare import Mark, echo, marks
from r2mad.answers._words import folded

_NOUNS = re.compile(r"\b(?:answers?|(?:correct|right|final) (?:response|solution|option|choice))\b", re.IGNORECASE)
_WRAP = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mbox|operatorname)\s{0,3}\{([^{}]*)\}")
_REFUSAL = re.compile(
    r"(?:(?:i|we)\s(?:do not|don't|don\u2019t|cannot|can't|can\u2019t|could not|couldn't|am not|am unable|am unsure|"
    r"have no|would need|need more|'m not|'m unsure)|i'm not|i\u2019m not|i'm unsure|i'm sorry|i am sorry|sorry\b|"
    r"not sure|no idea|no answer|"
    r"unknown$|n/a$|unable to|cannot (?:be )?(?:determine|answer)|it is (?:not possible|impossible|unclear)|as an ai)",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"(?:(?:correct|right|wrong|incorrect|above|below|clear|obvious|as follows|shown|unclear|not|in the|given above|"
    r"provided|straightforward|simple|the same|unchanged|supported|based|found|consistent|well|different|subjective)\b"
    r"|(?:yes|no),\s)",
    re.IGNORECASE,
)
_ITSELF = re.compile(
    r"(?:so|thus|hence|therefore)?,?\s?\b(?:it is|it's|it\u2019s|it was|that is|that's|that would be|this is|"
    r"they are|he is|she is|it must be|it would be|i think it is|i think it's|i believe it is|i would say|"
    r"i say|i think|i guess|sure,|a:)\s(?=\S)",
    re.IGNORECASE,
)
_MOST_WORDS = 8


def canonical(answer: str) -> Canonical:
    """Case, articles, punctuation, spacing and Unicode's compatible forms folded."""
    return Canonical(folded(unwrapped(answer)))


def find(text: str) -> str | None:
    """What the last declaration of a reply (without its reasoning) is followed by; or a short reply as it is."""
    found = marks(text, parentheses=True, nouns=_NOUNS)
    for mark in reversed(found):
        if mark.content is None:
            return None
        said = _content(mark, text)
        if said:
            return said
    return None if found else bare(text)


def bare(text: str) -> str | None:
    """A reply of one short line is its own answer: very small models answer so."""
    line = text.strip()
    if not line or "\n" in line or len(line) > 200 or line.endswith("?") or _REFUSAL.match(line):
        return None
    said = unwrapped(sentence(_ITSELF.sub("", line, count=1) if _ITSELF.match(line) else line))
    rest = line[line.find(said) + len(said) :] if said in line else ""
    if not said or len(said.split()) > _MOST_WORDS or len(rest.split()) > _MOST_WORDS or echo(said):
        return None
    return said if folded(said) else None


def unwrapped(text: str) -> str:
    """Without `\\text{...}` and the like, quotes, markdown and a full stop."""
    return " ".join(tidy(_WRAP.sub(r"\1", text)).split())


def _content(mark: Mark, text: str) -> str | None:
    content = mark.content or ""
    if echo(content):
        return None
    if mark.source == "phrase":
        said = unwrapped(sentence(content))
        if re.search(r"\\boxed|\(\(|<answer", said):
            return None  # what stands inside is a declaration of its own
        # "Answer: Right" names a side; "the answer is right" speaks about an answer.
        named = " " not in said and ":" in text[mark.at : text.find(content, mark.at)]
        about = _ABOUT.match(said) and not named
        return None if not said or about or _REFUSAL.match(said) or echo(said) else said
    if mark.source == "tag" and marks(content, parentheses=True, nouns=_NOUNS):
        return None  # what stands inside is a declaration of its own
    if mark.source == "hash" and text[mark.at :].strip().count("\n"):
        return None  # a heading, since the text goes on below it
    said = unwrapped(content)
    return said if said and len(said) <= 2000 and unicodedata.normalize("NFKC", said).strip() else None
