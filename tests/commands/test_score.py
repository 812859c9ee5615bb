"""`stenograph score` from its flags to its exit code, and what `export --teacher` makes of it."""

from __future__ import annotations

import asyncio
import io
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow.parquet
import pytest

from stenograph.cli import main
from stenograph.core import JSON, Sample
from stenograph.export.formats import jsonl
from stenograph.export.formats.table import FORMATS
from tests.demo.acted import needs_model
from tests.teacher.served import recorded, serving
from tests.teacher.toy import expected, plain

pytestmark = needs_model


async def score(store: Path, url: str, *flags: str, name: str = "large") -> int:
    command = ["score", "--store", str(store), "--teacher", f"{name}=vllm={url}", *flags]
    return await asyncio.to_thread(main, command)


def export(store: Path, out: Path, name: str, *flags: str) -> bytes:
    command = ["export", "--store", str(store), "--format", name, "--out", str(out), *flags]
    assert main(command) == 0
    return out.read_bytes()


def taught(store: Path, out: Path, *flags: str) -> list[Sample]:
    return list(jsonl.decode(export(store, out, "jsonl", *(flags or ("--teacher", "large"))).splitlines()))


def check(samples: Sequence[Sample], top_k: int, positions: str) -> None:
    for one in samples:
        assert one.teachers
        asked = [place > 0 and (positions == "all" or bool(one.sampled[place])) for place in range(len(one.tokens))]
        assert plain(one.teachers["large"]) == expected(one.tokens.tolist(), asked, top_k)


async def test_what_a_teacher_says_is_kept_and_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    found = await recorded(store)
    async with serving() as (server, url):
        assert await score(store, url) == 0
        said = capsys.readouterr()
        assert (said.out.split(";")[0], said.err) == ("large: 4 scored", "")
        check(taught(store, out), 1, "sampled")
        assert await score(store, url, "--top-k", "3", "--positions", "all") == 0
        check(taught(store, out), 3, "all")
        before = len(server.prompts)
        assert await score(store, url, "--top-k", "3", "--positions", "all") == 0
        assert "large: 0 scored, 4 known before; 0 tokens sent" in capsys.readouterr().out
        assert len(server.prompts) == before
    bare = msgspec.json.decode(export(store, out, "jsonl").splitlines()[0])
    assert "teachers" not in bare
    assert bare == found[0].to_json()


