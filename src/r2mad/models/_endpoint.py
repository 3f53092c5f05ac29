"""One OpenAI-compatible base URL: its connections, its retries, its errors. Models and embedders share it."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
from yarl import URL

from r2mad.errors import BadResponseError, CallTimeoutError, ConnectionFailedError, ModelError, UsageError
from r2mad.models._refusals import one_line, read_json, refuse, speaks_of_model
from r2mad.models._retry import Patience, Refusal
from r2mad.models._slots import Slots

log = logging.getLogger(__name__)

T = TypeVar("T")

CONNECT_TIMEOUT = 10.0
"""Seconds to look up the host and connect: the slowest real handshakes take a few."""
TIMEOUT = 600.0
"""Seconds for one whole attempt: 6,144 tokens at ten a second, as a busy small server writes them."""
MAX_CONNECTIONS = 64
"""Calls in flight at one base URL: enough to keep a batching server busy, few enough for its queue."""
MAX_RETRIES = 5
"""Attempts after the first: with doubled waits they outlast about 15 s of trouble, or 5 windows of Retry-After."""
LARGEST_BODY = 64 << 20
"""Bytes of a body, unpacked: 100,000 tokens with their log-probabilities are a fifth of it."""
DNS_CACHE = 300
"""Seconds an address is remembered, so that no call waits for a look-up."""
SECRET = 8
"""Characters from which a value in the URL's query may be a key, and is blotted out where a server echoes it."""

_KNOWN_PATHS = ("/chat/completions", "/completions", "/embeddings", "/models")
_VERSIONED = re.compile(r"/v\d+[a-z]*\d*(?:/|$)")


