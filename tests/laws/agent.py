"""An agent that does as it is told: it performs actions over HTTP, and knows what it meant by each call."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from stenograph.core import JSON, Value
from stenograph.engine.script import FaultKind
from tests.laws.actions import (
    Action,
    Again,
    Begin,
    Echo,
    Extend,
    Fail,
    Leave,
    Prefill,
    Siblings,
    Style,
    Tamper,
    Trouble,
)
from tests.laws.record import Snapshot, snapshot
from tests.stage.models import LOOK, REFUSED
from tests.stage.stage import Stage, chat
from tests.stage.talk import Answer

LISTEN: JSON = {"type": "function", "function": {"name": "listen", "parameters": {"type": "object", "properties": {}}}}
SYSTEM: JSON = {"role": "system", "content": "You are brief."}
MANY = 6000
"""Words: more than fit into the context of an agent's engine."""
LEGAL_REFUSALS = ("context_length_exceeded", "template_refused")
"""What an honest call may meet with: the conversation is too long, or not one that the template takes."""


class Head(Value):
    """A place from which a conversation can go on: right behind a turn, or at the beginning."""

    session: str
    messages: tuple[JSON, ...]
    tools: bool = False
    turn_id: str | None = None


class Heard(Value):
    """A call that was answered with a turn of its own."""

    body: bytes
    headers: dict[str, str]
    session: str
    answer: Answer
    meant: str | None
    """The turn that the caller went on from, all of it untouched in meaning; None where there is none."""
    style: Style

    @property
    def call_id(self) -> str:
        return self.answer.choices[0].turn_id.rpartition(".")[0]


@dataclass
class Agent:
    stage: Stage
    sessions: tuple[str, str] = ("red", "blue")
    heads: list[Head] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    """The record as it stood after each action."""
    _calls: int = 0

    async def begin(self) -> None:
        for session in self.sessions:
            await self.stage.tell("/sessions", {"id": session})

    async def perform(self, actions: Sequence[Action]) -> None:
        for action in actions:
            await self._do(action)
            self.snapshots.append(snapshot(self.stage, self.sessions))

    async def _do(self, action: Action) -> None:
        match action:
            case Begin():
                await self._call(self._beginning(action), action.style)
            case Extend():
                await self._call(self._behind(action.pick, action.text, action.echo, bare=action.bare), action.style)
            case Tamper():
                await self._call(self._tampered(action), action.style)
            case Prefill():
                await self._call(self._prefilled(action), action.style)
            case Siblings():
                heads = [self._behind(action.pick, text) for text in action.texts]
                await asyncio.gather(*(self._call(head, action.style) for head in heads))
            case Again():
                await self._again(action)
            case Fail():
                await self._fail(action)
            case Leave():
                await self._leave(action)

    # -- what is said ----------------------------------------------------------------------------------------

    def _beginning(self, action: Begin) -> Head:
        messages = (*((SYSTEM,) if action.system else ()), _user(action.text))
        return Head(self.sessions[action.session], messages, action.tools)

    def _behind(self, pick: int, text: str, echo: Echo = Echo.PLAIN, *, bare: bool = False) -> Head:
        """The head with the new messages, and still the turn that it is meant to go on from."""
        if not self.heads:
            return Head(self.sessions[0], (_user(text),))
        head = self.heads[pick % len(self.heads)]
        reply = _echoed(head.messages[-1], echo)
        results = [_result(call, text) for call in reply.get("tool_calls", ())]
        new = results if results and bare else [*results, _user(text)]
        return Head(head.session, (*head.messages[:-1], reply, *new), head.tools, head.turn_id)

    def _tampered(self, action: Tamper) -> Head:
        head = self._behind(action.pick, action.text)
        messages = list(head.messages)
        place = next((at for at, message in enumerate(messages) if message["role"] == "assistant"), None)
        if action.what == "tools":
            return Head(head.session, head.messages, not head.tools)
        if action.what == "shorten" and place is not None:
            del messages[max(place - 1, 0) : place + 1]
        if action.what == "reply" and place is not None:
            messages[place] = {"role": "assistant", "content": "No such thing was ever said."}
        if action.what == "user":
            messages[0] = {**messages[0], "content": "Something else altogether."}
        return Head(head.session, tuple(messages), head.tools)

    def _prefilled(self, action: Prefill) -> Head:
        head = self._behind(action.pick, f"{action.text}, and begin well")
        begun = {"role": "assistant", "content": "Well then"}
        return Head(head.session, (*head.messages, begun), head.tools, head.turn_id)

    # -- how it is sent --------------------------------------------------------------------------------------

    async def _call(self, head: Head, style: Style) -> None:
        self._calls += 1
        body, headers = _body(head, style), {"idempotency-key": f"key-{self._calls}"} if style.keyed else {}
        answer = await self.stage.ask(chat(head.session), body, headers)
        if answer.error is not None:
            assert answer.error["code"] in LEGAL_REFUSALS, answer.error
            return
        self._take(Heard(body, headers, head.session, answer, head.turn_id, style), head)

    def _take(self, heard: Heard, head: Head) -> None:
        assert heard.answer.complete
        self.heard.append(heard)
        if head.messages[-1]["role"] == "assistant":
            return  # how an agent joins what it had begun with what came back is its own business
        for choice in heard.answer.choices:
            self.heads.append(Head(head.session, (*head.messages, choice.message), head.tools, choice.turn_id))

    async def _again(self, action: Again) -> None:
        if not self.heard:
            return
        first = self.heard[action.pick % len(self.heard)]
        headers = {"key": first.headers, "retry": {"x-stainless-retry-count": "1"}, "plain": {}}[action.how]
        answer = await self.stage.ask(chat(first.session), first.body, headers)
        equals = [one for one in self.heard if (one.body, one.session) == (first.body, first.session)]
        told_before = [one.answer for one in equals if one.answer.turn_id == answer.turn_id]
        if headers:
            assert told_before == [answer]
            assert action.how != "key" or answer.turn_id == first.answer.turn_id
        else:
            assert not told_before
            self.heard.append(Heard(first.body, {}, first.session, answer, None, first.style))

    # -- what goes wrong -------------------------------------------------------------------------------------

    async def _fail(self, action: Fail) -> None:
        head = self._behind(action.pick, action.text)
        async with self._counts_one(head.session) as counted:
            answer = await self._failing(head, action)
            assert not answer.complete
            assert answer.error is not None
            assert all(choice.finish_reason is None for choice in answer.choices)
            counted.append(_attempt(action.what, answer.error["code"]))

    async def _failing(self, head: Head, action: Fail) -> Answer:
        stage = self.stage
        body = _body(head, action.style) if isinstance(action.what, FaultKind) else _bad_body(head, action)
        faulty = stage.watched.faulty(action.what) if isinstance(action.what, FaultKind) else contextlib.nullcontext()
        with faulty, stage.shaky.failing() if action.what is Trouble.STORE else contextlib.nullcontext():
            return await stage.ask(chat(head.session), body)

    async def _leave(self, action: Leave) -> None:
        head = self._behind(action.pick, action.text)
        async with self._counts_one(head.session) as counted:
            answer = await self._left(head, action.style)
            counted.append("disconnected" if answer is None else _attempt(None, (answer.error or {})["code"]))

    async def _left(self, head: Head, style: Style) -> Answer | None:
        """None: the engine had the call when the caller went away, and was told."""
        engine = self.stage.watched
        engine.forget()
        with engine.faulty(FaultKind.HANG):
            call = asyncio.create_task(self.stage.ask(chat(head.session), _body(head, style)))
            arrived = asyncio.create_task(engine.arrived.get())
            await asyncio.wait({call, arrived}, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                arrived.cancel()
                return call.result()
            call.cancel()
            assert await engine.left.get() == arrived.result()
        await self.stage.settled()
        assert engine.logged(arrived.result()).aborted
        return None

    @contextlib.asynccontextmanager
    async def _counts_one(self, session: str) -> AsyncIterator[list[str]]:
        """What happens inside leaves tree and record as they are, and counts as the one attempt that it names."""
        before, seen = snapshot(self.stage, self.sessions), await self._attempts(session)
        counted: list[str] = []
        yield counted
        assert snapshot(self.stage, self.sessions) == before
        (attempt,) = counted
        assert await self._attempts(session) == {**seen, attempt: seen[attempt] + 1}

    async def _attempts(self, session: str) -> dict[str, int]:
        attempts: dict[str, int] = (await self.stage.get(f"/sessions/{session}"))["attempts"]
        return attempts


# ------------------------------------------------------------------------------------------------------- what is sent


def _user(text: str) -> JSON:
    return {"role": "user", "content": text}


def _result(call: JSON, text: str) -> JSON:
    return {"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"], "content": f"saw {text}"}


