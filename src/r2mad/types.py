"""The records of a debate: frozen, made of plain values, and the same in memory, on disk and in the viewer.

Standard library only, so that `import r2mad` stays light; `r2mad.study.records` reads and writes them as JSON
(a trailing underscore is dropped there: `class_` is `"class"`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from r2mad.question import LETTERS as LETTERS
from r2mad.question import AnswerKind as AnswerKind
from r2mad.question import Item as Item
from r2mad.question import Question as Question
from r2mad.question import clean as clean
from r2mad.question import digest as digest

CallKind = Literal["debate", "summary", "judge"]
"""What a call was for. Masks and doubts count as `judge`."""

Role = Literal["system", "user", "assistant"]

Stopped = Literal["unanimity", "settled", "rounds", "doubted", "partial", "failed"]
"""Why a debate ended: all agreed, the opening agreed enough for none to be held, the last round was over, doubt kept it
open to the end, it was cut short, or every reply of its last round was an error."""

Purpose = Literal["mask", "vote"]
"""What a model was asked to judge for: whether a reply is shown on, or what the group's answer is."""

SCHEMA = 1
"""Version of the debate record; a reader refuses a newer one."""

JSON: dict[str, Any] = {
    "alias_generator": lambda name: name.rstrip("_"),
    "ser_json_inf_nan": "strings",  # a log-probability may be -inf, which JSON has no number for
}
"""How records become JSON; read by pydantic, which this module does not import."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a model is sampled. The defaults are the papers'."""

    temperature: float = 1.0
    """Sampling temperature, 0 or more."""
    top_p: float = 1.0
    """Nucleus mass, in (0, 1]."""
    max_tokens: int = 6144
    """Most tokens a reply may have, reasoning included."""
    logprobs: bool = False
    """Ask for the log-probability of every sampled token and of the top one."""
    extra_body: dict[str, Any] = field(default_factory=dict)
    """Further fields of the request, passed to the server as they are."""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """What suits a model where the user says nothing; a model that has any carries them as `suggestions`."""

    prompts: str | None = None
    """Its prompt pack."""
    temperature: float | None = None
    max_tokens: int | None = None
    extra_body: dict[str, Any] = field(default_factory=dict)
    """Further fields of its requests; the user's own take precedence."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call to a model. Agent and sample are part of its identity: two agents never share a reply by accident."""

    messages: tuple[Message, ...]
    sampling: Sampling
    seed: int
    agent: int = 0
    sample: int = 0
    kind: CallKind = "debate"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counted them; reasoning tokens are part of the completion's, cached ones of the prompt's."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cached_tokens + other.cached_tokens,
        )

    @property
    def total_tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model sent back for one `Request`."""

    text: str
    reasoning: str | None = None
    """The server's separate reasoning text, if it sends one; never read for an answer."""
    finish_reason: str = "stop"
    """`stop`, `length` (cut off at `max_tokens`), or what else the server said."""
    mean_logprob: float | None = None
    """Mean natural log-probability of the sampled tokens, or None where the server gave none."""
    mean_top_logprob: float | None = None
    """The same of the likeliest token at each place."""
    usage: Usage = Usage()
    seconds: float = 0.0
    """Wall time of the call as first made, its retries included."""
    cached: bool = False
    """Whether it came from the cache, or from a call in flight that another debate had made."""
    model: str = ""
    """The model's id as the server names it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no reply: an error's short name (see `r2mad.errors`) and its one-line message."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Reply:
    """One agent's reply z_i^(t)."""

    __pydantic_config__: ClassVar[dict[str, Any]] = JSON

    agent: int
    sample: int = 0
    text: str = ""
    reasoning: str | None = None
    answer: str | None = None
    class_: int | None = None
    """Index of the answer's class in the round's tally, most popular first; None for no answer."""
    finish_reason: str = "stop"
    mean_logprob: float | None = None
    mean_top_logprob: float | None = None
    verbal_confidence: float | None = None
    """How sure the model says it is, 0 to 10; None where it was not asked, or did not say."""
    usage: Usage = Usage()
    seconds: float = 0.0
    cached: bool = False
    seed: int = 0
    error: Failure | None = None
    model: str = ""
    """The model's id as its server names it."""


@dataclass(frozen=True, slots=True)
class Peer:
    """How one reply of the round before was shown to an agent; `agent` may be the agent itself (context `Fresh`)."""

    agent: int
    shown: bool = True
    confidence: float | None = None
    """c_{j,i} of Eq. 11 (R2-MAD), from memory."""
    label: str | None = None
    """What stands beside the reply: `high`, `low`, or how sure the peer says it is."""
    weight: float | None = None
    verdict: str | None = None
    """`error` for a reply that failed; a mask's: `yes`, `no`, `not sure`, `unreadable` or `failed` where a model was
    asked, `kept`, `masked` or `unscored` where the reply's log-probability decided."""
    score: float | None = None
    """What an objective mask compared: mean log-probability, so perplexity is exp(−score)."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One case that an agent was given from its memory, or that it was chosen from."""

    case: str
    similarity: float
    """To the debate state, or to the question where the policy goes by that; rounded to 1e-6."""
    reward: float | None
    """r_i(e); None where it is not known, which counts as 0."""


