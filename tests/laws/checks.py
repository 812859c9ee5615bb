"""The laws of DESIGN, each a check of what an agent's calls have left behind. The engine's own log is the truth."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from stenograph.core import JSON, Call, Conversation, ForkReason, Turn
from stenograph.session.canonical import tools_hash
from tests.laws.agent import Agent
from tests.laws.record import Record, as_recorded, exact, logprobs, sampled
from tests.stage.stage import Stage

NO_TOOLS = tools_hash(Conversation(()))
HONEST = {ForkReason.BRANCHED, ForkReason.RESAMPLED}
"""How a conversation forks that goes on from one of its turns."""


async def check_laws(agent: Agent) -> None:
    for session in agent.sessions:
        await check_session(agent.stage, session)
    check_answers(agent)
    check_append_only(agent)
    check_recorded_before_answered(agent)
    check_one_call_one_turn(agent)


async def check_session(stage: Stage, session: str) -> Record:
    """What holds of any session, whoever called."""
    record = Record(stage, session)
    check_engine_truth(record)
    check_reach(record)
    check_forks_are_typed(record)
    await check_told(stage, record)
    await check_samples(stage, record)
    return record


def check_engine_truth(record: Record) -> None:
    """Law 1."""
    for call in record.calls:
        logged = record.logged(call)
        assert record.prompt(call) == logged.prompt
        assert msgspec.json.encode(call.sampling) == msgspec.json.encode(logged.sampling)
        assert call.n == logged.n
    for turn in record.turns.values():
        said = record.logged(turn.call).choices[turn.choice]
        assert sampled(turn) == list(said.ids)
        assert logprobs(turn) == as_recorded(said.logprobs)
        assert turn.stop_reason == said.stop_reason


def check_answers(agent: Agent) -> None:
    """Law 1, as far as the caller was told: ids and logprobs of the answer are the engine's too."""
    by_id = {logged.request_id: logged for logged in agent.stage.watched.calls}
    for heard in agent.heard:
        logged = by_id[heard.call_id]
        assert list(heard.answer.prompt_ids) == logged.prompt
        assert [list(choice.token_ids) for choice in heard.answer.choices] == [list(one.ids) for one in logged.choices]
        assert [list(choice.logprobs) for choice in heard.answer.choices] == [
            list(one.logprobs) for one in logged.choices
        ]


def check_append_only(agent: Agent) -> None:
    """Law 3: whatever stood in the record after some action stands there now, bit for bit."""
    turns = [turn for session in agent.sessions for turn in Record(agent.stage, session).turns.values()]
    now = {turn.id: exact(turn) for turn in turns}
    for earlier in agent.snapshots:
        assert earlier.items() <= now.items()


def check_reach(record: Record) -> None:
    """Law 3: no session reaches into another."""
    for call in record.calls:
        assert call.session_id == record.session
        assert record.logged(call).session_id == record.session
        assert {call.parent, call.after} <= {None, *record.turns}


def check_recorded_before_answered(agent: Agent) -> None:
    """Law 5."""
    assert agent.stage.witness.breaches == []
    assert agent.stage.witness.successes >= len(agent.heard)


def check_one_call_one_turn(agent: Agent) -> None:
    """Law 6: what was answered is in the tree once, and nothing else is."""
    records = [Record(agent.stage, session) for session in agent.sessions]
    committed = Counter(call.id for record in records for call in record.calls)
    assert committed == Counter(heard.call_id for heard in agent.heard)
    turns = {id: turn for record in records for id, turn in record.turns.items()}
    for heard in agent.heard:
        told = [choice.turn_id for choice in heard.answer.choices]
        assert heard.answer.turn_id == told[0]
        assert [turns[id].choice for id in told] == list(range(heard.style.n))
    assert len(turns) == sum(heard.style.n for heard in agent.heard)


# ---------------------------------------------------------------------------------------------------- forks (law 4)


def check_forks_are_typed(record: Record) -> None:
    """A call without a fork is the session's first, or the first to go on from the turn whose tokens it continues."""
    continued: set[str | None] = set()
    for place, call in enumerate(record.calls):
        if call.fork is None and place:
            assert call.after is not None
            assert call.parent == call.after
            assert call.after not in continued
        if call.fork is not None:
            assert call.fork.reason in set(ForkReason)
            assert 0 <= call.fork.at <= call.shared + len(call.messages)
        continued.add(call.after)


