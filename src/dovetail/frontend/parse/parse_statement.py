"""Text to one statement record, by recursive descent: nothing that this file does not read gets any further.

The SELECT inside a statement is only cut out here; `compile_sql` reads it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.tokenizer_core import Token, TokenType

from dovetail.core.errors import SqlError, SqlSyntaxError
from dovetail.frontend.parse.parse_sql import DovetailSpark
from dovetail.frontend.parse.source_text import SourceText
from dovetail.frontend.parse.statement import (
    AlterQuery,
    CreateQuery,
    CreateStream,
    DropQuery,
    ExplainQuery,
    ExplainSelect,
    Options,
    OptionValue,
    ShowQueries,
    ShowStreams,
    Statement,
)
from dovetail.frontend.parse.statement_tokens import StatementTokens, read_tokens, shortened
from dovetail.frontend.parse.unforeseen import unforeseen_as_refusal
from dovetail.frontend.parse.unsupported import refuse
from dovetail.frontend.read_types import TYPE_HINT, read_type
from dovetail.query.types import SqlType

CREATE_QUERY = "CREATE [OR REPLACE] CONTINUOUS QUERY name [WITH (key = value, ...)] AS SELECT ..."
CREATE_STREAM = "CREATE STREAM name [(column TYPE, ...)] WITH (key = value, ...)"
DROP_QUERY = "DROP CONTINUOUS QUERY [IF EXISTS] name"
ALTER_QUERY = "ALTER CONTINUOUS QUERY name SET (key = value, ...)"
SHOW = "SHOW QUERIES or SHOW STREAMS"
EXPLAIN = "EXPLAIN name or EXPLAIN SELECT ..."
STATEMENTS = "CREATE CONTINUOUS QUERY, DROP CONTINUOUS QUERY, ALTER CONTINUOUS QUERY, CREATE STREAM, SHOW or EXPLAIN"

LONGEST_NUMBER = 40
"""Digits; far beyond any option, far below what is slow to read."""
_DIALECT = DovetailSpark()


def parse_statement(text: str) -> Statement:
    """The one statement that `text` is; a semicolon at its end is fine."""
    with unforeseen_as_refusal(SourceText(text)):
        return _read_statement(read_tokens(text))


def _read_statement(tokens: StatementTokens) -> Statement:
    if tokens.is_at_end:
        raise SqlSyntaxError("the text is empty", where=tokens.where, hint=f"write {STATEMENTS}")
    where, word = tokens.where, tokens.found.upper()
    if word in ("SELECT", "WITH", "("):
        raise refuse("a SELECT alone", where, "write CREATE CONTINUOUS QUERY name AS SELECT ...")
    if word not in _READERS:
        raise refuse(shortened(word), where, f"write {STATEMENTS}")
    tokens.take()
    statement = _READERS[word](tokens)
    tokens.expect_end()
    return statement


def _create(tokens: StatementTokens) -> CreateQuery | CreateStream:
    tokens.form = f"{CREATE_QUERY}, or {CREATE_STREAM}"
    is_replace = tokens.take_words("OR REPLACE")
    where = tokens.where
    if tokens.take_words("STREAM"):
        if is_replace:
            raise refuse("OR REPLACE of a stream", where, "give the changed stream another name")
        return _create_stream(tokens)
    if not tokens.take_words("CONTINUOUS QUERY"):
        raise tokens.refusal("CONTINUOUS QUERY" if is_replace else "CONTINUOUS QUERY or STREAM")
    tokens.form = CREATE_QUERY
    name = tokens.name("the query's name")
    options = _options(tokens) if tokens.take_words("WITH") else {}
    if not tokens.take_words("AS"):
        raise tokens.refusal("AS" if options else "AS or WITH")
    return CreateQuery(name, tokens.select_text(), options, is_replace)


def _create_stream(tokens: StatementTokens) -> CreateStream:
    tokens.form = CREATE_STREAM
    name = tokens.name("the stream's name")
    columns = _columns(tokens) if tokens.next_is(TokenType.L_PAREN) else ()
    if not tokens.take_words("WITH"):
        raise tokens.refusal("WITH" if columns else "( or WITH")
    return CreateStream(name, columns, _options(tokens))


def _columns(tokens: StatementTokens) -> tuple[tuple[str, SqlType], ...]:
    """`(column TYPE, ...)`."""
    tokens.expect(TokenType.L_PAREN, "(")
    columns = [_column(tokens)]
    while tokens.take_if(TokenType.COMMA):
        columns.append(_column(tokens))
    tokens.expect(TokenType.R_PAREN, ", or ) after the column")
    return tuple(columns)


def _column(tokens: StatementTokens) -> tuple[str, SqlType]:
    name, where = tokens.name("a column's name"), tokens.where
    of_type = tokens.until_comma_or_parenthesis()
    if not of_type:
        raise tokens.refusal(f"the type of {name}")
    return name, _read_type(tokens, of_type, where)


def _read_type(tokens: StatementTokens, of_type: list[Token], where: str) -> SqlType:
    try:
        parser = _DIALECT.parser(error_level=ErrorLevel.IMMEDIATE)
        (node,) = parser.parse_into(exp.DataType, of_type, tokens.source.text)
    except (ParseError, RecursionError):
        node = None
    if not isinstance(node, exp.DataType):
        raise SqlError(f"{shortened(tokens.written(of_type))!r} is no column type", where=where, hint=TYPE_HINT)
    return read_type(node, of_type[0].start, tokens.source)


def _drop(tokens: StatementTokens) -> DropQuery:
    tokens.form = DROP_QUERY
    where = tokens.where
    if tokens.take_words("STREAM"):
        raise refuse("DROP STREAM", where, "drop the queries that read it; a stream stays with its checkpoint")
    tokens.expect_words("CONTINUOUS QUERY")
    if_exists = tokens.take_words("IF EXISTS")
    return DropQuery(tokens.name("the query's name"), if_exists)


def _alter(tokens: StatementTokens) -> AlterQuery:
    tokens.form = ALTER_QUERY
    tokens.expect_words("CONTINUOUS QUERY")
    name = tokens.name("the query's name")
    tokens.expect_words("SET")
    return AlterQuery(name, _options(tokens))


def _show(tokens: StatementTokens) -> ShowQueries | ShowStreams:
    tokens.form = SHOW
    if tokens.take_words("QUERIES"):
        return ShowQueries()
    if tokens.take_words("STREAMS"):
        return ShowStreams()
    raise tokens.refusal("QUERIES or STREAMS")


def _explain(tokens: StatementTokens) -> ExplainQuery | ExplainSelect:
    tokens.form = EXPLAIN
    if tokens.next_is(TokenType.SELECT):
        return ExplainSelect(tokens.select_text())
    return ExplainQuery(tokens.name("a query's name or SELECT"))


_READERS: dict[str, Callable[[StatementTokens], Statement]] = {
    "CREATE": _create,
    "DROP": _drop,
    "ALTER": _alter,
    "SHOW": _show,
    "EXPLAIN": _explain,
}


def _options(tokens: StatementTokens) -> Options:
    """`(key = value, ...)`."""
    tokens.expect(TokenType.L_PAREN, "( before the options")
    options: dict[str, OptionValue] = {}
    while True:
        where, key = tokens.where, _key(tokens)
        if key in options:
            raise SqlError(f"option {key} is given twice", where=where, hint="keep one of them")
        tokens.expect(TokenType.EQ, f"= after {key}")
        options[key] = _value(tokens)
        if not tokens.take_if(TokenType.COMMA):
            break
    tokens.expect(TokenType.R_PAREN, ", or ) after the option")
    return options


def _key(tokens: StatementTokens) -> str:
    """A word, words with dots between them, or a text."""
    if tokens.next_is(TokenType.STRING):
        return tokens.take().text
    words = [tokens.name("an option's key")]
    while tokens.take_if(TokenType.DOT):
        words.append(tokens.name("the rest of the key"))
    return ".".join(words)


def _value(tokens: StatementTokens) -> OptionValue:
    if tokens.next_is(TokenType.STRING):
        return tokens.take().text
    for word, value in (("TRUE", True), ("FALSE", False), ("NULL", None)):
        if tokens.take_words(word):
            return value
    is_negative = tokens.take_if(TokenType.DASH)
    if not tokens.next_is(TokenType.NUMBER):
        raise tokens.refusal("a text in quotes, a number, TRUE, FALSE or NULL")
    number = _number(tokens)
    return -number if is_negative else number


def _number(tokens: StatementTokens) -> int | float:
    where, text = tokens.where, tokens.take().text
    try:
        number = int(text) if text.isdecimal() else float(text)
    except ValueError:
        number = math.nan
    if len(text) > LONGEST_NUMBER or not math.isfinite(number):
        raise SqlError("this number cannot be read", where=where, hint="write a smaller number, or a text in quotes")
    return number
