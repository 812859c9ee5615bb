"""Rules by which branches are left out of an export, counted where they strike: nothing is left out silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, get_args

from stenograph.core import ForkReason, Role, SessionFacts
from stenograph.errors import ConfigError
from stenograph.export.branch import Branch

Strikes: TypeAlias = Callable[[SessionFacts, Branch], bool]


def _side_calls(value: str) -> Strikes:
    return lambda facts, branch: branch.side


def _max_tokens(value: str) -> Strikes:
    most = int(value)
    return lambda facts, branch: all((turn.call.sampling.max_tokens or 0) <= most for turn in branch.turns)


def _fork(value: str) -> Strikes:
    reason = ForkReason(value)
    return lambda facts, branch: branch.fork is not None and branch.fork.reason is reason


def _truncated(value: str) -> Strikes:
    return lambda facts, branch: branch.truncated is not None


def _unrewarded(value: str) -> Strikes:
    return lambda facts, branch: facts.reward is None and not any(one is not None for one in facts.rewards.values())


def _role(value: str) -> Strikes:
    if value not in get_args(Role):
        raise ValueError(value)
    return lambda facts, branch: facts.role == value


RULES: Mapping[str, tuple[Callable[[str], Strikes], str, str]] = {
    "side-calls": (
        _side_calls,
        "",
        "conversations of one call beside a longer one with other tools: titles, topic checks, probes",
    ),
    "max-tokens": (_max_tokens, "N", "branches whose calls were all allowed N tokens or fewer"),
    "fork": (_fork, "REASON", "branches that began with this fork"),
    "truncated": (_truncated, "", "branches whose last reply was cut short"),
    "unrewarded": (_unrewarded, "", "sessions that have no reward, nor one for any turn"),
    "role": (_role, "ROLE", "sessions of this role"),
}
"""By name: how it is made, what it takes, and which branches it is about."""


class Exclusion:
    def __init__(self, rules: Sequence[str], *, main_only: bool = False) -> None:
        self._rules = {f"--exclude {rule}": _made(rule) for rule in rules}
        if main_only:
            self._rules["--branches main"] = lambda facts, branch: not branch.main
        self.struck: Counter[str] = Counter()
        """How many branches each flag has left out; where several are right, the first one counts."""

    def keep(self, facts: SessionFacts) -> Callable[[Branch], bool]:
        return lambda branch: not self._strikes(facts, branch)

    def _strikes(self, facts: SessionFacts, branch: Branch) -> bool:
        for flag, strikes in self._rules.items():
            if strikes(facts, branch):
                self.struck[flag] += 1
                return True
        return False


def _made(rule: str) -> Strikes:
    name, equals, value = rule.partition("=")
    if name not in RULES or bool(equals) != bool(RULES[name][1]):
        known = ", ".join(f"{name}={takes}" if takes else name for name, (_, takes, _) in RULES.items())
        raise ConfigError(f"--exclude {rule}: there is no such rule; there are {known}")
    try:
        return RULES[name][0](value)
    except ValueError as error:
        raise ConfigError(f"--exclude {rule}: {value!r} is no {RULES[name][1]}") from error
