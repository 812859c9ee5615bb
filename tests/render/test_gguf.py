from __future__ import annotations

import struct
from contextlib import suppress

import hypothesis.strategies as st
import pytest
from hypothesis import given

from stenograph.render.gguf import GgufError, read
from tests.gguf_files import gguf

METADATA = {"name": "näme", "count": 7, "share": 0.5, "flag": True, "words": ["a", "ß", ""], "numbers": [3, -1, 2]}
FILE = gguf(METADATA, tensors=(b"\1" * 40, b"\2" * 64))


def test_every_kind_of_value_comes_back() -> None:
    assert read(memoryview(FILE)).metadata == METADATA


def test_the_place_of_an_array_is_that_of_its_first_element() -> None:
    place = read(memoryview(FILE)).places["numbers"]
    assert struct.unpack_from("<3i", FILE, place) == (3, -1, 2)


def test_a_file_without_tensors_is_whole() -> None:
    assert read(memoryview(gguf({"a": 1}, tensors=()))).get("a") == 1


@given(st.integers(0, len(FILE) - 65))
def test_a_file_that_broke_off_is_called_that(length: int) -> None:
    with pytest.raises(GgufError, match="truncated"):
        read(memoryview(FILE[:length]))


@given(st.integers(0, len(FILE) - 1), st.integers(0, 255))
def test_a_damaged_file_is_never_more_than_a_gguf_error(place: int, byte: int) -> None:
    damaged = FILE[:place] + bytes([byte]) + FILE[place + 1 :]
    with suppress(GgufError):
        read(memoryview(damaged))


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (b"hello, this is text", "not a GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "version 50331648"),
        (gguf({"general.alignment": 0}), "aligned to 0"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"a", 77), "no type 77"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"a", 9, 9, 1), "no type 9"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"\xff", 4), "not UTF-8"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"a", 9, 8, 2**60), "truncated or damaged"),
    ],
)
def test_what_is_wrong_is_said(file: bytes, said: str) -> None:
    with pytest.raises(GgufError, match=said):
        read(memoryview(file))
