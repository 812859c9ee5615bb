"""One rollout against a running gateway, with any agent in any process.

stenograph serve --engine local=smollm2          # in another terminal
python examples/over_http.py http://127.0.0.1:9000
"""

import json
import sys
import urllib.request
from typing import Any

import openai

GATEWAY = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:9000"


def call(method: str, path: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(GATEWAY + path, data, {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def main() -> None:
    session = call("POST", "/sessions", {"group": "greetings"})
    client = openai.OpenAI(base_url=session["base_url"], api_key=session["api_key"])

    stream = client.chat.completions.create(
        model="policy", messages=[{"role": "user", "content": "Say hello."}], max_tokens=30, stream=True
    )
    for chunk in stream:
        print(chunk.choices[0].delta.content or "", end="", flush=True)

    call("POST", f"/sessions/{session['id']}/reward", {"reward": 1.0})
    call("POST", f"/sessions/{session['id']}/finish", {"status": "completed"})
    [sample] = call("GET", f"/sessions/{session['id']}/samples")["samples"]
    print(f"\n{len(sample['tokens'])} tokens, {sum(sample['mask'])} to train on, reward {sample['reward']}")


if __name__ == "__main__":
    main()
