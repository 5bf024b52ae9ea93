"""docs/sql.md lists every scalar function that runs."""

from __future__ import annotations

from dovetail.frontend.bind.functions import FUNCTIONS
from tools.functions_page import PAGE, page


def test_the_page_lists_the_functions_of_the_table() -> None:
    text = PAGE.read_text()
    assert text == page(text), "run: make functions"
    listed = text.partition("## Functions")[2].partition("\n## ")[0]
    assert [name for name in FUNCTIONS if f"`{name}`" not in listed] == []
