from __future__ import annotations

from collections.abc import Iterator

import aiohttp
import hypothesis.strategies as st
import pytest
from hypothesis import given

from stenograph.engine.http import EventLines, Http, Refusal, root_of
from stenograph.errors import ConfigError, EngineError, EngineTimeout, EngineUnavailable, EvidenceError
from tests.engine.servers import LAST_CHUNK, chunked, plain, saying


def http(url: str = "http://h", timeout: float = 5) -> Http:
    return Http("vllm-0", url, None, timeout)


@pytest.mark.parametrize(
    ("where", "root"),
    [
        ("http://host:8000", "http://host:8000"),
        ("http://host:8000/", "http://host:8000"),
        ("http://host:8000/v1", "http://host:8000"),
        ("http://host:8000/v1/", "http://host:8000"),
        ("https://host/models/v1", "https://host/models"),
        ("http://v1/v1", "http://v1"),
        ("http://api.v1.example/v1.5", "http://api.v1.example/v1.5"),
        ("http://host/v1/v1", "http://host/v1"),
        ("http://host/v10", "http://host/v10"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
        ("http://name:pass@host/v1", "http://name:pass@host"),
    ],
)
def test_a_v1_is_dropped_from_the_end_of_the_path_alone(where: str, root: str) -> None:
    assert root_of(where) == root


@pytest.mark.parametrize(
    "where",
    [
        "",
        "host:8000",
        "localhost",
        "ftp://host",
        "http://",
        "http://h:port",
        "http://h:99999",
        "http://h/?a=1",
        "http://[::1",
    ],
)
def test_what_is_no_address_is_said_to_be_none(where: str) -> None:
    with pytest.raises(ConfigError, match="an engine's address looks like"):
        root_of(where)


def test_no_message_holds_a_password() -> None:
    assert http("http://name:secret@host:1/v1").label == "vllm-0 at http://host:1"
    with pytest.raises(ConfigError) as caught:
        root_of("http://name:secret@host:1/?key")
    assert "secret" not in caught.value.message


@given(st.lists(st.binary().filter(lambda data: b"\n" not in data)), st.data())
def test_events_come_out_whatever_the_network_makes_of_them(events: list[bytes], data: st.DataObject) -> None:
    sent = b"".join(b": comment\nevent: x\ndata: " + event + b"\r\n\r\n" for event in events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)))))
    lines = EventLines()
    pieces = [sent[start:end] for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    assert [event for piece in pieces for event in lines.feed(piece)] == [event.strip() for event in events]
    assert lines.pending == b""


def all_errors(error: type[Exception]) -> Iterator[type[Exception]]:
    yield error
    for one in error.__subclasses__():
        yield from all_errors(one)


LOWER = [*all_errors(aiohttp.ClientError), OSError, ConnectionResetError, TimeoutError]


@pytest.mark.parametrize("lower", LOWER, ids=lambda lower: lower.__name__)
def test_every_lower_error_is_translated(lower: type[Exception]) -> None:
    error = type(lower.__name__, (lower,), {"__init__": lambda self: None, "__str__": lambda self: ""})()
    for translated in (http()._connecting, http()._reading):
        with pytest.raises(EngineError), translated():
            raise error


async def test_a_closed_port_is_unavailable() -> None:
    async with saying(b"") as wire:
        pass
    client = http(wire.url)
    with pytest.raises(EngineUnavailable, match=f"vllm-0 at {wire.url} does not answer"):
        await client.get("/health")
    assert not await client.healthy("/health")
    await client.close()


async def test_a_server_that_hangs_up_is_unavailable() -> None:
    async with saying(b"") as wire:
        client = http(wire.url)
        with pytest.raises(EngineUnavailable):
            await client.get("/health")
        await client.close()


@pytest.mark.parametrize("answer", [b"", chunked(b"data: 1\n\n")])
async def test_silence_is_a_timeout(answer: bytes) -> None:
    async with saying(answer, hold=True) as wire:
        client = http(wire.url, timeout=0.05)
        with pytest.raises(EngineTimeout):
            _ = [event async for event in client.events("/x", b"{}")]
        await client.close()


@pytest.mark.parametrize(
    ("answer", "error"),
    [(chunked(b"data: 1\n\nda"), EngineError), (chunked(b"data: 1\n\nda") + LAST_CHUNK, EvidenceError)],
)
async def test_half_a_line_is_an_error(answer: bytes, error: type[EngineError]) -> None:
    async with saying(answer) as wire:
        client = http(wire.url)
        events = client.events("/x", b"{}")
        assert await anext(events) == b"1"
        with pytest.raises(error):
            await anext(events)
        await client.close()


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        (plain("400 Bad", b'{"error": {"message": "no", "param": "top_p", "code": 7}}'), (400, "no", "top_p", 1.0)),
        (plain("429 Full", b'{"error": {"message": "full"}}', "Retry-After: 7"), (429, "full", None, 7.0)),
        (plain("502 Bad Gateway", b"<html>" + b"x" * 1000), (502, "<html>" + "x" * 494, None, 1.0)),
        (plain("404 Not Found", b""), (404, "Not Found", None, 1.0)),
        (plain("302 Found", b"", "Location: http://elsewhere/"), (302, "Found", None, 1.0)),
    ],
)
async def test_an_error_answer_is_a_refusal(answer: bytes, refusal: tuple[int, str, str | None, float]) -> None:
    async with saying(answer) as wire:
        client = http(wire.url)
        with pytest.raises(Refusal) as caught:
            await client.get("/x")
        await client.close()
    said = caught.value
    assert (said.status, said.words, said.param, said.retry_after) == refusal


async def test_the_key_is_sent_and_kept_out_of_messages() -> None:
    async with saying(plain("401 Unauthorized", b"")) as wire:
        client = Http("vllm-0", wire.url, "sk-secret", 5)
        with pytest.raises(Refusal) as caught:
            await client.get("/x")
        await client.close()
    assert b"Authorization: Bearer sk-secret" in wire.requests[0]
    assert "secret" not in str(caught.value) + client.label
