"""Every fault of the fake server, alone and mixed: each call ends, and what failed is known by its name."""

import asyncio
import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from r2mad.errors import (
    BadResponseError,
    CallTimeoutError,
    ConnectionFailedError,
    ModelError,
    RateLimitedError,
    ServerFaultError,
    boundary,
)
from r2mad.models import Endpoint, OpenAIModel
from r2mad.models._retry import LONGEST_RETRY_AFTER, Patience, Refusal, retry_after
from r2mad.models.fake_server import FAULTS, FakeServer, Settings, parse_faults
from r2mad.types import Completion, Message, Request, Sampling

ERRORS: dict[str, type[ModelError]] = {
    "429": RateLimitedError,
    "500": ServerFaultError,
    "hang": CallTimeoutError,
    "drop": ConnectionFailedError,
    "malformed": BadResponseError,
    "empty": BadResponseError,
}


def ask(seed: int = 1) -> Request:
    return Request((Message("user", "Which?\n(A) one\n(B) two"),), Sampling(max_tokens=90), seed)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("r2mad.models._retry.FIRST_WAIT", 0.01)


def endpoint(server: FakeServer, **how: Any) -> Endpoint:
    return Endpoint(server.base_url, **{"timeout": 10, "max_retries": 3, **how})


@pytest.mark.parametrize("fault", sorted(ERRORS))
async def test_a_fault_that_stays_is_an_error_of_its_own(fake: FakeServer, fault: str) -> None:
    fake.settings = Settings(faults={fault: 1.0}, retry_after=0.02)
    async with OpenAIModel("fake", endpoint(fake, timeout=0.2 if fault == "hang" else 10)) as model:
        with pytest.raises(ERRORS[fault]) as caught:
            await model.complete(ask())
    assert type(caught.value) is ERRORS[fault]
    assert f"{fake.base_url.removeprefix('http://')}/chat/completions" in str(caught.value)
    assert len(fake.log) == (2 if fault == "hang" else 4)  # a time-out gets one more chance only
    assert {entry.fault for entry in fake.log} == {fault}


@pytest.mark.parametrize("fault", sorted(ERRORS))
async def test_a_fault_that_passes_is_survived(fake: FakeServer, fault: str) -> None:
    fake.settings = Settings(faults={fault: 1.0}, fault_first=1 if fault == "hang" else 3, retry_after=0.02)
    async with OpenAIModel("fake", endpoint(fake, timeout=0.5 if fault == "hang" else 10)) as model:
        got = await model.complete(ask())
        assert got.text
        assert got.seconds >= sum(entry.seconds for entry in fake.log) * 0.9  # retries included


async def test_truncation_is_a_reply(fake: FakeServer) -> None:
    fake.settings = Settings(faults={"truncate": 1.0})
    async with OpenAIModel("fake", endpoint(fake)) as model:
        got = await model.complete(ask())
    assert got.finish_reason == "length"
    assert "((" not in got.text
    assert len(fake.log) == 1


async def test_all_mixed_at_a_fifth(fake: FakeServer) -> None:
    fake.settings = Settings(faults=parse_faults("", 0.2), retry_after=0.02)
    async with OpenAIModel("fake", endpoint(fake, timeout=0.5, max_retries=5)) as model:
        start = time.perf_counter()
        got = await asyncio.gather(*(boundary(model.complete(ask(seed))) for seed in range(300)))
    assert time.perf_counter() - start < 20
    assert {entry.fault for entry in fake.log} == {None, *FAULTS}
    share = sum(entry.fault is not None for entry in fake.log) / len(fake.log)
    assert 0.12 < share < 0.28
    assert sum(isinstance(one, Completion) for one in got) >= 295
    assert fake.in_flight == 0


async def test_faults_do_not_depend_on_order(fake: FakeServer) -> None:
    async def run(seeds: list[int]) -> dict[int, list[str | None]]:
        fake.reset()
        async with OpenAIModel("fake", endpoint(fake)) as model:
            await asyncio.gather(*(boundary(model.complete(ask(seed))) for seed in seeds))
        faults: dict[int, list[str | None]] = {}
        for entry in sorted(fake.log, key=lambda entry: entry.attempt):
            faults.setdefault(entry.body["seed"], []).append(entry.fault)
        return faults

    fake.settings = Settings(faults=parse_faults("500,malformed,empty", 0.5))
    assert await run(list(range(40))) == await run(list(reversed(range(40))))


