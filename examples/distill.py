"""On-policy distillation: a small model learns to speak without instructions as a copy of itself speaks with them.

The student answers, its teacher scores what it said behind another first prompt, and the student is moved towards it.
Printed is the reverse KL, log p(student) - log p(teacher) per sampled token, of each step's fresh samples: what falls.

pip install '.[openai,torch]'
python examples/distill.py FOLDER [STEPS]      # FOLDER: a transformers model, such as SmolLM2-135M-Instruct
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from stenograph import Gateway, Sample
from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.engine.torch import TorchEngine

INSTRUCTIONS = "You are a pirate. You answer every question in one short sentence, and begin it with Arr."
QUESTIONS = (
    *("What is the sea?", "Who are you?", "What is bread made of?", "Where does the sun set?"),
    *("How do I make a friend?", "What is a dog?", "Why is the sky blue?", "What shall I eat?"),
)
CHOICES, LENGTH, TOP_K = 4, 16, 20
RATE = 5e-5


async def answered(gateway: Gateway, question: str) -> list[Sample]:
    session = gateway.session()
    await session.openai().chat.completions.create(
        model=gateway.model, messages=[{"role": "user", "content": question}], n=CHOICES, max_tokens=LENGTH
    )
    return await session.taught("pirate")


def reverse_kl(samples: list[Sample]) -> float:
    """As it was sampled: what the engine reported of the student, and what the teacher says of the same tokens."""
    apart = [
        float(sample.logprobs[place] - sample.teachers["pirate"].token_logprobs[place])
        for sample in samples
        if sample.teachers
        for place in sample.mask.nonzero()[0]
    ]
    return sum(apart) / len(apart)


def loss(model: Any, samples: list[Sample]) -> Any:
    """The reverse KL again, now as a function of the student's weights: over the tokens that the teacher finds
    likeliest, and all others in one. Row i is of the distribution that predicts token i, so it meets logits i - 1."""
    longest = max(len(sample.tokens) for sample in samples)
    ids = torch.zeros(len(samples), longest, dtype=torch.long)
    here: list[Any] = []
    there: list[Any] = []
    for row, sample in enumerate(samples):
        ids[row, : len(sample.tokens)] = torch.tensor(sample.tokens)
    logits = model(input_ids=ids).logits
    for row, sample in enumerate(samples):
        assert sample.teachers, sample.teacher_info
        trained = torch.tensor(sample.mask.nonzero()[0])
        teacher = sample.teachers["pirate"]
        odds = torch.log_softmax(logits[row, trained - 1], -1)
        here.append(with_rest(odds.gather(1, torch.tensor(teacher.token_ids)[trained].long())))
        there.append(with_rest(torch.tensor(teacher.logprobs)[trained]))
    student, wanted = torch.cat(here), torch.cat(there)
    return (student.exp() * (student - wanted)).sum(-1).mean()


def with_rest(logprobs: Any) -> Any:
    """One more column: of all that is in none of the others."""
    rest = (1 - logprobs.exp().sum(-1, keepdim=True)).clamp(min=1e-6).log()
    return torch.cat([logprobs, rest], -1)


async def main(folder: Path, steps: int) -> None:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    tokenizer = load_tokenizer(load_model_files(str(folder)))
    engine = TorchEngine(model, tokenizer, called="student", version="0")
    pirate = {"name": "pirate", "engine": f"torch={folder}", "system": INSTRUCTIONS, "top_k": TOP_K}
    async with Gateway(engine=engine, tokenizer=str(folder), teacher=[pirate]) as gateway:
        for step in range(steps + 1):
            answers = await asyncio.gather(*(answered(gateway, question) for question in QUESTIONS))
            samples = [sample for answer in answers for sample in answer]
            words = tokenizer.decode(samples[0].tokens[samples[0].mask == 1].tolist())
            print(f"step {step}: reverse KL {reverse_kl(samples):.3f}  {words!r}", flush=True)
            if step < steps:
                for part in range(0, len(samples), 8):
                    (loss(model, samples[part : part + 8]) * 8 / len(samples)).backward()
                optimizer.step()
                optimizer.zero_grad()
                await engine.replace(model.state_dict(), version=str(step + 1))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 8))
