"""★ The way of a request. `take_turn` shows it; nothing else knows every stage.

    decode   a protocol's body              → an ask                        wire/     (before this)
    match    ask + the session's tree       → what it continues             session/
    render   new messages                   → new context tokens            render/
    generate path + context tokens          → a stream of ids and logprobs  engine/
    parse    sampled tokens                 → content, reasoning, calls     render/
    commit   the turn                       → durable, visible              store/
    encode   the same events                → JSON or SSE                   wire/     (behind this)

Match and render decide synchronously; then the engine is awaited; then the turn is committed under the session's lock.
The lock is never held across generation, so siblings and sub-agents run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from stenograph.core import (
    Ask,
    Call,
    CallDelta,
    Closed,
    Done,
    Event,
    Fork,
    Note,
    Opened,
    Part,
    Piece,
    Request,
    Sampling,
    Turn,
    Value,
    VersionRun,
)
from stenograph.decision import Decision, decided
from stenograph.engine.evidence import checked
from stenograph.house import House
from stenograph.live import LiveSession
from stenograph.origin import moves
from stenograph.session.lifecycle import check_budget, check_open
from stenograph.session.settle import Limit, check_guide, check_supported, limit, overlaid, own_stops, with_stops
from stenograph.session.tree import Tree
from stenograph.store.store import Blob, TurnsCommitted
from stenograph.tally import Choice, Tally

NEVER_NAMED = "default"
"""What vLLM calls weights that have no version, beside others that have one."""


class Ticket(Value):
    """A call's names, given out before anything happens, so that headers can carry them."""

    call_id: str
    turn_ids: tuple[str, ...]
    body_hash: str
    idempotency_key: str | None
    streamed: bool
    """The caller hears the answer while it is sampled."""
    defaults: dict[str, Any]
    """The session's sampling defaults and forced values, by `Sampling`'s own names."""
    force: dict[str, Any]


class Pending(Value):
    """A turn that is decided but not sampled: everything that is known before the first await."""

    ask: Ask
    ticket: Ticket
    decision: Decision
    settled: Sampling
    """As the agent and the session want it; what is sent has our own stops, too."""
    sent: Request
    limit: Limit
    notes: tuple[Note, ...]
    created_at: float


async def take_turn(
    house: House,
    session: LiveSession,
    ask: Ask,
    ticket: Ticket,
    emit: Callable[[Event], None],
    seal: Callable[[], None],
) -> None:
    """`emit` gets the events of the answer, `seal` is called when the turn can no longer be taken back."""
    pending = prepare(house, session, ask, ticket)
    with session.calling():
        tally = await generate(house, pending, emit)
        seal()
        turns = await commit(house, session, pending, tally)
    for event in conclusion(turns, len(pending.sent.prompt)):
        emit(event)


def replay(tree: Tree, turns: Sequence[Turn]) -> Iterator[Event]:
    """The events of a committed call once more: a repeat is answered from the record, not from a memory of it."""
    call = turns[0].call
    prompt = np.concatenate([tree.ids(call.parent), call.context])
    yield Opened(call.id, tuple(turn.id for turn in turns), prompt, call.model, call.created_at)
    for turn in turns:
        yield said_again(turn)
    yield from conclusion(turns, len(prompt))


def conclusion(turns: Sequence[Turn], prompt_tokens: int) -> Iterator[Event]:
    """What is said last, and only of turns that are committed."""
    call = turns[0].call
    for turn in turns:
        yield Closed(turn.choice, turn.finish_reason, _told_stop(turn), _versions(turn))
    yield Done(prompt_tokens, sum(turn.sampled_tokens for turn in turns), call.cached_tokens)


def said_again(turn: Turn) -> Piece:
    reply = turn.reply
    calls = tuple(
        CallDelta(place, call.id, call.name, call.text or "{}") for place, call in enumerate(reply.tool_calls)
    )
    return Piece(turn.choice, turn.sampled, turn.logprobs, turn.top, reply.content or "", reply.reasoning or "", calls)


def _versions(turn: Turn) -> tuple[VersionRun, ...]:
    if all(part.weight_version is None for part in turn.parts):
        return ()
    return tuple(VersionRun(part.weight_version or NEVER_NAMED, len(part.ids)) for part in turn.parts)


def _told_stop(turn: Turn) -> int | str | None:
    """A stop that we added ourselves is the model's own end to the caller, who knows nothing of it."""
    return None if turn.stop_reason in turn.call.own_stops else turn.stop_reason


# ------------------------------------------------------------------------------------------------- decide (no await)


