from __future__ import annotations

import builtins
import io
from typing import Any

import msgspec
import pyarrow.parquet
import pytest
from hypothesis import given

from stenograph.core import JSON, Turn
from stenograph.errors import ConfigError
from stenograph.export.formats import parquet
from stenograph.export.sample import samples
from tests.export.trees import FACTS, call, trees, turn

RICH = msgspec.structs.replace(
    FACTS, reward=0.5, group="g", group_size=4, scores={"style": 0.25}, metadata={"deep": [1, {"x": None}]}
)


def plain(row: dict[str, JSON]) -> JSON:
    """A row as CONTRACT 5 has it."""
    spans = [
        span
        | {name: msgspec.json.decode(span[name]) for name in parquet.AS_JSON}
        | {"sidecars": dict(span["sidecars"])}
        for span in row["spans"]
    ]
    maps = {name: dict(row[name]) for name in ("rewards", "scores")}
    return row | maps | {"spans": spans, "metadata": msgspec.json.decode(row["metadata"])}


@given(trees())
def test_a_row_is_a_sample_with_nothing_lost(tree: list[Turn]) -> None:
    rewards = {one.id: (None, 0.5)[number % 2] for number, one in enumerate(tree)}
    found = samples(msgspec.structs.replace(RICH, rewards=rewards), tree)
    table = pyarrow.parquet.read_table(io.BytesIO(b"".join(parquet.encode(found))))
    assert [plain(row) for row in table.to_pylist()] == [sample.to_json() for sample in found]


def test_rows_are_written_before_all_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS", 2)
    left = iter(samples(FACTS, [turn(call(name)) for name in "abcde"]))
    pieces = parquet.encode(left)
    assert next(pieces)
    assert len(list(left)) == 3
    list(pieces)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=r"pip install 'stenograph\[parquet\]'"):
        next(parquet.encode(iter(())))
