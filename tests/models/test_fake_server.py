"""The fake server as others use it: as a command, over plain HTTP, by the official SDK, and fast."""

import asyncio
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

import r2mad
from r2mad.models import Endpoint, OpenAIModel
from r2mad.models._fake_settings import read_flags
from r2mad.models.fake_server import FAULTS, FakeServer, Settings, parse_faults
from r2mad.types import Message, Request, Sampling

QUESTION = "Which?\n(A) one\n(B) two"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(r2mad.__path__[0]).parent)}


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "fake", "messages": [{"role": "user", "content": QUESTION}], "seed": 3, **fields}


async def post(server: FakeServer, sent: Any, path: str = "/chat/completions") -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.post(server.base_url + path, json=sent) as response:
        return response.status, await response.json()


async def test_the_official_sdk_is_served(fake: FakeServer) -> None:
    async with openai.AsyncOpenAI(base_url=fake.base_url, api_key="any") as client:
        got = await client.chat.completions.create(
            model="fake", messages=[{"role": "user", "content": QUESTION}], seed=1, logprobs=True, top_logprobs=1
        )
        assert "((" in (got.choices[0].message.content or "")
        assert got.choices[0].logprobs is not None
        assert got.usage is not None
        assert got.usage.total_tokens == 65
        assert [model.id async for model in client.models.list()] == ["fake"]
        vectors = await client.embeddings.create(model="fake", input=["a b", "a b"])
        assert vectors.data[0].embedding == vectors.data[1].embedding
        assert len(vectors.data[0].embedding) == 64
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(model="none", messages=[{"role": "user", "content": "x"}])


async def test_the_same_request_gets_the_same_reply_in_any_process(fake: FakeServer) -> None:
    sent = body(logprobs=True, top_logprobs=1)
    here = await post(fake, sent)
    with FakeServer.spawn() as spawned:
        url = spawned.base_url + "/chat/completions"
        async with aiohttp.ClientSession() as session, session.post(url, json=sent) as response:
            assert (response.status, await response.json()) == here
        (entry,) = spawned.read_log()
        assert entry["body"] == sent
        assert (entry["status"], entry["fault"], entry["attempt"]) == (200, None, 0)
        assert entry["seconds"] > 0
        assert spawned.health() == {"status": "ok", "requests": 1, "in_flight": 0, "high_water": 1}
        spawned.reset()
        assert spawned.read_log() == []
    assert spawned.process.returncode is not None


def test_a_spawned_server_ends_with_its_parent() -> None:
    with FakeServer.spawn() as server:
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert server.process.wait(timeout=10) == 0


def test_the_command_teaches_and_prints_its_url() -> None:
    command = [sys.executable, "-m", "r2mad.models.fake_server"]
    help = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True, env=ENVIRONMENT).stdout
    for word in ("--latency-ms", "--fault-rate", "GET /log", "examples:", *FAULTS):
        assert word in help
    bad = subprocess.run([*command, "--fault", "fire"], capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert bad.returncode == 2
    assert "no such fault: 'fire'" in bad.stderr
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        assert url.endswith("/v1")
        port = url.split(":")[2].removesuffix("/v1")
        taken = subprocess.run([*command, "--port", port], capture_output=True, text=True, check=False, env=ENVIRONMENT)
        assert taken.returncode == 1
        assert taken.stderr.count("\n") == 1
        process.terminate()


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(latency_ms=5.5, no_system=True, model="a,b", context_style="vllm", retry_after=-1.0),
        Settings(faults={"429": 0.125, "hang": 0.25}),
    ],
)
def test_settings_survive_the_command_line(settings: Settings) -> None:
    assert read_flags(settings.flags()) == (settings, False)


def test_faults_as_text() -> None:
    assert parse_faults("") == {}
    assert parse_faults("hang") == {"hang": 1.0}
    assert parse_faults("429:0.05, 500:0.1,hang,drop", 0.2) == {"429": 0.05, "500": 0.1, "hang": 0.1, "drop": 0.1}
    assert set(parse_faults("", 0.2)) == set(FAULTS)
    assert sum(parse_faults("", 0.2).values()) == pytest.approx(0.2)
    for bad in ("fire", "429:2", "429:x", "429:-0.1", "429:0.6,500:0.6"):
        with pytest.raises(ValueError, match=r".+"):
            parse_faults(bad)


async def test_latency_in_all_its_parts(fake: FakeServer) -> None:
    fake.settings = Settings(latency_ms=50, ms_per_token=1, ms_per_prompt_token=10)
    start = time.perf_counter()
    await post(fake, body())
    assert 0.155 < time.perf_counter() - start < 3  # 50 + 60 + 5 × 10 ms


async def test_bad_requests_are_told_so(fake: FakeServer) -> None:
    bad: list[Any] = [{}, {"messages": []}, {"messages": "x"}, {"messages": [1]}, [1], "x"]
    for sent in bad:
        status, said = await post(fake, sent if not isinstance(sent, dict) else {"model": "fake", **sent})
        assert status == 400
        assert said["error"]["message"]
    assert (await post(fake, body(stream=True)))[0] == 400
    assert (await post(fake, body(n=3)))[0] == 400
    assert (await post(fake, {}, "/elsewhere"))[0] == 404
    assert (await post(fake, {"input": 3}, "/embeddings"))[0] == 400


async def test_seed_counts_unless_greedy_or_ignored(fake: FakeServer) -> None:
    async def texts(**how: Any) -> int:
        return len(
            {(await post(fake, body(seed=seed, **how)))[1]["choices"][0]["message"]["content"] for seed in range(5)}
        )

    assert await texts() == 5
    assert await texts(temperature=0) == 1
    fake.settings = Settings(ignore_seed=True)
    replies = [(await post(fake, body()))[1]["choices"][0]["message"]["content"] for _ in range(5)]
    assert len(set(replies)) == 5


async def test_high_water(fake: FakeServer) -> None:
    fake.settings = Settings(latency_ms=50)
    await asyncio.gather(*(post(fake, body(seed=seed)) for seed in range(12)))
    assert fake.high_water == 12
    assert max(entry.in_flight for entry in fake.log) == 12
    fake.reset()
    assert fake.high_water == 0


async def test_the_log_can_leave_bodies_out(fake: FakeServer) -> None:
    fake.settings = replace(fake.settings, no_bodies=True)
    await post(fake, body())
    assert fake.log[0].body is None
    url = fake.base_url.removesuffix("/v1") + "/log"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert json.loads(await response.text())["path"] == "/v1/chat/completions"


def test_it_is_fast() -> None:
    async def run(url: str) -> float:
        async with OpenAIModel("fake", Endpoint(url)) as model:
            requests = [Request((Message("user", QUESTION),), Sampling(), seed) for seed in range(1000)]
            start = time.process_time()
            await asyncio.gather(*(model.complete(request) for request in requests))
            return (time.process_time() - start) / len(requests)

    with FakeServer.spawn() as server:
        start = time.perf_counter()
        cpu = asyncio.run(run(server.base_url))
        rate = 1000 / (time.perf_counter() - start)
    assert rate > 400  # about 3,000 on a core of its own; CI's cores are shared
    assert cpu < 0.003  # seconds of CPU a call on our side; about 0.0002
