"""What is told beside tokens is evidence too: counted, and refused where it cannot be true."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import numpy as np
import pytest

from stenograph.core import Delta, Finish, Request
from stenograph.engine.beside import experts_in_npy, experts_in_raw, support_of, told_from
from stenograph.engine.scripted_beside import in_npy, routing, support
from stenograph.engine.sglang_wire import Offers, Reader, body_of
from stenograph.errors import EvidenceError
from tests.engine.streams import delta, proven, request, stream

SAID = [5, 6, 7]


def asked(path: int = 0) -> Request:
    return msgspec.structs.replace(request([1, 2, 3, 4]), path=path)


def told(**beside: Any) -> Delta:
    return msgspec.structs.replace(delta(0, SAID, [-0.5] * 3, Finish("stop")), **beside)


def rows(*ids: list[int]) -> tuple[Any, ...]:
    return tuple(np.array(row, np.int32) for row in ids)


@pytest.mark.parametrize("path", [0, 1, 3])
async def test_what_can_be_true_passes(path: int) -> None:
    computed = [1, 2, 3, 4, *SAID][max(path - 1, 0) : -1]
    one = told(support=rows(*map(support, SAID)), experts=routing(computed))
    assert await proven(stream([one]), asked(path)) == [one]


@pytest.mark.parametrize(
    ("beside", "words"),
    [
        ({"support": rows([5], [6], [8, 9])}, "mask of token 7 does not hold it"),
        ({"support": rows([5], [], [7])}, "mask of token 6 does not hold it"),
        ({"support": rows([5, 1024], [6], [7])}, "holds what is none"),
        ({"experts": routing([1, 2, 3, 4, 5])}, "routed experts of 6 tokens"),
        ({"experts": routing([1, 2, 3, 4, *SAID])}, "routed experts of 6 tokens"),
        ({"experts": routing([1, 2, 3, 4, 5, 6]).astype(np.float32)}, "float32"),
    ],
)
async def test_what_cannot_be_true_is_refused(beside: dict[str, Any], words: str) -> None:
    with pytest.raises(EvidenceError, match=words):
        await proven(stream([told(**beside)]), asked())


def test_a_mask_of_other_length_makes_no_delta() -> None:
    with pytest.raises(ValueError, match="3 ids"):
        told(support=rows([5], [6]))


@pytest.mark.parametrize("mask", [[1, 2], [["5"]], [[-1]], [[1.0]], "5", [None]])
def test_a_mask_is_rows_of_ids(mask: Any) -> None:
    with pytest.raises(EvidenceError, match="sampling mask"):
        support_of("choice 0", mask)


def test_experts_are_an_array() -> None:
    there = routing([1, 2, 3])
    found = experts_in_npy("choice 0", in_npy(there))
    assert found is not None
    assert np.array_equal(found, there)
    for text in ("", "####", base64.b64encode(b"\x93NUMPY").decode(), in_npy(there)[:40]):
        with pytest.raises(EvidenceError, match="routed experts"):
            experts_in_npy("choice 0", text)


def test_sglang_says_them_flat() -> None:
    flat = base64.b64encode(np.arange(12, dtype="<i4").tobytes()).decode()
    found = experts_in_raw("choice 0", flat, 3)
    assert found is not None
    assert found.tolist() == np.arange(12).reshape(3, 4).tolist()
    with pytest.raises(EvidenceError, match="not 5 rows"):
        experts_in_raw("choice 0", flat, 5)


def test_what_is_on_record_is_not_asked_for_again() -> None:
    """But for the path's last token, which had not been computed when it was sampled."""
    assert [told_from(asked(path)) for path in (0, 1, 3)] == [0, 0, 2]


@pytest.mark.parametrize(("top_k", "masked"), [(0, False), (1, True), (64, True), (65, False)])
def test_sglang_is_asked_for_masks_that_it_has(top_k: int, masked: bool) -> None:
    body = msgspec.json.decode(body_of(request(top_k=top_k), 0, "r", 1, Offers(64)))
    assert ("return_sampling_mask" in body) is masked
    assert "return_routed_experts" not in body


@pytest.mark.parametrize("incremental", [False, True])
def test_sglangs_masks_come_as_its_tokens_do(incremental: bool) -> None:
    wanted = msgspec.structs.replace(request([1, 2], top_k=3), path=2)
    assert msgspec.json.decode(body_of(wanted, 0, "r", 1, Offers(64, True)))["routed_experts_start_len"] == 1
    reader = Reader("sglang-0", wanted, 0)
    heard: list[Delta] = []
    for count in (2, 3):
        start = 2 if incremental and count == 3 else 0
        fresh = SAID[start:count]
        meta: dict[str, Any] = {
            "prompt_tokens": 2,
            "completion_tokens": count,
            "output_token_logprobs": [[-0.5, id, None] for id in fresh],
            "output_token_sampling_mask": [support(id) for id in fresh],
        }
        if count == 3:
            meta["finish_reason"] = {"type": "length"}
            meta["routed_experts"] = base64.b64encode(np.arange(6, dtype="<i4").tobytes()).decode()
        heard += reader.read(msgspec.json.encode({"output_ids": fresh, "meta_info": meta}))
    assert [[row.tolist() for row in one.support or ()] for one in heard] == [
        [support(5), support(6)],
        [support(7)],
    ]
    assert heard[-1].experts is not None
    assert heard[-1].experts.tolist() == [[0, 1], [2, 3], [4, 5]]
