"""Reads traces, a line each on stdin, with verifiers' own class, as its trainers do, and prints what they train."""

from __future__ import annotations

import json
import sys

from verifiers.v1.trace import WireTrace

for line in sys.stdin:
    trace = WireTrace.model_validate(json.loads(line))
    columns = ("token_ids", "sampled_mask", "logprobs")
    branches = [{name: getattr(branch, name) for name in columns} for branch in trace.branches]
    print(json.dumps({"id": trace.id, "reward": trace.reward, "ok": not trace.has_error, "branches": branches}))
