"""Each format read back, by its layout alone: what tells that a sample went in and came out."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping

import msgspec
import pyarrow.parquet

from stenograph.core import JSON, Sample, Value
from stenograph.export.formats import jsonl


class Read(Value, frozen=True):
    """Of one branch: what every format has."""

    tokens: list[int]
    mask: list[int]
    logprobs: list[float]
    """Where the mask is 1."""
    reward: float | None


def of_sample(sample: Sample) -> Read:
    return _read(sample.tokens.tolist(), sample.mask.tolist(), sample.logprobs.tolist(), sample.reward)


def _read(tokens: list[int], mask: list[int], logprobs: list[float], reward: float | None) -> Read:
    assert len(tokens) == len(mask) == len(logprobs)
    trained = [logprob for logprob, one in zip(logprobs, mask, strict=True) if one]
    return Read(tokens, [int(one) for one in mask], trained, reward)


def rows(content: bytes) -> Iterator[JSON]:
    return map(msgspec.json.decode, content.splitlines())


def _halves(prompt: list[int], response: list[int], mask: list[int], logprobs: list[float], reward: JSON) -> Read:
    assert len(response) == len(mask) == len(logprobs)
    before = len(prompt)
    return _read(prompt + response, [0] * before + mask, [0.0] * before + logprobs, reward)


def _jsonl(content: bytes) -> Iterator[Read]:
    return map(of_sample, jsonl.decode(content.splitlines()))


def _parquet(content: bytes) -> Iterator[Read]:
    for row in pyarrow.parquet.read_table(io.BytesIO(content)).to_pylist():
        yield _read(row["tokens"], row["mask"], row["logprobs"], row["reward"])


def _openrlhf(content: bytes) -> Iterator[Read]:
    for row in rows(content):
        mask = [0] * len(row["observation_tokens"])
        for start, end in row["action_ranges"]:
            mask[start:end] = [1] * (end - start)
        yield _read(row["observation_tokens"], mask, row["rollout_log_probs"], row["reward"])


def _atropos(content: bytes) -> Iterator[Read]:
    for row in rows(content):
        for tokens, labels, logprobs, score in zip(
            row["tokens"], row["masks"], row["inference_logprobs"], row["scores"], strict=True
        ):
            assert all(label in (-100, token) for label, token in zip(labels, tokens, strict=True))
            assert all((label == -100) == (logprob == 1.0) for label, logprob in zip(labels, logprobs, strict=True))
            yield _read(tokens, [label != -100 for label in labels], logprobs, score)


def _verifiers(content: bytes) -> Iterator[Read]:
    for row in rows(content):
        nodes = row["nodes"]
        leaves = set(range(len(nodes))) - {node["parent"] for node in nodes}
        for leaf in sorted(leaves):
            path, at = list[JSON](), leaf
            while at is not None:
                path, at = [nodes[at], *path], nodes[at]["parent"]
            mask = [int(trained) for node in path for trained in node["mask"]]
            tokens = [token for node in path for token in node["token_ids"]]
            logprobs = [logprob for node in path for logprob in node["logprobs"]]
            reward = row["rewards"]["reward"]
            assert len(tokens) == len(mask)
            yield Read(tokens, mask, logprobs, reward and reward["score"])


def _prime_rl(content: bytes) -> Iterator[Read]:
    """It has the rollout's total for a reward: that is tried elsewhere."""
    examples, step = msgspec.msgpack.decode(content)
    assert step == 0
    for tokens, mask, logprobs, temperatures, _, ((loss, values, trained),), _ in examples:
        assert (loss, trained, len(values), len(temperatures)) == ("rl", mask, len(tokens), len(tokens))
        yield _read(tokens, mask, logprobs, None)


def _verl(content: bytes) -> Iterator[Read]:
    for row in rows(content):
        columns = (row["prompt_ids"], row["response_ids"], row["response_mask"], row["response_logprobs"])
        yield _halves(*columns, row["reward_score"])


def _trl(content: bytes) -> Iterator[Read]:
    for row in rows(content):
        names = ("prompt_ids", "completion_ids", "env_mask", "logprobs", "reward")
        for columns in zip(*(row[name] for name in names), strict=True):
            yield _halves(*columns)


def _tinker(content: bytes) -> Iterator[Read]:
    """The first token is input only; nothing of it is trained, unless there is no prompt at all."""
    for row in rows(content):
        (chunk,) = row["datum"]["model_input"]["chunks"]
        columns = row["datum"]["loss_fn_inputs"]
        assert {tuple(column["shape"]) for column in columns.values()} == {(len(chunk["tokens"]),)}
        tokens = chunk["tokens"][:1] + columns["target_tokens"]["data"]
        assert tokens[:-1] == chunk["tokens"]
        mask, logprobs = columns["mask"]["data"], columns["logprobs"]["data"]
        yield _read(tokens, [0, *mask], [0.0, *logprobs], None)


def _skyrl(content: bytes) -> Iterator[Read]:
    for row in rows(content):
        names = ("prompt_token_ids", "response_ids", "loss_masks", "rollout_logprobs", "rewards")
        for prompt, response, mask, logprobs, rewards in zip(*(row[name] for name in names), strict=True):
            assert len(rewards) == len(response)
            yield _halves(prompt, response, mask, logprobs, sum(rewards))


def _slime(content: bytes) -> Iterator[Read]:
    for row in rows(content):
        at = len(row["tokens"]) - row["response_length"]
        columns = (row["tokens"][:at], row["tokens"][at:], row["loss_mask"], row["rollout_log_probs"])
        yield _halves(*columns, row["reward"])


READERS: Mapping[str, Callable[[bytes], Iterator[Read]]] = {
    "jsonl": _jsonl,
    "parquet": _parquet,
    "openrlhf": _openrlhf,
    "atropos": _atropos,
    "verifiers": _verifiers,
    "prime-rl": _prime_rl,
    "verl": _verl,
    "trl": _trl,
    "tinker": _tinker,
    "skyrl": _skyrl,
    "slime": _slime,
}
TOTALS_ONLY = ("prime-rl", "tinker")
"""Formats whose rewards are in their advantages."""
