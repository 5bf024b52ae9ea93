"""Time bounds in zones whose clocks are changed."""

from __future__ import annotations

from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.stream import Stream
from dovetail.query.time_text import offset_range_us


def test_days_in_a_zone_with_summer_time_loosen_the_bound_and_stay_a_residual(streams: dict[str, Stream]) -> None:
    text = "SELECT a.x FROM a JOIN b ON a.k = b.k AND b.ts <= a.ts + INTERVAL 2 DAYS"
    exact = compile_sql(text, streams)
    assert [bound.upper_us for bound in exact.time_bounds] == [2 * 86_400_000_000]
    assert exact.residuals == ()
    loose = compile_sql(text, streams, timezone="Europe/Berlin")
    slack = offset_range_us("Europe/Berlin")
    assert [bound.upper_us for bound in loose.time_bounds] == [2 * 86_400_000_000 + slack]
    assert [str(residual) for residual in loose.residuals] == ["le(b.ts, time_add(a.ts, 172800000000:interval))"]


def test_differences_in_a_zone_with_summer_time_are_of_its_clocks(streams: dict[str, Stream]) -> None:
    text = "SELECT a.x FROM a JOIN b ON a.k = b.k AND b.ts - a.ts <= INTERVAL 90 MINUTES"
    for zone in ("UTC", "+02:00", "Etc/GMT+5"):
        exact = compile_sql(text, streams, timezone=zone)
        assert [bound.upper_us for bound in exact.time_bounds] == [5_400_000_000]
        assert exact.residuals == ()
    loose = compile_sql(text, streams, timezone="Europe/Berlin")
    assert [bound.upper_us for bound in loose.time_bounds] == [5_400_000_000 + offset_range_us("Europe/Berlin")]
    shown = "le(time_diff(cast(b.ts):timestamp_ntz, cast(a.ts):timestamp_ntz), 5400000000:interval)"
    assert [str(residual) for residual in loose.residuals] == [shown]


def test_each_question_to_the_clocks_loosens_the_bound(streams: dict[str, Stream]) -> None:
    text = "SELECT a.x FROM a JOIN b ON a.k = b.k AND (b.ts - INTERVAL 1 DAY) - a.ts <= INTERVAL 1 HOUR"
    loose = compile_sql(text, streams, timezone="Pacific/Apia")
    assert [bound.upper_us for bound in loose.time_bounds] == [25 * 3_600_000_000 + 2 * offset_range_us("Pacific/Apia")]
