"""Texts that can leave this process: as bytes, to Java, as names of files."""

from __future__ import annotations


def is_whole_text(text: str) -> bool:
    r"""Whether there is no half of a character in it, and no end of a C string.

    >>> [is_whole_text(text) for text in ("päth", "a\ud800", "a\0b")]
    [True, False, False]
    """
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def is_text(value: object) -> bool:
    """Whether callers who check no types gave a text after all."""
    return isinstance(value, str)
