"""The audit finds nothing in what is right, and each kind of wrong, under the law that it breaks."""

from __future__ import annotations

import math

import pytest

from stenograph.audit.audit import LAWS, audit
from stenograph.audit.case import Evidence
from stenograph.core import Attempt, Message, State
from tests.audit import corruptions as wrong
from tests.audit.corruptions import Corrupt, replace

TRUTH, EVIDENCE, APPEND, FORKS, RECORDED, ONE, LENGTHS, ONCE = (law for law, _, _ in LAWS)

BROKEN: dict[str, tuple[str, str, Corrupt]] = {
    # what is wrong: the law, words of the finding, how it is made
    "the engine was sent another prompt": (TRUTH, "its prompt is not what the engine was sent, first at",
        wrong.logged(lambda one: replace(one, prompt=[*one.prompt[:-1], 0]))),
    "the engine was sent a longer prompt": (TRUTH, "its prompt is not what the engine was sent",
        wrong.logged(lambda one: replace(one, prompt=[*one.prompt, 0]))),
    "the engine was sent other sampling": (TRUTH, "its sampling parameters",
        wrong.logged(lambda one: replace(one, sampling={**one.sampling, "top_p": 0.5}))),
    "the engine returned another id": (TRUTH, "its tokens or logprobs are not",
        wrong.said(lambda one: replace(one, ids=(*one.ids[:-1], 0)))),
    "the engine returned more": (TRUTH, "of them where the log has",
        wrong.said(lambda one: replace(one, ids=(*one.ids, 0), logprobs=(*one.logprobs, 0.0)))),
    "the engine returned another logprob": (TRUTH, "where the log has -0.123", wrong.logprob(-0.123)),
    "a call is not in the log": (TRUTH, "log knows nothing of it\n",
        lambda evidence: replace(evidence, log=evidence.log[1:])),
    "a sampled token of the sample is another": (TRUTH, "sample ", wrong.column("tokens", wrong.other)),
    "a context token of the sample is another": (TRUTH, "sample ",
        wrong.column("tokens", lambda ids: wrong.other(ids, 0))),
    "a logprob of the sample is another": (TRUTH, "sample ",
        wrong.column("logprobs", lambda column: wrong.other(column, -1, -0.5))),
    "a span is of another turn": (TRUTH, "knows nothing of its turn x",
        wrong.sample(lambda one: replace(one, spans=(replace(one.spans[0], turn_id="x"), *one.spans[1:])))),
    "a span is of a turn that is not recorded": (ONCE, "tokens are trained that the record does not have",
        wrong.sample(lambda one: replace(one, spans=(replace(one.spans[0], turn_id="x"), *one.spans[1:])))),
    "a logprob is null": (EVIDENCE, "no number: None", wrong.logprob(None)),
    "a logprob is positive": (EVIDENCE, "impossible logprob: 0.5", wrong.logprob(0.5)),
    "a logprob is the sentinel": (EVIDENCE, "impossible logprob: -9999.0", wrong.logprob(-9999.0)),
    "a logprob is not a number": (EVIDENCE, "not finite: nan", wrong.logprob(math.nan)),
    "a logprob is infinite": (EVIDENCE, "not finite: -inf", wrong.logprob(-math.inf)),
    "a logprob is text": (EVIDENCE, "no number: '-0.5'", wrong.logprob("-0.5")),
    "a logprob is missing": (EVIDENCE, "ids with", wrong.said(lambda one: replace(one, logprobs=one.logprobs[:-1]))),
    "a turn on disk is another": (APPEND, "otherwise than memory",
        wrong.stored(wrong.committed(wrong.first_turn(lambda turn: replace(turn, reply=Message("assistant", "x")))))),
    "a turn in memory is another": (APPEND, "otherwise than memory",
        wrong.remembered(wrong.committed(wrong.first_turn(lambda turn: replace(turn, finish_reason="abort"))))),
    "a turn is only in memory": (APPEND, "the store does not have it",
        wrong.stored(lambda one: replace(one, calls=one.calls[:-1]))),
    "a turn is only on disk": (APPEND, "memory does not have it",
        wrong.remembered(lambda one: replace(one, calls=one.calls[:-1]))),
    "a session is only on disk": (APPEND, "session plain-1: memory does not have it",
        lambda evidence: replace(evidence, remembered=())),
    "a session's reward is another on disk": (APPEND, "session plain-1: the store has it otherwise than memory",
        wrong.stored(lambda one: replace(one, facts=replace(one.facts, reward=-1.0)))),
    "a child stands before its parent": (APPEND, "which its session does not have before it",
        wrong.stored(lambda one: replace(one, calls=one.calls[::-1]))),
    "a call stands in another session": (APPEND, "it stands in session plain-1 and is of x",
        wrong.stored(wrong.committed(wrong.of_call(session_id="x")))),
    "forks have no reason": (FORKS, "does not say why", wrong.without_forks),
    "a turn continues nothing and does not say why": (FORKS, "does not say why",
        wrong.stored(wrong.committed(wrong.of_call(parent=None)))),
    "an answered turn is not there": (RECORDED, "turn x: it is not in the store",
        lambda evidence: replace(evidence, answered={"x": True})),
    "a turn was answered before it was recorded": (RECORDED, "before it was in the store",
        lambda evidence: replace(evidence, answered=dict.fromkeys(evidence.answered, False))),
    "a call is twice in the log": (ONE, "2 times in the engine's log",
        lambda evidence: replace(evidence, log=(*evidence.log, evidence.log[0]))),
    "a call is twice in the record": (ONE, "another recorded call has its request id",
        wrong.stored(lambda one: replace(one, calls=(*one.calls, wrong.renamed("x")(one.calls[-1]))))),
    "a call left no turn and is not counted": (ONE, "1 calls left no turn", wrong.stray()),
    "a call is of no session": (ONE, "session x: the engine was called for it", wrong.stray("x")),
    "a call was for another session": (ONE, "the engine was called for session x",
        wrong.logged(lambda one: replace(one, session_id="x"))),
    "the engine never finished": (ONE, "never finished it", wrong.logged(lambda one: replace(one, aborted=True))),
    "a choice has no end": (ONE, "never finished it", wrong.said(lambda one: replace(one, finish_reason=None))),
    "a choice is not recorded": (ONE, "2 choices were sampled, and 1 turns are recorded",
        wrong.stored(wrong.committed(lambda one: replace(one, turns=one.turns[1:]), place=0), place=4)),
    "tokens are longer": (LENGTHS, "have lengths", wrong.column("tokens", lambda ids: ids.repeat(2))),
    "logprobs are shorter": (LENGTHS, "have lengths", wrong.column("logprobs", lambda column: column[1:])),
    "context is marked as sampled": (LENGTHS, "`sampled` is not 1",
        wrong.column("sampled", lambda column: wrong.other(column, 0))),
    "context is trained": (LENGTHS, "`mask` is not 1", wrong.column("mask", lambda column: wrong.other(column, 0))),
    "context has a logprob": (LENGTHS, "a logprob where nothing was sampled",
        wrong.column("logprobs", lambda column: wrong.other(column, 0, -0.5))),
    "spans are out of order": (LENGTHS, "spans out of order",
        wrong.sample(lambda one: replace(one, spans=one.spans[::-1]))),
    "tokens are trained nowhere": (ONCE, "trained 0 times", wrong.sample(wrong.untrained)),
    "a sample is missing": (ONCE, "trained 0 times",
        lambda evidence: replace(evidence, samples=evidence.samples[1:])),
    "a sample stands twice": (ONCE, "trained 2 times",
        lambda evidence: replace(evidence, samples=(*evidence.samples, evidence.samples[0]))),
    "a sample is of no turn": (ONCE, "not the path from the root to turn x",
        wrong.sample(lambda one: replace(one, leaf_turn_id="x"))),
}  # fmt: skip


