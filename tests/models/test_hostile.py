"""Servers that mean no good: bodies without end, bombs, keys sent back, text that no file can hold."""

import asyncio
import gzip
import json
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from r2mad.api import open_table
from r2mad.errors import BadResponseError, EndpointError, ModelError
from r2mad.models import _endpoint
from r2mad.models.openai import Endpoint, OpenAIModel
from r2mad.settings import Settings
from r2mad.study.records import dump
from r2mad.types import Message, Question, Request, Sampling

Answer = Callable[[bytes], AsyncIterator[bytes]]
ASK = Request((Message("user", "Hello"),), Sampling(max_tokens=5), seed=1)


@asynccontextmanager
async def _server(answer: Answer) -> AsyncIterator[str]:
    """A raw server that reads one request's head and body and writes what `answer` yields."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
            )
            body = await reader.readexactly(length)
            async for part in answer(head + body):
                writer.write(part)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()


def _whole(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode()
        + body
    )


async def _complete(url: str, key: str | None = None) -> None:
    async with Endpoint(url, key, max_retries=0, timeout=20) as endpoint, OpenAIModel("any", endpoint) as model:
        await model.complete(ASK)


async def test_a_body_without_end_is_given_up_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_endpoint, "LARGEST_BODY", 1 << 20)

    async def endless(_: bytes) -> AsyncIterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
        while True:
            yield b" " * 65536

    async with _server(endless) as url:
        with pytest.raises(BadResponseError, match="larger than 1 MiB"):
            await _complete(url)


async def test_a_packed_bomb_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_endpoint, "LARGEST_BODY", 8 << 20)
    bomb = gzip.compress(b" " * (256 << 20), 1)

    async def packed(_: bytes) -> AsyncIterator[bytes]:
        yield _whole(bomb, headers="Content-Encoding: gzip\r\n")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with _server(packed) as url:
        with pytest.raises(ModelError):
            await _complete(url)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000  # kB; unpacked whole it is 262,000


@pytest.mark.parametrize("where", ["redirect", "not json", "error", "finish"])
async def test_no_key_is_ever_shown(where: str) -> None:
    async def echo(request: bytes) -> AsyncIterator[bytes]:
        seen = request.decode()
        key = seen.split("Bearer ")[1].split("\r\n")[0]
        path = seen.split(" ")[1]
        yield {
            "redirect": _whole(b"", "301 Moved", f"Location: https://elsewhere{path}&again={key}\r\n"),
            "not json": _whole(f"{key} is not JSON, {path}".encode()),
            "error": _whole(json.dumps({"error": {"message": f"bad key {key} at {path}"}}).encode(), "401 No"),
            "finish": _whole(
                json.dumps({"choices": [{"message": {"content": ""}, "finish_reason": key}] * 0}).encode()
            ),
        }[where]

    async with _server(echo) as url:
        with pytest.raises((BadResponseError, EndpointError)) as caught:
            await _complete(f"{url}?api_key=TOPSECRETQUERY", "sk-very-secret")
    assert "very-secret" not in str(caught.value)
    assert "TOPSECRET" not in str(caught.value)


async def test_what_no_file_can_hold_is_cleaned_before_it_is_kept() -> None:
    """Lone surrogates in every string of a reply: the debate is held, and its record can be written."""
    bad = "x\\ud800y"
    reply = (
        f'{{"model":"{bad}","choices":[{{"finish_reason":"{bad * 300}","message":'
        f'{{"content":"((A)) {bad}","reasoning_content":"{bad}"}}}}]}}'
    )

    async def surrogates(_: bytes) -> AsyncIterator[bytes]:
        yield _whole(reply.encode())

    async with (
        _server(surrogates) as url,
        open_table("openai/any", Settings(base_url=url, cache=":memory:", max_retries=0)) as table,
    ):
        record = await table.hold(Question("Which?", ("this", "that")), "vote", seed=1)
    assert record.answer == "A"
    assert len(record.rounds[0].replies[0].finish_reason) <= 40
    dump(record)
