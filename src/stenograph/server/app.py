"""The routes, without logic: one table, from which the application and its own description are made."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import starlette.routing
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from stenograph.errors import (
    CallerError,
    Conflict,
    EngineTimeout,
    EngineUnavailable,
    EvidenceError,
    InternalError,
    MethodNotAllowed,
    NotFound,
    Overloaded,
    StenographError,
    StoreError,
    TooLarge,
    Unauthorized,
)
from stenograph.server import batch_calls, engine_calls, info_calls, session_calls, tokenize_calls
from stenograph.server.connection import Gone
from stenograph.server.desk import Desk
from stenograph.server.model_call import ModelCall
from stenograph.server.session_calls import answer, refusal
from stenograph.version import __version__
from stenograph.wire import (
    batches,
    chat,
    chat_answer,
    chat_request,
    completions,
    completions_answer,
    completions_request,
    generate,
    generate_answer,
    generate_request,
    info,
    messages,
    messages_answer,
    messages_request,
    responses,
    responses_answer,
    responses_request,
    sessions,
    tokenize,
)
from stenograph.wire.codec import Codec
from stenograph.wire.errors import AnthropicError, ErrorAnswer
from stenograph.wire.openapi import Route, openapi

log = logging.getLogger("stenograph")
Handler = Callable[[Desk, Request], Awaitable[Response]]

OF_A_SESSION = (CallerError, Unauthorized, NotFound, StoreError)
OF_A_BODY = (*OF_A_SESSION, TooLarge)
OF_A_MODEL = (
    CallerError, Unauthorized, NotFound, Conflict, TooLarge, Overloaded,
    EvidenceError, EngineUnavailable, EngineTimeout, StoreError,
)  # fmt: skip
OF_A_TRAINER = (CallerError, Unauthorized, TooLarge, StoreError)
OF_AN_ENGINE = (Unauthorized, EngineUnavailable, EngineTimeout)
OF_A_LOOK = (CallerError, Unauthorized, NotFound, TooLarge)

MODEL_CALLS: tuple[tuple[Route, Codec], ...] = (
    (Route(method="POST", path="/v1/chat/completions", operation="chat_completions",
           summary="OpenAI Chat Completions, recorded as a turn", body=chat_request.ChatRequest,
           answer=chat_answer.ChatCompletion, stream=chat_answer.ChatCompletionChunk, errors=OF_A_MODEL), chat),
    (Route(method="POST", path="/v1/completions", operation="completions",
           summary="OpenAI Completions, recorded as a turn", body=completions_request.CompletionsRequest,
           answer=completions_answer.Completion, stream=completions_answer.CompletionChunk, errors=OF_A_MODEL),
     completions),
    (Route(method="POST", path="/inference/v1/generate", operation="generate",
           summary="vLLM's tokens in, tokens out, recorded as a turn", body=generate_request.GenerateRequest,
           answer=generate_answer.Generated, stream=generate_answer.GenerateChunk, errors=OF_A_MODEL), generate),
    (Route(method="POST", path="/v1/messages", operation="messages",
           summary="Anthropic Messages, recorded as a turn", body=messages_request.MessagesRequest,
           answer=messages_answer.Message, stream=messages_answer.StreamEvent, errors=OF_A_MODEL,
           failure=AnthropicError), messages),
    (Route(method="POST", path="/v1/responses", operation="responses", summary="OpenAI Responses, recorded as a turn",
           body=responses_request.ResponsesRequest, answer=responses_answer.Response,
           stream=responses_answer.StreamEvent, errors=OF_A_MODEL), responses),
)  # fmt: skip
"""What an agent calls, and the protocol that it speaks there."""

SESSION_CALLS: tuple[tuple[Route, Handler], ...] = (
    (Route(method="POST", path="/sessions", operation="create_session", summary="Opens a session", status=201,
           body=sessions.CreateSession, answer=sessions.SessionOpened, errors=(*OF_A_BODY, Conflict)),
     session_calls.create_session),
    (Route(method="GET", path="/sessions", operation="list_sessions", summary="Sessions, oldest first",
           query=sessions.SessionFilter, answer=sessions.SessionList, errors=OF_A_SESSION),
     session_calls.list_sessions),
    (Route(method="GET", path="/sessions/{id}", operation="get_session", summary="One session",
           answer=sessions.SessionView, errors=OF_A_SESSION), session_calls.get_session),
    (Route(method="DELETE", path="/sessions/{id}", operation="delete_session", summary="Forgets a session for good",
           status=204, errors=OF_A_SESSION), session_calls.delete_session),
    (Route(method="POST", path="/sessions/{id}/reward", operation="reward_session",
           summary="Rewards a session or one of its turns", body=sessions.Reward, answer=sessions.SessionView,
           errors=OF_A_BODY), session_calls.reward_session),
    (Route(method="POST", path="/sessions/{id}/finish", operation="finish_session", summary="Ends a session",
           body=sessions.Finish, answer=sessions.SessionView, errors=(*OF_A_BODY, Conflict)),
     session_calls.finish_session),
    (Route(method="POST", path="/groups/{group}/finish", operation="finish_group", summary="Ends a group's sessions",
           body=sessions.Finish, answer=sessions.SessionList, errors=OF_A_BODY), session_calls.finish_group),
    (Route(method="GET", path="/sessions/{id}/samples", operation="session_samples",
           summary="What a trainer is handed: one sample a branch", query=sessions.SamplesQuery,
           answer=sessions.SampleList, errors=OF_A_SESSION), session_calls.session_samples),
    (Route(method="GET", path="/sessions/{id}/tree", operation="session_tree", summary="The turns, as committed",
           answer=sessions.TreeView, errors=OF_A_SESSION), session_calls.session_tree),
    (Route(method="POST", path="/batches/lease", operation="lease_batches",
           summary="Hands out complete groups, the first to be complete first, until they are acknowledged",
           body=batches.LeaseBatches, answer=batches.BatchesLeased, errors=OF_A_TRAINER), batch_calls.lease_batches),
    (Route(method="POST", path="/batches/ack", operation="acknowledge_batches",
           summary="Done with groups that were leased: nobody is given them again", body=batches.Acknowledge,
           answer=batches.Acknowledged, errors=OF_A_TRAINER), batch_calls.acknowledge_batches),
    (Route(method="POST", path="/engines/weights", operation="set_weights",
           summary="Names the weights that the engines hold from now on", body=sessions.Weights,
           answer=sessions.Weights, errors=OF_A_TRAINER), engine_calls.set_weights),
    (Route(method="POST", path="/engines/pause", operation="pause_engines",
           summary="Holds every generation for a change of weights; answered once nothing is sampled any more",
           answer=info.Engines, errors=OF_AN_ENGINE), engine_calls.pause_engines),
    (Route(method="POST", path="/engines/resume", operation="resume_engines",
           summary="Lets every generation go on", answer=info.Engines, errors=OF_AN_ENGINE),
     engine_calls.resume_engines),
    (Route(method="GET", path="/metrics", operation="metrics", summary="Prometheus' text", media="text/plain"),
     info_calls.metrics),
)  # fmt: skip
"""With an admin key, only who has it may call these."""

OPEN_CALLS: tuple[tuple[Route, Handler], ...] = (
    (Route(method="GET", path="/health", operation="health", summary="200 where the engine answers",
           answer=info.Health, errors=(EngineUnavailable,)), info_calls.health),
)  # fmt: skip

LOOKS: tuple[tuple[Route, Handler], ...] = (
    (Route(method="GET", path="/v1/models", operation="models", summary="The models", answer=info.Models),
     info_calls.models),
    (Route(method="GET", path="/v1/models/{model:path}", operation="model", summary="One of them, by its name",
           answer=info.Model, errors=(NotFound,)), info_calls.model),
    (Route(method="POST", path="/tokenize", operation="tokenize", summary="The ids a request would be sent with now",
           body=tokenize.TokenizeRequest, answer=tokenize.Tokenized, errors=OF_A_LOOK), tokenize_calls.tokenize),
    (Route(method="POST", path="/v1/messages/count_tokens", operation="count_tokens",
           summary="How long a Messages call's prompt would be now", body=messages_request.MessagesRequest,
           answer=messages_answer.TokenCount, errors=OF_A_LOOK, failure=AnthropicError), tokenize_calls.count_tokens),
    (Route(method="POST", path="/detokenize", operation="detokenize", summary="The text of ids",
           body=tokenize.DetokenizeRequest, answer=tokenize.Detokenized, errors=OF_A_LOOK), tokenize_calls.detokenize),
)  # fmt: skip
"""Under a session too. Nothing is recorded."""

ROOTS = ("/", "/v1", "/s/{session}", "/s/{session}/v1")
"""What an agent may take for its server's address."""


