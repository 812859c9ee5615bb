"""Every format, read back by its layout, has the samples that went in; and its page says so."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given

from stenograph.core import JSON, Sample, Turn
from stenograph.errors import ConfigError
from stenograph.export.formats.table import FORMATS
from stenograph.export.sample import samples
from tests.conftest import ROOT
from tests.docs.tables import tables
from tests.export.formats.reading import READERS, TOTALS_ONLY, of_sample, rows
from tests.export.trees import FACTS, call, ids, part, trees, turn

REWARDED = msgspec.structs.replace(FACTS, reward=0.5, group="g", scores={"style": 0.25})


def written(name: str, found: list[Sample]) -> bytes:
    return b"".join(FORMATS[name].encode(found))


@given(trees())
def test_what_is_read_back_is_what_was_written(tree: list[Turn]) -> None:
    """With some prompt: of a first token no trainer has a logprob, and one alone is nothing to train."""
    found = [sample for sample in samples(REWARDED, tree) if len(sample.tokens) > 1 and not sample.sampled[0]]
    assume(found)
    expected = [of_sample(sample) for sample in found]
    for name, reader in READERS.items():
        rewards_apart = [msgspec.structs.replace(one, reward=None) for one in expected]
        assert list(reader(written(name, found))) == (rewards_apart if name in TOTALS_ONLY else expected), name


def test_every_format_has_a_reader() -> None:
    assert READERS.keys() == FORMATS.keys()


def test_the_page_has_every_format_and_what_the_table_says_of_it() -> None:
    told, lost = tables(ROOT / "docs" / "FORMATS.md")[:2]
    assert told.names == lost.names == list(FORMATS)
    for row, format in zip(told.rows, FORMATS.values(), strict=True):
        assert (row[3] == "yes", row[4].strip("`") or None) == (format.branches, format.ratios)


# ------------------------------------------------------------------------------------------------------- one by one

TURNS = [turn(call("a")), turn(call("b", "a", context=ids(7, 8)), parts=[part(1), part(2)], finish="length")]
"""1 2 3 [100 101] 7 8 [100] [100 101]: two turns, the second in two parts."""
FACTS_OF_TURNS = msgspec.structs.replace(
    REWARDED, rewards={"a": 0.25, "b": None}, metadata={"prompt": "Go.", "label": "42", "env_name": "maze"}
)
(SAMPLE,) = samples(FACTS_OF_TURNS, TURNS)
TURN_REWARD = {"turn_id": "a", "start": 3, "end": 5, "reward": 0.25}


def one_row(name: str, sample: Sample = SAMPLE) -> JSON:
    (row,) = rows(written(name, [sample]))
    return row


def test_openrlhf_names_the_runs_that_are_trained() -> None:
    row = one_row("openrlhf")
    assert row["action_ranges"] == [[3, 5], [7, 8], [8, 10]]
    assert (row["prompt"], row["label"], row["truncated"], row["scores"]) == ("Go.", "42", True, 0.5)
    assert row["stenograph"]["turn_rewards"] == [TURN_REWARD]


def test_verl_has_turn_rewards_where_it_looks_for_them() -> None:
    row = one_row("verl")
    assert (row["num_turns"], row["extra_fields"]["turn_scores"]) == (4, [0.25])
    assert row["prompt_ids"] == [1, 2, 3]


def test_skyrl_has_each_reward_at_its_token() -> None:
    row = one_row("skyrl")
    assert row["rewards"] == [[0.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.5]]
    assert (row["stop_reasons"], row["trajectory_ids"]) == (["length"], [{"instance_id": "g", "repetition_id": 0}])


def test_trl_hands_on_one_entry_a_completion() -> None:
    row = one_row("trl")
    assert row["env_mask"] == [[1, 1, 0, 0, 1, 1, 1]]
    assert {len(column) for column in row.values()} == {1}


@pytest.mark.parametrize(
    ("status", "truncated", "said"),
    [
        ("completed", None, "completed"),
        ("completed", "length", "truncated"),
        ("completed", "aborted", "aborted"),
        ("timeout", None, "failed"),
        ("failed", "length", "failed"),
        ("cancelled", "aborted", "aborted"),
        ("cancelled", None, "aborted"),
        ("open", None, "pending"),
        ("open", "length", "pending"),
    ],
)
def test_slime_has_its_own_words_for_how_it_ended(status: str, truncated: str | None, said: str) -> None:
    sample = msgspec.structs.replace(SAMPLE, status=status, truncated=truncated)
    assert one_row("slime", sample)["status"] == said


def test_slime_numbers_groups_and_samples() -> None:
    found = [msgspec.structs.replace(SAMPLE, session_id=id, group=group) for id, group in ("1g", "2h", "3g")]
    numbered = [(row["group_index"], row["index"]) for row in rows(written("slime", found))]
    assert numbered == [(0, 0), (1, 1), (0, 2)]


def test_atropos_has_the_temperature_where_a_group_has_one() -> None:
    warm = msgspec.structs.replace(SAMPLE.spans[0], sampling={**SAMPLE.spans[0].sampling, "temperature": 0.5})
    assert one_row("atropos")["generation_params"] == {"temperature": 1.0}
    mixed = msgspec.structs.replace(SAMPLE, spans=(warm, *SAMPLE.spans[1:]))
    assert one_row("atropos", mixed)["generation_params"] is None


def test_verifiers_has_a_node_a_turn_and_a_chain_a_branch() -> None:
    row = one_row("verifiers")
    assert [(node["parent"], node["token_ids"], node["sampled"]) for node in row["nodes"]] == [
        (None, [1, 2, 3, 100, 101], True),
        (0, [7, 8, 100, 100, 101], True),
    ]
    assert [(one["node"], one["finish_reason"]) for one in row["calls"]] == [(0, "stop"), (1, "length")]
    assert (row["ok"], row["task"]["data"]["prompt"]) == (False, "Go.")


def of_group(*rewards: float) -> list[Sample]:
    """Rollouts of two branches each."""
    tree = [*TURNS, turn(call("c", "a"))]
    facts = [
        msgspec.structs.replace(FACTS_OF_TURNS, id=f"s{number}", reward=reward) for number, reward in enumerate(rewards)
    ]
    return [sample for one in facts for sample in samples(one, tree)]


def test_tinker_and_prime_rl_have_the_advantage_on_what_is_trained() -> None:
    """A turn's reward of 0.25 makes totals of 1.25, 0.25 and 0.0; their mean is 0.5, whatever the branches."""
    found = of_group(1.0, 0.0, -0.25)
    expected = [
        [advantage if trained else 0.0 for trained in sample.mask]
        for sample, advantage in zip(found, (0.75, 0.75, -0.25, -0.25, -0.5, -0.5), strict=True)
    ]
    columns = [row["datum"]["loss_fn_inputs"]["advantages"]["data"] for row in rows(written("tinker", found))]
    assert columns == [one[1:] for one in expected]
    examples, _ = msgspec.msgpack.decode(written("prime-rl", found))
    assert [example[5][0][1] for example in examples] == expected
    assert [example[6] for example in examples] == [1.25, 1.25, 0.25, 0.25, 0.0, 0.0]
    assert {example[4] for example in examples} == {"maze"}


