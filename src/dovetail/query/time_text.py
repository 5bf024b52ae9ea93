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
_EPOCH_ORDINAL = _EPOCH.toordinal()
_MICROSECOND = datetime.timedelta(microseconds=1)
_ZERO = datetime.timedelta()
_DAY_US = 86_400_000_000
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""After so many years the calendar, days of the week included, begins again; and so do the rules of time zones."""
MIN_YEAR, MAX_YEAR = -32_767, 32_767
"""Arrow's calendar knows no others."""
_BLANK = "".join(map(chr, range(0x21))) + "\x7f"  # what Spark trims before it reads a value
_JAVA_BLANK = "".join(map(chr, range(0x21)))  # what Java trims
_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL | re.ASCII)
_TIMESTAMP = re.compile(
    r"([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2})(?::(\d{1,2})"
    r"(?::(\d{1,2})(?:\.(\d*)(\D.*)?|([^\d.].*))?)?)?)?)?)?",
    re.DOTALL | re.ASCII,
)
_TIME = re.compile(r"T?\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d*)?(?:\D.*)?)?", re.DOTALL | re.ASCII)
_OFFSET = re.compile(
    r"([+-])(?:(\d)|(\d\d)|(\d\d)(\d\d)|(\d\d):(\d\d)|(\d\d)(\d\d)(\d\d)|(\d\d):(\d\d):(\d\d))", re.ASCII
)
_MAX_OFFSET = datetime.timedelta(hours=18)
_REGION = re.compile(r"(?!posix/|right/|localtime|posixrules|Factory)[A-Za-z][A-Za-z0-9~/._+-]+", re.ASCII)
_SHORT_NAMES = """
    EST=-05:00 HST=-10:00 MST=-07:00 ACT=Australia/Darwin AET=Australia/Sydney
    AGT=America/Argentina/Buenos_Aires ART=Africa/Cairo AST=America/Anchorage BET=America/Sao_Paulo
    BST=Asia/Dhaka CAT=Africa/Harare CNT=America/St_Johns CST=America/Chicago CTT=Asia/Shanghai
    EAT=Africa/Addis_Ababa ECT=Europe/Paris IET=America/Indiana/Indianapolis IST=Asia/Kolkata JST=Asia/Tokyo
    MIT=Pacific/Apia NET=Asia/Yerevan NST=Pacific/Auckland PLT=Asia/Karachi PNT=America/Phoenix
    PRT=America/Puerto_Rico PST=America/Los_Angeles SST=Pacific/Guadalcanal VST=Asia/Ho_Chi_Minh
"""
_REGION_BY_SHORT_NAME = dict(pair.split("=") for pair in _SHORT_NAMES.split())
"""Java's old names of three letters, which Spark still takes."""


_UTC_NAMES = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")


def has_offset(timezone: str) -> bool:
    """Whether local time may differ from UTC."""
    return timezone not in _UTC_NAMES


@lru_cache(maxsize=64)
def offset_range_us(timezone: str) -> int:
    """How far apart the offsets from UTC are that a zone ever has: by so much its clocks may differ from elapsed time.

    No zone keeps an offset for less than some days, and none had one of its own before 1800 or new rules after 2037.
    """
    zone = zone_of(timezone)
    if isinstance(zone, datetime.timezone) or not has_offset(timezone):
        return 0
    first, last = datetime.date(1800, 1, 1).toordinal(), datetime.date(2040, 1, 1).toordinal()
    offsets = {zone.utcoffset(datetime.datetime.fromordinal(day)) or _ZERO for day in range(first, last)}
    return (max(offsets) - min(offsets)) // _MICROSECOND


class TimeTextError(ValueError):
    """A text that is no such date or timestamp."""


def read_date(text: str) -> datetime.date:
    """The date of a text.

    >>> read_date("2024-2")
    datetime.date(2024, 2, 1)
    """
    days = read_days(text)
    if not 0 < days + _EPOCH_ORDINAL <= datetime.date.max.toordinal():
        raise TimeTextError(f"{text!r} is no date from year 1 to 9999")
    return datetime.date.fromordinal(days + _EPOCH_ORDINAL)


def read_days(text: str) -> int:
    """The date of a text in days since the epoch.

    >>> read_days("1970-01-02"), read_days("10000-01-01")
    (1, 2932897)
    """
    match = _DATE.fullmatch(text.strip(_BLANK))
    if match is None:
        raise TimeTextError(f"{text!r} is no date such as 2024-12-31")
    year, month, day = (int(part or 1) for part in match.groups())
    return _days(text, year, month, day)


def _days(text: str, year: int, month: int, day: int) -> int:
    if not MIN_YEAR <= year <= MAX_YEAR:
        raise TimeTextError(f"{text!r} is beyond the year {MAX_YEAR}")
    cycles = 0 if datetime.MINYEAR <= year <= datetime.MAXYEAR else (year - 2000) // _CYCLE_YEARS
    try:
        ordinal = datetime.date(year - cycles * _CYCLE_YEARS, month, day).toordinal()
    except ValueError as error:
        raise TimeTextError(f"{text!r} is no date: {error}") from None
    return ordinal - _EPOCH_ORDINAL + cycles * _CYCLE_DAYS


