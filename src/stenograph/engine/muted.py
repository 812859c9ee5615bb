"""A GGUF file whose vocabulary has no text, for llama.cpp's server to load.

The server reports a token together with text, and withholds it while that text ends in half a character; its id and
logprob are then never reported at all. One token in a few hundred is lost that way (half an emoji, a letter of another
script), which no record survives. But ids go in and ids come out here, and a token of type CONTROL has no text: so all
of them are made that, in a copy. What is sampled does not change by a bit.
"""

from __future__ import annotations

import mmap
import shutil
from pathlib import Path

from stenograph.core import Value
from stenograph.errors import ConfigError
from stenograph.render.gguf import Gguf, read

TYPES = "tokenizer.ggml.token_type"
CONTROL = (3).to_bytes(4, "little")


class ModelFacts(Value):
    vocab_size: int
    eos: int | None
    trained_context: int | None
    """None: the file does not say."""


def mute(model: Path, target: Path) -> ModelFacts:
    """Writes the copy: a whole one, for the format has no way to refer to the tensors of another file."""
    file = _metadata(model)
    tokens = len(file.get("tokenizer.ggml.tokens", ()))
    if not tokens or len(file.get(TYPES, ())) != tokens or file.get("split.count", 1) > 1:
        raise ConfigError(f"{model}: the embedded engine takes a GGUF that is one file with its vocabulary in it")
    try:
        shutil.copyfile(model, target)
        with target.open("r+b") as copy:
            copy.seek(file.places[TYPES])
            copy.write(CONTROL * tokens)
    except OSError as error:
        raise ConfigError(f"{model} cannot be copied to {target.parent} to be loaded: {error}") from error
    return ModelFacts(
        vocab_size=tokens,
        eos=file.get("tokenizer.ggml.eos_token_id"),
        trained_context=file.get(f"{file.get('general.architecture')}.context_length"),
    )


def _metadata(model: Path) -> Gguf:
    try:
        with (
            model.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
            memoryview(mapped) as view,
        ):
            return read(view)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{model}: {error}") from error
