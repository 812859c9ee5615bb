"""Real tokenizers and chat templates, each loaded once for the whole run: that costs more than most tests."""

from __future__ import annotations

import asyncio
import datetime
import functools
import tempfile
from pathlib import Path

import pytest

from stenograph.assets import smollm2
from stenograph.assets.load import load_model_files
from stenograph.config import settings
from stenograph.core import JSON, Value
from stenograph.engine.script import Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.errors import ConfigError
from stenograph.furnish import IN_MEMORY, furnished
from stenograph.house import House
from stenograph.render.template import Template
from stenograph.render.tokenizer import Tokenizer
from tests.conftest import NO_TOKENIZERS, TOKENIZERS

ALWAYS = smollm2.NAME
NAMES = (ALWAYS, "qwen2.5", "llama3.1")
"""More are folders of `../shared/tokenizers`: a name here is all that they need."""
REFUSED = "The template refuses to render this."
_REFUSAL = "{%- if messages and messages[-1].content == '" + REFUSED + "' -%}{{- raise_exception('no') -}}{%- endif -%}"
"""Put in front of each template, so that there is a conversation which it refuses."""
CITY: dict[str, JSON] = {"type": "object", "properties": {"city": {"type": "string", "description": "a city"}}}
LOOK: dict[str, JSON] = {
    "type": "function",
    "function": {"name": "look", "description": "looks out of a window", "parameters": CITY},
}
NOON = datetime.datetime(2026, 11, 18, 12)


class Model(Value):
    name: str
    house: House
    """With an engine and a store that are closed: what a stage takes from it is how text is read and written."""
    call: str
    """A call of the tool `look`, as the template writes it; '' where the template drops calls."""

    @property
    def tokenizer(self) -> Tokenizer:
        return self.house.renderer.tokenizer


@functools.cache
def model(name: str) -> Model:
    """Skips where the machine lacks it."""
    if name != ALWAYS and not (TOKENIZERS / name).is_dir():
        pytest.skip(NO_TOKENIZERS)
    try:
        return asyncio.run(_loaded(name, name if name == ALWAYS else str(TOKENIZERS / name)))
    except ConfigError as error:
        if error.message == smollm2.MISSING:
            pytest.skip(error.message)
        raise


async def _loaded(name: str, where: str) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "refusing.jinja"
        files = load_model_files(where)
        template.write_text(_REFUSAL + (files.chat_template or ""))
        chosen = settings({"tokenizer": where, "store": IN_MEMORY, "chat-template": str(template)})
        house = await furnished(chosen, own=ScriptedEngine(Script(model=name)))
    await house.engines.close()
    await house.store.close()
    return Model(name, house, _call_of(house, Template(files.chat_template or "", files.special_tokens)))


def _call_of(house: House, template: Template) -> str:
    """From the template itself, so that it is right for any family."""
    asked: JSON = {"role": "user", "content": "a"}
    function = {"name": "look", "arguments": {"city": "Paris"}}
    calls = [{"id": "abcdefghi", "type": "function", "function": function}]
    called: JSON = {"role": "assistant", "content": "", "tool_calls": calls}
    before = template.render([asked], [LOOK], {}, generate=True, now=NOON)
    whole = template.render([asked, called], [LOOK], {}, generate=False, now=NOON)
    said = whole.removeprefix(before) if whole.startswith(before) else ""
    for close in house.renderer.stop_ids:
        said = said.partition(house.renderer.tokenizer.text_of(close))[0]
    return said if "Paris" in said else ""
