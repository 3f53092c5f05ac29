"""The table of the design's §2 as code: one line a method. A new method is a new line and, if need be, a new part."""

from __future__ import annotations

import difflib
import re

from r2mad.errors import UnknownNameError
from r2mad.method import Method
from r2mad.opening import Independent

_DEBATE = "Du et al., Improving Factuality and Reasoning in Language Models through Multiagent Debate (ICML 2024)"
_SAMPLES = "Wang et al., Self-Consistency Improves Chain of Thought Reasoning in Language Models (ICLR 2023)"
_THOUGHT = "Wei et al., Chain-of-Thought Prompting Elicits Reasoning in Large Language Models (NeurIPS 2022)"
_DEMYSTIFY = "Demystifying Multi-Agent Debate: The Role of Confidence and Diversity"


def _sc(name: str, paths: int) -> Method:
    opening = Independent(samples=paths)
    text = f"self-consistency: one agent sampled {paths} times, the most frequent answer"
    return Method(name, text, _SAMPLES, agents=1, rounds=1, opening=opening, adjustable=())


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("cot", "one agent answers once, step by step", _THOUGHT, agents=1, rounds=1, adjustable=()),
        _sc("sc", 9),
        _sc("sc-3", 3),
        _sc("sc-6", 6),
        _sc("sc-9", 9),
        Method("vote", "mad's round 0 and nothing more: a plain vote", _DEMYSTIFY, rounds=1, adjustable=("agents",)),
        Method("mad", "agents answer alone, read each other, and answer again", _DEBATE),
    )
}


def find_method(name: str) -> Method:
    """The method of that name. `sc-m` exists for every m from 1 to 999, listed or not.

    Raises:
        UnknownNameError: there is none; the message names the nearest.
    """
    if found := METHODS.get(name):
        return found
    if paths := re.fullmatch(r"sc-([1-9]\d{0,2})", name):
        return _sc(name, int(paths[1]))
    near = difflib.get_close_matches(name, METHODS, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise UnknownNameError(f"no method {name!r}.{hint} There are: {', '.join(METHODS)}")
