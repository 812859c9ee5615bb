"""One prompt being made from the whole conversation: rendered, walked along the path, and continued or written anew."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from stenograph.core import Conversation, Fork, Ids, Message, Turn, Value, text_hash
from stenograph.errors import TemplateRefused
from stenograph.render import survivors
from stenograph.render.family import Family
from stenograph.render.splice import Step, Walk, behind, walk
from stenograph.render.standin import Saying, stand_in, text_stand_in, texts_of
from stenograph.render.template import head_length
from stenograph.render.unwritten import unwritten


class Replied(Value):
    """A turn of the path a prompt may continue, and which message of the conversation is its reply."""

    turn: Turn
    message: int


class Look(Value):
    """What renders with placeholders tell of the messages behind the kept path."""

    inert: bool
    """No text of theirs changes what the template writes around it."""
    unwritten: tuple[str, ...]
    """What of the new ones the template leaves out, as paths (`messages[3]`)."""


class Prompt(Value):
    kept: int
    """How many turns of the path the prompt continues."""
    context: Ids
    """The new ids behind them."""
    text_chars: int
    text_hash: str
    """Of the text that `context` encodes."""
    thinking: bool
    """The prompt ends inside an opened reasoning block."""
    fork: Fork | None
    """Why `kept` is not the whole path."""
    look: Look


class Prompting:
    def __init__(
        self,
        family: Family,
        conversation: Conversation,
        path: Sequence[Replied],
        sampled: frozenset[int],
        now: datetime.datetime,
    ) -> None:
        """`sampled`: the messages that are replies sampled here, on the path or not."""
        self.family = family
        self.path = path
        self.messages = conversation.messages
        self.writer = family.writer(conversation, now)
        self._sampled = sampled
        self._masked: dict[int, Message] = {}
        last = len(conversation.messages) - 1
        self.prefill = last if conversation.messages[last].role == "assistant" else None
        """The trailing assistant message that the model goes on with."""
        self._literals = family.vocabulary.literals

    def masked(self, place: int) -> Message:
        """A message as the template is shown it. Masked when it is first looked at: most prompts need the newest."""
        if place not in self._masked:
            masker, message = self.family.masker, self.messages[place]
            self._masked[place] = masker.reply(message) if place in self._sampled else masker.message(message)
        return self._masked[place]

    def step(self, replied: Replied) -> Step:
        call = replied.turn.call
        return Step(
            message=replied.message,
            reply=stand_in(replied.message, self.masked(replied.message)),
            said=self.family.masker.reply(replied.turn.written or replied.turn.reply),
            text_chars=call.text_chars,
            text_hash=call.text_hash,
            ending=replied.turn.ending,
            shut=replied.turn.reply.reasoning is None and self.family.shuts_thinking(replied.turn.sampled),
        )

    @functools.cached_property
    def steps(self) -> list[Step]:
        return [self.step(replied) for replied in self.path]

    def prompt(self, *, verbatim: bool) -> Prompt:
        if not self.path:
            return self._anew(Walk(0, 0), "")
        render = self._render({step.message: step.reply for step in self.steps})
        walked = walk(render, self.steps, self.writer.parse, self.family.call_marks)
        if walked.kept == len(self.steps):
            return self._continued(render, walked.position, walked.kept, None)
        if verbatim and (position := behind(render, self.steps[-1], self.family.call_marks)) is not None:
            return self._continued(render, position, len(self.steps), None)
        return self._anew(walked, render)

    # -- what is sent --------------------------------------------------------------------------------------

    def _continued(self, render: str, position: int, kept: int, fork: Fork | None) -> Prompt:
        text = render[position:]
        ids = self._literals.encode_behind(self.last_id(kept), text)
        return self.made(kept, ids, text, fork, self._look(render, position, kept))

    def _anew(self, walked: Walk, render: str) -> Prompt:
        """The path is left where the template rewrote it: from there on the text is written again, with the ids of
        what survived of the sampled texts."""
        kept_steps = {step.message: step.reply for step in self.steps[: walked.kept]}
        plain = self._render(kept_steps)
        if plain[: walked.position] != render[: walked.position]:
            walked, kept_steps = msgspec.structs.replace(walked, kept=0, position=0), {}
            plain = self._render({})
        text = plain[walked.position :]
        fork = Fork(walked.reason, walked.message, walked.detail) if walked.reason else None
        lost = self.path[walked.kept :]
        ids = self._with_survivors(text, walked, kept_steps, lost) if lost else None
        if ids is None:
            return self._continued(plain, walked.position, walked.kept, fork)
        return self.made(walked.kept, ids, text, fork, self._look(plain, walked.position, walked.kept))

    def _with_survivors(
        self, text: str, walked: Walk, kept_steps: dict[int, Message], lost: Sequence[Replied]
    ) -> list[int] | None:
        places = [replied.message for replied in lost]
        shown = {place: text_stand_in(place, self.masked(place)) for place in places}
        marked = self._render({**kept_steps, **shown})[walked.position :]
        texts = dict(text for place in places for text in texts_of(place, self.masked(place)))
        pieces = survivors.align(text, marked, texts)
        if pieces is None:
            return None
        sampled = {replied.message: replied.turn.sampled.tolist() for replied in lost}
        encoded = self._pieces(pieces, sampled)
        return survivors.encode(encoded, self.last_id(walked.kept), self._literals.encode_behind)

    def _pieces(
        self, pieces: Sequence[str | survivors.Kept], sampled: dict[int, list[int]]
    ) -> Iterator[str | Sequence[int]]:
        """Neighbouring texts are joined, so that what is tokenized anew is tokenized as a whole."""
        tokenizer, text = self.family.vocabulary.tokenizer, ""
        for piece in pieces:
            if isinstance(piece, str):
                text += piece
                continue
            found = survivors.cut(sampled[piece.saying.message], self._literals.unmask(piece.text), tokenizer)
            if found is None:
                text += piece.text
                continue
            head, ids, tail = found
            if before := text + self._literals.mask(head):
                yield before
            yield ids
            text = self._literals.mask(tail)
        if text:
            yield text

    def made(self, kept: int, ids: list[int], text: str, fork: Fork | None, look: Look) -> Prompt:
        return Prompt(
            kept=kept,
            context=np.array(ids, np.int32),
            text_chars=len(text),
            text_hash=text_hash(text),
            thinking=self.family.opens_thinking(text),
            fork=fork,
            look=look,
        )

    def last_id(self, kept: int) -> int | None:
        if not kept:
            return None
        turn = self.path[kept - 1].turn
        last = turn.sampled if turn.sampled_tokens else turn.call.context
        return int(last[-1])

    # -- renders -------------------------------------------------------------------------------------------

    def _render(self, shown: dict[int, Message]) -> str:
        """The conversation, with some messages shown as stand-ins, up to where the model goes on."""
        messages = [shown.get(place) or self.masked(place) for place in range(len(self.messages))]
        return self.writer.write(messages) if self.prefill is None else self._render_prefill(messages)

    def _render_prefill(self, messages: list[Message]) -> str:
        """A trailing assistant message is begun, not closed: the render is cut off behind its text."""
        assert self.prefill is not None
        end = Saying(self.prefill, "c")
        text = self.masked(self.prefill).content or ""
        messages[-1] = msgspec.structs.replace(messages[-1], content=end.placeholder)
        before, found, _ = self.writer.write(messages, generate=False).partition(end.placeholder)
        if not found:
            raise TemplateRefused("the chat template drops the text of a trailing assistant message", param="messages")
        return before + text

    def _look(self, render: str, position: int, kept: int) -> Look:
        first = self.path[kept - 1].message + 1 if kept else head_length(self.messages)
        steps = {step.message: step.reply for step in self.steps[:kept]}
        shown = {place: text_stand_in(place, self.masked(place)) for place in range(first, len(self.messages))}
        marked = self._render({**steps, **shown}) if self.prefill is None else None
        return Look(
            inert=marked is not None and self._is_inert(render, marked, position, shown),
            unwritten=unwritten(self.new, marked, lambda told: self._render({**steps, **told})),
        )

    @property
    def new(self) -> dict[int, Message]:
        """What no turn before this one had: all behind the latest reply, but for the reply that is begun."""
        begins = max(self._sampled, default=-1) + 1
        ends = len(self.messages) if self.prefill is None else self.prefill
        return {place: self.masked(place) for place in range(begins, ends)}

    def _is_inert(self, render: str, marked: str, position: int, shown: Mapping[int, Message]) -> bool:
        if marked[:position] != render[:position]:
            return False
        texts = dict(text for place in shown for text in texts_of(place, self.masked(place)))
        return survivors.align(render[position:], marked[position:], texts) is not None
