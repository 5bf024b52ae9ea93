"""SQL text to one sqlglot SELECT, by a dialect that stays closer to Spark than sqlglot's own.

Deviations from sqlglot's Spark dialect, each because the default would lose or change meaning:
  - no function is rewritten: every call keeps the name and arguments that the user wrote;
  - `||` binds like `+` and `-`, as in Spark's grammar;
  - CAST is CAST (sqlglot reads Spark's as TRY_CAST, which holds without ANSI mode only);
  - intervals become one number of microseconds;
  - numbers are cut out of the text as Spark does it: `1e3-5` is a difference;
  - `window` is a name like any other, also right after GROUP BY;
  - `WITHIN 10 SECONDS` after a relation or at the end of the query is read here and nowhere else;
  - so is `[Range 10 seconds, Slide 5 seconds]` after the name of a stream.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from dovetail.core.errors import SqlSyntaxError, UnsupportedSql
from dovetail.frontend.parse.number_tokens import with_numbers_of_spark
from dovetail.frontend.parse.source_text import OFFSET_KEY, SourceText
from dovetail.frontend.parse.unsupported import STATEMENT_HINT, refuse, refuse_statement
from dovetail.query.durations import (
    MICROSECONDS_BY_UNIT,
    DurationError,
    check_length,
    parse_day_to_second,
    parse_duration,
)

WITHIN_KEY = "within_us"
RANGE_KEY = "range_window"
RANGE_HINT = "write for example FROM a [Range 10 seconds, Slide 5 seconds] AS x"
WITHIN_TOKEN = TokenType.PREWHERE  # a keyword that Spark lacks, and that no expression or alias swallows


@dataclass(frozen=True)
class RangeWindow:
    """`[Range r, Slide s]` after the name of a stream."""

    size_us: int
    slide_us: int


class DovetailSpark(Spark):
    """Spark SQL as Dovetail reads it."""

    class Tokenizer(Spark.Tokenizer):
        """See the module's head."""

        # Inside a literal a doubled quote is the quote; sqlglot would join two literals without it.
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(SparkParser):
        """See the module's head."""

        STRICT_CAST = True
        NORMALIZE_DECIMAL_LITERALS = False
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: SparkParser.FUNCTION_PARSERS[name]
            for name in ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "IF")
        }
        TERM: ClassVar[dict[Any, Any]] = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}
        QUERY_MODIFIER_PARSERS: ClassVar[dict[Any, Any]] = {
            token: parser for token, parser in SparkParser.QUERY_MODIFIER_PARSERS.items() if token != WITHIN_TOKEN
        }

        def expression(self, instance: Any, token: Any = None, comments: Any = None) -> Any:
            built = super().expression(instance, token, comments)
            if OFFSET_KEY not in built.meta and self._prev:
                built.meta[OFFSET_KEY] = self._prev.start
            return built

        def _parse_table(self, *args: Any, **kwargs: Any) -> Any:
            table = super()._parse_table(*args, **kwargs)
            if table is not None and self._curr and self._curr.token_type == WITHIN_TOKEN:
                table.meta[WITHIN_KEY] = self._parse_within()
            return table

        def _parse_table_parts(self, *args: Any, fast: bool = False, **kwargs: Any) -> Any:
            index = self._index
            kwargs["fast"] = fast
            table = super()._parse_table_parts(*args, **kwargs)
            if table is None or not self._is_range_ahead():
                return table
            if fast:  # what follows the name is none of the few things that the fast way knows
                self._retreat(index)
                return None
            table.meta[RANGE_KEY] = self._parse_range_window()
            return table

        def _is_range_ahead(self) -> bool:
            is_open = self._curr and self._curr.token_type == TokenType.L_BRACKET
            return bool(is_open and self._next and self._next.text.upper() == "RANGE")

        def _parse_range_window(self) -> RangeWindow:
            start = self._curr.start
            self._advance(2)
            size_us = self._parse_duration_us()
            slide_us = None
            if self._match(TokenType.COMMA) and self._match_text_seq("SLIDE"):
                slide_us = self._parse_duration_us()
            if slide_us is None or not self._match(TokenType.R_BRACKET):
                where = SourceText(self.sql).where(start)
                raise SqlSyntaxError(
                    "a window in brackets that is not [Range r, Slide s]", where=where, hint=RANGE_HINT
                )
            return RangeWindow(size_us, slide_us)

        def _parse_statement(self) -> Any:
            statement = super()._parse_statement()
            if statement is not None and self._curr and self._curr.token_type == WITHIN_TOKEN:
                start = self._curr.start
                statement.meta[WITHIN_KEY] = self._parse_within()
                if self._curr:
                    raise misplaced_within(SourceText(self.sql), start)
            return statement

        def _warn_unsupported(self) -> None:
            """sqlglot warns when it gives up on a statement; `parse_sql` refuses those with an error."""

        def _parse_within(self) -> int:
            self._advance()
            self._match(TokenType.INTERVAL)
            return self._parse_duration_us()

        def _parse_interval(self, *_args: Any, **_options: Any) -> Any:
            following = self._next.token_type if self._next else None
            starts_value = following in (TokenType.STRING, TokenType.NUMBER, TokenType.DASH, TokenType.PLUS)
            if not self._curr or self._curr.token_type != TokenType.INTERVAL or not starts_value:
                return None
            start = self._curr
            self._advance()
            interval = exp.Interval(this=exp.Literal.number(self._parse_duration_us()))
            interval.meta[OFFSET_KEY] = start.start
            return interval

        def _parse_duration_us(self) -> int:
            """`5 SECONDS`, `'5' SECOND`, `'5 seconds'`, `1 MINUTE 30 SECONDS`, `'0 00:00:05' DAY TO SECOND`."""
            first = self._curr
            try:
                total = self._parse_duration_part()
                while self._curr and self._is_duration_part():
                    total += self._parse_duration_part()
                return check_length(total)
            except DurationError as error:
                where = SourceText(self.sql).where(first.start if first else len(self.sql))
                raise UnsupportedSql(str(error), where=where, hint=error.hint) from None

        def _is_duration_part(self) -> bool:
            is_value = self._curr.token_type in (TokenType.NUMBER, TokenType.STRING)
            return bool(is_value and self._next and self._next.text.lower() in MICROSECONDS_BY_UNIT)

        def _parse_duration_part(self) -> int:
            sign = ""
            while self._curr and self._curr.token_type in (TokenType.DASH, TokenType.PLUS):
                sign += self._curr.text
                self._advance()
            token = self._curr
            if not token or token.token_type not in (TokenType.NUMBER, TokenType.STRING):
                raise DurationError("a duration starts with a number")
            self._advance()
            factor = -1 if sign.count("-") % 2 else 1
            if self._has_unit_ahead():
                unit = self._curr.text
                self._advance()
                if self._match_text_seq("TO"):
                    if not self._curr:
                        raise DurationError(f"an interval of {unit} TO nothing")
                    upper = self._curr.text
                    self._advance()
                    return factor * parse_day_to_second(token.text, unit, upper)
                return factor * parse_duration(f"{token.text} {unit}")
            if token.token_type == TokenType.NUMBER:
                found = f", but {self._curr.text!r}" if self._curr else ""
                raise DurationError(f"after {token.text} there is no unit of time{found}")
            return factor * parse_duration(token.text)

        def _has_unit_ahead(self) -> bool:
            if not self._curr or self._curr.token_type == TokenType.IDENTIFIER:
                return False
            word = self._curr.text.lower()
            return word in MICROSECONDS_BY_UNIT or word in ("month", "months", "year", "years")


