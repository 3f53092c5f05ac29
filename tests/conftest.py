"""What every test may use: a fake server on the loopback interface, and no endpoint of the developer's own."""

from collections.abc import AsyncIterator

import pytest

from r2mad.models.fake_server import FakeServer


@pytest.fixture(autouse=True)
def _no_endpoint_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def fake() -> AsyncIterator[FakeServer]:
    """A fake server with its defaults; tests replace its `settings`."""
    async with FakeServer() as server:
        yield server
