"""vLLM's `/inference/v1/generate`, ids in and ids out (`--enable-scale-out`): what `vllm_wire.py` is for completions.

The better one where a server offers it: its logprobs name ids, and it says which weights sampled which token. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import dropwhile, pairwise

import msgspec

from stenograph.core import JSON, Delta, Request, VersionRun
from stenograph.engine import vllm_wire
from stenograph.engine.beside import experts_in_npy, support_of, told_from
from stenograph.engine.evidence import best_first, delta_from
from stenograph.engine.http import ErrorBody
from stenograph.engine.vllm_wire import NOTHING, Usage, sampling_fields
from stenograph.errors import EvidenceError

PATH = "/inference/v1/generate"
NEVER_NAMED = "default"
"""The version of weights that nobody has given a name: no word of the engine's on them."""
TEXT: dict[str, JSON] = {
    "detokenize": True,
    "skip_special_tokens": False,
    "spaces_between_special_tokens": False,
    "include_stop_str_in_output": False,
    "watermarking": False,
}
"""Stop strings are looked for in what was sampled, special tokens included, without spaces around them."""


def body_of(request: Request, model: str, prompt: msgspec.Raw) -> bytes:
    """One alternative more than wanted: the sampled token takes a place among them, whatever its rank."""
    alternatives = request.top_logprobs + 1 if request.top_logprobs else 0
    sampling = {**sampling_fields(request.sampling), **TEXT, "n": request.n, "logprobs": alternatives}
    fields = {
        "request_id": request.id,
        "model": model,
        "token_ids": prompt,
        "sampling_params": sampling | {"routed_experts_prompt_start": told_from(request)},
        "output_mode": "tokens",
        "return_token_ids": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return msgspec.json.encode(fields)


class _Alternative(msgspec.Struct):
    token_id: int
    logprob: float


class _Token(msgspec.Struct):
    token_id: int
    logprob: float | None
    top_logprobs: list[_Alternative] = []


class _Logprobs(msgspec.Struct):
    content: list[_Token]


class _Span(msgspec.Struct):
    version: str
    start: int
    end: int


class _Choice(msgspec.Struct):
    index: int
    token_ids: list[int] | None = None
    logprobs: _Logprobs | None = None
    finish_reason: str | None = None
    stop_reason: int | str | None = None
    weight_versions: list[_Span] | None = None
    sampling_mask: JSON = None
    routed_experts: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: Usage | None = None
    error: ErrorBody | None = None
    prompt_token_ids: msgspec.Raw = NOTHING


class Reader(vllm_wire.StreamReader[_Chunk]):
    """What one stream says, event by event."""

    chunk = _Chunk

    def __init__(self, label: str, request: Request, prompt: msgspec.Raw) -> None:
        super().__init__(label, request, prompt)
        self._sampled: Counter[int] = Counter()
        """Tokens so far, by choice."""
        self._confirmed = False

    def deltas(self, chunk: _Chunk) -> Iterator[Delta]:
        """The prompt is echoed once, with the first chunk."""
        if chunk.choices and not self._confirmed:
            self.compare_prompt(chunk.prompt_token_ids)
            self._confirmed = True
        yield from map(self._delta, chunk.choices)

    def _delta(self, choice: _Choice) -> Delta:
        ids = choice.token_ids or []
        content = choice.logprobs.content if choice.logprobs else None
        if content is not None and [token.token_id for token in content] != ids:
            raise EvidenceError(f"choice {choice.index}: the logprobs are of other tokens than the ids")
        self.count(len(ids))
        self._sampled[choice.index] += len(ids)
        return delta_from(
            choice=choice.index,
            ids=choice.token_ids,
            logprobs=None if content is None else [token.logprob for token in content],
            top=[self._row(token) for token in content or ()] if self.top and ids else None,
            finish=self.finish(choice.finish_reason, choice.stop_reason),
            versions=self._versions(choice),
            support=support_of(f"choice {choice.index}", choice.sampling_mask),
            experts=experts_in_npy(f"choice {choice.index}", choice.routed_experts),
        )

    def _row(self, token: _Token) -> list[tuple[int, float]]:
        return best_first({one.token_id: one.logprob for one in token.top_logprobs}, self.top)

    def _versions(self, choice: _Choice) -> tuple[VersionRun, ...]:
        """Of the whole choice, with its last chunk; they have to cover it without a gap."""
        spans = choice.weight_versions or []
        if not spans:
            return ()
        ends = [spans[0].start, *(span.end for span in spans)]
        if not _contiguous(spans) or (ends[0], ends[-1]) != (0, self._sampled[choice.index]):
            raise EvidenceError(f"choice {choice.index}: its weight versions do not cover its tokens")
        named = dropwhile(lambda span: span.version == NEVER_NAMED, spans)
        return tuple(VersionRun(span.version, span.end - span.start) for span in named if span.end > span.start)


def _contiguous(spans: Sequence[_Span]) -> bool:
    return all(span.start <= span.end for span in spans) and all(
        left.end == right.start for left, right in pairwise(spans)
    )