def misplaced_within(source: SourceText, offset: int) -> UnsupportedSql:
    hint = "write WITHIN right after a relation and its alias, or once at the very end of the query"
    return UnsupportedSql("WITHIN does not go here", where=source.where(offset), hint=hint)


_DIALECT = DovetailSpark()
_SEPARATORS = re.compile("[\x1c-\x1f\x85]")
_COMPUTE_HINT = "compute the column in the DataFrame before create_stream"
_HINT_BY_OPERATOR = {
    TokenType.PIPE_GT: "write one SELECT ... FROM ... WHERE ...",
    TokenType.ARROW: _COMPUTE_HINT,
    TokenType.DARROW: _COMPUTE_HINT,
    TokenType.HASH_ARROW: _COMPUTE_HINT,
    TokenType.DHASH_ARROW: _COMPUTE_HINT,
    TokenType.DOTCOLON: _COMPUTE_HINT,
}
MAX_DEPTH = 128
MAX_CHARACTERS, MAX_WORDS = 1_000_000, 20_000
"""Compiling takes time in the process that runs everybody's batches: a text has some seconds of it at most."""


def parse_sql(text: str) -> exp.Select:
    """The one SELECT that `text` is, each node stamped with its offset."""
    source = SourceText(text)
    _refuse_unreadable(text, source)
    try:
        tokens = tokens_of(text)
        _refuse_length(tokens, source)
        _refuse_separators(text, tokens, source)
        parser = _DIALECT.parser(error_level=ErrorLevel.IMMEDIATE)
        statements = [statement for statement in parser.parse(tokens, text) if statement is not None]
    except TokenError as error:
        raise SqlSyntaxError(
            f"the text cannot be read: {_first_line(error)}",
            where=source.where(0),
            hint="close every quote, backquote and comment",
        ) from None
    except ParseError as error:
        raise _syntax_error(error, source) from None
    except RecursionError:
        raise SqlSyntaxError(
            "the text is nested too deeply",
            where=source.where(0),
            hint=f"write at most {MAX_DEPTH} parentheses, calls or operators inside each other",
        ) from None
    if not statements:
        raise SqlSyntaxError("the text is empty", where=source.where(0), hint=STATEMENT_HINT)
    if len(statements) > 1:
        raise UnsupportedSql("more than one statement", where=source.where(statements[1]), hint=STATEMENT_HINT)
    statement = statements[0]
    if not isinstance(statement, exp.Select):
        raise refuse_statement(statement, source)
    _refuse_depth(statement, source)
    return statement


