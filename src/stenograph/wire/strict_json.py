"""JSON as models write it, to JSON as every parser takes it, piece by piece.

Line breaks and other control characters inside of strings are escaped. Where the text is no JSON any more, nothing of
it is passed on: a client that reads a stream as far as it goes is never given anything it cannot read. Nothing else is
touched. A text that ends half way is worth what such clients make of it: all that was complete.
"""

from __future__ import annotations

import re

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_SPACE = " \n\r\t"
_WORD = re.compile(r"true|false|null|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMBER_BEGUN = re.compile(r"-?((0|[1-9][0-9]*)(\.[0-9]*|(\.[0-9]+)?[eE][+-]?[0-9]*)?)?")
_NAMES = ("true", "false", "null")


class StrictJson:
    def __init__(self) -> None:
        self._expected = "value"
        """value, key, colon, or what may stand behind a value; `first …`: or the end of what has just begun."""
        self._closers: list[str] = []
        self._quoted = False
        self._escape: str | None = None
        """In a string, behind a backslash: what of the escape is there."""
        self._word = ""
        """Of a number, or of a name."""
        self._passed: list[str] = []
        self._complete = (0, "")
        """How much of it was passed when something was last complete, and what would close it there."""
        self._broken = False

    def feed(self, text: str) -> str:
        begun = len(self._passed)
        for char in text:
            strict = None if self._broken else self._char(char)
            if strict is None:
                self._broken = True
                break
            self._passed.append(strict)
            if not (self._quoted or self._word) and self._expected in ("behind", "first key", "first value"):
                self._note_complete()
        return "".join(self._passed[begun:])

    def whole(self) -> str:
        """An object, whatever became of the text."""
        if _WORD.fullmatch(self._word):
            return "".join([*self._passed, *reversed(self._closers)])
        count, closers = self._complete
        return "".join([*self._passed[:count], closers]) or "{}"

    def _note_complete(self) -> None:
        self._complete = (len(self._passed), "".join(reversed(self._closers)))

    def _char(self, char: str) -> str | None:
        """None: no JSON goes on like this."""
        if self._quoted:
            return self._in_string(char)
        if self._word and char not in _SPACE + ",]}":
            return self._in_word(self._word + char)
        if self._word and not _WORD.fullmatch(self._word):
            return None
        if self._word:
            self._word, self._expected = "", "behind"
            self._note_complete()
        return char if char in _SPACE or self._takes(char) else None

    def _in_string(self, char: str) -> str | None:
        if self._escape is not None:
            self._escape += char
            if not re.fullmatch(r'["\\/bfnrt]|u[0-9a-fA-F]{0,4}', self._escape):
                return None
            if self._escape[0] != "u" or len(self._escape) == len("uffff"):
                self._escape = None
        elif char == "\\":
            self._escape = ""
        elif char == '"':
            self._quoted = False
        elif char < " ":
            return _SHORT.get(char, f"\\u{ord(char):04x}")
        return char

    def _in_word(self, word: str) -> str | None:
        if not any(name.startswith(word) for name in _NAMES) and not _NUMBER_BEGUN.fullmatch(word):
            return None
        self._word = word
        return word[-1]

    def _takes(self, char: str) -> bool:
        """Outside of strings and words."""
        expected = self._expected
        if expected in ("value", "first value") and char not in ",]}:":
            return self._begins(char)
        if expected in ("key", "first key") and char == '"':
            self._quoted, self._expected = True, "colon"
        elif expected == "colon" and char == ":":
            self._expected = "value"
        elif expected == "behind" and char == "," and self._closers:
            self._expected = "key" if self._closers[-1] == "}" else "value"
        elif expected in ("behind", "first key", "first value") and self._closers and char == self._closers[-1]:
            self._closers.pop()
            self._expected = "behind"
        else:
            return False
        return True

    def _begins(self, char: str) -> bool:
        if char == '"':
            self._quoted, self._expected = True, "behind"
        elif char in "{[":
            self._closers.append({"{": "}", "[": "]"}[char])
            self._expected = "first key" if char == "{" else "first value"
        else:
            return self._in_word(char) is not None
        return True
