"""A rollout with nobody there: stand-ins speak for the user, the tools and the model; all that is proven is real.

What a template does to a conversation is found out by holding one, through the very renderer that serves agents.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from stenograph.core import JSON, Call, Conversation, Finish, Fork, Message, Part, Sampling, ToolCall, Turn, Value
from stenograph.render.prompting import Prompt, Replied
from stenograph.render.renderer import Renderer
from stenograph.render.reply import ReplyReader
from stenograph.render.writing import ReplyWriter

NOW = datetime.datetime(2026, 1, 1, 12)


class Reply(Value):
    """What a stand-in for the model is to say."""

    thinks: bool = False
    calls: int = 0
    """0: it answers in words instead."""


Step: TypeAlias = Literal["system", "user", "results"] | Reply
"""`results`: one for each call of the reply before."""


class NotReadBack(Exception):
    """A call that was written as the family writes it was not read as one."""


class Setting(Value):
    history: Literal["template", "verbatim"] = "template"
    reasoning: Literal["restore", "strict"] = "restore"


def rehearse(
    renderer: Renderer,
    steps: Sequence[Step],
    tools: Sequence[dict[str, JSON]],
    arguments: Mapping[str, JSON],
    setting: Setting,
) -> list[Fork | None]:
    """For each reply of the script, why its prompt did not go on where the one before it had ended.

    The agent is one like most: it sends back what was said, and not what was thought.
    """
    rollout = _Rollout(renderer, Conversation((), tuple(tools), dict(arguments)), setting)
    for step in steps:
        if isinstance(step, Reply):
            rollout.reply(step)
        else:
            rollout.hear(step)
    return rollout.forks


class _Rollout:
    def __init__(self, renderer: Renderer, opening: Conversation, setting: Setting) -> None:
        """`opening`: no messages yet."""
        self.forks: list[Fork | None] = []
        self._renderer = renderer
        self._writer = ReplyWriter(renderer.family(opening), renderer.eos)
        self._opening = renderer.relevant(opening)
        self._key = repr((self._opening.tools, self._opening.template_arguments))
        self._setting = setting
        self._messages: list[Message] = []
        self._path: list[Replied] = []
        self._replies: set[int] = set()
        self._call_ids = (f"callno{number:03}" for number in itertools.count())

    def hear(self, step: Literal["system", "user", "results"]) -> None:
        place = len(self._messages)
        if step != "results":
            self._messages.append(Message(step, f"Words of the {step}, {place}."))
            return
        answered = next(message for message in reversed(self._messages) if message.role == "assistant")
        for call in answered.tool_calls:
            self._messages.append(Message("tool", f"Found {call.name}.", tool_call_id=call.id, name=call.name))

    def reply(self, wanted: Reply) -> None:
        conversation = msgspec.structs.replace(self._opening, messages=tuple(self._messages))
        verbatim = self._setting.history == "verbatim"
        prompt = self._renderer.prompt(
            conversation, self._path, sampled=frozenset(self._replies), key=self._key, now=NOW, verbatim=verbatim
        )
        text = self._writer.write(_said(wanted, len(self._messages)), thinking=prompt.thinking)
        turn = self._turn(conversation, prompt, self._renderer.tokenizer.encode(text))
        if len(turn.reply.tool_calls) != wanted.calls:
            raise NotReadBack(f"{wanted.calls} calls were written, {len(turn.reply.tool_calls)} read back")
        self.forks.append(prompt.fork)
        self._path = [*self._path[: prompt.kept], Replied(turn, len(self._messages))]
        self._replies.add(len(self._messages))
        strict = self._setting.reasoning == "strict"
        self._messages.append(msgspec.structs.replace(turn.reply, reasoning=None) if strict else turn.reply)

    def _turn(self, conversation: Conversation, prompt: Prompt, ids: list[int]) -> Turn:
        reader = self._renderer.reader(
            conversation, thinking=prompt.thinking, stop=(), new_call_id=lambda: next(self._call_ids)
        )
        reader.feed(ids)
        reader.finish(ids, Finish("stop"))
        inert = prompt.look.inert and (self._path[prompt.kept - 1].turn.call.inert if prompt.kept else True)
        return _turn(prompt, ids, reader, inert=inert)


def _said(wanted: Reply, place: int) -> Message:
    calls = tuple(ToolCall("", "zqone", {"query": f"cats {number}"}) for number in range(wanted.calls))
    return Message(
        role="assistant",
        content=None if calls else f"Answer {place}.",
        reasoning=f"Thought {place}." if wanted.thinks else None,
        tool_calls=calls,
    )


def _turn(prompt: Prompt, ids: list[int], reader: ReplyReader, *, inert: bool) -> Turn:
    """As much of a record as the renderer looks at; there is no session behind it."""
    sampled = np.array(ids, np.int32)
    part = Part(sampled, np.zeros(len(ids), np.float32), engine="", engine_kind="", logprob_kind="raw")
    call = Call(
        context=prompt.context, text_chars=prompt.text_chars, text_hash=prompt.text_hash, inert=inert,
        id="", session_id="", parent=None, after=None, shared=0, messages=(), tools_hash="", arguments_hash="",
        protocol="chat", model="", sampling=Sampling(), own_stops=(), n=1, request_id="", body_hash="",
        idempotency_key=None, template_hash="", tokenizer_hash="", created_at=0, first_token_at=None, finished_at=0,
    )  # fmt: skip
    return Turn("", call, 0, (part,), reader.reply, "stop", ending=reader.ending, written=reader.written)
