"""What llama.cpp's server speaks on `/completion`: a request as its JSON, its stream of events as deltas.

Its habits, and what is done about them:
- Unset parameters are not neutral (top_k 40, top_p 0.95, min_p 0.05, temperature 0.8): each one is set. Samplers that
  we have no parameter for are left out of the chain. The order is vLLM's: temperature before what truncates.
- Presence and frequency penalties count the prompt's tokens too, which nobody expects of them: they are not supported.
- Stop strings would hide the tokens they are made of, and there are no stop ids: `stops.py` watches instead.
- A token whose text ends in half a character is not reported until the character is whole, and then without its id
  and logprob, while `tokens_predicted` counts it. That gap is found here. The embedded server has none, since its
  vocabulary has no text (`muted.py`).
- The token that ended a reply by itself (end of sequence) is reported like any other, with its logprob.
"""

from __future__ import annotations

import msgspec

from stenograph.core import JSON, Delta, Finish, Guide, GuideKind, Request
from stenograph.engine.ebnf import alternatives
from stenograph.engine.evidence import delta_from
from stenograph.engine.http import ErrorBody
from stenograph.errors import CallerError, EngineError, EvidenceError

SUPPORTS = frozenset(
    {
        *("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed", "max_tokens"),
        *("stop", "stop_token_ids", "ignore_eos", "logit_bias"),
    }
)
"""`ignore_eos` as llama.cpp means it: tokens that end a reply are never sampled."""
GUIDES: frozenset[GuideKind] = frozenset({"json", "object", "choice", "grammar"})
"""A grammar is compared with the tokens' text, which the embedded server's have none of (`muted.py`): there, none."""
MAX_TOP_LOGPROBS = 20
"""OpenAI's limit. The server has none, but each costs on every token."""
SAMPLERS = ("penalties", "temperature", "min_p", "top_k", "top_p")
SEEDS = 2**32 - 1
"""Seeds are 32 bits wide there, and the highest one means: a random one."""
LOG_OF_ZERO = -3.4028234663852886e38
"""The lowest float32: what the server writes for the logarithm of 0, which no token that was sampled has."""


def body_of(request: Request, choice: int, context: int) -> bytes:
    """`context`: how many tokens a slot holds, the window of the repetition penalty."""
    sampling = request.sampling
    fields: dict[str, JSON] = {
        "prompt": request.prompt.tolist(),
        "n_predict": sampling.max_tokens,
        "stream": True,
        "return_tokens": True,
        "n_probs": max(request.top_logprobs, 1),
        "post_sampling_probs": False,
        "timings_per_token": True,
        "cache_prompt": True,
        "samplers": list(SAMPLERS),
        "temperature": sampling.temperature,
        "dynatemp_range": 0.0,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "min_keep": 0,
        "repeat_penalty": sampling.repetition_penalty,
        "repeat_last_n": context,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "mirostat": 0,
        "seed": -1 if sampling.seed is None else (sampling.seed + choice) % SEEDS,
        "ignore_eos": sampling.ignore_eos,
        "logit_bias": [[id, bias] for id, bias in sampling.logit_bias.items()],
        **(_held(sampling.guide) if sampling.guide else {}),
    }
    return msgspec.json.encode(fields)


def _held(guide: Guide) -> dict[str, JSON]:
    match guide.kind:
        case "json":
            return {"json_schema": guide.value}
        case "object":
            return {"json_schema": {"type": "object"}}
        case "choice":
            return {"grammar": alternatives(guide.value)}
        case "grammar":
            return {"grammar": guide.value}
        case kind:
            raise CallerError(f"llama.cpp holds no reply to a guide of kind {kind}")


class Alternative(msgspec.Struct, frozen=True):
    id: JSON = None
    logprob: JSON = None


class Sampled(Alternative, frozen=True):
    top_logprobs: tuple[Alternative, ...] = ()


class Timings(msgspec.Struct, frozen=True):
    cache_n: int | None = None
    """Tokens of the prompt that were in the slot's cache."""


class Chunk(msgspec.Struct, frozen=True):
    """One event of the stream."""

    tokens: list[JSON] = []
    completion_probabilities: list[Sampled] = []
    tokens_predicted: int | None = None
    """Sampled so far, reported or not."""
    tokens_evaluated: int | None = None
    """Of the prompt."""
    stop: bool = False
    stop_type: str = ""
    timings: Timings = Timings()
    error: ErrorBody | None = None

    @property
    def logprobs(self) -> list[JSON]:
        return [one.logprob for one in self.completion_probabilities]

    @property
    def finish(self) -> Finish | None:
        if not self.stop:
            return None
        if self.stop_type not in FINISHES:
            raise EvidenceError(f"llama.cpp ended a reply for a reason that is not known here: {self.stop_type!r}")
        return FINISHES[self.stop_type]


FINISHES = {"eos": Finish("stop"), "limit": Finish("length")}


def chunk_of(data: bytes) -> Chunk:
    """Raises `Refusal` where the server reports an error in the middle of its answer."""
    try:
        chunk = msgspec.json.decode(data, type=Chunk)
    except msgspec.ValidationError as error:
        raise EvidenceError(f"llama.cpp's answer is not as expected: {error}") from error
    except msgspec.DecodeError as error:
        raise EngineError(f"llama.cpp's answer is not JSON: {error}") from error
    if chunk.error:
        raise chunk.error.refusal(chunk.error.code if type(chunk.error.code) is int else 500)
    return chunk


def delta_of(chunk: Chunk, request: Request, choice: int, seen: int, finish: Finish | None) -> Delta:
    """`seen`: tokens of this choice that were reported, this chunk's included."""
    _refuse_gaps(chunk, request, seen)
    sampled = chunk.completion_probabilities
    top = [[(one.id, one.logprob) for one in each.top_logprobs] for each in sampled] if request.top_logprobs else None
    return delta_from(
        choice=choice,
        ids=chunk.tokens,
        logprobs=chunk.logprobs,
        top=top,
        finish=finish,
        cached_tokens=chunk.timings.cache_n,
    )


def _refuse_gaps(chunk: Chunk, request: Request, seen: int) -> None:
    if chunk.tokens_evaluated != len(request.prompt):
        raise EvidenceError(f"llama.cpp read {chunk.tokens_evaluated} tokens of a prompt of {len(request.prompt)}")
    if chunk.tokens_predicted != seen:
        raise EvidenceError(
            f"llama.cpp sampled {chunk.tokens_predicted} tokens and reported {seen}: "
            "it withholds those whose text ends in half a character"
        )
    if [one.id for one in chunk.completion_probabilities] != chunk.tokens:
        raise EvidenceError("llama.cpp's probabilities are of other tokens than it reports")
    if LOG_OF_ZERO in chunk.logprobs:
        raise EvidenceError("llama.cpp reports a sampled token with probability 0")
