"""What Atropos' HTTP proxy is sent, and answers (atroposlib 0.4.0, `managed_server_proxy`)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stenograph.core import JSON, Value
from stenograph.wire import body
from stenograph.wire.body import refuse

MAX_TOKENS = 1024
"""Where the caller names no other: as there."""


class CreateProxySession(Value, kw_only=True):
    tool_parser: str = "hermes"
    """Accepted and told again. How calls are written is learned from the template, whatever this says."""
    track_tree: bool = False
    """`nodes` are every turn, and not only those that nobody has extended."""
    base_url: str | None = None
    """An engine that is here already."""


class ProxySessionCreated(Value, kw_only=True):
    uuid: str
    model_name: str
    tool_parser: str
    base_url: str | None
    """The engine's, where it is one engine and not several."""
    created_at: float
    api_key: str
    """Not Atropos': where the gateway has an admin key, calls under the uuid carry this."""


class ProxySession(Value, kw_only=True):
    uuid: str
    model_name: str
    base_url: str | None
    created_at: float
    last_accessed: float
    num_nodes: int


class ProxySessions(Value):
    sessions: list[ProxySession]


class ProxyDeleted(Value):
    uuid: str
    status: str = "deleted"


class Rendered(Value):
    prompt_text: str
    token_ids: list[int]
    """What a call with this body would be sent with now."""
    num_tokens: int


class ProxyHealth(Value, kw_only=True):
    status: str = "ok"
    model: str
    sessions: int
    servers: int
    healthy_servers: int


class ServerView(Value, kw_only=True):
    index: int
    base_url: str | None
    healthy: bool
    model_name: str
    server_type: str


class ServerList(Value):
    servers: list[ServerView]


class SetupServer(Value):
    base_url: str


class Setup(Value, kw_only=True):
    model_name: str | None = None
    servers: tuple[SetupServer, ...] = ()


class SetupDone(Value, kw_only=True):
    status: str = "ok"
    servers: int
    model_name: str


_CREATE = msgspec.json.Decoder(CreateProxySession)
_SETUP = msgspec.json.Decoder(Setup)
_OBJECT = msgspec.json.Decoder(dict[str, JSON])


def create(raw: bytes) -> CreateProxySession:
    return body.decode(raw or b"{}", _CREATE)


def setup(raw: bytes) -> Setup:
    return body.decode(raw, _SETUP)


def chat(raw: bytes, model: str) -> dict[str, JSON]:
    """A chat completion's body: what is left out is as there, and its answer has ids and logprobs without asking."""
    said = {name: value for name, value in body.decode(raw, _OBJECT).items() if value is not None}
    if said.get("stream"):
        raise refuse("stream", "Atropos' proxy has no streams; the gateway's own /s/{uuid}/v1 has")
    return {"model": model, "return_token_ids": True, "logprobs": True, **_length(said), **said}


def _length(said: Mapping[str, JSON]) -> dict[str, JSON]:
    return {} if said.keys() & {"max_tokens", "max_completion_tokens"} else {"max_tokens": MAX_TOKENS}
