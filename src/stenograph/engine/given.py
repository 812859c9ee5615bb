"""An engine that a trainer holds itself: any object with `generate`.

    class Mine:
        async def generate(self, prompt: list[int], sampling: dict[str, Any]) -> Answer:
            ids, logprobs = await my_engine.sample(prompt, sampling["temperature"], sampling["max_tokens"])
            return {"token_ids": ids, "logprobs": logprobs, "finish_reason": "stop", "weight_version": "12"}

    Gateway(engine=GivenEngine(Mine(), model="policy", max_model_len=32768, logprob_kind="raw"), tokenizer=…)

What comes back is evidence as any other, and checked as any other. What these logprobs are of cannot be found out here:
whoever wrote `generate` knows.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, NotRequired, Protocol, TypedDict

import msgspec

from stenograph.core import JSON, Delta, EngineInfo, Finish, LogprobKind, Request
from stenograph.engine.evidence import delta_from
from stenograph.engine.interleave import interleave
from stenograph.errors import EngineError, EvidenceError, StenographError

SUPPORTS = frozenset({"temperature", "max_tokens"})


class Column(Protocol):
    """An array of numpy's, a tensor of torch's, by the slice that is used."""

    def tolist(self) -> list[Any]: ...


class Answer(TypedDict):
    token_ids: list[int] | Column
    """Sampled, with what ended the reply as the last."""
    logprobs: list[float] | Column
    """One a token."""
    finish_reason: str
    """`stop`, `length` or `abort`."""
    stop_reason: NotRequired[int | str | None]
    """The stop id or stop string of the request that ended it; None or left out: the model's own end."""
    top_logprobs: NotRequired[list[list[tuple[int, float]]] | None]
    """Where some were asked for: a row a token, of pairs of id and logprob, best first."""
    weight_version: NotRequired[str | None]


class Sampler(Protocol):
    async def generate(self, prompt: list[int], sampling: dict[str, Any], /) -> Answer:
        """One reply. `sampling` is complete: every field of `core.Sampling` by its name, `max_tokens` set and the
        template's own stop ids among its stops; and `top_logprobs`, how many alternatives of each token are to be
        told, 0 for none. Cancelled where the caller has gone away."""


class GivenEngine:
    def __init__(
        self,
        sampler: Sampler,
        *,
        model: str,
        max_model_len: int,
        logprob_kind: LogprobKind,
        supports: frozenset[str] = SUPPORTS,
        vocab_size: int | None = None,
        name: str = "given-0",
        max_top_logprobs: int = 0,
    ) -> None:
        """`supports`: the parameters of `core.Sampling` that the sampler honours, besides stops; calls that ask for
        others are refused."""
        self._sampler = sampler
        self._info = EngineInfo(
            name,
            "given",
            model,
            max_model_len,
            logprob_kind,
            supports,
            max_top_logprobs=max_top_logprobs,
            vocab_size=vocab_size,
        )

    async def start(self) -> EngineInfo:
        return self._info

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        async with aclosing(interleave([self._choice(request, choice) for choice in range(request.n)])) as deltas:
            async for delta in deltas:
                yield delta

    async def healthy(self) -> bool:
        return True

    async def close(self) -> None:
        """The sampler is its owner's."""

    async def _choice(self, request: Request, choice: int) -> AsyncGenerator[Delta, None]:
        sampling: dict[str, Any] = msgspec.to_builtins(request.sampling, builtin_types=(dict,))
        sampling["top_logprobs"] = request.top_logprobs
        if request.sampling.seed is not None:
            sampling["seed"] = request.sampling.seed + choice
        try:
            answer = await self._sampler.generate(request.prompt.tolist(), sampling)
        except StenographError:
            raise
        except Exception as error:
            raise EngineError(f"{self._info.name} failed: {type(error).__name__}: {error}") from error
        yield _delta(self._info.name, choice, answer)


def _delta(name: str, choice: int, answer: Mapping[str, JSON]) -> Delta:
    missing = [field for field in ("token_ids", "logprobs", "finish_reason") if field not in answer]
    if missing:
        raise EvidenceError(f"{name} answered without {missing[0]}")
    match answer["finish_reason"]:
        case "stop" | "length" | "abort" as reason:
            finish = Finish(reason, answer.get("stop_reason"))
        case other:
            raise EvidenceError(f"{name} ended a choice with {other!r}")
    return delta_from(
        choice=choice,
        ids=listed(answer["token_ids"]),
        logprobs=listed(answer["logprobs"]),
        top=answer.get("top_logprobs"),
        finish=finish,
        weight_version=answer.get("weight_version"),
    )


def listed(column: JSON) -> JSON:
    """Numbers of Python's own, whoever counted: of numpy's and torch's, alone and in arrays."""
    if isinstance(column, list | tuple):
        return [listed(value) for value in column]
    return column.tolist() if hasattr(column, "tolist") else column
