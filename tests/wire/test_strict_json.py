from __future__ import annotations

import json

import pytest

from stenograph.wire.strict_json import StrictJson


@pytest.mark.parametrize(
    ("loose", "strict"),
    [
        ('{"a": "b\nc"}', '{"a": "b\\nc"}'),
        ('{\n "a\\"": 1,\n "b": "\t"\n}', '{\n "a\\"": 1,\n "b": "\\t"\n}'),
        ('{"a": "\\\\", "b": "\x07\\\\\n"}', '{"a": "\\\\", "b": "\\u0007\\\\\\n"}'),
    ],
)
def test_control_characters_are_escaped_inside_of_strings_wherever_the_text_is_cut(loose: str, strict: str) -> None:
    for place in range(len(loose) + 1):
        writer = StrictJson()
        assert writer.feed(loose[:place]) + writer.feed(loose[place:]) == strict
    assert json.loads(strict) == json.JSONDecoder(strict=False).decode(loose)
