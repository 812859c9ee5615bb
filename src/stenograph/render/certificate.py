"""Proof, once, that a template only appends; so that a turn renders no more than what is new in it (law 8).

Behind a certificate a long history is stood in for by a short one of the same skeleton: the same roles and shapes in
the same order, repetitions cut down, every text a single letter. The new messages are rendered behind that, for real.

What is proven, by renders, for one head (instructions, tools, arguments), one skeleton and one tail:
- the text behind the last reply is the same behind the real history, behind the short one, and behind longer ones;
- the short history reads the same before and after the reply and the tail were added.
What the certificate cannot know is whether a *text* in the old history matters to the template. So each call notes
whether its own messages' texts were inert, and a path with one that was not is rendered in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from stenograph.core import Message, ToolCall, Value, text_hash
from stenograph.errors import TemplateRefused
from stenograph.render.prompting import Look, Prompt, Prompting
from stenograph.render.splice import walk
from stenograph.render.standin import stand_in, text_stand_in, texts_of
from stenograph.render.survivors import align
from stenograph.render.template import head_length
from stenograph.render.unwritten import unwritten

REPEATS = (1, 2, 3, 8, 17)
"""How often the repeated parts of a skeleton are shown in a proof: a template that counts is found out."""
LONGEST_BLOCK = 6
MOST = 4096
"""Certificates kept; then all are forgotten, which costs a proof each."""


class Shape(Value, gc=False):
    """All of a message but its texts."""

    role: str
    thinks: bool
    says: bool
    calls: int
    named: bool


class Block(Value):
    shapes: tuple[Shape, ...]
    repeated: bool


Skeleton: TypeAlias = tuple[Block, ...]


class Certificates:
    def __init__(self) -> None:
        self._verdicts: dict[object, bool] = {}
        self.proofs = 0
        self.quick = 0
        """How many prompts were made by certificate."""

    def prompt(self, work: Prompting, key: str, *, verbatim: bool) -> Prompt:
        """`key` names the tools and the template arguments."""
        if work.prefill is not None or not work.path or not work.path[-1].turn.call.inert:
            return work.prompt(verbatim=verbatim)
        case = _Case(work)
        name = (work.family.template.hash, key, case.name)
        if self._verdicts.get(name) and (made := case.quick()) is not None:
            self.quick += 1
            return made
        prompt = work.prompt(verbatim=verbatim)
        if name not in self._verdicts and prompt.kept == len(work.path) and prompt.fork is None:
            self.proofs += 1
            self._remember(name, case.proven(prompt))
        return prompt

    def _remember(self, name: object, verdict: bool) -> None:
        if len(self._verdicts) >= MOST:
            self._verdicts.clear()
        self._verdicts[name] = verdict


class _Case:
    """One prompt, seen as head, history, reply and tail."""

    def __init__(self, work: Prompting) -> None:
        self._work = work
        self._place = work.path[-1].message
        self._head = head = head_length(work.messages)
        self._tail = {place: work.masked(place) for place in range(self._place + 1, len(work.messages))}
        self.skeleton = skeleton([shape(message) for message in work.messages[head : self._place]])
        self.name = (
            tuple((message.role, message.content) for message in work.messages[:head]),
            self.skeleton,
            shape(work.messages[self._place]),
            tuple(map(shape, self._tail.values())),
        )

    def quick(self) -> Prompt | None:
        """The prompt, from a short render; None where that does not hold together after all."""
        history, work, kept = self._history(2, real_head=False), self._work, len(self._work.path)
        text = self._text_behind(history, self._tail.values())
        if text is None:
            return None
        shown = {place: text_stand_in(place, one) for place, one in self._tail.items()}
        marked = self._text_behind(history, shown.values())
        texts = {saying: said for place, one in self._tail.items() for saying, said in texts_of(place, one)}
        look = Look(
            inert=marked is not None and align(text, marked, texts) is not None,
            unwritten=unwritten(
                work.new, marked, lambda told: self._text_behind(history, {**self._tail, **told}.values())
            ),
        )
        ids = work.family.vocabulary.literals.encode_behind(work.last_id(kept), text)
        return work.made(kept, ids, text, None, look)

    def proven(self, prompt: Prompt) -> bool:
        """`prompt`: made from the real history; its text is what every stand-in has to give, too."""
        texts = (self._text_behind(history, self._tail.values()) for history in self._histories())
        return all(text is not None and text_hash(text) == prompt.text_hash for text in texts)

    def _histories(self) -> Iterator[list[Message]]:
        yield self._history(2, real_head=True)
        for repeats in REPEATS:
            yield self._history(repeats, real_head=False)

    def _history(self, repeats: int, *, real_head: bool) -> list[Message]:
        seen, work = range(self._head), self._work
        head = [work.masked(place) if real_head else placeholder(shape(work.messages[place])) for place in seen]
        shapes = [one for block in self.skeleton for one in block.shapes * (repeats if block.repeated else 1)]
        return [*head, *map(placeholder, shapes)]

    def _text_behind(self, history: list[Message], tail: Iterable[Message]) -> str | None:
        """What the template writes behind the reply, having kept what it wrote before it."""
        write, place = self._work.writer.write, len(history)
        reply = stand_in(place, self._work.masked(self._place))
        try:
            asked = write(history)
            render = write([*history, reply, *tail])
        except TemplateRefused:
            return None
        step = msgspec.structs.replace(
            self._work.step(self._work.path[-1]),
            message=place,
            reply=reply,
            text_chars=len(asked),
            text_hash=text_hash(asked),
        )
        walked = walk(render, [step], self._work.writer.parse, self._work.family.call_marks)
        return render[walked.position :] if walked.kept else None


def shape(message: Message) -> Shape:
    thinks = bool(message.reasoning and not message.reasoning.isspace())
    says = bool(message.content and not message.content.isspace())
    return Shape(message.role, thinks, says, len(message.tool_calls), message.name is not None)


def placeholder(shape: Shape) -> Message:
    """A message of that shape. Its call ids are such as the strictest template takes."""
    calls = tuple(ToolCall(f"abcdefgh{n % 10}", "f", {"x": "y"}) for n in range(shape.calls))
    return Message(
        role=shape.role,
        content="t" if shape.says else "",
        reasoning="r" if shape.thinks else None,
        tool_calls=calls,
        tool_call_id="abcdefgh0" if shape.role == "tool" else None,
        name="f" if shape.named else None,
    )


def skeleton(shapes: Sequence[Shape]) -> Skeleton:
    """Repetitions become one block, so that a conversation that goes on in the same way keeps its skeleton."""
    blocks: list[Block] = []
    place = 0
    while place < len(shapes):
        size, times = _repetition(shapes, place)
        blocks.append(Block(tuple(shapes[place : place + size]), times > 1))
        place += size * times
    return tuple(blocks)


def _repetition(shapes: Sequence[Shape], place: int) -> tuple[int, int]:
    """The block that covers most from here: its length, and how often it stands there."""
    best = (1, 1)
    for size in range(1, LONGEST_BLOCK + 1):
        block, times = shapes[place : place + size], 1
        while len(block) == size and shapes[place + size * times : place + size * (times + 1)] == block:
            times += 1
        if times > 1 and size * times > best[0] * best[1]:
            best = (size, times)
    return best
