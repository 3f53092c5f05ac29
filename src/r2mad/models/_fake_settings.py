"""The fake server's settings: one field each, from which the command line and its help are made."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

FAULTS = ("429", "500", "hang", "drop", "malformed", "empty", "truncate")
"""429 with Retry-After · 500 · no reply · connection closed, before or in the middle of the reply · a body that is not
JSON · no choices · a reply cut in half with finish_reason `length`."""


def _setting(default: Any, help: str, **more: Any) -> Any:
    return field(default=default, metadata={"help": help, **more})


@dataclass(frozen=True)
class Settings:
    """How the server behaves; each field is also a flag of the command, under the same name."""

    port: int = _setting(0, "port on the loopback interface; 0 picks a free one")
    latency_ms: float = _setting(0.0, "milliseconds before every reply")
    ms_per_token: float = _setting(0.0, "further milliseconds for each token of the reply")
    ms_per_prompt_token: float = _setting(0.0, "further milliseconds for each token of the prompt")
    reply_tokens: int = _setting(60, "tokens (words) of a reply")
    summary_tokens: int = _setting(80, "tokens of a reply to a prompt that says `summarise` or `summarize`")
    reasoning_tokens: int = _setting(0, "tokens of reasoning_content sent beside each reply, and counted in its usage")
    bias: float = _setting(0.6, "probability that an opening answer is the question's favourite")
    adopt: float = _setting(0.4, "probability that a debate turn takes the answer most frequent in its prompt")
    model: str = _setting("fake", "models that exist, separated by commas; others get a 404; * is any", metavar="NAMES")
    paths: str = _setting("v1", "where the API is: under /v1, bare, or both", choices=("v1", "bare", "both"))
    api_key: str = _setting("", "key that requests must carry; others get a 401", metavar="KEY")
    context: int = _setting(0, "most tokens of a prompt, above which it is refused with a 400; 0 is no limit")
    context_style: str = _setting(
        "llama.cpp",
        "whose words the refusal has; vllm and openai count max_tokens in",
        choices=("llama.cpp", "vllm", "openai"),
    )
    no_system: bool = _setting(False, "refuse system messages with a 400, as Gemma's template does")
    alternate: bool = _setting(False, "refuse turns that do not alternate between user and assistant")
    refuse_params: str = _setting("", "parameters to refuse with a 400, separated by commas", metavar="NAMES")
    ignore_seed: bool = _setting(False, "draw every reply anew, whatever the seed")
    ignore_logprobs: bool = _setting(False, "send no log-probabilities, though asked")
    no_usage: bool = _setting(False, "leave usage out")
    count_cached: bool = _setting(False, "count prompt tokens of messages seen before, from the first on, as cached")
    dimension: int = _setting(64, "dimension of embeddings")
    embed_context: int = _setting(0, "most words of a text to embed, above which a 400 comes; 0 is no limit")
    fault_seed: int = _setting(0, "seed of the faults")
    fault_first: int = _setting(0, "stop making faults after this many requests; 0 goes on for ever")
    retry_after: float = _setting(1.0, "seconds in the Retry-After of a 429; a negative number leaves it out")
    hang_s: float = _setting(3600.0, "seconds that a hang lasts")
    no_bodies: bool = _setting(False, "keep no request bodies in the log, to save memory in long runs")
    faults: Mapping[str, float] = field(default_factory=dict)
    """Probability of each fault; see `parse_faults`."""

    def flags(self) -> list[str]:
        """The command line that gives these settings."""
        flags: list[str] = []
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "faults":
                flags += ["--fault", ",".join(f"{name}:{rate!r}" for name, rate in value.items())] if value else []
            elif value != one.default:
                flag = f"--{one.name.replace('_', '-')}"
                flags += [flag] if value is True else [f"{flag}={value}"]
        return flags


def parse_faults(text: str, rate: float | None = None) -> dict[str, float]:
    """`429:0.05,hang` as probabilities. Names without one share `rate` (1 if not given) in equal parts.

    No text with a rate is all faults, mixed.

    Raises:
        ValueError: no such fault, or probabilities that are none or add up to more than 1.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts and rate is not None:
        parts = list(FAULTS)
    bare = [part for part in parts if ":" not in part]
    faults: dict[str, float] = {}
    for part in parts:
        name, _, number = part.partition(":")
        if name not in FAULTS:
            raise ValueError(f"no such fault: {name!r} ({', '.join(FAULTS)})")
        faults[name] = float(number) if number else (1.0 if rate is None else rate) / len(bare)
    if any(not 0 <= one <= 1 for one in faults.values()) or sum(faults.values()) > 1 + 1e-9:
        raise ValueError(f"faults need probabilities that add up to at most 1: {text!r}")
    return faults


_EPILOG = """
The first line on stdout is the base URL. Replies are made up, but of the shape that the prompt asks for, and the same
request gets the same reply in every process.

examples:
  python -m r2mad.models.fake_server --latency-ms 500
  python -m r2mad.models.fake_server --fault 429:0.05,500:0.05 --retry-after 0.2
  python -m r2mad.models.fake_server --fault-rate 0.2            all faults mixed, in one request of five
  python -m r2mad.models.fake_server --no-system --context 4096  a small model with a Gemma-like template

also served: GET /v1/models, GET /health (counters), GET /log (requests as JSON lines), POST /reset, POST /v1/embeddings

A fault is chosen by the fault seed, the request's body, and how often that body has come: it does not depend on
the order in which requests arrive, and a retry may fare better.
"""


def read_flags(argv: Sequence[str] | None) -> tuple[Settings, bool]:
    """Settings from a command line, and whether to end when stdin does."""
    parser = argparse.ArgumentParser(
        prog="python -m r2mad.models.fake_server",
        description="A fake OpenAI-compatible server on the loopback interface, for tests, benchmarks and first tries.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for one in fields(Settings):
        if one.default is MISSING:
            continue
        more: dict[str, Any] = dict(one.metadata)
        flag = f"--{one.name.replace('_', '-')}"
        if one.default is False:
            parser.add_argument(flag, action="store_true", help=more["help"])
            continue
        more["help"] += f" (default: {one.default})" if one.default != "" else ""
        parser.add_argument(flag, type=type(one.default), default=one.default, **more)
    parser.add_argument("--fault", default="", metavar="NAME[:P],…", help=f"faults to make: {', '.join(FAULTS)}")
    parser.add_argument(
        "--fault-rate", type=float, metavar="P", help="probability of all faults that have none of their own"
    )
    parser.add_argument(
        "--until-stdin-ends", action="store_true", help="stop when stdin is closed (for parent processes)"
    )
    given = vars(parser.parse_args(argv))
    try:
        faults = parse_faults(given.pop("fault"), given.pop("fault_rate"))
    except ValueError as error:
        parser.error(str(error))
    ends = given.pop("until_stdin_ends")
    return Settings(**given, faults=faults), ends
