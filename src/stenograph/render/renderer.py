"""A conversation and the path it may continue, to the ids that are sent: the render room's one door."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence

import msgspec

from stenograph.core import JSON, Conversation, Message, Text, Tokens
from stenograph.render.certificate import Certificates
from stenograph.render.family import Family, vocabulary_of
from stenograph.render.grammar import Parsers
from stenograph.render.plain import PlainContext, plain_context, plain_reader
from stenograph.render.prompting import Prompt, Prompting, Replied
from stenograph.render.reply import ReplyReader
from stenograph.render.template import Template
from stenograph.render.tokenizer import Tokenizer


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
        self._vocabulary = vocabulary = vocabulary_of(tokenizer)
        self.tokenizer = tokenizer
        self.certificates = Certificates()
        self._plain = Family(vocabulary, template, parsers)
        self._with_tools = Family(vocabulary, tool_template, parsers) if tool_template is not None else self._plain
        self._arguments = arguments
        self.eos = eos_token or ""
        """The tokenizer's own end; '' where it has none."""
        ends = {tokenizer.added[eos_token]} if eos_token in tokenizer.added else set()
        self.stop_ids: frozenset[int] = self._plain.stop_ids | self._with_tools.stop_ids | ends
        """At which a model has to be stopped: the template's own closes of a turn, and the tokenizer's end."""

    def family(self, conversation: Conversation) -> Family:
        return self._with_tools if conversation.tools else self._plain

    def relevant(self, conversation: Conversation) -> Conversation:
        """Without what this template does not read, for it makes no difference: arguments, and names of who replies."""
        family = self.family(conversation)
        arguments = {**self._arguments, **conversation.template_arguments}
        read = {name: value for name, value in arguments.items() if name in family.template.reads}
        messages = conversation.messages if family.grammar.style.reply_names else _nameless(conversation.messages)
        return msgspec.structs.replace(conversation, messages=messages, template_arguments=read)

    def reader(
        self,
        conversation: Conversation,
        *,
        thinking: bool,
        stop: tuple[str, ...],
        new_call_id: Callable[[], str],
        early: bool = True,
    ) -> ReplyReader:
        family = self.family(conversation)
        return family.reader(conversation, thinking=thinking, stop=stop, new_call_id=new_call_id, early=early)

    def plain_context(self, prompt: Text | Tokens, end: int, last: int | None) -> PlainContext:
        return plain_context(prompt, end, last, self.tokenizer, self._vocabulary.literals)

    def plain_reader(self, stop: tuple[str, ...]) -> ReplyReader:
        return plain_reader(self.tokenizer, self._vocabulary.coding, stop)

    def prompt(
        self,
        conversation: Conversation,
        path: Sequence[Replied],
        *,
        sampled: frozenset[int],
        key: str,
        now: datetime.datetime,
        verbatim: bool = False,
    ) -> Prompt:
        """`path`: the turns, from the root on, that the conversation may continue token by token. `sampled`: the
        messages that are replies sampled here. `key` names the tools and the template arguments."""
        work = Prompting(self.family(conversation), conversation, path, sampled, now)
        return self.certificates.prompt(work, key, verbatim=verbatim)


def _nameless(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    named = any(message.name is not None and message.role == "assistant" for message in messages)
    return tuple(map(_without_name, messages)) if named else messages


def _without_name(message: Message) -> Message:
    return msgspec.structs.replace(message, name=None) if message.role == "assistant" else message
