"""An agent without messages: it sends texts and token ids, to Completions and to `/inference/v1/generate`."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import hypothesis.strategies as st

from stenograph.core import JSON, Value
from stenograph.engine.script import FaultKind
from tests.laws.actions import FAULTS, Style, picks, styles, texts
from tests.laws.agent import Agent, Heard
from tests.laws.record import snapshot
from tests.stage.plain_talk import heard_plain
from tests.stage.talk import Answer

Way: TypeAlias = Literal["text", "ids", "generate"]
"""A text or ids to Completions, or ids to the route that takes nothing else."""
KEPT = "Well then, "


class Begin(Value):
    session: int
    text: str
    way: Way
    style: Style


class GoOn(Value):
    """Behind any turn so far, the latest or an earlier one."""

    pick: int
    text: str
    way: Way
    style: Style
    whole: bool = True
    """Of a reply that a stop string cut, the text that was sampled of it is put back."""
    edited: bool = False
    """The reply is another than the one that was sampled."""
    at_once: int = 1
    """So many equal calls."""


class Again(Value):
    pick: int
    how: Literal["plain", "key", "retry"]


class Fail(Value):
    pick: int
    text: str
    way: Way
    style: Style
    what: FaultKind | Literal["store", "leave", "overflow", "no_json", "foreign"]


Action: TypeAlias = Begin | GoOn | Again | Fail

ways = st.sampled_from(("text", "ids", "generate"))
begins = st.builds(Begin, session=st.integers(0, 1), text=texts, way=ways, style=styles)
goes_on = st.builds(
    GoOn, pick=picks, text=texts | st.just(""), way=ways, style=styles, at_once=st.sampled_from((1, 1, 3))
)
strays = st.builds(GoOn, pick=picks, text=texts, way=ways, style=styles, whole=st.booleans(), edited=st.booleans())
fails = st.builds(
    Fail,
    pick=picks,
    text=texts,
    way=ways,
    style=styles,
    what=st.sampled_from(FAULTS) | st.sampled_from(("store", "leave", "overflow", "no_json", "foreign")),
)
agains = st.builds(Again, pick=picks, how=st.sampled_from(("plain", "key", "retry")))
plain_actions = st.lists(st.one_of(begins, goes_on, goes_on, goes_on, strays, agains, fails), min_size=3, max_size=12)


class Place(Value):
    """Right behind a turn, as its caller has it."""

    session: str
    turn_id: str
    text: str
    ids: tuple[int, ...]
    cut: str = ""
    """The stop string that ended it, which its text does not show."""


class Asked(Value):
    """A prompt, and the turn that it goes on from, untouched."""

    session: str
    prompt: str | tuple[int, ...]
    way: Way
    meant: Place | None = None


@dataclass
class PlainAgent(Agent):
    places: list[Place] = field(default_factory=list)
    asked: dict[str, Asked] = field(default_factory=dict)
    """By call id."""

    async def perform(self, actions: Sequence[Action]) -> None:  # type: ignore[override]
        for action in actions:
            await self._act(action)
            self.snapshots.append(snapshot(self.stage, self.sessions))

    async def _act(self, action: Action) -> None:
        match action:
            case Begin():
                await self._say(self._begun(action.session, action.text, action.way), action.style)
            case GoOn():
                asked = self._going_on(action)
                await asyncio.gather(*(self._say(asked, action.style) for _ in range(action.at_once)))
            case Again():
                await self._once_more(action)
            case Fail():
                await self._go_wrong(action)

    # -- what is said ----------------------------------------------------------------------------------------

    def _begun(self, session: int, text: str, way: Way) -> Asked:
        return Asked(self.sessions[session], text if way == "text" else self._ids(text), way)

    def _ids(self, text: str) -> tuple[int, ...]:
        return tuple(self.stage.tokenizer.encode(text))

    def _going_on(self, action: GoOn | Fail) -> Asked:
        if not self.places:
            return self._begun(0, action.text or KEPT, action.way)
        place = self.places[action.pick % len(self.places)]
        whole, edited = getattr(action, "whole", True), getattr(action, "edited", False)
        meant = None if edited or (action.way == "text" and place.cut and not whole) else place
        if action.way == "text":
            cut = place.cut if whole else ""
            return Asked(place.session, _edited(place.text + cut, edited) + action.text, action.way, meant)
        kept = place.ids[:-1] if edited else place.ids
        ids = (*kept, *self._ids(action.text))
        return Asked(place.session, ids or self._ids(KEPT), action.way, meant)

    # -- how it is sent --------------------------------------------------------------------------------------

    async def _say(self, asked: Asked, style: Style) -> None:
        self._calls += 1
        body, headers = _body(asked, style), {"idempotency-key": f"key-{self._calls}"} if style.keyed else {}
        answer = await self._post(asked, body, headers)
        if answer.error is not None:
            assert answer.error["code"] == "context_length_exceeded", answer.error
            return
        heard = Heard(body, headers, asked.session, answer, None, style)
        self.heard.append(heard)
        self.asked[heard.call_id] = asked
        self._remember(asked, answer)

    async def _post(self, asked: Asked, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        sent = {"authorization": "Bearer EMPTY", **(headers or {})}
        response = await self.stage.http.post(path(asked), content=body, headers=sent)
        return heard_plain(response.status_code, response.headers, response.content)

    def _remember(self, asked: Asked, answer: Answer) -> None:
        decode = self.stage.tokenizer.decode
        for choice in answer.choices:
            before = asked.prompt if isinstance(asked.prompt, str) else decode(answer.prompt_ids)
            text = choice.message["content"]
            cut = choice.stop_reason if isinstance(choice.stop_reason, str) else ""
            if text is None:  # this route shows no text: what a caller has is what the ids spell
                text, cut = decode(choice.token_ids), ""
            ids = (*answer.prompt_ids, *choice.token_ids)
            self.places.append(Place(asked.session, choice.turn_id, before + text, ids, cut))

    async def _once_more(self, action: Again) -> None:
        if not self.heard:
            return
        first = self.heard[action.pick % len(self.heard)]
        headers = {"key": first.headers, "retry": {"x-stainless-retry-count": "1"}, "plain": {}}[action.how]
        asked = self.asked[first.call_id]
        answer = await self._post(asked, first.body, headers)
        if headers:
            told = [one.answer for one in self.heard if one.answer.turn_id == answer.turn_id]
            assert told == [answer]
        else:
            again = Heard(first.body, {}, first.session, answer, None, first.style)
            self.heard.append(again)
            self.asked[again.call_id] = Asked(asked.session, asked.prompt, asked.way)

    # -- what goes wrong -------------------------------------------------------------------------------------

    async def _go_wrong(self, action: Fail) -> None:
        asked = self._going_on(action)
        async with self._counts_one(asked.session) as counted:
            match action.what:
                case "leave":
                    counted.append(await self._walk_away(asked, action.style))
                case FaultKind():
                    with self.stage.watched.faulty(action.what):
                        counted.append(_attempt(action.what, await self._post(asked, _body(asked, action.style))))
                case "store":
                    with self.stage.shaky.failing():
                        counted.append(_attempt(action.what, await self._post(asked, _body(asked, action.style))))
                case _:
                    counted.append(
                        _attempt(action.what, await self._post(asked, _bad_body(action.what, asked, action)))
                    )

    async def _walk_away(self, asked: Asked, style: Style) -> str:
        engine = self.stage.watched
        engine.forget()
        with engine.faulty(FaultKind.HANG):
            call = asyncio.create_task(self._post(asked, _body(asked, style)))
            arrived = asyncio.create_task(engine.arrived.get())
            await asyncio.wait({call, arrived}, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                arrived.cancel()
                return _attempt("leave", call.result())
            call.cancel()
            assert await engine.left.get() == arrived.result()
        with contextlib.suppress(asyncio.CancelledError):
            await call
        await self.stage.settled()
        assert engine.logged(arrived.result()).aborted
        return "disconnected"


# ------------------------------------------------------------------------------------------------------- what is sent


def path(asked: Asked) -> str:
    return f"/s/{asked.session}" + ("/inference/v1/generate" if asked.way == "generate" else "/v1/completions")


def _edited(text: str, edited: bool) -> str:
    return text[:-1] + ("?" if text[-1:] == "!" else "!") if edited else text


def _body(asked: Asked, style: Style) -> bytes:
    sampling: dict[str, JSON] = {"n": style.n, "temperature": style.temperature, "stop": list(style.stop)}
    optional = {"max_tokens": style.max_tokens, "seed": style.seed}
    sampling |= {name: value for name, value in optional.items() if value is not None}
    rest = {"stream": style.stream, "return_token_ids": True}
    if asked.way == "generate":
        sampling |= {"logprobs": style.top_logprobs, "skip_special_tokens": False}
        return json.dumps({"token_ids": asked.prompt, "sampling_params": sampling, **rest}).encode()
    shown = {"logprobs": style.top_logprobs, "return_tokens_as_token_ids": True}
    return json.dumps({"model": "any", "prompt": asked.prompt, **sampling, **shown, **rest}).encode()


def _bad_body(what: str, asked: Asked, action: Fail) -> bytes:
    if what == "no_json":
        return _body(asked, action.style)[:-1]
    ids = (1,) * 6000 if what == "overflow" else (2**31 - 1,)
    return _body(Asked(asked.session, ids, asked.way), action.style)


def _attempt(what: object, answer: Answer) -> str:
    assert not answer.complete
    assert answer.error is not None
    assert all(choice.finish_reason is None for choice in answer.choices)
    if answer.error["code"] == "context_length_exceeded":
        return "context_overflow"
    if what in ("no_json", "foreign", FaultKind.REFUSE):
        return "refused"
    return "gateway_error" if what == "store" else "engine_error"
