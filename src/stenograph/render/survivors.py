"""Where a prompt has to be written anew, what was sampled and still stands keeps its ids, where it can be cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from stenograph.core import Value
from stenograph.render.standin import PLACEHOLDER, Saying, places
from stenograph.render.tokenizer import Tokenizer


class Kept(Value):
    """A text of a reply, found again in a render."""

    saying: Saying
    text: str
    """As the template writes it: perhaps without its outer white space."""


def align(render: str, marked: str, texts: Mapping[Saying, str]) -> list[str | Kept] | None:
    """Splits `render` at what the placeholders of `marked` stand for; None where the two don't agree.

    `texts`: what each placeholder stands for, before the template trims it.
    """
    pieces: list[str | Kept] = []
    between = PLACEHOLDER.split(marked)[:: PLACEHOLDER.groups + 1]
    position = len(between[0])
    if not render.startswith(between[0]):
        return None
    pieces.append(between[0])
    for place, following in zip(places(marked), between[1:], strict=True):
        text = _as_written(render, position, texts[place.saying], following)
        if text is None:
            return None
        pieces += [Kept(place.saying, text), following]
        position += len(text) + len(following)
    return pieces if position == len(render) else None


def _as_written(render: str, position: int, text: str, following: str) -> str | None:
    trimmed = (text, text.strip(), text.strip("\n"), text.lstrip("\n"), text.lstrip(), text.rstrip())
    for variant in (*trimmed, json.dumps(text, ensure_ascii=False)[1:-1]):
        if render.startswith(variant, position) and render.startswith(following, position + len(variant)):
            return variant
    return None


def cut(ids: Sequence[int], text: str, tokenizer: Tokenizer) -> tuple[str, Sequence[int], str] | None:
    """The ids whose bytes are `text`; what sticks out of whole tokens at either end stays text."""
    spelled = [tokenizer.bytes_of(id) for id in ids]
    wanted = text.encode()
    start = b"".join(spelled).rfind(wanted)
    if start < 0 or not wanted:
        return None
    borders = [0]
    for token in spelled:
        borders.append(borders[-1] + len(token))
    inside = [place for place, border in enumerate(borders) if start <= border <= start + len(wanted)]
    for first in inside:
        for last in reversed(inside):
            ends = wanted[: borders[first] - start], wanted[borders[last] - start :]
            if last > first and all(_is_text(end) for end in ends):
                return ends[0].decode(), ids[first:last], ends[1].decode()
            if last <= first:
                break
    return None


def _is_text(half: bytes) -> bool:
    try:
        half.decode()
    except UnicodeDecodeError:
        return False
    return True


def encode(
    pieces: Iterator[str | Sequence[int]], last: int | None, encode_behind: Callable[[int | None, str], list[int]]
) -> list[int]:
    """Texts are tokenized where they stand; ids stay."""
    ids: list[int] = []
    for piece in pieces:
        ids += encode_behind(ids[-1] if ids else last, piece) if isinstance(piece, str) else piece
    return ids
