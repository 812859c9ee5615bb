"""`get_logprobs`: three arrays of one length, and rows of one length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stenograph import CallerError, EvidenceError
from stenograph.core import Ids
from stenograph.engine.given import GivenEngine
from stenograph.engine.scoring import FIRST, Scored
from stenograph.integrations.atropos import ManagedServer
from stenograph.integrations.atropos.scores import IDS, LOGPROBS, rectangular
from tests.integrations.atropos.servers import ASKED, Server, fast


class Scorer(Server):
    """A server that scores what it is given."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.asked: list[dict[str, Any]] = []

    async def get_logprobs(self, **fields: Any) -> dict[str, Any]:
        self.asked.append(fields)
        tokens = fields.get("input_ids") or self.known.encode(fields["prompt"])
        rows = [[], *([[id, 1] for id in tokens[1:]])]
        return {"prompt_tokens": tokens, IDS: rows, LOGPROBS: [[], *([[-0.1, -2.0]] * (len(tokens) - 1))]}


async def test_of_messages_the_ids_are_those_on_record() -> None:
    server = Scorer("Hello there")
    managed = ManagedServer(server)
    answer = await managed.chat_completion(messages=[ASKED])
    told = await managed.get_logprobs(messages=[ASKED, answer.choices[0].message, ASKED], top_k=2)
    assert told["prompt_tokens"][: len(server.path(0))] == server.path(0)
    assert told[IDS][0] == [-1, -1]
    assert told[LOGPROBS][0] == [0.0, 0.0]
    assert {len(row) for row in (*told[IDS], *told[LOGPROBS])} == {2}
    assert len(managed.current_nodes) == 1


async def test_a_prompt_and_ids_go_as_they_are() -> None:
    server = Scorer()
    managed = ManagedServer(server)
    await managed.get_logprobs(prompt="Hello", n=1)
    await managed.get_logprobs(input_ids=[5, 6, 7], top_k=2)
    assert server.asked == [{"prompt": "Hello", "n": 1}, {"input_ids": [5, 6, 7], "top_k": 2}]


async def test_a_server_that_cannot_says_so() -> None:
    with pytest.raises(NotImplementedError, match="Server does not implement get_logprobs"):
        await ManagedServer(Server()).get_logprobs(prompt="Hello")


@pytest.mark.parametrize(
    ("rows", "logprobs", "complaint"),
    [
        ([[1], [2]], [[-0.1]], "1 rows for 2 tokens"),
        ([[1, 2], [2]], [[-0.1, -0.2], [-0.3]], r"\[1\]: 1 alternatives, elsewhere 2"),
        ([[1], None], [[-0.1], None], r"\[1\]: 0 alternatives, elsewhere 1"),
        (None, [[-0.1]], "answered without"),
    ],
)
def test_rows_that_do_not_line_up_are_refused(
    rows: Sequence[Any] | None, logprobs: Sequence[Any], complaint: str
) -> None:
    with pytest.raises(EvidenceError, match=complaint):
        rectangular({"prompt_tokens": [1, 2], IDS: rows, LOGPROBS: logprobs})


class Engine(GivenEngine):
    def __init__(self) -> None:
        super().__init__(None, model="policy", max_model_len=64, logprob_kind="raw")  # type: ignore[arg-type]

    async def score(self, ids: Ids, top_k: int, start: int = FIRST) -> Scored:
        scored = len(ids) - start
        best = np.arange(top_k, dtype=np.int32)
        rows = np.broadcast_to(best, (scored, top_k))
        return Scored(start, np.full(scored, -0.5, np.float32), rows, -rows.astype(np.float32))


async def test_an_engine_of_ours_scores_too() -> None:
    managed = ManagedServer(Engine(), tokenizer=fast())
    told = await managed.get_logprobs(input_ids=[5, 6, 7], top_k=2)
    assert told == {
        "prompt_tokens": [5, 6, 7],
        IDS: [[-1, -1], [0, 1], [0, 1]],
        LOGPROBS: [[0.0, 0.0], [-0.0, -1.0], [-0.0, -1.0]],
    }
    assert np.array(told[LOGPROBS]).shape == (3, 2)
    with pytest.raises(CallerError, match="are needed"):
        await managed.get_logprobs(prompt="")