async def test_retry_after_is_waited_for(fake: FakeServer) -> None:
    fake.settings = Settings(faults={"429": 1.0}, fault_first=2, retry_after=0.3)
    async with OpenAIModel("fake", endpoint(fake)) as model:
        await model.complete(ask())
    first, second, third = (entry.started for entry in fake.log)
    assert second - first >= 0.29
    assert third - second >= 0.29


async def test_waiting_holds_no_connection(fake: FakeServer) -> None:
    fake.settings = Settings(faults={"429": 1.0}, fault_first=1, retry_after=0.4)
    async with OpenAIModel("fake", endpoint(fake, max_connections=1)) as model:
        slow = asyncio.create_task(model.complete(ask(1)))
        await asyncio.sleep(0.1)
        await model.complete(ask(2))
        assert not slow.done()
        assert (await slow).text


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "2"}, 2),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "9" * 30}, LONGEST_RETRY_AFTER),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25),
        ({"retry-after-ms": "?", "Retry-After": "1"}, 1),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    assert 17 < (retry_after({"Retry-After": date}) or 0) <= 20


def test_waits_double_are_jittered_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("r2mad.models._retry.FIRST_WAIT", 1.0)
    failed = Refusal(ServerFaultError("x"), 500, retry=True)
    rows = []
    for _ in range(300):
        patience = Patience(8)
        rows.append([patience.wait(failed, reached=True) for _ in range(9)])
    for index, most in enumerate([1, 2, 4, 8, 16, 30, 30, 30]):
        column = [row[index] or 0.0 for row in rows]
        assert 0 <= min(column) < most * 0.1
        assert most * 0.9 < max(column) <= most
    assert {row[8] for row in rows} == {None}


async def test_no_retries(fake: FakeServer) -> None:
    fake.settings = Settings(faults={"500": 1.0})
    async with OpenAIModel("fake", endpoint(fake, max_retries=0)) as model:
        with pytest.raises(ServerFaultError):
            await model.complete(ask())
    assert len(fake.log) == 1


async def test_an_unreachable_port_is_reported_soon() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        async with OpenAIModel("m", Endpoint(f"http://127.0.0.1:{taken.getsockname()[1]}/v1")) as model:
            start = time.perf_counter()
            with pytest.raises(ConnectionFailedError, match="cannot connect \\(Connection refused\\)"):
                await model.complete(ask())
    assert time.perf_counter() - start < 2


async def test_an_unknown_host_is_reported_soon() -> None:
    async with OpenAIModel("m", Endpoint("http://no-such-host.invalid/v1", connect_timeout=3)) as model:
        with pytest.raises((ConnectionFailedError, CallTimeoutError), match=r"no-such-host\.invalid/v1/chat"):
            await model.complete(ask())


async def test_a_server_that_never_speaks_times_out_once() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # connects, and then nothing
        async with OpenAIModel("m", Endpoint(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2)) as model:
            with pytest.raises(CallTimeoutError, match=r"within 0\.2 s"):
                await model.complete(ask())


async def test_a_server_that_went_away_is_tried_to_the_end(fake: FakeServer) -> None:
    async with OpenAIModel("fake", endpoint(fake)) as model:
        await model.complete(ask())
        await fake.stop()
        with pytest.raises(ConnectionFailedError):
            await model.complete(ask(2))


async def test_a_cancelled_call_is_cancelled_at_the_server(fake: FakeServer) -> None:
    fake.settings = Settings(faults={"hang": 1.0})
    async with OpenAIModel("fake", endpoint(fake, timeout=60, max_connections=1)) as model:
        call = asyncio.create_task(model.complete(ask()))
        await asyncio.sleep(0.1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        fake.settings = Settings()
        assert (await model.complete(ask(2))).text  # the connection's place is free again
    await asyncio.sleep(0.05)
    assert fake.in_flight == 0
