from __future__ import annotations

from stenograph.wire import sse


def test_frames() -> None:
    assert sse.data(b'{"a":1}') == b'data: {"a":1}\n\n'
    assert sse.named("message_stop", b"{}") == b"event: message_stop\ndata: {}\n\n"
    assert sse.data(b"[DONE]") == sse.DONE
    assert sse.KEEP_ALIVE.startswith(b":")
    assert sse.KEEP_ALIVE.endswith(b"\n\n")
