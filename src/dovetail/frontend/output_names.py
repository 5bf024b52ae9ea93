"""The names that Spark gives to columns without an alias, where they are simple."""

from __future__ import annotations

from sqlglot import exp

from dovetail.core.errors import UnsupportedSql
from dovetail.frontend.source_text import SourceText


def name_of(node: exp.Expr, source: SourceText) -> str:
    """The output name of an unaliased item of a SELECT list."""
    name = _generated(node)
    if name is None:
        raise UnsupportedSql(
            "an expression without a name", where=source.where(node), hint="give it one: expression AS name"
        )
    return name


def _generated(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, (exp.Cast, exp.Paren)):
        return _generated(node.this)
    return None
