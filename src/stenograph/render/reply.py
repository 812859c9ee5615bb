"""Sampled text to what it says: content, reasoning, tool calls. One reader for a stream and for a whole answer.

Nothing here changes ids: what is recorded does not depend on how it reads.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable

from stenograph.core import CallDelta, Ending, Finish, Message, Note, NoteKind, ToolCall, Value
from stenograph.render.grammar import Grammar, read_call
from stenograph.render.lexer import Lexeme, Lexer
from stenograph.render.tokenizer import Tokenizer


class Said(Value):
    """What some more ids added."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[CallDelta, ...] = ()


class Mode(enum.Enum):
    CONTENT = enum.auto()
    REASONING = enum.auto()
    CALL = enum.auto()


class ReplyReader:
    def __init__(
        self,
        grammar: Grammar,
        tokenizer: Tokenizer,
        *,
        thinking: bool,
        stop: tuple[str, ...],
        new_call_id: Callable[[], str],
    ) -> None:
        """`thinking`: the prompt itself has opened the reasoning. `stop`: the caller's stop strings."""
        self._grammar = grammar
        self._lexer = Lexer(tokenizer, grammar.markers, stop)
        self._new_call_id = new_call_id
        self._mode = Mode.REASONING if thinking else Mode.CONTENT
        self._content: list[str] = []
        self._reasoning: list[str] | None = [] if thinking else None
        self._space = ""
        """White space that is said once something follows it, and dropped before a marker."""
        self._body: list[str] = []
        """Of the call being read."""
        self._before_call = ""
        """The white space before it: dropped with a call, kept where it turns out to be text."""
        self._calls: list[ToolCall] = []
        self._fresh: list[CallDelta] = []
        self._notes: list[Note] = []
        self._said_until = 0
        self._unclosed = False

    def feed_text(self, text: str) -> None:
        """Reads a template's own writing of a message, where every marker counts."""
        self._read(self._lexer.feed_text(text))

    def feed(self, ids: Iterable[int]) -> Said:
        return self._read(self._lexer.feed(ids))

    def finish(self, ids: Iterable[int], finish: Finish) -> Said:
        """`ids`: all that were fed."""
        stopped_by = finish.stop if isinstance(finish.stop, str) else None
        before = self._lengths()
        self._read(self._lexer.finish(ids, stopped_by=stopped_by))
        if self._mode is Mode.CALL:
            self._end_call(whole=finish.reason == "stop", closing="", end=self._said_until)
        elif self._mode is Mode.CONTENT and not self._calls:
            self._content.append(self._space)
        return self._since(before)

    @property
    def reply(self) -> Message:
        return Message(
            role="assistant",
            content="".join(self._content) if self._content or not self._calls else None,
            reasoning=None if self._reasoning is None else "".join(self._reasoning),
            tool_calls=tuple(self._calls),
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        return tuple(self._notes)

    @property
    def ending(self) -> Ending:
        return Ending(self._lexer.raw[self._said_until :], self._unclosed)

    def _read(self, lexemes: Iterable[Lexeme]) -> Said:
        before = self._lengths()
        for lexeme in lexemes:
            if lexeme.mark and self._means_something(lexeme.text):
                self._pass(lexeme)
            elif lexeme.text:
                self._say(lexeme)
        return self._since(before)

    def _lengths(self) -> tuple[int, int]:
        return len(self._content), len(self._reasoning or ())

    def _since(self, before: tuple[int, int]) -> Said:
        calls, self._fresh = tuple(self._fresh), []
        content, reasoning = self._content[before[0] :], (self._reasoning or [])[before[1] :]
        return Said("".join(content), "".join(reasoning), calls)

    def _means_something(self, marker: str) -> bool:
        think, call = self._grammar.think, self._grammar.call
        match self._mode:
            case Mode.REASONING:
                return think is not None and marker == think[1]
            case Mode.CALL:
                return call is not None and marker == call[1]
            case Mode.CONTENT:
                opens_think = think is not None and marker == think[0] and self._reasoning is None and self._is_fresh()
                return opens_think or (call is not None and marker == call[0])

    def _is_fresh(self) -> bool:
        return not self._content and not self._calls

    def _pass(self, marker: Lexeme) -> None:
        if self._mode is Mode.CALL:
            self._end_call(whole=True, closing=marker.text, end=marker.end)
        elif self._mode is Mode.REASONING:
            self._mode = Mode.CONTENT
        elif self._grammar.call is not None and marker.text == self._grammar.call[0]:
            self._mode, self._body, self._before_call = Mode.CALL, [], self._space
            self._said_until = marker.end
        else:
            self._mode, self._reasoning = Mode.REASONING, []
        self._space = ""

    def _say(self, lexeme: Lexeme) -> None:
        text = self._space + lexeme.text
        body = text.rstrip()
        self._space = text[len(body) :]
        if self._mode is Mode.CALL:
            self._body.append(body)
        elif self._mode is Mode.REASONING:
            assert self._reasoning is not None
            body = body if self._reasoning else body.lstrip("\n")
            self._reasoning += [body] if body else []
        else:
            behind_reasoning = self._reasoning is not None and not self._content
            body = body.lstrip("\n") if behind_reasoning else body
            self._content += [body] if body else []
        if body:
            self._said_until = lexeme.end - len(self._space)

    def _end_call(self, *, whole: bool, closing: str, end: int) -> None:
        assert self._grammar.call is not None
        body = "".join(self._body)
        self._mode, self._said_until = Mode.CONTENT, end
        read = read_call(body) if whole else None
        if read is None:
            written = self._grammar.call[0] + body + (self._space + closing if closing else "")
            self._content.append(self._before_call + written)
            self._notes.append(Note(NoteKind.TOOL_CALL_UNPARSED, body[:200]))
            return
        name, text, arguments = read
        call = ToolCall(self._new_call_id(), name, arguments, text)
        self._fresh.append(CallDelta(len(self._calls), call.id, name, text))
        self._calls.append(call)
        self._unclosed = not closing
