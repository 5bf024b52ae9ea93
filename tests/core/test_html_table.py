from __future__ import annotations

from dovetail.core.html_table import html_table

EVIL = "<script>alert('&')</script>"


def test_everything_is_escaped() -> None:
    for page in (html_table(EVIL, (EVIL,), [(EVIL,)]), html_table(EVIL, (), [(EVIL, EVIL)])):
        assert "<script" not in page
        assert page.count("&lt;script&gt;alert(&#x27;&amp;&#x27;)") == 3


def test_figures_have_separators_and_nothing_is_an_empty_cell() -> None:
    assert html_table("t", ("a", "b"), [(1234567, None)]).endswith("<td>1,234,567</td><td></td></tr></table></div>")
