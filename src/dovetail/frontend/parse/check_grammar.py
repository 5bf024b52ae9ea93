"""What Dovetail runs, once more as a grammar: sqlglot passes over much that Spark refuses.

    SELECT id,, i     USING id     x BETWEEN 1 2     FROM a HAVING n > 1 WHERE x = 1     FROM a @v     CAST(x AS TEXT)

A text that compiles is read again here, token by token, as Spark's own grammar has it. Only what compiles comes this
far, so whatever Dovetail refuses anyway has no rule. Besides Spark's there are WITHIN and windows in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from dovetail.core.errors import SqlSyntaxError
from dovetail.frontend.parse.source_text import SourceText
from dovetail.frontend.parse.unsupported import refuse

_NAME = re.compile(r"\w*[A-Za-z_]\w*", re.ASCII)
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_COMPARISONS = ("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=")
_TERMS = ("+", "-", "||")
_FACTORS = ("*", "/", "%", "DIV")
_JOIN_WORDS = ("ANTI", "CROSS", "FULL", "INNER", "JOIN", "LEFT", "NATURAL", "ON", "RIGHT", "SEMI", "USING")
_CLAUSE_WORDS = ("FROM", "WHERE", "GROUP BY", "GROUP", "HAVING", "WITHIN", "UNION", "ORDER BY", "LIMIT")
_NO_ALIAS = (*_JOIN_WORDS, *_CLAUSE_WORDS, "AS")
_JOINS = (
    *(("INNER",), ("CROSS",), ("LEFT",), ("LEFT", "OUTER"), ("LEFT", "SEMI"), ("LEFT", "ANTI"), ("RIGHT",)),
    *(("RIGHT", "OUTER"), ("FULL",), ("FULL", "OUTER"), ("SEMI",), ("ANTI",), ()),
)
_TYPE_NAMES = """
    boolean tinyint byte smallint short int integer bigint long float real double date timestamp timestamp_ntz
    timestamp_ltz string decimal dec numeric
"""
_TYPES = _TYPE_NAMES.split()
_DECIMALS = ("decimal", "dec", "numeric")
_SIZED_TYPES = ("char", "character", "varchar")
"""To Spark's CAST these are text like any other."""
_SUFFIXES = ("L", "S", "Y", "D", "F", "BD")
_TYPED_LITERALS = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_TEXTS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING, TokenType.NATIONAL_STRING)
"""Of these, what stands in the quotes is no word of the text."""


def check_grammar(tokens: Sequence[Token], text: str) -> None:
    """Raise a SqlSyntaxError at the first token that Spark would not read there."""
    _Grammar(tokens, SourceText(text)).statement()


def _word_of(token: Token) -> str:
    if token.token_type == TokenType.IDENTIFIER or token.token_type in _TEXTS:
        return ""
    return " ".join(token.text.upper().split())


