"""How the simulated model reads its prompts: the question, the peers' stances and their labels, the remembered cases.

It reads the prompts of the base templates (`r2mad/prompts/packs/base`). What is fenced there is data: a reply is read
for the stance that it takes and for nothing else, whatever it says. `fence` has disarmed the tags inside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp

from r2mad.answers import extract
from r2mad.models import _world as world
from r2mad.types import LETTERS, Message

BETA = 4.0
"""β of w = 2σ(β(c − ½)); the default of `r2mad.skew`."""
TYPICAL = {"high": 0.775, "low": 0.225}
"""The confidence c that a label stands for: the middle of the range that earns it, (0.55, 1] and [0, 0.45)."""
SUMMARISE = "Summarise where this debate stands"
VERIFY = "Judge whether an answer to this problem is right."
"""How summary.j2 and verify.j2 begin. Data never stands there, so nobody else can ask for these forms."""

_ASKED = re.compile(r"<question>\n(.*?)\n</question>\n<options>\n(.*?)\n</options>", re.DOTALL)
_LISTED = re.compile(r"^\(([A-Z])\) (.+)$", re.MULTILINE)
_REPLY = re.compile(r'<reply(?: agent="([^"]*)")?>\n(.*?)\n</reply>(?:\n<confidence>([^<]*)</confidence>)?', re.DOTALL)
_CASE = re.compile(r"<experience>\n(.*?)\n</experience>", re.DOTALL)
_STATED = re.compile(r"\(\(([A-Z])\)\)")
_RIGHT = re.compile(r"^What turned out right: \([A-Z]\) (.+)$", re.MULTILINE)
_HELD = re.compile(r"^You held: .*\([A-Z]\) (.+)$", re.MULTILINE)  # greedy: the last answer that the line names
_REWARD = re.compile(r"^Your last answer was (right|wrong)\.$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with options. A concept θ is a number: its place in the topic, or in the options if there is none."""

    text: str
    options: tuple[str, ...]
    topic: world.Topic | None
    """None for a question that is not of the world."""
    concepts: tuple[int, ...]
    """The concept that each option states, in the options' order."""

    def letter(self, concept: int) -> str:
        """The letter of the option that states a concept."""
        return LETTERS[self.concepts.index(concept)]


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one remembered case says: that a concept of a topic turned out right, or wrong."""

    topic: str
    concept: int
    right: bool


@dataclass(frozen=True, slots=True)
class Read:
    """All that Eq. 3 needs of a conversation."""

    asked: Asked
    lessons: tuple[tuple[int, bool], ...]
    """E_i: what the cases of the question's topic say, as (θ, whether it was right)."""
    stances: tuple[tuple[int, float], ...]
    """Z with w: (the θ that z_j states, w_j) of each reply that states one, the agent's own among them."""


def weight(label: str | None) -> float:
    """w_j of Eq. 3 for a label: w = 2σ(β(c − ½)), with the c that the label stands for; 1 for none.

    A label may be a number, which is c itself. What is no label counts as none.
    """
    if label is None:
        return 1.0
    confidence = TYPICAL.get(label)
    if confidence is None:
        try:
            confidence = float(label)
        except ValueError:
            return 1.0
        if not 0.0 <= confidence <= 1.0:
            return 1.0
    return 2.0 / (1.0 + exp(-BETA * (confidence - 0.5)))


def read(messages: Sequence[Message]) -> Read | None:
    """Read a conversation that ends with a question and its options; None for any other.

    Only the last turn counts for cases and peers, as Eq. 3 has Z^(t) and E^(t) of the present round alone. Of the turns
    before, the agent's own last answer counts, as its z_i^(t) with weight 1.
    """
    if not messages:
        return None
    last = messages[-1].content
    asked, start = _question(last)
    if asked is None:
        return None
    before = last.rfind("</question>", 0, start)  # a reply that failed leaves two turns in one: the newer counts
    turn = last if before < 0 else last[before:]
    stances = []
    own = False
    for name, text, label in _REPLY.findall(turn):
        own = own or name == "you"
        concept = stance(text, asked)
        if concept is not None:
            stances.append((concept, weight(label or None)))
    if not own and (said := _own(messages, asked)) is not None:
        stances.append((said, 1.0))
    lessons: tuple[tuple[int, bool], ...] = ()
    if asked.topic and "<experience>" in turn:
        found = [lesson(text) for text in _CASE.findall(turn)]
        lessons = tuple((one.concept, one.right) for one in found if one and one.topic == asked.topic.name)
    return Read(asked, lessons, tuple(stances))


def _question(text: str) -> tuple[Asked | None, int]:
    """The last question of a turn, and where it starts."""
    start = text.rfind("<question>")
    end = text.find("</options>", start)
    if start < 0 or end < 0:
        return None, start
    return _asked(text[start : end + len("</options>")]), start


@lru_cache(maxsize=4096)  # a question is read at every call of its debate, and by every method
def _asked(fenced: str) -> Asked | None:
    found = _ASKED.match(fenced)
    if not found:
        return None
    listed = _LISTED.findall(found[2])
    options = tuple(text for _, text in listed)
    if len(options) < 2 or "".join(letter for letter, _ in listed) != LETTERS[: len(options)]:
        return None
    topic = world.find(found[1])
    if topic and sorted(options) == sorted(topic.concepts):
        return Asked(found[1], options, topic, tuple(topic.concepts.index(option) for option in options))
    return Asked(found[1], options, None, tuple(range(len(options))))


def _own(messages: Sequence[Message], asked: Asked) -> int | None:
    """The agent's own last answer to this question; answers of a pack's examples are to others."""
    for index in range(len(messages) - 2, 0, -1):
        if messages[index].role == "assistant":
            same = f"<question>\n{asked.text}\n</question>" in messages[index - 1].content
            return stance(messages[index].content, asked) if same else None
    return None


def stance(text: str, asked: Asked) -> int | None:
    """The concept that a reply states, a(z); None if it states none of the options."""
    letters = _STATED.findall(text)
    letter = letters[-1] if letters else extract(text, "choice", asked.options)  # other models' replies may differ
    place = LETTERS.find(letter) if letter else -1
    return asked.concepts[place] if 0 <= place < len(asked.concepts) else None


@lru_cache(maxsize=4096)  # a case is shown in many debates
def lesson(case: str) -> Lesson | None:
    """What a remembered case says; None if it says nothing, or is of no topic that the model knows.

    What turned out right says most. A case that only tells whether the agent's own last answer was right speaks for or
    against the answer that it names last.
    """
    topic = world.find(case.partition("\n(A) ")[0])
    if topic is None:
        return None
    told = case[max(0, case.rfind("\nYou held: ")) :]  # the facts come last: what a summary says before is hearsay
    if right := _RIGHT.search(told):
        text, good = right[1], True
    else:
        held, reward = _HELD.search(told), _REWARD.search(told)
        if not held or not reward:
            return None
        text, good = held[1], reward[1] == "right"
    return Lesson(topic.name, topic.concepts.index(text), good) if text in topic.concepts else None


def replies(text: str) -> list[str]:
    """The replies that a turn shows."""
    return [said for _, said, _ in _REPLY.findall(text)]


def letters(texts: Sequence[str]) -> list[str | None]:
    """The letter that each reply states last, where it stands in double parentheses."""
    return [found[-1] if (found := _STATED.findall(text)) else None for text in texts]
