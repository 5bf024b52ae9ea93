"""The tokens of one statement, read from left to right; whatever does not fit is refused with its place."""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from dovetail.core.errors import SqlSyntaxError, UnsupportedSql
from dovetail.frontend.parse.number_tokens import with_numbers_of_spark
from dovetail.frontend.parse.parse_sql import DovetailSpark
from dovetail.frontend.parse.source_text import SourceText
from dovetail.frontend.parse.statement import SelectText

LONGEST_ECHO = 40
"""Of the user's text in an error, in characters."""
_WORD = re.compile(r"[^\W\d]\w*\Z")
_GRAMMAR_WORDS = frozenset({"AS", "IF", "OR", "SELECT", "SET", "WITH"})
_DIALECT = DovetailSpark()


class _Tokenizer(DovetailSpark.Tokenizer):
    """sqlglot's own swallows what follows SHOW or EXPLAIN as one opaque text."""

    COMMANDS: ClassVar[set[TokenType]] = set()


def read_tokens(text: str) -> StatementTokens:
    """The tokens of the one statement that `text` is."""
    source = SourceText(text)
    try:
        tokens = with_numbers_of_spark(_Tokenizer(dialect=_DIALECT).tokenize(text), source)
    except TokenError as error:
        what = str(error).partition("\n")[0]
        raise SqlSyntaxError(f"the text cannot be read: {what}", where=source.where(0)) from None
    ends = [place for place, token in enumerate(tokens) if token.token_type == TokenType.SEMICOLON]
    first_end = ends[0] if ends else len(tokens)
    for token in tokens[first_end:]:
        if token.token_type != TokenType.SEMICOLON:
            raise UnsupportedSql(
                "more than one statement", where=source.where(token.start), hint="send one statement at a time"
            )
    return StatementTokens(source, tokens[:first_end])


class StatementTokens:
    """`form` is how the statement is written, once that is known: the hint of every refusal."""

    def __init__(self, source: SourceText, tokens: list[Token]) -> None:
        self.source = source
        self.form = ""
        self._tokens = tokens
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        return self._position == len(self._tokens)

    @property
    def where(self) -> str:
        return self.source.where(len(self.source.text) if self.is_at_end else self._tokens[self._position].start)

    @property
    def found(self) -> str:
        """The next token as the user wrote it."""
        return self.written(self._tokens[self._position : self._position + 1])

    def take(self) -> Token:
        token = self._tokens[self._position]
        self._position += 1
        return token

    def next_is(self, *kinds: TokenType) -> bool:
        return not self.is_at_end and self._tokens[self._position].token_type in kinds

    def take_if(self, kind: TokenType) -> bool:
        is_next = self.next_is(kind)
        self._position += is_next
        return is_next

    def take_words(self, words: str) -> bool:
        """All of the words, or none."""
        wanted = words.split()
        ahead = self._tokens[self._position : self._position + len(wanted)]
        is_next = [self.written([token]).upper() for token in ahead] == wanted
        self._position += len(wanted) * is_next
        return is_next

    def expect_words(self, words: str) -> None:
        if not self.take_words(words):
            raise self.refusal(words)

    def expect(self, kind: TokenType, written: str) -> None:
        if not self.take_if(kind):
            raise self.refusal(written)

    def expect_end(self) -> None:
        if not self.is_at_end:
            raise self.refusal("the end of the statement")

    def name(self, what: str) -> str:
        """A word, or anything between backquotes."""
        if self.next_is(TokenType.IDENTIFIER):
            return self.take().text
        if not _WORD.match(self.found):
            raise self.refusal(what)
        if self.found.upper() in _GRAMMAR_WORDS:
            raise self.refusal(f"{what} (or `{self.found}` in backquotes)")
        return self.written([self.take()])

    def select_text(self) -> SelectText:
        """Everything from here on."""
        if not self.next_is(TokenType.SELECT):
            raise self.refusal("SELECT")
        text, start = self.source.text, self._tokens[self._position].start
        self._position = len(self._tokens)
        return SelectText(text[start : self._tokens[-1].end + 1], re.sub(r"[^\n]", " ", text[:start]))

    def until_comma_or_parenthesis(self) -> list[Token]:
        """Up to the comma or closing parenthesis that belongs to no bracket in between."""
        depth, start = 0, self._position
        while not self.is_at_end:
            if depth == 0 and self.next_is(TokenType.COMMA, TokenType.R_PAREN):
                break
            depth += self.next_is(TokenType.L_PAREN, TokenType.LT) - self.next_is(TokenType.R_PAREN, TokenType.GT)
            self._position += 1
        return self._tokens[start : self._position]

    def refusal(self, expected: str) -> SqlSyntaxError:
        found = "the statement ends" if self.is_at_end else f"there is {shortened(self.found)!r}"
        hint = f"write {self.form}" if self.form else None
        return SqlSyntaxError(f"{found} where {expected} is expected", where=self.where, hint=hint)

    def written(self, tokens: list[Token]) -> str:
        """Tokens that follow each other as the user wrote them."""
        return self.source.text[tokens[0].start : tokens[-1].end + 1] if tokens else ""


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_ECHO else f"{text[:LONGEST_ECHO]}..."
