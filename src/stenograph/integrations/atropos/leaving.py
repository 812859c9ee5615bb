"""How a managed server's session ends: with a reset, or when nobody holds the server any more."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable

from stenograph.errors import NotFound
from stenograph.gateway import Session

LEAVING: set[asyncio.Task[None]] = set()
"""Deletions under way: a loop holds its tasks but weakly."""


def on_leaving(owner: object, session: Session, *, kept: bool) -> Callable[[], object]:
    """To be called at a reset. `kept`: the gateway is the caller's own, whose record stays."""
    if kept:
        return lambda: _complete(session)
    forget = weakref.finalize(owner, _forget, asyncio.get_running_loop(), session)
    forget.atexit = False
    return forget


def _complete(session: Session) -> None:
    with contextlib.suppress(RuntimeError):  # no loop runs any more, and so no gateway
        session.finish()


def _forget(loop: asyncio.AbstractEventLoop, session: Session) -> None:
    """From wherever the owner was collected: another thread, or behind the end of the loop."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(_begin, loop, session)


def _begin(loop: asyncio.AbstractEventLoop, session: Session) -> None:
    task = loop.create_task(_delete(session))
    LEAVING.add(task)
    task.add_done_callback(LEAVING.discard)


async def _delete(session: Session) -> None:
    with contextlib.suppress(NotFound):  # somebody deleted it by its id
        await session.delete()
