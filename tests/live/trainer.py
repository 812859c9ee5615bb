"""A trainer in a process of its own: `python -m tests.live.trainer URL ACKS`. It says on stdout what it was given.

After so many acknowledgements it leases two more and does nothing, as one does that is about to be killed.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
import urllib.request
from typing import Any

LEASE_SECONDS = 2.0
PAUSE = 0.05


def call(url: str, path: str, body: object) -> Any:
    """A gateway that is away comes back, and both calls may be repeated."""
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except (OSError, http.client.HTTPException):
            time.sleep(PAUSE)


def leased(url: str, most: int) -> list[Any]:
    while True:
        found: list[Any] = call(url, "/batches/lease", {"batches": most, "seconds": LEASE_SECONDS})["batches"]
        if found:
            return found
        time.sleep(PAUSE)


def train(url: str, batch: Any) -> bool:
    time.sleep(PAUSE)
    answer = call(url, "/batches/ack", {"leases": [batch["lease"]]})
    in_time = bool(answer["acknowledged"])
    print("acknowledged" if in_time else "lost", batch["group"], flush=True)
    return in_time


def main() -> None:
    url, acks = sys.argv[1], int(sys.argv[2])
    done = 0
    while done < acks:
        done += train(url, leased(url, 1)[0])
    held = leased(url, 1) + leased(url, 1)
    print("holding", *(batch["group"] for batch in held), flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main()
