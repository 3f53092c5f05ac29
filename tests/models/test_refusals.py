# ruff: noqa: E501  servers' messages are quoted whole
"""Real servers' own words, each read as what it means."""

import json
from typing import Any

import pytest

from r2mad.errors import ContextOverflowError, RequestRejectedError
from r2mad.models._refusals import COMPLETION_TOKENS, FOLD, QuirkError, refuse

TOO_LONG: list[tuple[int, str, int | None, int | None]] = [
    # OpenAI
    (400, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.", 8192, 8000),
    (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.", 8192, 9000),
    (400, "Input tokens exceed the configured limit of 272,000 tokens. Your messages resulted in 300,100 tokens.", 272000, 300100),
    # vLLM
    (400, "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.", 4096, 5000),
    (400, "'max_tokens' or 'max_completion_tokens' is too large: 6144. This model's maximum context length is 4096 tokens and your request has 500 input tokens (6144 > 4096 - 500).", 4096, 500),
    (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.", 4096, 5000),
    # llama.cpp
    (400, "the request exceeds the available context size, try increasing it", None, None),
    (400, "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096, 5000),
    (500, "the request exceeds the available context size. try increasing the context size or enable context shift", None, None),
    # SGLang
    (400, "The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096, 5000),
    (400, "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens: 4000 tokens from the input messages and 1000 tokens for the completion.", 4096, 4000),
    # TGI
    (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 20 `max_new_tokens`", 4096, 5000),
    (422, "Input validation error: `inputs` must have less than 4095 tokens. Given: 6000", 4095, 6000),
    # others
    (400, "the input length exceeds the context length", None, None),
    (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1048576, 1200000),
    (400, "prompt is too long: 210000 tokens > 200000 maximum", 200000, 210000),
    (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length", 200000, 190000),
    (400, "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 32768, 40000),
    (400, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.", 4081, 5000),
    (400, "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens", 4096, 5000),
    (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131072, 537812),
    (413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000, please reduce your message size and try again.", 6000, 7000),
    (400, "Input is too long for requested model.", None, None),
]  # fmt: skip

NOT_TOO_LONG = [
    "max_tokens is too large: 6144. This model supports at most 4096 completion tokens, whereas you provided 6144.",
    "Invalid 'temperature': must be at most 2.",
    "The context field is not an object.",
    "Invalid value for messages[0].content: expected a string.",
]

QUIRKS: list[tuple[int, dict[str, Any], set[str]]] = [
    (400, {"message": "System role not supported"}, {FOLD}),
    (500, {"message": "Jinja Exception: System role not supported"}, {FOLD}),
    (400, {"message": "Conversation roles must alternate user/assistant/user/assistant/..."}, {FOLD}),
    (400, {"message": "After the optional system message, conversation roles must alternate user and assistant"}, {FOLD}),
    (400, {"message": "Only user and assistant roles are supported!"}, {FOLD}),
    (400, {"message": "Developer instruction is not enabled for models/gemma-3-27b-it"}, {FOLD}),
    (400, {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "param": "max_tokens", "code": "unsupported_parameter"}, {COMPLETION_TOKENS}),
    (400, {"message": "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.", "param": "temperature", "code": "unsupported_value"}, {"temperature"}),
    (400, {"message": "Unsupported parameter: 'top_p' is not supported with this model.", "param": "top_p"}, {"top_p"}),
    (403, {"message": "You are not allowed to request logprobs from this model"}, set()),
    (400, {"message": "You are not allowed to request logprobs from this model"}, {"logprobs"}),
    (400, {"message": "Unsupported parameter: 'top_logprobs'", "param": "top_logprobs"}, {"logprobs"}),
    (400, {"message": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'}, {"seed"}),
    (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}, {"seed"}),
    (400, {"message": "Unsupported parameter: 'tools'", "param": "tools"}, set()),
    (400, {"message": "temperature must be at most 2"}, set()),
]  # fmt: skip


def error_of(status: int, fields: dict[str, Any]) -> Exception:
    body = fields if "detail" in fields else {"error": fields}
    refusal = refuse(status, {}, json.dumps(body).encode(), "host/path")
    return refusal.error


@pytest.mark.parametrize(("status", "message", "limit", "prompt"), TOO_LONG)
def test_too_long(status: int, message: str, limit: int | None, prompt: int | None) -> None:
    error = error_of(status, {"message": message})
    assert isinstance(error, ContextOverflowError)
    assert (error.limit, error.prompt_tokens) == (limit, prompt)


def test_too_long_by_code_and_fields_alone() -> None:
    error = error_of(400, {"message": "no", "type": "exceed_context_size_error", "n_ctx": 512, "n_prompt_tokens": 900})
    assert isinstance(error, ContextOverflowError)
    assert (error.limit, error.prompt_tokens) == (512, 900)
    assert isinstance(error_of(400, {"message": "no", "code": "context_length_exceeded"}), ContextOverflowError)


@pytest.mark.parametrize("message", NOT_TOO_LONG)
def test_not_too_long(message: str) -> None:
    assert type(error_of(400, {"message": message})) is RequestRejectedError


@pytest.mark.parametrize(("status", "fields", "quirks"), QUIRKS)
def test_quirks(status: int, fields: dict[str, Any], quirks: set[str]) -> None:
    error = error_of(status, fields)
    assert (set(error.quirks) if isinstance(error, QuirkError) else set()) == quirks
