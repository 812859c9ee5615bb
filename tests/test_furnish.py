"""What a house is furnished with is said once: nobody should have to guess which template or logprobs were found."""

from __future__ import annotations

import logging

import pytest

from stenograph.gateway import Gateway
from tests.demo.acted import needs_model


@needs_model
async def test_what_was_found_is_said_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "stenograph"):
        async with Gateway(engine="scripted="):
            pass
    assert caplog.messages == [
        "scripted-0 serves scripted: context of 8192 tokens, raw logprobs",
        "tokenizer: smollm2; chat template: smollm2; the record is in :memory:",
    ]
