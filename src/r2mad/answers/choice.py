"""Options: which letter a reply declares, and its canonical form."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from r2mad.answers._canonical import Canonical
from r2mad.answers._declare import Mark, echo, marks
from r2mad.answers._strip import narrow
from r2mad.answers._words import folded

NONE = "none"
"""What a declaration holds that is no single option: two letters, a letter outside, "none of the above"."""

_NOUNS = re.compile(
    r"\banswers?\b(?![ ]{0,3}(?:choices|options)\b)"
    r"|\b(?:correct|right|best|final|my|only|chosen|selected|appropriate|suitable|accurate|likely|closest|valid|true|good)\s{1,3}"
    r"(?:option|choice|letter|statement|response|selection|one|pick|alternative|conclusion)\b"
    r"|(?:^|\n)[\s*_#>]{0,8}(?:option|choice|letter|selection|conclusion)(?=[*_]{0,4}\s{0,3}:)",
    re.IGNORECASE,
)
_WRAP = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|mbox|operatorname|bf|rm|boxed|fbox)\b")
_TRIM = " \t\r\n$*_`\"'\u201c\u201d\u2018\u2019.,;:!{}[]"
_PREFIX = re.compile(
    r"^(?:(?:the|my|final|correct)\s{1,3}){0,3}(?:option|choice|answer|letter|alternative)\b\W{0,4}", re.IGNORECASE
)
_LETTER = re.compile(r"[(\[{*_$`\"'\u201c]{0,6}([A-Za-z])[)\]}*_$`\"'\u201d]{0,6}")
_HEADED = re.compile(
    r"[(\[*_]{0,4}([A-Za-z])[)\]*_]{0,4}\s{0,3}[.:)\],=\-\u2013\u2014]{0,2}[)*_]{0,4}\s{1,4}(\S.*)", re.DOTALL
)
_TIGHT = re.compile(r"[(\[*_]{0,4}([A-Za-z])[)\]*_]{0,4}\s{0,3}[.:)\]=\u2013\u2014][*_]{0,4}\s{0,4}(\S.*)", re.DOTALL)
_JOIN = r"\s{0,3}(?:,\s{0,2}(?:and|or)|/|&|\+|,|;|and/or|and|or)\s{0,3}"
_JOINED = re.compile(
    _JOIN + r"(?:both\s|either\s|also\s)?(?:(?:option|choice|answer)s?\s)?[(\[*_$`\"']{0,6}([A-Z])[)\]*_$`\"']{0,6}"
    r"(?![\w'\u2019-])(?!\s{1,3}(?:is|are|was|were|has|have|does|do|would|could|can|cannot|seems?|looks?|fails?|"
    r"think|am|believe|being|only|because)\b)"
)
_NO_OPTION = re.compile(
    r"(?:none|neither|no (?:option|answer|choice)|not (?:listed|given|among)|cannot be determined|undetermined|"
    r"insufficient|n/a|all of the above|both|unknown)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"(?:\b(?:not|never|neither|nor|isn't|isn\u2019t|cannot|can't|wasn't|than|instead of|over|except|besides|excluding|"
    r"without|against|versus|vs\.?|unlike|rejects?|rules? out|eliminates?|excludes?)"
    r"(?:\s(?:be|the|just|only|simply|actually|in|fact|option|choice|answer|letter)){0,3}[\s(\[*_$`\"']{1,6})$",
    re.IGNORECASE,
)
_ROMANS = re.compile(r"[)\s,]{0,4}(?:and|or)?\s{0,2}\(?(?:[ivx]{2,}|[IVX]{2,}|[iv]\))(?!\w)")
_ALSO = re.compile(r"\W{0,4}(?:or|and|nor)?\W{0,4}(?:option\s)?\W{0,4}")
_AFTER_ARTICLE = re.compile(
    r"\s{1,3}(?:because|since|as|for|but|and|or|which|is|due|given|from|by|with|according|based|if|when|in|"
    r"rather|not|instead|here|then|so|though|although|while|where|that|thus|therefore|again|only|too|indeed|after|\W)"
)
_AFTER_PRONOUN = re.compile(
    r"\s{1,3}(?:because|since|as|but|and|or|which|is|due|given|from|by|rather|not|instead|here|based|according|for|"
    r"\W)"
)
_CLAUSE_END = re.compile(r"[.!?](?=[\s\"')*_\]$]|$)|\n")

_X = r"[(\[*_$`\"']{0,6}([A-Z])[)\]*_$`\"']{0,6}"
_LOWER = r"(?:\(([a-z])\)|" + _X + ")"
_ADVERB = (
    r"(?:(?:indeed|clearly|definitely|therefore|thus|also|probably|likely|most|certainly|obviously|really|then|hence|"
    r"still|simply)\s){0,3}"
)
_VERDICT = re.compile(
    r"(?<![\w'\u2019-])" + _X + r"\s{1,3}(?:is|must be|seems|seems to be|has to be|appears|appears to be|would be|"
    r"should be|remains)\s{1,3}" + _ADVERB + r"(?:(?:the|our|my)\s)?(?:(?:most|only|single|likely|final|one)\s){0,2}"
    r"(?:right|correct|best|answer|accurate|appropriate|suitable|choice|one)\b(?!\s{1,3}(?:if|only if|when)\b)"
)
_BECAUSE = re.compile(r"[(*]{0,3}([A-Z])[)*]{0,3},?\s(because|since|as|due to)\b")
_ONLY = re.compile(r"\b[Oo]nly\s{1,3}(?:option\s)?" + _X + r"\s{1,3}(?:remains|is left|fits|works|holds|makes sense)\b")
_DOUBT = re.compile(
    r"(?:\b(?:nor|neither|if|whether|not|unless|why|suppose|supposing|assume|assuming)\b|n't|n\u2019t)\W{0,3}"
    r"(?:\w{1,8}\W){0,2}$",
    re.IGNORECASE,
)
_CHOOSING = re.compile(
    r"\b(?:i|we|i'd|i'll|we'd|i\u2019d|i\u2019ll|i'm|i\u2019m|me|let's|let me)\s{1,3}"
    r"(?:(?:would|will|shall|must|should|have to|can|do|now|still|therefore|thus|then|hence|also|am|are|to|confidently|"
    r"going to|going|finally|also|again|strongly|would like to|firmly)\s{1,3}){0,4}"
    r"(?:choose|choosing|pick|picking|select|selecting|vote for|go with|going with|opt for|answer|conclude|stick with|"
    r"settle on|say|chose|picked|selected|choose to answer|support|agree with|stay with|keep|guess|"
    r"(?:think|believe)\s(?:that\s)?(?:it|this)\s(?:is|must be|has to be))"
    r"\b\s{0,3}:?\s{0,3}(?:(?:that|it|is|the|option|choice|answer|letter|with|on|for|my|as)\s{1,3}){0,5}"
    + _LOWER
    + r"(?![\w'\u2019-])",
    re.IGNORECASE,
)
_HENCE = re.compile(
    r"(?:\b(?:it|this|that|which|these)\s{1,3}(?:clearly\s|then\s|therefore\s|just\s|only\s|really\s)?"
    r"(?:has to be|must be|should be|can only be|is|would be|will be|leaves|leads to|gives|points to|corresponds to|"
    r"matches|supports|suggests|indicates|means|makes)"
    r"|\b(?:corresponds?|corresponding|matches|matching|leads?|leading|pointing|points?|leaving|leaves|equivalent)(?:\s(?:to|with))?"
    r"|\b(?:it's|it\u2019s|that's|that\u2019s)|\b(?:hence|thus|therefore|so|consequently|conclusion|accordingly)[,:]?)"
    r"\s{1,3}(?:(?:the|only|option|choice|answer|letter|is|exactly|us|with|to|most likely|probably|clearly|it's|"
    r"it\u2019s)\s{1,3}){0,5}" + _X + r"(?![\w'\u2019-])",
    re.IGNORECASE,
)
_AND = re.compile(r"\)\)[*_\s]{0,4}(?:and|or|&|/|,)[\s*_]{0,4}$")
_DENIED = re.compile(
    r"\(\([^()\n]{1,200}\)\)[*_]{0,4}\s{1,3}(?:(?:is|was|seems|must be)\s{1,3}(?:not\b|wrong\b|incorrect\b|false\b|"
    r"out\b|ruled out\b)|isn't\b|isn\u2019t\b|cannot be\b|can't be\b|fails\b)",
    re.IGNORECASE,
)
_FLAT_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def canonical(answer: str) -> Canonical:
    """The upper-case letter; anything that is no letter is folded as words are."""
    plain = unicodedata.normalize("NFKC", answer)
    match = _LETTER.fullmatch(plain.strip(_TRIM + "()"))
    return Canonical(match[1].upper()) if match and match[1].isascii() else Canonical("t:" + folded(plain))


def find(text: str, options: Sequence[str] | None) -> str | None:
    """The upper-case letter that a reply (without its reasoning) declares, or nothing.

    The last declaration decides: a slot (`((B))`, a box, a tag, JSON) or "the answer is ...". Only a reply without
    any is searched for a weaker one, such as "(D) is right" or "I would choose C", or is itself just a letter or an
    option's text. Without `options` every letter may be one.
    """
    reader = _reader(tuple(str(option) for option in options or ()))
    text = narrow(text)
    last: tuple[int, str] | None = None  # where the deciding declaration begins, and what it says
    for mark in reversed(marks(text, parentheses=True, nouns=_NOUNS)):
        found = reader.declared(mark)
        if last is not None:  # does the one before it say as much, "((A)) and ((B))"?
            joined = found not in (None, last[1]) and _AND.search(text[mark.at : last[0]][-40:])
            return None if last[1] == NONE or joined else last[1]
        if found and not (mark.source == "parens" and _DENIED.match(text, mark.at)):
            last = mark.at, found
    if last is not None:
        return None if last[1] == NONE else last[1]
    text = _DENIED.sub("", text)
    return reader.bare(text) or reader.weak(text)


@lru_cache(maxsize=256)  # every reply to a question is read with the same options
def _reader(options: tuple[str, ...]) -> _Reader:
    return _Reader(options)


class _Reader:
    """Reads letters and options' texts for one question."""

    def __init__(self, options: Sequence[str]) -> None:
        self.options = list(options)
        self.count = len(self.options) if self.options else 26
        self.exact: dict[str, str | None] = {}
        self.folded: dict[str, str | None] = {}
        for letter, option in zip(_FLAT_LETTERS, self.options, strict=False):
            plain = " ".join(narrow(option).split())
            self.exact.setdefault(plain.rstrip("."), letter)
            self.exact[plain] = letter
            for key in {folded(plain, spaced=True), folded(_flat(plain), spaced=True)}:
                self.folded[key] = None if key in self.folded else letter

    def letter(self, text: str) -> str:
        """The option that a letter names, or NONE for a letter outside."""
        upper = text.upper()
        return upper if ord(upper) - ord("A") < self.count else NONE

    def option(self, text: str) -> str | None:
        """The option whose text this is: as written, or else folded where that leaves only one."""
        exact = self.exactly(text)
        if exact:
            return exact
        plain = " ".join(text.split())
        for candidate in (folded(plain, spaced=True), folded(_flat(plain), spaced=True)):
            if candidate and self.folded.get(candidate):
                return self.folded[candidate]
        return None

    def exactly(self, text: str) -> str | None:
        """The option whose text this is as written, but for markdown and a full stop around it."""
        plain = " ".join(text.split())
        if len(plain) == 1:
            return None  # a letter comes before a text of one letter
        for candidate in (plain, plain.strip(" $*_`\"'"), plain.rstrip(".").strip(" $*_`\"'")):
            if self.exact.get(candidate):
                return self.exact[candidate]
        return None

    def declared(self, mark: Mark) -> str | None:
        """What one declaration says: a letter, NONE if it certainly says no option, or nothing if it says nothing."""
        if mark.content is None:
            return NONE
        if mark.source == "phrase":
            return self.clause(mark.content)
        if mark.source == "tag":
            inner = marks(mark.content, parentheses=True, nouns=_NOUNS)
            if inner:
                return None  # what stands inside is a declaration of its own
        return self.slot(mark.content, sure=mark.source != "hash")

    def slot(self, content: str, sure: bool = True) -> str | None:
        """What a slot holds."""
        if len(content) > 5000:
            return None
        if echo(content) and not self.option(content):
            return None
        plain = _flat(content)
        found = self._single(plain) or self.exactly(content) or self._headed(plain)
        found = found or self.option(content) or self.option(plain)
        if found:
            return found
        if plain in ("x", "X"):
            return None  # the format echoed
        shorter = _PREFIX.sub("", plain)
        if shorter != plain and shorter:
            return self.slot(shorter, sure)
        return self._loose(plain, sure)

    def _single(self, plain: str) -> str | None:
        """A letter that stands alone. A small one that is an option's own text is that option, and so is a letter
        outside the options."""
        match = _LETTER.fullmatch(plain)
        if match is None:
            return None
        letter = self.letter(match[1])
        itself = self.exact.get(match[1])
        if itself and (match[1].islower() or letter == NONE):
            return itself
        return None if letter == NONE and match[1] in "xX" else letter

    def _headed(self, plain: str) -> str | None:
        """A letter before its own option's text."""
        for pattern in (_TIGHT, _HEADED):
            match = pattern.fullmatch(plain)
            if match and self._is(match[1], match[2]):
                return match[1].upper()
        return None

    def _is(self, letter: str, text: str) -> bool:
        index = ord(letter.upper()) - ord("A")
        if not letter.isascii() or index >= len(self.options):
            return False
        option = narrow(self.options[index])
        return _plainly(text) == _plainly(option)

    def _loose(self, plain: str, sure: bool) -> str | None:
        found = _LETTER.match(plain)
        if found and _JOINED.match(plain, found.end()):
            return NONE
        if _NO_OPTION.match(plain):
            return NONE
        match = _TIGHT.fullmatch(plain)
        if match and (sure or match[1].isupper()) and not re.match(r"[-+*/^=0-9(]", match[2]):
            return self.letter(match[1])
        if sure and plain.count(" ") and len(plain) < 200 and plain[0].isalpha():
            return self.clause(plain)
        return None

    def clause(self, content: str) -> str | None:
        """What "the answer is" is followed by, up to the end of the sentence."""
        line = content.split("\n", 1)[0]
        headed = self.exactly(line) or self._headed(line)
        if headed:
            return headed
        end = _CLAUSE_END.search(content)
        said = content[: end.start()] if end else content
        if end and end.group() == "?":
            return None
        whole = self.option(said) or self.option(line) or self.option(re.sub(r"^(?:that|indeed|simply)\s", "", said))
        single = self._single(_flat(said))
        if single or whole:
            return single or whole
        return self.first(_WRAP.sub("", said))

    def first(self, said: str) -> str | None:
        """The first letter of a clause that is meant as one and not denied."""
        found: str | None = None
        denied = -1  # where the last letter ended that was denied: what "or" joins to it is denied as well
        for match in re.finditer(r"(?<![\w'\u2019-])([A-Z]|\([a-z]\)|[a-z](?=\)))(?![\w'\u2019]|-\w)", said):
            letter = match.group().strip("()")
            wrapped = said[: match.start()][-1:] in tuple("([{*`\"'") or match.group()[0] == "("
            rest = said[match.end() :]
            if not wrapped and letter == "A" and re.match(r"\s{1,3}\w", rest) and not _AFTER_ARTICLE.match(rest):
                continue
            if not wrapped and letter == "I" and re.match(r"\s{1,3}\w", rest) and not _AFTER_PRONOUN.match(rest):
                continue
            if letter in "iIvVxX" and _ROMANS.match(rest):
                continue
            if _NEGATION.search(said[max(0, match.start() - 60) : match.start()]) or (
                denied >= 0 and _ALSO.fullmatch(said[denied : match.start()])
            ):
                denied = match.end()
                continue
            joined = _JOINED.match(said, match.end() + len(re.match(r"[)\]}*_$`\"']*", rest).group()))  # type: ignore[union-attr]
            if joined and joined[1] != letter.upper() and self.letter(joined[1]) != NONE:
                return NONE
            found = self.letter(letter)
            break
        if found is None and _NO_OPTION.match(said.strip(_TRIM)):
            return NONE
        return found

    def bare(self, text: str) -> str | None:
        """A reply that is nothing but an answer, or that begins or ends with a line that is."""
        lines = [line for line in (line.strip() for line in text.split("\n")) if line]
        if not lines:
            return None
        if len(lines) == 1 or len(text) < 500:
            option = self.exactly(text) or self._headed(text.strip()) or self.option(text.strip())
            if option:
                return option
        listed = sum(bool(re.match(r"[(*]{0,3}[A-Z][).:*]{1,3}\s", line)) for line in lines)
        for line in (lines[-1], lines[0]):
            found = self.line(line, alone=listed > 1)
            if found:
                return None if found == NONE else found
        match = _BECAUSE.match(lines[0]) or _TIGHT.fullmatch(_flat(lines[0]))
        if match and listed <= 1 and re.search(r"[A-Za-z]{2}", match[2]) and match[1].isupper() and len(lines[0]) < 600:
            return self._known(match[1])
        return None

    def line(self, line: str, alone: bool = False) -> str | None:
        """A line that is an answer by itself; only a letter *alone* where the options are listed."""
        plain = _flat(line.lstrip("#->\u2022 "))
        match = _LETTER.fullmatch(plain)
        if match and (match[1].isupper() or len(line) <= 4):
            return self._single(plain)
        shorter = re.sub(r"^(?:option|choice)\s", "", plain, flags=re.IGNORECASE)
        match = _LETTER.fullmatch(shorter) if shorter != plain else None
        if match:
            return self.letter(match[1])
        return None if alone else self._headed(plain)

    def _known(self, letter: str) -> str | None:
        found = self.letter(letter)
        return None if found == NONE else found

    def weak(self, text: str) -> str | None:
        """The last letter that is called right or chosen in passing."""
        best: tuple[int, str] | None = None
        for pattern in (_VERDICT, _ONLY, _CHOOSING, _HENCE):
            for match in pattern.finditer(text):
                place = next(index for index in range(1, len(match.groups()) + 1) if match[index])
                letter, rest = match[place], text[match.end() : match.end() + 20]
                before = text[max(0, match.start() - 40) : match.start()]
                if not self._meant(match, place, letter, before, rest, pattern is _VERDICT):
                    continue
                if best is None or match.start(place) > best[0]:
                    best = (match.start(place), letter.upper())
        if best is None:
            return None
        return self._known(best[1])

    def _meant(self, match: re.Match[str], place: int, letter: str, before: str, rest: str, verdict: bool) -> bool:
        if letter.islower() and match.string[match.start(place) - 1] != "(":
            return False
        if verdict:
            if _DOUBT.search(before):
                return False
            return not re.search(r"\b(?:or|and)\s{1,3}(?:option\s)?$", before) and "?" not in rest[:2]
        wrapped = match.string[match.start(place) - 1] in "([{*`\"'$"
        if letter in "AI" and not wrapped:
            follow = _AFTER_ARTICLE if letter == "A" else _AFTER_PRONOUN
            if re.match(r"\s{1,3}\w", rest) and not follow.match(rest):
                return False
        joined = _JOINED.match(match.string, match.end())
        return not (joined and joined[1] != letter.upper())


def _plainly(text: str) -> str:
    return folded(_flat(text), spaced=True) or " ".join(text.split())


def _flat(text: str) -> str:
    """Without the LaTeX, markdown and quotes around it."""
    plain = _WRAP.sub("", text).replace("\\(", "").replace("\\)", "").replace("\\[", "").replace("\\]", "")
    plain = plain.replace("{", "").replace("}", "").strip(_TRIM)
    if plain.startswith("(") and plain.endswith(")") and plain.count("(") == 1:
        plain = plain[1:-1].strip(_TRIM)
    return " ".join(plain.split())