async def test_the_shape_of_a_teaching_is_the_contracts(tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    await recorded(store, sessions=1)
    async with serving() as (_, url):
        await score(store, url, "--top-k", "2")
    line: JSON = msgspec.json.decode(export(store, out, "jsonl", "--teacher", "large").splitlines()[0])
    assert list(line["teachers"]) == ["large"]
    rows = line["teachers"]["large"]
    assert list(rows) == ["top_k", "token_ids", "logprobs", "token_logprobs"]
    assert (rows["token_ids"][0], rows["logprobs"][0], rows["token_logprobs"][0]) == ([-1, -1], [0.0, 0.0], 0.0)
    assert line["teacher_info"] == {"large": {"model": "smollm2", "weight": 1.0, "error": None}}


async def test_one_that_cannot_be_scored_is_told_and_the_others_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    found = await recorded(store)
    broken = found[2].tokens.tolist()
    async with serving() as (server, url):
        server.refuses = lambda prompt: prompt == broken
        assert await score(store, url, "--positions", "all") == 1
        said = capsys.readouterr()
        assert said.err == f"stenograph: {found[2].id}: not this one\n"
        assert "large: 3 scored, 1 failed" in said.out
        errors = [one.teacher_info["large"].error for one in taught(store, out) if one.teacher_info]
        assert errors == [None, None, "not this one", None]
        assert "1 of 4 samples have nothing of teacher large: not this one" in capsys.readouterr().err
        server.refuses = lambda prompt: False
        assert await score(store, url, "--positions", "all") == 0
        check(taught(store, out), 1, "all")


async def test_killed_in_the_middle_it_goes_on_where_it_was(tmp_path: Path) -> None:
    """By the operating system, without a word: what was scored before is not scored again."""
    store, out = tmp_path / "store", tmp_path / "out"
    await recorded(store, sessions=6)
    arguments = [sys.executable, "-m", "stenograph", "score", "--store", str(store)]
    async with serving() as (server, url):
        server.stops_at = 5
        config = tmp_path / "one.toml"
        config.write_text(f'[[teacher]]\nname = "large"\nengine = "vllm={url}"\nin_flight = 1\n')
        process = await asyncio.create_subprocess_exec(*arguments, "--config", str(config))
        await server.stopped.wait()
        process.kill()
        assert await process.wait() == -signal.SIGKILL
        server.stops_at = None
        server.goes_on.set()
        assert await score(store, url) == 0
        sent = [tuple(prompt) for prompt in server.prompts]
        assert len(sent) == len(set(sent)) == 12
    check(taught(store, out), 1, "sampled")


async def test_several_teachers_each_with_a_name_and_a_weight(tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    await recorded(store)
    async with serving() as (_, one), serving() as (_, other):
        config = tmp_path / "teachers.toml"
        config.write_text(
            f'[[teacher]]\nname = "a"\nengine = "vllm={one}"\nweight = 0.25\n'
            f'[[teacher]]\nname = "b"\nengine = "vllm={other}"\ntop-k = 4\nweight = 0.75\n'
        )
        command = ["score", "--store", str(store), "--config", str(config)]
        assert await asyncio.to_thread(main, command) == 0
    for sample in taught(store, out, "--teacher", "a", "--teacher", "b"):
        assert sample.teachers
        assert sample.teacher_info
        assert {name: one.top_k for name, one in sample.teachers.items()} == {"a": 1, "b": 4}
        assert {name: one.weight for name, one in sample.teacher_info.items()} == {"a": 0.25, "b": 0.75}


@pytest.mark.parametrize("name", FORMATS)
async def test_a_format_has_room_for_a_teacher_or_says_that_it_has_none(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    await recorded(store, sessions=1)
    async with serving() as (_, url):
        await score(store, url, "--top-k", "2")
    flags = ("--teacher", "large", "--branches", "all")
    if FORMATS[name].teachers:
        assert export(store, out, name, *flags)
    else:
        assert main(["export", "--store", str(store), "--format", name, "--out", str(out), *flags]) == 2
        assert f"--format {name} has room for no teacher" in capsys.readouterr().err


async def test_parquet_has_all_of_it(tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    await recorded(store)
    async with serving() as (_, url):
        await score(store, url, "--top-k", "2")
    table = pyarrow.parquet.read_table(io.BytesIO(export(store, out, "parquet", "--teacher", "large"))).to_pylist()
    for row, sample in zip(table, taught(store, out), strict=True):
        whole = sample.to_json()
        assert dict(row["teachers"]) == whole["teachers"]
        assert dict(row["teacher_info"]) == whole["teacher_info"]


async def test_a_student_that_is_not_the_records_is_told(
    tmp_path: Path, shared_tokenizers: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """A teacher that is compared with its own tokenizer is alike, whoever the student was."""
    store, other = tmp_path / "store", str(shared_tokenizers["qwen2.5"])
    await recorded(store, sessions=1)
    async with serving(other) as (_, url):
        assert await score(store, url) == 2
        assert "recorded with another tokenizer file" in capsys.readouterr().err
        assert await score(store, url, "--tokenizer", "smollm2") == 2
        said = capsys.readouterr().err
        assert "its tokenizer is not the student's: id 0 is" in said
        assert said.count("\n") == 1
        assert await score(store, url, "--tokenizer", other) == 0
        assert capsys.readouterr().err.startswith(f"stenograph: --tokenizer {other}: the samples were recorded with")


NOWHERE = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "score needs a teacher"),
        (["--teacher", "a=scripted="], "teacher a: scripted cannot score"),
        (["--teacher", f"a=vllm={NOWHERE}"], "does not answer"),
        (["--teacher", "a=nothing=x"], "expected KIND=WHERE"),
        (["--teacher", f"a b=vllm={NOWHERE}"], "expected NAME=KIND=WHERE"),
        (["--teacher", f"vllm={NOWHERE}", "--teacher", f"vllm={NOWHERE}"], "two are called teacher"),
        (["--teacher", f"vllm={NOWHERE}", "--top-k", "-1"], "expected 0 or more"),
    ],
)
async def test_what_cannot_be_done_is_one_line(
    tmp_path: Path, flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await recorded(tmp_path, sessions=1)
    assert await asyncio.to_thread(main, ["score", "--store", str(tmp_path), *flags]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


async def test_a_store_that_is_none_or_empty_is_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await score(tmp_path / "nothing", NOWHERE) == 2
    assert "no store here" in capsys.readouterr().err
    assert not (tmp_path / "nothing").exists()
    await recorded(tmp_path, sessions=0)
    assert await score(tmp_path, NOWHERE) == 2
    assert "there is nothing to score" in capsys.readouterr().err


async def test_a_teacher_that_nobody_asked_is_said_to_be_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await recorded(tmp_path, sessions=1)
    assert main(["export", "--store", str(tmp_path), "--format", "jsonl", "--teacher", "large"]) == 2
    assert "--teacher large: this store has nothing of such a teacher" in capsys.readouterr().err
