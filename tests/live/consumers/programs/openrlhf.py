"""OpenRLHF's own way from what an executor returns to what its loss is computed on."""

from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace


def stand_in(name: str, **names: object) -> None:
    """For a module that the one under test imports, and does not use on this way."""
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__dict__.update(names)


stand_in("vllm", SamplingParams=SimpleNamespace)
stand_in("vllm.inputs", TokensPrompt=dict)
stand_in("vllm.utils", random_uuid=str)

from openrlhf.trainer.ppo_utils.experience import Experience  # noqa: E402
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator  # noqa: E402

made = [SamplesGenerator._process_response_into_experience(None, json.loads(line), max_len=64) for line in sys.stdin]
told = []
for one in made:
    mask = [0, *one.action_mask[0].tolist()]
    logprobs = [0.0, *one.rollout_log_probs[0].tolist()]
    told.append(
        {
            "tokens": one.sequences[0].tolist(),
            "mask": mask,
            "logprobs": [logprob for logprob, trained in zip(logprobs, mask, strict=True) if trained],
            "reward": one.rewards.item(),
        }
    )
joined = Experience.concat_experiences(made, 0)
assert joined.rewards.tolist() == [one["reward"] for one in told]
assert joined.action_mask.sum(1).tolist() == [sum(one["mask"]) for one in told]
print(json.dumps(told))
