"""Names of responses and of their items. They hold the turn's, so that whatever comes back says which turn it was."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from stenograph.core import Value

Kind: TypeAlias = Literal["rs", "msg", "fc", "ctc", "ctj"]
"""Reasoning, message, function call, custom call, and a custom call whose arguments are not its input (`ctj`)."""
_RESPONSE = "resp_"
_ITEM = re.compile(r"(?P<kind>rs|msg|fc|ctc|ctj)_(?P<turn>[A-Za-z0-9.:-]+)_(?P<place>[0-9]{1,4})")


class ItemName(Value):
    kind: str
    turn: str
    place: int
    """Of the items of one kind; all calls are of one."""


def response_name(turn_id: str) -> str:
    return _RESPONSE + turn_id


def turn_of(response: str) -> str:
    return response.removeprefix(_RESPONSE)


def item_name(kind: Kind, turn_id: str, place: int) -> str:
    return f"{kind}_{turn_id}_{place}"


def item_named(name: str | None) -> ItemName | None:
    """None: it is not one of ours."""
    found = _ITEM.fullmatch(name or "")
    return ItemName(found["kind"], found["turn"], int(found["place"])) if found else None
