"""A gateway whose complete groups go to the trajectory API: rollouts until it is killed, or as many as told.

python -m tests.integrations.atropos.forwarding URL FOLDER NAME [GROUPS]
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from stenograph import Gateway, State
from stenograph.core import JSON
from stenograph.export.formats.atropos import row
from stenograph.export.sample import samples
from stenograph.integrations.atropos import sender, trajectories
from stenograph.integrations.atropos.trajectories import Trajectories
from stenograph.store.sqlite import SqliteReader

SIZE = 2


async def rollouts(gateway: Gateway, group: str) -> None:
    for member in range(SIZE):
        session = gateway.session(f"{group}.{member}", group=group, group_size=SIZE)
        client = session.openai()
        for turn in range(2):
            said = {"role": "user", "content": f"{group} {member} {turn}"}
            await client.chat.completions.create(model="m", messages=[said], max_tokens=8)  # type: ignore[list-item]
        await session.reward(float(member))
        await session.finish(State.COMPLETED)


async def main(url: str, folder: Path, name: str, groups: int) -> None:
    """It is told of each group that has been rolled out; of some, by then, the API has been told too."""
    sender.FIRST_SECONDS = sender.LOOK_SECONDS = 0.02
    trajectories.LEASE_SECONDS = 0.5
    async with (
        Gateway(engine="scripted=", store=str(folder / "store")) as gateway,
        Trajectories(
            url, spool=folder / "spool", group_size=SIZE, max_token_length=4096, gateway=gateway, branches="main"
        ) as sending,
    ):
        for number in range(groups):
            await rollouts(gateway, f"{name}.{number}")
            print(f"{name}.{number}", flush=True)
        await sending.drained()


def recorded(where: Path) -> dict[str, dict[str, JSON]]:
    """What should have arrived, from the record alone: each complete group, by its name."""
    with SqliteReader(where) as store:
        sessions = [[store.load(id) for id in batch.sessions] for batch in store.batches()]
    found = []
    for group in sessions:
        told = [
            one
            for kept in group
            if kept is not None
            for one in samples(kept.facts, [turn for call in kept.calls for turn in call.turns], "once")
        ]
        found.append(row([sample for sample in told if sample.main]))
    return {key(group): group for group in found}


def key(group: dict[str, JSON]) -> str:
    name: str = group["overrides"][0]["stenograph"]["group"]
    return name


if __name__ == "__main__":
    url, folder, name, *most = sys.argv[1:]
    asyncio.run(main(url, Path(folder), name, int(most[0]) if most else sys.maxsize))