class _Grammar:
    """Reads tokens from left to right; each method reads what it is called after."""

    def __init__(self, tokens: Sequence[Token], source: SourceText) -> None:
        self._tokens = tokens
        self._words = [_word_of(token) for token in tokens]
        self._source = source
        self._place = 0

    # -- tokens ------------------------------------------------------------------------------------

    @property
    def _token(self) -> Token | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def _word(self, ahead: int = 0) -> str:
        """The token in capitals; nothing at the end, and for texts and names in quotes."""
        place = self._place + ahead
        return self._words[place] if place < len(self._words) else ""

    def _takes(self, *words: str) -> bool:
        """Whether the words come next; then they are read."""
        if any(self._word(ahead) != word for ahead, word in enumerate(words)):
            return False
        self._place += len(words)
        return True

    def _needs(self, *words: str) -> None:
        for word in words:
            if not self._takes(word):
                raise self._error(word)

    def _error(self, expected: str) -> SqlSyntaxError:
        token = self._token
        near = "at the end" if token is None else f"before {token.text!r}"
        offset = len(self._source.text) if token is None else token.start
        return SqlSyntaxError(
            f"the text does not parse: {expected} is missing {near}",
            where=self._source.where(offset),
            hint="write it as Spark SQL reads it",
        )

    def _is(self, kind: TokenType, ahead: int = 0) -> bool:
        place = self._place + ahead
        return place < len(self._tokens) and self._tokens[place].token_type == kind

    def _takes_name(self, *, but: Sequence[str] = ()) -> bool:
        # To Spark 1e5 is a number wherever it stands.
        is_word = bool(_NAME.fullmatch(self._word())) and not self._is(TokenType.NUMBER)
        is_name = self._is(TokenType.IDENTIFIER) or (is_word and self._word() not in but)
        self._place += is_name
        return is_name

    def _name(self, *, but: Sequence[str] = ()) -> None:
        if not self._takes_name(but=but):
            raise self._error("a name")

    def _list(self, item: Callable[[], None]) -> None:
        item()
        while self._takes(","):
            item()

    # -- clauses -----------------------------------------------------------------------------------

    def statement(self) -> None:
        self._select()
        self._within()
        while self._takes(";"):
            pass
        if self._token is not None:
            raise self._error("the end")

    def _select(self) -> None:
        self._needs("SELECT")
        _ = self._takes("DISTINCT") or self._takes("ALL")
        self._list(self._item)
        self._needs("FROM")
        self._relation()
        while self._takes_join():
            pass
        if self._takes("WHERE"):
            self._expression()
        if self._takes("GROUP BY"):
            self._list(self._expression)
        if self._takes("HAVING"):
            self._expression()

    def _item(self) -> None:
        if self._takes("*"):
            return
        if self._word(1) == "." and self._word(2) == "*":
            self._name()
            self._needs(".", "*")
            return
        self._expression()
        if self._takes("AS"):
            self._name()
        else:
            self._takes_name(but=_NO_ALIAS)

    def _relation(self) -> None:
        is_derived = self._takes("(")
        if is_derived:
            self._select()
            self._needs(")")
        else:
            self._name(but=_JOIN_WORDS)
            if self._takes("["):
                while self._token is not None and not self._takes("]"):
                    self._place += 1
        if self._takes("AS"):
            self._name(but=_JOIN_WORDS)
        else:
            self._takes_name(but=_NO_ALIAS)
        self._within()

    def _within(self) -> None:
        if self._takes("WITHIN"):
            self._takes("INTERVAL")
            self._duration()

    def _takes_join(self) -> bool:
        if self._takes(","):
            self._relation()
            return True
        words = next((words for words in _JOINS if self._takes(*words, "JOIN")), None)
        if words is None:
            return False
        self._relation()
        if self._takes("ON"):
            self._expression()
        elif self._takes("USING"):
            self._needs("(")
            self._list(self._name)
            self._needs(")")
        return True

    # -- expressions -------------------------------------------------------------------------------

    def _expression(self) -> None:
        self._operands(("OR",), lambda: self._operands(("AND",), self._negation))

    def _operands(self, operators: Sequence[str], operand: Callable[[], None]) -> None:
        operand()
        while self._word() in operators:
            self._place += 1
            operand()

    def _negation(self) -> None:
        while self._takes("NOT") or self._takes("!"):
            pass
        if self._word() == "EXISTS" and self._word(1) == "(" and self._word(2) == "SELECT":
            self._place += 1
            self._in_parentheses()
            return
        self._comparison()
        while self._takes_predicate():
            pass

    def _comparison(self) -> None:
        self._operands(_COMPARISONS, self._sum)

    def _sum(self) -> None:
        self._operands(_TERMS, lambda: self._operands(_FACTORS, self._signed))

    def _takes_predicate(self) -> bool:
        if self._takes("IS"):
            self._takes("NOT")
            if self._takes("DISTINCT", "FROM"):
                self._sum()
            elif not any(self._takes(word) for word in ("NULL", "TRUE", "FALSE", "UNKNOWN")):
                raise self._error("NULL")
            return True
        is_negated = self._word() == "NOT" and self._word(1) in ("BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP")
        self._place += is_negated
        if self._takes("BETWEEN"):
            self._sum()
            self._needs("AND")
            self._sum()
        elif self._takes("IN"):
            self._in_parentheses()
        elif any(self._takes(word) for word in ("LIKE", "ILIKE", "RLIKE", "REGEXP")):
            self._sum()
            if self._takes("ESCAPE"):
                self._string()
        else:
            return False
        return True

    def _in_parentheses(self) -> None:
        """A subquery, or one expression or more."""
        self._needs("(")
        if self._word() == "SELECT":
            self._select()
        else:
            self._list(self._expression)
        self._needs(")")

    def _signed(self) -> None:
        while self._takes("-") or self._takes("+"):
            pass
        self._primary()
        while self._takes("::"):
            # Of 5L the tokens are 5, :: and L.
            is_written = self._source.text[self._tokens[self._place - 1].start :].startswith("::")
            if is_written:
                self._type()
            elif not any(self._takes(suffix) for suffix in _SUFFIXES):
                raise self._error("a number")

    def _primary(self) -> None:
        if any(self._is(kind) for kind in _TEXTS):
            self._place += 1
        elif self._is(TokenType.NUMBER):
            if not _NUMBER.fullmatch(self._word()):
                raise self._error("a number")
            self._place += 1
        elif self._takes("("):
            self._expression()
            self._needs(")")
        elif self._word() == "CASE" and self._word(1) not in (".", ",", ")"):
            self._case()
        elif self._word() == "INTERVAL" and (self._is_value(1) or self._word(1) in ("-", "+")):
            self._place += 1
            self._duration()
        elif self._word() in _TYPED_LITERALS and self._is(TokenType.STRING, 1):
            self._place += 2
        else:
            self._name_or_call()

    def _string(self) -> None:
        if not self._is(TokenType.STRING):
            raise self._error("a text in quotes")
        self._place += 1

    def _case(self) -> None:
        self._place += 1
        if self._word() != "WHEN":
            self._expression()
        self._needs("WHEN")
        while True:
            self._expression()
            self._needs("THEN")
            self._expression()
            if not self._takes("WHEN"):
                break
        if self._takes("ELSE"):
            self._expression()
        self._needs("END")

    def _name_or_call(self) -> None:
        is_call = self._word(1) == "("
        name = self._word()
        self._name(but=("FROM", "WHERE", "SELECT") if not is_call else ())
        if is_call:
            self._needs("(")
            self._arguments(name)
            self._needs(")")
        while self._takes("."):
            self._name()

    def _arguments(self, function: str) -> None:
        special = {
            **dict.fromkeys(("CAST", "TRY_CAST"), self._cast_arguments),
            **dict.fromkeys(("SUBSTRING", "SUBSTR"), self._substring_arguments),
            "EXTRACT": self._extract_arguments,
            "TRIM": self._trim_arguments,
            "POSITION": self._position_arguments,
        }
        if function in special:
            special[function]()
        elif self._word() != ")" and not self._takes("*"):
            _ = self._takes("DISTINCT") or self._takes("ALL")
            self._list(self._expression)

    def _cast_arguments(self) -> None:
        self._expression()
        self._needs("AS")
        self._type()

    def _extract_arguments(self) -> None:
        self._name()
        self._needs("FROM")
        self._expression()

    def _trim_arguments(self) -> None:
        has_side = self._takes("BOTH") or self._takes("LEADING") or self._takes("TRAILING")
        if self._word() != "FROM":
            self._list(self._expression)
        if has_side:
            self._needs("FROM")
            self._expression()
        elif self._takes("FROM"):
            self._expression()

    def _substring_arguments(self) -> None:
        self._list(self._expression)
        if self._takes("FROM"):
            self._expression()
            if self._takes("FOR"):
                self._expression()

    def _position_arguments(self) -> None:
        self._sum()
        if self._takes("IN"):
            self._sum()
        while self._takes(","):
            self._expression()

    def _type(self) -> None:
        kind = self._word().lower()
        if kind not in (*_TYPES, *_SIZED_TYPES):
            raise self._error("one of Spark's types")
        self._place += 1
        if kind in _SIZED_TYPES:
            self._needs("(")
            self._size()
            self._needs(")")
        elif kind in _DECIMALS and self._takes("("):
            self._list(self._size)
            self._needs(")")
        if self._word() == "COLLATE":
            assert self._token is not None
            raise refuse("COLLATE", self._source.where(self._token.start), "compare lower(x) or upper(x)")

    def _size(self) -> None:
        if not self._word().isdecimal():
            raise self._error("a number of digits")
        self._place += 1

    def _is_value(self, ahead: int = 0) -> bool:
        return self._is(TokenType.STRING, ahead) or self._is(TokenType.NUMBER, ahead)

    def _duration(self) -> None:
        """`5 SECONDS`, `'5' SECOND`, `'5 seconds'`, `1 MINUTE 30 SECONDS`, `'0 00:00:05' DAY TO SECOND`."""
        while True:
            _ = self._takes("-") or self._takes("+")
            is_text = self._is(TokenType.STRING)
            if not self._is_value():
                raise self._error("a duration")
            self._place += 1
            has_unit = self._word().rstrip("S") in _UNITS and self._takes_name()
            if not has_unit and not is_text:
                raise self._error("a unit of time")
            if has_unit and self._takes("TO"):
                self._name()
            if not has_unit or not (self._is_value() and self._word(1).rstrip("S") in _UNITS):
                return


_UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR")
