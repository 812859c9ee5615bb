"""Atropos 0.4.0 and our proxy: its own tests with ours in place of theirs, and its own client before `serve`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from stenograph.engine.script import Script
from tests.conftest import NO_TOKENIZERS, TOKENIZERS
from tests.live.atropos.test_atropos import PROGRAMS
from tests.live.consumers.installed import run
from tests.live.processes import engine, gateway

pytestmark = pytest.mark.live


async def test_their_own_tests_pass_with_our_proxy_in_place_of_theirs() -> None:
    """All of them: theirs skips seven where vLLM is not installed."""
    named = ("atroposlib.tests.test_managed_server_proxy", "proxy_in_place")
    told = (await run("atropos", PROGRAMS / "theirs.py", *named)).decode()
    assert re.search(r"^26 passed in", told, re.MULTILINE), told


async def test_their_own_client_gets_what_the_engine_logged(tmp_path: Path) -> None:
    tokenizer = TOKENIZERS / "qwen2.5"
    if not tokenizer.is_dir():
        pytest.skip(NO_TOKENIZERS)
    async with (
        engine(tmp_path, "vllm", tokenizer, Script(seed=5)) as vllm,
        gateway(vllm, tokenizer, tmp_path / "store") as url,
    ):
        where = (f"{url}/atropos", vllm.url, str(tokenizer))
        told = json.loads((await run("atropos", PROGRAMS / "proxy_client.py", *where)).splitlines()[-1])
        first, second = vllm.logged().values()
    assert len(told["answers"]) == 3
    other, extended = told["nodes"]
    assert other["tokens"] == list(first.prompt) + list(first.choices[0].ids)
    assert extended["tokens"] == list(second.prompt) + list(second.choices[0].ids)
    assert extended["tokens"][: len(first.prompt)] == list(first.prompt)
    trained = [id for id in extended["masked_tokens"] if id != -100]
    assert trained == list(first.choices[1].ids) + list(second.choices[0].ids)
