"""Numbers cut out of a text as Spark's lexer does it.

sqlglot takes `1e3-5` for one number, `1e0+1e0` and `1.5x` for names, and `.5` for a point and a number. Whatever starts
with a digit, or with a point and a digit, is cut once more here: of a number and a name the longer, a number if both
are as long.

    1e3-5  ->  1e3 - 5          1e5x  ->  the name 1e5x          1e-5x  ->  1e-5 and the name x
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenType

from dovetail.core.errors import SqlSyntaxError
from dovetail.frontend.parse.source_text import SourceText

_EXPONENT = r"(?:[eE][+-]?[0-9]+)?"
_FRACTIONAL = r"[Bb][Dd]|[DdFf]"
_WHOLE = re.compile(r"([0-9]+)([LlSsYy])")
_SCIENTIFIC = re.compile(rf"([0-9]+{_EXPONENT})({_FRACTIONAL})?")
# Directly before a letter a point is no part of a number: 1.x is a part of 1.
_POINTED = re.compile(rf"((?:[0-9]+\.[0-9]*|\.[0-9]+){_EXPONENT})({_FRACTIONAL})?(?![0-9A-Za-z_])")
_DIGIT = re.compile("[0-9]")
_NAME = re.compile(r"[0-9A-Za-z_]+")
_SIGNS = {".": TokenType.DOT, "+": TokenType.PLUS, "-": TokenType.DASH}
_CUT = (TokenType.NUMBER, TokenType.VAR, TokenType.DOT)
"""Not those that sqlglot makes of `0x1F` and `0b1`: to Spark they are names, and Dovetail refuses them by looks."""


def with_numbers_of_spark(tokens: list[Token], source: SourceText) -> list[Token]:
    """The tokens, those of numbers and of what sqlglot mistakes for numbers cut as Spark cuts them."""
    result: list[Token] = []
    done = 0
    for token in tokens:
        if token.end < done:
            continue
        if not _may_be_number(token, source.text):
            result.append(token)
            continue
        place = max(token.start, done)
        while place <= token.end:
            pieces = list(_pieces_at(place, token, source))
            result += pieces
            place = pieces[-1].end + 1
        done = place
    return result


def _may_be_number(token: Token, text: str) -> bool:
    start = token.start + (token.token_type == TokenType.DOT)
    return token.token_type in _CUT and _DIGIT.match(text, start) is not None


def _pieces_at(place: int, token: Token, source: SourceText) -> Iterator[Token]:
    """One number, name or sign; a number with a suffix is three tokens, as sqlglot has it: of `5L` 5, `::` and L."""
    text = source.text
    number, suffix, end = _number_at(place, text)
    name = _NAME.match(text, place)
    if name is not None and name.end() > end:
        yield _piece(token, TokenType.VAR, name[0], place, name.end())
    elif number:
        yield _piece(token, TokenType.NUMBER, number, place, end)
        if suffix:
            kind = Spark.Tokenizer.KEYWORDS[Spark.Tokenizer.NUMERIC_LITERALS[suffix.upper()]]
            yield _piece(token, TokenType.DCOLON, "::", place, end)
            yield _piece(token, kind, suffix, place, end)
    elif text[place] in _SIGNS:
        yield _piece(token, _SIGNS[text[place]], text[place], place, place + 1)
    else:
        raise SqlSyntaxError(
            f"the text does not parse: {text[place]!r} is part of no number and of no name",
            where=source.where(place),
            hint="write a name with such letters in backquotes",
        )


def _number_at(place: int, text: str) -> tuple[str, str, int]:
    """The longest number that starts here, its suffix, and where both end."""
    found = [match for pattern in (_WHOLE, _SCIENTIFIC, _POINTED) if (match := pattern.match(text, place))]
    if not found:
        return "", "", place
    longest = max(found, key=lambda match: match.end())
    return longest[1], longest[2] or "", longest.end()


def _piece(token: Token, kind: TokenType, text: str, start: int, end: int) -> Token:
    # Comments stay with the first piece.
    comments = token.comments if start == token.start else []
    return Token(kind, text, token.line, token.col - (token.end + 1 - end), start, end - 1, comments)
