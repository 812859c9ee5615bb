"""Our own description, OpenAPI 3.1, from the very types that bodies are decoded to and answers encoded from.

The server registers its routes from the same table of `Route`s, so what is described is what is served.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from stenograph.core import JSON, Value
from stenograph.errors import StenographError
from stenograph.wire.errors import ErrorAnswer

Method: TypeAlias = Literal["GET", "HEAD", "POST", "DELETE"]
Schema: TypeAlias = dict[str, JSON]

PLACE = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)(?::path)?\}")
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Route(Value, kw_only=True):
    method: Method
    path: str
    """With its parameters in braces: `/sessions/{id}/reward`; `{model:path}` may hold slashes."""
    operation: str
    """Its name, unique; also what the server finds the handler by."""
    summary: str
    answer: Any = None
    """The type of the JSON answer; None where there is none, or `media` is another."""
    status: int = 200
    errors: tuple[type[StenographError], ...] = ()
    """How it can fail."""
    failure: Any = ErrorAnswer
    """The type of the JSON by which it says so."""
    body: Any = None
    """The type of the JSON body; None where none is read."""
    query: type[msgspec.Struct] | None = None
    """Its fields are the query's parameters."""
    stream: Any = None
    """The type of each event's data where the answer can be a stream."""
    media: str = "application/json"


def openapi(routes: Sequence[Route], version: str) -> dict[str, JSON]:
    schemas = _Schemas(routes)
    paths: dict[str, Schema] = {}
    for route in routes:
        paths.setdefault(_PARAMETER.sub(r"{\1}", route.path), {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Stenograph", "version": version},
        "paths": paths,
        "components": {"schemas": schemas.components},
    }


class _Schemas:
    """The schemas of every type that the routes speak of, each type's written once."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._types = list(dict.fromkeys(_types(routes)))
        self._schemas, self.components = msgspec.json.schema_components(
            self._types, schema_hook=_array, ref_template=PLACE
        )

    def of(self, type: Any) -> Schema:
        return self._schemas[self._types.index(type)]

    def fields(self, query: type[msgspec.Struct]) -> dict[str, Schema]:
        name = self.of(query)["$ref"].removeprefix(PLACE.format(name=""))
        properties: dict[str, Schema] = self.components[name]["properties"]
        return properties


def _types(routes: Sequence[Route]) -> Iterator[Any]:
    for route in routes:
        types = (route.failure, route.body, route.answer, route.stream, route.query)
        yield from (type for type in types if type is not None)


def _array(type: type) -> Schema:
    """Columns are numpy arrays; on the wire they are lists of numbers."""
    if type is np.ndarray:
        return {"type": "array", "items": {"type": "number"}}
    raise NotImplementedError(f"{type} cannot be described")


def _operation(route: Route, schemas: _Schemas) -> Schema:
    operation: Schema = {"operationId": route.operation, "summary": route.summary}
    if parameters := [*_path_parameters(route), *_query_parameters(route, schemas)]:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {"content": _json(schemas.of(route.body))}
    success = {"description": route.summary} | _if_any("content", _content(route, schemas))
    failures = {"content": _json(schemas.of(route.failure))}
    operation["responses"] = {str(route.status): success} | {
        str(status): {"description": described} | failures for status, described in _failures(route).items()
    }
    return operation


def _failures(route: Route) -> dict[int, str]:
    """By status, the names of the errors in words: several may share one."""
    found: dict[int, list[str]] = {}
    for error in route.errors:
        found.setdefault(error.status, []).append(_WORDS.sub(" ", error.__name__).capitalize())
    return {status: "; ".join(names) for status, names in sorted(found.items())}


def _path_parameters(route: Route) -> Iterator[Schema]:
    for name in _PARAMETER.findall(route.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query_parameters(route: Route, schemas: _Schemas) -> Iterator[Schema]:
    if route.query is not None:
        for name, schema in schemas.fields(route.query).items():
            yield {"name": name, "in": "query", "schema": schema}


def _content(route: Route, schemas: _Schemas) -> Schema:
    content: Schema = {} if route.answer is None else _json(schemas.of(route.answer))
    if route.stream is not None:
        content["text/event-stream"] = {"schema": schemas.of(route.stream)}
    if route.answer is None and route.media != "application/json":
        content[route.media] = {"schema": {"type": "string"}}
    return content


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _if_any(name: str, value: Schema) -> Schema:
    return {name: value} if value else {}
