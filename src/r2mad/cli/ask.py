"""`r2mad ask`: one question, any method, the debate shown live."""

from __future__ import annotations

import asyncio
import secrets
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from r2mad.cli.common import DONE, INCOMPLETE, INTERRUPTED, LogLevel, complain, fetch_local, log_to_stderr, print_bytes
from r2mad.errors import StoreError, UsageError
from r2mad.settings import Settings, home_expanded, log_folder

if TYPE_CHECKING:
    from r2mad.api import Table
    from r2mad.method import Method
    from r2mad.scene import Scene
    from r2mad.types import DebateRecord, Question


def _lines(kind: object, value: str, *, delimiter: str | None = None) -> list[str]:
    """A list flag's variable: one entry a line, since options have spaces in them."""
    return value.splitlines()


LIST = Parameter(show_default=False, env_var_split=_lines)
LONGEST_QUESTION = 4_000_000
"""Characters; a million tokens, which no model reads."""


@dataclass(frozen=True)
class AskOptions:
    """What `ask` itself can be told."""

    option: Annotated[list[str], LIST] = field(default_factory=list)
    """An option of a choice question; give it once for each option, in order."""
    kind: Literal["choice", "math", "number", "text"] = "text"
    """How answers are read and compared; with options it is `choice`."""
    method: str | None = None
    """The debate method; see `r2mad methods`. By default mad, and with --memory r2mad."""
    model: Annotated[list[str], LIST] = field(default_factory=list)
    """`provider/name`, for example openai/gpt-4o-mini. Give several and the agents take them in turn."""
    train: str | None = None
    """Data set of labelled items by which mad-m2-auto chooses its mask, such as starter:train."""
    train_limit: int = 20
    """How many of its items: 2 calls an agent and item, which later debates find in the cache."""
    calibration: Path | None = None
    """A file that `r2mad metrics --calibrate` wrote: the confidence is then the chance of being right."""
    abstain: float | None = None
    """Give no answer where the confidence is below this, from 0 to 1."""
    seed: int | None = None
    """Repeats a debate; a fresh seed is drawn, and recorded, if not given."""
    json: bool = False
    """Print the debate's record as one line of JSON on stdout, and nothing else there."""
    display: Literal["rich", "plain", "none"] | None = None
    """How the debate is shown on stderr while it runs: rich on a terminal, plain elsewhere, none with --json."""
    log_dir: Path | None = None
    """Folder for records; every debate is kept in its `ask/debates.jsonl`. A folder of your own user if not given."""
    log_level: LogLevel = "warning"
    """Least urgent events to print on stderr."""


def ask(
    question: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    options: Annotated[AskOptions, Parameter(name="*")] = AskOptions(),
    settings: Annotated[Settings, Parameter(name="*")] = Settings(),  # noqa: B008  (frozen)
) -> int:
    """Let agents debate one question and print the group's answer.

    The debate is shown on stderr as it goes: who says what, how far they agree, who changed. The answer is on stdout.

        r2mad ask "Is glass a liquid?" --option Yes --option No --model openai/gpt-4o-mini
        r2mad ask "…" --model openai/gpt-4o-mini --memory sqlite:economics.db
        echo "What is 17 * 23?" | r2mad ask --kind number --method sc-3 --model openai/NAME --base-url http://HOST/v1

    Args:
        question: The question; read from standard input if it is left out or `-`.
    """
    log_to_stderr(options.log_level)
    if options.abstain is not None and not 0.0 <= options.abstain <= 1.0:
        raise UsageError(f"--abstain {options.abstain} is out of range: a confidence lies between 0 and 1")
    if options.train_limit < 1:
        raise UsageError(f"--train-limit {options.train_limit} is out of range")
    asked = _read_question(question, options)
    if not options.model:
        raise UsageError(
            "no model given: --model openai/NAME (and --base-url for a server of your own), or R2MAD_MODEL"
        )
    fetch_local(options.model)
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    try:
        record, kept = asyncio.run(_hold(asked, replace(options, seed=seed), settings))
    except KeyboardInterrupt:
        complain(f"interrupted; the same command with --seed {seed} asks only what is missing")
        return INTERRUPTED
    return _report(record, kept, options)


def _report(record: DebateRecord, kept: Path | StoreError, options: AskOptions) -> int:
    """Print what came out, and choose the exit code."""
    from r2mad.cli.show import show_answer
    from r2mad.study.records import dump

    if options.json:
        print_bytes(dump(record) + b"\n")
    elif record.stopped != "failed":
        show_answer(record, kept if isinstance(kept, Path) else None)
    if record.stopped == "failed":
        _, agent, why = record.failures[-1]
        complain(f"every agent failed; {record.agents[agent].name}: {why.message}")
    if isinstance(kept, StoreError):
        complain(f"the debate is not on record: {kept}")
    return INCOMPLETE if record.stopped in ("failed", "partial") or isinstance(kept, StoreError) else DONE


