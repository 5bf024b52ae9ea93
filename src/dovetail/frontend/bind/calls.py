"""Readers of CASE, CAST, function calls and the syntax that stands for function calls."""

from __future__ import annotations

from sqlglot import exp

from dovetail.core.errors import TypeMismatch, UnknownName
from dovetail.frontend.bind.aggregate_functions import AGGREGATES
from dovetail.frontend.bind.coerce import cast_to
from dovetail.frontend.bind.functions import FUNCTIONS, FunctionError
from dovetail.frontend.bind.names import close_matches
from dovetail.frontend.bind.node_binder import NodeBinder, ReaderTable
from dovetail.frontend.bind.predicates import bind_strings, compare_expressions
from dovetail.frontend.merge_branches import merge_branches
from dovetail.frontend.parse.unsupported import HINT_BY_FUNCTION, refuse
from dovetail.frontend.read_types import can_cast, read_type
from dovetail.query.expression import Call, Expression, Literal
from dovetail.query.types import DATE, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ

FUNCTION_READERS = ReaderTable()


@FUNCTION_READERS.reads(exp.RegexpLike)
def _rlike(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression")
    return call_function(binder, node, "rlike", list(bind_strings(binder, node)))


@FUNCTION_READERS.reads(exp.DPipe)
def _concat(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression", "safe")
    return call_function(binder, node, "concat", [binder.operand(node), binder.operand(node, "expression")])


@FUNCTION_READERS.reads(exp.If)
def _if(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "true", "false")
    branches = [binder.bind(node.args["true"])]
    if node.args.get("false") is None:
        raise refuse("IF without an else value", binder.source.where(node), "write IF(condition, value, NULL)")
    return case_of(binder, node, [binder.bind_condition(node.this)], [*branches, binder.bind(node.args["false"])])


@FUNCTION_READERS.reads(exp.Case)
def _case(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "ifs", "default")
    conditions, values = [], []
    for branch in node.args["ifs"]:
        binder.consume(branch, "this", "true")
        if node.args.get("this") is None:
            conditions.append(binder.bind_condition(branch.this))
        else:
            tested = compare_expressions(binder, branch, "eq", binder.operand(node), binder.operand(branch))
            conditions.append(tested)
        values.append(binder.bind(branch.args["true"]))
    default = node.args.get("default")
    values.append(binder.bind(default) if default is not None else Literal(None, NULL))
    return case_of(binder, node, conditions, values)


def case_of(binder: NodeBinder, node: exp.Expr, conditions: list[Expression], values: list[Expression]) -> Expression:
    merged = merge_branches(values, binder.timezone)
    if merged is None:
        kinds = sorted({str(value.type) for value in values})
        raise TypeMismatch(
            f"branches of {' and '.join(kinds)}",
            where=binder.source.where(node),
            hint=f"write CAST(... AS {kinds[0].upper()}) so that all branches have one type",
        )
    args = [part for pair in zip(conditions, merged, strict=False) for part in pair]
    return Call("case", (*args, merged[-1]), merged[-1].type)


@FUNCTION_READERS.reads(exp.Cast)
def _cast(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "to", "_type")
    target = read_type(node.args["to"], node, binder.source)
    value = binder.bind(node.this)
    if value.type == target:
        return value
    problem = can_cast(value.type, target)
    if problem is not None:
        raise TypeMismatch(f"CAST of {value.type} to {target}", where=binder.source.where(node), hint=problem)
    folded = cast_to(value, target, binder.timezone)
    is_time_text = isinstance(value, Literal) and value.type == STRING and target in (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    if is_time_text and not isinstance(folded, Literal):
        assert isinstance(value, Literal)
        hint = "write it as in '2024-12-31 23:59:59'"
        raise TypeMismatch(f"{value.value!r} is no {target}", where=binder.source.where(node), hint=hint)
    return folded


@FUNCTION_READERS.reads(exp.Anonymous)
def _function(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expressions")
    if not isinstance(node.this, str):
        raise refuse("a quoted function name", binder.source.where(node), "write the name without quotes")
    name = node.this.lower()
    if name == "window":
        hint = "group by it, or join on w of derived tables (SELECT *, window(ts, '4 seconds') AS w FROM stream)"
        raise refuse("window() here", binder.source.where(node), hint)
    if name not in FUNCTIONS:
        if name in HINT_BY_FUNCTION:
            what = f"{name}() here" if name in AGGREGATES else f"{name}()"
            raise refuse(what, binder.source.where(node), HINT_BY_FUNCTION[name])
        what = f"unknown function {name!r}"
        raise UnknownName(what, where=binder.source.where(node), hint=close_matches(name, FUNCTIONS))
    return call_function(binder, node, name, [binder.bind(arg) for arg in node.args["expressions"]])


@FUNCTION_READERS.reads(exp.Extract)
def _extract(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression")
    field = node.this.name.lower().rstrip("s")
    if field not in ("year", "month", "day", "hour", "minute", "quarter", "week"):
        hint = "use year, quarter, month, week, day, hour or minute, or second(x) for whole seconds"
        raise refuse(f"EXTRACT of {node.this.name}", binder.source.where(node), hint)
    name = "weekofyear" if field == "week" else field
    return call_function(binder, node, name, [binder.operand(node, "expression")])


@FUNCTION_READERS.reads(exp.StrPosition)
def _position(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "substr")
    return call_function(binder, node, "locate", [binder.operand(node, "substr"), binder.operand(node)])


@FUNCTION_READERS.reads(exp.Substring)
def _substring(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "start", "length")
    keys = [key for key in ("this", "start", "length") if node.args.get(key) is not None]
    return call_function(binder, node, "substring", [binder.operand(node, key) for key in keys])


@FUNCTION_READERS.reads(exp.Trim)
def _trim(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "position", "expression")
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    args = [binder.operand(node)]
    if node.args.get("expression") is not None:
        return call_function(binder, node, name, [binder.operand(node, "expression"), *args])
    return call_function(binder, node, name, args)


def call_function(binder: NodeBinder, node: exp.Expr, name: str, args: list[Expression]) -> Expression:
    try:
        return FUNCTIONS[name](args, binder.timezone)
    except FunctionError as error:
        raise TypeMismatch(f"{name}(): {error}", where=binder.source.where(node), hint=error.hint) from None
