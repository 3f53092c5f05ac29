"""A debate for a person to read: live on stderr while it runs, the answer on stdout when it is over."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.status import Status
from rich.text import Text

from r2mad.answers import spoken
from r2mad.cli.common import printable
from r2mad.method import Method
from r2mad.protocols import Snapshot
from r2mad.scene import Scene
from r2mad.types import DebateRecord, Question, Reply, Retrieved, Round, total

EXCERPT = 120
"""Characters of a reply's beginning, and of its end, that the live view shows; the record has all of it."""


COLOURS = ("cyan", "magenta", "yellow", "green", "blue")
"""One for each agent in turn, so that the eye can follow one through the rounds."""


class _Screen(Console):
    """A console whose reader may go away: what is shown is lost then, and nothing else is."""

    def on_broken_pipe(self) -> None:
        """Raise it instead of ending the program, as rich would."""
        raise BrokenPipeError


class LiveView:
    """Shows a debate round by round: who says what, how far they agree, who changed."""

    def __init__(self, display: str) -> None:
        self._display = display
        self._console = _Screen(
            file=sys.stderr,
            force_terminal=None if display == "rich" else False,
            highlight=False,
            soft_wrap=display != "rich",
        )
        self._scene: Scene | None = None
        self._status: Status | None = None
        self._previous: Round | None = None

    @contextmanager
    def watching(self, scene: Scene, method: Method) -> Iterator[None]:
        """Show what is told to `observe` in here."""
        self._scene = scene
        self._say(printable(scene.question.text), "bold")
        for letter, option in scene.question.lettered:
            self._say(f"  ({letter}) {printable(option)}")
        self._say(f"{method.name}: {method.summary}")
        self._say(f"{_count(len(scene.agents), 'agent')}, {_count(method.rounds, 'round')} at most, seed {scene.seed}")
        if self._display != "rich":
            yield
            return
        with self._console.status("waiting for the agents …") as self._status:
            yield

    def observe(self, index: int, what: Reply | Round) -> None:
        """Take one event of the debate; see `r2mad.protocols.Observer`."""
        if isinstance(what, Reply):
            self._show_reply(index, what)
        else:
            self._show_round(what)

    def _show_reply(self, index: int, reply: Reply) -> None:
        assert self._scene is not None
        who = self._scene.agents[reply.agent].persona.name
        name = f"{who} #{reply.sample + 1}" if reply.sample else who
        if reply.error:
            self._say(f"  round {index}  {name}: failed: {printable(reply.error.message)}", "red")
            return
        cut = ", cut off" if reply.finish_reason == "length" else ""
        cached = ", from cache" if reply.cached else ""
        answer = "no answer" if reply.answer is None else _in_full(self._scene.question, reply.answer)
        size = f"{reply.usage.completion_tokens} tokens, {reply.seconds:.1f} s{cut}{cached}"
        self._say(f"  round {index}  {name}: {answer}  ({size})", COLOURS[reply.agent % len(COLOURS)])
        said = printable(spoken(reply.text))
        if len(said) > 2 * EXCERPT + 3:
            start, end = said[:EXCERPT].rsplit(" ", 1)[0], said[-EXCERPT:].split(" ", 1)[-1]
            said = f"{start} … {end}"
        self._say(f"    {said}", "dim")

    def _show_round(self, settled: Round) -> None:
        agree = round(settled.consensus * len(settled.replies))
        lines = [f"round {settled.index} over: {agree} of {len(settled.replies)} agree"]
        if self._previous is not None:
            lines += _changes(self._scene, self._previous, settled)
        for line in view_lines(settled, [agent.persona.name for agent in self._scene.agents] if self._scene else []):
            self._say(f"  {line}", "dim")
        self._say("; ".join(lines), "bold")
        self._previous = settled

    def _say(self, line: str, style: str = "") -> None:
        if self._display == "none":
            return
        try:
            indent = len(line) - len(line.lstrip())
            text = Text(line.strip(), style=style)
            self._console.print(Padding(text, (0, 0, 0, indent)) if self._display == "rich" else Text(line, style))
        except (OSError, ValueError):  # nobody reads it any more; the debate goes on
            self._display = "none"


