"""The client of /v1/embeddings against real sockets: what it sends, what it reads, what it makes of refusals."""

import asyncio
import base64
import math
from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from r2mad.embed import OpenAIEmbedder, open_embedder
from r2mad.embed.openai import BATCH, LARGEST, PIECE, open_openai
from r2mad.errors import (
    AuthenticationError,
    BadResponseError,
    ConnectionFailedError,
    ModelError,
    RateLimitedError,
    RequestRejectedError,
    ServerFaultError,
    UsageError,
)
from r2mad.models import Endpoint, ModelOptions, open_model
from r2mad.models._slots import place
from r2mad.models.fake_server import FakeServer, Settings
from r2mad.models.openai import OpenAIModel
from r2mad.protocols import Embedder
from tests.embed.conftest import Canned, refuse, reply

if TYPE_CHECKING:
    from r2mad.experience import Vectors

STORY = "Three agents talk about a spider and its legs, and each of them gives another number. "


def embedder(url: str, **how: Any) -> OpenAIEmbedder:
    return OpenAIEmbedder("fake", Endpoint(url, max_retries=2, timeout=10), **how)


async def test_it_does_what_an_embedder_must(fake: FakeServer) -> None:
    one = embedder(fake.base_url)
    assert await one.dimension() == 64
    assert isinstance(one, Embedder)
    assert one.name == "openai/fake/64"
    vectors = await one.embed(["legs of a spider", "the legs of a spider", "share prices"])
    assert vectors.shape == (3, 64)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-6)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
    assert (await one.embed([])).shape == (0, 64)
    await one.aclose()
    await one.aclose()
    assert np.array_equal(await one.embed(["share prices"]), vectors[2:])  # it opens again
    await one.aclose()


async def test_the_name_is_known_once_the_dimension_is(fake: FakeServer) -> None:
    one = embedder(fake.base_url)
    with pytest.raises(UsageError, match="await dimension"):
        _ = one.name
    await one.embed(["a"])
    assert one.name == "openai/fake/64"
    await one.dimension()
    assert len(fake.log) == 1
    await one.aclose()


async def test_the_request_holds_what_servers_know(canned: Canned) -> None:
    one = OpenAIEmbedder("BAAI/bge-m3", Endpoint(canned.url))
    await one.embed(["one", " two\n"])
    assert canned.bodies == [{"model": "BAAI/bge-m3", "input": ["one", "two"], "encoding_format": "float"}]
    await one.aclose()


async def test_blank_texts_are_zeros_and_not_sent(canned: Canned) -> None:
    one = embedder(canned.url)
    vectors = await one.embed(["", "abc", " \n\t", "\u2003"])
    assert canned.asked == [["abc"]]
    assert vectors.any(axis=1).tolist() == [False, True, False, False]
    assert (await one.embed([" "])).tolist() == [[0, 0]]
    assert canned.asked == [["abc"]]
    await one.aclose()


async def test_blank_texts_alone_ask_for_the_dimension(canned: Canned) -> None:
    one = embedder(canned.url)
    assert (await one.embed(["", " "])).tolist() == [[0, 0], [0, 0]]
    assert canned.asked == [["dimension"]]
    await one.aclose()


async def test_vectors_are_made_unit_vectors_and_put_in_order(canned: Canned) -> None:
    canned.answer = lambda texts: reply([[5, 0, 0], [0, 0, 0], [3.0, 4.0, 0]], [2, 1, 0])
    one = embedder(canned.url)
    assert await one.embed(["a", "b", "c"]) == pytest.approx(np.array([[0.6, 0.8, 0], [0, 0, 0], [1, 0, 0]]))
    await one.aclose()


async def test_base64_is_read_though_numbers_were_asked_for(canned: Canned) -> None:
    packed = base64.b64encode(array("f", [3.0, 4.0]).tobytes()).decode()
    canned.answer = lambda texts: reply([packed] * len(texts))
    one = embedder(canned.url)
    assert await one.embed(["a", "b"]) == pytest.approx(np.array([[0.6, 0.8]] * 2))
    await one.aclose()


async def test_a_reply_without_indices_is_in_order(canned: Canned) -> None:
    canned.answer = lambda texts: {"data": [{"embedding": [1, 0]}, {"embedding": [0, 1]}]}
    one = embedder(canned.url)
    assert (await one.embed(["a", "b"])).tolist() == [[1, 0], [0, 1]]
    await one.aclose()


