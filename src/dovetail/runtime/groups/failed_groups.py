"""Who suffers when a part of an aggregation fails, and who pays for it: the queries that ask for it, and no others."""

from __future__ import annotations

from collections.abc import Set

from dovetail.plan.group_plan import COUNTED_BY_DETAIL, GroupPlan, GroupTable, GroupUser
from dovetail.query.aggregation import AggregateFunction
from dovetail.query.expression import Column
from dovetail.runtime.groups.partial_groups import PartialGroups


def users_of_part(group: GroupPlan, part: str) -> set[str]:
    """The users that need the partial column or the table of this name."""
    for column in group.columns:
        if column.name == part:
            return {user.query for user in group.users if column.arguments in _arguments(user, None)}
    table = next(table for table in group.details if table.id == part)
    return {user.query for user in group.users if table.arguments in _arguments(user, COUNTED_BY_DETAIL[table.detail])}


def users_of_argument(group: GroupPlan, name: str) -> set[str]:
    """The users some aggregate of which speaks of this column."""
    return {user.query for user in group.users if any(name in names for names in _arguments(user, None))}


def users_of_most_bytes(group: GroupPlan, table: GroupTable, rows: PartialGroups) -> set[str]:
    """Who pays for handling rows of a table: all, unless most of them is what some of the users ask for."""
    users = {user.query for user in group.users}
    if table.id != group.id:
        return users_of_part(group, table.id) or users
    widest = max(rows.columns, key=lambda name: rows.columns[name].nbytes, default=None)
    is_most = widest is not None and 2 * rows.columns[widest].nbytes > rows.size_bytes
    if widest is None or not is_most or all(column.name != widest for column in group.columns):
        return users
    return users_of_part(group, widest) or users


def unwanted_parts(group: GroupPlan, void_queries: Set[str]) -> set[str]:
    """The partial columns and tables that only queries ask for whose answers are void."""
    parts = [*(column.name for column in group.columns), *(table.id for table in group.details)]
    users_by_part = {part: users_of_part(group, part) for part in parts}
    return {part for part, users in users_by_part.items() if users and users <= void_queries}


def _arguments(user: GroupUser, function: AggregateFunction | None) -> set[tuple[str, ...]]:
    """What the user's aggregates speak of; those of one function only, if there is one."""
    return {
        tuple(argument.name for argument in aggregate.arguments if isinstance(argument, Column))
        for aggregate in user.aggregates
        if function is None or aggregate.function is function
    }
