"""A model whose beliefs are known: it answers by the theory, so that what a method does to a debate can be measured.

`simulated/shared-misconception`    draws each answer from P(θ | x, Z, E, φ_i) of Eq. 3 (R2-MAD)

The concepts θ are the options of the question. Memory corrects the prior (Eq. 9), peers skew it (Eq. 2), and labels
reweight the peers; the world that the prior comes from is `r2mad.models._world`, and questions about it are the data
set `simulated`. The model reads all else from the prompts of the base templates, as any model has to (`_reading`).
Of a question with options that is not of that world it knows nothing: its prior is even. Whatever has no options it
answers as `scripted/seeded` does.

Parameters may follow the name: `simulated/shared-misconception?prior=0.7&evidence=2`; see `Parameters`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from math import exp, log
from typing import TYPE_CHECKING

from r2mad.errors import UnknownNameError, UsageError
from r2mad.models import _world as world
from r2mad.models._babble import hashed
from r2mad.models._reading import SUMMARISE, VERIFY, Asked, Read, letters, read, replies, stance
from r2mad.models.scripted import open_scripted
from r2mad.types import Completion, Request, Usage

if TYPE_CHECKING:
    from r2mad.models import ModelOptions

__all__ = ["NAMES", "Parameters", "SimulatedModel", "open_simulated", "posterior"]

NAMES = ("shared-misconception",)
"""What may follow `simulated/`."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What may follow a model's name, as `?prior=0.7&evidence=2`.

    The defaults let memory and labels help without either settling the matter. One case moves the odds of two concepts
    by 2.5, one reply by 0.5 ÷ (0.5 ÷ 3) = 3: a case of the topic nearly outweighs a peer, and not two.
    """

    prior: float = 0.7
    """P(θ|φ_i) of the concept that an agent holds, from 0.4 to 0.95. Three agents then fail together often enough: a
    debate leaves the group right in fewer misconception topics than its first vote, and in more of the sound ones."""
    evidence: float = 2.5
    """P(e|θ) over P(e|another concept), for a case that says that θ turned out right; from 1 (it says nothing) to 1000.
    A case that says that θ was wrong divides by it."""
    peers: float = 0.5
    """P(z_j|θ) of a reply that states θ, from 0.05 to 0.95; what is left is spread evenly over the other options."""


_RANGES = {"prior": (0.4, 0.95), "evidence": (1.0, 1000.0), "peers": (0.05, 0.95)}
"""The bounds that the texts above name. Below those of `prior` an agent would lean to the second concept, above them
nothing could move it; a certainty among `peers` would leave some replies without probability under every concept."""


def posterior(
    prior: Sequence[float],
    lessons: Iterable[tuple[int, bool]] = (),
    stances: Iterable[tuple[int, float]] = (),
    *,
    evidence: float,
    peers: float,
) -> list[float]:
    """P(θ | x, Z, E, φ_i) of Eq. 3, with P(E|θ) as Eq. 9 has it:

        ∝ P(θ|φ_i) · Π_{e∈E} P(e|θ) · Π_j P(z_j|θ)^{w_j}

    P(x|θ) is the same for every θ here and cancels. P(z_j|θ) is q if z_j states θ, else (1 − q)/(m − 1).

    Args:
        prior: P(θ|φ_i) of each of the m concepts, all above 0.
        lessons: what the retrieved cases say: a concept, and whether it turned out right.
        stances: for each reply the concept that it states, and w_j.
        evidence: how much likelier a case that says "θ was right" is under θ than under another concept; one that
            says "θ was wrong" is as much less likely.
        peers: q.

    Returns:
        m probabilities that sum to 1.
    """
    scores = [log(belief) for belief in prior]
    strength = log(evidence)
    for concept, right in lessons:
        scores[concept] += strength if right else -strength
    agrees, differs = log(peers), log((1.0 - peers) / (len(prior) - 1))
    for stated, weight in stances:
        for concept in range(len(scores)):
            scores[concept] += weight * (agrees if concept == stated else differs)
    return _normal(scores)


def _normal(scores: Sequence[float]) -> list[float]:
    """Logarithms, up to a constant, as probabilities."""
    most = max(scores)
    masses = [exp(score - most) for score in scores]
    total = sum(masses)
    return [mass / total for mass in masses]


class SimulatedModel:
    """See the module. It keeps no state: a reply follows from the request and the parameters alone.

    Of the sampling it heeds the temperature (0 is the likeliest concept), `max_tokens` and `logprobs`. The
    log-probability of a reply is that of its concept under the posterior, before any temperature.
    """

    def __init__(self, parameters: Parameters | None = None, name: str = "simulated/shared-misconception") -> None:
        self.name = name
        self.parameters = parameters or Parameters()
        values = "&".join(f"{one.name}={getattr(self.parameters, one.name)!r}" for one in fields(Parameters))
        self.identity = f"simulated/shared-misconception?{values}#{world.VERSION}"
        self._other = open_scripted("seeded")

    async def complete(self, request: Request) -> Completion:
        """Answer what the last turn asks for: a summary, a verdict, or an answer."""
        last = request.messages[-1].content if request.messages else ""
        if last.startswith(SUMMARISE):
            return self._completion(request, _summary(last), 0.0, 0.0)
        known = read(request.messages)
        if known is None:
            return replace(await self._other.complete(request), model=self.name)
        if last.startswith(VERIFY):
            return self._verdict(request, known, last)
        beliefs = self.beliefs(request, known)
        concept = _drawn(beliefs, request, known.asked)
        text = _argument(known.asked, concept, request.seed)
        return self._completion(request, text, log(beliefs[concept]), log(max(beliefs)))

    def beliefs(self, request: Request, known: Read) -> list[float]:
        """The posterior over the concepts of the question, after all that the agent has read."""
        how = self.parameters
        return posterior(
            self._prior(known.asked, request.agent),
            known.lessons,
            known.stances,
            evidence=how.evidence,
            peers=how.peers,
        )

    def _prior(self, asked: Asked, agent: int) -> Sequence[float]:
        """P(θ|φ_i); even where the agent knows nothing."""
        if asked.topic is None:
            return [1.0 / len(asked.options)] * len(asked.options)
        return world.prior(asked.topic.name, agent, self.parameters.prior)

    def _verdict(self, request: Request, known: Read, last: str) -> Completion:
        """Whether an answer is right, by what the agent itself would answer alone."""
        given = replies(last[last.rfind("</options>") :])
        claimed = stance(given[-1], known.asked) if given else None
        if claimed is None:
            return self._completion(request, "It names none of the options.\nNOT SURE", 0.0, 0.0)
        alone = list(self._prior(known.asked, request.agent))
        agrees = _drawn(alone, request, known.asked) == claimed
        yes = alone[claimed]
        said = log(yes if agrees else 1.0 - yes)
        text = f"My own answer is {'the same' if agrees else 'another'}.\n{'YES' if agrees else 'NO'}"
        return self._completion(request, text, said, log(max(yes, 1.0 - yes)))

    def _completion(self, request: Request, text: str, logprob: float, top: float) -> Completion:
        """A text as a completion: words counted as tokens, cut at `max_tokens`."""
        words = text.split()
        finish = "stop"
        if len(words) > request.sampling.max_tokens:
            words = words[: request.sampling.max_tokens]
            text, finish = " ".join(words), "length"
        return Completion(
            text=text,
            finish_reason=finish,
            mean_logprob=logprob if request.sampling.logprobs else None,
            mean_top_logprob=top if request.sampling.logprobs else None,
            usage=Usage(sum(len(message.content.split()) for message in request.messages), len(words)),
            model=self.name,
        )

    async def aclose(self) -> None:
        """Nothing to let go of."""


def _drawn(beliefs: Sequence[float], request: Request, asked: Asked) -> int:
    """A concept drawn from the beliefs, sharpened or flattened by the temperature.

    The draw depends on the call's identity and on the question's text, and not on what was read meanwhile: two methods
    that ask the same agent in the same round share their luck, as in any study with common random numbers.
    """
    temperature = request.sampling.temperature
    if temperature <= 0.0:
        return max(range(len(beliefs)), key=beliefs.__getitem__)
    if temperature != 1.0:
        beliefs = _normal([log(max(belief, 1e-300)) / temperature for belief in beliefs])
    draws = hashed(str(request.seed), str(request.agent), str(request.sample), asked.text)
    left = (draws >> 75) * 2.0**-53  # the upper 53 of 128 bits: all that a float holds
    for concept, belief in enumerate(beliefs):
        left -= belief
        if left < 0.0:
            return concept
    return len(beliefs) - 1  # what rounding left over


_ARGUMENTS = (
    "{topic}: {concept}. {first} and {second} speak for {concept}, and so does {third}.",
    "{topic} comes down to {concept}, since {second} and {third} follow from {concept}, as {first} does.",
    "{concept} explains {topic}: {third} needs {concept}, {first} and {second} agree.",
)
"""What a reply says: little that other replies say too, so that an embedder finds those of one stance nearest."""


def _argument(asked: Asked, concept: int, seed: int) -> str:
    letter = asked.letter(concept)
    end = f"The answer is (({letter}))."
    if asked.topic is None:
        return f"Nothing speaks for one option more than what was said here.\n{end}"
    name, held = asked.topic.name, asked.topic.concepts[concept]
    first, second, third = asked.topic.reasons[concept]
    words = _ARGUMENTS[seed % len(_ARGUMENTS)]
    return words.format(topic=name, concept=held, first=first, second=second, third=third) + "\n" + end


_DYNAMICS = {
    "silent": "No participant has taken a position that can be told from the others.",
    "agreed": "All participants hold the same position, and nobody speaks for another.",
    "majority": "The majority shares its position, and a minority keeps to another.",
    "scattered": "The majority shares its position, and each of the others stands alone.",
    "split": "The participants are spread over several positions, and none of these has a majority.",
}
_INSIGHTS = {
    "silent": "Standing still: nobody has offered an argument that the others could take up or refute.",
    "agreed": "Closing in: agreement rests on repeating the shared argument, which nobody has put to the test.",
    "majority": "Closing in: numbers of supporters press on the minority, whose argument nobody has refuted.",
    "scattered": "Closing in: numbers of supporters weigh more than arguments, since no two of the others agree.",
    "split": "Splitting: every position is argued for by assertion, and what would decide between them is open.",
}
_UNMOVED = "Standing still: nobody has been moved since, and the same arguments are said again."


def _summary(turn: str) -> str:
    """Two lines on how stances are spread; they name none of them, as the prompt asks."""
    said = letters(replies(turn))
    counts = sorted(Counter(letter for letter in said if letter).values(), reverse=True)
    if not counts:
        pattern = "silent"
    elif counts[0] == len(said):
        pattern = "agreed"
    elif 2 * counts[0] <= len(said):
        pattern = "split"
    else:
        pattern = "majority" if counts[1:] == [len(said) - counts[0]] else "scattered"
    dynamic = _DYNAMICS[pattern]
    before = turn.find("<summary>")
    unmoved = before >= 0 and turn.find(dynamic, before, turn.find("</summary>", before)) >= 0
    return f"Dynamic: {dynamic}\nInsight: {_UNMOVED if unmoved else _INSIGHTS[pattern]}"


def open_simulated(model: str, options: ModelOptions | None = None) -> SimulatedModel:
    """The simulated model of that name, with the parameters that follow it after a `?`.

    Raises:
        UnknownNameError: there is none.
        UsageError: a parameter that there is not, one given twice, or a value out of its range.
    """
    name, _, query = model.partition("?")
    if name not in NAMES:
        raise UnknownNameError(f"no simulated model {name!r} (simulated: {', '.join(NAMES)})")
    values: dict[str, float] = {}
    for part in query.split("&") if query else ():
        key, _, value = part.partition("=")
        if key not in _RANGES or key in values:
            raise UsageError(f"{model}: {key!r} is no parameter, or is there twice; there are: {', '.join(_RANGES)}")
        values[key] = _number(model, key, value)
    return SimulatedModel(Parameters(**values), f"simulated/{model}")


def _number(model: str, key: str, value: str) -> float:
    low, high = _RANGES[key]
    try:
        number = float(value)
    except ValueError:
        number = low - 1.0
    if not low <= number <= high:  # a NaN fails it too
        raise UsageError(f"{model}: {key} must be a number from {low:g} to {high:g}, not {value!r}")
    return number
