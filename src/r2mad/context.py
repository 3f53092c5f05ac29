"""What an agent sees of what came before, laid out so that a server's prefix cache hits.

A server can skip reading the part of a prompt that it has read before. So a conversation only ever grows at its end:
the preamble (persona, examples), the question and old turns stand, byte for byte, where they stood in the round before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from r2mad.answers import spoken
from r2mad.types import Message, Reply

Messages = tuple[Message, ...]
Turn = tuple[str, Reply]
"""One exchange of an agent's conversation: the prompt it was given, and its reply."""


class Context(Protocol):
    """Lays out one agent's messages."""

    @property
    def own(self) -> bool:
        """Whether the agent's own last reply is shown among its peers' (and so may be masked)."""
        ...

    def layouts(self, preamble: Messages, turns: Sequence[Turn], prompt: str) -> Iterator[Messages]:
        """The messages for the next reply: everything first, then with ever more of the oldest exchanges left out,
        for a model whose context is too short. At least one."""
        ...


def merge_turns(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Join neighbours of one role: a failed reply leaves two user turns in a row, which some templates refuse."""
    merged: list[Message] = []
    for message in messages:
        if merged and merged[-1].role == message.role:
            merged[-1] = Message(message.role, f"{merged[-1].content}\n\n{message.content}")
        else:
            merged.append(message)
    return tuple(merged)


@dataclass(frozen=True)
class History:
    """The agent's own conversation goes on; its last reply is in it, so only its peers' are shown.

    When the conversation outgrows the model's context, the oldest exchanges go first: the preamble, the question and
    the new turn always stay.
    """

    @property
    def own(self) -> bool:
        """Not among its peers' replies: it stands in the conversation."""
        return False

    def layouts(self, preamble: Messages, turns: Sequence[Turn], prompt: str) -> Iterator[Messages]:
        """Preamble, question, the exchanges that are kept, the new turn; last of all without any exchange."""
        before: Messages = ()
        for drop in range(len(turns) + 1):
            layout = self._layout(preamble, turns, prompt, drop)
            if layout != before:  # dropping an exchange whose reply had failed may change nothing
                yield layout
            before = layout

    def _layout(self, preamble: Messages, turns: Sequence[Turn], prompt: str, drop: int) -> Messages:
        laid = [*preamble, Message("user", turns[0][0])]  # the task prompt stays; its reply is the first thing to go
        for index, (asked, reply) in enumerate(turns[drop:], start=drop):
            if index > drop:  # what led to the oldest reply kept is the task prompt, or was dropped
                laid.append(Message("user", asked))
            said = "" if reply.error else spoken(reply.text).strip()
            if said:  # servers refuse an empty turn; a reply can be nothing but reasoning that was cut off
                laid.append(Message("assistant", said))
        laid.append(Message("user", prompt))
        return merge_turns(laid)


@dataclass(frozen=True)
class Fresh:
    """One turn only: the debate prompt with the question and the replies that were kept, the agent's own among them."""

    @property
    def own(self) -> bool:
        """Among its peers' replies: there is no conversation that it could stand in."""
        return True

    def layouts(self, preamble: Messages, turns: Sequence[Turn], prompt: str) -> Iterator[Messages]:
        """Preamble and the new turn; there is nothing to leave out."""
        yield (*preamble, Message("user", prompt))
