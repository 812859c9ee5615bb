"""The scripted engine behind the wires of other engines: shaped after their own bytes (tests/transcripts)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import msgspec
import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from stenograph.core import JSON, Request, Sampling
from stenograph.engine.evidence import best_first
from stenograph.engine.logprob_kind import PLAIN, PROBE
from stenograph.engine.raw import Raw
from stenograph.engine.scripted import Scene, ScriptedEngine, Severed
from stenograph.engine.scripted_wire import error_body
from stenograph.errors import EngineError, StenographError
from stenograph.wire import sse


class Fake:
    """What every fake has in common. Calls have one choice: that is how their adapters ask."""

    path = ""

    def __init__(self, engine: ScriptedEngine) -> None:
        self.engine = engine
        self.sent: list[dict[str, JSON]] = []
        routes = [Route(self.path, self._generate, methods=["POST"]), Route("/health", self._health)]
        self.application = Starlette(routes=routes + [Route(path, self._fact) for path in self.facts()])

    def facts(self) -> dict[str, JSON]:
        """What it answers to questions about itself."""
        raise NotImplementedError

    def request(self, body: dict[str, Any]) -> Request:
        raise NotImplementedError

    def events(self, raw: Raw, request: Request) -> Iterator[JSON]:
        raise NotImplementedError

    done = b""
    """How a stream ends."""

    async def _health(self, http: HttpRequest) -> Response:
        return Response()

    async def _fact(self, http: HttpRequest) -> Response:
        return Response(msgspec.json.encode(self.facts()[http.url.path]), media_type="application/json")

    async def _generate(self, http: HttpRequest) -> Response:
        body = await http.json()
        self.sent.append(body)
        request = self.request(body)
        try:
            scene = self.engine.admit(request)
        except StenographError as error:
            status = error.status if error.status in (400, 503) else 500
            return Response(error_body(error, status), status)
        return StreamingResponse(self._stream(scene, request), media_type="text/event-stream")

    async def _stream(self, scene: Scene, request: Request) -> AsyncGenerator[bytes, None]:
        chunk = b""
        try:
            async with aclosing(self.engine.play(scene)) as raws:
                async for raw in raws:
                    for event in self.events(raw, request):
                        chunk = sse.data(_json(event))
                        yield chunk
        except Severed as severed:
            if severed.mid_line:
                yield chunk[: len(chunk) // 2]
            raise
        except EngineError as error:
            yield sse.data(error_body(error, 500))
        yield self.done


class FakeSglang(Fake):
    path = "/generate"
    done = sse.DONE
    incremental = False

    def __init__(self, engine: ScriptedEngine) -> None:
        super().__init__(engine)
        self.aborted: list[str] = []
        self.application.routes.append(Route("/abort_request", self._abort, methods=["POST"]))
        self._raws: dict[str, list[Raw]] = {}

    def facts(self) -> dict[str, JSON]:
        server = {"context_length": self.engine.script.max_model_len, "max_total_num_tokens": 1 << 20}
        return {
            "/model_info": {"model_path": "folder", "served_model_name": self.engine.script.model},
            "/server_info": server | {"incremental_streaming_output": self.incremental},
        }

    def request(self, body: dict[str, Any]) -> Request:
        parameters = body["sampling_params"]
        renamed = {"max_new_tokens": "max_tokens", "min_new_tokens": "min_tokens", "sampling_seed": "seed"}
        given = {renamed.get(name, name): value for name, value in parameters.items() if value is not None}
        given["top_k"] = max(given["top_k"], 0)
        sampling = msgspec.convert(given, Sampling, str_keys=True)
        prompt = np.array(body["input_ids"], np.int32)
        return Request(body["rid"], "", prompt, sampling, top_logprobs=body["top_logprobs_num"])

    def events(self, raw: Raw, request: Request) -> Iterator[JSON]:
        before = self._raws.setdefault(request.id, [])
        before.append(raw)
        told = [raw] if self.incremental else before
        finish = raw.finish and {"type": raw.finish.reason, "matched": raw.finish.stop}
        version = self.engine.weight_version or "default"
        count = sum(len(one.ids) for one in before)
        meta: dict[str, JSON] = {
            "id": request.id,
            "finish_reason": finish,
            "prompt_tokens": len(request.prompt),
            "weight_version": version,
            "output_token_logprobs": [entry for one in told for entry in _pairs(one)],
            "completion_tokens": count,
            "cached_tokens": 0,
        }
        if request.top_logprobs:
            rows = [list(row.items()) for one in told for row in one.rows]
            meta["output_top_logprobs"] = [[[lp, id, None] for id, lp in _finite(row)] for row in rows]
        if finish:
            meta["weight_versions"] = [{"version": version, "start": 0, "end": count}]
        ids = [id for one in told for id in one.ids]
        wrong = {"index": raw.choice} if raw.choice else {}
        yield {"text": "", "output_ids": ids, "meta_info": meta, **wrong}

    async def _abort(self, http: HttpRequest) -> Response:
        self.aborted.append((await http.json())["rid"])
        return Response()


class FakeIncremental(FakeSglang):
    incremental = True


class FakeLlama(Fake):
    path = "/completion"

    def __init__(self, engine: ScriptedEngine) -> None:
        super().__init__(engine)
        self._counts: dict[str, int] = {}

    def facts(self) -> dict[str, JSON]:
        settings = {"n_ctx": self.engine.script.max_model_len}
        return {
            "/props": {"default_generation_settings": settings, "total_slots": 4, "model_path": "m.gguf"},
            "/v1/models": {"data": [{"id": self.engine.script.model, "meta": {"n_vocab": self.engine.vocab_size}}]},
        }

    def request(self, body: dict[str, Any]) -> Request:
        sampling = Sampling(
            max_tokens=body["n_predict"],
            temperature=body["temperature"],
            top_k=body["top_k"],
            top_p=body["top_p"],
            min_p=body["min_p"],
            seed=None if body["seed"] == -1 else body["seed"],
            ignore_eos=body["ignore_eos"],
        )
        prompt = np.array(body["prompt"], np.int32)
        kind = PROBE if body["prompt"] == PLAIN.prompt.tolist() else "call"
        return Request(f"{kind}-{len(self.sent)}", "", prompt, sampling, top_logprobs=body["n_probs"])

    def events(self, raw: Raw, request: Request) -> Iterator[JSON]:
        """A token each: llama.cpp has no other chunks."""
        for place in range(len(raw.ids)):
            count = self._counts[request.id] = self._counts.get(request.id, 0) + 1
            entry: dict[str, JSON] = {"id": raw.ids[place]}
            if place < len(raw.logprobs):
                entry["logprob"] = raw.logprobs[place]
            if place < len(raw.rows):
                best = best_first(raw.rows[place], request.top_logprobs)
                entry["top_logprobs"] = [{"id": id, "logprob": logprob} for id, logprob in best]
            last = raw.finish is not None and place == len(raw.ids) - 1
            yield {
                "tokens": [raw.ids[place]],
                "completion_probabilities": [entry, entry] if len(raw.logprobs) > len(raw.ids) else [entry],
                "tokens_predicted": count,
                "tokens_evaluated": len(request.prompt),
                "stop": last,
                "stop_type": {"stop": "eos", "length": "limit"}.get(raw.finish.reason, "")
                if last and raw.finish
                else "",
                "timings": {"cache_n": 0},
            }


def _pairs(raw: Raw) -> list[list[JSON]]:
    """Short or long where a fault makes them so."""
    ids = [*raw.ids, *raw.ids[-1:]] if len(raw.logprobs) > len(raw.ids) else raw.ids
    return [[logprob, id, None] for logprob, id in zip(raw.logprobs, ids, strict=False)]


def _finite(row: list[tuple[int, float]]) -> list[tuple[int, float]]:
    return [(id, logprob) for id, logprob in row if logprob > float("-inf")]


def _json(value: JSON) -> bytes:
    """NaN as Python's own `json` writes it: engines have been seen to."""
    return json.dumps(value).encode()
