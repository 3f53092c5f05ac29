"""The table of methods as code: one line a method. A new method is a new line and, if need be, a new part."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace

from r2mad.errors import UnknownNameError
from r2mad.method import Method
from r2mad.opening import Independent, Reminded
from r2mad.retrieval import POLICIES, Retrieval
from r2mad.skew import Everyone, MemoryConfidence

_DEBATE = "Du et al., Improving Factuality and Reasoning in Language Models through Multiagent Debate (ICML 2024)"
_SAMPLES = "Wang et al., Self-Consistency Improves Chain of Thought Reasoning in Language Models (ICLR 2023)"
_THOUGHT = "Wei et al., Chain-of-Thought Prompting Elicits Reasoning in Large Language Models (NeurIPS 2022)"
_REMEMBER = "Remember and Reweight: Enhancing Multi-Agent Debate with Experience Memory and Confidence Estimation"
_DEMYSTIFY = "Demystifying Multi-Agent Debate: The Role of Confidence and Diversity"


def _sc(name: str, paths: int) -> Method:
    opening = Independent(samples=paths)
    text = f"self-consistency: one agent sampled {paths} times, the most frequent answer"
    return Method(name, text, _SAMPLES, agents=1, rounds=1, opening=opening, adjustable=())


def _r2mad(name: str, text: str, retrieval: Retrieval, *labels: MemoryConfidence) -> Method:
    return Method(name, text, _REMEMBER, retrieval=retrieval, skew=(Everyone(), *labels))


def _policy(policy: str) -> Method:
    text = f"r2mad with cases chosen by {policy}"
    return _r2mad(f"r2mad-{policy}", text, Retrieval(policy), MemoryConfidence())


_ABLATIONS = [policy for policy in POLICIES if policy not in ("debate-state", "nearest")]

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
        Method(
            "icl-cot",
            "one agent answers once, shown cases like the question",
            _REMEMBER,
            agents=1,
            rounds=1,
            opening=Reminded(),
            adjustable=(),
        ),
        _r2mad("r2mad", "mad with experience memory, and peers weighed by it", Retrieval(), MemoryConfidence()),
        _r2mad("r2mad-no-confidence", "r2mad without confidence labels", Retrieval()),
        _r2mad(
            "r2mad-no-memory", "r2mad with labels alone: no case is shown", Retrieval(shown=False), MemoryConfidence()
        ),
        *(_policy(policy) for policy in _ABLATIONS),
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


def official(method: Method) -> Method:
    """The method as the authors' published scripts run it, where they leave the paper (`compat="official"`).

    K is 1; candidates are rewarded by their own round and weigh peers all together; a state has no consensus; without
    memory the nearest cases weigh. Never their use of the right answers in the vote.
    """
    if isinstance(method.opening, Reminded):
        method = replace(method, opening=Reminded(replace(method.opening.retrieval, k=1)))
    found = method.retrieval
    if found is None:
        return method
    policy = found.policy if found.shown else "nearest"
    skew = tuple(replace(part, form="official") if isinstance(part, MemoryConfidence) else part for part in method.skew)
    return replace(method, retrieval=replace(found, policy=policy, k=1, form="official"), skew=skew)
