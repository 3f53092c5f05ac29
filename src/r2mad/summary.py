"""h^(t), Eq. 4: where a debate stands after a round, in two abstract sentences that any similar debate could share.

A model writes them. What breaks the format, or names what only this problem has (numbers, formulas, option letters, an
answer), would tie the memory to the problem; it is replaced by a plain line that the tally gives, and flagged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from r2mad.answers import spoken, tally_async
from r2mad.errors import boundary
from r2mad.prompts import ShownReply
from r2mad.scene import Scene
from r2mad.types import AnswerKind, Failure, Message, Reply, Round, clean

UNUSABLE = "summary"
"""Kind of the failure that stands beside a plain line where no call failed."""
_FORM = re.compile(r"\s*[*_\"']*Dynamic[*_]*:[*_]*\s*(.+?)\s*[*_]*Insight[*_]*:[*_]*\s*(.+?)[\s*_\"']*", re.DOTALL)
_FORMULA = re.compile(r"[=+*^<>\\$√≤≥±×÷{}|∑∫≈]|[A-Za-z]\s?\(\s?[a-z]\s?\)")
# A lone capital names an option; "A" and "I" are words as well, so those need the company of one that says so.
_LETTER = re.compile(r"\(\s*[A-Z]\s*\)|\b[B-HJ-Z]\b(?!')|\b(?:options?|answers?|choices?)\s+[A-Z]\b")
_NAMED = 4
"""Letters from which an answer is looked for in a summary: shorter ones ("no", "two") are words of any sentence."""
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


async def summed_up(scene: Scene, rounds: Sequence[Round]) -> Round:
    """The last of `rounds` with its summary: one call to agent 0's model, or the plain line where that will not do."""
    last = rounds[-1]
    plain = await plain_line(rounds, scene.question.kind)
    prompt = scene.pack.summary(
        scene.question, rounds[-2].summary if len(rounds) > 1 else None, said(scene, last), last.consensus
    )
    if not prompt:
        return replace(last, summary=plain, plain=Failure(UNUSABLE, "the prompt pack has no summary prompt"))
    outcome = await boundary(scene.call("summary", 0, (Message("user", prompt),), last.index))
    if isinstance(outcome, Failure):
        return replace(last, summary=plain, plain=outcome)
    found, problem = read_summary(clean(spoken(outcome.text)), [reply.answer for reply in last.replies])
    if found is None:
        return replace(last, summary=plain, plain=Failure(UNUSABLE, problem or ""))
    return replace(last, summary=found)


def read_summary(text: str, answers: Sequence[str | None] = ()) -> tuple[str | None, str | None]:
    """(the summary in its two lines, None), or (None, why it cannot be used)."""
    form = _FORM.fullmatch(text)
    if form is None:
        return None, "it is not in the form asked for"
    sentences = [re.sub(r"\s+", " ", part).strip(' []"') for part in form.groups()]
    whole = " ".join(sentences)
    if any(unicodedata.category(sign)[0] == "N" for sign in whole):
        return None, "it names numbers"
    if _FORMULA.search(whole):
        return None, "it names formulas"
    if _LETTER.search(whole):
        return None, "it names option letters"
    for answer in answers:
        bare = (answer or "").strip()
        if len(bare) >= _NAMED and re.search(rf"(?<!\w){re.escape(bare)}(?!\w)", whole, re.IGNORECASE):
            return None, "it names an answer"
    return f"Dynamic: {sentences[0]}\nInsight: {sentences[1]}", None


def said(scene: Scene, one: Round) -> list[ShownReply]:
    """A round's replies as a summary's prompt shows them; what failed or said nothing has nothing to show."""
    return [
        ShownReply(scene.agents[reply.agent].persona.name, text, answer=reply.answer)
        for reply in one.replies
        if not reply.error and (text := spoken(reply.text).strip())
    ]


async def plain_line(rounds: Sequence[Round], kind: AnswerKind) -> str:
    """The same two sentences from the tally alone: how many positions, how they are held, who moved."""
    return plain_sentences(rounds[-1], await _moved(rounds[-2], rounds[-1], kind) if len(rounds) > 1 else None)


def plain_sentences(last: Round, moved: int | None) -> str:
    """The plain line of a round in which `moved` agents gave another answer than before; None for the first round."""
    held: dict[int, int] = {}
    for reply in last.replies:
        if reply.class_ is not None:
            held[reply.class_] = held.get(reply.class_, 0) + 1
    counts = sorted(held.values(), reverse=True)
    silent = len(last.replies) - sum(counts)
    if not counts:
        dynamic = "Nobody holds a position."
    elif len(counts) == 1:
        dynamic = f"There is one position, held by {_word(counts[0])} of {_word(len(last.replies))}."
    else:
        spread = ", ".join(_word(count) for count in counts)
        dynamic = f"There are {_word(len(counts))} positions, held by {spread} of {_word(len(last.replies))}."
    if silent and counts:
        dynamic = f"{dynamic[:-1]}, and {_word(silent)} took no position."
    if moved is None:
        insight = "Everyone has answered alone so far."
    elif not moved:
        insight = "Nobody moved, so the debate stands still."
    else:
        trend = "closing in on one position" if last.consensus > 0.5 else "still open"
        insight = f"{_word(moved).capitalize()} moved since the round before, and the debate is {trend}."
    return f"Dynamic: {dynamic}\nInsight: {insight}"


async def _moved(before: Round, now: Round, kind: AnswerKind) -> int:
    """How many agents gave another answer than in the round before."""
    was: dict[int, Reply] = {reply.agent: reply for reply in before.replies}
    answers = [was[reply.agent].answer for reply in now.replies] + [reply.answer for reply in now.replies]
    labels = (await tally_async(answers, kind)).labels
    half = len(now.replies)
    return sum(labels[index] != labels[half + index] for index in range(half))


def _word(count: int) -> str:
    """A number without digits: a summary with digits would be refused, were it a model's."""
    return _WORDS[count] if count < len(_WORDS) else "many"
