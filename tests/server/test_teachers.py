"""`GET /sessions/{id}/samples?teacher=NAME`, and the same in Python."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import httpx2
import msgspec
import pytest

from stenograph import ConfigError, Gateway, NotFound
from stenograph.clients import InProcess
from stenograph.core import JSON, Sample
from stenograph.gateway import HERE
from stenograph.store.sqlite import FILE
from tests.conftest import TOKENIZERS
from tests.demo.acted import needs_model
from tests.teacher.served import rollout, serving
from tests.teacher.toy import expected, plain

pytestmark = needs_model


async def get(gateway: Gateway, path: str) -> tuple[int, JSON]:
    async with httpx2.AsyncClient(transport=InProcess(gateway.app), base_url=HERE) as http:
        response = await http.get(path)
    return response.status_code, msgspec.json.decode(response.content)


async def delete(gateway: Gateway, path: str) -> int:
    async with httpx2.AsyncClient(transport=InProcess(gateway.app), base_url=HERE) as http:
        return (await http.delete(path)).status_code


def check(samples: list[Sample]) -> None:
    for one in samples:
        assert one.teachers
        rows = expected(one.tokens.tolist(), [bool(sampled) for sampled in one.sampled], 2)
        assert plain(one.teachers["large"]) == rows


async def test_a_teacher_is_asked_for_what_is_not_on_record(tmp_path: Path) -> None:
    async with serving() as (server, url):
        large = {"name": "large", "engine": f"vllm={url}", "top_k": 2}
        async with Gateway(engine="scripted=", store=str(tmp_path), teacher=[large]) as gateway:
            session = gateway.session()
            await rollout(session)
            samples = await session.taught("large")
            check(samples)
            assert len(server.prompts) == 2
            status, body = await get(gateway, f"/sessions/{session.id}/samples?teacher=large&shared=every")
            assert (status, len(server.prompts)) == (200, 2)
            assert [one["teachers"] for one in body["samples"]] == [one.to_json()["teachers"] for one in samples]
            status, body = await get(gateway, f"/sessions/{session.id}/samples")
            assert (status, "teachers" in body["samples"][0]) == (200, False)
    async with Gateway(engine="scripted=", store=str(tmp_path)) as gateway:
        status, body = await get(gateway, f"/sessions/{session.id}/samples?teacher=large")
        assert status == 200, "what it said is on record, whether it is there or not"
        assert [one["teachers"] for one in body["samples"]] == [one.to_json()["teachers"] for one in samples]


async def test_what_two_sessions_share_outlives_either(tmp_path: Path) -> None:
    """It is asked once, and forgotten with the last of them."""
    async with serving() as (server, url):
        large = {"name": "large", "engine": f"vllm={url}", "positions": "all"}
        async with Gateway(engine="scripted=", store=str(tmp_path), teacher=[large]) as gateway:
            messages: list[JSON] = [{"role": "user", "content": "the same"}]
            sessions = [gateway.session(f"s{place}") for place in range(3)]
            for session in sessions:
                await session.openai().chat.completions.create(model="m", messages=messages, max_tokens=4)
                await session.taught("large")
            (before,) = await sessions[2].taught("large")
            sent = len(server.prompts)
            for session in sessions[:2]:
                assert await delete(gateway, f"/sessions/{session.id}") == 204
            (after,) = await sessions[2].taught("large")
            assert after.to_json() == before.to_json()
            assert len(server.prompts) == sent
            assert await delete(gateway, f"/sessions/{sessions[2].id}") == 204
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        assert connection.execute("SELECT count(*) FROM lesson").fetchone() == (0,)


async def test_nothing_is_left_of_a_session_that_was_deleted_while_it_was_scored(tmp_path: Path) -> None:
    async with (
        serving() as (server, url),
        Gateway(engine="scripted=", store=str(tmp_path), teacher=[f"large=vllm={url}"]) as gateway,
    ):
        session = gateway.session()
        await rollout(session)
        server.stops_at = 0
        scoring = asyncio.ensure_future(session.taught("large"))
        await server.stopped.wait()
        assert await delete(gateway, f"/sessions/{session.id}") == 204
        server.stops_at = None
        server.goes_on.set()
        await scoring
    assert server.prompts
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        assert connection.execute("SELECT count(*) FROM lesson").fetchone() == (0,)


async def test_who_is_no_teacher_is_said_to_be_none() -> None:
    async with serving() as (_, url), Gateway(engine="scripted=", teacher=[f"large=vllm={url}"]) as gateway:
        session = gateway.session()
        await rollout(session)
        status, body = await get(gateway, f"/sessions/{session.id}/samples?teacher=small")
        assert (status, body["error"]["code"], body["error"]["param"]) == (404, "teacher_not_found", "teacher")
        assert body["error"]["message"] == "there is no teacher small; there is large"
        with pytest.raises(NotFound):
            await session.taught("small")


async def test_a_teacher_of_other_tokens_is_refused_before_any_rollout() -> None:
    folder = TOKENIZERS / "qwen2.5"
    if not folder.is_dir():
        pytest.skip("no ../shared/tokenizers beside the repository")
    async with serving(str(folder)) as (_, url):
        with pytest.raises(ConfigError, match=r"teacher large: its tokenizer is not the student's: id 0 is '.*' to"):
            async with Gateway(engine="scripted=", teacher=[f"large=vllm={url}"]):
                raise AssertionError("it opened")


@pytest.mark.parametrize(("served", "code"), [("smollm2", 0), ("qwen2.5", 2)])
async def test_serve_asks_no_teacher_of_other_tokens_for_anything(tmp_path: Path, served: str, code: int) -> None:
    """From the file to the exit code: it never says that it is ready."""
    folder = TOKENIZERS / served
    if code and not folder.is_dir():
        pytest.skip("no ../shared/tokenizers beside the repository")
    async with serving(str(folder) if code else served) as (server, url):
        config = tmp_path / "one.toml"
        config.write_text(f'[[teacher]]\nname = "large"\nengine = "vllm={url}"\n')
        command = ("serve", "--engine", "scripted=", "--store", ":memory:", "--port", "0", "--config", str(config))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "stenograph", *command),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout
        assert process.stderr
        ready = await process.stdout.readline()
        assert ready.startswith(b"stenograph ready") == (code == 0)
        if not code:
            process.terminate()
        *_, last = (await process.stderr.read()).decode().splitlines()
        assert await process.wait() == code
        assert ("its tokenizer is not the student's" in last) == bool(code)
        assert server.prompts == []


async def test_a_teacher_whose_tokenizer_is_nowhere_is_refused() -> None:
    async with serving("./nobody.gguf") as (_, url):
        with pytest.raises(ConfigError, match=r"teacher large: its engine serves \./nobody\.gguf, and that names no"):
            async with Gateway(engine="scripted=", teacher=[f"large=vllm={url}"]):
                raise AssertionError("it opened")
        named = {"name": "large", "engine": f"vllm={url}", "tokenizer": "smollm2"}
        async with Gateway(engine="scripted=", teacher=[named]) as gateway:
            assert await gateway.session().taught("large") == []


@pytest.mark.parametrize(
    ("teacher", "words"),
    [
        ({"engine": "vllm=http://x", "nmae": "a"}, "there is no setting `nmae`"),
        ({"name": "a"}, "missing required field `engine`"),
        ({"engine": "vllm=http://x", "weight": 0}, "Expected `float` > 0"),
        ({"engine": "x=y"}, "--teacher x=y: expected KIND=WHERE"),
    ],
)
def test_a_setting_that_is_none_is_an_error(teacher: JSON, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Gateway(engine="scripted=", teacher=[teacher])
    assert words in refused.value.message
