"""A fake OpenAI-compatible server on the loopback interface, for tests, benchmarks and first tries.

    python -m r2mad.models.fake_server --help

In a test:

    async with FakeServer(Settings(latency_ms=20)) as server:
        model = open_model("openai/fake", ModelOptions(base_url=server.base_url))

In another process, so that its CPU time is not the client's:

    with FakeServer.spawn(Settings(latency_ms=500)) as server:
        ...
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from r2mad.models._babble import hashed
from r2mad.models._fake_replies import completion, count_tokens, embeddings, encode, problem, read_turns, refusal
from r2mad.models._fake_settings import FAULTS, Settings, parse_faults, read_flags

__all__ = ["FAULTS", "FakeServer", "Logged", "Settings", "SpawnedServer", "main", "parse_faults"]

log = logging.getLogger(__name__)

LARGEST = 256 * 1024 * 1024
"""Bytes of a request body: far above any prompt; aiohttp's own 1 MiB is not."""
BACKLOG = 4096
"""Connections that may wait to be accepted: a benchmark opens thousands at once."""
STARTING = 30.0
"""Seconds a spawned server may take to print its URL, on a machine under load."""


@dataclass(slots=True)
class Logged:
    """One request, as GET /log shows it."""

    index: int
    path: str
    started: float
    """Unix time."""
    attempt: int = 0
    """How often the same body had come before."""
    fault: str | None = None
    status: int = 0
    """What was sent; 0 where nothing was (a hang, a drop) or the request is not over yet."""
    seconds: float = 0.0
    in_flight: int = 0
    """Requests in work when it arrived, itself included."""
    body: Any = None


