"""Proof that a render continues what was sent, and the place where it does.

A render of the whole conversation, sampled replies as placeholders, is walked along the path: behind each turn's
context (which must read as it did when it was sent) comes the turn's reply as the template writes it now (which must
say what was sampled, all of it and nothing else). Where the walk ends, the new context begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stenograph.core import Ending, ForkReason, Message, Value, text_hash
from stenograph.render.marks import ANYTHING, meet, skip_space
from stenograph.render.standin import Place, places, sayings

TRIMMED = ("\n", "\n\n", " ", " \n")
"""The white space in which generation prompts end."""


class Step(Value):
    """One turn of a path, as far as its text goes."""

    message: int
    """Index of its reply in the conversation."""
    reply: Message
    """Masked, with placeholders: what the template was shown."""
    said: Message
    """What was sampled, masked."""
    text_chars: int
    text_hash: str
    ending: Ending
    shut: bool = False
    """It has no reasoning, and began with the end of some."""


class CallMarks(Value):
    """How the template writes on behind the placeholder in the last call of a reply."""

    after: str = ""
    """Up to the end of what the call says."""
    closing: str = ""
    """And what closes the calls."""
    ended: str = ""
    """What has to stand behind a call for its last value to be known whole, where nothing else ends a value."""
    think: tuple[str, str] | None = None
    """Around reasoning."""

    def shut(self, text: str, at: int, *, opened: bool = False) -> bool:
        """Does `text` go on with the end of reasoning that was not `opened`?"""
        return self.think is not None and not opened and text.startswith(self.think[1], skip_space(text, at))


class Walk(Value):
    kept: int
    """How many turns of the path the render keeps."""
    position: int
    """Where in the render the text behind them begins."""
    reason: ForkReason | None = None
    """Why not all; None: all are kept."""
    detail: str = ""
    message: int = 0
    """The message at which it diverged."""


Parse = Callable[[str, str], Message]
"""(what precedes, a reply as the template writes it) → the message it parses to."""


def walk(render: str, path: Sequence[Step], parse: Parse, marks: CallMarks) -> Walk:
    by_message, position = _by_message(render, marks), 0
    for count, step in enumerate(path):
        start = _context_end(render, position, step)
        if start is None:
            detail = "the template writes what precedes this reply otherwise than it was sent"
            return Walk(count, position, ForkReason.TEMPLATE_REWROTE_HISTORY, detail, step.message)
        found = by_message.get(step.message, [])
        problem = _differs(render, start, step, found, parse, marks)
        if problem is not None:
            return Walk(count, position, problem[0], problem[1], step.message)
        position = _end(render, start, step, found, marks)
    return Walk(len(path), position)


def _by_message(render: str, marks: CallMarks) -> dict[int, list[Place]]:
    """Where an argument's tag is closed by its key, the placeholder stands twice for one thing that is said."""
    by_message: dict[int, list[Place]] = {}
    for place in places(render):
        found = by_message.setdefault(place.saying.message, [])
        if not (found and found[-1].saying == place.saying and ANYTHING in marks.after):
            found.append(place)
    return by_message


def _context_end(render: str, position: int, step: Step) -> int | None:
    """Where the context that precedes the reply ends. The white space in which it did (behind an opened `<think>`) the
    template may trim once something else stands there (`<think></think>`)."""
    end = position + step.text_chars
    if len(render) >= end and text_hash(render[position:end]) == step.text_hash:
        return end
    for space in TRIMMED:
        trimmed = end - len(space)
        if position < trimmed <= len(render) and text_hash(render[position:trimmed] + space) == step.text_hash:
            return trimmed
    return None


def behind(render: str, step: Step, marks: CallMarks) -> int | None:
    """Where the text behind one reply begins, whatever precedes it; None where the reply cannot be found."""
    found = _by_message(render, marks).get(step.message)
    if not found or [place.saying for place in found][-1] != sayings(step.message, step.said)[-1]:
        return None
    return _end(render, found[-1].end, step, found, marks)


def _differs(
    render: str, start: int, step: Step, found: list[Place], parse: Parse, marks: CallMarks
) -> tuple[ForkReason, str] | None:
    expected, seen = sayings(step.message, step.said), [place.saying for place in found]
    missing = [saying for saying in expected if saying not in seen]
    if missing:
        what = {"r": "reasoning", "c": "text", "a": "tool calls"}[missing[0].kind]
        return ForkReason.TEMPLATE_REWROTE_HISTORY, f"the template drops the {what} of this reply"
    if seen != expected or (found and found[0].start < start):
        return ForkReason.BRIDGE_REFUSED, "the template repeats or reorders what this reply says"
    if step.ending.calls_closed:
        return ForkReason.TEMPLATE_REWROTE_HISTORY, "the template writes calls last, and this reply went on behind them"
    cut = _cut(render, start, step, found, marks)
    ended = marks.ended if step.said.tool_calls and not step.ending.calls_closed else ""
    if not _says_the_same(parse(render[:start], render[start:cut] + ended), step.reply):
        return ForkReason.TEMPLATE_REWROTE_HISTORY, "the template writes something else into this reply"
    opened = marks.think is not None and render[:start].rstrip().endswith(marks.think[0])
    if marks.shut(render, start, opened=opened) != step.shut:
        return ForkReason.TEMPLATE_REWROTE_HISTORY, "the template closes reasoning where the model did not"
    if _met(render, cut, step) is None:
        return ForkReason.TEMPLATE_REWROTE_HISTORY, "the template closes this reply otherwise than the model did"
    return None


def _says_the_same(written: Message, shown: Message) -> bool:
    def calls(message: Message) -> list[tuple[str, object]]:
        return [(call.name, call.arguments) for call in message.tool_calls]

    return (
        (written.content or "").strip() == (shown.content or "").strip()
        and (written.reasoning or "").strip() == (shown.reasoning or "").strip()
        and calls(written) == calls(shown)
    )


def _cut(render: str, start: int, step: Step, found: list[Place], marks: CallMarks) -> int:
    """The end of what the reply says, in the template's writing: of a call, with the end of its arguments."""
    said = found[-1].end if found else start
    if not step.said.tool_calls:
        return said
    end = meet(marks.after, render, said)
    if isinstance(end, int) and step.ending.calls_closed:
        end = meet(marks.closing.strip(), render, skip_space(render, end))
    return end if isinstance(end, int) else said


def _met(render: str, cut: int, step: Step) -> int | None:
    """Where the render goes on behind what was sampled: the sampled rest must be how the template goes on, too."""
    rest = step.ending.rest
    if render.startswith(rest, cut):
        return cut + len(rest)
    if not rest.strip():
        return cut
    end = meet(rest.strip(), render, skip_space(render, cut))
    return end if isinstance(end, int) else None


def _end(render: str, start: int, step: Step, found: list[Place], marks: CallMarks) -> int:
    cut = _cut(render, start, step, found, marks)
    met = _met(render, cut, step)
    return cut if met is None else met
