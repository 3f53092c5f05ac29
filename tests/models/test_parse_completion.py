"""No JSON makes the parser raise anything but `BadResponseError`; and what servers do send is read as meant."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.errors import BadResponseError, RequestRejectedError
from r2mad.models._parse import LEAST_LOGPROB, parse_completion
from r2mad.models._refusals import one_line, read_json, refuse
from r2mad.types import Completion, Usage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
LOGPROB = JSON | st.fixed_dictionaries({"logprob": JSON, "top_logprobs": JSON | st.lists(JSON, max_size=2)})
SOME = st.sampled_from(["content", "refusal", "reasoning_content", "reasoning"])
COUNTS = st.sampled_from(["prompt_tokens", "completion_tokens", "completion_tokens_details", "prompt_tokens_details"])
DETAILS = st.dictionaries(st.sampled_from(["reasoning_tokens", "cached_tokens"]), JSON)
CHOICE = st.fixed_dictionaries(
    {"message": JSON | st.dictionaries(SOME, JSON)},
    optional={
        "finish_reason": JSON | st.just("stop"),
        "logprobs": JSON | st.fixed_dictionaries({"content": JSON | st.lists(LOGPROB, max_size=3)}),
    },
)
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        "choices": JSON | st.lists(JSON | CHOICE, max_size=2),
        "usage": JSON | st.dictionaries(COUNTS, JSON | DETAILS),
        "model": JSON,
    },
)


@given(JSON | SHAPED)
def test_any_json_is_a_completion_or_a_bad_response(data: Any) -> None:
    try:
        completion = parse_completion(data)
    except BadResponseError:
        return
    assert isinstance(completion, Completion)
    assert completion.text or completion.finish_reason
    for value in (completion.mean_logprob, completion.mean_top_logprob):
        assert value is None or LEAST_LOGPROB <= value <= 0
    usage = completion.usage
    assert min(usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens, usage.cached_tokens) >= 0
    json.dumps(completion.mean_logprob, allow_nan=False)


@given(st.integers(100, 599), st.binary(max_size=200) | (JSON | SHAPED).map(lambda data: json.dumps(data).encode()))
def test_any_body_of_any_status_is_a_refusal_in_one_line(status: int, raw: bytes) -> None:
    error = refuse(status, {}, raw, "host/path").error
    assert str(error).startswith(f"{status} from host/path")
    assert str(error).isprintable()


def reply(message: Any, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": "stop", **fields}]}


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"choices": None},
        {"choices": []},
        {"choices": [None]},
        {"choices": [{}]},
        {"choices": [{"message": None}]},
        {"choices": [{"message": {"content": ""}}]},
        {"choices": [{"message": {"content": None}, "finish_reason": None}]},
        {"choices": [{"message": {"content": "half"}, "finish_reason": "error"}]},
    ],
)
def test_bad_responses(data: Any) -> None:
    with pytest.raises(BadResponseError):
        parse_completion(data)


def test_contents() -> None:
    assert parse_completion(reply({"content": None})).text == ""
    assert parse_completion(reply({})).text == ""
    assert parse_completion(reply({"content": None, "refusal": "I can't."})).text == "I can't."
    parts = [{"type": "text", "text": "a"}, "b", {"type": "image"}, {"type": "text", "text": "c"}, 3]
    assert parse_completion(reply({"content": parts})).text == "abc"
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}]
    got = parse_completion(reply({"content": thinking}))
    assert (got.text, got.reasoning) == ("a", "hm")
    assert parse_completion(reply({"content": "a", "reasoning_content": "r"})).reasoning == "r"
    assert parse_completion(reply({"content": "a", "reasoning": "r"})).reasoning == "r"
    assert parse_completion(reply({"content": "a", "reasoning_content": ""})).reasoning is None
    assert parse_completion({"choices": [{"message": {"content": "a"}}]}).finish_reason == ""


def test_usage() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5.0,
        "completion_tokens_details": {"reasoning_tokens": 3},
        "prompt_tokens_details": {"cached_tokens": 8},
    }
    assert parse_completion({**reply({"content": "a"}), "usage": usage}).usage == Usage(10, 5, 3, 8)
    odd = {"prompt_tokens": "many", "completion_tokens": -1, "completion_tokens_details": None}
    assert parse_completion({**reply({"content": "a"}), "usage": odd}).usage == Usage()


def test_logprobs() -> None:
    def means(*tokens: Any) -> tuple[float | None, float | None]:
        got = parse_completion(reply({"content": "a"}, logprobs={"content": list(tokens)}))
        return got.mean_logprob, got.mean_top_logprob

    def token(logprob: Any, *top: Any) -> dict[str, Any]:
        return {"logprob": logprob, "top_logprobs": [{"logprob": one} for one in top]}

    assert means() == (None, None)
    assert means(token(-1.0, -0.5), token(-3.0, -1.5, -2.0)) == (-2.0, -1.0)
    assert means(token(-1.0), token(None), token("x"), token(math.nan), 7) == (-1.0, None)
    assert means(token(-math.inf, -math.inf)) == (LEAST_LOGPROB, LEAST_LOGPROB)
    assert means(token(1e-7)) == (0.0, None)
    assert means(token(-(10**400))) == (LEAST_LOGPROB, None)
    assert parse_completion(reply({"content": "a"}, logprobs=None)).mean_logprob is None


def test_json_that_python_reads_and_json_that_it_cannot() -> None:
    raw = b'{"choices": [{"message": {"content": "a"}, "logprobs": {"content": [{"logprob": -Infinity}]}}]}'
    assert parse_completion(read_json(raw)).mean_logprob == LEAST_LOGPROB
    for bad in (b"", b"{", b"\xff\xfe{}", b"[" * 200_000, b"9" * 5000):
        with pytest.raises(ValueError, match=r".*"):
            read_json(bad)


def test_one_line() -> None:
    assert one_line(" a\tb\n\x1b[0mc\x00 ") == "a b [0mc"
    assert len(one_line("x" * 10_000)) == 300


def test_messages_of_many_shapes() -> None:
    for raw, said in [
        (b'{"error": "plain"}', "plain"),
        (b'{"message": "top"}', "top"),
        (b'{"detail": "fastapi"}', "fastapi"),
        (b'{"detail": [{"loc": ["body", "seed"], "msg": "no such thing"}]}', "body.seed: no such thing"),
        (b"<html><head><title>502 Bad Gateway</title></head></html>", "502 Bad Gateway"),
        (b"just text", "just text"),
    ]:
        assert str(refuse(418, {}, raw, "host").error) == f"418 from host: {said}"
    assert str(refuse(418, {}, b"", "host").error) == "418 from host"
    assert isinstance(refuse(418, {}, b"", "host").error, RequestRejectedError)
