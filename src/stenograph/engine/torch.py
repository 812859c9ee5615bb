"""A transformers model in this process: for trainers that hold the policy themselves, and for small models on a CPU.

    engine = TorchEngine(model, tokenizer, called="policy")        # or a folder, in place of the model
    async with Gateway(engine=engine, tokenizer=folder) as gateway:
        ...
        await engine.replace(model.state_dict(), version="7")      # also in the middle of replies

Every step runs in a thread, and between two steps replies come, go, or wait for new weights.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from stenograph.core import Delta, EngineInfo, Finish, Ids, Request
from stenograph.engine import logprob_kind
from stenograph.engine.evidence import delta_from
from stenograph.engine.log import EngineLog, Transcript
from stenograph.engine.scoring import FIRST, Scored
from stenograph.engine.stops import StopWatch
from stenograph.engine.torch_batch import Batch, Row, Token
from stenograph.engine.torch_score import Scorer
from stenograph.engine.torch_weights import refuse_others
from stenograph.errors import (
    ConfigError,
    ContextLengthExceeded,
    EngineError,
    EngineUnavailable,
    StenographError,
)
from stenograph.render.tokenizer import Tokenizer

SUPPORTS = frozenset(
    {
        *("temperature", "top_p", "top_k", "min_p", "seed", "max_tokens", "min_tokens"),
        *("stop", "stop_token_ids", "ignore_eos", "logit_bias"),
    }
)
MAX_TOP_LOGPROBS = 20
"""OpenAI's limit."""


def load(folder: Path) -> Any:
    """In the precision in which it was saved, where there is a GPU on it."""
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder}: transformers cannot load it: {error}") from error
    return model.to("cuda" if torch.cuda.is_available() else "cpu")


class _Reply:
    """A row, and whoever waits for its tokens."""

    def __init__(self, row: Row, tokenizer: Tokenizer, arrivals: asyncio.Queue[Delta | Exception]) -> None:
        self.row = row
        self.arrivals = arrivals
        self._watch = StopWatch(row.request.sampling, tokenizer, None)

    def finish_at(self, token: Token, ends: frozenset[int], context: int) -> Finish | None:
        """Looked for before the next step, so that no token is sampled behind the last one."""
        sampling = self.row.request.sampling
        finish = self._watch.end_of([token.id])
        if self.row.sampled <= sampling.min_tokens:
            finish = None
        if finish is None and token.id in ends and not sampling.ignore_eos:
            finish = Finish("stop")
        if finish is None and (self.row.sampled == sampling.max_tokens or len(self.row.ids) == context):
            finish = Finish("length")
        self.row.over = self.row.over or finish is not None
        return finish


