"""Traces, read with verifiers' own class, as its trainers do: a sample a branch."""

from __future__ import annotations

import json
import sys

from verifiers.v1.trace import WireTrace

told = []
for line in sys.stdin:
    trace = WireTrace.model_validate(json.loads(line))
    for branch in trace.branches:
        columns = zip(branch.token_ids, branch.sampled_mask, branch.logprobs, strict=True)
        tokens, mask, logprobs = zip(*columns, strict=True)
        trained = [logprob for logprob, one in zip(logprobs, mask, strict=True) if one]
        told.append({"tokens": tokens, "mask": list(map(int, mask)), "logprobs": trained, "reward": trace.reward})
print(json.dumps(told))
