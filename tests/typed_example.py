"""What a trainer writes against the public surface. Checked by `mypy --strict`, never run: it needs an engine."""

from __future__ import annotations

import asyncio

from stenograph import EngineError, Gateway, Group, Sample


async def rollout(gateway: Gateway, task: str) -> list[Sample]:
    session = gateway.session(group=task)
    client = session.openai()
    answer = await client.chat.completions.create(
        model="policy",
        messages=[{"role": "user", "content": "hello"}],
        extra_body={"return_token_ids": True},
    )
    session.reward(1.0 if answer.choices[0].message.content else 0.0)
    return list(session.samples())


def trained_tokens(sample: Sample) -> int:
    return sum(span.end - span.start for span in sample.spans if span.trained)


async def train(gateway: Gateway) -> int:
    trained = 0
    async for group in gateway.groups(max_staleness=2):
        trained += tokens_of(group)
        if not await group.ack():
            break
    return trained


def tokens_of(group: Group) -> int:
    return sum(trained_tokens(sample) for session in group.leased.sessions for sample in session.samples)


async def main() -> int:
    async with Gateway(engine="vllm=http://127.0.0.1:8000", tokenizer="Qwen/Qwen3-8B", model="policy") as gateway:
        try:
            samples = await rollout(gateway, "task-17")
        except EngineError as error:
            print(error.status, error.message)
            return 1
    return sum(trained_tokens(sample) for sample in samples)


if __name__ == "__main__":
    asyncio.run(main())