def view_lines(settled: Round, names: list[str]) -> list[str]:
    """What each agent remembered before it replied in a round, and how it weighed its peers; a line an agent."""
    lines = []
    for view in settled.views:
        parts = []
        if view.forgot:
            parts.append(f"could not remember: {printable(view.forgot.message)}")
        elif view.retrieved:
            cases = ", ".join(f"{case.similarity:.2f} {_fared(case)}" for case in view.retrieved)
            parts.append(f"was reminded of {_count(len(view.retrieved), 'case')} ({cases})")
        weighed = [
            f"{names[peer.agent]} {peer.label or 'unlabelled'} ({peer.confidence:.2f})"
            for peer in view.peers
            if peer.confidence is not None
        ]
        if weighed:
            parts.append(f"confidence in {', '.join(weighed)}")
        if parts:
            lines.append(f"{names[view.agent]} {'; '.join(parts)}")
    return [*_choices(settled, names), *lines]


def _choices(settled: Round, names: list[str]) -> list[str]:
    """What was kept of an opening's pool, what a mask made of the round before, how far memory trusts the answer."""
    lines = []
    if settled.kept:
        kept = ", ".join(f"{place + 1}" for place in settled.kept)
        lines.append(f"of {len(settled.candidates)} replies numbers {kept} go on")
    judged = {peer.agent: peer for view in settled.views for peer in view.peers if peer.verdict not in (None, "error")}
    if judged:
        said = [
            f"{names[peer.agent]} {peer.verdict}{'' if peer.shown else ', hidden' if peer.verdict != 'masked' else ''}"
            for _, peer in sorted(judged.items())
        ]
        lines.append(f"mask on round {settled.index - 1}: {'; '.join(said)}")
    if settled.trust is not None:
        lines.append(f"memory trusts the answer {settled.trust:.2f}")
    return lines


def _fared(case: Retrieved) -> str:
    return {None: "not known", 1.0: "right", 0.0: "wrong"}.get(case.reward, f"rated {case.reward}")


def _changes(scene: Scene | None, before: Round, after: Round) -> list[str]:
    assert scene is not None
    held = {reply.agent: reply.answer for reply in before.replies}
    changed = [
        f"{scene.agents[reply.agent].persona.name} changed from "
        f"{printable(held.get(reply.agent) or 'none')} to {printable(reply.answer or 'none')}"
        for reply in after.replies
        if reply.answer != held.get(reply.agent)
    ]
    return changed or ["nobody changed"]


def show_answer(record: DebateRecord, kept: Path | None) -> None:
    """Print the group's answer, how it came about, what it took, and where the record is, on stdout."""
    console = _Screen(highlight=False, soft_wrap=True)
    answer = "no answer" if record.answer is None else _in_full(record.question, record.answer)
    if record.abstained:
        answer = f"withheld, for the group is not sure enough (it leans to {answer})"
    console.print(
        Text.assemble(
            ("Answer: ", "bold"), (answer, "bold green" if record.answer and not record.abstained else "bold yellow")
        )
    )
    votes = ", ".join(f"{printable(held)} {number:g}" for held, number in record.votes.items()) or "none"
    silent = sum(reply.answer is None for reply in record.rounds[-1].replies)
    lines = [f"Votes: {votes}" + (f", without an answer {silent}" if silent else "")]
    if record.tie:
        lines.append(f"Tie between {', '.join(map(printable, record.tied))}, broken by the seed")
    if record.confidence is not None:
        lines.append(f"Confidence: {record.confidence:.2f} (the answer's share of {_shared(record)})")
    if record.calibrated is not None:
        lines.append(f"Chance of being right: {record.calibrated:.2f} (by the calibration)")
    lines += [f"Mask: {record.choice.chosen}: {record.choice.reason}"] if record.choice else []
    if any(note.purpose == "vote" and note.verdict is not None for note in record.judgements):
        lines.append("Judge: wrote the answer from the last round's replies")
    lines.append(f"Ended: {_ending(record)}")
    if record.degraded:
        hurt = [f"round {index}, {record.agents[agent].name}: {why.kind}" for index, agent, why in record.failures]
        hurt += [f"{note.purpose} of round {note.round}: {note.error.kind}" for note in record.judgements if note.error]
        lost = sum(reply.error is not None for reply in record.rounds[0].candidates)
        hurt += [f"{lost} of {len(record.rounds[0].candidates)} replies to open with"] if lost else []
        failures = "; ".join(hurt) or "a summary or a vector could not be had"
        lines.append(f"Degraded: {failures}")
    if record.memory:
        none = " (none, so it ran as it would without a memory)" if not record.memory.cases else ""
        lines.append(f"Memory: {record.memory.url}, {_count(record.memory.cases, 'case')} of these agents{none}")
    trimmed = sum(view.trimmed for one in record.rounds for view in one.views)
    if trimmed:
        lines.append(f"Context too short: {_count(trimmed, 'old exchange')} left out")
    used = total(record.usage.values())
    tokens = f"{used.prompt_tokens} prompt + {used.completion_tokens} completion tokens"
    lines.append(f"Took: {_count(sum(record.calls.values()), 'call')}, {tokens}, {record.seconds:.1f} s")
    lines.append(f"Record: {record.id}{f' in {kept}' if kept else ''}, seed {record.seed}")
    for line in lines:
        console.print(Text(line))


