"""What the tests of embedders share: a server that says whatever a test wants, and short waits."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

Answer = Callable[[list[str]], Any]


def reply(vectors: list[Any], indices: list[Any] | None = None) -> dict[str, Any]:
    """An embeddings reply with these vectors, or whatever stands in their place."""
    places = list(range(len(vectors))) if indices is None else indices
    return {"data": [{"index": place, "embedding": vector} for place, vector in zip(places, vectors, strict=True)]}


def refuse(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)


class Canned:
    """Answers each request by `answer`, which is given its texts."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[dict[str, Any]] = []
        self.answer: Answer = lambda texts: reply([[float(len(text)), 1.0] for text in texts])

    @property
    def asked(self) -> list[list[str]]:
        """The texts of each request so far."""
        return [body["input"] for body in self.bodies]

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        said = self.answer(body["input"])
        return said if isinstance(said, web.StreamResponse) else web.json_response(said)


@pytest.fixture
async def canned() -> AsyncIterator[Canned]:
    canned = Canned()
    runner = web.ServerRunner(web.Server(canned.serve), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    canned.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield canned
    await runner.cleanup()


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("r2mad.models._retry.FIRST_WAIT", 0.01)
