"""The client against real sockets: what it sends, where, and what it learns from refusals."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from r2mad.errors import (
    AuthenticationError,
    BadResponseError,
    ContextOverflowError,
    EndpointError,
    ModelNotFoundError,
    RateLimitedError,
    RequestRejectedError,
    ServerFaultError,
    UsageError,
)
from r2mad.models import Endpoint, ModelOptions, OpenAIModel, open_model, probe
from r2mad.models.fake_server import FakeServer, Settings
from r2mad.models.openai import fold_system
from r2mad.types import Message, Request, Sampling

Answer = Callable[[dict[str, Any]], Any]


def ask(text: str = "Which?\n(A) one\n(B) two", seed: int = 1, system: str = "You are careful.", **how: Any) -> Request:
    return Request((Message("system", system), Message("user", text)), Sampling(**{"max_tokens": 90, **how}), seed)


def reply(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "((A))"}, "finish_reason": "stop", **fields}]}


class Canned:
    """A server that says whatever a test wants it to."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[dict[str, Any]] = []
        self.seen: list[web.BaseRequest] = []
        self.answer: Answer = lambda body: reply()

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.seen.append(request)
        said = self.answer(body)
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


def refuse(status: int, message: str, **fields: Any) -> web.Response:
    return web.json_response({"error": {"message": message, **fields}}, status=status)


async def test_body_holds_what_was_asked_and_nothing_else(canned: Canned) -> None:
    async with OpenAIModel("org/model", Endpoint(canned.url, "key-123")) as model:
        await model.complete(ask(temperature=0.7, top_p=0.9, seed=5))
        await model.complete(ask(logprobs=True, extra_body={"chat_template_kwargs": {"enable_thinking": False}}))
    assert canned.bodies[0] == {
        "model": "org/model",
        "messages": [
            {"role": "system", "content": "You are careful."},
            {"role": "user", "content": "Which?\n(A) one\n(B) two"},
        ],
        "temperature": 0.7,
        "top_p": 0.9,
        "max_tokens": 90,
        "seed": 5,
    }
    assert canned.bodies[1]["logprobs"] is True
    assert canned.bodies[1]["top_logprobs"] == 1
    assert canned.bodies[1]["chat_template_kwargs"] == {"enable_thinking": False}
    assert canned.seen[0].headers["Authorization"] == "Bearer key-123"
    assert model.name == "openai/org/model"


async def test_no_key_sends_no_authorization(canned: Canned) -> None:
    async with OpenAIModel("m", Endpoint(canned.url)) as model:
        await model.complete(ask())
    assert "Authorization" not in canned.seen[0].headers


@pytest.mark.parametrize("body", [{"n": 2}, {"stream": True}, {"x": object()}, {"x": float("nan")}])
async def test_extra_body_that_cannot_be(canned: Canned, body: dict[str, Any]) -> None:
    async with OpenAIModel("m", Endpoint(canned.url)) as model:
        with pytest.raises(UsageError, match="extra_body"):
            await model.complete(ask(extra_body=body))
    assert not canned.bodies


@pytest.mark.parametrize("served", ["v1", "bare"])
@pytest.mark.parametrize("given", ["/v1", "/v1/", "", "/", "/v1/chat/completions"])
async def test_v1_present_or_absent(fake: FakeServer, served: str, given: str) -> None:
    fake.settings = Settings(paths=served)
    url = fake.base_url.removesuffix("/v1") + given
    async with OpenAIModel("fake", Endpoint(url)) as model:
        await model.complete(ask())
        await model.complete(ask(seed=2))
        assert model.identity == f"fake at {fake.base_url.removesuffix('/v1')}"
    tried = [entry.status for entry in fake.log]
    assert tried in ([200, 200], [404, 200, 200])  # what worked is remembered
    assert fake.log[-1].path == ("/v1/chat/completions" if served == "v1" else "/chat/completions")


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8000", "ftp://host/v1", "http://", "http://ho st/v1", "http://host:port", "//host", "http://[::1"],
)
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(UsageError, match="not a base URL"):
        Endpoint(url)


@pytest.mark.parametrize("key", ["a\nb", "schlüssel", "a\x00"])
def test_a_key_that_no_header_carries_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(UsageError) as caught:
        Endpoint("http://host", key)
    assert key not in str(caught.value)