def _read_question(given: str | None, options: AskOptions) -> Question:
    from r2mad.types import Question

    if given in (None, "-"):
        if sys.stdin is None or (given is None and sys.stdin.isatty()):
            raise UsageError('no question: r2mad ask "…", or send it on standard input')
        given = sys.stdin.buffer.read(LONGEST_QUESTION + 1).decode(errors="replace")
    if len(given or "") > LONGEST_QUESTION:
        raise UsageError(f"the question is longer than {LONGEST_QUESTION} characters")
    return Question((given or "").strip(), tuple(options.option), options.kind)


def _warn_of_memory(table: Table, scene: Scene, method: Method) -> None:
    """Say what a user should know before the memory is relied on."""
    if table.memory is None:
        return
    if scene.memory is None:
        complain(f"{method.name} reads no memory; --memory is of use to r2mad and its kin")
        return
    if scene.memory.snapshot.knows(scene.question):
        complain("this very question is in the memory, with what turned out right")
    names = [agent.persona.name for agent in scene.agents]
    strangers = [name for name in names if not scene.memory.snapshot.bank(name)]
    if strangers and len(strangers) < len(names):
        complain(f"the memory has no cases of {', '.join(strangers)}; the others remember")
    elif strangers:
        known = ", ".join(sorted({one.name for one in table.store.roster()})) if table.store else ""
        who = f"it knows {known}" if known else "it is empty"
        complain(f"the memory has no cases of these agents ({', '.join(names)}): {who}; the debate runs without")


async def _chosen(table: Table, question: Question, options: AskOptions) -> Method:
    """The method, with its mask decided where it decides for itself."""
    from r2mad.methods import find_method

    method = find_method(options.method or ("r2mad" if table.memory else "mad"))
    if not method.needs_choice:
        if options.train:
            complain(f"{method.name} chooses nothing, so --train is not used")
        return method
    if not options.train:
        return method  # refused where it is prepared, with what to do
    from r2mad.experience import leak_key
    from r2mad.study.datasets import load
    from r2mad.study.masking import choose_mask, training, with_choice
    from r2mad.types import MaskChoice

    table.prepare(question, with_choice(method, MaskChoice("subjective", "")), seed=0)  # a bad setting costs no call
    asked = leak_key(question)  # whoever asks a training question should not have its answer choose for it
    items = [item for item in load(options.train) if leak_key(item.question) != asked]
    items = training(items, options.train_limit)

    def told(done: int, count: int) -> None:
        if done == count or done % 5 == 0:
            complain(f"choosing a mask: {done} of {count} training items")

    choice = await choose_mask(table, items, None if options.json or options.display == "none" else told)
    return with_choice(method, choice)


async def _hold(question: Question, options: AskOptions, settings: Settings) -> tuple[DebateRecord, Path | StoreError]:
    """Hold the debate; it is on disk before it is announced, or comes with the reason why it is not."""
    from r2mad import engine
    from r2mad.api import open_table
    from r2mad.cli.abstain import load_calibration, weighed
    from r2mad.cli.show import LiveView
    from r2mad.study.records import DEBATES, Writer, ensure_writable
    from r2mad.types import DebateRecord

    path = (home_expanded(options.log_dir) if options.log_dir else log_folder()) / "ask" / DEBATES
    display = options.display or ("none" if options.json else "rich" if sys.stderr.isatty() else "plain")
    view = LiveView(display)
    models = options.model[0] if len(options.model) == 1 else options.model
    async with open_table(models, settings) as table:
        ensure_writable(path)  # a folder that cannot be written should not cost a debate
        calibrator = load_calibration(options.calibration)
        chosen = await _chosen(table, question, options)
        scene, method = table.prepare(question, chosen, seed=options.seed, observe=view.observe)
        _warn_of_memory(table, scene, method)
        await table.equip(method)
        scene = replace(scene, embedder=table.embedder)
        with view.watching(scene, method):
            record = await engine.run(scene, method)
        record = weighed(record, calibrator, options.abstain)
    try:
        async with await Writer[DebateRecord].when_free(path) as writer:
            await writer.append(record)
    except StoreError as error:
        return record, error  # an answer that was paid for is worth having, record or not
    return record, path
