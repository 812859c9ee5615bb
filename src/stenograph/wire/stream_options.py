"""What a caller may say about its stream: the same in Chat, Completions and `/inference/v1/generate`."""

from __future__ import annotations

from collections.abc import Iterator

from stenograph.core import Note, Value
from stenograph.wire import body, extras


class StreamOptions(Value):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None
    """vLLM's: usage in every chunk. Left out with a note."""


def check(options: StreamOptions | None, stream: bool | None) -> None:
    if options is not None and not stream:
        raise body.refuse("stream_options", "it needs stream to be true")


def notes(options: StreamOptions | None) -> Iterator[Note]:
    if options is not None and options.continuous_usage_stats:
        yield extras.ignored("stream_options.continuous_usage_stats")


def wants_usage(options: StreamOptions | None) -> bool:
    return bool(options is not None and options.include_usage)