def build(desk: Callable[[], Desk]) -> ASGIApp:
    """`desk` is asked for at each call: the application may be made before the engine is up."""
    root = _handled(desk, info_calls.root, admin=False, shape=ErrorAnswer)
    described = openapi(_all_routes(), __version__)

    async def description(request: Request) -> Response:
        return answer(described)

    return Starlette(
        routes=[
            *(_model_route(desk, *call, under) for call in MODEL_CALLS for under in ("/s/{session}", "")),
            *(_route(desk, *call, admin=True) for call in SESSION_CALLS),
            *(_route(desk, *call, admin=False) for call in (*OPEN_CALLS, *LOOKS)),
            *(_route(desk, *call, admin=False, under="/s/{session}") for call in LOOKS),
            *(starlette.routing.Route(path, root, methods=["GET", "HEAD"]) for path in ROOTS),
            starlette.routing.Route("/openapi.json", description, methods=["GET"]),
        ],
        exception_handlers={404: no_route, 405: no_route},
    )


def _all_routes() -> list[Route]:
    return [route for route, _ in (*MODEL_CALLS, *SESSION_CALLS, *OPEN_CALLS, *LOOKS)]


def _model_route(desk: Callable[[], Desk], route: Route, codec: Codec, under: str) -> starlette.routing.Route:
    return starlette.routing.Route(under + route.path, ModelCall(desk, codec), methods=[route.method])


