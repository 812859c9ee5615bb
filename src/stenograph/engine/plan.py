"""A reply of the scripted engine, complete before its first token leaves: what is said, at which odds, and its end."""

from __future__ import annotations

import random
from collections.abc import Iterator

from stenograph.core import Finish, Request, Value
from stenograph.engine.odds import Row, chances, reported, row
from stenograph.engine.script import Script
from stenograph.engine.speech import Reply, Speaker, dice_for
from stenograph.render.tokenizer import Tokenizer


class Line(Value):
    """One choice."""

    ids: tuple[int, ...]
    rows: tuple[Row, ...]
    """One a token; the token's own logprob is the first entry."""
    texts: tuple[str, ...]
    """What each token adds to the text, without what ended it, as vLLM trims it."""
    finish: Finish


class Planner:
    def __init__(self, script: Script, tokenizer: Tokenizer | None) -> None:
        self._script = script
        self._tokenizer = tokenizer
        self._speaker = Speaker(script, tokenizer)
        self.vocab_size = tokenizer.vocab_size if tokenizer else script.vocab_size

    def room(self, request: Request) -> int:
        """Tokens that may still come, a choice; at most 0 where the prompt fills the context."""
        if request.sampling.max_tokens is None:
            raise ValueError("a request without max_tokens")
        return min(request.sampling.max_tokens, self._script.max_model_len - len(request.prompt))

    def plan(self, request: Request, ordinal: int) -> tuple[Line, ...]:
        replies = self._speaker.replies(request)
        return tuple(self._line(request, ordinal, choice, reply) for choice, reply in enumerate(replies))

    def _line(self, request: Request, ordinal: int, choice: int, reply: Reply) -> Line:
        dice = dice_for(self._script, request, ordinal, choice)
        ending = _Ending(self._script, self._tokenizer, request, self.room(request))
        finish = next(filter(None, map(ending.feed, self._speech(request, reply, dice))), Finish("stop"))
        return Line(tuple(ending.ids), tuple(self._rows(request, ending.ids, dice)), tuple(ending.texts), finish)

    def _rows(self, request: Request, ids: list[int], dice: random.Random) -> Iterator[Row]:
        for id, chance in zip(ids, chances(dice, len(ids)), strict=True):
            odds = row(dice, id, chance, request.top_logprobs, self.vocab_size)
            yield reported(odds, request.sampling, self._script.logprob_kind)

    def _speech(self, request: Request, reply: Reply, dice: random.Random) -> Iterator[int]:
        """The reply and what closes it, so that turns end as a template expects; endless where nothing may close it."""
        said = 0
        for id in self._speaker.ids(reply, dice):
            said += 1
            yield id
        closing = _closing(self._script, request)
        while said < request.sampling.min_tokens or (closing is None and request.sampling.ignore_eos):
            for id in self._speaker.ids(None, dice):
                said += 1
                yield id
        if closing is not None:
            yield closing


def _closing(script: Script, request: Request) -> int | None:
    if request.sampling.stop_token_ids:
        return request.sampling.stop_token_ids[0]
    return None if request.sampling.ignore_eos else script.eos


class _Ending:
    """Looks at each token and says whether it was the last, in vLLM's order: end of sequence, stop id, stop string,
    length. The token that ends a choice, and those of a stop string, stay among the ids."""

    def __init__(self, script: Script, tokenizer: Tokenizer | None, request: Request, room: int) -> None:
        self.ids: list[int] = []
        self.texts: list[str] = []
        self._sampling = request.sampling
        self._eos = None if request.sampling.ignore_eos else script.eos
        self._room = room
        self._read = tokenizer.stream().feed if tokenizer else _deaf
        self._heard = ""
        """The end of the text so far: as much as a stop string that is under way may need."""

    def feed(self, id: int) -> Finish | None:
        early = len(self.ids) < self._sampling.min_tokens
        self.ids.append(id)
        if not early and id in (self._eos, *self._sampling.stop_token_ids):
            self.texts.append("")
            return Finish("stop", None if id == self._eos else id)
        self.texts.append(self._read(id))
        if not early and (stop := self._stop_string()):
            return Finish("stop", stop)
        return Finish("length") if len(self.ids) >= self._room else None

    def _stop_string(self) -> str | None:
        self._heard += self.texts[-1]
        stop = next((stop for stop in self._sampling.stop if stop in self._heard), None)
        if stop is not None:
            _trim(self.texts, len(self._heard) - self._heard.index(stop))
        longest = max(map(len, self._sampling.stop), default=0)
        self._heard = self._heard[-longest:] if longest else ""
        return stop


def _deaf(id: int) -> str:
    """Without a tokenizer there is no text, and a stop string is never heard."""
    return ""


def _trim(texts: list[str], surplus: int) -> None:
    for place in reversed(range(len(texts))):
        kept = max(len(texts[place]) - surplus, 0)
        surplus -= len(texts[place]) - kept
        texts[place] = texts[place][:kept]
