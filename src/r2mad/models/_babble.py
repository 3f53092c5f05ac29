"""Plausible replies without a model: the fake server's and `scripted/seeded`'s.

A reply is a pure function of messages, seed and habits, the same in every process. It knows nothing: the answer is
drawn from a hash. What makes it useful is its shape. It answers in the form that the prompt asks for, agents tend to
share a favourite (right or wrong), and in a debate some go over to what most of the others said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

Turn = tuple[str, str]
"""Role and text."""

Form = Literal["choice", "box", "verdict", "summary", "text"]

WORDS = (
    "amber",
    "basalt",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "garnet",
    "harbor",
    "indigo",
    "juniper",
    "kelp",
    "lagoon",
)
HIGHEST = 20
"""Numbers are drawn from 1 to this: few enough that agents agree by chance now and then."""
VERDICTS = ("YES", "NO", "NOT SURE")

_SENTENCES = tuple(
    sentence.split()
    for sentence in (
        "Let us look at what the question really asks before settling on anything.",
        "The first thing to note is which facts are given and which are only assumed.",
        "A rough estimate already rules out the extreme cases.",
        "If the opposite were true, we would expect to see a rather different pattern.",
        "This step follows from the definition, so it needs no further support.",
        "One might object that the general rule has exceptions, and that is fair.",
        "Still, none of those exceptions seems to apply under the conditions stated here.",
        "Checking the units and the order of magnitude gives the same picture.",
        "The common mistake is to stop at the first idea that sounds familiar.",
        "Working backwards from the candidate answers is a useful cross-check.",
        "Two of the points raised so far depend on the same hidden premise.",
        "Once that premise is made explicit, the remaining step is short.",
        "It helps to restate the problem in simpler terms and solve that one first.",
        "The evidence is not overwhelming, but it leans in one direction.",
        "Small changes in the setup would not alter the conclusion.",
        "Putting these pieces together leaves one reading that fits them all.",
        "There is a simpler argument as well, and it leads to the same place.",
    )
)
_STARTS = len(_SENTENCES)  # a prime, so that every stride visits every sentence

_OPTION = re.compile(r"^[ \t]*(?:\(([A-Z])\)|([A-Z])[.):])[ \t]+\S.*$", re.MULTILINE)
_FENCED = re.compile(r"<question>\s*(.*?)\s*</question>", re.DOTALL)
_DATA = re.compile(r"<(question|options|reply|experience|summary)\b[^>]*>.*?</\1>", re.DOTALL)
_GIVEN: dict[Form, re.Pattern[str]] = {
    "choice": re.compile(r"\(\(([A-Z])\)\)"),
    "box": re.compile(r"\\boxed\{(-?\d+)\}"),
    "text": re.compile(r"answer is:? ([A-Za-z][\w-]*)", re.IGNORECASE),
}
_SURE = re.compile(r"^Confidence: (?:N|\d+)$", re.MULTILINE)
_SUMMARY = re.compile(r"\bsummari[sz]e\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Habits:
    """How replies come out."""

    reply_tokens: int = 60
    summary_tokens: int = 80
    bias: float = 0.6
    """Probability that an opening answer is the question's favourite, the same for all agents and seeds."""
    adopt: float = 0.4
    """Probability that a debate turn takes over the answer most frequent among the replies it shows."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a conversation asks for."""

    form: Form
    letters: str = ""
    question: str = ""
    peers: tuple[str, ...] = ()
    own: str | None = None
    sure: bool = False
    """Whether it asks for a stated confidence."""


def asked(turns: Sequence[Turn]) -> Asked:
    """Read a prompt of ours, or of anyone who letters options or asks for a box."""
    user = [text for role, text in turns if role == "user"] or [text for _, text in turns] or [""]
    first, last = user[0], user[-1]
    system = next((text for role, text in turns if role == "system"), "")
    told = _DATA.sub("", last)  # what is asked stands outside the fences of our prompts; others' have none
    if _SUMMARY.search(told) or _SUMMARY.search(system):
        return Asked("summary", question=last)
    if "NOT SURE" in told and "YES" in told:
        return Asked("verdict", question=last)
    letters, options = _options(first)
    if not letters:
        letters, options = _options(last)
    form: Form = "choice" if letters else "box" if "\\boxed" in told or "\\boxed" in system else "text"
    fenced = _FENCED.search(first) or _FENCED.search(last)
    question = (fenced.group(1) if fenced else "" if letters else first) + options
    own = [found for role, text in turns if role == "assistant" for found in _GIVEN[form].findall(text)]
    peers = [found for found in _GIVEN[form].findall(last) if form != "choice" or found in letters]
    return Asked(form, letters, question, tuple(peers), own[-1] if own else None, bool(_SURE.search(told)))