def _route(
    desk: Callable[[], Desk], route: Route, handler: Handler, *, admin: bool, under: str = ""
) -> starlette.routing.Route:
    endpoint = _handled(desk, handler, admin=admin, shape=route.failure)
    return starlette.routing.Route(under + route.path, endpoint, methods=[route.method])


def _handled(
    desk: Callable[[], Desk], handler: Handler, *, admin: bool, shape: type
) -> Callable[[Request], Awaitable[Response]]:
    async def answering(request: Request) -> Response:
        if admin:
            desk().check_admin(request.headers)
        return await handler(desk(), request)

    return told(answering, shape)


def told(answering: Callable[[Request], Awaitable[Response]], shape: type) -> Callable[[Request], Awaitable[Response]]:
    """Every failure is an answer, and each in its protocol's shape."""

    async def endpoint(request: Request) -> Response:
        try:
            return await answering(request)
        except StenographError as error:
            return refusal(error, shape)
        except Gone:
            return Response(status_code=400)  # to nobody
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return refusal(InternalError(), shape)

    return endpoint


def _base_url_missed(path: str) -> str:
    """Of the vendors' SDKs one wants `/v1` at the end of its base URL and the other does not: easily mixed up."""
    if "/v1/v1/" in path:
        return " (the base URL has /v1 twice: OpenAI's SDK wants one that ends in /v1, Anthropic's one without)"
    if any("/v1" not in path and path.endswith(route.path.removeprefix("/v1")) for route, _ in MODEL_CALLS):
        return " (OpenAI's SDK wants a base URL that ends in /v1)"
    return ""


async def no_route(request: Request, error: Exception) -> Response:
    """Of these two only the wrong method says which ones are right."""
    allowed = (getattr(error, "headers", None) or {}).get("Allow")
    if allowed is None:
        path = request.url.path
        return refusal(NotFound(f"there is no such route: {request.method} {path}{_base_url_missed(path)}"))
    refused = refusal(MethodNotAllowed(f"{request.url.path} takes {allowed}, not {request.method}"))
    refused.headers["allow"] = allowed
    return refused
