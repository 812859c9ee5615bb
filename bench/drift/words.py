"""What agents and models talk about: seeded, and with whatever breaks a careless reader."""

from __future__ import annotations

import random

WORDS = (
    *("the", "a", "of", "and", "to", "answer", "is", "looking", "tokenization", "because", "therefore", "Paris"),
    *("don't", "42", "3.14159", "f(x, y);", "wait...", "naïve", "Привет", "日本語", "🙂", "👩\u200d🚀", "—", "C++"),
    *("unbelievably", "internationalization", "\n", "\n\n", "  two  spaces", '"quoted"', "x == 1", "snake_case", "a/b"),
)


def text(dice: random.Random, least: int = 3, most: int = 12) -> str:
    """Without white space around it: where that matters, a habit puts it there."""
    words = [dice.choice(WORDS) for _ in range(dice.randint(least, most))]
    return f"So {' '.join(words)} it is"


def arguments(dice: random.Random) -> dict[str, object]:
    return {"q": text(dice, 1, 4).replace("\n", " "), "n": dice.randint(0, 999), "deep": dice.random() < 0.5}
