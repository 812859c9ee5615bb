"""The model: it says what the script of a habit has for it, in the form of its family, in tokens of its own choice.

Everything it was sent and everything it sampled is in its log, which is the truth that samples are held against. Each
sampled token has a logprob that no other has, so a trained position can be told to be that token or not to be.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from bench.drift.way import Refused
from stenograph.core import JSON, Conversation, EngineFinish, Message, ToolCall, Value
from stenograph.render.renderer import Renderer
from stenograph.render.writing import ReplyWriter

CONTEXT = 4096
"""Tokens."""
PIECE = 9
"""Characters that a token is cut from at most, so that long words are never one token."""
STEP = 2.0**-20
"""Between two logprobs: exact as float32, for the first sixteen million tokens."""
SEEN = 64
"""Tokens of a prompt's end in which an opened reasoning block is looked for."""
_MARKER = re.compile("([\U00100000-\U0010ffff])")
"""In coded text."""

Spelling: TypeAlias = Literal["odd", "canonical"]
SPELLINGS: tuple[Spelling, ...] = ("odd", "canonical")
"""`odd`: as no tokenizer would. `canonical`: what the tokenizer gives, as most of what is sampled is."""
Cut: TypeAlias = Literal["word", "character"]


class Line(Value):
    """What the model says once."""

    says: str | None = None
    thinks: str | None = None
    calls: tuple[tuple[str, dict[str, JSON]], ...] = ()
    cut: Cut | None = None
    """The length is reached in the middle of a word, or of a character."""
    spelling: Spelling | None = None
    """None: the model's own."""


class Spoken(Value):
    """One choice."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish: EngineFinish


class Generated(Value):
    """One call, as the engine's side has it."""

    number: int
    """Of the agent's call."""
    prompt: tuple[int, ...]
    choices: tuple[Spoken, ...]


class Voice:
    """How the models of one family write and spell."""

    def __init__(self, renderer: Renderer, tools: Sequence[dict[str, JSON]]) -> None:
        """`tools`: any, so that a family with a second template for them writes by that one."""
        self.family = renderer.family(Conversation((), tuple(tools)))
        self.tokenizer = renderer.tokenizer
        self._writer = ReplyWriter(self.family, renderer.eos)
        self.calls_tools = self.family.grammar.call is not None
        """Whether the family's template writes calls at all."""
        self.markers = sorted(renderer.tokenizer.markers)

    def ids(
        self, line: Line, spelling: Spelling, prompt: Sequence[int], dice: random.Random
    ) -> tuple[list[int], EngineFinish]:
        thinking = self.family.opens_thinking(self.tokenizer.decode(prompt[-SEEN:]))
        calls = tuple(ToolCall("", name, arguments) for name, arguments in line.calls)
        text = self._writer.write(Message("assistant", line.says, line.thinks, calls), thinking=thinking)
        ids = [id for piece in self._pieces(text, line.spelling or spelling, dice) for id in piece]
        return (ids[: self._place_of(line.cut, ids, dice)], "length") if line.cut else (ids, "stop")

    def _pieces(self, text: str, spelling: Spelling, dice: random.Random) -> Iterator[list[int]]:
        """Markers as the tokens they are; what stands between them is cut at random, and each piece encoded alone."""
        coding, encode = self.family.vocabulary.coding, self.family.vocabulary.literals.encode_behind
        for piece in _MARKER.split(coding.code(text)):
            if _MARKER.fullmatch(piece):
                yield [self.tokenizer.added[coding.spell(piece)]]
                continue
            while piece:
                size = dice.randint(1, PIECE) if spelling == "odd" else len(piece)
                yield encode(-1, piece[:size])
                piece = piece[size:]

    def _place_of(self, cut: Cut, ids: list[int], dice: random.Random) -> int:
        """In the later half, since reasoning that the prompt has opened comes first."""
        places = range(len(ids) // 2, len(ids) - 1)
        ends = {place: self.tokenizer.decode(ids[max(0, place - 8) : place]) for place in places}
        halves = [place for place in places if ends[place].endswith("\ufffd")]
        words = [place for place in places if ends[place][-1:].isalpha()]
        return dice.choice((halves if cut == "character" else words) or words)


class Model:
    def __init__(self, voice: Voice, spelling: Spelling, seed: str) -> None:
        self.log: list[Generated] = []
        self.lines: dict[int, tuple[Line, ...]] = {}
        """What to say to each of the agent's calls, by its number: a line a choice."""
        self.voice = voice
        self._spelling = spelling
        self._seed = seed
        self._sampled = 0

    async def generate(self, prompt: Sequence[int], number: int, n: int = 1) -> Generated:
        """Takes a moment: calls that were made at once are under way at once."""
        if len(prompt) >= CONTEXT:
            raise Refused(400, f"the prompt has {len(prompt)} tokens, and the context {CONTEXT}")
        tries = sum(generated.number == number for generated in self.log)
        choices = tuple(self._spoken(prompt, number, tries, choice) for choice in range(n))
        made = Generated(number, tuple(prompt), choices)
        self.log.append(made)
        await asyncio.sleep(0)
        return made

    def _spoken(self, prompt: Sequence[int], number: int, tries: int, choice: int) -> Spoken:
        dice = random.Random(f"{self._seed}, call {number}, try {tries}, choice {choice}")
        ids, finish = self.voice.ids(self.lines[number][choice], self._spelling, prompt, dice)
        logprobs = tuple(-STEP * (self._sampled + place + 1) for place in range(len(ids)))
        self._sampled += len(ids)
        return Spoken(tuple(ids), logprobs, finish)