def _options(text: str) -> tuple[str, str]:
    """The first run of lines lettered from A, as its letters and its text; one line alone is no choice."""
    letters = ""
    lines: list[str] = []
    for found in _OPTION.finditer(text):
        letter = found.group(1) or found.group(2)
        if letter != chr(ord("A") + len(letters)):
            if len(letters) > 1:
                break
            letters, lines = "", []
            if letter != "A":
                continue
        letters += letter
        lines.append(found.group())
    return (letters, "\n".join(lines)) if len(letters) > 1 else ("", "")


def babble(turns: Sequence[Turn], seed: int, habits: Habits) -> str:
    """A reply in the form that the conversation asks for."""
    draws = hashed(*(part for turn in turns for part in turn), str(seed))
    what = asked(turns)
    if what.form == "summary":
        return _summary(turns[-1][1], draws, habits.summary_tokens)
    last = conclusion(what.form, pick(what, draws, habits))
    if what.sure:
        last += f"\nConfidence: {(draws >> 72) % 11}"
    count = habits.reply_tokens - len(last.split())
    return f"{filler(count, draws)}\n{last}" if count > 0 else last


def _summary(prompt: str, draws: int, count: int) -> str:
    """`count` words; in the two lines of our own prompt if that is what was sent."""
    if "Dynamic:" not in prompt:
        return filler(count, draws)
    half = max(1, count // 2 - 1)
    return f"Dynamic: {filler(half, draws)}\nInsight: {filler(max(1, count - half - 2), draws >> 5)}"


def pick(what: Asked, draws: int, habits: Habits) -> str:
    """The answer: a peer's, the agent's own of before, the favourite, or any."""
    choices = _choices(what)
    if what.peers and _share(draws, 0) < habits.adopt:
        counts = Counter(what.peers)
        most = max(counts.values())
        return min(answer for answer, count in counts.items() if count == most)
    if what.own is not None:
        return what.own
    if _share(draws, 1) < habits.bias:
        return choices[hashed(what.question) % len(choices)]
    return choices[(draws >> 64) % len(choices)]


def conclusion(form: Form, answer: str) -> str:
    """The line that states an answer in the form asked for."""
    if form == "choice":
        return f"The answer is (({answer}))."
    if form == "box":
        return f"The answer is \\boxed{{{answer}}}."
    return answer if form == "verdict" else f"The answer is: {answer}."


def _choices(what: Asked) -> Sequence[str]:
    if what.form == "choice":
        return what.letters
    if what.form == "verdict":
        return VERDICTS
    return [str(number) for number in range(1, HIGHEST + 1)] if what.form == "box" else WORDS


def filler(count: int, draws: int) -> str:
    """`count` words of sentences that say nothing; the last sentence may be cut."""
    words: list[str] = []
    place, stride = draws % _STARTS, 1 + (draws >> 8) % (_STARTS - 1)
    while len(words) < count:
        words += _SENTENCES[place]
        place = (place + stride) % _STARTS
    return " ".join(words[: max(0, count)])


def hashed(*parts: str) -> int:
    """128 bits that depend on nothing but the parts."""
    text = "\x00".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=16).digest(), "big")


def _share(draws: int, index: int) -> float:
    """A number in [0, 1) from 20 bits of the draws."""
    return ((draws >> (16 + 24 * index)) & 0xFFFFF) / 0x100000


def logprobs(count: int, draws: int) -> list[tuple[float, float]]:
    """`count` pairs of the sampled and the likeliest token's log-probability: negative, the second not the smaller."""
    pairs, state = [], draws & 0xFFFFFFFF
    for _ in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF  # a linear congruence is random enough here, and fast
        top = -0.001 - (state >> 16) / 65536
        pairs.append((top if state & 0x700 else top - 1.5, top))
    return pairs
