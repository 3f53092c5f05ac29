"""Loading a pack from its folder, and rendering its templates."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from r2mad.errors import UnknownNameError, UsageError
from r2mad.types import Message, Question, digest

PACKS = Path(__file__).parent / "packs"
BASE = PACKS / "base"
LONGEST_PROMPT = 50_000_000
"""Characters of a rendered prompt; no model reads as much, and a template's loop may never end."""
NAME = re.compile(r"[\w][\w .-]{0,59}")
"""A persona's name: it stands in prompts, in records and on terminals, so it holds nothing that could steer them."""
TEMPLATES = (
    "system.j2",
    "task.j2",
    "debate.j2",
    "format.j2",
    "confidence.j2",
    "experience.j2",
    "summary.j2",
    "mask.j2",
    "judge.j2",
    "verify.j2",
)

TAGS = ("question", "options", "reply", "confidence", "experience", "summary", "persona")
"""The tags that fence data in our prompts; a fenced text may not open or close one of them."""

# Bounded gaps: two unbounded runs of spaces would make a long blank text quadratic.
_INVISIBLE = "\u200b-\u200f\u2060\ufeff"
_GAP = rf"[\s\\{_INVISIBLE}]{{0,16}}"
_TAG = "|".join(f"[{_INVISIBLE}]{{0,4}}".join(tag) for tag in TAGS)
_FORGED = re.compile(rf"[<\uff1c](?={_GAP}[/\uff0f]?{_GAP}(?:{_TAG})(?![a-z]))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Persona:
    """A debater's role: its name, which is also the name of its memory, and its text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Example:
    """A finished exchange that stands before the question: how small models are shown what is wanted."""

    kinds: tuple[str, ...]
    """Kinds of question that it is shown for."""
    user: str
    assistant: str
    confidence: int | None = None
    """How sure the reply says it is, where replies are asked for it."""

    def reply(self, stated: bool) -> str:
        """The assistant's turn, with its confidence if replies state one; on one line, where such models stop."""
        return (
            f"{self.assistant} (confidence: {self.confidence})"
            if stated and self.confidence is not None
            else self.assistant
        )


@dataclass(frozen=True, slots=True)
class ShownReply:
    """A reply as a debate prompt shows it."""

    agent: str
    text: str
    answer: str | None = None
    own: bool = False
    label: str | None = None
    """`high`, `low`, or a number; None for no label."""


@dataclass(frozen=True, slots=True)
class Held:
    """A position in a remembered debate, and how many held it."""

    answer: str
    count: int


@dataclass(frozen=True, slots=True)
class ShownCase:
    """A remembered case as a prompt tells it."""

    question: Question
    summary: str | None
    """How the debate stood."""
    group: tuple[Held, ...]
    """What the group held then, the most popular answer first."""
    size: int
    """How many agents there were."""
    before: str | None
    """The agent's own answer then."""
    after: str | None
    """Its answer once it had read the others."""
    right: str | None
    """What turned out right, where it is known."""
    reward: float | None
    """Whether the agent's last answer was right: 1, 0, a value between, or None where it is not known."""


RECORDS = frozenset({Question, Persona, ShownReply, Held, ShownCase})
"""What templates are handed: plain values, nothing to call."""


def fence(text: str, tag: str, **attributes: str) -> str:
    """`text` between `<tag …>` and `</tag>`, with any of our own tags inside it disarmed."""
    opened = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<{tag}{opened}>\n{_FORGED.sub('&lt;', text.strip())}\n</{tag}>"


def quoted(text: str) -> str:
    """`text` with each further line marked as the same text's, so that none can pass for a line of ours."""
    return "\n| ".join(text.strip().splitlines())


def oneline(text: str) -> str:
    """`text` on one line, for the same reason."""
    return " ".join(text.split())


@dataclass(frozen=True, eq=False)  # a pack is itself: cheap to hash, for the caches below
class Pack:
    """A loaded pack. Rendering is pure: the same pack and question give the same text."""

    name: str
    personas: tuple[Persona, ...]
    folder: Path
    digest: str
    """Digest of every file that the pack renders from."""
    examples: tuple[Example, ...] = ()
    _environment: jinja2.Environment = field(repr=False, compare=False, default_factory=jinja2.Environment)

    @property
    def label(self) -> str:
        """`name:digest`, as records carry it."""
        return f"{self.name}:{self.digest}"

    def roster(self, agents: int) -> tuple[Persona, ...]:
        """`agents` personas with names that differ: those of the pack, in order, and round again."""
        seated = list(self.personas[:agents])
        taken, count = {persona.name for persona in self.personas}, len(self.personas)
        for index in range(len(seated), agents):
            persona, turn = self.personas[index % count], index // count + 1
            while (name := f"{persona.name}-{turn}") in taken:  # a pack may have a persona of just that name
                turn += 1
            taken.add(name)
            seated.append(Persona(name, persona.text))
        return tuple(seated)

    def preamble(self, persona: Persona, question: Question, stated: bool = False) -> tuple[Message, ...]:
        """What stands before the question: the system prompt, if there is one, and the pack's examples.

        `stated` is whether replies are asked how sure they are; examples then say it too.

        It is the same for all questions of a kind, so that servers keep it read.
        """
        return _preamble(self, persona, question.kind, stated)

    def task(self, question: Question) -> str:
        """The task prompt of round 0."""
        return _task(self, question)

    def debate(self, question: Question, shown: Sequence[ShownReply]) -> str:
        """The user turn of a later round: the replies shown, the question again, and what to do now."""
        return self._render(
            "debate.j2",
            question=question,
            peers=[reply for reply in shown if not reply.own],
            own=next((reply for reply in shown if reply.own), None),
        )

    def experience(self, cases: Sequence[ShownCase]) -> str:
        """What an agent remembers, as it stands before the peers' replies; "" without cases."""
        return self._render("experience.j2", cases=list(cases)) if cases else ""

    def summary(self, question: Question, previous: str | None, replies: Sequence[ShownReply], consensus: float) -> str:
        """The prompt that asks for h^(t); "" where the pack's models cannot write one."""
        return self._render(
            "summary.j2", question=question, previous=previous, replies=list(replies), consensus=consensus
        )

    def confidence(self) -> str:
        """What asks for a stated confidence, as it stands after a prompt; "" where the examples show it."""
        return _confidence(self)

    def mask(self, question: Question, reply: ShownReply) -> str:
        """The prompt that asks a model whether a reply is right: YES, NO or NOT SURE."""
        return self._render("mask.j2", question=question, reply=reply)

    def judge(self, question: Question, replies: Sequence[ShownReply]) -> str:
        """The prompt that asks for the group's answer from its last replies."""
        return self._render("judge.j2", question=question, replies=list(replies))

    def verify(self, question: Question, answer: str) -> str:
        """The prompt that asks a verifier whether an answer is right: YES, NO or NOT SURE."""
        return self._render("verify.j2", question=question, answer=answer)

    @cached_property
    def _templates(self) -> dict[str, jinja2.Template]:
        return {name: self._environment.get_template(name) for name in TEMPLATES}

    def _render(self, template: str, **values: Any) -> str:
        """One template as text; whatever goes wrong in it is the pack's fault, and said so."""
        try:
            parts: list[str] = []
            size = 0
            for part in self._templates[template].generate(**values):
                size += len(part)
                if size > LONGEST_PROMPT:
                    raise ValueError(f"the text is longer than {LONGEST_PROMPT} characters")
                parts.append(part)
        except Exception as error:  # a template is a program: it can fail in any way
            message = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UsageError(f"prompt pack {self.folder}: {_where(error, template)}: {message}") from error
        return "".join(parts).strip()


@lru_cache(maxsize=1024)  # personas × kinds × packs: never near that many
def _preamble(pack: Pack, persona: Persona, kind: str, stated: bool) -> tuple[Message, ...]:
    system = pack._render("system.j2", persona=persona, kind=kind)
    shown = [example for example in pack.examples if kind in example.kinds]
    turns = [
        turn
        for example in shown
        for turn in (Message("user", example.user), Message("assistant", example.reply(stated)))
    ]
    return (*([Message("system", system)] if system else []), *turns)


@lru_cache(maxsize=1024)  # a question's agents and samples ask for it together, so the newest are enough
def _task(pack: Pack, question: Question) -> str:
    return pack._render("task.j2", question=question)


@lru_cache(maxsize=64)  # packs
def _confidence(pack: Pack) -> str:
    return pack._render("confidence.j2")


def _where(error: Exception, template: str) -> str:
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"{error.name or template}, line {error.lineno}"
    return template


def pack_names() -> tuple[str, ...]:
    """The packs that ship, by name."""
    return tuple(sorted(folder.name for folder in PACKS.iterdir() if (folder / "pack.toml").is_file()))


def suggest_pack(question: Question) -> str:
    """The pack for a question of which nothing but its kind is known."""
    return "mathematics" if question.kind in ("math", "number") else "general"


def load_pack(name: str | Path) -> Pack:
    """Load a pack that ships, by name, or a user's own, by folder.

    Every template is rendered once for every kind of question, so that a mistake shows before anything is asked.

    Raises:
        UnknownNameError: neither a shipped pack nor a folder.
        UsageError: the folder has no usable `pack.toml`, or a template of it does not render.
    """
    folder = Path(name)
    if str(name) in pack_names():
        folder = PACKS / str(name)
    elif not folder.is_dir():
        raise UnknownNameError(f"no prompt pack {str(name)!r}: not a folder, and not one of {', '.join(pack_names())}")
    title, personas, examples = _read_manifest(folder)
    environment = _Sandbox(  # a pack may come from a stranger
        loader=jinja2.FileSystemLoader([folder, BASE]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # prompts are plain text; `fence` keeps data apart
    )
    environment.filters |= {"fence": fence, "quoted": quoted, "oneline": oneline}
    environment.globals.clear()  # no lipsum, no endless range: a prompt needs none of them
    pack = Pack(title, personas, folder, _digest(folder), examples, environment)
    _try_out(pack)
    return pack


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, and no powers either: `9**9**9` is a program that never ends."""

    intercepted_binops = frozenset({"**"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A public field of one of our own records needs none of the checks, which took half of the rendering."""
        if type(obj) in RECORDS and attribute[:1] != "_":
            return getattr(obj, attribute) if hasattr(obj, attribute) else self.undefined(obj=obj, name=attribute)
        checked: Any = super()  # whether jinja's own method counts as typed depends on mypy's cache
        return checked.getattr(obj, attribute)

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:
        """Refuse."""
        raise SecurityError(f"{operator} has no place in a prompt")


def _read_manifest(folder: Path) -> tuple[str, tuple[Persona, ...], tuple[Example, ...]]:
    path = folder / "pack.toml"
    try:
        data = tomllib.loads(_read(path, folder))
        personas = tuple(Persona(str(entry["name"]), str(entry["text"]).strip()) for entry in data["persona"])
        examples = tuple(
            Example(tuple(entry["kinds"]), str(entry["user"]).strip(), str(entry["assistant"]).strip(), _sure(entry))
            for entry in data.get("example", ())
        )
        title = str(data.get("name") or folder.name)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"prompt pack {path}: {error}") from error
    except (KeyError, TypeError) as error:
        raise UsageError(
            f"prompt pack {path}: each [[persona]] needs a name and a text, each [[example]] kinds, user and assistant"
        ) from error
    names = [persona.name for persona in personas]
    if not names or len(set(names)) < len(names):
        raise UsageError(f"prompt pack {path}: needs at least one persona, each with a name of its own")
    for name in (title, *names):
        if not NAME.fullmatch(name):
            raise UsageError(f"prompt pack {path}: {name!r} is no name (letters, digits, spaces, dots and dashes are)")
    return title, personas, examples


def _sure(entry: dict[str, Any]) -> int | None:
    value = entry.get("confidence")
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 10):
        raise TypeError("an example's confidence is a whole number from 0 to 10")
    return value


