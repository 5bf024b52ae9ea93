"""Texts of others: what a terminal may show of them, and whether they can leave this process."""

from __future__ import annotations


def plain_text(text: str) -> str:
    r"""The text with everything that does not print written out, lines and tabs aside.

    >>> plain_text("red \x1b[31m\n") == "red \\x1b[31m\n"
    True
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else ascii(each)[1:-1] for each in text)


def is_whole_text(text: str) -> bool:
    r"""Whether it can become bytes, go to Java, name a file: no half of a character in it, and no end of a C string.

    >>> [is_whole_text(text) for text in ("päth", "a\ud800", "a\0b")]
    [True, False, False]
    """
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def is_text(value: object) -> bool:
    """Whether callers who check no types gave a text after all."""
    return isinstance(value, str)
