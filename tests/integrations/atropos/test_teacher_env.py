"""An environment's groups, with a teacher's word in them, as `BaseEnv` is handed them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stenograph.errors import ConfigError
from stenograph.integrations.atropos.teacher_env import TeacherDistillation, teacher_config
from tests.conftest import TOKENIZERS
from tests.demo.acted import needs_model
from tests.integrations.atropos.servers import fast
from tests.teacher.served import serving
from tests.teacher.toy import expected

pytestmark = needs_model
TOKENS = [[5, 6, 7, 8], [5, 6], [9]]


class BaseConfig:
    group_size = 8


class BaseEnv:
    """As much of Atropos' as the mixin stands before."""

    def __init__(self, config: Any, tokenizer: Any) -> None:
        self.config = config
        self.tokenizer = tokenizer
        self.sent: list[Any] = []
        self.managed = 0

    async def handle_send_to_api(
        self,
        scored_data: Any,
        item: Any = None,
        do_send_to_api: bool = True,
        abort_on_any_max_length_exceeded: bool = True,
    ) -> None:
        self.sent.append((scored_data, item, do_send_to_api, abort_on_any_max_length_exceeded))

    async def env_manager(self) -> None:
        self.managed += 1


class Env(TeacherDistillation, BaseEnv):
    env_config_cls = teacher_config(BaseConfig)


def env(url: str, **fields: Any) -> Env:
    config = Env.env_config_cls()
    values = {"teacher_enabled": True, "teacher_server": f"vllm={url}", "teacher_top_k": 2, **fields}
    return Env(SimpleNamespace(**{"group_size": config.group_size, **values}), fast())


def group(**fields: Any) -> dict[str, Any]:
    return {"tokens": TOKENS, "masks": TOKENS, "scores": [0.0, 1.0, 0.5], **fields}


def check(told: dict[str, Any], top_k: int) -> None:
    for place, tokens in enumerate(TOKENS):
        ids, logprobs, own = expected(tokens, [at > 0 for at in range(len(tokens))], top_k)
        assert told["distill_token_ids"][place] == ids
        assert told["distill_logprobs"][place] == logprobs
        assert told["overrides"][place]["stenograph"]["teacher_logprobs"] == own


def test_the_config_has_the_fields_of_old() -> None:
    config: Any = Env.env_config_cls()
    assert (config.teacher_enabled, config.teacher_server, config.teacher_top_k, config.group_size) == (False, "", 1, 8)


async def test_a_group_has_rows_for_every_token() -> None:
    async with serving() as (_, url):
        one = env(url)
        await one.env_manager()
        await one.handle_send_to_api(group(), "item", abort_on_any_max_length_exceeded=False)
        await one.handle_send_to_api([group(overrides=[{"a": 1}] * 3), None])
        await one.close_teacher()
    told, *rest = one.sent[0]
    assert rest == ["item", True, False]
    check(told, 2)
    both, *_ = one.sent[1]
    check(both[0], 2)
    assert both[0]["overrides"][0]["a"] == 1
    assert both[1] is None
    assert one.managed == 1


async def test_overrides_of_a_group_are_honoured() -> None:
    async with serving() as (server, url):
        one = env(url)
        for overrides, top_k in (
            ({"teacher_top_k": 3}, 3),
            ({"skip_teacher_top_k": True}, 0),
            ({"teacher_top_k": 0}, 0),
        ):
            before = len(server.prompts)
            await one.handle_send_to_api(group(group_overrides=overrides))
            told = one.sent[-1][0]
            if top_k:
                check(told, top_k)
            else:
                assert told["distill_token_ids"] is told["distill_logprobs"] is None
                assert len(server.prompts) == before
        await one.close_teacher()


@pytest.mark.parametrize("wrong", [{"teacher_top_k": "many"}, {"skip_teacher_top_k": "yes"}, [1]])
async def test_overrides_that_cannot_be_read_lose_no_group(wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    """It is sent without a teacher's word, and the log says why."""
    async with serving() as (server, url):
        one = env(url)
        await one.handle_send_to_api(group(group_overrides=wrong))
        await one.close_teacher()
        assert server.prompts == []
    told = one.sent[0][0]
    assert told["distill_token_ids"] is told["distill_logprobs"] is None
    assert "a group is left out: group_overrides: " in caplog.text


async def test_overrides_of_a_sequence_may_be_none() -> None:
    async with serving() as (_, url):
        one = env(url)
        await one.handle_send_to_api(group(overrides=[None, {"a": 1}, None], group_overrides={"of_others": True}))
        await one.close_teacher()
    told = one.sent[0][0]
    check(told, 2)
    assert told["overrides"][1]["a"] == 1


async def test_one_that_fails_leaves_the_others() -> None:
    async with serving() as (server, url):
        server.refuses = lambda prompt: prompt == TOKENS[1]
        one = env(url)
        await one.handle_send_to_api(group())
        await one.close_teacher()
    told = one.sent[0][0]
    assert told["distill_token_ids"][1] == [[-1, -1], [-1, -1]]
    assert told["overrides"][1]["stenograph"]["teacher_error"] == "not this one"
    assert told["distill_token_ids"][0][1] != [-1, -1]
    assert {np.array(rows).shape[1] for rows in told["distill_token_ids"]} == {2}


async def test_without_a_teacher_it_is_the_environment_that_it_was() -> None:
    one = env("http://127.0.0.1:9", teacher_enabled=False)
    await one.env_manager()
    await one.handle_send_to_api(group())
    assert one.sent[0][0]["distill_token_ids"] is None
    with pytest.raises(ConfigError, match="wants a teacher_server"):
        await env("", teacher_server="").env_manager()


async def test_a_teacher_of_other_tokens_is_refused_before_any_rollout() -> None:
    folder = TOKENIZERS / "qwen2.5"
    if not folder.is_dir():
        pytest.skip("no ../shared/tokenizers beside the repository")
    async with serving(str(folder)) as (_, url):
        one = env(url)
        with pytest.raises(ConfigError, match="its tokenizer is not the student's"):
            await one.env_manager()
        assert one.managed == 0
