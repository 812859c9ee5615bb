from __future__ import annotations

import msgspec
import openai
import pytest

from stenograph.engine.script import Script
from stenograph.integrations.openrlhf.token_ids import asking
from tests.integrations.openrlhf.test_executor import closing
from tests.integrations.openrlhf.trainer import LlmEngine, Player, rollouts

__all__ = ["closing"]


def test_a_body_asks_for_ids_whatever_it_says_of_them() -> None:
    assert msgspec.json.decode(asking(b'{"n": 2, "return_token_ids": false}')) == {"n": 2, "return_token_ids": True}


def test_what_is_no_object_is_left_to_whoever_refuses_it() -> None:
    assert [asking(body) for body in (b"[]", b"{", b"\xff")] == [b"[]", b"{", b"\xff"]


async def test_upstreams_fields_and_our_own(closing: list[Player]) -> None:
    async def looks(player: Player, prompt: str, session_id: str) -> dict[str, float]:
        answer = await player.ask(prompt, logprobs=True, top_logprobs=1)
        (choice,) = answer.choices
        ids = answer.token_ids
        assert ids == {"prompt_token_ids": answer.prompt_token_ids, "completion_token_ids": choice.token_ids}
        assert [entry.token_id for entry in choice.logprobs.content] == ids["completion_token_ids"]
        assert all(len(entry.top_logprobs) == 1 for entry in choice.logprobs.content)
        return {"reward": 1.0}

    async def streams(player: Player, prompt: str, session_id: str) -> dict[str, float]:
        chunks = [chunk async for chunk in await player.ask(prompt, stream=True)]
        assert chunks[0].prompt_token_ids
        return {"reward": 1.0}

    async def is_refused_then_asks(player: Player, prompt: str, session_id: str) -> dict[str, float]:
        with pytest.raises(openai.BadRequestError, match="at most 1 top logprobs"):
            await player.ask(prompt, top_logprobs=9, logprobs=True)
        await player.ask(prompt)
        return {"reward": 1.0}

    engine = LlmEngine(Script(longest=5))
    for play in (looks, streams, is_refused_then_asks):
        closing.append(player := Player(play))
        (told,) = await rollouts(player, engine)
        assert told["reward"] == 1.0
