"""The engine of every benchmark: the scripted server, with its lines learnt by heart.

A call costs the same whatever it is sent, and as little as it can, so that what is measured is what stands before it.
The scripted engine rehearses a few replies at start; from then on calls are answered from those, prompt echoed byte by
byte. As vLLM it takes ids on `/v1/completions`, streamed a token an event, and messages on `/v1/chat/completions`:
that is where an agent's call ends up when nothing, or a plain proxy, stands between. (A real engine would render and
tokenize the messages then. This one does not, which is to the floor's advantage, never to ours.)
"""

from __future__ import annotations

import asyncio
import itertools
import sys

import msgspec
import numpy as np
from starlette.types import Message, Receive, Scope, Send

from bench.listening import body_of, listen
from bench.talk import Speech, loaded_tokenizer
from stenograph.core import Request, Sampling, Value
from stenograph.engine.raw import Raw
from stenograph.engine.script import Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.engine.scripted_server import ScriptedServer
from stenograph.engine.scripted_wire import Answer, Body
from stenograph.wire import sse

CLOSE = "<|im_end|>"
MODEL = "bench"
CONTEXT = 131_072
REPLIES = 16
REPLY_TOKENS = 32
"""Before some are spelt with two smaller ones, as sampled tokens may be."""
PROMPT = b'"prompt":'
NO_PROMPT = b'"prompt_token_ids":[]'
JSON, SSE = b"application/json", b"text/event-stream"


class Call(Value):
    """As much of a body as makes a difference."""

    max_tokens: int = CONTEXT


class Line(Value):
    """One reply, as it is put on the wire."""

    head: bytes
    """Of the stream, up to the prompt's echo."""
    tail: bytes
    tokens: int
    chat: bytes
    """The same as a whole chat completion."""


_CALL = msgspec.json.Decoder(Call)


class Engine:
    """ASGI."""

    def __init__(self, scripted: ScriptedServer, lines: list[Line], takes: float) -> None:
        """`takes`: seconds that each call takes, at no cost in CPU."""
        self._scripted = scripted.application
        self._lines = itertools.cycle(lines)
        self._takes = takes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["path"]:
            case "/v1/chat/completions":
                await body_of(receive)
                await self._answer(send, JSON, next(self._lines).chat)
            case "/v1/completions":
                await self._completions(scope, receive, send)
            case _:
                await self._scripted(scope, receive, send)

    async def _completions(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A call for a token or so is the gateway's probe of what kind of logprobs there are: that is no agent's."""
        body = await body_of(receive)
        prompt, rest = _parted(body)
        call = _CALL.decode(rest)
        if call.max_tokens < REPLY_TOKENS:
            await self._scripted(scope, _once_more(body, receive), send)
        else:
            await self._answer(send, SSE, _streamed(next(self._lines), prompt))

    async def _answer(self, send: Send, kind: bytes, body: bytes) -> None:
        if self._takes:
            await asyncio.sleep(self._takes)
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _parted(body: bytes) -> tuple[bytes, bytes]:
    """The prompt's ids, which are the most of it and are not looked at, and what is left."""
    start = body.index(PROMPT) + len(PROMPT)
    end = body.index(b"]", start) + 1
    return body[start:end], body[:start] + b"[]" + body[end:]


def _streamed(line: Line, prompt: bytes) -> bytes:
    echo = NO_PROMPT.replace(b"[]", prompt)
    sent = int(np.count_nonzero(np.frombuffer(prompt, np.uint8) == ord(","))) + 1
    usage = {"prompt_tokens": sent, "completion_tokens": line.tokens, "total_tokens": sent + line.tokens}
    return line.head + echo + line.tail + sse.data(msgspec.json.encode({"choices": [], "usage": usage})) + sse.DONE


def _once_more(body: bytes, receive: Receive) -> Receive:
    first = True

    async def again() -> Message:
        nonlocal first
        if not first:
            return await receive()
        first = False
        return {"type": "http.request", "body": body}

    return again


# --------------------------------------------------------------------------------------------------------- rehearsal


async def rehearsed(engine: ScriptedEngine, close: int) -> list[Line]:
    """The replies of one session, one after the other."""
    return [_line([raw async for raw in engine.play(engine.admit(_request(close)))]) for _ in range(REPLIES)]


def _request(close: int) -> Request:
    sampling = Sampling(max_tokens=CONTEXT // 2, stop_token_ids=(close,))
    return Request("rehearsal", "rehearsal", np.zeros(0, np.int32), sampling)


def _line(raws: list[Raw]) -> Line:
    answer = Answer(Body(prompt=[], logprobs=0, return_token_ids=True), MODEL)
    head, _, tail = b"".join(sse.data(answer.chunk(raw)) for raw in raws).partition(NO_PROMPT)
    text = "".join(raw.text for raw in raws)
    return Line(head, tail, sum(len(raw.ids) for raw in raws), _chat(text))


def _chat(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    head = {"id": "chatcmpl-bench", "object": "chat.completion", "created": 0, "model": MODEL}
    return msgspec.json.encode(head | {"choices": [choice]})


def main(takes: float) -> None:
    words = loaded_tokenizer()
    speech = Speech(words, seed=-1)
    replies = tuple(speech.step(REPLY_TOKENS)["content"] for _ in range(REPLIES))
    script = Script(model=MODEL, max_model_len=CONTEXT, replies=replies, eos=words.added[CLOSE])
    engine = ScriptedEngine(script, words)
    listen(Engine(ScriptedServer(engine), asyncio.run(rehearsed(engine, words.added[CLOSE])), takes))


if __name__ == "__main__":
    main(float(sys.argv[1]))
