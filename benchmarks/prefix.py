"""How many prompt tokens the server need not read again, for `mad` of three rounds on the embedded model.

Ours lays a conversation out so that it only grows at its end. The baseline says the same things in the same run with
what is newest first: one turn that holds the new prompt, then the old turns, then the instructions and examples. The
server counts, in `usage.prompt_tokens_details.cached_tokens`. Run with `python benchmarks/prefix.py`; half a minute.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

from r2mad import engine
from r2mad.api import open_table
from r2mad.context import Messages, Turn
from r2mad.method import Method
from r2mad.methods import find_method
from r2mad.settings import Settings
from r2mad.study.demo import handful
from r2mad.types import Item, Message, Usage, total
from r2mad.verdict import Never


class NewestFirst:
    """The baseline's layout: the same words, with what varies most at the beginning."""

    own = False

    def layouts(self, preamble: Messages, turns: Sequence[Turn], prompt: str) -> Iterator[Messages]:
        """One user turn: the new prompt, the conversation from its end to its beginning, the preamble."""
        said = [text for asked, reply in reversed(turns) for text in (reply.text, asked)]
        yield (Message("user", "\n\n".join([prompt, *said, *(message.content for message in preamble)])),)


async def measure(model: str, items: Sequence[Item], method: Method) -> Usage:
    """Tokens of all later rounds of the debates; round 0 is laid out alike in both."""
    used: list[Usage] = []
    async with open_table(model, Settings(cache=":memory:", max_connections=1)) as table:
        for item in items:
            scene, sized = table.prepare(item.question, method, seed=1)
            record = await engine.run(scene, sized)
            used += [reply.usage for one in record.rounds[1:] for reply in one.replies]
    return total(used)


async def main() -> None:
    """Measure both and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="local/smollm2-135m")
    parser.add_argument("--questions", type=int, default=6)
    arguments = parser.parse_args()
    items = handful(arguments.questions)
    mad = replace(find_method("mad"), stop=Never())  # all rounds, so that both make the same calls
    read = {}
    for title, method in (("newest first", replace(mad, context=NewestFirst())), ("ours", mad)):
        used = await measure(arguments.model, items, method)
        read[title] = (used.prompt_tokens - used.cached_tokens) / used.prompt_tokens
        print(
            f"{title}: {used.prompt_tokens} prompt tokens in rounds 1 and 2 of {len(items)} debates, "
            f"{used.cached_tokens} still read ({used.cached_tokens / used.prompt_tokens:.0%}), "
            f"{used.prompt_tokens - used.cached_tokens} read again",
            flush=True,
        )
    print(f"Ours reads {read['ours'] / read['newest first']:.2f} of the share that the baseline reads.")


if __name__ == "__main__":
    asyncio.run(main())
