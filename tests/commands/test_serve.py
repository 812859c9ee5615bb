"""`stenograph serve`: what its port is like, and its end."""

from __future__ import annotations

import asyncio
import socket

import aiohttp
import pytest

from stenograph import Gateway
from stenograph.commands import serve
from stenograph.engine.script import Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.server.listening import DRAIN_SECONDS, bound
from tests.demo.acted import needs_model

HELLO = {"model": "scripted", "messages": [{"role": "user", "content": "hello"}]}


def test_answers_are_sent_without_delay() -> None:
    """An answer is two packets. Delayed, the second waits for the first one's acknowledgement: 40 ms a turn."""
    with bound("127.0.0.1", 0) as listening:
        listening.listen()
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@needs_model
async def test_who_still_waits_at_the_end_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway that is stopped while its engines are paused: no call under way can end any more."""
    monkeypatch.setattr(serve, "TELLING_SECONDS", DRAIN_SECONDS)
    engine = ScriptedEngine(Script(vocab_size=49152))
    with bound("127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        async with Gateway(engine=engine, tokenizer="smollm2") as gateway, aiohttp.ClientSession(url) as client:
            server = serve._Server(gateway, url)
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            while not server.started:  # noqa: ASYNC110 (uvicorn tells nobody)
                await asyncio.sleep(0.001)
            await client.post("/engines/pause")
            waiting = asyncio.create_task(client.post("/s/a/v1/chat/completions", json=HELLO))
            while not gateway._at_desk().house.engines.members[0].taken:  # noqa: ASYNC110 (likewise)
                await asyncio.sleep(0.001)
            server.should_exit = True
            answer = await waiting
            assert answer.status == 503
            assert "being stopped" in (await answer.json())["error"]["message"]
            await serving
            assert gateway._at_desk().registry.must("a").facts.attempts == {"disconnected": 1}