@dataclass(frozen=True, slots=True)
class View:
    """What one agent was shown before it replied."""

    agent: int
    messages: str = ""
    """Digest of the messages that were sent; in a diverse opening, of those that led to the reply it goes on with."""
    trimmed: int = 0
    """Old turns of the debate left out because the context was too short."""
    trade_off: float | None = None
    candidates: tuple[Retrieved, ...] = ()
    retrieved: tuple[Retrieved, ...] = ()
    """The cases chosen, in order of choice; shown unless the method only weighs by them, or `forgot` is set."""
    peers: tuple[Peer, ...] = ()
    forgot: Failure | None = None
    """Why nothing was remembered: the embedder or the memory failed, or the cases did not fit into the context. In a
    diverse opening: why candidates were not compared by their vectors."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round Z^(t) and what it came to."""

    index: int
    consensus: float
    """Cons(Z), Eq. 5: share of all replies, unparsed and failed ones included, that hold the most popular answer."""
    replies: tuple[Reply, ...]
    views: tuple[View, ...] = ()
    summary: str | None = None
    """h^(t), made only if a later round needs it."""
    plain: Failure | None = None
    """Why the summary is the plain line that the tally gives and not a model's; None where it is a model's. Its kind is
    `summary` where the model wrote one that could not be used, or was not asked, else the failed call's."""
    candidates: tuple[Reply, ...] = ()
    """The whole pool of a diverse opening, in sampling order; empty where every reply was kept."""
    kept: tuple[int, ...] = ()
    """For each agent the place in `candidates` of the reply that it goes on with."""
    trust: float | None = None
    """Mean memory confidence in the replies of a round that agreed, where the method asks before it ends a debate."""
    undecided: tuple[str, ...] = ()
    """Answers whose canonical form was given up after the time-out; they count as different from all others."""

    @property
    def hurt(self) -> bool:
        """Whether any of its calls failed: a reply's, the summary's, or the embedder's."""
        summary = self.plain is not None and self.plain.kind != "summary"
        return (
            summary
            or any(reply.error for reply in (*self.replies, *self.candidates))
            or any(view.forgot for view in self.views)
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """One call about replies rather than for one, and what a mask or a judge was told; or why none could be judged."""

    purpose: Purpose
    round: int
    """Index of the round that was judged."""
    about: int | None
    """Whose reply was judged; None for the whole round."""
    agent: int
    """Whose model was asked."""
    text: str = ""
    verdict: str | None = None
    """What was read in it: `yes`, `no`, `not sure`, `unreadable`, or the group's answer."""
    usage: Usage = Usage()
    seconds: float = 0.0
    cached: bool = False
    error: Failure | None = None


@dataclass(frozen=True, slots=True)
class Separation:
    """How well a score tells right replies from wrong ones: area under the ROC curve, with its 95 % interval."""

    auc: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MaskChoice:
    """Which mask was chosen for a model, and on what evidence."""

    chosen: Literal["subjective", "objective"]
    reason: str
    """In a sentence."""
    items: int = 0
    """Labelled training questions that were answered."""
    right: int = 0
    wrong: int = 0
    """Replies that could be graded, by how they turned out."""
    subjective: Separation | None = None
    """Of the model's verdicts; None where it could not be told."""
    objective: Separation | None = None
    """Of the replies' mean log-probabilities; None where there were none, or it could not be told."""
    data: str = ""
    """Digest of the training items."""
    questions: tuple[str, ...] = ()
    """Keys of their questions, so that no study evaluates on one of them."""


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """Who took part: a name (its persona), a model, and how it was sampled."""

    name: str
    model: str
    sampling: Sampling = Sampling()


@dataclass(frozen=True, slots=True)
class MemoryInfo:
    """The memory that a debate read, at the version it read."""

    url: str
    version: str
    """A digest of everything in it: the same debates with the same outcomes have the same version anywhere."""
    cases: int = 0
    """How many cases the agents of this debate had in it; with none the debate ran as it would without a memory."""


@dataclass(frozen=True, slots=True)
class DebateRecord:
    """A whole debate; the unit that is stored. `id` is a digest of what makes it this debate and no other."""

    __pydantic_config__: ClassVar[dict[str, Any]] = JSON

    id: str
    method: str
    seed: int
    question: Question
    agents: tuple[AgentInfo, ...]
    prompts: str
    """The prompt pack, as `name:digest`."""
    rounds: tuple[Round, ...]
    answer: str | None
    votes: dict[str, float]
    tie: bool
    tied: tuple[str, ...]
    stopped: Stopped
    degraded: bool
    """Whether any call failed; the replies say which agent's and why."""
    confidence: float | None
    """How sure the group is: the winning answer's share of all replies of the last round, or of all stated confidence
    where votes are weighted by it."""
    calls: dict[CallKind, int]
    usage: dict[CallKind, Usage]
    seconds: float
    started: str
    """UTC, ISO 8601."""
    study: str = ""
    dataset: str = ""
    split: str = ""
    embedder: str | None = None
    memory: MemoryInfo | None = None
    composition: str = ""
    """The method's parts, as `r2mad methods` shows them."""
    judgements: tuple[Judgement, ...] = ()
    """Every call that judged replies, by round and then by agent."""
    choice: MaskChoice | None = None
    """Why the method masks as it does, where it chose for itself."""
    calibrated: float | None = None
    """The chance that the answer is right, where a calibration on earlier debates was given."""
    abstained: bool = False
    """Whether the answer was withheld because its confidence was below what the user asked for."""
    schema: int = SCHEMA

    @property
    def failures(self) -> tuple[tuple[int, int, Failure], ...]:
        """Every failed reply as (round, agent, why)."""
        return tuple((r.index, z.agent, z.error) for r in self.rounds for z in r.replies if z.error)


def total(usages: Iterable[Usage]) -> Usage:
    """The sum of token counts."""
    return sum(usages, Usage())
