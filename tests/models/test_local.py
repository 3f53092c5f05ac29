"""The embedded model, for real: answers, repeats itself, says what it can do, and goes away when told to.

The model is pulled into the user's own cache if it is not there (94 MB).
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from r2mad.api import open_table
from r2mad.errors import AuthenticationError, ContextOverflowError, StoreError, UsageError
from r2mad.models import open_model, probe
from r2mad.models.catalogue import DEFAULT, hash_of, pull
from r2mad.models.local import TINY, LocalModel
from r2mad.models.openai import Endpoint
from r2mad.settings import Settings
from r2mad.study.records import dump
from r2mad.types import DebateRecord, Message, Question, Request, Sampling

MODEL = "local/smollm2-135m"
GRASS = Question("What color is healthy grass?")


@pytest.fixture
async def model() -> AsyncIterator[LocalModel]:
    opened = open_model(MODEL)
    assert isinstance(opened, LocalModel)
    yield opened
    await opened.aclose()


def _request(text: str, seed: int = 1, **sampling: Any) -> Request:
    return Request(
        (Message("user", text),), Sampling(**{"max_tokens": 8, "extra_body": TINY.extra_body, **sampling}), seed
    )


def _untimed(record: DebateRecord) -> str:
    data = json.loads(dump(record))
    for name in ("seconds", "started"):
        del data[name]
    for one in data["rounds"]:
        for reply in one["replies"]:
            del reply["seconds"]
    return json.dumps(data, sort_keys=True)


async def test_it_answers_with_usage_and_log_probabilities(model: LocalModel) -> None:
    completion = await model.complete(_request("What color is grass?", logprobs=True))
    assert completion.text
    assert completion.usage.prompt_tokens > 10
    assert completion.usage.completion_tokens <= 8
    assert completion.mean_logprob is not None
    assert completion.mean_logprob < 0


async def test_it_repeats_itself_whatever_was_asked_between(model: LocalModel) -> None:
    """The server keeps what it has read; the same prompt must give the same reply however much of it was kept."""
    asked = _request("Name an animal that lives in the sea, and say why you like it.", seed=7, max_tokens=16)
    first = await model.complete(asked)
    assert (await model.complete(asked)).text == first.text
    for other in ("Name an animal", "Name an animal that lives in the desert.", "Completely different words here."):
        await model.complete(_request(other))
        assert (await model.complete(asked)).text == first.text
    assert (await model.complete(_request(asked.messages[0].content, seed=8, max_tokens=16))).text != first.text


async def test_a_prompt_over_the_context_is_an_error_of_its_own(model: LocalModel) -> None:
    with pytest.raises(ContextOverflowError):
        await model.complete(_request("word " * 6000))


async def test_what_it_can_do_is_found_out(model: LocalModel) -> None:
    found = await probe(model)
    assert (found.logprobs, found.seeds, found.system_role, found.error) == (True, True, True, None)
    assert await model.context() == 4096


async def test_a_debate_takes_the_tiny_pack_and_is_repeatable() -> None:
    records = []
    for _ in range(2):
        async with open_table(MODEL, Settings(cache=":memory:")) as table:
            records.append(await table.hold(GRASS, "mad", seed=5))
    assert _untimed(records[0]) == _untimed(records[1])
    record = records[0]
    assert record.prompts.startswith("tiny:")
    assert record.agents[0].sampling.temperature == TINY.temperature
    assert record.agents[0].sampling.max_tokens == TINY.max_tokens
    assert all(reply.error is None for one in record.rounds for reply in one.replies)


async def test_what_the_user_says_comes_first() -> None:
    settings = Settings(cache=":memory:", temperature=0.0, max_tokens=4, prompts="general", extra_body={"top_k": 5})
    async with open_table(MODEL, settings) as table:
        scene, _ = table.prepare(GRASS, "cot", seed=1)
    sampling = scene.agents[0].sampling
    assert (sampling.temperature, sampling.max_tokens) == (0.0, 4)
    assert sampling.extra_body["top_k"] == 5
    assert scene.pack.name == "general"


async def test_nobody_else_on_the_machine_can_use_the_server(model: LocalModel) -> None:
    await model.complete(_request("Hello"))
    from r2mad.models import local

    (running,) = local._running.values()
    for key, refused in (("guess", True), (running.key, False)):
        async with Endpoint(f"{running.address}/v1", key, max_retries=0) as endpoint:
            body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
            if refused:
                with pytest.raises(AuthenticationError):
                    await endpoint.post("/chat/completions", body)
            else:
                await endpoint.post("/chat/completions", body)


async def test_a_model_that_was_damaged_since_it_was_fetched_is_not_used(tmp_path: Path) -> None:
    source = pull(DEFAULT)
    damaged = tmp_path / source.name
    damaged.write_bytes(source.read_bytes()[:-1] + b"\x00")
    damaged.with_name(damaged.name + ".json").write_text(json.dumps({"sha256": hash_of(source)}))
    model = open_model(f"local/{damaged}")
    with pytest.raises(StoreError, match="damaged"):
        _ = model.identity
    await model.aclose()


async def test_agents_share_one_server_and_it_ends_with_them() -> None:
    one, two = open_model(MODEL), open_model(MODEL)
    try:
        await asyncio.gather(*(model.complete(_request("Hello", seed)) for seed, model in enumerate([one, two])))
        from r2mad.models import local

        assert len(local._running) == 1
        await one.aclose()
        assert len(local._running) == 1
        await two.complete(_request("Hello again"))
    finally:
        await one.aclose()
        await two.aclose()
        await two.aclose()
    assert not local._running


async def test_a_damaged_file_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "damaged.gguf"
    path.write_bytes(b"GGUF" + b"\xff" * 5000)
    model = open_model(f"local/{path}")
    with pytest.raises(UsageError, match="cannot load"):
        await model.complete(_request("Hello"))
    await model.aclose()


def test_ctrl_c_ends_it_cleanly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "r2mad", "demo", "--limit", "8", "--log-dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        process.stderr.readline()  # the first debate is over
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in out + err
