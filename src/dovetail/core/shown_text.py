"""A text that a notebook shows as its lines."""

from __future__ import annotations

from html import escape
from typing import Any


class ShownText(str):
    """A string in every way; IPython, which asks by these names, shows its lines in place of one long literal."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        for number, line in enumerate(self.split("\n")):
            if number:
                printer.break_()
            printer.text(line)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"