def _refuse_unreadable(text: str, source: SourceText) -> None:
    if len(text) > MAX_CHARACTERS:
        raise UnsupportedSql(
            f"the text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read",
            where=source.where(MAX_CHARACTERS),
            hint="have long values come as rows of a stream, and join it",
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SqlSyntaxError(
            f"{text[error.start]!a} is half of a character, which no file can keep",
            where=source.where(error.start),
            hint="write the whole character, or leave it out",
        ) from None


def _refuse_separators(text: str, tokens: list[Token], source: SourceText) -> None:
    """Python takes a few control characters for white space that SQL does not; in texts and comments they may stand."""
    if not _SEPARATORS.search(text):
        return
    begin = 0
    for token in tokens:
        gap = text[begin : token.start]
        found = _SEPARATORS.search(gap)
        if found and "--" not in gap and "/*" not in gap:
            raise SqlSyntaxError(
                f"{found[0]!a} is no white space", where=source.where(begin + found.start()), hint="write a blank"
            )
        begin = token.end + 1


def _refuse_length(tokens: list[Token], source: SourceText) -> None:
    if len(tokens) > MAX_WORDS:
        raise UnsupportedSql(
            f"the text has {len(tokens):,} words and signs; at most {MAX_WORDS:,} are read",
            where=source.where(tokens[MAX_WORDS].start),
            hint="have long lists come as rows of a stream and join it, or make several queries of it",
        )


def tokens_of(text: str) -> list[Token]:
    """The words of a text as `parse_sql` reads them."""
    source = SourceText(text)
    tokens = with_numbers_of_spark(_DIALECT.tokenize(text), source)
    _refuse_foreign_operators(tokens, source)
    return _unmark_windows(_mark_within(tokens))


def _refuse_foreign_operators(tokens: list[Token], source: SourceText) -> None:
    """Those that sqlglot would rewrite, or fail at, before anyone could look at them."""
    for token in tokens:
        hint = _HINT_BY_OPERATOR.get(token.token_type)
        if hint is not None:
            raise refuse(token.text, source.where(token.start), hint)


def _refuse_depth(statement: exp.Select, source: SourceText) -> None:
    """Later steps recurse, also in the middle of a batch, where a text that is too deep would fail all queries."""
    level: list[exp.Expr] = [statement]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in node.iter_expressions()]
        if not level:
            return
    raise UnsupportedSql(
        f"more than {MAX_DEPTH} operators, parentheses or ANDs inside each other",
        where=source.where(level[0]),
        hint="write IN (...) in place of many ORs, or make several queries of it",
    )


def _mark_within(tokens: list[Token]) -> list[Token]:
    """WITHIN followed by a duration is the clause; any other use of the word is a name."""
    for position, token in enumerate(tokens[:-1]):
        is_word = token.token_type == TokenType.VAR and token.text.upper() == "WITHIN"
        following = tokens[position + 1].token_type
        if is_word and following in (TokenType.NUMBER, TokenType.STRING, TokenType.INTERVAL):
            tokens[position] = Token(
                WITHIN_TOKEN, token.text, token.line, token.col, token.start, token.end, token.comments
            )
    return tokens


def _unmark_windows(tokens: list[Token]) -> list[Token]:
    """WINDOW is the clause only as in `WINDOW name AS`; sqlglot ends GROUP BY at a call of window(), too."""
    for position, token in enumerate(tokens):
        is_clause = [following.token_type for following in tokens[position + 2 : position + 3]] == [TokenType.ALIAS]
        if token.token_type == TokenType.WINDOW and not is_clause:
            tokens[position] = Token(
                TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments
            )
    return tokens


def _syntax_error(error: ParseError, source: SourceText) -> SqlSyntaxError | UnsupportedSql:
    details = error.errors[0] if error.errors else {}
    start_context = details.get("start_context") or ""
    highlight = details.get("highlight") or ""
    offset = source.text.find(f"{start_context}{highlight}") + len(start_context) if highlight else len(source.text)
    what = _in_plain_words(str(details.get("description") or _first_line(error)))
    near = f" near {highlight!r}" if highlight else " at the end"
    if highlight.upper() == "WITHIN":
        return misplaced_within(source, offset)
    hint = "write it as Spark SQL reads it; a name that is a word of SQL goes in backquotes"
    return SqlSyntaxError(f"the text does not parse: {what}{near}", where=source.where(offset), hint=hint)


def _in_plain_words(what: str) -> str:
    """sqlglot's text without the names of its own classes."""
    if what.startswith("Required keyword"):
        return "something is missing"
    return what.partition(" but got <Token")[0]


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["unknown"])[0]
