"""What the scripted engine says: the ids of a reply, before its engine ends it."""

from __future__ import annotations

import random
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from stenograph.core import Request
from stenograph.engine.instance import instance
from stenograph.engine.script import Script
from stenograph.engine.spelling import Spelling
from stenograph.errors import CallerError, ConfigError
from stenograph.render.tokenizer import Tokenizer

Reply: TypeAlias = str | tuple[int, ...] | None
"""A text, ids as they stand, or whatever comes to mind."""
TAIL = 1000
"""Tokens of the prompt that a rule looks at. The whole of it at each turn would make a session quadratic."""
WORDS = (
    *("the", "a", "of", "and", "to", "answer", "is", "looking", "tokenization", "because", "therefore", "Paris"),
    *("don't", "42", "3.14159", "x = f(y);", "  ", "\n", "\n\n", "—", "naïve", "Привет", "日本語", "🙂", "👩\u200d🚀"),
)
"""Ordinary ones, and what breaks a careless reader: odd spaces, digits, scripts, characters of many tokens."""


def dice_for(script: Script, request: Request, ordinal: int, choice: int) -> random.Random:
    """Repeatable: by the order of the calls, or by the request's own seed, as on a real engine."""
    if request.sampling.seed is None:
        return random.Random(f"{script.seed}, call {ordinal}, choice {choice}")
    prompt = zlib.crc32(request.prompt.tobytes())
    return random.Random(f"{script.seed}, seed {request.sampling.seed}, prompt {prompt}, choice {choice}")


class Speaker:
    def __init__(self, script: Script, tokenizer: Tokenizer | None) -> None:
        if tokenizer is None and script.needs_tokenizer():
            raise ConfigError("a script with texts or rules needs a tokenizer")
        self._script = script
        self._tokenizer = tokenizer
        self._spelling = Spelling(tokenizer, script.cut) if tokenizer else None
        self._rules = [(re.compile(rule.when), rule.say) for rule in script.rules]
        self._heard: Counter[str] = Counter()
        """How many replies each session has taken."""

    def replies(self, request: Request) -> Sequence[Reply]:
        """One a choice. Moves the session on in the script's replies."""
        said, replies = self._by_rule(request), self._script.replies
        if said is not None or not replies:
            return [self._held(request) if said is None else said] * request.n
        heard = self._heard[request.session_id]
        self._heard[request.session_id] += request.n
        return [replies[(heard + place) % len(replies)] for place in range(request.n)]

    def ids(self, reply: Reply, dice: random.Random) -> list[int]:
        if isinstance(reply, tuple):
            return list(reply)
        length = dice.randint(1, self._script.longest)
        if self._spelling is None:
            return [dice.randrange(self._script.vocab_size) for _ in range(length)]
        text = " ".join(dice.choice(WORDS) for _ in range(length)) if reply is None else reply
        return list(self._spelling.spell(text, dice))

    def _held(self, request: Request) -> str | None:
        """What is random otherwise has to meet the guide; for a line of its own the script answers itself."""
        guide = request.sampling.guide
        if guide is None:
            return None
        if self._tokenizer is None:
            raise CallerError("without a tokenizer the script holds no reply to a guide", param="guide")
        return instance(guide, self._tokenizer.text_of)

    def _by_rule(self, request: Request) -> str | None:
        if self._tokenizer is None or not self._rules:
            return None
        tail = self._tokenizer.decode(request.prompt[-TAIL:].tolist())
        return next((say for when, say in self._rules if when.search(tail)), None)
