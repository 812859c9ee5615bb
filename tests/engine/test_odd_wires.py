"""Every engine's own bytes with something else in some place: what comes out is as it would be, or a clear refusal.

Never another exception (which would be a 500, and our fault), and never a token that the engine did not say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from stenograph.core import JSON, Delta, Request
from stenograph.engine import vllm_generate, vllm_score, vllm_wire
from stenograph.engine.evidence import checked
from stenograph.engine.http import Refusal
from stenograph.engine.llamacpp import chunk_of, delta_of
from stenograph.engine.prompt_json import spelled
from stenograph.engine.scoring import FIRST
from stenograph.engine.sglang_wire import Reader, scores_of
from stenograph.errors import StenographError
from tests.engine import test_llamacpp, test_sglang_wire, test_vllm_score
from tests.engine.streams import ids, request, stream
from tests.engine.transcripts import PROMPT, transcript

Read = Callable[[Sequence[bytes], Request], list[Delta]]
ODD: st.SearchStrategy[JSON] = st.sampled_from(
    [None, True, 0, -1, 7, 1.5, -0.5, 2**40, 10**30, "", "x", "token_id:7", [], [None], [[]], {}, {"a": 1}, [7, -0.5]]
)
VOCABULARY = 49152
END = b"[DONE]"


def lines(sent: bytes) -> list[bytes]:
    return [line.removeprefix(b"data: ") for line in sent.split(b"\n") if line.startswith(b"data:")]


def by_reader(made: Callable[[Request], Any]) -> Read:
    def read(events: Sequence[bytes], asked: Request) -> list[Delta]:
        reader = made(asked)
        deltas = [delta for event in events for delta in reader.read(event)]
        reader.close()
        return deltas

    return read


def by_llama(events: Sequence[bytes], asked: Request) -> list[Delta]:
    chunks = [chunk_of(event) for event in events]
    seen = [sum(len(chunk.tokens) for chunk in chunks[: place + 1]) for place in range(len(chunks))]
    return [delta_of(chunk, asked, 0, count, chunk.finish) for chunk, count in zip(chunks, seen, strict=True)]


WIRES: dict[str, tuple[list[bytes], Request, Read]] = {
    "vllm": (
        lines(transcript("two_choices")),
        request(PROMPT, n=2, top=2),
        by_reader(lambda asked: vllm_wire.Reader("vllm-0", asked, spelled(asked.prompt))),
    ),
    "vllm-generate": (
        lines(transcript("generate_two_choices")),
        request(PROMPT, n=2, top=2),
        by_reader(lambda asked: vllm_generate.Reader("vllm-0", asked, spelled(asked.prompt))),
    ),
    "sglang": (
        test_sglang_wire.events("length"),
        request(test_sglang_wire.PROMPT, top=2),
        by_reader(lambda asked: Reader("sglang-0", asked, 0)),
    ),
    "llamacpp": (
        list(test_llamacpp.events("length")),
        request(test_llamacpp.PROMPT, top=2, max_tokens=100),
        by_llama,
    ),
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of everything in it."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(copy[path[0]], path[1:], odd)
    return copy


async def told(read: Read, events: Sequence[bytes], asked: Request) -> list[Delta]:
    return [delta async for delta in checked(stream(read(events, asked)), asked, VOCABULARY)]


@pytest.mark.parametrize("wire", list(WIRES))
@given(data=st.data())
@settings(max_examples=200, deadline=None)
async def test_whatever_stands_somewhere_it_is_an_answer_or_a_refusal(wire: str, data: st.DataObject) -> None:
    events, asked, read = WIRES[wire]
    right = await told(read, events, asked)
    at = data.draw(st.sampled_from([place for place, event in enumerate(events) if event != END]))
    event = msgspec.json.decode(events[at])
    path = data.draw(st.sampled_from(list(places(event))))
    odd = msgspec.json.encode(replaced(event, path, data.draw(ODD)))
    try:
        deltas = await told(read, [*events[:at], odd, *events[at + 1 :]], asked)
    except (StenographError, Refusal):
        return
    before, after = ([id for choice in range(asked.n) for id in ids(one, choice)] for one in (right, deltas))
    assert len(after) <= len(before)
    assert set(after) <= {*before, 7}


@pytest.mark.parametrize("wire", list(WIRES))
@pytest.mark.parametrize("times", [0, 2])
async def test_an_event_that_is_lost_or_comes_twice_is_seen(wire: str, times: int) -> None:
    """The engine's own counts tell of it, unless it held nothing."""
    events, asked, read = WIRES[wire]
    right = [ids(await told(read, events, asked), choice) for choice in range(asked.n)]
    for at in range(len(events)):
        odd = [*events[:at], *[events[at]] * times, *events[at + 1 :]]
        try:
            deltas = await told(read, odd, asked)
        except (StenographError, Refusal):
            continue
        assert [ids(deltas, choice) for choice in range(asked.n)] == right


@pytest.mark.parametrize("wire", ["vllm", "sglang"])
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_whatever_stands_in_scores_it_is_an_answer_or_a_refusal(wire: str, data: st.DataObject) -> None:
    answer = msgspec.json.decode(test_vllm_score.answer()) if wire == "vllm" else test_sglang_wire.SCORE
    path = data.draw(st.sampled_from(list(places(answer))))
    odd = msgspec.json.encode(replaced(answer, path, data.draw(ODD)))
    scores = vllm_score.scores_of if wire == "vllm" else scores_of
    with suppress(StenographError):
        assert len(scores(wire, test_vllm_score.IDS, 2, FIRST, odd).logprobs) == 2
