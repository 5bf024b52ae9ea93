"""Dates and timestamps written as text, the way Spark's casts read them.

Shared by the front end (constants) and the evaluator (casts of string columns), so that
`ts > '2024-01-01'` and `CAST(text AS TIMESTAMP)` cannot disagree.
"""

from __future__ import annotations

import datetime
import re
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_BLANK = "".join(map(chr, range(0x21))) + "\x7f"  # what Spark trims before it reads a value
_DATE = re.compile(r"\+?(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL | re.ASCII)
_TIMESTAMP = re.compile(
    r"\+?(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T]"
    r"(?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?)?(?:\s*([A-Za-z+-].*))?)?)?)?)?",
    re.ASCII,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(\d{1,2})(?::(\d{1,2}))?)?", re.ASCII)


_UTC_NAMES = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")


def has_offset(timezone: str) -> bool:
    """Whether local time may differ from UTC."""
    return timezone not in _UTC_NAMES


class TimeTextError(ValueError):
    """A text that is no such date or timestamp."""


def read_date(text: str) -> datetime.date:
    """The date of a text.

    >>> read_date("2024-2")
    datetime.date(2024, 2, 1)
    """
    match = _DATE.fullmatch(text.strip(_BLANK))
    if match is None:
        raise TimeTextError(f"{text!r} is no date such as 2024-12-31")
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        return datetime.date(year, month, day)
    except ValueError as error:
        raise TimeTextError(f"{text!r} is no date: {error}") from None


def read_timestamp_us(text: str, timezone: str) -> int:
    """Microseconds since the epoch; texts without a zone are local times of `timezone`."""
    local, zone = _read_local(text)
    return (local.replace(tzinfo=zone_of(zone or timezone)) - _EPOCH) // _MICROSECOND


def read_timestamp_ntz_us(text: str) -> int:
    """Microseconds of the wall clock; a zone in the text is passed over, as in Spark."""
    local, _ = _read_local(text)
    return (local - _EPOCH) // _MICROSECOND


def _read_local(text: str) -> tuple[datetime.datetime, str | None]:
    """The wall-clock time, labelled UTC for want of a zone, and the name of the zone if there is one."""
    match = _TIMESTAMP.fullmatch(text.strip(_BLANK))
    if match is None:
        raise TimeTextError(f"{text!r} is no timestamp such as 2024-12-31 23:59:59.5")
    *fields, fraction, zone = match.groups()
    year, month, day = (int(part or 1) for part in fields[:3])
    hour, minute, second = (int(part or 0) for part in fields[3:])
    microsecond = int(((fraction or "") + "000000")[:6])
    try:
        return datetime.datetime(year, month, day, hour, minute, second, microsecond, tzinfo=datetime.UTC), zone
    except ValueError as error:
        raise TimeTextError(f"{text!r} is no timestamp: {error}") from None


@lru_cache(maxsize=256)
def zone_of(name: str) -> datetime.tzinfo:
    match = _OFFSET.fullmatch(name)
    if match:
        sign, *parts = match.groups()
        hours, minutes, seconds = (int(part or 0) for part in parts)
        offset = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return datetime.timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo("UTC" if name == "Z" else name)
    except (ZoneInfoNotFoundError, ValueError):
        raise TimeTextError(f"{name!r} is no time zone") from None