def _shared(record: DebateRecord) -> str:
    return (
        "the confidence stated in the last round" if "Weighted()" in record.composition else "the last round's replies"
    )


def _in_full(question: Question, answer: str) -> str:
    if answer in question.letters:
        return f"{answer}  {printable(question.options[question.letters.index(answer)])}"
    return printable(answer)


def _ending(record: DebateRecord) -> str:
    rounds = _count(len(record.rounds), "round")
    return {
        "unanimity": f"all agreed after {rounds}",
        "rounds": f"after {rounds}",
        "settled": "the opening agreed enough, so no debate was held",
        "doubted": f"after {rounds}: all agreed before, but memory doubted it",
        "partial": f"cut short after {rounds}: --max-calls allows no further round",
        "failed": f"failed after {rounds}: no agent could reply",
    }.get(record.stopped, f"{record.stopped}, after {rounds}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _case_lines(record: DebateRecord, one: Round, memory: Snapshot) -> list[str]:
    """The cases that were retrieved before a round, each told once."""
    found: dict[str, str] = {}
    for view in one.views:
        bank = memory.bank(record.agents[view.agent].name)
        names = [f"{int(id):016x}" for id in bank.ids] if bank else []
        for case in view.retrieved:
            if bank and case.case in names and case.case not in found:
                told = bank.case(names.index(case.case))
                right = told.debate.outcome.answer
                answer = "not known" if right is None else _in_full(told.debate.record.question, right)
                found[case.case] = f"case {case.case}: {printable(told.debate.record.question.text)} Right: {answer}"
    return list(found.values())


def show_transcript(record: DebateRecord, memory: Snapshot | None = None) -> None:
    """Print every reply of a debate in full, round by round, on stdout, and what was remembered before each."""
    console = _Screen(highlight=False, soft_wrap=True)
    for letter, option in record.question.lettered:
        console.print(Text(f"({letter}) {printable(option)}"))
    for one in record.rounds:
        console.print(Text(f"Round {one.index}: {one.consensus:.0%} hold the most popular answer", style="bold"))
        for line in view_lines(one, [agent.name for agent in record.agents]):
            console.print(Text(f"  {line}", style="magenta"))
        for line in _case_lines(record, one, memory) if memory else []:
            console.print(Text(f"    {line}", style="dim"))
        for reply in one.replies:
            who = record.agents[reply.agent].name
            answer = "failed" if reply.error else "no answer" if reply.answer is None else printable(reply.answer)
            console.print(Text(f"  {who}: {answer}", style="cyan"))
            said = reply.error.message if reply.error else spoken(reply.text)
            for line in said.strip().splitlines():
                console.print(Text(f"    {printable(line)}", style="dim"))
        if one.summary:
            whose = " (from the tally)" if one.plain else ""
            console.print(Text(f"  summed up{whose}: {printable(one.summary)}", style="italic"))