class Endpoint:
    """The connections to one base URL; shared by all models (and embedders) there.

    Nothing is opened before the first call. It belongs to the event loop it is used in; used in another loop later,
    it opens anew.

    Args:
        base_url: `http://host:port/v1`, with or without `/v1` and a trailing slash. The form as given is tried
            with the likelier of both paths first, the other one on a 404, and what worked is remembered.
        api_key: sent as a bearer token if given; shown nowhere.
        max_connections: calls in flight at once; those that wait to be retried do not count.
        timeout: seconds for one attempt, from connecting to the last byte.
        connect_timeout: seconds of it for the connection.
        max_retries: attempts after the first.

    Raises:
        UsageError: a URL without scheme or host, a key that no header can carry, a number out of range.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        max_connections: int = MAX_CONNECTIONS,
        timeout: float = TIMEOUT,
        connect_timeout: float = CONNECT_TIMEOUT,
        max_retries: int = MAX_RETRIES,
    ) -> None:
        if max_connections < 1 or not timeout > 0 or not connect_timeout > 0 or max_retries < 0:
            raise UsageError("max_connections and time-outs must be above 0, and max_retries at least 0")
        parts = _split(base_url)
        self.max_connections, self.max_retries = max_connections, max_retries
        self.timeout, self.connect_timeout = timeout, connect_timeout
        path = _base_path(parts.path)
        host = parts.netloc.rpartition("@")[2].lower()
        self._query = parts.query
        self._origin = f"{parts.scheme.lower()}://{host}"
        self._host = host
        self._roots = _roots(path)
        self._root: str | None = None
        self._urls: dict[str, URL] = {}
        self._headers, self._secrets = _credentials(parts, api_key)
        self._proxy = _proxy(parts)
        self.identity = f"{self._origin}{path.removesuffix('/v1')}"
        """The base URL without key, query, slash and `/v1`: the same however the user wrote it."""
        self._reached = False
        self._holders = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: aiohttp.ClientSession | None = None
        self._slots = Slots(max_connections)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST a JSON body to `path` (such as `/embeddings`) and return the JSON object that comes back.

        Raises:
            ModelError: after the last retry; the message names host and path, never the key.
            UsageError: the body is not JSON.
        """
        value, _ = await self.call(path, body, _an_object)
        return value

    async def get(self, path: str) -> Any:
        """What a GET of `path` brings, read as JSON, or None if it brings nothing of the kind. One try, no error."""
        session, slots = await self._open()
        for root in (self._root,) if self._root is not None else self._roots:
            try:
                async with (
                    slots,
                    asyncio.timeout(self.connect_timeout),
                    session.get(self._url(root + path), proxy=self._proxy, allow_redirects=False) as response,
                ):
                    if response.status == 200:
                        return read_json(await _read_at_most(response, LARGEST_BODY))
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError, _TooLargeError):
                continue
        return None

    async def call(self, path: str, body: Mapping[str, Any], read: Callable[[Any], T]) -> tuple[T, float]:
        """As `post`, with the reply read by `read` and the seconds that the call took.

        `read` raises `BadResponseError` for what it cannot read, and the call is made again. The seconds hold
        all attempts and the waits between them, but not the wait for a free connection.
        """
        try:
            payload = json.dumps(body, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"the request is not JSON (see its extra_body): {error}") from error
        patience = Patience(self.max_retries)
        spent = 0.0
        while True:
            _, slots = await self._open()
            async with slots:
                session, _ = await self._open()  # it may have been closed while this call queued
                start = time.perf_counter()
                result = await self._attempt(session, path, payload, read)
                spent += time.perf_counter() - start
            if not isinstance(result, Refusal):
                # Whoever waits for the slot sends before this reply is worked on: when many replies come at once,
                # their slots would else stand idle for as long as all of them take.
                await asyncio.sleep(0)
                return result, spent
            self._blot(result.error)
            wait = patience.wait(result, self._reached)
            if wait is None:
                raise result.error
            # An address that nobody ever answered at is most likely mistyped: its one error line says it all.
            level = logging.WARNING if self._reached else logging.INFO
            log.log(level, "%s; retry %d of %d in %.1f s", result.error, patience.used, patience.allowed, wait)
            await asyncio.sleep(wait)  # outside the slot: others use the connection meanwhile
            spent += wait

    async def _attempt(
        self, session: aiohttp.ClientSession, path: str, payload: bytes, read: Callable[[Any], T]
    ) -> T | Refusal:
        if self._root is not None:
            return await self._send(session, self._root, path, payload, read)
        first: Refusal | None = None
        for root in self._roots:
            result = await self._send(session, root, path, payload, read)
            if isinstance(result, Refusal) and result.status in (404, 405) and not speaks_of_model(result):
                first = first or result
                continue
            if not isinstance(result, Refusal) or result.status == 404:
                self._root = root
            return result
        assert first is not None  # there is at least one root, and each gave a 404 or 405
        return first

    async def _send(
        self, session: aiohttp.ClientSession, root: str, path: str, payload: bytes, read: Callable[[Any], T]
    ) -> T | Refusal:
        """One POST. What fails comes back as a `Refusal`, for `call` to weigh."""
        where = f"{self._host}{root}{path}"
        try:
            async with asyncio.timeout(self.timeout):
                async with session.post(
                    self._url(root + path), data=payload, proxy=self._proxy, allow_redirects=False
                ) as response:
                    self._reached = True
                    status, headers = response.status, response.headers
                    raw = await _read_at_most(response, LARGEST_BODY)
        except _TooLargeError:
            line = f"the reply from {where} is larger than {LARGEST_BODY >> 20} MiB"
            return Refusal(BadResponseError(line), status)  # no retry: it would be as large again
        except aiohttp.ConnectionTimeoutError:
            return Refusal(CallTimeoutError(f"no connection to {where} within {self.connect_timeout:g} s"), retry=True)
        except TimeoutError:
            self._reached = True  # connected, for all we know: it is slow, not absent
            return Refusal(CallTimeoutError(f"no whole reply from {where} within {self.timeout:g} s"), retry=True)
        except (aiohttp.ClientError, OSError) as error:
            self._reached |= not isinstance(error, aiohttp.ClientConnectorError)
            return Refusal(ConnectionFailedError(f"{where}: {_why(error)}"), retry=True)
        if not 200 <= status < 300:
            return refuse(status, headers, raw, where, self._secrets)
        try:
            data = read_json(raw)
        except ValueError:
            line = f"the reply is not JSON: {one_line(raw[:200].decode('utf-8', 'replace'), 60)!r}, from {where}"
            return Refusal(BadResponseError(line), status, retry=True)
        if isinstance(data, dict) and data.get("error") and "choices" not in data and "data" not in data:
            return refuse(_status(data["error"]), headers, raw, where, self._secrets)
        try:
            return read(data)
        except BadResponseError as error:
            return Refusal(BadResponseError(f"{error}, from {where}"), status, retry=True)

    def _blot(self, error: ModelError) -> None:
        """Take out of an error's line whatever nobody may see: a server may echo it in places one does not foresee."""
        line = str(error)
        for secret in self._secrets:
            line = line.replace(secret, "…")
        error.args = (line,)

    def _url(self, path: str) -> URL:
        url = self._urls.get(path)
        if url is None:
            query = f"?{self._query}" if self._query else ""
            url = self._urls[path] = URL(f"{self._origin}{path}{query}")
        return url

    async def _open(self) -> tuple[aiohttp.ClientSession, Slots]:
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            stale, self._session = self._session, None
            self._loop = loop
            self._slots = Slots(self.max_connections)
            self._session = aiohttp.ClientSession(
                # the slots are the limit: the connector's own would count calls as timed while they queue
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=DNS_CACHE),
                timeout=aiohttp.ClientTimeout(total=None, connect=self.connect_timeout),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),  # no cookies: they cost time and carry state between calls
            )
            await _end(stale)
            return await self._open()  # the session of now: closing the old one may have taken a while
        return self._session, self._slots

    def hold(self) -> None:
        """Count one more user; the last one to `release` closes the connections."""
        self._holders += 1

    async def release(self) -> None:
        """Undo one `hold`."""
        self._holders -= 1
        if self._holders <= 0:
            await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, whoever holds them. Safe to call twice; a later call opens them again."""
        session, self._session = self._session, None
        await _end(session)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _TooLargeError(Exception):
    """A body went on past what is read of one."""


async def _read_at_most(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The body, unpacked. A server that never ends it, or packs a bomb, must not fill the memory."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            raise _TooLargeError
        chunks.append(chunk)
    return b"".join(chunks)


async def _end(session: aiohttp.ClientSession | None) -> None:
    if session is not None:
        with suppress(RuntimeError):  # its event loop may be gone, and its sockets with it
            await session.close()


def _an_object(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise BadResponseError(f"the reply is a JSON {type(data).__name__}, not an object")
    return data


def _split(base_url: str) -> urllib.parse.SplitResult:
    """The parts of a base URL that can be used as one."""
    shown = one_line(re.sub(r"//[^/@]*@", "//", base_url.partition("?")[0]), 120)
    try:
        parts = urllib.parse.urlsplit(base_url.strip())
        parts.port  # noqa: B018  reading it is what checks it
        usable = parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
        usable = usable and not re.search(r"[\s\x00-\x1f\x7f]", base_url.strip())
        URL(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/")
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(f"not a base URL: {shown!r} (write it as http://host:port/v1 or https://host/v1)")
    return parts


def _base_path(path: str) -> str:
    path = path.rstrip("/")
    for known in _KNOWN_PATHS:  # people paste the URL of the call itself
        path = path.removesuffix(known)
    return path.rstrip("/")


def _roots(path: str) -> tuple[str, ...]:
    """The paths to try, likelier first: `/v1` is added where no version is named, and taken off where it is last."""
    if path.endswith("/v1"):
        return path, path.removesuffix("/v1")
    added = f"{path}/v1"
    return (path, added) if _VERSIONED.search(path) else (added, path)


def _credentials(parts: urllib.parse.SplitResult, api_key: str | None) -> tuple[dict[str, str], tuple[str, ...]]:
    """The headers of every call, and the strings in them that nobody may see."""
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "r2mad"}
    key = (api_key or "").strip()
    if not key.isascii() or not (key.isprintable() or not key):
        raise UsageError("the API key holds characters that no key has (a line break, or a letter that is not ASCII)")
    secrets = tuple(value for _, value in urllib.parse.parse_qsl(parts.query) if len(value) >= SECRET)
    user, _, host = parts.netloc.rpartition("@")
    if user and host:
        name, _, password = (urllib.parse.unquote(part) for part in user.partition(":"))
        token = base64.b64encode(f"{name}:{password}".encode()).decode()
        headers["Authorization"] = f"Basic {token}"
        return headers, (*secrets, *(secret for secret in (password, token) if secret))
    if key:
        headers["Authorization"] = f"Bearer {key}"
        secrets = (*secrets, key)
    return headers, secrets


def _proxy(parts: urllib.parse.SplitResult) -> str | None:
    """The proxy that the environment names for this host, looked up once and not at every call."""
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return None
    proxies = urllib.request.getproxies()
    return None if urllib.request.proxy_bypass(host) else proxies.get(parts.scheme.lower(), proxies.get("all"))


def _status(error: object) -> int:
    """The status that an error sent under a 200 stands for; a router says it in `code`."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500


def _why(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "unknown host"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return f"no secure connection ({one_line(str(error.__cause__ or error), 120)})"
    if isinstance(error, aiohttp.ClientConnectorError):
        reason = os.strerror(error.os_error.errno) if error.os_error.errno else str(error.os_error)
        return f"cannot connect ({one_line(reason, 120)})"
    return f"the connection broke off ({one_line(str(error), 120) or type(error).__name__})"