class FakeServer:
    """The server, in this process and event loop. Use it as an async context manager.

    `settings` may be replaced while it runs (all but the port); `log` holds every API request so far.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.log: list[Logged] = []
        self.high_water = 0
        """Most requests that were in work at once."""
        self.in_flight = 0
        self.connections = 0
        self.base_url = ""
        self._attempts: Counter[bytes] = Counter()
        self._prefixes: set[int] = set()
        self._runner: web.ServerRunner | None = None

    def reset(self) -> None:
        """Forget all requests, and so start faults and attempts anew."""
        self.log.clear()
        self._attempts.clear()
        self._prefixes.clear()
        self.high_water = self.in_flight

    async def start(self) -> None:
        """Listen; `base_url` says where.

        Raises:
            OSError: the port is taken.
        """
        server = web.Server(self._serve, request_factory=_request, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.05)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.settings.port, backlog=BACKLOG)
        await site.start()
        port = self._runner.addresses[0][1]
        self.base_url = f"http://127.0.0.1:{port}" + ("" if self.settings.paths == "bare" else "/v1")

    async def stop(self) -> None:
        """Close all connections, those of hanging requests too. Safe to call twice."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @staticmethod
    @contextmanager
    def spawn(settings: Settings | None = None) -> Iterator[SpawnedServer]:
        """Run a server in another process for as long as the `with` block lasts; it also ends if this process does.

        Raises:
            RuntimeError: it did not start.
        """
        server = _spawn(settings or Settings())
        try:
            yield server
        finally:
            server.stop()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path.rstrip("/")
        if path == "/log":
            lines = "".join(json.dumps(_as_dict(entry)) + "\n" for entry in self.log)
            return web.Response(text=lines, content_type="application/jsonl")
        if path == "/health":
            counters = {"requests": len(self.log), "in_flight": self.in_flight, "high_water": self.high_water}
            return _json(200, {"status": "ok", **counters})
        if path == "/reset" and request.method == "POST":
            self.reset()
            return _json(200, {"status": "ok"})
        raw = await request.read()
        entry = Logged(len(self.log), request.path, time.time())
        self.log.append(entry)
        self.in_flight += 1
        self.high_water = max(self.high_water, self.in_flight)
        entry.in_flight = self.in_flight
        start = time.perf_counter()
        try:
            response = await self._api(request, path, raw, entry)
            entry.status = response.status if request.transport else 0
            return response
        finally:
            entry.seconds = time.perf_counter() - start
            self.in_flight -= 1

    async def _api(self, request: web.BaseRequest, path: str, raw: bytes, entry: Logged) -> web.StreamResponse:
        settings = self.settings
        versioned = path.startswith("/v1/")
        if versioned is (settings.paths == "bare") and settings.paths != "both":
            return _json(404, {"detail": "Not Found"})
        route = path.removeprefix("/v1")
        if settings.api_key and request.headers.get("Authorization") != f"Bearer {settings.api_key}":
            return _json(401, problem("Incorrect API key provided.", "invalid_request_error", "invalid_api_key"))
        if route == "/models" and request.method == "GET":
            models = [{"id": name, "object": "model", "owned_by": "r2mad"} for name in settings.model.split(",")]
            return _json(200, {"object": "list", "data": models})
        if route not in ("/chat/completions", "/embeddings"):
            return _json(404, {"detail": "Not Found"})
        if request.method != "POST":
            return _json(405, {"detail": "Method Not Allowed"})
        try:
            body = json.loads(raw)
            if not isinstance(body, dict):
                raise ValueError("the body must be a JSON object")
        except (ValueError, RecursionError) as error:
            return _json(400, problem(f"not readable: {error}", "invalid_request_error", 400))
        if not settings.no_bodies:
            entry.body = body
        entry.fault = self._fault(raw, entry)
        if route == "/chat/completions":
            return await self._chat(request, body, entry)
        if entry.fault and entry.fault != "truncate":
            return await self._broken(request, entry.fault, {"object": "list", "data": []}, entry)
        await asyncio.sleep(settings.latency_ms / 1000)
        return _json(*embeddings(settings, body))

    def _fault(self, raw: bytes, entry: Logged) -> str | None:
        """Chosen by fault seed, body and attempt, so that it does not depend on the order of arrival."""
        body = blake2b(raw, digest_size=16).digest()
        entry.attempt = self._attempts[body]
        self._attempts[body] += 1
        settings = self.settings
        if not settings.faults or (settings.fault_first and entry.index >= settings.fault_first):
            return None
        draw = hashed(str(settings.fault_seed), body.hex(), str(entry.attempt)) / 2**128
        for name, rate in settings.faults.items():
            draw -= rate
            if draw < 0:
                return name
        return None

    async def _chat(self, request: web.BaseRequest, body: dict[str, Any], entry: Logged) -> web.StreamResponse:
        settings = self.settings
        try:
            turns = read_turns(body)
        except ValueError as error:
            return _json(400, problem(str(error), "invalid_request_error", 400))
        if body.get("stream") or body.get("n") not in (None, 1):
            return _json(400, problem("no streams and no n here: one request is one reply", "BadRequestError", 400))
        tokens = count_tokens(turns)
        refused = refusal(settings, body, turns, tokens)
        if refused:
            return _json(*refused)
        seed = body.get("seed")
        seed = seed if isinstance(seed, int) and body.get("temperature") != 0 else 0
        if settings.ignore_seed:
            seed = entry.index
        cached = self._cached(turns) if settings.count_cached else 0
        reply, written = completion(settings, body, turns, tokens, seed, cached, entry.fault == "truncate")
        wait = settings.latency_ms + settings.ms_per_token * written + settings.ms_per_prompt_token * tokens
        if wait and entry.fault not in ("429", "hang"):
            await asyncio.sleep(wait / 1000)
        if entry.fault and entry.fault != "truncate":
            return await self._broken(request, entry.fault, reply, entry)
        return _json(200, reply)

    def _cached(self, turns: list[tuple[str, str]]) -> int:
        """Tokens of the leading messages that an earlier request began with, as a prefix cache would count them."""
        cached, state, hit = 0, 0, True
        for role, text in turns:
            state = hashed(str(state), role, text)
            hit = hit and state in self._prefixes
            cached += len(text.split()) if hit else 0
            self._prefixes.add(state)
        return cached

    async def _broken(
        self, request: web.BaseRequest, fault: str, reply: dict[str, Any], entry: Logged
    ) -> web.StreamResponse:
        settings = self.settings
        if fault == "429":
            after = {"Retry-After": f"{settings.retry_after:g}"} if settings.retry_after >= 0 else {}
            return _json(429, problem("Rate limit reached.", "rate_limit_error", "rate_limit_exceeded"), after)
        if fault == "500":
            return _json(500, problem("The server had an error.", "server_error", 500))
        if fault == "hang":
            await asyncio.sleep(settings.hang_s)
        odd = entry.attempt % 2 == 1
        raw = encode(reply)
        if fault == "malformed":
            return web.Response(body=b"<html><body>Bad gateway</body></html>" if odd else raw[: len(raw) // 2])
        if fault == "drop" and odd:  # in the middle of the body; else before its start
            partial = web.StreamResponse(headers={"Content-Length": str(len(raw))})
            await partial.prepare(request)
            with suppress(ConnectionError):
                await partial.write(raw[: len(raw) // 2])
        if fault in ("drop", "hang"):
            if request.transport is not None:
                request.transport.close()
            raise asyncio.CancelledError  # the connection is gone: there is nobody to answer
        return _json(200, {**reply, "choices": [], "data": []})


def _request(*args: Any) -> web.BaseRequest:
    message, payload, protocol, writer, task = args
    return web.BaseRequest(
        message, payload, protocol, writer, task, asyncio.get_running_loop(), client_max_size=LARGEST
    )


def _json(status: int, data: object, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=encode(data), content_type="application/json", headers=headers)


def _as_dict(entry: Logged) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in Logged.__slots__}


class SpawnedServer:
    """A server in another process; what it saw is fetched over its own HTTP."""

    def __init__(self, process: subprocess.Popen[str], base_url: str) -> None:
        self.process = process
        self.base_url = base_url
        self._root = base_url.removesuffix("/v1")

    def read_log(self) -> list[dict[str, Any]]:
        """Every request so far, with the fields of `Logged`."""
        return [json.loads(line) for line in self._fetch("/log").splitlines()]

    def health(self) -> dict[str, Any]:
        """Its counters: `requests`, `in_flight`, `high_water`."""
        counters: dict[str, Any] = json.loads(self._fetch("/health"))
        return counters

    def reset(self) -> None:
        """Forget all requests."""
        self._fetch("/reset", b"")

    def stop(self) -> None:
        """End the process. Safe to call twice."""
        self.process.terminate()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()

    def _fetch(self, path: str, data: bytes | None = None) -> str:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never by a proxy: it is on loopback
        with opener.open(self._root + path, data=data, timeout=60) as response:
            text: str = response.read().decode()
            return text


def _spawn(settings: Settings) -> SpawnedServer:
    source = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(  # noqa: S603  our own module, with flags made of our own settings
        [sys.executable, "-m", "r2mad.models.fake_server", "--until-stdin-ends", *settings.flags()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert process.stdout is not None
    killer = threading.Timer(STARTING, process.kill)
    killer.start()
    line = process.stdout.readline().strip()
    killer.cancel()
    server = SpawnedServer(process, line)
    if not line:
        server.stop()
        raise RuntimeError("the fake server did not start (its reason is on stderr)")
    return server


async def _run(settings: Settings, until_stdin_ends: bool) -> None:
    async with FakeServer(settings) as server:
        print(server.base_url, flush=True)
        if until_stdin_ends:
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()

            def watch() -> None:
                sys.stdin.read()
                loop.call_soon_threadsafe(ended.set)

            threading.Thread(target=watch, daemon=True).start()
            await ended.wait()
        else:
            await asyncio.Event().wait()


def main(argv: Sequence[str] | None = None) -> int:
    """The command: serve until interrupted. Returns an exit code."""
    settings, until_stdin_ends = read_flags(argv)
    try:
        asyncio.run(_run(settings, until_stdin_ends))
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print(f"cannot listen on port {settings.port}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
