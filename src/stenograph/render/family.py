"""What is fixed for one template of one model: its grammar, its markers, its stops, and how it writes and reads."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Mapping, Sequence

import msgspec

from stenograph.core import JSON, Conversation, Ids, Message, Value
from stenograph.render.calls import Schemas
from stenograph.render.closes import Closes, closes
from stenograph.render.coded import Coding
from stenograph.render.grammar import CallForm, Parsers, chosen
from stenograph.render.learn import learn
from stenograph.render.literal import Literals
from stenograph.render.marks import ANYTHING, KEY
from stenograph.render.reply import ReplyReader
from stenograph.render.splice import CallMarks
from stenograph.render.standin import Masker
from stenograph.render.template import Template, all_seen
from stenograph.render.tokenizer import Tokenizer

_SPACE = 64
"""White space behind the opening of reasoning, at most."""


class Vocabulary(Value):
    """A tokenizer with the two ways of setting its markers apart."""

    tokenizer: Tokenizer
    coding: Coding
    literals: Literals


def vocabulary_of(tokenizer: Tokenizer) -> Vocabulary:
    return Vocabulary(tokenizer, Coding(tokenizer), Literals(tokenizer))


class Family:
    def __init__(self, vocabulary: Vocabulary, template: Template, parsers: Parsers) -> None:
        self.vocabulary = vocabulary
        self.template = template
        self.grammar = chosen(learn(template, vocabulary.coding), parsers, vocabulary.coding.code)
        self.masker = Masker(vocabulary.literals, self._own_markers())
        spell = vocabulary.coding.spell
        call = self.grammar.call
        think = self.grammar.think and (spell(self.grammar.think[0]), spell(self.grammar.think[1]))
        self.call_marks = msgspec.structs.replace(_call_marks(call, spell) if call else CallMarks(), think=think)
        self._opens_thinking = think[0] if think else ""

    @functools.cached_property
    def stop_ids(self) -> frozenset[int]:
        """The closes that the template itself writes behind an assistant turn."""
        coding = self.vocabulary.coding
        return frozenset(self.vocabulary.tokenizer.added[coding.spell(char)] for char in self.closes.all)

    @functools.cached_property
    def closes(self) -> Closes:
        return closes(self.template, self.vocabulary.coding, self.grammar)

    @property
    def stop_strings(self) -> tuple[str, ...]:
        """The same, where it is plain text."""
        close, coding = self.grammar.text_close, self.vocabulary.coding
        return (close,) if close and coding.spell(close) == close else ()

    def shuts_thinking(self, ids: Ids) -> bool:
        """Whether a reply begins with the end of reasoning."""
        think = self.call_marks.think
        head = ids[: len(think[1]) + _SPACE].tolist() if think else []
        return bool(head) and self.call_marks.shut(self.vocabulary.tokenizer.decode(head), 0)

    def opens_thinking(self, text: str) -> bool:
        """Whether what is sampled behind `text` begins inside a reasoning block."""
        opening = self._opens_thinking
        return bool(opening) and text[-len(opening) - _SPACE :].rstrip().endswith(opening)

    def reader(
        self,
        conversation: Conversation,
        *,
        thinking: bool,
        stop: tuple[str, ...],
        new_call_id: Callable[[], str],
        early: bool = True,
    ) -> ReplyReader:
        """Calls are read only where the conversation offers tools."""
        return ReplyReader(
            self.grammar if conversation.tools else self.grammar.without_calls(),
            self.vocabulary.tokenizer,
            self.vocabulary.coding,
            thinking=thinking,
            stop=stop,
            schemas=_schemas(conversation),
            new_call_id=new_call_id,
            early=early,
        )

    def writer(self, conversation: Conversation, now: datetime.datetime) -> Writer:
        return Writer(self, conversation, now)

    def _own_markers(self) -> frozenset[str]:
        """The control tokens by which the family writes reasoning and calls."""
        call, think, spell = self.grammar.call, self.grammar.think, self.vocabulary.coding.spell
        of_calls = (call.opening, call.again, call.closing, call.between, *call.param) if call else ()
        chars = set("".join([*(think or ()), *of_calls]))
        return frozenset(word for char in chars if (word := spell(char)) != char)


class Writer:
    """The template, with the tools, the arguments and the clock of one conversation: any messages may be written."""

    def __init__(self, family: Family, conversation: Conversation, now: datetime.datetime) -> None:
        self.family = family
        self._conversation = conversation
        self._tools = family.vocabulary.literals.mask_within(list(conversation.tools))
        self._now = now

    def write(self, messages: Sequence[Message], *, generate: bool = True) -> str:
        """`messages` are masked; so is the text."""
        seen = all_seen(messages, self.family.grammar.style)
        arguments = self._conversation.template_arguments
        return self.family.template.render(seen, self._tools, arguments, generate=generate, now=self._now)

    def parse(self, before: str, region: str) -> Message:
        """A reply as the template writes it, read like a sampled one."""
        thinking = self.family.opens_thinking(before)
        reader = self.family.reader(self._conversation, thinking=thinking, stop=(), new_call_id=lambda: "")
        reader.feed_text(region)
        return reader.written or reader.reply


def _call_marks(call: CallForm, spell: Callable[[str], str]) -> CallMarks:
    open_ended = call.kind == "params" and not call.quote and not call.param[2].strip()
    after_mark = spell(call.after_mark).replace(KEY, ANYTHING)
    return CallMarks(after_mark, spell(call.closing), spell(call.closing) if open_ended else "")


def _schemas(conversation: Conversation) -> Schemas:
    """By tool, the schemas of its parameters; whatever is not shaped so has none."""
    functions = [tool.get("function") for tool in conversation.tools]
    described = [function for function in functions if isinstance(function, dict) and "name" in function]
    return {str(function["name"]): _properties(function.get("parameters")) for function in described}


def _properties(parameters: JSON) -> Mapping[str, Mapping[str, JSON]]:
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    if not isinstance(properties, dict):
        return {}
    return {name: schema for name, schema in properties.items() if isinstance(schema, dict)}
