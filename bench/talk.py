"""What agents say: seeded conversations of a wanted length, in the tokens of the bundled model."""

from __future__ import annotations

import random
import string

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.core import Value
from stenograph.render.tokenizer import Tokenizer

TOKENIZER = "smollm2"
"""The one that comes with the project: what is measured can be measured again anywhere."""
COMMON = """
the of and to in is that for it as was with be by on not he his but at are this have from or had an they which
one you were all her she there would their we him been has when who will no more if out so up said what its
about than into them can only other time new some could these two may first then do any like my now over such
our man me even most made after also well did many before must years back through much where your way down
should because long each just state people those too little good make very year still see own work men day get
here old life both between being under never same another know while last might us great error file line
function test value return result failed passed import class open read write list path data index model token
request answer
"""


class Shape(Value):
    """How a conversation grows."""

    opening: int
    """Tokens of the system and first user message."""
    step: int
    """Tokens of each further user message."""
    turns: int
    """Calls behind the opening one."""


class Speech:
    """Everything that is said follows from the seed."""

    def __init__(self, tokenizer: Tokenizer, seed: int) -> None:
        self._dice = random.Random(seed)
        self._tokenizer = tokenizer
        self._common = COMMON.split()

    def opening(self, tokens: int) -> list[dict[str, str]]:
        """A system prompt is the longer part of it, as agents' are."""
        system = self._text(tokens * 3 // 4)
        return [{"role": "system", "content": system}, {"role": "user", "content": self._text(tokens // 4)}]

    def step(self, tokens: int) -> dict[str, str]:
        return {"role": "user", "content": self._text(tokens)}

    def _text(self, tokens: int) -> str:
        """No piece is less than a token, so there are always enough of them."""
        text = " ".join(self._piece() for _ in range(tokens))
        return self._tokenizer.decode(self._tokenizer.encode(text)[:tokens])

    def _piece(self) -> str:
        """Words above all; but a text of nothing else would come out of every cache that a tokenizer has."""
        match self._dice.randrange(20):
            case 0:
                return f"{self._dice.randrange(10_000)}"
            case 1:
                return "".join(self._dice.choices(string.ascii_letters, k=7))
            case 2:
                return self._dice.choice(['"quoted"', "f(x, y);", "—", "naïve", "{'a': 1}", "don't", "…"])
            case 3:
                return "\n"
            case _:
                return self._dice.choice(self._common)


def loaded_tokenizer() -> Tokenizer:
    return load_tokenizer(load_model_files(TOKENIZER))