async def test_credentials_in_the_url_are_used_and_never_shown(canned: Canned) -> None:
    canned.answer = lambda body: refuse(403, "user joe with pass-word may not")
    url = canned.url.replace("://", "://joe:pass-word@") + "?api-version=3"
    async with OpenAIModel("m", Endpoint(url)) as model:
        assert "pass-word" not in model.identity
        with pytest.raises(AuthenticationError) as caught:
            await model.complete(ask())
    assert "pass-word" not in str(caught.value)
    assert canned.seen[0].headers["Authorization"].startswith("Basic ")
    assert canned.seen[0].query_string == "api-version=3"


async def test_wrong_key(fake: FakeServer) -> None:
    fake.settings = Settings(api_key="right")
    async with OpenAIModel("fake", Endpoint(fake.base_url, "wrong-key-8451")) as model:
        with pytest.raises(AuthenticationError, match="Incorrect API key") as caught:
            await model.complete(ask())
    assert "8451" not in str(caught.value)
    assert "/v1/chat/completions" in str(caught.value)
    assert len(fake.log) == 1
    async with OpenAIModel("fake", Endpoint(fake.base_url, "right")) as model:
        assert (await model.complete(ask())).text


async def test_a_key_that_the_server_echoes_is_blotted_out(canned: Canned, caplog: pytest.LogCaptureFixture) -> None:
    canned.answer = lambda body: refuse(500, "no luck with sk-secret-1\x1b[31m\nat all" + "!" * 2000)
    async with OpenAIModel("m", Endpoint(canned.url, "sk-secret-1", max_retries=1)) as model:
        with pytest.raises(ServerFaultError, match=r"no luck with … \[31m at all!!!") as caught:
            await model.complete(ask())
    assert len(str(caught.value)) < 450
    assert "\n" not in str(caught.value)
    assert "sk-secret" not in caplog.text


@pytest.mark.parametrize(
    ("status", "fields", "error", "calls"),
    [
        (400, {}, RequestRejectedError, 1),
        (402, {}, EndpointError, 1),
        (403, {}, AuthenticationError, 1),
        (404, {"type": "model"}, ModelNotFoundError, 2),  # both paths
        (408, {}, ServerFaultError, 3),
        (409, {}, ServerFaultError, 3),
        (422, {}, RequestRejectedError, 1),
        (429, {}, RateLimitedError, 3),
        (429, {"code": "insufficient_quota"}, EndpointError, 1),
        (503, {}, ServerFaultError, 3),
    ],
)
async def test_statuses(canned: Canned, status: int, fields: Any, error: type[Exception], calls: int) -> None:
    canned.answer = lambda body: refuse(status, "because", **fields)
    async with OpenAIModel("m", Endpoint(canned.url, max_retries=2)) as model:
        with pytest.raises(error, match=rf"^{status} from 127\.0\.0\.1:[0-9]+/v1/chat/completions: because") as caught:
            await model.complete(ask())
    assert type(caught.value) is error
    assert len(canned.bodies) == calls


async def test_a_redirect_is_not_followed(canned: Canned) -> None:
    canned.answer = lambda body: web.Response(status=307, headers={"Location": "https://elsewhere.example/v1"})
    async with OpenAIModel("m", Endpoint(canned.url)) as model:
        with pytest.raises(EndpointError, match=r"elsewhere\.example"):
            await model.complete(ask())


async def test_an_error_under_a_200(canned: Canned) -> None:
    canned.answer = lambda body: {"error": {"message": "upstream is down", "code": 502}}
    async with OpenAIModel("m", Endpoint(canned.url, max_retries=1)) as model:
        with pytest.raises(ServerFaultError, match=r"502 .* upstream is down"):
            await model.complete(ask())
        canned.answer = lambda body: {"error": {"message": "slow down", "code": 429}}
        with pytest.raises(RateLimitedError):
            await model.complete(ask())
    assert len(canned.bodies) == 4


async def test_usage_reasoning_and_logprobs_come_through(fake: FakeServer) -> None:
    fake.settings = Settings(reasoning_tokens=7, count_cached=True)
    async with OpenAIModel("fake", Endpoint(fake.base_url)) as model:
        first = await model.complete(ask(logprobs=True))
        again = await model.complete(ask(logprobs=True))
    assert (first.usage.prompt_tokens, first.usage.completion_tokens) == (8, 67)
    assert (first.usage.reasoning_tokens, first.usage.cached_tokens) == (7, 0)
    assert again.usage.cached_tokens == 8
    assert again.text == first.text
    assert len((first.reasoning or "").split()) == 7
    assert first.mean_logprob is not None
    assert first.mean_top_logprob is not None
    assert first.mean_logprob <= first.mean_top_logprob < 0
    assert first.model == "fake"
    assert first.seconds > 0


