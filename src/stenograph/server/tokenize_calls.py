"""The ids that a request would be sent with, how many they are, and the text of ids: looked up, never recorded."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from stenograph.decision import decided_on
from stenograph.live import LiveSession
from stenograph.render.tokenizer import Tokenizer
from stenograph.server.desk import Desk
from stenograph.server.session_calls import answer, body_of
from stenograph.wire import messages_request
from stenograph.wire import tokenize as wire
from stenograph.wire.body import refuse
from stenograph.wire.messages_answer import TokenCount


async def tokenize(desk: Desk, request: Request) -> Response:
    asked = wire.tokenize(await body_of(desk, request))
    session, tokenizer = _session(desk, request, asked), desk.house.renderer.tokenizer
    prompt = wire.prompt(asked)
    if prompt is not None:
        ids = decided_on(desk.house, session, prompt).prompt.tolist()
    else:
        ids = tokenizer.encode(asked.prompt or "")
    spelled = [tokenizer.text_of(id) for id in ids] if asked.return_token_strs else None
    return answer(wire.Tokenized(len(ids), desk.house.info.max_model_len, ids, spelled))


async def detokenize(desk: Desk, request: Request) -> Response:
    asked = wire.detokenize(await body_of(desk, request))
    _session(desk, request, asked)
    _check_ids(asked.tokens, desk.house.renderer.tokenizer)
    return answer(wire.Detokenized(desk.house.renderer.tokenizer.decode(asked.tokens)))


async def count_tokens(desk: Desk, request: Request) -> Response:
    asked, _ = messages_request.request(await body_of(desk, request))
    session, prompt = _session(desk, request, asked), messages_request.conversation(asked)
    return answer(TokenCount(len(decided_on(desk.house, session, prompt).prompt)))


def _session(
    desk: Desk,
    request: Request,
    asked: wire.TokenizeRequest | wire.DetokenizeRequest | messages_request.MessagesRequest,
) -> LiveSession:
    in_path: str | None = request.path_params.get("session")
    if asked.model is not None:
        desk.check_model(asked.model, under_session=in_path is not None)
    return desk.session_to_look_at(in_path, request.headers, asked.session_id)


def _check_ids(ids: list[int], tokenizer: Tokenizer) -> None:
    """A decoder leaves out what it does not know, without a word."""
    for place, id in enumerate(ids):
        if not tokenizer.text_of(id):
            raise refuse(f"tokens[{place}]", f"{id} is no token of this model")
