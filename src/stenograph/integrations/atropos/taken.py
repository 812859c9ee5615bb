"""Which groups the trainer has, as far as the API's own figures tell.

The API takes a group into its queue, forms batches from the queue's front, as many as it can at once, and hands them
out one by one; it says how long the queue is and how many batches it ever formed, never which. What it holds dies with
it. So a group is let go when it has left the queue, and a batch has been formed since: that is done only when all the
earlier ones have been handed out.
"""

from __future__ import annotations

from collections.abc import Iterable


class Taken:
    def __init__(self, sent: Iterable[int] = (), *, mixed: bool = False) -> None:
        """`sent`: those of an earlier process of ours; `mixed`: the API may have buffered some."""
        self._sent = list(sent)
        """In the order in which they were accepted."""
        self._left_at: dict[int, int] = {}
        """Those that are out of the queue, and how many batches there were when that was first seen."""
        self._buffered = 0
        """Sequences in the API's buffer, when it last told."""
        self._mixed = mixed
        """Some were buffered: they entered the queue later, and others before them."""

    def accept(self, number: int, *, buffered: int | None) -> None:
        """`buffered`: how many sequences wait for others now; None: the group went straight to the queue."""
        self._sent.append(number)
        if buffered is not None:
            self._mixed, self._buffered = True, buffered

    def forget(self) -> None:
        """They died with the API."""
        self._sent.clear()
        self._left_at.clear()
        self._buffered, self._mixed = 0, False

    def look(self, queued: int, formed: int) -> list[int]:
        """`queued`: groups in the queue, ours or not; `formed`: batches so far. Those that the trainer has."""
        for number in self._out(queued):
            self._left_at.setdefault(number, formed)
        taken = [number for number, at in self._left_at.items() if at < formed]
        for number in taken:
            del self._left_at[number]
            self._sent.remove(number)
        if not self._sent:
            self._mixed = False
        return taken

    def _out(self, queued: int) -> list[int]:
        """Of equal sizes the first to come are the first to go, so what is in the queue is the latest of ours."""
        if self._mixed:
            return self._sent if queued == 0 and self._buffered == 0 else []
        return self._sent[: len(self._sent) - queued] if queued < len(self._sent) else []
