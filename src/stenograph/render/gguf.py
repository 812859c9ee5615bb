"""Reads what a GGUF file says of itself: bytes in, values out.

PyPI's `gguf` reads the same, but makes an array of every string: two seconds for a small vocabulary, ten for a large
one, twice at each start. And a slice behind the end of a file is merely short to it; here it is an error, so that a
download that broke off is called that. The format: github.com/ggml-org/ggml, docs/gguf.md.
"""

from __future__ import annotations

import struct

from stenograph.core import JSON, Value

MAGIC = b"GGUF"
VERSIONS = (2, 3)
"""1 had 32-bit lengths and was gone within weeks. A big-endian file reads as version 0x03000000."""
DEFAULT_ALIGNMENT = 32

SCALARS = ("<B", "<b", "<H", "<h", "<I", "<i", "<f", "<?", "", "", "<Q", "<q", "<d")
"""By the number of the type; 8 and 9 are strings and arrays."""
STRING, ARRAY = 8, 9


class GgufError(ValueError):
    """These bytes are not a GGUF file, or not all of one."""


class Gguf(Value):
    metadata: dict[str, JSON]
    """By key: numbers, booleans, strings, lists of one of these."""
    places: dict[str, int]
    """By key of an array: where in the file its first element begins."""

    def get(self, key: str, default: JSON = None) -> JSON:
        return self.metadata.get(key, default)


def read(data: memoryview) -> Gguf:
    """The metadata. The tensors are not looked into: only that the file is long enough for each to begin."""
    reader = _Reader(data)
    if reader.take(len(MAGIC)) != MAGIC:
        raise GgufError("not a GGUF file")
    version, tensors, keys = reader.scalar("<I"), reader.scalar("<Q"), reader.scalar("<Q")
    if version not in VERSIONS:
        raise GgufError(f"a GGUF file of version {version}, which is not known here")
    metadata: dict[str, JSON] = {}
    places: dict[str, int] = {}
    for _ in range(keys):
        key, kind = reader.string(), reader.scalar("<I")
        metadata[key] = reader.value(kind)
        if kind == ARRAY:
            places[key] = reader.array_at
    _check_length(reader, tensors, metadata.get("general.alignment", DEFAULT_ALIGNMENT))
    return Gguf(metadata, places)


def _check_length(reader: _Reader, tensors: int, alignment: JSON) -> None:
    if not isinstance(alignment, int) or alignment < 1:
        raise GgufError(f"a damaged GGUF file: it says it is aligned to {alignment!r}")
    last = max((reader.tensor_offset() for _ in range(tensors)), default=None)
    start = -(-reader.at // alignment) * alignment
    if last is not None and start + last >= reader.size:
        raise GgufError(f"a truncated GGUF file: it goes on behind {start + last} bytes, and {reader.size} are there")


class _Reader:
    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.size = len(data)
        self.at = 0
        self.array_at = 0
        """Where the elements of the array begin that was read last."""

    def take(self, length: int) -> bytes:
        if length > self.size - self.at:
            raise GgufError(f"a truncated or damaged GGUF file: {self.size} bytes, and the header is not complete")
        self.at += length
        return bytes(self._data[self.at - length : self.at])

    def scalar(self, code: str) -> JSON:
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def string(self) -> str:
        try:
            return self.take(self.scalar("<Q")).decode()
        except UnicodeDecodeError as error:
            raise GgufError(f"a damaged GGUF file: a name in it is not UTF-8 ({error})") from error

    def value(self, kind: int) -> JSON:
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            return self._array(self.scalar("<I"), self.scalar("<Q"))
        return self.scalar(_code(kind))

    def _array(self, kind: int, length: int) -> list[JSON]:
        self.array_at = self.at
        if kind == STRING:
            return [self.string() for _ in range(length)]
        code = _code(kind)
        packed = self.take(length * struct.calcsize(code))
        return list(struct.unpack(f"<{length}{code[1:]}", packed))

    def tensor_offset(self) -> int:
        self.string()
        dimensions = self.scalar("<I")
        self.take(8 * dimensions + 4)
        offset: int = self.scalar("<Q")
        return offset


def _code(kind: int) -> str:
    if kind >= len(SCALARS) or not SCALARS[kind]:
        raise GgufError(f"a damaged GGUF file: there is no type {kind}")
    return SCALARS[kind]
