"""verl's agent loop output, as the tensors that it is trained as."""

from __future__ import annotations

import json
import sys

from verl.experimental.agent_loop.agent_loop import AgentLoopOutput

told = []
for line in sys.stdin:
    row = AgentLoopOutput(**json.loads(line)).as_dict()
    told.append(
        {
            "tokens": [*row["prompts"].tolist(), *row["responses"].tolist()],
            "mask": [0] * len(row["prompts"]) + row["response_mask"].tolist(),
            "logprobs": row["rollout_log_probs"][row["response_mask"].bool()].tolist(),
            "reward": row["rm_scores"].sum().item(),
            "turn_rewards": row["extra_fields"]["turn_scores"],
        }
    )
print(json.dumps(told))
