"""The description is made of the types that are served, and of nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from stenograph.errors import CallerError, Conflict, ContextLengthExceeded, NotFound
from stenograph.wire import chat_answer, chat_request, sessions
from stenograph.wire.openapi import Route, openapi

ROUTES = (
    Route(
        method="POST",
        path="/s/{id}/v1/chat/completions",
        operation="chat",
        summary="OpenAI Chat Completions",
        body=chat_request.ChatRequest,
        answer=chat_answer.ChatCompletion,
        stream=chat_answer.ChatCompletionChunk,
        errors=(CallerError, ContextLengthExceeded, NotFound, Conflict),
    ),
    Route(
        method="GET",
        path="/sessions",
        operation="list_sessions",
        summary="Sessions",
        query=sessions.SessionFilter,
        answer=sessions.SessionList,
    ),
    Route(
        method="POST",
        path="/sessions",
        operation="create_session",
        summary="Opens a session",
        body=sessions.CreateSession,
        answer=sessions.SessionOpened,
        status=201,
        errors=(CallerError,),
    ),
    Route(
        method="GET",
        path="/sessions/{id}/samples",
        operation="samples",
        summary="Samples",
        query=sessions.SamplesQuery,
        answer=sessions.SampleList,
    ),
    Route(method="GET", path="/metrics", operation="metrics", summary="Metrics", media="text/plain"),
    Route(method="DELETE", path="/sessions/{id}", operation="delete", summary="Forgets a session", status=204),
)
DESCRIBED = openapi(ROUTES, "0.1.0")


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (part for key, part in value.items() if key == "$ref")
        yield from (found for part in value.values() for found in references(part))
    elif isinstance(value, list):
        yield from (found for part in value for found in references(part))


def test_it_is_json_and_every_reference_leads_somewhere() -> None:
    described = json.loads(json.dumps(DESCRIBED))
    assert (described["openapi"], described["info"]["version"]) == ("3.1.0", "0.1.0")
    schemas = described["components"]["schemas"]
    found = {reference.removeprefix("#/components/schemas/") for reference in references(described)}
    assert found <= schemas.keys()
    assert {"ChatRequest", "ChatCompletion", "ChatCompletionChunk", "SessionView", "Sample", "ErrorAnswer"} <= found


def test_every_route_is_there_and_named_once() -> None:
    operations = [
        (method.upper(), path, operation["operationId"])
        for path, methods in DESCRIBED["paths"].items()
        for method, operation in methods.items()
    ]
    assert sorted(operations) == sorted((route.method, route.path, route.operation) for route in ROUTES)


def test_parameters_come_from_the_path_and_the_query_type() -> None:
    samples = DESCRIBED["paths"]["/sessions/{id}/samples"]["get"]["parameters"]
    places = [(parameter["name"], parameter["in"]) for parameter in samples]
    assert places == [("id", "path"), ("shared", "query"), ("teacher", "query")]
    assert samples[1]["schema"] == {"enum": ["every", "once"], "default": "once"}
    listed = DESCRIBED["paths"]["/sessions"]["get"]["parameters"]
    assert [parameter["name"] for parameter in listed] == ["group", "state", "since", "limit"]


def test_answers_streams_and_failures() -> None:
    responses = DESCRIBED["paths"]["/s/{id}/v1/chat/completions"]["post"]["responses"]
    assert list(responses) == ["200", "400", "404", "409"]
    assert responses["200"]["content"].keys() == {"application/json", "text/event-stream"}
    assert responses["400"]["description"] == "Caller error; Context length exceeded"
    assert responses["404"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ErrorAnswer"}
    assert list(DESCRIBED["paths"]["/metrics"]["get"]["responses"]["200"]["content"]) == ["text/plain"]
    assert DESCRIBED["paths"]["/sessions/{id}"]["delete"]["responses"] == {"204": {"description": "Forgets a session"}}


def test_schemas_say_what_the_decoder_enforces() -> None:
    schemas = DESCRIBED["components"]["schemas"]
    asked = schemas["ChatRequest"]
    assert asked["required"] == ["model", "messages"]
    assert asked["properties"]["top_p"]["anyOf"][0] == {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
    assert schemas["CreateSession"]["additionalProperties"] is False
    assert schemas["Sample"]["properties"]["tokens"] == {"type": "array", "items": {"type": "number"}}
