"""The drift benchmark on a few rollouts: ours is perfect, the others fail where the field's systems do, and the measure
sees each kind of fault."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from functools import reduce
from operator import add
from pathlib import Path

import msgspec
import pytest

from bench.drift import run as drift
from bench.drift import tables
from bench.drift.agent import Agent
from bench.drift.cells import WAYS, Cell
from bench.drift.habits import HABITS, LOOK, odd_spelling
from bench.drift.measure import Tally, measured
from bench.drift.model import Model, Voice
from bench.drift.plain import Plain
from bench.drift.reading import Reading
from bench.drift.rerender import ReRender, split
from bench.drift.way import Sent, Trained
from bench.report import FULL, QUICK
from tests.stage.models import ALWAYS, model

WRITTEN = (drift.HERE / "TABLE.md", drift.HERE / "results.json")
EXTENDS = (
    *("odd_spelling", "stop_token", "cut_in_a_word", "cut_in_a_character", "white_space_stripped", "null_content"),
    *("arguments_reprinted", "call_repeated", "too_long_then_trimmed", "markers_in_user_text"),
)
FORKS = {
    "reply_edited": "assistant_edited",
    "tools_changed": "tools_changed",
    "sub_agents": "new_conversation",
}
FAILS = (
    *("cut_in_a_character", "white_space_stripped", "reasoning_not_echoed", "arguments_reprinted", "reply_edited"),
    *("history_compacted", "sub_agents", "third_of_four", "call_repeated", "too_long_then_trimmed"),
)
"""FIELD D's 500s, each without any help from odd spellings."""


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    wanted = drift.extent(quick=True)
    if wanted.tokenizers == (drift.BUNDLED,):
        model(ALWAYS)  # skips where it is not installed
    return drift.cells(wanted)


def sum_of(cells: Iterable[Cell], way: str, habit: str, spelling: str = "odd") -> Tally:
    found = [cell.ways[way] for cell in cells if (cell.habit, cell.spelling) == (habit, spelling)]
    return reduce(add, found, Tally())


# ------------------------------------------------------------------------------------------------------ what came out


def test_ours_is_perfect_in_every_cell(cells: list[Cell]) -> None:
    assert list(drift.problems(cells)) == []
    assert {cell.habit for cell in cells} == set(HABITS)
    assert all(cell.ways.keys() == WAYS.keys() for cell in cells if not cell.refused)


@pytest.mark.parametrize("habit", EXTENDS)
def test_ours_is_one_sample_where_the_template_appends(
    cells: list[Cell], shared_tokenizers: dict[str, Path], habit: str
) -> None:
    [cell] = (cell for cell in cells if (cell.tokenizer, cell.habit, cell.spelling) == ("qwen3", habit, "odd"))
    assert cell.ways["ours"].samples == cell.ways["ours"].rollouts
    assert cell.forks == {}


@pytest.mark.parametrize(("habit", "reason"), FORKS.items())
def test_ours_says_why_it_forks(cells: list[Cell], habit: str, reason: str) -> None:
    assert all(reason in cell.forks for cell in cells if cell.habit == habit)


def test_joining_by_length_trains_behind_another_prompt(cells: list[Cell]) -> None:
    for habit in ("odd_spelling", "cut_in_a_character", "sub_agents", "third_of_four"):
        assert sum_of(cells, "joined", habit).drifted
    assert not sum_of(cells, "joined", "stop_token").drifted


def test_splitting_costs_a_sample_a_turn(cells: list[Cell]) -> None:
    split, ours = (sum_of(cells, way, "cut_in_a_word") for way in ("split", "ours"))
    assert split.samples == 3 * split.rollouts > ours.samples
    assert split.sample_tokens > ours.sample_tokens


def test_a_server_that_re_renders_takes_markers_in_a_users_text_for_real_ones(cells: list[Cell]) -> None:
    for way in ("joined", "split", "by_text", "or_fail"):
        tally = sum_of(cells, way, "markers_in_user_text")
        assert tally.misread == tally.prompts > 0