@pytest.mark.parametrize(
    "said",
    [
        [],
        {"data": None},
        {"data": [1, 2]},
        reply([[1, 0]]),
        reply([[1, 0]] * 3),
        reply([[1, 0]] * 2, [0, 0]),
        reply([[1, 0]] * 2, [1, 2]),
        reply([[1, 0]] * 2, [0, "1"]),
        reply([[1, 0]] * 2, [False, True]),
        reply([[1, 0], [1, 0, 0]]),
        reply([[], []]),
        reply([1, 0]),
        reply([None, None]),
        reply([["1", "0"], ["0", "1"]]),
        reply([[None, 1], [1, 0]]),
        reply([[[1, 0]], [[0, 1]]]),
        reply([[math.nan, 1], [1, 0]]),
        reply([[math.inf, 1], [1, 0]]),
        reply([[1e308, 1e308], [1, 0]]),
        reply([[10**400, 1], [1, 0]]),
        reply(["no base64", "=="]),
        reply(["AAAA", "AAAA"]),
        reply(["", ""]),
        reply([base64.b64encode(array("f", [math.nan, 1]).tobytes()).decode(), [1, 0]]),
    ],
    ids=lambda said: str(said)[:60],
)
async def test_a_reply_that_makes_no_sense_is_asked_for_again_and_then_an_error(canned: Canned, said: Any) -> None:
    canned.answer = lambda texts: said
    one = embedder(canned.url)
    with pytest.raises(BadResponseError):
        await one.embed(["a", "b"])
    assert len(canned.bodies) == 3
    canned.answer = lambda texts: reply([[1, 0], [0, 1]])
    assert (await one.embed(["a", "b"])).tolist() == [[1, 0], [0, 1]]
    await one.aclose()


async def test_another_dimension_half_way_is_an_error(canned: Canned) -> None:
    one = embedder(canned.url)
    await one.dimension()
    canned.answer = lambda texts: reply([[1, 0, 0]] * len(texts))
    with pytest.raises(BadResponseError, match="3 numbers came where they had 2 before"):
        await one.embed(["a"])
    assert await one.dimension() == 2
    await one.aclose()


