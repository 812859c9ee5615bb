"""TRL's own code between a `rollout_func` and its tensors. The trainer is a stand-in, with what it reads of itself."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from types import SimpleNamespace

import torch
from trl import GRPOTrainer

tokenizer = SimpleNamespace(batch_decode=lambda found, **_: ["" for _ in found], pad_token_id=0)
told = []
for line in sys.stdin:
    row = json.loads(line)
    trainer = SimpleNamespace(
        rollout_func=lambda prompts, trainer, row=row: dict(row),
        model=SimpleNamespace(training=True),
        accelerator=SimpleNamespace(device=torch.device("cpu"), gather=lambda tensor: tensor),
        state=SimpleNamespace(num_input_tokens_seen=0, global_step=0),
        use_vllm=False,
        tools=None,
        eos_token_ids=[101],
        processing_class=tokenizer,
        _tokenizer=tokenizer,
        _metrics={"train": defaultdict(list)},
    )
    asked = ["Go."] * len(row["prompt_ids"])
    prompts, completions, mask, _, logprobs, extra, *_ = GRPOTrainer._generate(trainer, asked)
    for prompt, completion, on, column, reward in zip(
        prompts, completions, mask, logprobs, extra["reward"], strict=True
    ):
        told.append(
            {
                "tokens": prompt + completion,
                "mask": [0] * len(prompt) + on,
                "logprobs": [logprob for logprob, trained in zip(column, on, strict=True) if trained],
                "reward": reward,
            }
        )
print(json.dumps(told))
