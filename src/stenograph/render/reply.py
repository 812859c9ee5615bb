"""Sampled ids to what they say: content, reasoning, tool calls. One reader for a stream and for a whole answer.

Nothing here changes ids: what is recorded does not depend on how it reads. Text that may still turn out to be a marker
or the caller's stop string is held back, and so is half a character.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable

from stenograph.core import Ending, Finish, Message, Note, NoteKind
from stenograph.render.call_reader import CallReader, Next
from stenograph.render.calls import Schemas
from stenograph.render.coded import Coding
from stenograph.render.grammar import Grammar
from stenograph.render.heard import Heard, Said
from stenograph.render.marks import SHORT, begun, find, meet, skip_space
from stenograph.render.tokenizer import Tokenizer
from stenograph.render.unread import Unread


class Mode(enum.Enum):
    START = enum.auto()
    """Nothing said yet, or reasoning just closed: anything may follow."""
    REASONING = enum.auto()
    CONTENT = enum.auto()
    CALL = enum.auto()
    BETWEEN_CALLS = enum.auto()


_THINK = (Mode.REASONING, Mode.START)
"""Behind the marks of reasoning."""
_BEHIND = {Next.CALL: Mode.CALL, Next.BETWEEN: Mode.BETWEEN_CALLS, Next.TEXT: Mode.CONTENT}
_BEHIND |= dict.fromkeys((Next.NO_CALL, Next.BROKEN), Mode.CONTENT)


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
        early: bool = True,
    ) -> None:
        """`thinking`: the prompt itself has opened the reasoning. `stop`: the caller's stop strings. `early`: calls are
        told while they are written, for a caller that hears them so."""
        self._grammar = grammar
        self._tokenizer = tokenizer
        self._coding = coding
        self._stream = tokenizer.stream()
        self._stop = (*stop, grammar.text_close) if grammar.text_close else stop
        self._special = "".join(coding.special)
        self._mode = Mode.REASONING if thinking else Mode.START
        self._unread = Unread(coding)
        self._heard = Heard(thinking=thinking)
        self._calls = (
            CallReader(grammar.call, self._unread, self._heard, coding, schemas, new_call_id, early=early)
            if grammar.call
            else None
        )
        self._space = ""
        """White space that is said once something follows it, and dropped before a marker."""
        self._silent = 0
        """How much of the unread text was told as a call that is none."""
        self._spelled = 0
        """How much of it is a call that is none: its markers are said, too."""
        self._said_until = 0
        self._said_behind_calls = False

    # -- in ------------------------------------------------------------------------------------------------

    def feed(self, ids: Iterable[int]) -> Said:
        for id in ids:
            self._take(id)
        return self._heard.news()

    def feed_text(self, text: str) -> None:
        """Reads a template's own writing of a message, to its end."""
        self._append(self._coding.code(text))
        self._settle()

    def finish(self, ids: Iterable[int], finish: Finish) -> Said:
        """`ids`: all that were fed; a character cut in half at their end comes out now, as U+FFFD."""
        self._append(self._unfinished(ids))
        ends = [finish.stop] if isinstance(finish.stop, str) else []
        ends += [self._grammar.text_close] if self._grammar.text_close else []
        places = [place for word in ends if (place := self._unread.text.find(word)) >= 0]
        if places:
            self._unread.stop_at(min(places))
        self._settle()
        return self._heard.news()

    def _take(self, id: int) -> None:
        text = self._stream.feed(id)
        char = self._coding.char(id)
        if char is None:
            self._append(text)
        else:
            self._append(text.removesuffix(self._tokenizer.text_of(id)) + char)

    def _unfinished(self, ids: Iterable[int]) -> str:
        whole, known = self._tokenizer.decode(ids), self._unread.whole
        return whole[len(known) :] if whole.startswith(known) else ""

    def _append(self, coded: str) -> None:
        self._unread.append(coded)
        self._advance(final=False)

    def _settle(self) -> None:
        self._advance(final=True)
        if self._mode is Mode.CONTENT and not self._heard.calls and self._space:
            # White space alone is behind nothing that was said, but a marker that was; without markers it is said.
            if self._heard.content or not self._grammar.has_markers:
                self._said_until = self._unread.place - self._unread.special_end()
            self._heard.say(self._space, told=not self._silent)

    # -- out -----------------------------------------------------------------------------------------------

    @property
    def reply(self) -> Message:
        return self._heard.reply

    @property
    def written(self) -> Message | None:
        """The same as templates are to be shown it; None: as it is."""
        return self._heard.written

    @property
    def notes(self) -> tuple[Note, ...]:
        return tuple(self._heard.notes)

    @property
    def ending(self) -> Ending:
        return Ending(self._unread.behind(self._said_until), calls_closed=self._said_behind_calls)

    # -- between -------------------------------------------------------------------------------------------

    def _advance(self, *, final: bool) -> None:
        step = {
            Mode.START: self._start,
            Mode.REASONING: self._reason,
            Mode.CONTENT: self._speak,
            Mode.CALL: self._call,
            Mode.BETWEEN_CALLS: self._next_call,
        }
        while self._unread.text and step[self._mode](final):
            pass

    def _start(self, final: bool) -> bool:
        """What does the reply begin with? True: go on reading."""
        text = self._unread.text
        body = skip_space(text, 0)
        if body == len(text) and not final:
            return False
        waiting = False
        for literal, mode in self._openings():
            end = meet(literal, text, body)
            if isinstance(end, int) and (final or not waiting):
                self._open(literal, mode, end)
                return True
            waiting = waiting or end is SHORT
        if waiting and not final:
            return False
        if waiting and text[body : body + 1] in self._coding.special:  # a header that was cut short says nothing
            self._unread.take(len(text))
        self._mode = Mode.CONTENT
        return True

    def _openings(self) -> list[tuple[str, Mode]]:
        grammar = self._grammar
        openings = []
        if grammar.think is not None and self._heard.reasoning is None:
            # Some families close what was never opened: so a reply without reasoning begins.
            openings += [(word, mode) for word, mode in zip(grammar.think, _THINK, strict=True) if word]
        if grammar.content_opening:
            openings.append((grammar.content_opening, Mode.CONTENT))
        if grammar.call is not None:
            openings.append((grammar.call.start, Mode.CALL))
        return openings

    def _open(self, literal: str, mode: Mode, end: int) -> None:
        if mode is Mode.CALL:
            assert self._calls is not None
            self._begin_call(0, end if self._calls.has_opening else end - len(literal))
            return
        self._unread.take(end)
        self._space, self._mode = "", mode
        if mode is Mode.REASONING:
            self._heard.reasoning = []

    def _reason(self, final: bool) -> bool:
        closing = self._grammar.think[1] if self._grammar.think else ""
        found = find([closing], self._unread.text) if closing else None
        if found is not None and isinstance(found[2], int):
            self._say(found[0])
            self._unread.take(found[2] - found[0])
            self._space, self._mode = "", Mode.START
            return True
        self._say(self._certain(found[0] if found else None, final))
        return False

    def _speak(self, final: bool) -> bool:
        opening = self._grammar.call.opening if self._grammar.call is not None else ""
        found = find([opening], self._unread.text) if opening.strip() else None
        if found is not None and isinstance(found[2], int):
            self._say(found[0])
            self._begin_call(0, found[2] - found[0])
            return True
        self._say(self._certain(found[0] if found else None, final))
        return False

    def _certain(self, marker_at: int | None, final: bool) -> int:
        """How much of the unread text is sure to be just text."""
        if final:
            return self._until_cut_marker(marker_at)
        text = self._unread.text
        limits = [len(text) - max((begun(word, text) for word in self._stop), default=0)]
        limits += [place for word in self._stop if (place := text.find(word)) >= 0]
        return min([*limits, *([] if marker_at is None else [marker_at])])

    def _until_cut_marker(self, marker_at: int | None) -> int:
        """Of a marker that was cut short, what begins with a control token says nothing; letters alone are text."""
        text, close = self._unread.text, self._grammar.text_close
        places = [len(text) - begun(close, text), *([] if marker_at is None else [marker_at])]
        return min((at for at in places if text[at : at + 1] in self._coding.special), default=len(text))

    def _say(self, count: int) -> None:
        """The first characters of what is not read are content, or reasoning."""
        silent = min(count, self._silent)
        if silent:
            self._say_piece(silent, told=False)
            self._silent -= silent
        self._say_piece(count - silent, told=True)

    def _say_piece(self, count: int, *, told: bool) -> None:
        heard, piece = self._heard, self._unread.take(count)
        text = self._space + self._shown(piece)
        body = text.rstrip()
        self._space = text[len(body) :]
        before = heard.content if self._mode is not Mode.REASONING else heard.reasoning
        body = body.lstrip("\n") if heard.reasoning is not None and not before else body
        if body:
            self._add(body, told=told)
            self._said_behind_calls = bool(heard.calls)
            self._said_until = self._unread.place - self._unread.silent_end(piece)

    def _shown(self, piece: str) -> str:
        spelled, rest = piece[: self._spelled], piece[self._spelled :]
        self._spelled -= len(spelled)
        return self._coding.spell(spelled) + self._coding.visible(rest)

    def _add(self, body: str, *, told: bool) -> None:
        if self._mode is Mode.REASONING:
            assert self._heard.reasoning is not None
            self._heard.reasoning.append(body)
        else:
            self._heard.say(body, told=told)

    # -- calls ---------------------------------------------------------------------------------------------

    def _begin_call(self, start: int, end: int) -> None:
        assert self._calls is not None
        self._calls.open(start, end, self._space)
        self._space, self._mode = "", Mode.CALL

    def _call(self, final: bool) -> bool:
        assert self._calls is not None
        then = self._calls.read(sure=self._sure(final=final), final=final)
        if then is Next.BETWEEN:
            self._said_until = self._unread.place
        if then in (Next.NO_CALL, Next.BROKEN):
            self._give_up(self._calls.opened, told=then is Next.NO_CALL)
            self._spelled = len(self._unread.text.rstrip(self._special)) if final else 0
        if then is Next.BROKEN:
            self._silent = self._calls.break_off(final=final)
        return self._goes_on(then)

    def _next_call(self, final: bool) -> bool:
        assert self._calls is not None
        return self._goes_on(self._calls.next(final=final))

    def _goes_on(self, then: Next) -> bool:
        self._mode = _BEHIND.get(then, self._mode)
        return then is not Next.WAIT

    def _sure(self, *, final: bool) -> int:
        """How much of a call is nothing else: no stop string, and not what closes the turn."""
        text = self._unread.text[: self._certain(None, final)]
        return len(text.rstrip(self._special))

    def _give_up(self, opened: str, *, told: bool) -> None:
        """It is no call: its text is content, markers and all."""
        spell, heard = self._coding.spell, self._heard
        heard.notes.append(Note(NoteKind.TOOL_CALL_UNPARSED, spell(opened + self._unread.text)[:200]))
        heard.say(spell(opened), told=told)
        self._said_behind_calls = bool(heard.calls)
        self._said_until = self._unread.place
        self._space = ""
