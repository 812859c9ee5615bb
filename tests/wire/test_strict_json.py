from __future__ import annotations

import json

import jiter
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=3), VALUES, max_size=3)


@given(OBJECTS, st.booleans(), st.integers(0), st.text(alphabet='{}[]",:\\ae1-.', max_size=4), st.integers(0))
def test_of_what_is_cut_or_broken_clients_read_what_is_complete(
    value: dict[str, object], ascii: bool, cut: int, noise: str, place: int
) -> None:
    """As Anthropic's SDK reads a stream. (Of a first bracket at least, for they begin at one.)"""
    text = json.dumps(value, ensure_ascii=ascii)
    place = 1 + place % len(text)
    written = text[:place] + noise + text[place:]
    writer = StrictJson()
    passed = writer.feed(written[: 1 + cut % len(written)])
    assert json.loads(writer.whole()) == jiter.from_json(passed.encode(), partial_mode=True)
    assert noise or passed == written[: len(passed)]
