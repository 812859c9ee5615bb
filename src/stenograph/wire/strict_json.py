"""JSON as models write it, to JSON as every parser takes it, piece by piece: line breaks and other control characters
inside of strings are escaped. Nothing else is touched."""

from __future__ import annotations

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


class StrictJson:
    def __init__(self) -> None:
        self._in_string = False
        self._escaping = False
        """The last piece ended behind a backslash."""

    def feed(self, text: str) -> str:
        return "".join(map(self._char, text))

    def _char(self, char: str) -> str:
        if self._escaping:
            self._escaping = False
        elif char == '"':
            self._in_string = not self._in_string
        elif self._in_string and char == "\\":
            self._escaping = True
        elif self._in_string and char < " ":
            return _SHORT.get(char, f"\\u{ord(char):04x}")
        return char
