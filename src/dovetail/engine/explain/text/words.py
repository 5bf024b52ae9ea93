"""Figures, names and lists in words."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.core.text_tree import TextTree
from dovetail.query.durations import short_duration
from dovetail.stats.estimate import Estimate, Origin, number_text

MAX_NAMES = 6
MAX_LINES = 8
UNKNOWN = "unknown"
_BYTE_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def figure(estimate: Estimate | None) -> str:
    """A plain number was counted; everything else says what it is.

    >>> figure(Estimate(1200.0, Origin.EXACT)), figure(Estimate(1200.0, Origin.ESTIMATED, 0.1))
    ('1,200', 'about 1,200 ±10%')
    """
    if estimate is None:
        return UNKNOWN
    return _with_origin(estimate, number_text(estimate.value))


def percentage(estimate: Estimate | None) -> str:
    """Of a share, in the same way."""
    return UNKNOWN if estimate is None else _with_origin(estimate, share(estimate.value))


def _with_origin(estimate: Estimate, value: str) -> str:
    if estimate.origin is Origin.ESTIMATED:
        return f"about {value} ±{estimate.relative_error:.0%}"
    return value if estimate.origin is Origin.EXACT else f"{value} ({estimate.origin.value})"


def share(value: float | None) -> str:
    """A part of a whole.

    >>> share(1.0), share(0.3337), share(0.0000428)
    ('100%', '33%', '0.0043%')
    """
    if value is None:
        return UNKNOWN
    return f"{100 * value:.0f}%" if value >= 0.1 or not value else f"{100 * value:.2g}%"


def number(value: float | None) -> str:
    return UNKNOWN if value is None else number_text(value)


def milliseconds(value: float | None) -> str:
    return UNKNOWN if value is None else f"{number_text(value)} ms"


def size(count: float) -> str:
    """Bytes.

    >>> size(12), size(90_774), size(1_041_226)
    ('12 bytes', '91 kB', '1 MB')
    """
    unit = 0
    while count >= 1000 and unit < len(_BYTE_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.2g} {_BYTE_UNITS[unit]}" if count < 10 else f"{count:.0f} {_BYTE_UNITS[unit]}"


def seconds(value: float) -> str:
    return short_duration(value * 1e6)


def rows(value: float) -> str:
    """How many are expected.

    >>> rows(34.2), rows(0.52), rows(2e-9)
    ('34', '0.52', 'almost none')
    """
    if 0 < value < 0.005:
        return "almost none"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def counted(count: int, what: str) -> str:
    """With the noun's plural where there is not one.

    >>> counted(1, "row"), counted(1200, "query"), counted(2, "frequent key")
    ('1 row', '1,200 queries', '2 frequent keys')
    """
    if count != 1:
        what = f"{what[:-1]}ies" if what.endswith("y") and not what.endswith("ey") else f"{what}s"
    return f"{count:,} {what}"


def and_list(texts: Sequence[str]) -> str:
    """As people list things.

    >>> and_list(["a"]), and_list(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(texts[:-1]), *texts[-1:]] if len(texts) > 1 else texts)


def names(found: Sequence[str]) -> str:
    """All, or the first few and how many more there are."""
    if len(found) <= MAX_NAMES:
        return and_list(found)
    return f"{', '.join(found[:MAX_NAMES])} and {len(found) - MAX_NAMES} more"


def key_names(keys: Sequence[str]) -> str:
    """Start and end of a window are one key to people.

    >>> key_names(["id", "o.window.end", "o.window.start"])
    'id and o.window'
    """
    found = [key.removesuffix(".start").removesuffix(".end") if _is_window_part(key) else key for key in keys]
    return and_list(list(dict.fromkeys(found)))


def _is_window_part(key: str) -> bool:
    return key.endswith(("window.start", "window.end"))


def lines(head: str, texts: Sequence[str], what: str) -> TextTree:
    return TextTree(head, cut([TextTree(text) for text in texts], what))


def cut(trees: Sequence[TextTree], what: str) -> tuple[TextTree, ...]:
    more = [TextTree(f"{len(trees) - MAX_LINES} more {what}")] if len(trees) > MAX_LINES else []
    return (*trees[:MAX_LINES], *more)
