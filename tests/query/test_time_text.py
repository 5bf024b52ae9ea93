"""How far the clocks of a zone are from elapsed time."""

from __future__ import annotations

import datetime
from random import Random
from zoneinfo import ZoneInfo

import pytest

from dovetail.query.time_text import offset_range_us

HOUR_US = 3_600_000_000


@pytest.mark.parametrize("timezone", ["UTC", "Z", "+02:00", "-09:30", "GMT+3", "Etc/GMT+5", "EST"])
def test_clocks_that_are_never_changed(timezone: str) -> None:
    assert offset_range_us(timezone) == 0


@pytest.mark.parametrize("timezone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"])
def test_no_two_moments_have_offsets_further_apart(timezone: str) -> None:
    zone, rng = ZoneInfo(timezone), Random(timezone)
    first, last = datetime.datetime(1801, 1, 1), datetime.datetime(2400, 1, 1)  # noqa: DTZ001 - of any zone
    moments = [first + rng.random() * (last - first) for _ in range(20_000)]
    offsets = [zone.utcoffset(moment) for moment in moments]
    assert max(offsets) - min(offsets) <= datetime.timedelta(microseconds=offset_range_us(timezone))


def test_changes_count_whatever_their_size() -> None:
    assert HOUR_US <= offset_range_us("Europe/Berlin") < 3 * HOUR_US
    # West of the date line until 2011, east of it since, and both with summer time.
    assert offset_range_us("Pacific/Apia") >= 25 * HOUR_US
