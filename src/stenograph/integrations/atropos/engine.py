"""An Atropos server object as an engine: ids in, `(prompt ids, ids, logprobs, finish reasons)` out.

What it returns is evidence as any other: the prompt must be the one that was sent, and a logprob that is missing is an
error. The text of the prompt goes along, for servers that look at it (their test harness does).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

import msgspec

from stenograph.core import JSON, Delta, EngineInfo, Finish, Ids, LogprobKind, Request, Sampling
from stenograph.engine.evidence import delta_from
from stenograph.engine.given import listed
from stenograph.errors import EngineError, EvidenceError, StenographError
from stenograph.render.tokenizer import Tokenizer

SPLIT: ContextVar[str] = ContextVar("SPLIT", default="train")
"""Of the call that is being made: whose limits a server counts it under. No protocol has a field for that."""
UNKNOWN_LENGTH = 2**30
"""Of a server's context, which none names. A call without `max_tokens` is sent without: the server's default holds."""
SUPPORTS = frozenset(Sampling.__struct_fields__) - {"guide"}
"""All of it is sent by vLLM's names. A server that does not know one refuses it."""


class Server(Protocol):
    """As much of `atroposlib`'s `APIServer` as is called."""

    async def tokens_and_logprobs_completion(self, **fields: Any) -> tuple[Any, Any, Any, Any]: ...


class ServerEngine:
    def __init__(
        self,
        server: Server,
        tokenizer: Tokenizer,
        *,
        model: str,
        logprob_kind: LogprobKind,
    ) -> None:
        self._server = server
        self._tokenizer = tokenizer
        self._info = EngineInfo(
            name="atropos-0",
            kind="atropos",
            model=model,
            max_model_len=UNKNOWN_LENGTH,
            logprob_kind=logprob_kind,
            supports=SUPPORTS,
        )

    async def start(self) -> EngineInfo:
        return self._info

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        try:
            answer = await self._server.tokens_and_logprobs_completion(**self._fields(request))
        except StenographError:
            raise
        except Exception as error:  # somebody else's program, behind its own retries
            raise EngineError(f"{type(self._server).__name__} failed: {type(error).__name__}: {error}") from error
        for delta in deltas(request, answer):
            yield delta

    async def healthy(self) -> bool:
        return bool(getattr(self._server, "server_healthy", True))

    async def close(self) -> None:
        """The server is its owner's."""

    def _fields(self, request: Request) -> dict[str, Any]:
        prompt = request.prompt.tolist()
        return {
            "input_ids": prompt,
            "prompt": spelled(self._tokenizer, prompt),
            "model": self._info.model,
            "n": request.n,
            "split": SPLIT.get(),
            **self._sampling(request),
        }

    def _sampling(self, request: Request) -> dict[str, Any]:
        """What is neutral is not sent: it is every server's default, but for the temperature."""
        sampling = request.sampling
        given = {*sampling.unusual(), "temperature"}
        if sampling.max_tokens == UNKNOWN_LENGTH - len(request.prompt):
            given.discard("max_tokens")
        fields: dict[str, Any] = msgspec.to_builtins(sampling)
        return {name: fields[name] for name in fields if name in given}


def spelled(tokenizer: Tokenizer, ids: list[int]) -> str:
    """Without the BOS that the tokenizer put before it: whoever tokenizes the text puts it there again."""
    opening = tokenizer.encode("", special=True)
    return tokenizer.decode(ids[len(opening) :] if ids[: len(opening)] == opening else ids)


def deltas(request: Request, answer: JSON) -> list[Delta]:
    """One a choice, whole."""
    columns = _columns(answer)
    _refuse_other_prompt(request.prompt, columns[0])
    lengths = [len(column) for column in columns[1:]]
    if lengths != [request.n] * len(lengths):
        raise EvidenceError(f"atropos-0 was asked for {request.n} choices: ids, logprobs, finish reasons of {lengths}")
    return [
        delta_from(choice=choice, ids=ids, logprobs=logprobs, finish=finish_of(reason))
        for choice, (ids, logprobs, reason) in enumerate(zip(*columns[1:], strict=True))
    ]


def _columns(answer: JSON) -> Sequence[Any]:
    columns = [listed(column) for column in answer] if isinstance(answer, tuple | list) else []
    if len(columns) != 4 or not all(isinstance(column, tuple | list) for column in columns):
        raise EvidenceError(f"atropos-0 answered {answer!s:.80}, and not (prompt, ids, logprobs, finish reasons)")
    return columns


def _refuse_other_prompt(sent: Ids, told: Sequence[int]) -> None:
    if list(told) != sent.tolist():
        raise EvidenceError(f"atropos-0 was sent a prompt of {len(sent)} ids, and names another, of {len(told)}")


def finish_of(reason: JSON) -> Finish:
    """SGLang's is an object."""
    kind, stop = (reason.get("type"), reason.get("matched")) if isinstance(reason, Mapping) else (reason, None)
    match kind:
        case "stop" | "length" | "abort" as known:
            return Finish(known, stop)
        case other:
            raise EvidenceError(f"atropos-0 ended a choice with {other!r}")