async def test_missing_usage_is_zero(fake: FakeServer) -> None:
    fake.settings = Settings(no_usage=True)
    async with OpenAIModel("fake", Endpoint(fake.base_url)) as model:
        assert (await model.complete(ask())).usage.total_tokens == 0


async def test_a_cut_reply_is_a_reply(fake: FakeServer) -> None:
    async with OpenAIModel("fake", Endpoint(fake.base_url)) as model:
        got = await model.complete(ask(max_tokens=10))
    assert got.finish_reason == "length"
    assert got.usage.completion_tokens == 10


async def test_missing_logprobs_are_said_once(fake: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    fake.settings = Settings(ignore_logprobs=True)
    async with OpenAIModel("fake", Endpoint(fake.base_url)) as model:
        got = await asyncio.gather(*(model.complete(ask(logprobs=True, seed=seed)) for seed in range(5)))
    assert {one.mean_logprob for one in got} == {None}
    assert caplog.text.count("log-probabilities were asked for") == 1


@pytest.mark.parametrize("settings", [Settings(no_system=True), Settings(no_system=True, alternate=True)])
async def test_a_refused_system_role_is_folded(
    fake: FakeServer, caplog: pytest.LogCaptureFixture, settings: Settings
) -> None:
    fake.settings = settings
    async with OpenAIModel("fake", Endpoint(fake.base_url)) as model:
        await asyncio.gather(*(model.complete(ask(seed=seed)) for seed in range(4)))
        fake.reset()
        await model.complete(ask(seed=9))
    assert [entry.status for entry in fake.log] == [200]  # remembered
    assert fake.log[0].body["messages"] == [{"role": "user", "content": "You are careful.\n\nWhich?\n(A) one\n(B) two"}]
    assert caplog.text.count("takes no system role") == 1


def test_folding_keeps_every_word_and_alternates() -> None:
    turns = (
        Message("system", "s"), Message("user", "u"), Message("user", "v"), Message("assistant", "a"),
        Message("assistant", "b"), Message("system", "late"), Message("user", "w"),
    )  # fmt: skip
    assert fold_system(turns) == (
        Message("user", "s\n\nu\n\nv"), Message("assistant", "a\n\nb"), Message("user", "late\n\nw"),
    )  # fmt: skip
    assert fold_system(fold_system(turns)) == fold_system(turns)
    assert fold_system(()) == ()


async def test_a_system_role_refused_for_good_ends(canned: Canned) -> None:
    canned.answer = lambda body: refuse(400, "System role not supported")
    async with OpenAIModel("m", Endpoint(canned.url)) as model:
        with pytest.raises(RequestRejectedError, match="System role"):
            await model.complete(ask())
    assert len(canned.bodies) == 2


async def test_parameters_that_a_model_refuses(fake: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    fake.settings = Settings(refuse_params="max_tokens,temperature,seed,logprobs,top_logprobs,top_p")
    async with OpenAIModel("fake", Endpoint(fake.base_url)) as model:
        await asyncio.gather(*(model.complete(ask(seed=seed, logprobs=True)) for seed in range(3)))
        fake.reset()
        await model.complete(ask(logprobs=True))
    (entry,) = fake.log
    assert set(entry.body) == {"model", "messages", "max_completion_tokens"}
    assert caplog.text.count("max_completion_tokens in place") == 1
    assert caplog.text.count("refuses a seed") == 1


@pytest.mark.parametrize("style", ["llama.cpp", "vllm", "openai"])
async def test_context_overflow(fake: FakeServer, style: str) -> None:
    fake.settings = Settings(context=50, context_style=style)
    async with OpenAIModel("fake", Endpoint(fake.base_url)) as model:
        with pytest.raises(ContextOverflowError) as caught:
            await model.complete(ask("word " * 60))
    assert (caught.value.limit, caught.value.prompt_tokens) == (50, 63)
    assert len(fake.log) == 1


async def test_unknown_model_is_not_asked_for_elsewhere(fake: FakeServer) -> None:
    async with OpenAIModel("other", Endpoint(fake.base_url)) as model:
        with pytest.raises(ModelNotFoundError, match="`other` does not exist"):
            await model.complete(ask())
    assert len(fake.log) == 1


async def test_post_serves_embeddings_too(fake: FakeServer) -> None:
    async with Endpoint(fake.base_url) as endpoint:
        got = await endpoint.post("/embeddings", {"model": "fake", "input": ["a b", "a b", "c"]})
    vectors = [one["embedding"] for one in got["data"]]
    assert vectors[0] == vectors[1] != vectors[2]
    assert sum(value * value for value in vectors[2]) == pytest.approx(1)


async def test_post_wants_an_object(canned: Canned) -> None:
    canned.answer = lambda body: [1]
    async with Endpoint(canned.url, max_retries=1) as endpoint:
        with pytest.raises(BadResponseError, match="not an object"):
            await endpoint.post("/embeddings", {})


async def test_connections_are_capped_and_shared(fake: FakeServer) -> None:
    fake.settings = Settings(latency_ms=10)
    options = ModelOptions(base_url=fake.base_url, max_connections=5)
    models = [open_model("openai/fake", options) for _ in range(3)]
    await asyncio.gather(*(model.complete(ask(seed=seed)) for seed in range(10) for model in models))
    assert fake.high_water == 5
    await models[0].aclose()
    await models[0].aclose()
    await models[1].complete(ask())  # the pool lives on for the others
    for model in models:
        await model.aclose()
    await models[2].complete(ask())  # and opens again
    await models[2].aclose()


def test_one_model_in_two_event_loops() -> None:
    async def run(model: OpenAIModel) -> list[str]:
        try:  # more calls than connections, so that the semaphore is bound to each loop
            return [one.text for one in await asyncio.gather(*(model.complete(ask(seed=seed)) for seed in range(5)))]
        finally:
            await model.aclose()

    with FakeServer.spawn() as server:
        model = OpenAIModel("fake", Endpoint(server.base_url, max_connections=2))
        assert asyncio.run(run(model)) == asyncio.run(run(model))


async def test_closing_under_calls_that_queue(fake: FakeServer) -> None:
    fake.settings = Settings(latency_ms=50)
    model = OpenAIModel("fake", Endpoint(fake.base_url, max_connections=1))
    calls = [asyncio.create_task(model.complete(ask(seed=seed))) for seed in range(3)]
    await asyncio.sleep(0.02)
    await model.aclose()
    assert all([(await call).text for call in calls])  # the queued ones open anew; the one in flight is retried
    await model.endpoint.aclose()


async def test_what_lone_surrogates_do(fake: FakeServer) -> None:
    async with OpenAIModel("fake", Endpoint(fake.base_url)) as model:
        assert (await model.complete(ask("odd \ud800 text"))).text


async def test_probe_believes_what_it_sees(fake: FakeServer, canned: Canned) -> None:
    async with OpenAIModel("fake", Endpoint(fake.base_url)) as model:
        found = await probe(model)
        assert (found.logprobs, found.seeds, found.system_role, found.error) == (True, True, True, None)
        fake.settings = Settings(ignore_seed=True, ignore_logprobs=True)
        found = await probe(model)
        assert (found.logprobs, found.seeds, found.system_role) == (False, False, True)
        fake.settings = Settings(no_system=True)
        assert not (await probe(model)).system_role
    async with OpenAIModel("m", Endpoint(canned.url)) as model:
        assert (await probe(model)).seeds is None  # always the same text
        canned.answer = lambda body: refuse(401, "no")
        found = await probe(model)
        assert (found.system_role, found.seeds) == (False, None)
        assert "401" in (found.error or "")


async def test_retries_are_logged_at_once(canned: Canned, caplog: pytest.LogCaptureFixture) -> None:
    logged: list[str] = []

    def answer(body: dict[str, Any]) -> Any:
        logged.append(caplog.text)
        return refuse(500, "not yet") if len(canned.bodies) < 3 else reply()

    canned.answer = answer
    with caplog.at_level(logging.WARNING):
        async with OpenAIModel("m", Endpoint(canned.url)) as model:
            await model.complete(ask())
    assert "not yet; retry 1 of 5 in" in logged[1]
    assert "retry 2 of 5" in logged[2]
