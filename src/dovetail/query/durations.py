"""Durations in microseconds, as Spark writes them in intervals and in `window()`."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from dovetail.core.errors import QueryError

_BASE_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
MICROSECONDS_BY_UNIT = {**_BASE_UNITS, **{f"{unit}s": factor for unit, factor in _BASE_UNITS.items()}}
LONGEST_US = 10_000 * 366 * _BASE_UNITS["day"]
"""Longer than the time between any two timestamps of Spark SQL, which lie in the years 1 to 9999."""
_FIELDS = ("day", "hour", "minute", "second")
_MONTH_HINT = "months differ in length: write days, for example INTERVAL 30 DAYS"
_TOO_LONG = "more than 10,000 years"
_SHORTER_HINT = "leave the bound out, or write a shorter one"
_FORM_HINT = "write for example 10 SECONDS, '5 minutes' or '1 hour 30 minutes'"


class DurationError(ValueError):
    """A text that is no day-time duration; `hint` says what to write."""

    def __init__(self, what: str, hint: str = _FORM_HINT) -> None:
        super().__init__(what)
        self.hint = hint


def parse_duration(text: str) -> int:
    """Microseconds of `'1 minute 30 seconds'`, with or without the word INTERVAL in front.

    >>> parse_duration("2 seconds"), parse_duration("interval 1 minute 1.5 seconds")
    (2000000, 61500000)
    """
    if not isinstance(text, str):
        raise DurationError(f"{text!r} is no text")
    words = re.sub(r"^\s*interval\s+", "", text.strip(), flags=re.IGNORECASE).split()
    if not words or len(words) % 2:
        raise DurationError(f"{text!r} is no duration")
    return check_length(sum(_part_us(number, unit) for number, unit in zip(words[::2], words[1::2], strict=True)))


def check_length(micros: int) -> int:
    """Raise if it is longer than all of time: then it bounds nothing, and arithmetic with it would run over."""
    if abs(micros) > LONGEST_US:
        raise DurationError(_TOO_LONG, _SHORTER_HINT)
    return micros


def _part_us(number: str, unit: str) -> int:
    word = unit.lower()
    if word.rstrip("s") in ("month", "year"):
        raise DurationError(f"an interval of {number} {unit}", _MONTH_HINT)
    factor = MICROSECONDS_BY_UNIT.get(word)
    if factor is None:
        raise DurationError(f"{unit!r} is no unit of time")
    try:
        amount = Decimal(number)
    except InvalidOperation:
        raise DurationError(f"{number!r} is no number of {unit}") from None
    if not amount.is_finite() or abs(amount) > LONGEST_US:
        raise DurationError(f"{number[:40]} {unit}: {_TOO_LONG}", _SHORTER_HINT)
    if amount != amount.to_integral_value() and word.rstrip("s") != "second":
        raise DurationError(f"a fraction of {unit}", "only seconds may have a fraction")
    micros = amount * factor
    if micros != micros.to_integral_value():
        raise DurationError(f"{number} {unit} is finer than a microsecond", "use at most six digits after the point")
    return int(micros)


def duration_text(micros: int) -> str:
    """In the largest unit that leaves no rest, seconds with a fraction otherwise.

    >>> duration_text(5_000_000), duration_text(60_000_000), duration_text(-1_500_000)
    ('5 seconds', '1 minute', '-1.5 seconds')
    """
    for unit in ("week", "day", "hour", "minute"):
        count, rest = divmod(micros, _BASE_UNITS[unit])
        if count and not rest:
            return f"{count} {unit}{'' if abs(count) == 1 else 's'}"
    seconds = (Decimal(micros) / _BASE_UNITS["second"]).normalize()
    return f"{seconds:f} second{'' if abs(seconds) == 1 else 's'}"


def short_duration(micros: float) -> str:
    """For people, to six digits.

    >>> short_duration(5_000_000), short_duration(90_000_000), short_duration(7_200_000_000), short_duration(3_999_999)
    ('5 s', '90 s', '2 h', '4 s')
    """
    for unit, name in (("day", "d"), ("hour", "h"), ("minute", "min")):
        if micros and micros % _BASE_UNITS[unit] == 0:
            return f"{micros / _BASE_UNITS[unit]:g} {name}"
    return f"{micros / _BASE_UNITS['second']:g} s"


def parse_day_to_second(text: str, lower: str, upper: str) -> int:
    """Microseconds of an ANSI literal such as `'1 02:03:04.5' DAY TO SECOND`."""
    names = [lower.lower(), upper.lower()]
    if not all(name in _FIELDS for name in names) or _FIELDS.index(names[0]) >= _FIELDS.index(names[1]):
        raise DurationError(f"an interval of {lower} TO {upper}")
    fields = _FIELDS[_FIELDS.index(names[0]) : _FIELDS.index(names[1]) + 1]
    is_negative = text.strip().startswith("-")
    numbers = re.split(r"[ :]", text.strip().lstrip("+-"))
    if len(numbers) != len(fields) or not all(re.fullmatch(r"\d+(\.\d{1,6})?", number) for number in numbers):
        what = f"{text!r} is no interval {lower} TO {upper}"
        raise DurationError(what, "write for example '1 02:03:04' DAY TO SECOND")
    total = check_length(sum(_part_us(number, field) for number, field in zip(numbers, fields, strict=True)))
    return -total if is_negative else total


def check_window(size_us: int, slide_us: int, offset_us: int) -> None:
    """Raise unless windows of these can be: Spark's rules for `window(time, size, slide, offset)`."""
    if not 0 < slide_us <= size_us:
        raise QueryError("a window's slide must be positive and at most its size")
    if not 0 <= abs(offset_us) < slide_us:
        raise QueryError("a window's start offset must be smaller than its slide")
