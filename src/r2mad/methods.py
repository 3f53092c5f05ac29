"""The table of methods as code: one line a method. A new method is a new line and, if need be, a new part."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from typing import Any

from r2mad.compose import compose, load_method
from r2mad.context import Fresh
from r2mad.diverse import Diverse
from r2mad.elicit import VerbalConfidence
from r2mad.errors import UnknownNameError
from r2mad.mask import AutoMask, ObjectiveMask, SubjectiveMask
from r2mad.method import Method
from r2mad.opening import Independent, Reminded
from r2mad.retrieval import POLICIES, Retrieval
from r2mad.skew import Everyone, Filter, MemoryConfidence, Ring, ShowVerbalConfidence
from r2mad.verdict import Judge, Selective, Stop, UnanimityUnlessDoubted, Weighted

_DEBATE = "Du et al., Improving Factuality and Reasoning in Language Models through Multiagent Debate (ICML 2024)"
_SAMPLES = "Wang et al., Self-Consistency Improves Chain of Thought Reasoning in Language Models (ICLR 2023)"
_THOUGHT = "Wei et al., Chain-of-Thought Prompting Elicits Reasoning in Large Language Models (NeurIPS 2022)"
_REMEMBER = "Remember and Reweight: Enhancing Multi-Agent Debate with Experience Memory and Confidence Estimation"
_DEMYSTIFY = "Demystifying Multi-Agent Debate: The Role of Confidence and Diversity"
_MASK = "Multi-Agent Debate with Memory Masking (ICLR 2026)"
_SPARSE = "Li et al., Improving Multi-Agent Debate with Sparse Communication Topology (EMNLP 2024)"
_OURS = "ours"


def _sc(name: str, paths: int) -> Method:
    opening = Independent(samples=paths)
    text = f"self-consistency: one agent sampled {paths} times, the most frequent answer"
    return Method(name, text, _SAMPLES, agents=1, rounds=1, opening=opening, adjustable=())


def _r2mad(name: str, text: str, retrieval: Retrieval, *labels: MemoryConfidence) -> Method:
    return Method(name, text, _REMEMBER, retrieval=retrieval, skew=(Everyone(), *labels))


def _masked(name: str, text: str, mask: Filter, source: str = _MASK) -> Method:
    return Method(name, text, source, skew=(Everyone(), mask), context=Fresh())


def _confident(name: str, text: str, **parts: Any) -> Method:
    return Method(name, text, _DEMYSTIFY, elicit=VerbalConfidence(), skew=(Everyone(), ShowVerbalConfidence()), **parts)


def _doubting(name: str, text: str, stop: Stop) -> Method:
    return replace(_r2mad(name, text, Retrieval(), MemoryConfidence()), source=_OURS, stop=stop)


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
        _masked("mad-m2-s", "mad that shows no reply which the model itself calls wrong", SubjectiveMask()),
        _masked("mad-m2-s-strict", "mad that shows only replies which the model calls right", SubjectiveMask(True)),
        _masked("mad-m2-o", "mad that shows only the reply of lowest perplexity", ObjectiveMask()),
        _masked("mad-m2-auto", "mad-m2-s or mad-m2-o, whichever mask tells right from wrong better", AutoMask(), _OURS),
        _confident("mad-confident", "mad in which agents say how sure they are, from 0 to 10"),
        _confident("mad-confident-weighted", "mad-confident with votes weighed by what was said", vote=Weighted()),
        Method("mad-diverse", "mad that opens with the most varied of 10 replies", _DEMYSTIFY, opening=Diverse()),
        _confident("mad-diverse-confident", "mad-diverse and mad-confident together", opening=Diverse()),
        Method(
            "mad-diverse-random", "mad that opens with some of 10 replies", _DEMYSTIFY, opening=Diverse(lean="random")
        ),
        Method(
            "mad-low-diversity",
            "mad that opens with the least varied of 10 replies",
            _DEMYSTIFY,
            opening=Diverse(lean="low-diversity"),
        ),
        Method("mad-sparse", "mad on a directed ring: each agent reads the one before it", _SPARSE, 6, skew=(Ring(),)),
        Method("mad-selective", "mad only where fewer than 60 % agree at the start", _OURS, stop=Selective(enough=0.6)),
        Method("mad-judge", "mad whose answer a judge writes from the last replies", _OURS, vote=Judge()),
        _doubting("r2mad-doubt", "r2mad that goes on where memory doubts what all agree on", UnanimityUnlessDoubted()),
        _doubting(
            "r2mad-selective",
            "r2mad only where the opening disagrees, or memory doubts it",
            Selective(confidence=MemoryConfidence()),
        ),
    )
}


def find_method(name: str) -> Method:
    """The method of that name, listed here or not.

    `sc-m` exists for every m from 1 to 999. `BASE+PART+…` is a method with other parts, as `r2mad+objective-mask` is;
    a name that ends in .toml is a file that describes one, and may be a base as well. See `compose.py` for both.

    Raises:
        UnknownNameError: there is none, or no such part; the message names the nearest.
        UsageError: its parts do not go together, or its file cannot be used.
    """
    if name.endswith(".toml"):
        return load_method(name, find_method, lambda given: _look_up(given) is not None)
    if "+" in name:
        base, *parts = name.split("+")
        return compose(find_method(base.strip()), parts)
    if found := _look_up(name):
        return found
    near = difflib.get_close_matches(name, METHODS, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise UnknownNameError(f"no method {name!r}.{hint} There are: {', '.join(METHODS)}")


def _look_up(name: str) -> Method | None:
    if paths := re.fullmatch(r"sc-([1-9]\d{0,2})", name):
        return METHODS.get(name) or _sc(name, int(paths[1]))
    return METHODS.get(name)


def official(method: Method) -> Method:
    """The method as the authors' published scripts run it, where they leave the paper (`compat="official"`).

    R2-MAD: K is 1; candidates are rewarded by their own round and weigh peers all together; a state has no consensus;
    without memory the nearest cases weigh. Never their use of the right answers in the vote. MAD-M²: an objective mask
    keeps all replies above the median, by the log-probabilities of the likeliest tokens.
    """
    if isinstance(method.opening, Reminded):
        method = replace(method, opening=Reminded(replace(method.opening.retrieval, k=1)))
    stop = method.stop
    if isinstance(stop, (UnanimityUnlessDoubted, Selective)) and stop.confidence:
        weighing = replace(stop.confidence, form="official")
        stop = replace(stop, confidence=weighing)
    method = replace(method, stop=stop, skew=tuple(_official_filter(part) for part in method.skew))
    found = method.retrieval
    if found is None:
        return method
    policy = found.policy if found.shown else "nearest"
    return replace(method, retrieval=replace(found, policy=policy, k=1, form="official"))


def _official_filter(part: Filter) -> Filter:
    if isinstance(part, MemoryConfidence):
        return replace(part, form="official")
    if isinstance(part, AutoMask):
        return replace(part, official=True)
    return ObjectiveMask("above-median", "top-token") if isinstance(part, ObjectiveMask) else part
