from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tokenizers

from stenograph import ConfigError, Gateway
from stenograph.assets import smollm2
from stenograph.assets.trainers import read_tokenizer

FILES = smollm2.read()


def held(**changes: Any) -> Any:
    """As much of a `PreTrainedTokenizerFast` as is read; tests/live has the real one."""
    fields = {
        "backend_tokenizer": tokenizers.Tokenizer.from_str(FILES.tokenizer_json),
        "chat_template": FILES.chat_template,
        "special_tokens_map": dict(FILES.special_tokens),
        "name_or_path": "held",
        "model_max_length": 2048,
    }
    return SimpleNamespace(**{**fields, **changes})


def test_a_tokenizer_that_is_loaded_already_is_as_good_as_its_folder() -> None:
    files = read_tokenizer(held())
    assert (files.name, files.max_model_len) == ("held", 2048)
    assert files.chat_template == FILES.chat_template
    assert files.special_tokens == FILES.special_tokens


def test_a_second_template_for_tools_and_no_limit() -> None:
    files = read_tokenizer(held(chat_template={"default": "a", "tool_use": "b"}, model_max_length=10**30))
    assert (files.chat_template, files.tool_chat_template, files.max_model_len) == ("a", "b", None)


def test_what_has_no_tokenizer_json_is_refused() -> None:
    with pytest.raises(ConfigError, match="int is neither a name nor one of transformers' fast tokenizers"):
        Gateway(engine="scripted=", tokenizer=3)


async def test_a_gateway_takes_the_object_and_paths(tmp_path: Path) -> None:
    async with Gateway(engine="scripted=", tokenizer=held(), store=tmp_path / "store") as gateway:
        session = gateway.session()
        await session.openai().chat.completions.create(
            model=gateway.model, messages=[{"role": "user", "content": "hi"}], max_tokens=4
        )
        assert len(session.samples()) == 1
