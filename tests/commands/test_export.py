"""`stenograph export`, as an operator runs it on what a gateway has left."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from stenograph.cli import main
from stenograph.store.sqlite import SqliteStore
from tests.stage import models
from tests.stage.models import LOOK
from tests.stage.stage import Stage, user


@pytest.fixture(scope="module")
def model() -> models.Model:
    return models.model(models.ALWAYS)


async def test_side_calls_are_left_out_where_they_are_to_be_and_it_says_so(
    model: models.Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Stage(model, SqliteStore(tmp_path)) as stage:
        await stage.say("s", [user("a title for this, please")])
        first = await stage.say("s", [user("hello")], tools=[LOOK])
        await stage.say("s", [user("hello"), first.choices[0].message, user("more")], tools=[LOOK])
    command = ["export", "--store", str(tmp_path), "--format", "jsonl"]
    assert main(command) == 0
    assert [msgspec.json.decode(line)["main"] for line in capsys.readouterr().out.splitlines()] == [False, True]
    assert main([*command, "--exclude", "side-calls"]) == 0
    said = capsys.readouterr()
    (kept,) = said.out.splitlines()
    assert len(msgspec.json.decode(kept)["spans"]) == 2
    assert said.err == "stenograph: left out by --exclude side-calls: 1\n"
    assert main([*command, "--exclude", "nothing"]) == 2
