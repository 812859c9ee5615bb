"""Re-rendering every turn: a plain server that returns ids, and a trainer that makes samples of its calls.

Mirrors vLLM's chat completions with `return_token_ids` (the whole conversation is rendered and tokenized at each
call; arguments that are no JSON are 400), read by either of two trainers:
- `joined`, as prime-rl's interleaved rollouts until they were made best-effort: one sample; of each further prompt what
  is longer than the tokens so far is put behind them, and a difference within them is a warning.
- `split`, as its best-effort interleaving and verifiers' branches: a call whose prompt begins with the sample so far
  goes on with it, any other begins a sample of its own. It never says anything wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from bench.drift.model import Model, Spoken
from bench.drift.plain import Plain, answered, conversation, meant
from bench.drift.way import Refused, Sent, Trained
from stenograph.core import JSON, Value
from stenograph.errors import TemplateRefused


class Step(Value):
    """A choice, with the prompt that the server says it had."""

    prompt: tuple[int, ...]
    spoken: Spoken


Trainer: TypeAlias = Callable[[Sequence[Step]], list[Trained]]


class ReRender:
    def __init__(self, plain: Plain, model: Model, trainer: Trainer) -> None:
        self._plain = plain
        self._model = model
        self._trainer = trainer
        self._steps: list[Step] = []
        self._sent: list[Sent] = []

    async def ask(self, body: dict[str, JSON], *, again: bool) -> list[dict[str, JSON]]:
        asked = conversation(body)
        if any(isinstance(call.arguments, str) for message in asked.messages for call in message.tool_calls):
            raise Refused(400, "arguments are not JSON")
        try:
            text = self._plain.render(asked)
        except TemplateRefused as refused:
            raise Refused(400, refused.message) from refused
        prompt = self._plain.encode(text)
        made = await self._model.generate(prompt, body["seed"], body.get("n", 1))
        self._sent.append(Sent(prompt, (), meant(asked)))
        self._steps += [Step(made.prompt, spoken) for spoken in made.choices]
        replies = (self._plain.reply(spoken.ids, spoken.finish, asked, text) for spoken in made.choices)
        return [answered(reply) for reply in replies]

    def sent(self) -> list[Sent]:
        return self._sent

    def samples(self) -> list[Trained]:
        return self._trainer(self._steps)


def joined(steps: Sequence[Step]) -> list[Trained]:
    tokens: list[int] = []
    mask: list[bool] = []
    logprobs: list[float] = []
    seen = 0
    for step in steps:
        _add(tokens, mask, logprobs, step.prompt[seen:], step.spoken)
        seen = len(step.prompt) + len(step.spoken.ids)
    return [Trained(tokens, mask, logprobs)] if tokens else []


def split(steps: Sequence[Step]) -> list[Trained]:
    samples: list[Trained] = []
    for step in steps:
        tokens, mask, logprobs = [], [], []
        if samples and list(step.prompt[: len(samples[-1].tokens)]) == samples[-1].tokens:
            last = samples.pop()
            tokens, mask, logprobs = [*last.tokens], [*last.mask], [*last.logprobs]
        _add(tokens, mask, logprobs, step.prompt[len(tokens) :], step.spoken)
        samples.append(Trained(tokens, mask, logprobs))
    return samples


def _add(tokens: list[int], mask: list[bool], logprobs: list[float], context: Sequence[int], spoken: Spoken) -> None:
    tokens += [*context, *spoken.ids]
    mask += [False] * len(context) + [True] * len(spoken.ids)
    logprobs += [0.0] * len(context) + [*spoken.logprobs]
