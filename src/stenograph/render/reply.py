"""Sampled ids to what they say: content, reasoning, tool calls. One reader for a stream and for a whole answer.

Nothing here changes ids: what is recorded does not depend on how it reads. Text that may still turn out to be a marker
or the caller's stop string is held back, and so is half a character.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable

from stenograph.core import CallDelta, Ending, Finish, Message, Note, NoteKind, ToolCall, Value
from stenograph.render.calls import MORE, Read, ReadCall, Schemas, read_call
from stenograph.render.coded import Coding, ends_tag
from stenograph.render.grammar import CallForm, Grammar
from stenograph.render.marks import ANYTHING, SHORT, Short, begun, common_start, find, meet, skip_space
from stenograph.render.tokenizer import Tokenizer


class Said(Value):
    """What some more ids added."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[CallDelta, ...] = ()


class Mode(enum.Enum):
    START = enum.auto()
    """Nothing said yet, or reasoning just closed: anything may follow."""
    REASONING = enum.auto()
    CONTENT = enum.auto()
    CALL = enum.auto()
    BETWEEN_CALLS = enum.auto()


class ReplyReader:
    def __init__(
        self,
        grammar: Grammar,
        tokenizer: Tokenizer,
        coding: Coding,
        *,
        thinking: bool,
        stop: tuple[str, ...],
        schemas: Schemas,
        new_call_id: Callable[[], str],
    ) -> None:
        """`thinking`: the prompt itself has opened the reasoning. `stop`: the caller's stop strings."""
        self._grammar = grammar
        self._tokenizer = tokenizer
        self._coding = coding
        self._stream = tokenizer.stream()
        self._stop = (*stop, grammar.text_close) if grammar.text_close else stop
        self._schemas = schemas
        self._new_call_id = new_call_id
        self._mode = Mode.REASONING if thinking else Mode.START
        self._coded: list[str] = []
        self._length = 0
        """Of all coded text so far; `_held` is the end of it."""
        self._held = ""
        self._content: list[str] = []
        self._reasoning: list[str] | None = [] if thinking else None
        self._space = ""
        """White space that is said once something follows it, and dropped before a marker."""
        self._opened = ""
        """The opening of the call being read, and the space before it: text after all, where it is no call."""
        self._calls: list[ToolCall] = []
        self._fresh: list[CallDelta] = []
        self._notes: list[Note] = []
        self._said_until = 0
        self._said_behind_calls = False
        self._stopped_at = 0
        """How much of the text the stop string took from the end."""

    # -- in ------------------------------------------------------------------------------------------------

    def feed(self, ids: Iterable[int]) -> Said:
        before = self._lengths()
        for id in ids:
            self._take(id)
        return self._since(before)

    def feed_text(self, text: str) -> None:
        """Reads a template's own writing of a message, to its end."""
        self._append(self._coding.code(text))
        self._settle()

    def finish(self, ids: Iterable[int], finish: Finish) -> Said:
        """`ids`: all that were fed; a character cut in half at their end comes out now, as U+FFFD."""
        before = self._lengths()
        self._append(self._unfinished(ids))
        ends = [finish.stop] if isinstance(finish.stop, str) else []
        ends += [self._grammar.text_close] if self._grammar.text_close else []
        places = [place for word in ends if (place := self._held.find(word)) >= 0]
        if places:
            self._stopped_at = len(self._held) - min(places)
            self._held = self._held[: -self._stopped_at]
        self._settle()
        return self._since(before)

    def _take(self, id: int) -> None:
        text = self._stream.feed(id)
        char = self._coding.char(id)
        if char is None:
            self._append(text)
        else:
            self._append(text.removesuffix(self._tokenizer.text_of(id)) + char)

    def _unfinished(self, ids: Iterable[int]) -> str:
        whole, known = self._tokenizer.decode(ids), self._coding.spell("".join(self._coded))
        return whole[len(known) :] if whole.startswith(known) else ""

    def _append(self, coded: str) -> None:
        self._coded.append(coded)
        self._length += len(coded)
        self._held += coded
        self._advance(final=False)

    def _settle(self) -> None:
        self._advance(final=True)
        if self._mode is Mode.CONTENT and not self._calls and self._space:
            # white space alone is behind nothing that was said, but a marker that was; without markers it is all
            if self._content or (self._reasoning is None and not self._openings()):
                self._said_until = self._read_until() - self._special_end()
            self._content.append(self._space)

    # -- out -----------------------------------------------------------------------------------------------

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
        rest = self._coding.spell("".join(self._coded)[self._said_until :])
        return Ending(rest, calls_closed=self._said_behind_calls)

    def _lengths(self) -> tuple[int, int]:
        return len(self._content), len(self._reasoning or ())

    def _since(self, before: tuple[int, int]) -> Said:
        calls, self._fresh = tuple(self._fresh), []
        content, reasoning = self._content[before[0] :], (self._reasoning or [])[before[1] :]
        return Said("".join(content), "".join(reasoning), calls)

    # -- between -------------------------------------------------------------------------------------------

    def _advance(self, *, final: bool) -> None:
        step = {
            Mode.START: self._start,
            Mode.REASONING: self._reason,
            Mode.CONTENT: self._speak,
            Mode.CALL: self._call,
            Mode.BETWEEN_CALLS: self._next_call,
        }
        while self._held and step[self._mode](final):
            pass

    def _start(self, final: bool) -> bool:
        """What does the reply begin with? True: go on reading."""
        body = skip_space(self._held, 0)
        if body == len(self._held) and not final:
            return False
        waiting = False
        for literal, mode in self._openings():
            end = meet(literal, self._held, body)
            if isinstance(end, int):
                self._open(literal, mode, end)
                return True
            waiting = waiting or end is SHORT
        if waiting and not final:
            return False
        if waiting and self._held[body : body + 1] in self._coding.special:  # a header that was cut short says nothing
            self._held = ""
        self._mode = Mode.CONTENT
        return True

    def _openings(self) -> list[tuple[str, Mode]]:
        grammar = self._grammar
        openings = []
        if grammar.think is not None and self._reasoning is None and grammar.think[0]:
            openings.append((grammar.think[0], Mode.REASONING))
        if grammar.content_opening:
            openings.append((grammar.content_opening, Mode.CONTENT))
        if grammar.call is not None:
            openings.append((grammar.call.start, Mode.CALL))
        return openings

    def _open(self, literal: str, mode: Mode, end: int) -> None:
        if mode is Mode.CALL:
            self._begin_call(0, end if self._has_opening() else end - len(literal))
            return
        self._held, self._space = self._held[end:], ""
        self._mode = mode
        if mode is Mode.REASONING:
            self._reasoning = []

    def _has_opening(self) -> bool:
        return self._grammar.call is not None and bool(self._grammar.call.opening.strip())

    def _reason(self, final: bool) -> bool:
        closing = self._grammar.think[1] if self._grammar.think else ""
        found = find([closing], self._held) if closing else None
        if found is not None and isinstance(found[2], int):
            self._say(found[0])
            self._held, self._space, self._mode = self._held[found[2] - found[0] :], "", Mode.START
            return True
        self._say(self._certain(found[0] if found else None, final))
        return False

    def _speak(self, final: bool) -> bool:
        opening = self._grammar.call.opening if self._grammar.call is not None else ""
        found = find([opening], self._held) if opening.strip() else None
        if found is not None and isinstance(found[2], int):
            self._say(found[0])
            self._begin_call(0, found[2] - found[0])
            return True
        self._say(self._certain(found[0] if found else None, final))
        return False

    def _certain(self, marker_at: int | None, final: bool) -> int:
        """How much of the held text is sure to be just text."""
        if final:
            return self._until_cut_marker(marker_at)
        limits = [len(self._held) - max((begun(word, self._held) for word in self._stop), default=0)]
        limits += [place for word in self._stop if (place := self._held.find(word)) >= 0]
        return min([*limits, *([] if marker_at is None else [marker_at])])

    def _until_cut_marker(self, marker_at: int | None) -> int:
        """Of a marker that was cut short, what begins with a control token says nothing; letters alone are text."""
        close = self._grammar.text_close
        places = [len(self._held) - begun(close, self._held), *([] if marker_at is None else [marker_at])]
        return min(
            (place for place in places if self._held[place : place + 1] in self._coding.special),
            default=len(self._held),
        )

    def _say(self, count: int) -> None:
        """The first characters of what is held are content, or reasoning."""
        piece, self._held = self._held[:count], self._held[count:]
        text = self._space + self._coding.visible(piece)
        body = text.rstrip()
        self._space = text[len(body) :]
        target = self._content
        behind_reasoning = self._reasoning is not None and not self._content
        if self._mode is Mode.REASONING:
            assert self._reasoning is not None
            target, behind_reasoning = self._reasoning, not self._reasoning
        body = body.lstrip("\n") if behind_reasoning else body
        if body:
            target.append(body)
            self._said_behind_calls = bool(self._calls)
            self._said_until = self._read_until() - self._silent_end(piece)

    def _read_until(self) -> int:
        return self._length - len(self._held) - self._stopped_at

    def _silent_end(self, piece: str) -> int:
        """How many characters at the end of a piece say nothing: white space and special tokens."""
        place = len(piece)
        while place and (piece[place - 1].isspace() or piece[place - 1] in self._coding.special):
            place -= 1
        return len(piece) - place

    def _special_end(self) -> int:
        """The same of special tokens alone."""
        read = "".join(self._coded)[: self._read_until()]
        return len(read) - len(read.rstrip("".join(self._coding.special)))

    # -- calls ---------------------------------------------------------------------------------------------

    def _begin_call(self, start: int, end: int) -> None:
        self._opened = self._space + self._held[start:end]
        self._held, self._space, self._mode = self._held[end:], "", Mode.CALL

    def _call(self, final: bool) -> bool:
        assert self._grammar.call is not None
        read = read_call(self._grammar.call, self._held, self._schemas, final=final)
        if read is MORE:
            return False
        if isinstance(read, Read):
            for call in read.calls:
                self._add_call(call)
            self._held = self._held[read.end :]
            self._said_until = self._read_until()
            self._mode = Mode.BETWEEN_CALLS
            return True
        self._give_up()
        return True

    def _give_up(self) -> None:
        """It is no call: its text is content, markers and all."""
        self._notes.append(Note(NoteKind.TOOL_CALL_UNPARSED, self._coding.spell(self._opened + self._held)[:200]))
        self._content.append(self._coding.spell(self._opened))
        self._said_behind_calls = bool(self._calls)
        self._said_until = self._read_until()
        self._space, self._mode = "", Mode.CONTENT

    def _add_call(self, read: ReadCall) -> None:
        spell = self._coding.spell
        call = ToolCall(
            read.id or self._id_in_opening() or self._new_call_id(), spell(read.name), read.arguments, spell(read.text)
        )
        self._fresh.append(CallDelta(len(self._calls), call.id, call.name, spell(read.text)))
        self._calls.append(call)

    def _id_in_opening(self) -> str | None:
        """The call's id, where the family writes it before the name. (The opening may lack its beginning.)"""
        form, opened = self._grammar.call, self._opened.strip()
        assert form is not None
        for literal in (form.again.strip(), form.opening.strip()):
            before, wild, behind = literal.partition(ANYTHING)
            said = opened.removesuffix(behind)
            if wild and before and said != opened and before[-1] in said:
                return said[said.rfind(before[-1]) + 1 :].strip() or None
        return None

    def _next_call(self, final: bool) -> bool:
        """Behind a call: another one, the end of them all, or text."""
        form = self._grammar.call
        assert form is not None
        another = self._meet(form.again) if form.again.strip() else self._meet(form.start)
        if isinstance(another, int):
            behind = another if form.again.strip() or self._has_opening() else another - len(form.start)
            self._begin_call(self._call_closed(form), behind)
            return True
        if form.kind == "object" and isinstance(beside := self._meet("{"), int):
            self._begin_call(0, beside - 1)
            return True
        closed = self._meet(form.closing) if form.closing.strip() else None
        if SHORT in (another, closed):
            self._held = "" if final else self._held
            return False
        if isinstance(closed, int):
            return self._after_calls(form, closed, final)
        self._mode = Mode.CONTENT
        return True

    def _call_closed(self, form: CallForm) -> int:
        """Where the close of the last call ends: should the next one turn out to be none, this is not its text."""
        shared = common_start([form.again.strip(), form.closing.strip()])
        tag = next((place for place in range(len(shared), 0, -1) if ends_tag(shared[place - 1])), 0)
        end = self._meet(shared[:tag]) if tag else 0
        return end if isinstance(end, int) else 0

    def _after_calls(self, form: CallForm, closed: int, final: bool) -> bool:
        """A model may close its calls and open them again."""
        again = self._meet(form.opening, closed) if form.opening.strip() else None
        if again is SHORT and not final:
            return False
        if isinstance(again, int):
            self._begin_call(0, again)
        else:
            self._held, self._mode = self._held[closed:], Mode.CONTENT
        return True

    def _meet(self, literal: str, start: int = 0) -> int | Short | None:
        return meet(literal.strip(), self._held, skip_space(self._held, start))
