"""Texts of others on a terminal: without the characters that would steer it."""

from __future__ import annotations


def plain_text(text: str) -> str:
    r"""The text with everything that does not print written out, lines and tabs aside.

    >>> plain_text("red \x1b[31m\n") == "red \\x1b[31m\n"
    True
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else ascii(each)[1:-1] for each in text)