def check_extensions(agent: Agent) -> None:
    """A caller that goes on from a turn and has changed nothing is understood, its tokens are continued, and it is not
    told that it changed something."""
    records = {session: Record(agent.stage, session) for session in agent.sessions}
    for heard in agent.heard:
        if heard.meant is not None:
            record = records[heard.session]
            (call,) = (call for call in record.calls if call.id == heard.call_id)
            assert call.after == heard.meant or _has_twin(record, heard.meant)
            assert call.parent == call.after or _cut_short(record, call), call.fork
            assert call.fork is None or call.fork.reason in HONEST or _cut_short(record, call), call.fork


def _has_twin(record: Record, turn_id: str) -> bool:
    """Somewhere on the way to this turn another one says the same: then the caller cannot say which it means."""
    way = [record.turns[turn_id], *record.conversation(record.turns[turn_id].call)]
    said = Counter(_said(turn) for turn in record.turns.values())
    return any(said[_said(turn)] > 1 for turn in way)


def _said(turn: Turn) -> tuple[int, str, tuple[str, ...]]:
    reply = turn.reply
    place = turn.call.shared + len(turn.call.messages)
    return place, (reply.content or "").strip(), tuple(call.text or "" for call in reply.tool_calls)


def _cut_short(record: Record, call: Call) -> bool:
    """What a stop string leaves in the tokens is not in the message, and half a call may be none of what a template can
    write: no prompt can read right and hold it."""
    return call.fork is not None and any(
        isinstance(turn.stop_reason, str) or (turn.finish_reason == "length" and turn.call.tools_hash != NO_TOOLS)
        for turn in record.conversation(call)
    )


async def check_told(stage: Stage, record: Record) -> None:
    """Forks and notes are counted where a person looks."""
    told = await stage.get(f"/sessions/{record.session}")
    assert told["forks"] == dict(Counter(call.fork.reason.value for call in record.calls if call.fork))
    assert (told["turns"], told["sampled_tokens"]) == (
        len(record.turns),
        sum(len(sampled(turn)) for turn in record.turns.values()),
    )
    shown = (await stage.get(f"/sessions/{record.session}/tree"))["turns"]
    forks = {turn.id: turn.call.fork for turn in record.turns.values()}
    assert {turn["id"]: turn["fork"] for turn in shown} == msgspec.to_builtins(forks)


# -------------------------------------------------------------------------------------------- samples (laws 1 and 7)


async def check_samples(stage: Stage, record: Record) -> None:
    """Every sampled token, as sampled, in the context it was sampled in, trained exactly once."""
    once = (await stage.get(f"/sessions/{record.session}/samples"))["samples"]
    every = (await stage.get(f"/sessions/{record.session}/samples?shared=every"))["samples"]
    trained = Counter(span["turn_id"] for sample in once for span in sample["spans"] if span["trained"])
    assert trained == Counter(id for id, turn in record.turns.items() if sampled(turn))
    for sample in (*once, *every):
        _check_sample(record, sample)
    assert all(sample["mask"] == sample["sampled"] for sample in every)
    assert sum(sample["main"] for sample in once) == bool(record.turns)


def _check_sample(record: Record, sample: JSON) -> None:
    tokens, columns = sample["tokens"], (sample["sampled"], sample["mask"], sample["logprobs"])
    assert {len(column) for column in columns} == {len(tokens)}
    marks, mask, odds = ([0] * len(tokens), [0] * len(tokens), [0.0] * len(tokens))
    for span in sample["spans"]:
        turn, place = record.turns[span["turn_id"]], slice(span["start"], span["end"])
        logged = record.logged(turn.call)
        said = logged.choices[span["choice"]]
        assert tokens[: span["start"]] == logged.prompt
        assert tokens[place] == list(said.ids)
        assert span["sampling"] == msgspec.json.decode(msgspec.json.encode(logged.sampling))
        marks[place], odds[place] = [1] * len(said.ids), said.logprobs
        mask[place] = [int(span["trained"])] * len(said.ids)
    assert (marks, mask) == (sample["sampled"], sample["mask"])
    assert np.array_equal(np.array(odds, np.float32), np.array(sample["logprobs"], np.float32))
    assert [float(np.float32(value)) for value in odds] == sample["logprobs"]
