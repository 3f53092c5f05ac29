"""What an agent remembers: the debate-state-aware retrieval of R2-MAD, §4.2, and every policy it is compared with.

First pure functions over similarities and rewards; then the part `Retrieval`, which embeds the debate state, asks the
agents' banks, and hands on what each agent is reminded of. A search is exact: one matrix product with the whole bank.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from r2mad.answers import spoken
from r2mad.errors import StoreError, UsageError, boundary
from r2mad.experience import Case, Form
from r2mad.prompts import Held, ShownCase
from r2mad.protocols import Bank
from r2mad.scene import Scene
from r2mad.types import Failure, Question, Reply, Retrieved, Round, clean, digest

if TYPE_CHECKING:
    import numpy.typing as npt

    from r2mad.experience import Vectors

    Floats = npt.NDArray[np.floating]

DECIMALS = 6
"""Similarities are rounded to so many decimals first: vectors from other machines differ in later ones, and a choice
should not hang on them."""
_NOISE = 12
"""Decimals at which two scores count as equal: what is left of rounding in sums of rounded similarities is below."""
BLOCK = 256
"""Similarities whose largest is taken at once: it leaves few to sort, for a tenth of the cost of a partition."""
INLINE = 20_000
"""Cases of a bank up to which the search stays in the event loop: it takes under a millisecond, and a thread would have
to fight for the interpreter with the replies that come in meanwhile."""
WIDTH = 3
"""Candidates are the WIDTH·K cases nearest to the state (R2-MAD, §4.2)."""


def trade_off(consensus: float, gamma: float) -> float:
    """λ of Eq. 8: λ = 1 − γ·Cons(Z^(t−1)). Near 1, retrieval seeks what was relevant and went well; near 0, variety.

    Args:
        consensus: Cons(Z^(t−1)), the share of all agents that hold the most popular answer, in [0, 1].
        gamma: γ in [0, 1].

    Raises:
        ValueError: a value outside its range.
    """
    if not 0.0 <= consensus <= 1.0 or not 0.0 <= gamma <= 1.0:
        raise ValueError(f"consensus {consensus} and gamma {gamma} must lie in [0, 1]")
    return 1.0 - gamma * consensus


def mmr(
    similarity: Sequence[float] | Floats,
    reward: Sequence[float] | Floats,
    pairwise: Sequence[Sequence[float]] | Floats,
    k: int,
    trade_off: float,
) -> list[int]:
    """Maximal marginal relevance, Eq. 7: choose k of c candidates greedily, each time the one that maximises

        λ·sim(e, s)·r(e) − (1−λ)·max over the chosen e' of sim(e, e')

    where the second term is 0 while nothing is chosen. Ties go to the higher sim(e, s), then to the lower index, so a
    caller who passes candidates in order of their case ids gets the rule of `nearest`. With k = 1, λ > 0 cannot matter.

    Args:
        similarity: sim(e, s) of each candidate, shape [c].
        reward: r(e), shape [c].
        pairwise: sim(e, e'), shape [c, c], symmetric.
        k: how many to choose; all if there are fewer.
        trade_off: λ in [0, 1].

    Returns:
        Indices in the order of choice.

    Raises:
        ValueError: shapes that do not fit, λ outside [0, 1], or k below 0.
    """
    count = len(similarity)
    if len(reward) != count or len(pairwise) != count or any(len(row) != count for row in pairwise):
        raise ValueError(f"{count} similarities, {len(reward)} rewards and {len(pairwise)} rows of pairs do not fit")
    if not 0.0 <= trade_off <= 1.0 or k < 0:
        raise ValueError(f"trade-off {trade_off} must lie in [0, 1], and k {k} not below 0")
    near = [round(float(value), DECIMALS) for value in similarity]
    worth = [trade_off * near[index] * float(reward[index]) for index in range(count)]
    closest: list[float | None] = [None] * count  # to what is chosen; None while nothing is
    left, chosen = set(range(count)), list[int]()
    while left and len(chosen) < k:

        def rank(index: int) -> tuple[float, float, int]:
            redundant = closest[index]
            penalty = 0.0 if redundant is None else (1.0 - trade_off) * redundant
            return round(worth[index] - penalty, _NOISE), near[index], -index

        best = max(left, key=rank)
        left.remove(best)
        chosen.append(best)
        for index in left:
            likeness = round(float(pairwise[index][best]), DECIMALS)
            known = closest[index]
            closest[index] = likeness if known is None else max(known, likeness)
    return chosen


def nearest(similarity: Floats, ids: npt.NDArray[np.uint64], count: int) -> list[int]:
    """The `count` most similar cases: by similarity rounded to 1e-6, ties by case id, whatever their order in the bank.

    Args:
        similarity: shape [c].
        ids: the cases' names as numbers, shape [c].
        count: how many; all if there are fewer.
    """
    blocks = len(similarity) // BLOCK
    if count <= 0:
        return []
    if blocks <= count:
        within = np.arange(len(similarity))
    else:
        # The best of `count` blocks are at least as good as the last one in, so nothing below their worst is. What
        # rounds to the same as the last one in is tied with it, and must be looked at as well.
        best = similarity[: blocks * BLOCK].reshape(blocks, BLOCK).max(axis=1)
        within = np.flatnonzero(similarity >= np.partition(best, blocks - count)[blocks - count] - 10.0**-DECIMALS)
    rounded = np.round(similarity[within].astype(np.float64), DECIMALS)
    order = np.lexsort((ids[within], -rounded))
    return [int(index) for index in within[order[:count]]]


@dataclass(frozen=True, slots=True)
class Sought:
    """What a policy chooses by: one bank, and how alike its cases are to the present debate."""

    bank: Bank
    similarity: Floats
    """Of the debate states, shape [c]."""
    questions: Callable[[], Floats]
    """Of the questions, shape [c]; a function, since few policies ask for it."""
    rewards: Callable[[Sequence[int]], list[float]]
    """r(e) of some cases, 0 where it is not known."""
    k: int
    trade_off: float
    """λ of Eq. 8."""
    lot: int
    """A number drawn for this agent and round, for policies that choose at random."""


Chosen = tuple[list[int], list[int]]
"""Candidates and the cases chosen among them, as places in the bank; both in order of preference."""


def _by_mmr(sought: Sought, trade_off: float) -> Chosen:
    """Eq. 7 among the 3K nearest."""
    pool = nearest(sought.similarity, sought.bank.ids, WIDTH * sought.k)
    by_name = sorted(pool, key=lambda index: int(sought.bank.ids[index]))
    states = sought.bank.states[by_name]
    chosen = mmr(sought.similarity[by_name], sought.rewards(by_name), states @ states.T, sought.k, trade_off)
    return pool, [by_name[index] for index in chosen]


def _at_random(sought: Sought) -> Chosen:
    """K cases, every set of K as likely as any other, and the same ones whatever their order in the bank."""
    with np.errstate(over="ignore"):  # splitmix64: arithmetic modulo 2^64 is the point of it
        mixed = sought.bank.ids + np.uint64(sought.lot)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    drawn = [int(index) for index in np.argsort(mixed, kind="stable")[: sought.k]]
    return drawn, drawn


def _rewarded(sought: Sought, right: bool, count: int) -> list[int]:
    """The nearest cases of the whole bank whose reward is 1, or 0."""
    where = np.flatnonzero(sought.bank.rewards == (1.0 if right else 0.0))
    found = nearest(sought.similarity[where], sought.bank.ids[where], count)
    return [int(where[index]) for index in found]


def _all(found: list[int]) -> Chosen:
    return found, found


POLICIES: dict[str, Callable[[Sought], Chosen]] = {
    "debate-state": lambda sought: _by_mmr(sought, sought.trade_off),
    "random": _at_random,
    "similarity": lambda sought: _all(nearest(sought.questions(), sought.bank.ids, sought.k)),
    "nearest": lambda sought: _all(nearest(sought.similarity, sought.bank.ids, sought.k)),
    "positive-only": lambda sought: _all(_rewarded(sought, True, sought.k)),
    "diversity-only": lambda sought: _by_mmr(sought, 0.0),
    "fixed-0.25": lambda sought: _by_mmr(sought, 0.25),
    "fixed-0.50": lambda sought: _by_mmr(sought, 0.50),
    "fixed-0.75": lambda sought: _by_mmr(sought, 0.75),
    "pos-neg": lambda sought: _all(_rewarded(sought, True, 1) + _rewarded(sought, False, 1)),
}
"""Every way to choose: Eq. 7 with λ of Eq. 8 (`debate-state`), and those of the ablations."""


def question_text(question: Question) -> str:
    """A question as it is embedded: its text and its options, without letters, whose order means nothing."""
    return "\n".join([question.text, *question.options])


def reply_text(reply: Reply) -> str:
    """A reply as it is embedded: what was said, without reasoning that the model kept to itself; "" if it failed."""
    return "" if reply.error else spoken(reply.text).strip()


def state_text(question: Question, own: Reply, summary: str | None, consensus: float, form: Form = "paper") -> str:
    """s_i^(t) of Eq. 4 as text: the question, the agent's own reply, the summary h, the consensus Cons(Z).

    `form` "official" leaves the consensus out, as the authors' scripts do. Each part begins a line, so that an embedder
    that goes line by line has read most of it before.
    """
    parts = [question_text(question), "Own position:", reply_text(own), summary or ""]
    if form == "paper":
        parts.append(f"Consensus: {consensus:.2f}")
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Recall:
    """E_i^(t): what one agent was reminded of before it replied, and what its peers are weighed by."""

    trade_off: float | None = None
    candidates: tuple[Retrieved, ...] = ()
    retrieved: tuple[Retrieved, ...] = ()
    cases: tuple[Case, ...] = ()
    """The retrieved cases in full, in order of choice."""
    pool: tuple[Case, ...] = ()
    """The candidates in full, where the form asks for them."""
    replies: Vectors | None = None
    """Vectors of Z^(t−1), shape [n, d]."""
    forgot: Failure | None = None
    """Why there is nothing, where the embedder failed."""


@dataclass(frozen=True)
class Retrieval:
    """Reminds every agent of K cases from its own bank before it replies.

    Args:
        policy: one of `POLICIES`.
        k: K, cases an agent and round. With K = 1 the trade-off λ cannot matter.
        gamma: γ of Eq. 8.
        shown: whether the agent reads the cases; if not they only serve to weigh its peers.
        form: "official" chooses as the authors' scripts do: by the reward of the case's own round.
    """

    policy: str = "debate-state"
    k: int = 3
    gamma: float = 0.9
    shown: bool = True
    form: Form = "paper"

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise UsageError(f"no retrieval policy {self.policy!r}; there are: {', '.join(POLICIES)}")
        if self.k < 1 or not 0.0 <= self.gamma <= 1.0:
            raise UsageError(f"retrieval needs k of at least 1 and gamma in [0, 1], not {self.k} and {self.gamma}")

    async def __call__(self, scene: Scene, last: Round) -> tuple[Recall, ...]:
        """What each agent is reminded of after round `last`, whose summary must stand. A failed embedder is data."""
        states = [
            state_text(scene.question, own, last.summary, last.consensus, self.form) for own in seated(scene, last)
        ]
        asked = [*states, question_text(scene.question), *(reply_text(reply) for reply in seated(scene, last))]
        return await self._look_up(scene, asked, last)

    async def at_first(self, scene: Scene) -> tuple[Recall, ...]:
        """The same before round 0, when nobody has spoken: by the question alone."""
        text = question_text(scene.question)
        return await self._look_up(scene, [text] * (len(scene.agents) + 1), None)

    async def _look_up(self, scene: Scene, texts: list[str], last: Round | None) -> tuple[Recall, ...]:
        assert scene.memory is not None
        vectors = await boundary(scene.memory.embedder.embed(texts))
        if isinstance(vectors, Failure):
            return tuple(Recall(forgot=vectors) for _ in scene.agents)
        try:
            return await self._searched(scene, vectors, last)
        except StoreError as error:  # forgotten or replaced under our hands: the debate goes on without
            return tuple(Recall(forgot=Failure("memory", clean(str(error)))) for _ in scene.agents)

    async def _searched(self, scene: Scene, vectors: Vectors, last: Round | None) -> tuple[Recall, ...]:
        size = max((len(bank) for bank in self._banks(scene) if bank), default=0)
        if size <= INLINE:
            return self._search(scene, vectors, last)
        return await asyncio.to_thread(self._search, scene, vectors, last)

    def _banks(self, scene: Scene) -> list[Bank | None]:
        """Each agent's bank. They were read when the debate began, so nothing is waited for here."""
        assert scene.memory is not None
        return [scene.memory.snapshot.bank(agent.persona.name) for agent in scene.agents]

    def _search(self, scene: Scene, vectors: Vectors, last: Round | None) -> tuple[Recall, ...]:
        count = len(scene.agents)
        balance = trade_off(last.consensus, self.gamma) if last else 1.0
        index = last.index + 1 if last else 0
        replies = vectors[count + 1 :]

        def recall(agent: int, bank: Bank | None) -> Recall:
            if not bank:
                return Recall(trade_off=balance, replies=replies)
            lot = int(digest(["lot", scene.seed, scene.question.id, agent, index]), 16)
            return self._choose(bank, vectors[agent], vectors[count], balance, lot, replies)

        return tuple(recall(agent, bank) for agent, bank in enumerate(self._banks(scene)))

    def _choose(
        self, bank: Bank, state: Vectors, question: Vectors, balance: float, lot: int, replies: Vectors
    ) -> Recall:
        """One agent's cases, by the policy."""
        similarity = bank.states @ state
        known: dict[int, Case] = {}

        def case(index: int) -> Case:
            if index not in known:
                known[index] = bank.case(index)
            return known[index]

        def reward(index: int) -> float:
            if self.form == "official":  # ζ_i^(t) of the case's own round, not the debate's outcome
                found = case(index)
                return float(found.debate.outcome.correct[found.round][found.seat] or False)
            return float(np.nan_to_num(bank.rewards[index]))

        sought = Sought(
            bank,
            similarity,
            lambda: bank.questions @ question,
            lambda places: [reward(index) for index in places],
            self.k,
            balance,
            lot,
        )
        candidates, chosen = POLICIES[self.policy](sought)
        by = sought.questions() if self.policy == "similarity" else similarity
        return Recall(
            trade_off=balance,
            candidates=tuple(_retrieved(bank, by, index) for index in candidates),
            retrieved=tuple(_retrieved(bank, by, index) for index in chosen),
            cases=tuple(case(index) for index in chosen),
            pool=tuple(case(index) for index in candidates) if self.form == "official" else (),
            replies=replies,
        )

    def reminder(self, scene: Scene, recall: Recall) -> str:
        """The block of a prompt that tells an agent its cases; "" if there are none, or they are not to be shown."""
        return scene.pack.experience([shown_case(case) for case in recall.cases]) if self.shown else ""


def _retrieved(bank: Bank, similarity: Floats, index: int) -> Retrieved:
    reward = float(bank.rewards[index])
    known = None if np.isnan(reward) else reward
    return Retrieved(f"{int(bank.ids[index]):016x}", round(float(similarity[index]), DECIMALS), known)


def seated(scene: Scene, last: Round) -> list[Reply]:
    """A round's replies by agent."""
    said = {reply.agent: reply for reply in last.replies}
    return [said[agent] for agent in range(len(scene.agents))]


def shown_case(case: Case) -> ShownCase:
    """A case as a prompt tells it: the situation, who held what, what turned out right."""
    record, outcome = case.debate.record, case.debate.outcome
    before, after = record.rounds[case.round - 1], record.rounds[case.round]
    held: dict[int, Held] = {}
    for reply in before.replies:
        if reply.class_ is not None and reply.answer is not None:
            so_far = held.get(reply.class_, Held(reply.answer, 0))
            held[reply.class_] = replace(so_far, count=so_far.count + 1)
    right = outcome.answer
    if right is None:  # nobody said what is right, but somebody's answer may be known to be
        right = next(
            (
                reply.answer
                for one, row in zip(record.rounds, outcome.correct, strict=True)
                for reply in one.replies
                if row[reply.agent] and reply.answer is not None
            ),
            None,
        )
    return ShownCase(
        question=record.question,
        summary=before.summary,
        group=tuple(held[index] for index in sorted(held)),
        size=len(before.replies),
        before=next(reply.answer for reply in before.replies if reply.agent == case.seat),
        after=next(reply.answer for reply in after.replies if reply.agent == case.seat),
        right=right,
        reward=case.reward,
    )