def prepare(house: House, session: LiveSession, ask: Ask, ticket: Ticket) -> Pending:
    check_open(session.facts)
    budget = check_budget(session.facts.budget, session.tree, under_way=session.under_way, n=ask.n)
    decision = decided(house, session, ask)
    overlay, forced = overlaid(ask, ticket.defaults, ticket.force)
    sampling = msgspec.structs.replace(overlay, guide=decision.guide)
    check_supported(sampling, ask.top_logprobs, house.info)
    check_guide(decision.guide, ask, house.info)
    bound = limit(sampling.max_tokens, len(decision.prompt), house.info.max_model_len, budget, ask.protocol)
    return Pending(
        ask=ask,
        ticket=ticket,
        decision=decision,
        settled=sampling,
        sent=Request(
            id=ticket.call_id,
            session_id=session.facts.id,
            prompt=decision.prompt,
            sampling=with_stops(sampling, bound.tokens, house.renderer.stop_ids, decision.closes),
            n=ask.n,
            top_logprobs=ask.top_logprobs,
            engine=session.engine,
            path=len(decision.prompt) - len(decision.context),
        ),
        limit=bound,
        notes=(*decision.notes, *forced, *ask.notes),
        created_at=house.now(),
    )


# ---------------------------------------------------------------------------------------------------- sample (await)


async def generate(house: House, pending: Pending, emit: Callable[[Event], None]) -> Tally:
    """Nothing is said before the engine has: until then a failure can still be told by its status."""
    stop, early = pending.sent.sampling.stop, pending.ticket.streamed
    tally = Tally(pending.sent, house.now, lambda: pending.decision.reader(stop, early), house.weights)
    deltas = checked(house.engines.generate(pending.sent), pending.sent, house.vocab_size)
    async for delta in deltas:
        if not tally.begun:
            emit(_opened(pending))
        emit(tally.take(delta))
    return tally


def _opened(pending: Pending) -> Opened:
    ticket = pending.ticket
    return Opened(ticket.call_id, ticket.turn_ids, pending.sent.prompt, pending.ask.model, pending.created_at)


# ---------------------------------------------------------------------------------------------------- record (await)


async def commit(house: House, session: LiveSession, pending: Pending, tally: Tally) -> tuple[Turn, ...]:
    """Durable first, then visible, then answered (law 5)."""
    async with session.commit_lock:
        call = _call(house, session, pending, tally, pending.decision.fork())
        told = [choice.parts() for choice in tally.choices]
        turns = tuple(_turn(pending, call, index, choice, told[index][0]) for index, choice in enumerate(tally.choices))
        sidecars = [Blob(name, body) for _, bodies in told for name, body in bodies.items()]
        session.facts = msgspec.structs.replace(session.facts, touched_at=call.finished_at)
        await house.store.commit([session.facts, *pending.decision.keys, *sidecars, TurnsCommitted(turns)])
        session.tree.add(turns)
    return turns


def _call(house: House, session: LiveSession, pending: Pending, tally: Tally, fork: Fork | None) -> Call:
    ask, ticket, decision = pending.ask, pending.ticket, pending.decision
    before = session.tree.turns[decision.parent].call.inert if decision.parent is not None else True
    tools, arguments = decision.keys
    return Call(
        id=ticket.call_id,
        session_id=session.facts.id,
        parent=decision.parent,
        after=decision.after,
        shared=decision.shared,
        context=decision.context,
        text_chars=decision.text_chars,
        text_hash=decision.text_hash,
        inert=decision.inert and before,
        messages=decision.messages,
        tools_hash=tools.hash,
        arguments_hash=arguments.hash,
        protocol=ask.protocol,
        model=ask.model,
        sampling=pending.sent.sampling,
        own_stops=own_stops(pending.settled, pending.sent.sampling),
        n=ask.n,
        request_id=pending.sent.id,
        body_hash=ticket.body_hash,
        idempotency_key=ticket.idempotency_key,
        template_hash=decision.template_hash,
        tokenizer_hash=house.renderer.tokenizer.hash,
        created_at=pending.created_at,
        first_token_at=tally.first_token_at,
        finished_at=house.now(),
        fork=fork,
        notes=pending.notes,
        labels=ask.labels,
        cached_tokens=tally.cached_tokens,
        constrained=pending.sent.sampling.guide is not None,
        instructed=ask.instructed,
    )


def _turn(pending: Pending, call: Call, index: int, choice: Choice, parts: tuple[Part, ...]) -> Turn:
    finish, reply = choice.finish, choice.reader.reply
    return Turn(
        id=pending.ticket.turn_ids[index],
        call=call,
        choice=index,
        parts=parts,
        reply=reply,
        finish_reason="tool_calls" if finish.reason == "stop" and reply.tool_calls else finish.reason,
        stop_reason=finish.stop,
        ending=choice.reader.ending,
        limit=_limit(pending, choice),
        notes=(*choice.reader.notes, *moves(pending.sent.engine, parts)),
        top=choice.top,
        written=choice.reader.written,
    )


def _limit(pending: Pending, choice: Choice) -> Literal["context", "budget"] | None:
    """An engine may stop short of what it was allowed: then its own context was full."""
    if choice.finish.reason != "length":
        return None
    return pending.limit.full if len(choice.ids) >= pending.limit.tokens else "context"
