"""What Atropos' trajectory API takes from a body, and what its trainers are given."""

from __future__ import annotations

import json
import sys

from atroposlib.api.server import ScoredData

told = []
for line in sys.stdin:
    group = ScoredData(**json.loads(line))
    for tokens, labels, logprobs, score in zip(
        group.tokens, group.masks, group.inference_logprobs, group.scores, strict=True
    ):
        assert all(label in (-100, token) for label, token in zip(labels, tokens, strict=True))
        mask = [int(label != -100) for label in labels]
        trained = [logprob for logprob, one in zip(logprobs, mask, strict=True) if one]
        told.append({"tokens": tokens, "mask": mask, "logprobs": trained, "reward": score})
print(json.dumps(told))
