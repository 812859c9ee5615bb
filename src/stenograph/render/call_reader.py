"""The calls of a reply, one behind the other, and where they end."""

from __future__ import annotations

import enum
from collections.abc import Callable

from stenograph.core import JSON
from stenograph.render.arguments import Arguments, JsonArguments, ParamArguments
from stenograph.render.calls import MORE, Read, ReadCall, Schemas, head, json_at, read_call
from stenograph.render.coded import Coding, ends_tag
from stenograph.render.grammar import CallForm
from stenograph.render.heard import Heard
from stenograph.render.marks import ANYTHING, SHORT, common_start, find
from stenograph.render.unread import Unread


class Next(enum.Enum):
    """What is to be done about the text that is not read yet."""

    WAIT = enum.auto()
    """For more of it."""
    CALL = enum.auto()
    """A call has been opened."""
    BETWEEN = enum.auto()
    """A call has been read: another may follow."""
    NO_CALL = enum.auto()
    """What was opened is none: it is text."""
    BROKEN = enum.auto()
    """The same, but its caller has been told of it."""
    TEXT = enum.auto()
    """The calls are over."""


class Telling:
    """A call that is told while it is written: there is no way back."""

    def __init__(self, id: str, name: str, arguments: Arguments) -> None:
        self.id = id
        self.name = name
        self.arguments = arguments
        self.written: list[str] = []
        """Coded."""


class CallReader:
    def __init__(
        self,
        form: CallForm,
        unread: Unread,
        heard: Heard,
        coding: Coding,
        schemas: Schemas,
        new_call_id: Callable[[], str],
        *,
        early: bool,
    ) -> None:
        """`early`: a call is told while it is written. Else once it is whole, and what is none is text."""
        self.form = form
        self.opened = ""
        """The opening of the call being read, and the space before it: text after all, where it is no call."""
        self._unread = unread
        self._heard = heard
        self._coding = coding
        self._schemas = schemas
        self._new_call_id = new_call_id
        self._early = early
        self._telling: Telling | None = None

    @property
    def has_opening(self) -> bool:
        return bool(self.form.opening.strip())

    def open(self, start: int, end: int, space: str = "") -> None:
        """The unread text begins with a call's opening, from `start` to `end`; `space` stood before it."""
        self.opened = space + self._unread.take(end)[start:]

    def read(self, *, sure: int, final: bool) -> Next:
        """`sure`: how much of the unread text cannot be part of a stop string."""
        if self._early:
            self._tell(sure)
        if self._telling and not self._telling.arguments.over and not final:
            return Next.WAIT
        read = read_call(self.form, self._unread.text, self._schemas, final=final)
        if read is MORE:
            return Next.WAIT
        if not isinstance(read, Read):
            return Next.BROKEN if self._telling else Next.NO_CALL
        if self._telling:
            self._say(self._telling, self._telling.arguments.rest(self._unread.text))
            self._end(self._telling, read=True)
        else:
            for call in read.calls:
                self._add(call)
        self._unread.take(read.end)
        return Next.BETWEEN

    def _tell(self, sure: int) -> None:
        text = self._unread.text[:sure]
        telling = self._telling or self._begun(text)
        if telling is None or not (piece := telling.arguments.more(text)):
            return
        if self._telling is None:
            self._telling = telling
            telling.id = self._id(telling.id)
            self._heard.begin_call(telling.id, telling.name)
        self._say(telling, piece)

    def _say(self, telling: Telling, piece: str) -> None:
        telling.written.append(piece)
        self._heard.more_arguments(self._coding.spell(piece))

    def _begun(self, text: str) -> Telling | None:
        """A tool that is offered, and its arguments begin: whatever comes, this is a call."""
        known = head(self.form, text)
        if known is None or known.name not in self._schemas:
            return None
        if self.form.kind == "params":
            arguments: Arguments = ParamArguments(self.form, known.end, self._schemas[known.name])
        else:
            arguments = JsonArguments(known.end, (self.form.closing, self.form.opening))
        return Telling(known.id or "", known.name, arguments)

    def break_off(self, *, final: bool) -> int:
        """Of the call that was told, and is none: how much of the unread text was meant to be its."""
        assert self._telling is not None
        self._end(self._telling, read=False)
        text = self._unread.text
        found = find([literal for literal in (self.form.closing, self.form.opening) if literal.strip()], text)
        if final:
            return len(text) + 1  # white space at the end, too
        if found is None or not isinstance(found[2], int):
            return len(text)
        return found[2] if found[1] == self.form.closing else found[0]

    def _end(self, telling: Telling, *, read: bool) -> None:
        self._heard.end_call(telling.id, telling.name, self._object("".join(telling.written)), read=read)
        self._telling = None

    def _add(self, read: ReadCall) -> None:
        id, name = self._id(read.id), self._coding.spell(read.name)
        self._heard.begin_call(id, name)
        self._heard.more_arguments(self._coding.spell(read.text))
        self._heard.end_call(id, name, self._object(read.text), read=True)

    def _object(self, written: str) -> dict[str, JSON] | None:
        """A control token inside of a text is its letters."""
        found = json_at(self._coding.spell(written), 0)
        return found[0] if found and isinstance(found[0], dict) else None

    def _id(self, written: str | None) -> str:
        return written or self._id_in_opening() or self._new_call_id()

    def _id_in_opening(self) -> str | None:
        """The call's id, where the family writes it before the name. (The opening may lack its beginning.)"""
        opened = self.opened.strip()
        for literal in (self.form.again.strip(), self.form.opening.strip()):
            before, wild, behind = literal.partition(ANYTHING)
            said = opened.removesuffix(behind)
            if wild and before and said != opened and before[-1] in said:
                return said[said.rfind(before[-1]) + 1 :].strip() or None
        return None

    def next(self, *, final: bool) -> Next:
        """Behind a call: another one, the end of them all, or text."""
        form, unread = self.form, self._unread
        another = unread.meet(form.again) if form.again.strip() else unread.meet(form.start)
        if isinstance(another, int):
            behind = another if form.again.strip() or self.has_opening else another - len(form.start)
            self.open(self._call_closed(), behind)
            return Next.CALL
        if form.kind == "object" and isinstance(beside := unread.meet("{"), int):
            self.open(0, beside - 1)
            return Next.CALL
        closed = unread.meet(form.closing) if form.closing.strip() else None
        if SHORT in (another, closed):
            unread.text = "" if final else unread.text
            return Next.WAIT
        return self._after_calls(closed, final) if isinstance(closed, int) else Next.TEXT

    def _call_closed(self) -> int:
        """Where the close of the last call ends: should the next one turn out to be none, this is not its text."""
        shared = common_start([self.form.again.strip(), self.form.closing.strip()])
        tag = next((place for place in range(len(shared), 0, -1) if ends_tag(shared[place - 1])), 0)
        end = self._unread.meet(shared[:tag]) if tag else 0
        return end if isinstance(end, int) else 0

    def _after_calls(self, closed: int, final: bool) -> Next:
        """A model may close its calls and open them again."""
        again = self._unread.meet(self.form.opening, closed) if self.has_opening else None
        if again is SHORT and not final:
            return Next.WAIT
        if isinstance(again, int):
            self.open(0, again)
            return Next.CALL
        self._unread.take(closed)
        return Next.TEXT