async def test_texts_go_out_in_batches_bounded_by_number_and_size(canned: Canned) -> None:
    one = embedder(canned.url, honest=True)
    await one.embed([f"text {number}" for number in range(2 * BATCH + 3)])
    assert [len(texts) for texts in canned.asked] == [BATCH, BATCH, 3]
    canned.bodies.clear()
    await one.embed([f"{number:02} ".ljust(PIECE - 1, "x") for number in range(30)])
    assert sum(map(len, canned.asked)) == 30
    assert len(canned.bodies) == math.ceil(30 / (LARGEST // (PIECE - 1)))
    assert all(sum(map(len, texts)) <= LARGEST for texts in canned.asked)
    await one.aclose()


async def test_what_is_asked_at_the_same_moment_is_one_request(canned: Canned) -> None:
    one = embedder(canned.url)
    got = await asyncio.gather(*(one.embed([f"{'x' * number}", f"{'y' * number}"]) for number in range(1, 9)))
    assert [len(texts) for texts in canned.asked] == [16]
    for number, vectors in enumerate(got, start=1):
        assert vectors == pytest.approx(np.array([[number, 1]] * 2) / math.hypot(number, 1))
    await one.aclose()


async def test_older_debates_go_first(canned: Canned) -> None:
    one = OpenAIEmbedder("fake", Endpoint(canned.url, max_connections=1))

    async def ask(number: int) -> None:
        place.set(number)
        await one.embed([f"debate {number} text {index}" for index in range(BATCH)])

    await asyncio.gather(*(asyncio.create_task(ask(number)) for number in (3, 1, 2)))
    assert [texts[0].split()[1] for texts in canned.asked] == ["1", "2", "3"]
    await one.aclose()


async def test_a_request_waits_at_the_place_of_its_oldest_debate(
    canned: Canned, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = embedder(canned.url)
    places: list[int] = []
    request = one._request

    async def spy(texts: list[str]) -> "Vectors":
        places.append(place.get())
        return await request(texts)

    async def ask(number: int) -> None:
        place.set(number)
        await one.embed([f"debate {number}"])

    monkeypatch.setattr(one, "_request", spy)
    await asyncio.gather(*(asyncio.create_task(ask(number)) for number in (7, 5, 6)))
    assert places == [5]
    await one.aclose()


async def test_a_request_that_nobody_waits_for_ends(fake: FakeServer) -> None:
    fake.settings = Settings(latency_ms=5000)
    one = embedder(fake.base_url)
    tasks = [asyncio.create_task(one.embed([text])) for text in ("a", "b")]
    await asyncio.sleep(0.1)
    tasks[0].cancel()
    await asyncio.sleep(0.1)
    assert fake.in_flight == 1
    tasks[1].cancel()
    await asyncio.sleep(0.2)
    assert fake.in_flight == 0
    assert not one._requests
    await one.aclose()


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("429", RateLimitedError),
        ("500", ServerFaultError),
        ("malformed", BadResponseError),
        ("drop", ConnectionFailedError),
        ("empty", BadResponseError),
    ],
)
async def test_faults_are_survived_or_known_by_name(fake: FakeServer, fault: str, error: type[ModelError]) -> None:
    fake.settings = Settings(faults={fault: 1.0}, fault_first=2, retry_after=0.02)
    one = embedder(fake.base_url)
    assert (await one.embed(["a b"])).any()
    assert len(fake.log) == 3
    fake.reset()
    fake.settings = Settings(faults={fault: 1.0}, retry_after=0.02)
    with pytest.raises(error) as caught:
        await one.embed(["a b", "c"])
    assert type(caught.value) is error
    assert len(fake.log) == 3
    await one.aclose()


async def test_an_endpoint_that_refuses_all_is_asked_once(fake: FakeServer) -> None:
    fake.settings = Settings(api_key="right")
    one = embedder(fake.base_url)
    with pytest.raises(AuthenticationError):
        await one.embed(["a", "b", "c"])
    assert len(fake.log) == 1
    await one.aclose()


async def test_a_text_that_is_refused_spoils_nothing_for_others(canned: Canned) -> None:
    canned.answer = lambda texts: refuse(400, "bad text") if "bad" in texts else reply([[1, 0]] * len(texts))
    one = embedder(canned.url)
    got = await asyncio.gather(*(one.embed([text]) for text in ("a", "b", "bad", "c")), return_exceptions=True)
    assert [type(each) for each in got] == [np.ndarray, np.ndarray, RequestRejectedError, np.ndarray]
    assert canned.asked == [["a", "b", "bad", "c"], ["a", "b"], ["bad", "c"], ["bad"], ["c"]]
    await one.aclose()


async def test_a_server_that_takes_fewer_texts_at_a_time(canned: Canned) -> None:
    canned.answer = lambda texts: (
        refuse(422, "batch size 32 > maximum allowed batch size 8") if len(texts) > 8 else reply([[1, 0]] * len(texts))
    )
    one = embedder(canned.url)
    assert (await one.embed([f"text {number}" for number in range(BATCH)])).shape == (BATCH, 2)
    await one.aclose()


async def test_half_a_surrogate_pair_can_be_sent(canned: Canned) -> None:
    one = embedder(canned.url)
    await one.embed(["a \ud83d b"])
    assert canned.asked == [["a \ufffd b"]]
    await one.aclose()


async def test_debates_that_ask_for_the_same_text_make_one_request(fake: FakeServer) -> None:
    fake.settings = Settings(latency_ms=30)
    one = open_embedder("openai/fake", ModelOptions(base_url=fake.base_url))

    async def debate(number: int) -> None:
        await one.embed(["the question"])
        await one.embed(["the question", f"what was said in {number}"])

    await asyncio.gather(*(debate(number) for number in range(5)))
    assert [len(entry.body["input"]) for entry in fake.log] == [1, 5]
    assert (one.hits, one.misses) == (9, 6)
    await one.aclose()


async def test_models_and_embedders_of_one_place_share_their_connections(fake: FakeServer) -> None:
    options = ModelOptions(base_url=fake.base_url)
    one, model = open_openai("fake", options), open_model("openai/fake", options)
    assert isinstance(model, OpenAIModel)
    assert one.endpoint is model.endpoint
    await one.embed(["a"])
    await model.aclose()
    await one.embed(["b"])
    await one.aclose()
    assert one.endpoint._session is None


def test_one_embedder_serves_one_loop_after_another() -> None:
    with FakeServer.spawn() as server:
        one = embedder(server.base_url)

        async def use() -> int:
            got = await asyncio.gather(*(one.embed([f"{STORY * 10} {number}"]) for number in range(3)))
            await one.aclose()
            return len(got)

        assert [asyncio.run(use()) for _ in range(2)] == [3, 3]
        assert server.health()["requests"] == 3


def test_a_loop_that_ended_too_soon_leaves_nothing_behind() -> None:
    with FakeServer.spawn() as server:
        one = embedder(server.base_url)

        def ask_and_go() -> None:
            one._ask("never sent")
            loop.stop()

        async def use() -> int:
            vectors = await asyncio.wait_for(one.embed(["a"]), 5)
            await one.aclose()
            return len(vectors)

        loop = asyncio.new_event_loop()
        loop.call_soon(ask_and_go)
        loop.run_forever()
        loop.close()
        assert asyncio.run(use()) == 1
        assert [entry["body"]["input"] for entry in server.read_log()] == [["a"]]
