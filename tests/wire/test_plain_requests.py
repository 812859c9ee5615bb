"""What a body without messages may say, and what it is told where it may not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stenograph.core import Ask, Guide, Text, Tokens
from stenograph.errors import CallerError
from stenograph.wire import completions, generate


def completion(**fields: Any) -> Ask:
    body = {"model": "policy", "prompt": "hi", **fields}
    return completions.decode(json.dumps(body).encode(), lambda id: b"").ask


def generated(sampling: Any = None, **fields: Any) -> Ask:
    body = {"token_ids": [1, 2], "sampling_params": sampling or {}, **fields}
    return generate.decode(json.dumps(body).encode(), lambda id: b"").ask


def ids(ask: Ask) -> list[int]:
    assert isinstance(ask.prompt, Tokens)
    found: list[int] = ask.prompt.ids.tolist()
    return found


WRONG_COMPLETIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"model": None}, "model", "expected string, got null"),
    ({"prompt": None}, "prompt", "string or array, got null"),
    ({"prompt": ""}, "prompt", "nothing in it"),
    ({"prompt": []}, "prompt", "got 0"),
    ({"prompt": [""]}, "prompt[0]", "nothing in it"),
    ({"prompt": [[]]}, "prompt[0]", "nothing in it"),
    ({"prompt": ["a", "b"]}, "prompt", "one prompt a call, got 2"),
    ({"prompt": [[1], [2]]}, "prompt", "one prompt a call, got 2"),
    ({"prompt": [1, "a"]}, "prompt", "a list holds"),
    ({"prompt": [-1]}, "prompt", ">= 0"),
    ({"prompt": [1.5]}, "prompt", "got number"),
    ({"prompt": [[1, "a"]]}, "prompt", "integer, got string"),
    ({"n": 0}, "n", ">= 1"),
    ({"best_of": 3}, "best_of", "as many as n"),
    ({"n": 2, "best_of": 1}, "best_of", "as many as n"),
    ({"suffix": "end"}, "suffix", "markers"),
    ({"echo": True, "logprobs": 0}, "logprobs", "with echo"),
    ({"echo": True, "max_tokens": 0}, "max_tokens", ">= 1"),
    ({"logprobs": -1}, "logprobs", ">= 0"),
    ({"logprobs": 21}, "logprobs", "<= 20"),
    ({"prompt_logprobs": 1}, "prompt_logprobs", "not supported here"),
    ({"use_beam_search": True}, "use_beam_search", "not supported here"),
    ({"truncate_prompt_tokens": 5}, "truncate_prompt_tokens", "not supported here"),
    ({"add_special_tokens": False}, "add_special_tokens", "send ids"),
    ({"stream_options": {}}, "stream_options", "needs stream"),
    ({"temperature": -1}, "temperature", ">= 0"),
]
WRONG_GENERATE: list[tuple[dict[str, Any], str, str]] = [
    ({"token_ids": None}, "token_ids", "expected array"),
    ({"token_ids": []}, "token_ids", "length >= 1"),
    ({"token_ids": [-1]}, "token_ids", ">= 0"),
    ({"token_ids": ["1"]}, "token_ids", "integer"),
    ({"sampling_params": {"top_p": 0}}, "sampling_params.top_p", "> 0"),
    ({"sampling_params": {"best_of": 2}}, "sampling_params.best_of", "not supported here"),
    ({"sampling_params": {"prompt_logprobs": 1}}, "sampling_params.prompt_logprobs", "not supported here"),
    ({"sampling_params": {"bad_words": ["x"]}}, "sampling_params.bad_words", "not supported here"),
    ({"sampling_params": {"logprobs": 21}}, "sampling_params.logprobs", "<= 20"),
    ({"features": {"mm_hashes": {}}}, "features", "images"),
    ({"content_parts": [{"type": "image_url"}]}, "content_parts", "images"),
    ({"output_mode": "text"}, "output_mode", "/v1/completions"),
    ({"stream_options": {}}, "stream_options", "needs stream"),
]


@pytest.mark.parametrize(("fields", "param", "words"), WRONG_COMPLETIONS, ids=str)
def test_a_completion_that_cannot_be_honoured(fields: dict[str, Any], param: str, words: str) -> None:
    with pytest.raises(CallerError, match=words) as caught:
        completion(**fields)
    assert (caught.value.param or "").startswith(param)


@pytest.mark.parametrize(("fields", "param", "words"), WRONG_GENERATE, ids=str)
def test_a_generation_that_cannot_be_honoured(fields: dict[str, Any], param: str, words: str) -> None:
    body = {"token_ids": [1], "sampling_params": {}, **fields}
    with pytest.raises(CallerError, match=words) as caught:
        generate.decode(json.dumps(body).encode(), lambda id: b"")
    assert (caught.value.param or "").startswith(param)


@pytest.mark.parametrize("prompt", ["hi", ["hi"]], ids=["alone", "in a list"])
def test_a_text(prompt: Any) -> None:
    assert completion(prompt=prompt).prompt == Text("hi")


@pytest.mark.parametrize("prompt", [[3, 4], [[3, 4]]], ids=["alone", "in a list"])
def test_ids(prompt: Any) -> None:
    assert ids(completion(prompt=prompt)) == [3, 4]


def test_logprobs_of_the_sampled_token_alone_ask_the_engine_for_no_others() -> None:
    assert [generated({"logprobs": count}).top_logprobs for count in (None, 0, 1, 2, 20)] == [0, 0, 0, 2, 20]
    assert [completion(logprobs=count).top_logprobs for count in (None, 0, 1)] == [0, 0, 1]


def test_parameters_of_text_are_no_matter_where_there_is_none() -> None:
    of_text = {"detokenize": False, "skip_special_tokens": False, "include_stop_str_in_output": True}
    assert generated(of_text).notes == ()
    with pytest.raises(CallerError):
        completion(skip_special_tokens=False)


def test_a_reply_of_a_wanted_form() -> None:
    wanted = Guide("regex", "[ab]+")
    assert generated({"structured_outputs": {"regex": "[ab]+"}}).sampling.guide == wanted
    assert completion(structured_outputs={"regex": "[ab]+"}).sampling.guide == wanted


def test_sampling_params_may_be_left_out() -> None:
    ask = generate.decode(b'{"token_ids": [1]}', lambda id: b"").ask
    assert (ids(ask), ask.given, ask.model) == ([1], frozenset(), "")
