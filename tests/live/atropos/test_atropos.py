"""Atropos 0.4.0 itself: its own tests with our class in place of theirs, and its own servers before our class."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NO_TOKENIZERS, TOKENIZERS
from tests.live.consumers.installed import run

PROGRAMS = Path(__file__).parent / "programs"
pytestmark = pytest.mark.live


async def told_by(program: str) -> Any:
    folder = TOKENIZERS / "qwen2.5"
    if not folder.is_dir():
        pytest.skip(NO_TOKENIZERS)
    return json.loads((await run("atropos", PROGRAMS / program, str(folder))).splitlines()[-1])


async def test_their_own_tests_pass_with_our_class_in_place_of_theirs() -> None:
    told = (await run("atropos", PROGRAMS / "theirs.py", "atroposlib.tests.test_managed_server", "in_place")).decode()
    assert re.search(r"^19 passed in", told, re.MULTILINE), told


async def test_their_servers_sample_what_our_class_records() -> None:
    """What their tests cannot see: replies end with the stop token, no id is canonical, the prompts are looked at."""
    told = await told_by("rollouts.py")
    first, second, third, fourth = told["calls"]
    hello, again, (_, yes_sir), indeed = (call["said"] for call in told["calls"])
    assert second["sent"][: len(first["sent"]) + len(hello[0])] == first["sent"] + hello[0]
    assert fourth["sent"][: len(third["sent"]) + len(yes_sir)] == third["sent"] + yes_sir
    assert [node["tokens"] for node in told["nodes"]] == [
        second["sent"] + again[0],
        third["sent"] + third["said"][0],
        fourth["sent"] + indeed[0],
    ]
    trained = [[id for id in node["masked_tokens"] if id != -100] for node in told["nodes"]]
    assert trained == [hello[0] + again[0], third["said"][0], yes_sir + indeed[0]]
    logprobs = [[logprob for logprob in node["logprobs"] if logprob != 1.0] for node in told["nodes"]]
    assert logprobs == [
        first["told"][0] + second["told"][0],
        third["told"][0],
        third["told"][1] + fourth["told"][0],
    ]
    assert told["evals"] == 1


async def test_both_blocks_of_the_page_run_and_ours_is_what_was_sampled() -> None:
    told = await told_by("page.py")
    before, after = told["before"], told["after"]
    first, second = after["calls"]
    (row,) = after["rows"]
    assert row["tokens"] == second["sent"] + second["said"][0]
    assert second["sent"][: len(first["sent"]) + len(first["said"][0])] == first["sent"] + first["said"][0]
    assert [id for id in row["masks"] if id != -100] == first["said"][0] + second["said"][0]
    (theirs,) = before["rows"]
    close = first["said"][0][-1]
    assert (theirs["tokens"].count(close), row["tokens"].count(close)) == (6, 5)  # theirs has it twice behind a reply
