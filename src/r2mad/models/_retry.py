"""When to ask again, and how long to wait first.

`stamina` was tried on paper and left out of this layer: its wait hook sees the exception but not the kind of the
failures before it, and three different allowances share one loop here (ordinary failures, time-outs, an endpoint
that was never reached). The thirty lines below say it plainly.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from r2mad.errors import CallTimeoutError, ConnectionFailedError, ModelError

FIRST_WAIT = 0.5
"""Seconds: upper end of the first wait; doubled each time. Half a second outlasts a reconnect or a burst."""
LONGEST_WAIT = 30.0
"""Seconds: the doubling stops here, so that one call is never silent for minutes."""
LONGEST_RETRY_AFTER = 60.0
"""Seconds: providers' rate windows are a minute; a server that asks for more would stall the whole run."""
UNREACHED_RETRIES = 2
"""An address that never answered is most likely mistyped: two quick tries, then say so."""
UNREACHED_WAIT = 0.4
"""Seconds: upper end of the wait between those tries, so that the user hears of it in about a second."""
TIMEOUT_RETRIES = 1
"""A call that timed out has cost minutes already; it gets one more chance, not five."""

_random = random.Random()  # noqa: S311  jitter is no secret; own instance: jitter must not disturb, or be frozen by, anyone's seeded `random`


@dataclass(frozen=True, slots=True)
class Refusal:
    """One failed attempt: what to raise if it was the last, and whether and when another makes sense."""

    error: ModelError
    status: int = 0
    """HTTP status; 0 if no response came."""
    retry: bool = False
    retry_after: float | None = None
    """Seconds the server asked us to wait."""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a response asks to wait: `retry-after-ms`, or `Retry-After` as seconds or as an HTTP date.

    Capped at `LONGEST_RETRY_AFTER`; None if there is none, or it makes no sense.
    """
    for name, unit in (("retry-after-ms", 0.001), ("Retry-After", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            seconds = _until(value)
        if math.isfinite(seconds) and seconds >= 0:
            return min(seconds, LONGEST_RETRY_AFTER)
    return None


def _until(date: str) -> float:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return math.nan


class Patience:
    """The retries of one call: ask it after each failed attempt how long to wait.

    Args:
        retries: most attempts after the first.
    """

    def __init__(self, retries: int) -> None:
        self.allowed = retries
        self.used = 0
        self._timeouts = 0

    def wait(self, failed: Refusal, reached: bool) -> float | None:
        """Seconds to wait before the next attempt, or None to give up. `reached`: the endpoint has answered before.

        Full jitter: anywhere between nothing and the doubled limit, so that calls that failed together do not
        come back together. `Retry-After` is a floor, with a little jitter on top for the same reason.
        """
        if not failed.retry or self.used >= self.allowed:
            return None
        limit = min(LONGEST_WAIT, FIRST_WAIT * 2.0**self.used)
        if isinstance(failed.error, CallTimeoutError):
            self._timeouts += 1
            if self._timeouts > TIMEOUT_RETRIES or not reached:
                return None
        if not reached and isinstance(failed.error, ConnectionFailedError):
            if self.used >= UNREACHED_RETRIES:
                return None
            self.allowed, limit = min(self.allowed, UNREACHED_RETRIES), UNREACHED_WAIT
        self.used += 1
        wait = _random.uniform(0.0, limit)
        if failed.retry_after:
            return failed.retry_after + min(wait, failed.retry_after / 4)
        return wait
