"""`stenograph export`, as an operator runs it on what a gateway has left."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow.parquet
import pytest

from stenograph.cli import main
from stenograph.engine.script import Script
from stenograph.export.formats.table import FORMATS
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


@pytest.fixture
async def store(model: models.Model, tmp_path: Path) -> Path:
    """One session of two branches, sampled at temperature 0.7 with raw logprobs."""
    folder = tmp_path / "store"
    async with Stage(model, SqliteStore(folder), Script(logprob_kind="raw")) as stage:
        await stage.say("s", [user("hello")], temperature=0.7)
        await stage.say("s", [user("something else")], temperature=0.7)
    return folder


def export(store: Path, name: str, *more: str) -> int:
    return main(["export", "--store", str(store), "--format", name, *more])


async def test_a_session_of_two_branches_is_refused_until_it_is_said_what_is_meant(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert export(store, "verl", "--out", str(out)) == 2
    assert "session s has 2 branches, and verl takes each for a rollout" in capsys.readouterr().err
    assert not out.exists()
    assert export(store, "verl", "--branches", "main", "--out", str(out)) == 0
    assert capsys.readouterr().err.splitlines() == [
        "stenograph: left out by --branches main: 1",
        "stenograph: verl forms ratios with logprobs after temperature, and 1 of 1 spans have raw logprobs, at "
        "temperature 0.7",
    ]
    assert len(out.read_text().splitlines()) == 1
    assert export(store, "verl", "--branches", "all", "--out", str(out)) == 0
    assert len(out.read_text().splitlines()) == 2


async def test_a_format_that_knows_rollouts_has_all_branches(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "samples.parquet"
    assert export(store, "parquet", "--out", str(out)) == 0
    assert pyarrow.parquet.read_table(out)["main"].to_pylist() == [True, False]


async def test_a_reward_that_is_needed_is_asked_for(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(store, "tinker") == 2
    assert "session s has no reward, and tinker needs one" in capsys.readouterr().err
    assert export(store, "tinker", "--exclude", "unrewarded") == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "stenograph: left out by --exclude unrewarded: 2\n")


async def test_what_is_not_there_to_be_trained_is_told(
    model: models.Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Stage(model, SqliteStore(tmp_path)) as stage:
        for id, role in (("one", "train"), ("two", "eval")):
            await stage.tell("/sessions", {"id": id, "role": role})
            await stage.say(id, [user("hello")])
    assert export(tmp_path, "verl") == 0
    said = capsys.readouterr()
    assert [msgspec.json.decode(row)["extra_fields"]["stenograph"]["role"] for row in said.out.splitlines()] == [
        "train",
        "eval",
    ]
    told = "stenograph: 1 of 2 samples have the role eval; verl would train them: --exclude role=eval\n"
    assert said.err == told
    for quiet in (("verifiers",), ("verl", "--exclude", "role=eval")):
        assert export(tmp_path, *quiet) == 0
        assert "would train" not in capsys.readouterr().err


def test_help_has_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    said = capsys.readouterr().out
    assert all(f"  {name} " in said and format.about in said for name, format in FORMATS.items())
