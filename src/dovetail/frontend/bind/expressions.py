"""Syntax nodes to typed expressions, with every implicit cast of Spark written out.

The binder is an allow-list: a node kind without a reader is refused, and so is every argument of a
node that its reader does not consume.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sqlglot import exp

from dovetail.frontend.bind.calls import FUNCTION_READERS
from dovetail.frontend.bind.node_binder import NodeBinder, Reader
from dovetail.frontend.bind.operators import OPERATOR_READERS
from dovetail.frontend.bind.predicates import PREDICATE_READERS, compare_expressions

__all__ = ["ExpressionBinder", "compare_expressions"]


class ExpressionBinder(NodeBinder):
    """Binds the expressions of one SELECT."""

    readers: ClassVar[Mapping[type[exp.Expr], Reader]] = {
        **OPERATOR_READERS,
        **PREDICATE_READERS,
        **FUNCTION_READERS,
    }
