"""Writes the list of scalar functions in docs/sql.md from their table: `python -m tools.functions_page`."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from dovetail.frontend.bind.functions import FUNCTIONS, FunctionError

PAGE = Path(__file__).parents[1] / "docs" / "sql.md"
BEGIN = "<!-- functions: begin, by `make functions` from src/dovetail/frontend/bind/functions.py -->"
END = "<!-- functions: end -->"


def page(text: str) -> str:
    """The page with the list as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{_table()}{END}{after}"


def _table() -> str:
    names_by_count: dict[str, list[str]] = defaultdict(list)
    for name in sorted(FUNCTIONS):
        names_by_count[_argument_count(name)].append(f"`{name}`")
    rows = [f"| {count} | {', '.join(names)} |" for count, names in sorted(names_by_count.items())]
    return "\n".join(("| arguments | functions |", "|---|---|", *rows)) + "\n"


def _argument_count(name: str) -> str:
    """A function is bound by nothing but its table; without arguments it refuses, and says how many it takes."""
    try:
        FUNCTIONS[name]([], "UTC")
    except FunctionError as error:
        return error.hint.removeprefix("pass ")
    raise ValueError(f"{name}() takes no arguments: say in {__name__} how such a one is listed")


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
