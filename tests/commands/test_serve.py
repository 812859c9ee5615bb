"""`stenograph serve`: what its port is like."""

from __future__ import annotations

import socket

from stenograph.server.listening import bound


def test_answers_are_sent_without_delay() -> None:
    """An answer is two packets. Delayed, the second waits for the first one's acknowledgement: 40 ms a turn."""
    with bound("127.0.0.1", 0) as listening:
        listening.listen()
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
