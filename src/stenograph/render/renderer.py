"""A conversation and the path it may continue, to the ids that are sent: the render room's one door."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from stenograph.core import JSON, Conversation, Fork, Ids, Message, Turn, Value
from stenograph.errors import TemplateRefused
from stenograph.render import survivors
from stenograph.render.calls import Schemas
from stenograph.render.coded import Coding
from stenograph.render.grammar import Grammar, Parsers, chosen
from stenograph.render.learn import closes, learn
from stenograph.render.literal import Literals
from stenograph.render.reply import ReplyReader
from stenograph.render.splice import Step, Walk, behind, text_hash, walk
from stenograph.render.standin import Masker, Saying, sayings, stand_in, text_stand_in
from stenograph.render.template import Template, as_template_sees
from stenograph.render.tokenizer import Tokenizer


class Replied(Value):
    """A turn of the path a prompt may continue, and which message of the conversation is its reply."""

    turn: Turn
    message: int


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


class Renderer:
    def __init__(
        self,
        tokenizer: Tokenizer,
        template: Template,
        tool_template: Template | None,
        parsers: Parsers,
        eos_token: str | None,
        arguments: Mapping[str, JSON],
    ) -> None:
        """`tool_template`: some models bring a second one, for conversations with tools. `arguments`: for the
        template of every call; a call's own win."""
        self.tokenizer = tokenizer
        self.template = template
        self.coding = Coding(tokenizer)
        self.grammar = chosen(learn(tool_template or template, self.coding), parsers, self.coding.code)
        self._default_arguments = arguments
        self._tool_template = tool_template
        self._eos = tokenizer.added.get(eos_token or "")
        self.literals = Literals(tokenizer)
        self.masker = Masker(self.literals, self._own_markers())

    def _own_markers(self) -> frozenset[str]:
        """The control tokens by which the family writes reasoning and calls."""
        call, think = self.grammar.call, self.grammar.think
        literals = [
            *(think or ()),
            *((call.opening, call.again, call.closing, call.between, *call.param) if call else ()),
        ]
        return frozenset(word for char in set("".join(literals)) if (word := self.coding.spell(char)) != char)

    @functools.cached_property
    def stop_ids(self) -> frozenset[int]:
        """The closes that the template itself writes behind an assistant turn, and the model's own end."""
        templates = [self.template, *([self._tool_template] if self._tool_template else [])]
        chars = {char for template in templates for char in closes(template, self.coding, self.grammar)}
        found = {self.tokenizer.added[self.coding.spell(char)] for char in chars}
        return frozenset(found | ({self._eos} if self._eos is not None else set()))

    def relevant(self, conversation: Conversation) -> Conversation:
        """Without the template arguments that this template does not read: they make no difference."""
        template = self.template_for(conversation)
        arguments = {**self._default_arguments, **conversation.template_arguments}
        read = {name: value for name, value in arguments.items() if name in template.reads}
        return msgspec.structs.replace(conversation, template_arguments=read)

    def template_for(self, conversation: Conversation) -> Template:
        return self._tool_template if conversation.tools and self._tool_template else self.template

    def reader(
        self, conversation: Conversation, *, thinking: bool, stop: tuple[str, ...], new_call_id: Callable[[], str]
    ) -> ReplyReader:
        """Calls are read only where the conversation offers tools."""
        grammar = self.grammar if conversation.tools else self.grammar.without_calls()
        schemas = schemas_of(conversation)
        return ReplyReader(
            grammar, self.tokenizer, self.coding, thinking=thinking, stop=stop, schemas=schemas, new_call_id=new_call_id
        )

    def prompt(
        self, conversation: Conversation, path: Sequence[Replied], *, now: datetime.datetime, verbatim: bool = False
    ) -> Prompt:
        """`path`: the turns, from the root on, that the conversation may continue token by token."""
        return _Prompting(self, conversation, path, now).prompt(verbatim)


