"""The words that a field may be, where there are a few: whoever wrote another one is told which."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import inspect

_STEP = re.compile(r"\.([^.\[\]]+)|\[[^\]]*\]")
"""Of msgspec's own paths: a field's name, or an item, whichever."""


def choices(type: object, path: str) -> list[str]:
    """What may stand at `path` of a value of this type, as its caller would write it."""
    places = [inspect.type_info(type)]
    for step in _STEP.finditer(path):
        places = [inner for place in places for inner in _inside(place, step[1])]
    found = (part for place in places for part in _parts(place) if isinstance(part, inspect.LiteralType))
    return [str(value) for literal in found for value in literal.values]


def _inside(place: inspect.Type, name: str | None) -> Iterator[inspect.Type]:
    for part in _parts(place):
        if isinstance(part, inspect.StructType):
            yield from (field.type for field in part.fields if field.encode_name == name)
        elif isinstance(part, inspect.DictType):
            yield part.value_type
        elif isinstance(part, inspect.CollectionType) and name is None:
            yield part.item_type


def _parts(place: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(place, inspect.Metadata):
        yield from _parts(place.type)
    elif isinstance(place, inspect.UnionType):
        for one in place.types:
            yield from _parts(one)
    else:
        yield place
