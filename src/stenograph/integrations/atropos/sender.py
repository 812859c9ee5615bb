"""From the spool to the trajectory API: in order, for as long as it takes, and again what died with the API.

One loop. A pass of it is one process of the API: register, send what waits, look now and then how far the trainer is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import time

import msgspec

from stenograph.core import JSON, Value
from stenograph.integrations.atropos import scored
from stenograph.integrations.atropos.api import Api, Away, Received, Refusal, Registered, checked
from stenograph.integrations.atropos.spool import SENT, Entry, Life, Spool
from stenograph.integrations.atropos.taken import Taken

log = logging.getLogger("stenograph")
FIRST_SECONDS, LONGEST_SECONDS = 0.5, 30.0
"""Between two tries: twice as long each time, drawn from the upper half, so that many senders don't return as one."""
LOOK_SECONDS = 1.0
"""Between two looks at an API that is well. uvicorn drops a connection that is idle for 5 s."""
TRIES = 5
"""Of a group on which the API itself fails (500). Then it is the group, and others wait behind it."""
STOP_SECONDS = 5.0
"""For what is under way when the sending is stopped. The spool has what was not answered by then."""


class Terms(Value, kw_only=True):
    """What an environment registers with (`RegisterEnv`)."""

    desired_name: str
    group_size: int
    max_token_length: int
    weight: float
    min_batch_allocation: float | None

    def body(self, alias: str) -> dict[str, JSON]:
        """`alias` makes the name ours alone: by the number that the API puts behind it, one that has seen us before is
        told from one that has not."""
        fields: dict[str, JSON] = msgspec.to_builtins(self)
        return {**fields, "desired_name": f"{self.desired_name}-{alias}"}


