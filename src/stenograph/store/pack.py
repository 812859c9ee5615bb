"""Nouns to rows and back. Bit-exact, and proven so before anything is written: a record must read back as it was.

Arrays travel as raw bytes. A dtype that is not the noun's own is refused, for casting it could change a number; JSON
that would read back differently (NaN becomes null, a tuple a list) is refused as well.
"""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from stenograph.core import Batch, Lesson, SessionFacts, Teacher, TopLogprob, Turn, Value, WeightsSaid
from stenograph.errors import StoreError
from stenograph.store.schema import (
    BATCH,
    BLOB,
    CALL,
    LESSON,
    PART,
    SESSION,
    TEACHER,
    TURN,
    WEIGHTS,
    Column,
    Holds,
    N,
    Table,
)
from stenograph.store.store import Blob, Record

Cell: TypeAlias = str | bytes | int | float | None
Row: TypeAlias = dict[str, Cell]
Top: TypeAlias = tuple[tuple[TopLogprob, ...], ...]
Packing: TypeAlias = tuple[Callable[[Any], Cell], Callable[[Any], object]]
"""To a cell, and back."""


class Codec(Generic[N]):
    """One noun along its table's columns."""

    def __init__(self, table: Table[N]) -> None:
        self._noun = table.noun
        self._rest_names = table.rest
        fields = {field.name: field for field in msgspec.structs.fields(table.noun)}
        self._columns = [(c.name, c.of, *_packing(c, fields[c.of].type)) for c in table.columns if c.of is not None]
        self._rest_type = _rest_type(table.noun, table.rest)
        self._rest = msgspec.json.Decoder(self._rest_type)

    def row(self, value: N, **keys: Cell) -> Row:
        row = {name: pack(getattr(value, field)) for name, field, pack, _ in self._columns} | keys
        if self._rest_names:
            row["rest"] = self._rest_of(value)
        return row

    def value(self, row: sqlite3.Row, **apart: object) -> N:
        known = {field: unpack(row[name]) for name, field, _, unpack in self._columns} | apart
        if self._rest_names:
            known |= msgspec.structs.asdict(self._rest.decode(row["rest"]))
        return self._noun(**known)

    def _rest_of(self, value: N) -> str:
        rest = self._rest_type(**{name: getattr(value, name) for name in self._rest_names})
        text = msgspec.json.encode(rest)
        back = self._rest.decode(text)
        if back != rest:
            lossy = ", ".join(name for name in self._rest_names if getattr(back, name) != getattr(rest, name))
            raise StoreError(f"the store: a {self._noun.__name__}'s {lossy} cannot be kept exactly as JSON")
        return text.decode()


def _rest_type(noun: type[Value], names: tuple[str, ...]) -> type[msgspec.Struct]:
    """The noun less its columns. A field that this version does not know is refused on reading, never dropped."""
    fields = [
        (field.name, field.type, _default(field)) for field in msgspec.structs.fields(noun) if field.name in names
    ]
    return msgspec.defstruct(f"{noun.__name__}Rest", fields, kw_only=True, forbid_unknown_fields=True)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    """What core gives a field that an older row does not have yet."""
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.field() if field.default is msgspec.NODEFAULT else msgspec.field(default=field.default)


def _packing(column: Column, type: Any) -> Packing:
    as_it_is: Packing = (_same, functools.partial(msgspec.convert, type=type))
    return _PACKINGS.get(column.holds, as_it_is)


def _same(cell: Cell) -> Cell:
    return cell


def _array(dtype: str) -> Packing:
    """Read back from immutable bytes, so the array is read-only by nature: law 3 down to the last bit."""
    exact = np.dtype(dtype)

    def pack(array: NDArray[Any]) -> bytes:
        if array.dtype != exact or array.ndim != 1:
            raise StoreError(
                f"the store: expected a plain array of {exact}, not {array.ndim} dimensions of {array.dtype}"
            )
        return array.tobytes()

    return pack, functools.partial(np.frombuffer, dtype=exact)


def _pack_top(top: Top | None) -> bytes | None:
    if top is None:
        return None
    return msgspec.msgpack.encode([[(each.token_id, each.logprob) for each in row] for row in top])


def _unpack_top(cell: bytes | None) -> Top | None:
    if cell is None:
        return None
    return tuple(tuple(TopLogprob(*pair) for pair in row) for row in _TOP.decode(cell))


_TOP = msgspec.msgpack.Decoder(list[list[tuple[int, float]]])
_PACKINGS: dict[Holds, Packing] = {
    Holds.IDS: _array("<i4"),
    Holds.LOGPROBS: _array("<f4"),
    Holds.TOP: (_pack_top, _unpack_top),
}

FACTS = Codec(SESSION)
CALLS = Codec(CALL)
TURNS = Codec(TURN)
PARTS = Codec(PART)
BLOBS = Codec(BLOB)
BATCHES = Codec(BATCH)
SAID = Codec(WEIGHTS)
TEACHERS = Codec(TEACHER)
LESSONS = Codec(LESSON)


def rows(record: Record) -> Iterator[tuple[Table[Any], Row]]:
    """In the order in which they can be inserted: what a row refers to comes before it."""
    match record:
        case SessionFacts():
            yield SESSION, FACTS.row(record)
        case Blob():
            yield BLOB, BLOBS.row(record)
        case Batch():
            yield BATCH, BATCHES.row(record)
        case WeightsSaid():
            yield WEIGHTS, SAID.row(record)
        case Teacher():
            yield TEACHER, TEACHERS.row(record)
        case Lesson():
            yield LESSON, LESSONS.row(record)
        case _:
            yield from _call_rows(record.turns)


def _call_rows(turns: tuple[Turn, ...]) -> Iterator[tuple[Table[Any], Row]]:
    if not turns or any(turn.call is not turns[0].call for turn in turns):
        raise StoreError("the store: turns are committed together with the one call they share")
    call = turns[0].call
    yield CALL, CALLS.row(call)
    for turn in turns:
        yield TURN, TURNS.row(turn, call_id=call.id)
        for place, part in enumerate(turn.parts):
            yield PART, PARTS.row(part, turn_id=turn.id, place=place)