def test_extending_by_text_doubles_the_stop_token(cells: list[Cell]) -> None:
    for habit in ("stop_token", "third_of_four"):
        tally = sum_of(cells, "by_text", habit, "canonical")
        assert tally.misread == 2 * tally.rollouts
    [words] = {cell.habit: cell.faults["by_text"] for cell in cells if cell.habit == "stop_token"}.values()
    assert all("was sampled" in fault for fault in words)


def test_extending_by_text_loses_a_reply_that_was_stripped(cells: list[Cell]) -> None:
    by_text, ours = (sum_of(cells, way, "white_space_stripped") for way in ("by_text", "ours"))
    assert by_text.samples > ours.samples


def test_a_repeat_is_a_turn_of_its_own_elsewhere(cells: list[Cell]) -> None:
    """Trained, though no agent ever had it."""
    assert all(sum_of(cells, way, "call_repeated").foreign for way in ("joined", "split", "by_text"))


def test_extending_or_failing_fails_at_the_first_odd_token(cells: list[Cell]) -> None:
    tally = sum_of(cells, "or_fail", "odd_spelling")
    assert tally.failed == tally.ended_early == tally.rollouts
    assert tally.right == 0 < tally.sampled


@pytest.mark.parametrize("habit", FAILS)
def test_extending_or_failing_fails_in_any_spelling(
    cells: list[Cell], habit: str, request: pytest.FixtureRequest
) -> None:
    if habit == "reasoning_not_echoed":  # of which the bundled model's template writes none
        request.getfixturevalue("shared_tokenizers")
    assert sum_of(cells, "or_fail", habit, "canonical").failed


def test_extending_or_failing_has_no_sample_of_two_calls_at_once(cells: list[Cell]) -> None:
    for spelling in ("odd", "canonical"):
        assert sum_of(cells, "or_fail", "two_calls_at_once", spelling).right == 0


# -------------------------------------------------------------------------------------------------------- the measure


class Lying(ReRender):
    """Hands over its samples, or tells of its prompts, otherwise than they were."""

    lie: Callable[[Trained], Trained] = staticmethod(lambda sample: sample)
    tell: Callable[[Sent], Sent] = staticmethod(lambda sent: sent)

    def samples(self) -> list[Trained]:
        first, *others = super().samples()
        return [self.lie(first), *others]

    def sent(self) -> list[Sent]:
        first, *others = super().sent()
        return [self.tell(first), *others]


def other_id(sample: Trained) -> Trained:
    return msgspec.structs.replace(sample, tokens=[*sample.tokens[:-1], sample.tokens[-1] + 1])


def padded_logprob(sample: Trained) -> Trained:
    return msgspec.structs.replace(sample, logprobs=[*sample.logprobs[:-1], 1.0])


def masked(sample: Trained) -> Trained:
    return msgspec.structs.replace(sample, mask=[False] * len(sample.tokens))


def prompt_trained(sample: Trained) -> Trained:
    return msgspec.structs.replace(sample, mask=[True, *sample.mask[1:]])


def other_context(sample: Trained) -> Trained:
    return msgspec.structs.replace(sample, tokens=[sample.tokens[0] + 1, *sample.tokens[1:]])


def token_missing(sample: Trained) -> Trained:
    """In the middle of what was sampled: the rest stands one place too early."""
    at = sample.mask.index(True) + 1
    columns = ([*column[:at], *column[at + 1 :]] for column in (sample.tokens, sample.mask, sample.logprobs))
    return Trained(*columns)


def doubled_marker(sent: Sent) -> Sent:
    return msgspec.structs.replace(sent, ids=[sent.ids[0], *sent.ids])


def played(lie: Callable[[Trained], Trained] | None = None, tell: Callable[[Sent], Sent] | None = None) -> Tally:
    renderer = model(ALWAYS).house.renderer
    plain, seeded = Plain(renderer), Model(Voice(renderer, [LOOK]), "odd", "a seed")
    way = Lying(plain, seeded, split)
    way.lie, way.tell = lie or way.lie, tell or way.tell
    agent = Agent(way, seeded, random.Random(1))
    asyncio.run(odd_spelling(agent))
    tally, _ = measured(way, agent, seeded, Reading(plain))
    return tally


