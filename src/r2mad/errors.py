"""Everything that can go wrong, as one tree, and the one boundary where a failed call becomes data.

R2madError
├── UsageError               the caller asked for something that cannot be done: exit code 2
│   ├── UnknownNameError     no such method, provider, model, prompt pack, data set
│   └── BadQuestionError     an empty question, a single option, two options alike
├── StoreError               a file of ours is damaged, too new, or cannot be written: exit code 1
│   ├── FileBusyError        another process is writing it
│   └── MissingMemoryError   there is no memory at that place yet
└── ModelError               one call to a model failed; inside a debate it becomes `Reply.error`
    ├── EndpointError        the endpoint refuses every call alike, so asking again is useless
    │   ├── AuthenticationError      401, 403
    │   └── ModelNotFoundError       404
    ├── RequestRejectedError         any other 4xx: the server read the request and will not serve it
    │   └── ContextOverflowError     the prompt, or the prompt and the room for the reply, do not fit
    ├── RateLimitedError             429 after the last retry
    ├── ServerFaultError             5xx after the last retry
    ├── ConnectionFailedError        refused, reset, unknown host, or closed in the middle of a reply
    ├── CallTimeoutError             no whole reply in the time allowed
    ├── BadResponseError             a reply that is not JSON, or has no choices
    └── BudgetExceededError          the run's own cap on calls or tokens was reached
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TypeVar

from r2mad.types import Failure, clean

log = logging.getLogger(__name__)

T = TypeVar("T")


class R2madError(Exception):
    """The root of every error that this package raises on purpose."""

    exit_code = 1


class UsageError(R2madError):
    """The caller asked for something that cannot be done; the message says what to do instead."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name that is not in the list it was looked up in; the message shows the list."""


class BadQuestionError(UsageError):
    """A question nobody could answer: empty, with one option, or with two options alike."""


class StoreError(R2madError):
    """A file of ours (cache, records, memory) is damaged, too new, busy, or cannot be written."""


class FileBusyError(StoreError):
    """Another process holds the file; it can be written when that one is done."""


class MissingMemoryError(StoreError):
    """There is no memory at that place yet."""


class ModelError(R2madError):
    """One call to a model failed. `kind` is the short name that records carry."""

    kind = "model"
    retryable = False


class EndpointError(ModelError):
    """The endpoint refuses every call alike; a retry would meet the same answer."""

    kind = "endpoint"


class AuthenticationError(EndpointError):
    """401 or 403: the key is missing, wrong, or not allowed this model."""

    kind = "authentication"


class ModelNotFoundError(EndpointError):
    """404: the endpoint has no such model, or no such path."""

    kind = "model-not-found"


class RequestRejectedError(ModelError):
    """The server read the request and will not serve it (a 4xx that no retry mends)."""

    kind = "rejected"


class ContextOverflowError(RequestRejectedError):
    """The prompt, or the prompt and the room for the reply together, exceed the model's context.

    `limit` and `prompt_tokens` are what the server said, in tokens, or None where it did not say.
    """

    kind = "context-overflow"

    def __init__(self, message: str, limit: int | None = None, prompt_tokens: int | None = None) -> None:
        super().__init__(message)
        self.limit = limit
        self.prompt_tokens = prompt_tokens


class RateLimitedError(ModelError):
    """429, still there after the last retry."""

    kind = "rate-limited"
    retryable = True


class ServerFaultError(ModelError):
    """A 5xx (or 408, 409), still there after the last retry."""

    kind = "server-fault"
    retryable = True


class ConnectionFailedError(ModelError):
    """No connection, or one that closed before the reply was whole."""

    kind = "connection"
    retryable = True


class CallTimeoutError(ModelError):
    """No whole reply within the time allowed for one call."""

    kind = "timeout"
    retryable = True


class BadResponseError(ModelError):
    """The server said 200 and sent something that is not a chat completion."""

    kind = "bad-response"
    retryable = True


class BudgetExceededError(ModelError):
    """The run's own cap on calls or tokens was reached; nothing was sent."""

    kind = "budget"


async def boundary(call: Awaitable[T]) -> T | Failure:
    """Await one model call; hand back its result, or its failure as data.

    This is the only place where an exception of a call is turned into a record: a bad reply is data, not a
    crash. A `ModelError` keeps its kind; anything else (a bug in a model of the user's own) is kept as
    `unexpected` with its type, and its traceback goes to the log. Cancellation passes through, and so do a
    `UsageError` and a `StoreError`: they are the run's, not the call's, and would meet every other call as well.
    """
    try:
        return await call
    except ModelError as error:
        return Failure(kind=error.kind, message=clean(str(error)))
    except (UsageError, StoreError):
        raise
    except Exception as error:
        log.exception("a model raised something that is not a ModelError")
        return Failure(kind="unexpected", message=clean(f"{type(error).__name__}: {error}"))
