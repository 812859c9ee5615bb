"""CONTRACT 5 as columns of an Apache Parquet file: for anything that reads tables.

Lists are lists, `rewards`, `scores`, `sidecars`, `teachers` and `teacher_info` are maps, and what has no fixed shape is
JSON text: a span's `sampling` and `stop_reason`, and `metadata`. Teachers have columns where one was asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from stenograph.errors import ConfigError
from stenograph.export.formats.columns import teachings

if TYPE_CHECKING:
    from stenograph.core import JSON, Sample, Span

ROWS = 256
"""Samples a row group: what is in memory at a time."""
AS_JSON = ("sampling", "stop_reason")


def encode(samples: Iterable[Sample]) -> Iterator[bytes]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigError("--format parquet needs pyarrow: pip install 'stenograph[parquet]'") from error
    first, left = _peeked(samples)
    schema, sink = _schema(pyarrow, taught=first is not None and bool(first.teacher_info)), _Sink()
    with pyarrow.parquet.ParquetWriter(sink, schema) as writer:
        while rows := [row(sample) for sample in itertools.islice(left, ROWS)]:
            writer.write_table(pyarrow.Table.from_pylist(rows, schema))
            yield sink.drained()
    yield sink.drained()


def _peeked(samples: Iterable[Sample]) -> tuple[Sample | None, Iterator[Sample]]:
    left = iter(samples)
    first = next(left, None)
    return first, left if first is None else itertools.chain([first], left)


def row(sample: Sample) -> dict[str, JSON]:
    plain: dict[str, JSON] = {name: getattr(sample, name) for name in sample.__struct_fields__}
    plain |= {
        "teachers": [*teachings(sample, 0).items()],
        "teacher_info": [*msgspec.to_builtins(sample.teacher_info or {}).items()],
        "rewards": list(sample.rewards.items()),
        "scores": list(sample.scores.items()),
        "spans": [_span(span) for span in sample.spans],
        "notes": msgspec.to_builtins(sample.notes),
        "fork": msgspec.to_builtins(sample.fork),
        "metadata": _json(sample.metadata),
    }
    return plain


def _span(span: Span) -> dict[str, JSON]:
    plain: dict[str, JSON] = msgspec.to_builtins(span)
    return plain | {name: _json(plain[name]) for name in AS_JSON} | {"sidecars": list(span.sidecars.items())}


def _json(value: JSON) -> str:
    return msgspec.json.encode(value).decode()


class _Sink:
    """A file that is handed on as it is written. The writer asks it for nothing but these."""

    closed = False

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def write(self, chunk: Any) -> int:
        self._chunks.append(bytes(chunk))
        return len(self._chunks[-1])

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def drained(self) -> bytes:
        chunks, self._chunks = self._chunks, []
        return b"".join(chunks)


def _schema(arrow: Any, *, taught: bool) -> Any:
    """With columns for teachers where any was asked for."""
    text, number, flag = arrow.string(), arrow.int64(), arrow.bool_()
    span = {
        **dict.fromkeys(("start", "end"), number),
        "turn_id": text,
        **dict.fromkeys(("choice", "part"), number),
        "trained": flag,
        "weight_version": text,
        "step": number,
        **dict.fromkeys(("version_source", "model", "engine", "engine_kind", "logprob_kind", "sampling"), text),
        "constrained": flag,
        **dict.fromkeys(("finish_reason", "stop_reason"), text),
        "sidecars": arrow.map_(text, text),
    }
    note = {"kind": text, "detail": text}
    fork = {"reason": text, "at": number, "detail": text}
    return arrow.schema(
        {
            "schema": number,
            **dict.fromkeys(("id", "session_id", "group"), text),
            "group_size": number,
            "role": text,
            **dict.fromkeys(("branch", "branches"), number),
            "main": flag,
            "leaf_turn_id": text,
            "tokens": arrow.list_(arrow.int32()),
            **dict.fromkeys(("sampled", "mask"), arrow.list_(arrow.uint8())),
            "logprobs": arrow.list_(arrow.float32()),
            "spans": arrow.list_(arrow.struct(span)),
            "reward": arrow.float64(),
            **dict.fromkeys(("rewards", "scores"), arrow.map_(text, arrow.float64())),
            "reward_revision": number,
            **dict.fromkeys(("status", "truncated"), text),
            "versions": arrow.list_(text),
            "notes": arrow.list_(arrow.struct(note)),
            "fork": arrow.struct(fork),
            "metadata": text,
            **(_of_teachers(arrow) if taught else {}),
        }
    )


def _of_teachers(arrow: Any) -> dict[str, Any]:
    ids, logprobs = arrow.list_(arrow.int32()), arrow.list_(arrow.float32())
    teaching = {
        "top_k": arrow.int64(),
        "token_ids": arrow.list_(ids),
        "logprobs": arrow.list_(logprobs),
        "token_logprobs": logprobs,
    }
    info = {"model": arrow.string(), "weight": arrow.float64(), "error": arrow.string()}
    return {
        "teachers": arrow.map_(arrow.string(), arrow.struct(teaching)),
        "teacher_info": arrow.map_(arrow.string(), arrow.struct(info)),
    }
