"""Samples in the units that trainers count in: rollouts, and groups of them that share a baseline.

Samples come session by session, as `stenograph export` reads them. Nothing here needs numpy: the table of formats is
read for `--help` too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from stenograph.errors import ConfigError

if TYPE_CHECKING:
    from stenograph.core import Sample

Rollout: TypeAlias = "list[Sample]"
"""One session: its branches, those that are exported."""


def rollouts(samples: Iterable[Sample]) -> Iterator[Rollout]:
    for _, branches in itertools.groupby(samples, key=lambda sample: sample.session_id):
        yield list(branches)


def groups(samples: Iterable[Sample]) -> Iterator[list[Rollout]]:
    """Rollouts that share a baseline: a group once as many are there as it was opened for, what is left at the end. A
    session without a group is one of its own, an evaluation is no yardstick for what is trained, and sessions that
    disagree on the size are no group together, as where groups are delivered."""
    held: dict[tuple[str, str, int | None], list[Rollout]] = {}
    for rollout in rollouts(samples):
        one = rollout[0]
        if one.group is None:
            yield [rollout]
            continue
        key = one.group, one.role, one.group_size
        held.setdefault(key, []).append(rollout)
        if len(held[key]) == one.group_size:
            yield held.pop(key)
    yield from held.values()


def single(samples: Iterable[Sample], name: str) -> Iterator[Sample]:
    """For a consumer that takes each row for a rollout: several rows of one would count several times in its group."""
    for rollout in rollouts(samples):
        if len(rollout) > 1:
            raise ConfigError(
                f"session {rollout[0].session_id} has {len(rollout)} branches, and {name} takes each for a rollout: "
                "say --branches main, or --branches all"
            )
        yield from rollout


def reward(sample: Sample, name: str) -> float:
    """The session's own."""
    if sample.reward is None:
        raise _unrewarded(sample, name)
    return sample.reward


def total_reward(rollout: Rollout, name: str) -> float:
    """The session's own and those of its turns, each turn once however many branches hold it."""
    own = rollout[0].reward
    turns = {turn: one for sample in rollout for turn, one in sample.rewards.items() if one is not None}
    if own is None and not turns:
        raise _unrewarded(rollout[0], name)
    return (own or 0.0) + sum(turns.values())


def advantages(group: Sequence[Rollout], name: str) -> list[float]:
    """Of each rollout: its reward less the group's mean, in which a rollout counts once, however many branches it has.
    Without a group there is no baseline, and the reward itself stands."""
    totals = [total_reward(rollout, name) for rollout in group]
    baseline = sum(totals) / len(totals) if group[0][0].group is not None else 0.0
    return [total - baseline for total in totals]


def _unrewarded(sample: Sample, name: str) -> ConfigError:
    if any(one is not None for one in sample.rewards.values()):
        return ConfigError(
            f"session {sample.session_id} has rewards of turns alone, and {name} needs one of the session: give it one"
        )
    return ConfigError(
        f"session {sample.session_id} has no reward, and {name} needs one: give it one, or leave such sessions out "
        "with --exclude unrewarded"
    )
