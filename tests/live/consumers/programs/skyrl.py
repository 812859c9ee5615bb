"""SkyRL's generator output, joined and checked by its own code, as its asynchronous trainer does with its workers'."""

from __future__ import annotations

import json
import sys
import typing

import typing_extensions

typing.TypedDict = typing_extensions.TypedDict  # pydantic wants this one on Python 3.11, and skyrl takes the other

from skyrl.train.generators.base import TrajectoryID  # noqa: E402
from skyrl.train.generators.utils import concatenate_generator_outputs  # noqa: E402

outputs = [json.loads(line) for line in sys.stdin]
for output in outputs:
    output["trajectory_ids"] = [TrajectoryID(**one) for one in output["trajectory_ids"]]
joined = concatenate_generator_outputs(outputs)
columns = ("prompt_token_ids", "response_ids", "loss_masks", "rollout_logprobs", "rewards")
told = []
for prompt, response, mask, logprobs, rewards in zip(*(joined[name] for name in columns), strict=True):
    told.append(
        {
            "tokens": prompt + response,
            "mask": [0] * len(prompt) + mask,
            "logprobs": [logprob for logprob, trained in zip(logprobs, mask, strict=True) if trained],
            "reward": sum(rewards),
        }
    )
print(json.dumps(told))