def found(evidence: Evidence) -> dict[str, tuple[str, ...]]:
    return {check.law: check.findings for check in audit(evidence) if check.findings}


def test_nothing_is_found_where_nothing_is_wrong(evidence: Evidence) -> None:
    assert found(evidence) == {}


def test_every_law_was_looked_at(evidence: Evidence) -> None:
    """A law that holds on nothing says nothing."""
    assert [check.law for check in audit(evidence) if check.count == 0] == []


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_found(evidence: Evidence, name: str) -> None:
    law, words, corrupt = BROKEN[name]
    assert words in "\n".join(found(corrupt(evidence)).get(law, ()))


def test_the_evidence_is_rich(evidence: Evidence) -> None:
    """Else the corruptions above would be of less than they seem."""
    forks = {sample.fork.reason.value for sample in evidence.samples if sample.fork}
    notes = {note.kind.value for sample in evidence.samples for note in sample.notes}
    assert {"branched", "resampled", "history_shortened", "assistant_edited"} <= forks
    assert {"whitespace_ignored", "arguments_reformatted", "ambiguous_match", "tool_call_unparsed"} <= notes
    assert {sample.truncated for sample in evidence.samples} == {None, "length"}


@pytest.mark.parametrize(
    "facts", [{"attempts": {Attempt.ENGINE_ERROR: 1}}, {"state": State.CANCELLED}], ids=["counted", "cancelled"]
)
def test_a_call_may_leave_no_turn_where_that_is_accounted_for(evidence: Evidence, facts: dict[str, object]) -> None:
    session = evidence.recorded[0].facts.id
    accounted = wrong.stored(lambda one: replace(one, facts=replace(one.facts, **facts)))
    assert ONE not in found(accounted(wrong.stray(session)(evidence)))


def test_memory_and_answers_are_compared_only_where_there_are_any(evidence: Evidence) -> None:
    bare = replace(evidence, remembered=None, answered={})
    assert {check.law for check in audit(bare) if check.count == 0} == {APPEND, RECORDED}
    assert found(bare) == {}


def test_a_finding_says_where_and_what(evidence: Evidence) -> None:
    longer = wrong.logged(lambda one: replace(one, prompt=[*one.prompt, 0]))(evidence)
    (call,) = (one for one in longer.log if one.request_id == evidence.log[3].request_id)
    finding, *_ = found(longer)[TRUTH]
    assert call.request_id in finding
    assert f"{len(call.prompt) - 1} of them where the log has {len(call.prompt)}" in finding


def test_a_record_that_loops_is_a_finding(evidence: Evidence) -> None:
    own = evidence.recorded[0].calls[0].turns[0].id
    looped = wrong.stored(wrong.committed(wrong.of_call(parent=own, after=own), place=0))(evidence)
    assert {TRUTH, APPEND} <= found(looped).keys()
