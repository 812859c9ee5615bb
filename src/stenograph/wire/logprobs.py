"""Logprobs as OpenAI writes them beside a text, with the ids that vLLM adds: one entry a sampled token."""

from __future__ import annotations

from collections.abc import Sequence

from stenograph.core import Piece, TopLogprob, Value
from stenograph.wire.codec import TokenBytes


class TopTokenLogprob(Value):
    token: str
    token_id: int
    logprob: float
    bytes: list[int]


class TokenLogprob(Value):
    token: str
    """The bytes as text; U+FFFD where they are only part of a character."""
    token_id: int
    logprob: float
    """What the engine reported, as float32: the double that is written here is exactly that number."""
    bytes: list[int]
    top_logprobs: list[TopTokenLogprob]
    """Best first; empty where no alternatives were asked for."""


def entries(piece: Piece, token_bytes: TokenBytes, *, as_ids: bool = False) -> list[TokenLogprob]:
    """`as_ids`: `token` is `token_id:17`, which tells tokens apart that read alike."""

    def spelt(id: int) -> tuple[str, list[int]]:
        spelling = token_bytes(id)
        return f"token_id:{id}" if as_ids else spelling.decode(errors="replace"), list(spelling)

    def alternative(top: TopLogprob) -> TopTokenLogprob:
        token, spelling = spelt(top.token_id)
        return TopTokenLogprob(token, top.token_id, top.logprob, spelling)

    def entry(id: int, logprob: float, row: Sequence[TopLogprob]) -> TokenLogprob:
        token, spelling = spelt(id)
        return TokenLogprob(token, id, logprob, spelling, [alternative(top) for top in row])

    rows: Sequence[Sequence[TopLogprob]] = piece.top or [()] * len(piece.ids)
    return [entry(*each) for each in zip(piece.ids.tolist(), piece.logprobs.tolist(), rows, strict=True)]