def _echoed(reply: JSON, echo: Echo) -> JSON:
    """The reply of a turn as an agent may keep it."""
    content, calls = reply.get("content"), reply.get("tool_calls")
    match echo:
        case Echo.STRIPPED:
            return {**reply, "content": content and content.strip()}
        case Echo.PADDED:
            return {**reply, "content": content and f"\n {content} \n"}
        case Echo.REFORMATTED if calls:
            return {**reply, "tool_calls": [_with_arguments(call) for call in calls]}
        case Echo.RENAMED if calls:
            return {**reply, "tool_calls": [{**call, "id": f"mine{place:05}"} for place, call in enumerate(calls)]}
    return reply


def _with_arguments(call: JSON) -> JSON:
    function = call["function"]
    return {**call, "function": {**function, "arguments": json.dumps(json.loads(function["arguments"]), indent=3)}}


def _body(head: Head, style: Style) -> bytes:
    body = {
        "model": "anything",
        "messages": head.messages,
        "n": style.n,
        "stream": style.stream,
        "logprobs": True,
        "top_logprobs": style.top_logprobs,
        "return_token_ids": True,
        "temperature": style.temperature,
        "stop": list(style.stop),
    }
    optional = {"max_tokens": style.max_tokens, "seed": style.seed, "tools": [LOOK, LISTEN] if head.tools else None}
    return json.dumps(body | {name: value for name, value in optional.items() if value is not None}).encode()


def _bad_body(head: Head, action: Fail) -> bytes:
    good = _body(head, action.style)
    match action.what:
        case Trouble.NO_JSON:
            return good[:-1]
        case Trouble.NO_FIELD:
            return good.replace(b'"messages"', b'"massages"')
        case Trouble.TEMPLATE:
            return _body(_saying(head, REFUSED), action.style)
        case Trouble.OVERFLOW:
            return _body(_saying(head, "word " * MANY), action.style)
    return good


def _saying(head: Head, text: str) -> Head:
    return Head(head.session, (*head.messages, _user(text)), head.tools)


def _attempt(what: FaultKind | Trouble | None, code: str | None) -> str:
    if code == "context_length_exceeded":
        return "context_overflow"
    if code == "template_refused" or what in (Trouble.NO_JSON, Trouble.NO_FIELD, FaultKind.REFUSE):
        return "refused"
    return "gateway_error" if what is Trouble.STORE else "engine_error"