class _Prompting:
    """One prompt being made: the conversation, masked once, and its renders."""

    def __init__(
        self, renderer: Renderer, conversation: Conversation, path: Sequence[Replied], now: datetime.datetime
    ) -> None:
        self._renderer = renderer
        self._literals = renderer.literals
        self._masker = renderer.masker
        self._template = renderer.template_for(conversation)
        self._masked = [self._masker.message(message) for message in conversation.messages]
        self._tools = self._literals.mask_within(list(conversation.tools))
        self._arguments = conversation.template_arguments
        self._now = now
        self._path = path
        call = renderer.grammar.call
        self._after_mark = renderer.coding.spell(call.after_mark) if call else ""
        self._conversation = conversation
        self._steps = [self._step(replied) for replied in path]
        last = conversation.messages[-1]
        self._prefill = len(conversation.messages) - 1 if last.role == "assistant" else None

    def _step(self, replied: Replied) -> Step:
        call = replied.turn.call
        return Step(
            message=replied.message,
            reply=stand_in(replied.message, self._masked[replied.message]),
            said=self._masker.message(replied.turn.reply),
            text_chars=call.text_chars,
            text_hash=call.text_hash,
            ending=replied.turn.ending,
        )

    def prompt(self, verbatim: bool) -> Prompt:
        if not self._steps:
            return self._anew(Walk(0, 0))
        render = self._render({step.message: step.reply for step in self._steps})
        walked = walk(render, self._steps, self._parse, self._after_mark)
        if walked.kept == len(self._steps):
            return self._continued(render[walked.position :], walked.kept, None)
        if verbatim and (position := behind(render, self._steps[-1], self._after_mark)) is not None:
            return self._continued(render[position:], len(self._steps), None)
        return self._anew(walked, render)

    # -- what is sent ---------------------------------------------------------------------------------------

    def _continued(self, text: str, kept: int, fork: Fork | None) -> Prompt:
        ids = self._literals.encode_behind(self._last_id(kept), text)
        return self._made(kept, ids, text, fork)

    def _anew(self, walked: Walk, render: str = "") -> Prompt:
        """The path is left where the template rewrote it: from there on the text is written again, with the ids of
        what survived of the sampled texts."""
        kept_steps = {step.message: step.reply for step in self._steps[: walked.kept]}
        plain = self._render(kept_steps)
        if plain[: walked.position] != render[: walked.position]:
            walked, kept_steps = msgspec.structs.replace(walked, kept=0, position=0), {}
            plain = self._render({})
        text = plain[walked.position :]
        fork = Fork(walked.reason, walked.message, walked.detail) if walked.reason else None
        lost = self._path[walked.kept :]
        ids = self._with_survivors(text, walked, kept_steps, lost) if lost else None
        if ids is None:
            return self._continued(text, walked.kept, fork)
        return self._made(walked.kept, ids, text, fork)

    def _with_survivors(
        self, text: str, walked: Walk, kept_steps: dict[int, Message], lost: Sequence[Replied]
    ) -> list[int] | None:
        places = [replied.message for replied in lost]
        shown = {place: text_stand_in(place, self._masked[place]) for place in places}
        marked = self._render({**kept_steps, **shown})[walked.position :]
        texts = {saying: self._text_of(saying) for place in places for saying in sayings(place, self._masked[place])}
        pieces = survivors.align(text, marked, texts)
        if pieces is None:
            return None
        sampled = {replied.message: replied.turn.sampled.tolist() for replied in lost}
        encoded = self._pieces(pieces, sampled)
        return survivors.encode(encoded, self._last_id(walked.kept), self._literals.encode_behind)

    def _pieces(
        self, pieces: Sequence[str | survivors.Kept], sampled: dict[int, list[int]]
    ) -> Iterator[str | Sequence[int]]:
        """Neighbouring texts are joined, so that what is tokenized anew is tokenized as a whole."""
        text = ""
        for piece in pieces:
            if isinstance(piece, str):
                text += piece
                continue
            found = survivors.cut(
                sampled[piece.saying.message], self._literals.unmask(piece.text), self._renderer.tokenizer
            )
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

    def _text_of(self, saying: Saying) -> str:
        said = self._masked[saying.message]
        return (said.reasoning if saying.kind == "r" else said.content) or ""

    def _made(self, kept: int, ids: list[int], text: str, fork: Fork | None) -> Prompt:
        return Prompt(
            kept=kept,
            context=np.array(ids, np.int32),
            text_chars=len(text),
            text_hash=text_hash(text),
            thinking=self._opens_thinking(text),
            fork=fork,
        )

    def _last_id(self, kept: int) -> int | None:
        if not kept:
            return None
        turn = self._path[kept - 1].turn
        last = turn.sampled if turn.sampled_tokens else turn.call.context
        return int(last[-1])

    # -- renders --------------------------------------------------------------------------------------------

    def _render(self, shown: dict[int, Message]) -> str:
        """The conversation, with some messages shown as stand-ins, up to where the model goes on."""
        messages = [shown.get(index, message) for index, message in enumerate(self._masked)]
        if self._prefill is not None:
            return self._render_prefill(messages)
        return self._write(messages, generate=True)

    def _render_prefill(self, messages: list[Message]) -> str:
        """A trailing assistant message is begun, not closed: the render is cut off behind its text."""
        assert self._prefill is not None
        end = Saying(self._prefill, "c")
        text = self._masked[self._prefill].content or ""
        messages[-1] = msgspec.structs.replace(messages[-1], content=end.placeholder)
        before, found, _ = self._write(messages, generate=False).partition(end.placeholder)
        if not found:
            raise TemplateRefused("the chat template drops the text of a trailing assistant message", param="messages")
        return before + text

    def _write(self, messages: list[Message], *, generate: bool) -> str:
        seen = [as_template_sees(message, self._renderer.grammar.style) for message in messages]
        return self._template.render(seen, self._tools, self._arguments, generate=generate, now=self._now)

    def _parse(self, before: str, region: str) -> Message:
        thinking = self._opens_thinking(before)
        reader = self._renderer.reader(self._conversation, thinking=thinking, stop=(), new_call_id=lambda: "")
        reader.feed_text(region)
        return reader.reply

    def _opens_thinking(self, text: str) -> bool:
        think = self._renderer.grammar.think
        opening = self._renderer.coding.spell(think[0]) if think else ""
        return bool(opening) and text[-64:].rstrip().endswith(opening)


def schemas_of(conversation: Conversation) -> Schemas:
    """By tool, the schemas of its parameters; whatever is not shaped so has none."""
    functions = [tool.get("function") for tool in conversation.tools]
    described = [function for function in functions if isinstance(function, dict) and "name" in function]
    return {str(function["name"]): _properties(function.get("parameters")) for function in described}


def _properties(parameters: JSON) -> dict[str, dict[str, JSON]]:
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    if not isinstance(properties, dict):
        return {}
    return {name: schema for name, schema in properties.items() if isinstance(schema, dict)}