def _read(path: Path, folder: Path) -> str:
    """A file of a pack. A pack may come from a stranger, so a link out of it is not followed."""
    if not path.resolve().is_relative_to(folder.resolve()) or (path.exists() and not path.is_file()):
        raise UsageError(f"prompt pack {folder}: {path.name} is not a file of its own")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"prompt pack {path}: {error}") from error


def _digest(folder: Path) -> str:
    texts = [_read(folder / "pack.toml", folder)]
    for name in TEMPLATES:
        own = (folder / name).exists() or (folder / name).is_symlink()
        texts.append(_read(folder / name, folder) if own else _read(BASE / name, BASE))
    return digest(texts)


SAMPLE = "Is this a question that was made up to try the templates?"


def _try_out(pack: Pack) -> None:
    shown = [ShownReply("one", "a reply", label="high"), ShownReply("two", "a reply"), ShownReply("me", "a", own=True)]
    pack.confidence()
    samples = [Question(SAMPLE, ("yes", "no"))] + [Question(SAMPLE, kind=kind) for kind in ("math", "number", "text")]
    for question in samples:
        pack.preamble(pack.personas[0], question)
        if question.text not in pack.task(question):
            raise UsageError(f"prompt pack {pack.folder}: task.j2 leaves the question out")
        for replies in (shown, shown[:1], []):
            pack.debate(question, replies)
            pack.summary(question, "how it stood" if replies else None, replies, 0.5)
            pack.judge(question, replies)
        answer = "A" if question.options else "1"
        for right, reward in ((answer, 1.0), (answer, 0.0), (None, 0.5), (None, None)):
            held = (Held(answer, 2), Held("B", 1)) if right else ()
            pack.experience([ShownCase(question, "how it stood", held, 3, answer, None, right, reward)])
        pack.verify(question, answer)
        for reply in (ShownReply("one", "a reply", answer=answer), ShownReply("one", "a reply")):
            pack.mask(question, reply)
