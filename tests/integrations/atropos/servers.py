"""An Atropos server, as its environments hold one: it says its lines in tokens that no tokenizer would give, ends each
with the stop token, and keeps what it was sent."""

from __future__ import annotations

import functools
import random
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tokenizers

from stenograph.assets import smollm2
from stenograph.assets.folder import read_folder
from stenograph.assets.load import load_tokenizer
from stenograph.assets.model import ModelFiles
from stenograph.engine.spelling import Spelling
from stenograph.integrations.atropos import ManagedServer, SequenceNode
from stenograph.render.tokenizer import Tokenizer
from tests.conftest import NO_TOKENIZERS, TOKENIZERS

SMOLLM2 = smollm2.read()
ASKED = {"role": "user", "content": "How many?"}


@functools.cache
def shared(name: str) -> ModelFiles:
    folder: Path = TOKENIZERS / name
    return read_folder(folder, name) if folder.is_dir() else pytest.skip(NO_TOKENIZERS)


def fast(files: ModelFiles = SMOLLM2) -> Any:
    """As much of transformers' fast tokenizers as is read; tests/live has the real one."""
    return SimpleNamespace(
        backend_tokenizer=tokenizers.Tokenizer.from_str(files.tokenizer_json),
        chat_template=files.chat_template,
        special_tokens_map=dict(files.special_tokens),
        name_or_path=files.name,
        model_max_length=4096,
    )


@functools.cache
def _loaded(name: str) -> Tokenizer:
    return load_tokenizer(SMOLLM2 if name == SMOLLM2.name else shared(name))


class Server:
    def __init__(self, *lines: str | tuple[str, ...], files: ModelFiles = SMOLLM2, close: str = "<|im_end|>") -> None:
        """`lines`: what it says, call by call; a tuple: to a call with as many choices."""
        self.tokenizer = fast(files)
        self.config = SimpleNamespace(model_name="policy", timeout=60)
        self.known = _loaded(files.name)
        self._lines = deque(lines)
        self._spelling = Spelling(self.known, 1.0)
        self._close = self.known.added[close]
        self._dice = random.Random(7)
        self.reasons: Any = "stop"
        """How each choice ends."""
        self.without = 0
        """So many logprobs of each choice are left out."""
        self.lie: Callable[[Any], Any] | None = None
        """What it answers in place of the truth."""
        self.calls: list[dict[str, Any]] = []
        self.said: list[list[list[int]]] = []
        self.told: list[list[list[float]]] = []

    async def tokens_and_logprobs_completion(self, **fields: Any) -> tuple[Any, Any, Any, Any]:
        self.calls.append(fields)
        line = self._lines.popleft()
        said = [self._sampled(one) for one in ((line,) if isinstance(line, str) else line)]
        told = [[-self._dice.random() for _ in ids[self.without :]] for ids in said]
        self.said.append(said)
        self.told.append(told)
        truth = fields["input_ids"], said, told, [self.reasons] * len(said)
        return self.lie(truth) if self.lie else truth

    def _sampled(self, line: str) -> list[int]:
        ids = list(self._spelling.spell(line, self._dice))
        assert ids != self.known.encode(line), f"{line!r} is spelt as the tokenizer would"
        return ids if self.reasons == "length" else [*ids, self._close]

    def sent(self, call: int) -> list[int]:
        ids: list[int] = self.calls[call]["input_ids"]
        return ids

    def path(self, call: int, choice: int = 0) -> list[int]:
        """What it was sent, and said."""
        return [*self.sent(call), *self.said[call][choice]]

    def text(self, call: int) -> str:
        return self.known.decode(self.sent(call))


def trained(node: SequenceNode) -> list[int]:
    return [label for label in node.masked_tokens if label != -100]


def check(managed: ManagedServer, server: Server) -> None:
    """Every node is what the server was sent and what it said, with the logprobs that it told."""
    paths = {
        tuple(server.path(call, choice)): (said, server.told[call][choice])
        for call, choices in enumerate(server.said)
        for choice, said in enumerate(choices)
    }
    for node in managed.sequences.values() if managed.track_tree else managed.current_nodes:
        said, told = paths[tuple(node.tokens)]
        assert trained(node)[-len(said) :] == node.tokens[-len(said) :] == said
        assert node.logprobs[-len(told) :] == pytest.approx(told, rel=1e-6)
        assert len(node.tokens) == len(node.masked_tokens) == len(node.logprobs)
