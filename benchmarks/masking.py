"""What masks cost in tokens: `mad-m2-s` and `mad-m2-o` against `mad` in the same run, beside the formula of the paper.

    python benchmarks/masking.py [--questions 40]

The fake server counts words as tokens. Three agents, all rounds held; replies of 100, 300 and 600 tokens. The paper
("Multi-Agent Debate with Memory Masking") bounds the subjective mask's tokens by

    N·R·T_q + 2·N·ΣΣT_o(r−1, i) + ΣΣT_o(r, i)

for N agents, R rounds, T_q tokens of a question (here the whole opening prompt) and T_o of a reply; every reply is read
twice, by whoever judges it and by the agents. Without the factor 2 it is `mad`, and with one reply read for all of them
it is the objective mask. The paper measured ×1.2 to 1.4 (subjective) and ×0.6 to 0.7 (objective) with 3 agents and 2
rounds.

Returns 1 if the subjective mask takes more than its bound, or the objective one more than `mad`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import replace

from r2mad.api import Table, open_table
from r2mad.methods import METHODS
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.settings import Settings
from r2mad.types import DebateRecord, Question, total
from r2mad.verdict import Never

NAMES = ("mad", "mad-m2-s", "mad-m2-s-strict", "mad-m2-o")
OPTIONS = ("it rises", "it falls", "it stays as it is", "it cannot be told")


async def _hold(table: Table, name: str, rounds: int, questions: int) -> list[DebateRecord]:
    method = replace(METHODS[name], stop=Never(), rounds=rounds)
    asked = [Question(f"Case {n}: what happens to the price if demand grows?", OPTIONS) for n in range(questions)]
    return list(await asyncio.gather(*(table.hold(question, method, seed=1) for question in asked)))


def _tokens(records: list[DebateRecord]) -> float:
    return sum(total(record.usage.values()).total_tokens for record in records) / len(records)


def _formula(record: DebateRecord, reads: float) -> float:
    """Tokens by the paper's formula, if each reply but the last round's is read `reads`·N times."""
    replies = [[reply.usage.completion_tokens for reply in one.replies] for one in record.rounds]
    asked = max(reply.usage.prompt_tokens for reply in record.rounds[0].replies)
    agents = len(record.agents)
    read = sum(sum(one) for one in replies[:-1])
    return agents * len(replies) * asked + reads * agents * read + sum(sum(one) for one in replies)


def _hidden(records: list[DebateRecord]) -> float:
    """Share of replies that a mask took out."""
    peers = [peer for record in records for one in record.rounds for view in one.views for peer in view.peers]
    return sum(not peer.shown for peer in peers) / len(peers)


async def measure(questions: int) -> int:
    """Print the table, and return how many limits were passed."""
    over = 0
    print("rounds  reply  method            tokens a debate   ÷ mad   by the formula ÷ mad   replies hidden")
    for rounds in (2, 3):
        for length in (100, 300, 600):
            async with FakeServer(FakeSettings(reply_tokens=length, bias=0, adopt=0, no_bodies=True)) as server:
                settings = Settings(base_url=server.base_url, cache=":memory:")
                async with open_table("openai/fake", settings) as table:
                    held = {name: await _hold(table, name, rounds, questions) for name in NAMES}
            base, plain = _tokens(held["mad"]), sum(_formula(r, 1) for r in held["mad"]) / questions
            for name in NAMES:
                reads = {"mad": 1.0, "mad-m2-o": 1 / 3}.get(name, 2.0)
                formula = sum(_formula(record, reads) for record in held[name]) / questions
                tokens = _tokens(held[name])
                hidden = f"{_hidden(held[name]):14.0%}" if name != "mad" else ""
                print(
                    f"{rounds:6}  {length:5}  {name:16} {tokens:16,.0f}   {tokens / base:5.2f}"
                    f"   {formula / plain:20.2f}   {hidden}"
                )
                over += tokens > (base if name == "mad-m2-o" else max(formula, base))
    return over


def main() -> int:
    """Measure, print, and return 1 if a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=40)
    over = asyncio.run(measure(parser.parse_args().questions))
    print("ok" if not over else f"{over} OVER")
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
