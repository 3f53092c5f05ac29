"""The world that the simulated model and its data set share: topics, their concepts, and what most agents believe.

Nothing is stored. A topic follows from its name by hashes, so whoever knows the name knows the topic, in any process.
Each topic has a few concepts θ, one of them true (θ*). In a sound topic most agents hold the true one; in another most
hold the same wrong one (θ', a shared misconception), and the true one comes second (R2-MAD, §3 and Appendix C).

The words are invented, so that a real model cannot know them and an embedder finds texts of one topic near each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice, permutations

from r2mad.models._babble import hashed

VERSION = "world/1"
"""Part of every hash below and of the model's identity: another world must not be answered from old replies."""
TOPICS = 100
"""Enough that no single topic carries a result, few enough that a small memory knows each of them."""
CONCEPTS = 4
"""m = |Θ| of a topic: as many as the options of most benchmarks."""
TERMS = 6
"""Words of its own that a topic's questions are about; each question names two."""
REASONS = 3
"""Words that speak for one concept and for no other. Replies name them, so that most of what a reply says depends on
its stance, and an embedder can tell the stances of a topic apart."""
SHARE = 0.5
"""Share of the topics with a shared misconception. Half, so that both groups are measured equally well."""
SECOND = 0.6
"""Of the belief that an agent's first concept leaves, the share that its second has: a misconception has one rival, the
truth, rather than three equal ones."""
DISSENT = 4
"""Of so many agents in a row one dissents: it holds the second concept as firmly as the others hold the first. So of
three agents two or three share a misconception, and who of them is reliable depends on the topic."""

_ONSETS = ("b", "br", "d", "dr", "f", "g", "gl", "h", "j", "k", "kr", "l", "m", "n", "r", "t", "tr", "v", "w", "y")
_VOWELS = ("a", "e", "i", "o", "u")
_CODAS = ("l", "lm", "n", "nd", "r", "rn", "sk", "v", "z")
_WORD = re.compile(r"[a-z]+")
_WORDINGS = (
    "Which account of {name} still holds when {one} is raised and {two} is kept as it is?",
    "Two studies of {name} report that {one} comes before {two}. What explains their result best?",
    "Someone new to {name} asks why {one} depends on {two}. What should the answer be?",
    "What decides how {name} behaves where {one} meets {two}?",
    "In {name}, {one} was measured twice and {two} once. Which idea fits the figures?",
    "What would a textbook on {name} give as the reason that {one} turns into {two}?",
    "If {two} were missing from {name}, what would still account for {one}?",
    "Which idea links {one} to {two} in everything that is known of {name}?",
)


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic. A concept θ is known by its place in `concepts`."""

    name: str
    concepts: tuple[str, ...]
    """The concepts' texts, as options state them."""
    terms: tuple[str, ...]
    reasons: tuple[tuple[str, ...], ...]
    """For each concept what speaks for it."""
    true: int
    """θ*."""
    held: int
    """The concept that most agents hold: θ* in a sound topic, θ' in one with a shared misconception."""
    second: int
    """The concept that comes second: θ* in a misconception topic, a wrong one in a sound topic."""

    @property
    def sound(self) -> bool:
        """Whether most agents hold the truth."""
        return self.held == self.true


def _words(key: str, syllables: int) -> Iterator[str]:
    """Invented words without end, no two alike."""
    seen: set[str] = set()
    turn = 0
    while True:
        draws, word = hashed(VERSION, key, str(turn)), ""
        turn += 1
        for sounds in (*(_ONSETS, _VOWELS) * syllables, _CODAS):
            draws, place = divmod(draws, len(sounds))
            word += sounds[place]
        if word not in seen:
            seen.add(word)
            yield word


@cache
def names() -> tuple[str, ...]:
    """The topics' names. They have a syllable more than all other invented words, so they are never mistaken."""
    return tuple(islice(_words("names", 3), TOPICS))


@cache
def topic(name: str) -> Topic:
    """The topic of that name; any name has one."""
    words = _words(f"words of {name}", 2)
    concepts = tuple(" ".join(islice(words, 2)) for _ in range(CONCEPTS))
    terms = tuple(islice(words, TERMS))
    reasons = tuple(tuple(islice(words, REASONS)) for _ in range(CONCEPTS))
    true, second = _shuffled(CONCEPTS, f"beliefs on {name}")[:2]
    held = true
    if _uniform(f"misconception on {name}") < SHARE:
        held, second = second, true
    return Topic(name, concepts, terms, reasons, true, held, second)


@cache
def _known() -> frozenset[str]:
    return frozenset(names())


def find(text: str) -> Topic | None:
    """The topic that a text is about: the first whose name stands in it."""
    known = _known()
    return next((topic(word) for word in _WORD.findall(text) if word in known), None)


@lru_cache(maxsize=4096)  # topics × agents of a large study; each is asked for at every call
def prior(name: str, agent: int, mass: float) -> tuple[float, ...]:
    """P(θ|φ_i) of Eq. 2: what agent i believes of a topic before it has read or heard anything.

    Args:
        name: the topic's.
        agent: i; whether it dissents is for the topic to say, so each agent is the dissenter somewhere.
        mass: the probability of the concept that the agent holds.

    Returns:
        Probabilities of the concepts, in their order.
    """
    what = topic(name)
    dissents = (hashed(VERSION, f"dissent on {name}") + agent) % DISSENT == 0
    first, second = (what.second, what.held) if dissents else (what.held, what.second)
    rest = 1.0 - mass
    beliefs = [rest * (1.0 - SECOND) / (CONCEPTS - 2)] * CONCEPTS
    beliefs[first], beliefs[second] = mass, rest * SECOND
    return tuple(beliefs)


def wording(name: str, index: int) -> str:
    """The text of a topic's question number `index`; no two of a topic are alike.

    Raises:
        IndexError: a topic has not as many.
    """
    return _wordings(name)[index]


@cache
def _wordings(name: str) -> tuple[str, ...]:
    pairs = tuple(permutations(topic(name).terms, 2))
    texts = [words.format(name=name, one=one, two=two) for words in _WORDINGS for one, two in pairs]
    return tuple(texts[place] for place in _shuffled(len(texts), f"wordings of {name}"))


def options(name: str, index: int) -> tuple[int, ...]:
    """The concepts of a topic in the order in which its question number `index` lists them."""
    return tuple(_shuffled(CONCEPTS, f"options of {name}, {index}"))


def _shuffled(count: int, key: str) -> list[int]:
    """The numbers below `count` in an order that follows from the key."""
    return sorted(range(count), key=lambda place: hashed(VERSION, key, str(place)))


def _uniform(key: str) -> float:
    """A number in [0, 1) that follows from the key."""
    return (hashed(VERSION, key) >> 75) * 2.0**-53  # the upper 53 of 128 bits: all that a float holds
