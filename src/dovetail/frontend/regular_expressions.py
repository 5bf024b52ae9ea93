"""Java regular expressions to RE2, for the part of the language that means the same in both.

Whether a pattern matches depends on the set of texts it describes only, so quantifier order and
greediness do not matter. What RE2 lacks (lookaround, back references, possessive quantifiers) and
what differs too much (Unicode classes, flags, word borders) is refused.
"""

from __future__ import annotations

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_ESCAPED = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": "[A-Za-z0-9_]",
    "W": "[^A-Za-z0-9_]",
    "s": r"[ \t\n\x0b\f\r]",
    "S": r"[^ \t\n\x0b\f\r]",
    "t": r"\t",
    "n": r"\n",
    "r": r"\r",
    "f": r"\f",
}
_IN_CLASS = {"d": "0-9", "w": "A-Za-z0-9_", "s": r" \t\n\x0b\f\r", "t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}


class PatternError(ValueError):
    """A pattern outside the common part."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the pattern {what}")
        self.hint = "use literals, ., [ ], ( ), |, *, +, ?, {n,m}, ^, $, \\d, \\w, \\s; or LIKE"


def to_re2(pattern: str) -> str:
    """The RE2 pattern that matches the same texts.

    >>> to_re2("a+[bc]")
    'a+[bc]'
    """
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        text, position = _translate(pattern, position)
        parts.append(text)
    return "".join(parts)


def _translate(pattern: str, position: int) -> tuple[str, int]:
    """One element of the pattern and where the next begins."""
    character = pattern[position]
    following = pattern[position + 1 : position + 2]
    if character == "\\":
        return _escape(following, _ESCAPED), position + 2
    if character == ".":
        return f"[^{_LINE_ENDS}]", position + 1
    if character == "[":
        return _class(pattern, position)
    if character == "$":
        if following not in ("", ")", "|"):
            raise PatternError("has $ before its end")
        return rf"(?:\r\n|[{_LINE_ENDS}])?\z", position + 1
    if character == "(" and following == "?":
        if pattern[position : position + 3] != "(?:":
            raise PatternError("has a group that starts with (?")
        return "(?:", position + 3
    if character in "*+?}" and following == "+":
        raise PatternError("has a possessive quantifier")
    return character, position + 1


def _escape(letter: str, known: dict[str, str]) -> str:
    if letter in known:
        return known[letter]
    if letter and letter.isascii() and not letter.isalnum():
        return "\\" + letter
    raise PatternError(f"has \\{letter}")


def _class(pattern: str, start: int) -> tuple[str, int]:
    """`[...]`, without nesting and intersection."""
    position = start + 1
    parts = ["["]
    if pattern[position : position + 1] == "^":
        parts.append("^")
        position += 1
    while position < len(pattern) and pattern[position] != "]":
        character = pattern[position]
        if character == "[" or pattern[position : position + 2] == "&&":
            raise PatternError("has a nested [ or && in [ ]")
        if character == "\\":
            parts.append(_escape(pattern[position + 1 : position + 2], _IN_CLASS))
            position += 2
        else:
            parts.append(character)
            position += 1
    if position >= len(pattern) or parts[-1] in ("[", "^"):
        raise PatternError("has an empty or open [ ]")
    return "".join(parts) + "]", position + 1
