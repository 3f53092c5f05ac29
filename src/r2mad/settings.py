"""What a user may set about a debate, in one frozen record that Python, the command line and TOML files share.

The text under each field is its help.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from r2mad.errors import UsageError
from r2mad.experience import Form
from r2mad.types import Sampling, Suggestions

CACHE_FILE = "calls.sqlite"

N = TypeVar("N", int, float)


@dataclass(frozen=True)
class Settings:
    """How debates are held. Every field can be given by name to `debate()` and as a flag to `r2mad`."""

    agents: int | None = None
    """Number of agents; the method's own if not given. More agents than personas take the personas in turn."""
    rounds: int | None = None
    """Rounds at most, the opening included; the method's own if not given."""
    prompts: str | None = None
    """A prompt pack that ships, by name, or a folder of your own. Chosen by the kind of question if not given."""
    temperature: float | None = None
    """Sampling temperature; 1.0, or what suits the embedded model, if not given."""
    top_p: float = 1.0
    """Nucleus sampling: the probability mass that tokens are drawn from."""
    max_tokens: int | None = None
    """Most tokens a reply may have, its reasoning included; 6144, or what suits the embedded model, if not given."""
    logprobs: bool = False
    """Ask for log-probabilities (some methods need them; they cost bandwidth)."""
    extra_body: str | Mapping[str, Any] = ""
    """Further fields for the request's body, as a JSON object; for servers with settings of their own."""
    base_url: str | None = None
    """Address of the OpenAI-compatible endpoint; OPENAI_BASE_URL, else OpenAI's own."""
    api_key: str | None = None
    """Key for the endpoint, if it wants one; OPENAI_API_KEY if not given. Never written to a record or a log."""
    max_connections: int = 64
    """Most calls to an endpoint at a time."""
    timeout: float = 600.0
    """Seconds that one attempt of a call may take; a call that timed out is tried once more."""
    max_retries: int = 5
    """How often a call is asked again after a passing fault (a rate limit, a server's fault, a lost connection)."""
    cache: str | None = None
    """File that keeps replies, so nothing is asked twice; by default in your cache folder, `:memory:` for no file."""
    no_cache: bool = False
    """Do not read what earlier runs were answered. Calls of this run are still shared."""
    memory: str | None = None
    """Memory that methods with experience read, as `sqlite:PATH`; `r2mad remember` builds one."""
    embedder: str | None = None
    """`wordllama`, `openai/NAME` or `gguf/PATH`; by default the one that the memory was built with, wordllama for a new
    one. A memory can be read with its own embedder only."""
    embedder_base_url: str | None = None
    """Address of the embedder's endpoint; the model's own if not given."""
    embedder_api_key: str | None = None
    """Key for an embedder's endpoint of its own, if it wants one. Never written to a record or a log."""
    k: int | None = None
    """Cases an agent is reminded of in each round; the method's own (3) if not given."""
    gamma: float | None = None
    """How much consensus turns retrieval from relevant, successful cases to varied ones, 0 to 1; 0.9 if not given."""
    compat: Literal["", "official"] = ""
    """`official` runs methods as the papers' authors' scripts do where those leave the papers."""
    max_calls: int | None = None
    """Most calls one debate may make; it ends before a round that would go over, and its record says `partial`."""

    def __post_init__(self) -> None:
        _as_object(self.extra_body)  # a mistake should show here, not in the middle of a run
        try:
            self._check()
        except TypeError as error:
            raise UsageError(f"a setting is of the wrong kind: {error}") from error

    def _check(self) -> None:
        checks = {
            "agents": self.agents is None or 1 <= self.agents <= 1000,
            "rounds": self.rounds is None or 1 <= self.rounds <= 1000,
            "temperature": self.temperature is None or 0.0 <= self.temperature <= 10.0,
            "top_p": 0.0 < self.top_p <= 1.0,
            "max_tokens": self.max_tokens is None or self.max_tokens >= 1,
            "max_connections": 1 <= self.max_connections <= 65_000,
            "timeout": self.timeout > 0.0,
            "max_retries": self.max_retries >= 0,
            "k": self.k is None or 1 <= self.k <= 1000,
            "gamma": self.gamma is None or 0.0 <= self.gamma <= 1.0,
            "compat": self.compat in ("", "official"),
            "max_calls": self.max_calls is None or self.max_calls >= 1,
        }
        for name, good in checks.items():
            if not good:  # a NaN fails every comparison, so it ends here as well
                raise UsageError(f"--{name.replace('_', '-')} {getattr(self, name)} is out of range")

    def changed(self, **changes: Any) -> Settings:
        """A copy with some fields changed.

        Raises:
            UsageError: there is no such field, or a value is out of range.
        """
        known = {one.name for one in fields(self)}
        unknown = sorted(set(changes) - known)
        if unknown:
            raise UsageError(f"no setting {unknown[0]!r}; there are {', '.join(sorted(known))}")
        return replace(self, **changes)

    def sampling(self, suggested: Suggestions) -> Sampling:
        """How a model is sampled: as the user says, else as it suggests, else as the papers do."""
        usual = Sampling()
        return Sampling(
            temperature=_first(self.temperature, suggested.temperature, usual.temperature),
            top_p=self.top_p,
            max_tokens=_first(self.max_tokens, suggested.max_tokens, usual.max_tokens),
            logprobs=self.logprobs,
            extra_body={**suggested.extra_body, **_as_object(self.extra_body)},
        )

    @property
    def form(self) -> Form:
        """How debate states are written down."""
        return "official" if self.compat == "official" else "paper"

    @property
    def cache_path(self) -> Path | None:
        """Where replies are kept; None for memory only."""
        if self.cache == ":memory:":
            return None
        return home_expanded(Path(self.cache)) if self.cache else cache_folder() / CACHE_FILE


def _first(*values: N | None) -> N:
    return next(value for value in values if value is not None)


def _as_object(given: str | Mapping[str, Any]) -> dict[str, Any]:
    try:
        read = (json.loads(given) if given.strip() else {}) if isinstance(given, str) else dict(given)
        json.dumps(read, allow_nan=False, ensure_ascii=False).encode()  # what cannot be sent should end here
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"--extra-body is not JSON: {error}") from error
    if not isinstance(read, dict):
        raise UsageError("--extra-body must be a JSON object, like '{\"top_k\": 20}'")
    return read


def cache_folder() -> Path:
    """The user's cache folder for this tool (`R2MAD_CACHE_DIR`, else the system's usual place)."""
    return _folder("R2MAD_CACHE_DIR", "user_cache_path")


def log_folder() -> Path:
    """The folder for records (`R2MAD_LOG_DIR`, else the system's usual place for a program's state)."""
    return _folder("R2MAD_LOG_DIR", "user_log_path")


def home_expanded(path: Path) -> Path:
    """`path` with a leading `~` replaced.

    Raises:
        UsageError: there is no such user.
    """
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise UsageError(f"{path}: {error}") from error


def _folder(variable: str, usual: str) -> Path:
    if given := os.environ.get(variable):
        return home_expanded(Path(given))
    import platformdirs  # only when asked for: `import r2mad` stays light

    try:
        path: Path = getattr(platformdirs, usual)("r2mad", appauthor=False)
    except RuntimeError as error:  # a user without a home
        raise UsageError(f"no home folder ({error}); set {variable}") from error
    return path