def test_the_truth_is_perfect() -> None:
    assert played().perfect


@pytest.mark.parametrize(
    ("lie", "figures"),
    [
        (other_id, {"right": -1, "foreign": 1}),
        (padded_logprob, {"right": -1, "foreign": 1}),
        (prompt_trained, {"foreign": 1}),
        (other_context, {"drifted": 1}),
        (token_missing, {"right": -1, "drifted": 1, "sample_tokens": -1}),
    ],
)
def test_every_lie_is_found(lie: Callable[[Trained], Trained], figures: dict[str, int]) -> None:
    truth, told = played(), played(lie)
    assert not told.perfect
    changed = {name: getattr(told, name) - getattr(truth, name) for name in truth.__struct_fields__}
    assert {name: change for name, change in changed.items() if change} == figures


def test_what_is_masked_is_lost_and_not_wrong() -> None:
    told = played(masked)
    assert told.right < told.sampled
    assert (told.foreign, told.drifted) == (0, 0)


def test_a_prompt_that_reads_otherwise_is_found() -> None:
    told = played(tell=doubled_marker)
    assert (told.misread, told.perfect) == (1, False)


# --------------------------------------------------------------------------------------------------- what is reported


RIGHT = Tally(rollouts=1, calls=1, sampled=3, right=3, turns=1, prompts=1, samples=1, sample_tokens=9)


def cell(tokenizer: str = "qwen3", habit: str = "null_content", **fields: object) -> Cell:
    made = Cell(tokenizer=tokenizer, habit=habit, spelling="odd", ways=dict.fromkeys(WAYS, RIGHT))
    return msgspec.structs.replace(made, **fields)


def test_what_is_perfect_and_refused_as_listed_is_no_problem() -> None:
    refused = cell("smollm3", ways={}, refused="(the template writes no tool calls, and says nothing)")
    assert list(drift.problems([cell(), refused])) == []


@pytest.mark.parametrize(
    "wrong",
    [
        cell(refused="No."),
        cell("smollm3"),
        cell("smollm3", refused="No."),
        *(
            cell(ways={"ours": RIGHT + Tally(**{name: 1})})
            for name in ("sampled", "foreign", "drifted", "misread", "failed")
        ),
    ],
)
def test_anything_else_is_a_problem(wrong: Cell) -> None:
    assert len(list(drift.problems([wrong]))) == 1


def test_a_run_with_a_problem_says_so_and_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [path.read_bytes() for path in WRITTEN]
    monkeypatch.setattr(drift, "cells", lambda wanted: [cell(refused="No.")])
    with pytest.raises(RuntimeError, match=r"refused with 'No\."):
        drift.run(FULL)
    assert [path.read_bytes() for path in WRITTEN] == before


def test_a_quick_run_is_printed_and_not_written(cells: list[Cell], monkeypatch: pytest.MonkeyPatch) -> None:
    before = [path.read_bytes() for path in WRITTEN]
    monkeypatch.setattr(drift, "cells", lambda wanted: cells)
    text = "".join(table.markdown() for table in drift.run(QUICK))
    assert all(label in text for label in WAYS.values())
    assert [path.read_bytes() for path in WRITTEN] == before


def test_nothing_is_rounded_to_perfection() -> None:
    almost = RIGHT + Tally(sampled=100_000, right=99_999, prompts=100_000, misread=1)
    text = tables.markdown([cell(ways=dict.fromkeys(WAYS, almost))], seeds=1)
    assert "| 99.9% " in text
    assert "| 0.1% " in text


def test_the_checked_in_table_is_of_every_tokenizer(shared_tokenizers: dict[str, Path]) -> None:
    """Somebody who adds a tokenizer or a habit has to run the benchmark again."""
    results = msgspec.json.decode(WRITTEN[1].read_bytes())
    assert {cell["tokenizer"] for cell in results["cells"]} == set(shared_tokenizers)
    assert {cell["habit"] for cell in results["cells"]} == set(HABITS)
    assert results["columns"] == list(Tally.__struct_fields__)