def test_prime_rl_gives_context_the_temperature_of_what_follows() -> None:
    spans = [
        msgspec.structs.replace(span, sampling={**span.sampling, "temperature": temperature})
        for span, temperature in zip(SAMPLE.spans, (0.5, 0.7, 0.7), strict=True)
    ]
    (example,), _ = msgspec.msgpack.decode(written("prime-rl", [msgspec.structs.replace(SAMPLE, spans=tuple(spans))]))
    assert example[3] == [0.5] * 5 + [0.7] * 5


def test_prime_rl_does_not_divide_by_zero() -> None:
    cold = msgspec.structs.replace(SAMPLE.spans[0], sampling={**SAMPLE.spans[0].sampling, "temperature": 0.0})
    with pytest.raises(ConfigError, match="session s was sampled at temperature 0"):
        written("prime-rl", [msgspec.structs.replace(SAMPLE, spans=(cold, *SAMPLE.spans[1:]))])


@pytest.mark.parametrize("name", FORMATS)
def test_a_reward_that_is_missing_is_said_to_be_or_refused(name: str) -> None:
    bare = samples(FACTS, TURNS)
    if name in ("openrlhf", "atropos", "prime-rl", "tinker", "skyrl"):
        with pytest.raises(ConfigError, match=f"session s has no reward, and {name} needs one"):
            written(name, bare)
    else:
        assert [one.reward for one in READERS[name](written(name, bare))] == [None]


@pytest.mark.parametrize("name", FORMATS)
def test_where_nothing_was_sampled_nothing_is_trained(name: str) -> None:
    empty = samples(REWARDED, [turn(call("a"), parts=[])])
    (read,) = READERS[name](written(name, empty))
    assert (read.tokens, read.mask) == ([1, 2, 3], [0, 0, 0])