def date_text(days: int) -> str:
    """A date as Spark prints it.

    >>> date_text(0), date_text(2932897)
    ('1970-01-01', '+10000-01-01')
    """
    ordinal = days + _EPOCH_ORDINAL
    if 0 < ordinal <= datetime.date.max.toordinal():
        return datetime.date.fromordinal(ordinal).isoformat()
    cycles = (ordinal - 1) // _CYCLE_DAYS
    found = datetime.date.fromordinal(ordinal - cycles * _CYCLE_DAYS)
    year = found.year + cycles * _CYCLE_YEARS
    sign = "-" if year < 0 else "+" if year > datetime.MAXYEAR else ""
    return f"{sign}{abs(year):04d}-{found.month:02d}-{found.day:02d}"


def timestamp_text(local_us: int) -> str:
    """A wall-clock time as Spark prints it.

    >>> timestamp_text(1_500_000)
    '1970-01-01 00:00:01.5'
    """
    days, of_day = divmod(local_us, _DAY_US)
    seconds, fraction = divmod(of_day, 1_000_000)
    text = f"{date_text(days)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def read_timestamp_us(text: str, timezone: str) -> int:
    """Microseconds since the epoch; texts without a zone are local times of `timezone`."""
    local_us, zone = _read_local(text)
    return instant_us(local_us, zone_of(zone or timezone))


def read_timestamp_ntz_us(text: str) -> int:
    """Microseconds of the wall clock; a zone in the text must be one, and is passed over, as in Spark."""
    local_us, zone = _read_local(text)
    if zone is not None:
        zone_of(zone)
    return local_us


def instant_us(local_us: int, zone: datetime.tzinfo) -> int:
    """The instant of a wall-clock time: the earlier of two; in a gap, as far behind its start as the clock is."""
    near_us, far_us = _into_calendar(local_us)
    moment = (_EPOCH + near_us * _MICROSECOND).replace(tzinfo=zone)
    return (moment - _EPOCH) // _MICROSECOND + far_us


def local_us(instant: int, zone: datetime.tzinfo) -> int:
    """What the wall clock of a zone shows at an instant."""
    near_us, far_us = _into_calendar(instant)
    moment = (_EPOCH + near_us * _MICROSECOND).astimezone(zone)
    return (moment.replace(tzinfo=datetime.UTC) - _EPOCH) // _MICROSECOND + far_us


def is_in_calendar(micros: int) -> bool:
    """Whether a time is of a year from 1 to 9999, give or take a day: those that constants may have."""
    return _FIRST_US <= micros <= _LAST_US


def _into_calendar(micros: int) -> tuple[int, int]:
    """A time within Python's calendar, and how far that is from the true one: whole cycles of 400 years."""
    cycle_us = _CYCLE_DAYS * _DAY_US
    cycles = 0
    if micros < _FIRST_US:
        cycles = (micros - _FIRST_US) // cycle_us
    elif micros > _LAST_US:
        cycles = -((_LAST_US - micros) // cycle_us)
    return micros - cycles * cycle_us, cycles * cycle_us


# A day from the ends of Python's calendar, so that any offset from UTC stays within.
_FIRST_US = (2 - _EPOCH_ORDINAL) * _DAY_US
_LAST_US = (datetime.date.max.toordinal() - 1 - _EPOCH_ORDINAL) * _DAY_US


def _read_local(text: str) -> tuple[int, str | None]:
    """The wall-clock time in microseconds, and the name of the zone if there is one."""
    trimmed = text.strip(_BLANK)
    match = _TIMESTAMP.fullmatch(trimmed)
    if match is None:
        if _TIME.fullmatch(trimmed):
            raise TimeTextError(f"{text!r} has no date, and the current one is another tomorrow: write both")
        raise TimeTextError(f"{text!r} is no timestamp such as 2024-12-31 23:59:59.5")
    *fields, fraction, zone_after_fraction, zone = match.groups()
    zone = zone_after_fraction or zone
    year, month, day = (int(part or 1) for part in fields[:3])
    hour, minute, second = (int(part or 0) for part in fields[3:])
    if hour > 23 or minute > 59 or second > 59:
        raise TimeTextError(f"{text!r} is no timestamp: there is no such time of day")
    microsecond = int(((fraction or "") + "000000")[:6])
    seconds = (hour * 60 + minute) * 60 + second
    return _days(text, year, month, day) * _DAY_US + seconds * 1_000_000 + microsecond, zone and zone.strip(_JAVA_BLANK)


@lru_cache(maxsize=256)
def zone_of(name: str) -> datetime.tzinfo:
    """A zone by its name or its offset from UTC, as Java and Spark read it."""
    padded = re.sub(r"([+-])(\d):", r"\g<1>0\2:", name, count=1, flags=re.ASCII)
    padded = re.sub(r"([+-])(\d\d):(\d)$", r"\1\2:0\3", padded, count=1, flags=re.ASCII)
    known = _REGION_BY_SHORT_NAME.get(padded, padded)
    offset = re.fullmatch(r"(?:UTC|GMT|UT)?([+-].*)", known, re.DOTALL)
    if offset is not None:
        return _fixed_zone(offset[1], name)
    try:
        if known in ("Z", "UTC", "GMT", "UT"):
            return ZoneInfo("UTC")
        if _REGION.fullmatch(known):
            return ZoneInfo(known)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise TimeTextError(f"{name!r} is no time zone")


def _fixed_zone(offset: str, name: str) -> datetime.tzinfo:
    match = _OFFSET.fullmatch(offset)
    parts = [int(part) for part in match.groups()[1:] if part is not None] if match else [99]
    hours, minutes, seconds = (*parts, 0, 0)[:3]
    distance = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if match is None or minutes > 59 or seconds > 59 or distance > _MAX_OFFSET:
        raise TimeTextError(f"{name!r} is no time zone")
    return datetime.timezone(-distance if match[1] == "-" else distance)