class Sender:
    def __init__(self, url: str, spool: Spool, terms: Terms) -> None:
        self._url = checked(url)
        self._spool = spool
        self._terms = terms
        self._taken = Taken(spool.sent, mixed=any(map(self._may_be_buffered, spool.sent)))
        self._life = spool.life()
        self._news = asyncio.Event()
        self._stopped = asyncio.Event()
        self._told = ""
        self._tries = 0
        """In a row, that came to nothing."""
        self.moved = asyncio.Event()
        """Set, and replaced by another, when something came to the spool or left it."""

    def _may_be_buffered(self, number: int) -> bool:
        """Where it is smaller than was registered."""
        sizes = [len(group.tokens) for group in scored.groups(self._spool.read(number, SENT).data)]
        return any(size != self._terms.group_size for size in sizes)

    def wake(self) -> None:
        self._news.set()
        self.moved.set()
        self.moved = asyncio.Event()

    def stop(self) -> None:
        """`run` ends, as soon as it is not in the middle of something."""
        self._stopped.set()
        self._news.set()

    async def run(self) -> None:
        while not self._stopped.is_set():
            try:
                async with Api(self._url) as api:
                    env_id = await self._registered(api)
                    self._told = ""
                    await self._serve(api, env_id)
            except (Away, Refusal) as error:
                self._tell(str(error))
                await _within(_pause(self._tries), self._stopped)
                self._tries += 1

    # -- who we are ----------------------------------------------------------------------------------------

    async def _registered(self, api: Api) -> int:
        """Our number there. What an API that has never seen us should have had is sent again."""
        life = self._introduction()
        try:
            told = await api.register(life.body)
            if told.env_id is None:
                raise Away(f"{api.label}: {told.status}", unheard=True)
        except (Away, Refusal) as error:
            # Where it has no entry of us, the same name will do.
            self._life = life if isinstance(error, Refusal) or error.unheard else None
            raise
        env_id = await self._recognized(api, life, told, told.env_id)
        self._keep(msgspec.structs.replace(life, env_id=env_id, asked=False))
        return env_id

    def _introduction(self) -> Life:
        """On disk before it is said. A name that was said without an answer that we know of is not used again: the next
        answer to it would tell nothing."""
        life = self._life
        if life is None or life.asked or life.body != self._terms.body(life.alias):
            alias = secrets.token_hex(4)
            life = Life(alias=alias, body=self._terms.body(alias))
        stored = msgspec.structs.replace(life, asked=True)
        if self._spool.life() != stored:
            self._spool.set_life(stored)
        return life

    async def _recognized(self, api: Api, life: Life, told: Registered, env_id: int) -> int:
        if told.wandb_name == f"{life.body['desired_name']}_0" or told.wandb_name is None:
            lost = self._spool.take_back()
            self._taken.forget()
            log.info("%s takes groups from us as number %d; %d are sent once more", api.label, env_id, lost)
            self.wake()
            return env_id
        if life.env_id is None:
            return env_id
        # It has us already, with our groups of other sizes that wait for each other under that number.
        await api.disconnect(env_id)
        return life.env_id

    def _keep(self, life: Life) -> None:
        self._spool.set_life(life)
        self._life = life

    # -- what waits ----------------------------------------------------------------------------------------

    async def _serve(self, api: Api, env_id: int) -> None:
        longest = (await api.info()).max_token_len
        steps = 0
        while not self._stopped.is_set():
            if self._spool.waiting:
                await self._send(api, env_id, self._spool.waiting[0], longest)
                self.wake()
            status = await api.status()
            if status.current_step < steps:
                raise Away(f"{api.label} has begun anew")
            steps, self._tries = status.current_step, 0
            for number in self._taken.look(status.queue_size, steps):
                self._spool.forget(number)
            self._news.clear()
            if not self._spool.waiting and not self._stopped.is_set():
                await _within(LOOK_SECONDS, self._news)
        await self._leave(api, env_id)

    async def _leave(self, api: Api, env_id: int) -> None:
        """A share of each batch may be reserved for us. An API that does not listen now has lost us anyway."""
        with contextlib.suppress(Away, Refusal, TimeoutError):
            await api.disconnect(env_id)
            if self._life is not None:
                self._keep(msgspec.structs.replace(self._life, env_id=None))

    async def _send(self, api: Api, env_id: int, number: int, longest: int) -> None:
        entry = self._spool.read(number)
        unfit = _unfit(entry, self._terms.group_size, longest)
        if unfit is not None:
            return self._refuse(number, None, unfit)
        try:
            received = await self._tried(api, scored.sent_by(env_id, entry.data), several=scored.is_list(entry.data))
        except Refusal as refusal:
            return self._refuse(number, refusal.status, refusal.words)
        self._spool.accept(number)
        self._taken.accept(number, buffered=_in_buffer(received))
        return None

    async def _tried(self, api: Api, body: bytes, *, several: bool) -> Received:
        for tries in range(TRIES - 1):
            try:
                return await api.send(body, several=several)
            except Refusal as refusal:
                if refusal.status < 500:
                    raise
                self._tell(f"{api.label} fails on a group: {refusal}")
            await _within(_pause(tries), self._stopped)
        return await api.send(body, several=several)

    def _refuse(self, number: int, status: int | None, reason: str) -> None:
        path = self._spool.refuse(number, status, reason, time.time())
        log.error("a group is not sent, and kept as %s: %s", path, reason)

    def _tell(self, words: str) -> None:
        """Once: a trainer may take an hour to start."""
        if words != self._told:
            log.warning("groups wait on disk: %s", words)
        self._told = words


async def _within(seconds: float, event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


def _pause(tries: int) -> float:
    return min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(tries, 16)) * random.uniform(0.5, 1.0)


def _unfit(entry: Entry, group_size: int, longest: int) -> str | None:
    """What would never reach a trainer, or be dropped there."""
    try:
        groups = scored.groups(entry.data)
    except msgspec.DecodeError as error:
        return f"it is no scored group: {error}"
    for group in groups:
        if len(group.tokens) > group_size:
            return f"it has {len(group.tokens)} sequences, more than group_size = {group_size}: the API would keep it"
        length = max(map(len, group.tokens))
        if 0 < longest <= length and not entry.any_length:
            return f"a sequence has {length} tokens, and the trainer's max_token_len is {longest}"
    return None


def _in_buffer(received: Received) -> int | None:
    if received.buffered:
        return received.last_buffer_size
    return received.buffer_size if received.status == "buffered" else None