class TorchEngine:
    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        *,
        called: str,
        name: str = "torch-0",
        version: str | None = None,
        log: Path | None = None,
    ) -> None:
        """`model`: a transformers model for causal language modelling, or the `Path` of a folder to load it from.
        `tokenizer`: for stop strings. `called`: the model's name. `version`: of its weights. `log`: see `log.py`."""
        self._model = model
        self._tokenizer = tokenizer
        self._called = called
        self._name = name
        self._version = version
        self._log = EngineLog(log)
        self._batch: Batch | None = None
        self._scorer: Scorer | None = None
        self._ends: frozenset[int] = frozenset()
        self._context = 0
        self._waiting: list[Row] = []
        self._replies: dict[Row, _Reply] = {}
        self._computing = asyncio.Lock()
        """A step, a score or a change of weights: one at a time."""
        self._free = asyncio.Event()
        self._free.set()
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> EngineInfo:
        if isinstance(self._model, Path):
            self._model = await asyncio.to_thread(load, self._model)
        self._model.eval()
        config = self._model.config.get_text_config()
        self._ends = _ends(self._model)
        self._context = _context(self._model, config)
        self._batch = Batch(self._model, self._ends)
        self._scorer = Scorer(self._model)
        return EngineInfo(
            name=self._name,
            kind="torch",
            model=self._called,
            max_model_len=self._context,
            logprob_kind=await logprob_kind.probe(self._name, self.generate),
            supports=SUPPORTS,
            max_top_logprobs=MAX_TOP_LOGPROBS,
            vocab_size=config.vocab_size,
        )

    async def generate(self, request: Request) -> AsyncGenerator[Delta, None]:
        if self._batch is None:
            raise EngineUnavailable(f"{self._name} was not started")
        if len(request.prompt) >= self._context:
            raise ContextLengthExceeded.of(len(request.prompt), self._context, "messages")
        arrivals: asyncio.Queue[Delta | Exception] = asyncio.Queue()
        replies = [_Reply(Row(request, choice), self._tokenizer, arrivals) for choice in range(request.n)]
        transcript = Transcript(EngineLog(None) if logprob_kind.is_probe(request) else self._log, request)
        self._enter(replies)
        try:
            left = request.n
            while left:
                delta = await arrivals.get()
                if isinstance(delta, EngineUnavailable):
                    raise delta
                if isinstance(delta, Exception):
                    raise EngineError(f"{self._name} failed: {delta}") from delta
                transcript.heard(delta.choice, delta.ids.tolist(), delta.logprobs.tolist())
                if delta.finish:
                    left -= 1
                    transcript.finished(delta.choice, delta.finish)
                yield delta
        finally:
            for reply in replies:
                reply.row.over = True
                self._replies.pop(reply.row, None)
            transcript.close(aborted=True)

    async def score(self, ids: Ids, top_k: int, start: int = FIRST) -> Scored:
        async with self._computing:
            if self._scorer is None:
                raise EngineUnavailable(f"{self._name} was not started")
            try:
                return await asyncio.to_thread(self._scorer.scored, self._name, ids.tolist(), top_k, start)
            except StenographError:
                raise
            except Exception as error:  # out of memory, mostly
                raise EngineError(f"{self._name} failed: {error}") from error

    async def replace(self, weights: Mapping[str, Any], version: str) -> None:
        """Between two tokens. Replies under way are read again under the new weights, and go on. Weights that are not
        all of this model's are refused, and nothing is changed."""
        async with self._computing:
            refuse_others(self._model, weights)
            await asyncio.to_thread(self._model.load_state_dict, weights, strict=False)
            self._version = version
            if self._batch:
                self._waiting += self._batch.forget()
            if self._scorer:
                self._scorer.forget()

    async def hold(self) -> bool:
        """Returns behind the step that is under way."""
        self._free.clear()
        async with self._computing:
            return True

    async def release(self) -> None:
        self._free.set()

    async def held(self) -> bool:
        return not self._free.is_set()

    async def healthy(self) -> bool:
        return self._batch is not None

    async def close(self) -> None:
        if self._running:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        self._fail(EngineUnavailable(f"{self._name} was closed"))
        self._batch = self._scorer = None
        self._log.close()

    def _enter(self, replies: list[_Reply]) -> None:
        self._replies |= {reply.row: reply for reply in replies}
        self._waiting += [reply.row for reply in replies]
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        """As long as anybody waits for a token."""
        while self._batch and self._replies:
            await self._free.wait()
            async with self._computing:
                if self._free.is_set():
                    await self._step(self._batch)
            await asyncio.sleep(0)

    async def _step(self, batch: Batch) -> None:
        newcomers = [row for row in self._waiting if not row.over]
        self._waiting = []
        try:
            for token in await asyncio.to_thread(batch.step, newcomers):
                self._arrive(token)
        except Exception as error:
            self._fail(error)

    def _arrive(self, token: Token) -> None:
        if reply := self._replies.get(token.row):
            finish = reply.finish_at(token, self._ends, self._context)
            reply.arrivals.put_nowait(_delta(token, finish, self._version))

    def _fail(self, error: Exception) -> None:
        """Out of memory, mostly: whoever is under way fails, and those who come behind start afresh."""
        for reply in self._replies.values():
            reply.row.over = True
            reply.arrivals.put_nowait(error)
        self._batch = Batch(self._model, self._ends)


def _delta(token: Token, finish: Finish | None, version: str | None) -> Delta:
    return delta_from(
        choice=token.row.choice,
        ids=[token.id],
        logprobs=[token.logprob],
        top=[token.top] if token.row.request.top_logprobs else None,
        finish=finish,
        weight_version=version,
    )


def _context(model: Any, config: Any) -> int:
    """A running state cannot be padded on its left, nor read again from the middle."""
    if getattr(model, "_is_stateful", False):
        raise ConfigError(
            f"a {type(model).__name__} keeps a state in place of keys and values: it cannot be batched here"
        )
    if not (context := getattr(config, "max_position_embeddings", None)):
        raise ConfigError(f"a {type(model).__name__} does not say how long a context may be")
    return int(context)


def _ends(model: Any) -> frozenset[int]:
    """Small models of large families keep the ends of the large vocabulary, which are none of theirs."""
    said = getattr(model.generation_config, "eos_token_id", None)
    said = model.config.get_text_config().eos_token_id if said is None else said
    ends = [said] if isinstance(said, int) else said or ()
    return frozenset(id for id in ends if id < model.config.get_text_config().vocab_size)
