"""Time conditions about moments at which clocks are changed: answers are those of Java, and no state goes early."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from dovetail.testing.local_session import LocalSession
from tests.support.keep_failures import first_seed

TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("id", pa.int64()), ("ts", TIME), ("seen", TIME)])
CHANGES = {
    "Europe/Berlin": ("2025-10-26T01:00", "2026-03-29T01:00"),
    "America/Havana": ("2025-11-02T05:00", "2026-03-08T05:00"),
    "Australia/Lord_Howe": ("2026-04-04T15:00", "2025-10-04T15:30"),
    "Pacific/Apia": ("2011-12-30T10:00", "2012-03-31T14:00"),
}
Moment = datetime.datetime
Row = tuple[int, Moment, Moment]
Holds = Callable[[Row, Row, ZoneInfo], bool]
HOUR, DAY = datetime.timedelta(hours=1), datetime.timedelta(days=1)


def shown(moment: Moment, zone: ZoneInfo) -> Moment:
    """What the clocks show."""
    return moment.astimezone(zone).replace(tzinfo=None)


def moved(moment: Moment, days: int, zone: ZoneInfo) -> Moment:
    """Days of the calendar later, as java.time has it: with the same offset, else the earlier, else behind the gap."""
    wanted = shown(moment, zone) + days * DAY
    found = [wanted.replace(tzinfo=zone, fold=fold).astimezone(datetime.UTC) for fold in (0, 1)]
    real = [each for each in found if shown(each, zone) == wanted]
    kept = [each for each in real if each.astimezone(zone).utcoffset() == moment.astimezone(zone).utcoffset()]
    return [*kept, *real, found[0]][0]


CONDITIONS: dict[str, Holds] = {
    "b.ts - a.ts <= INTERVAL 90 MINUTES AND b.ts >= a.ts": lambda a, b, zone: (
        shown(b[1], zone) - shown(a[1], zone) <= 1.5 * HOUR and b[1] >= a[1]
    ),
    "b.ts - a.ts BETWEEN INTERVAL -90 MINUTES AND INTERVAL 90 MINUTES": lambda a, b, zone: (
        abs(shown(b[1], zone) - shown(a[1], zone)) <= 1.5 * HOUR
    ),
    "b.ts - a.ts = INTERVAL 1 HOUR": lambda a, b, zone: shown(b[1], zone) - shown(a[1], zone) == HOUR,
    "b.ts BETWEEN a.ts - INTERVAL 1 DAY AND a.ts": lambda a, b, zone: moved(a[1], -1, zone) <= b[1] <= a[1],
    "b.ts BETWEEN a.ts AND a.ts + INTERVAL 2 DAYS": lambda a, b, zone: a[1] <= b[1] <= moved(a[1], 2, zone),
    "b.seen - a.seen < INTERVAL 1 HOUR AND a.seen <= b.seen": lambda a, b, zone: (
        shown(b[2], zone) - shown(a[2], zone) < HOUR and a[2] <= b[2]
    ),
    "b.ts <= a.ts + INTERVAL 90 MINUTES AND b.ts >= a.ts": lambda a, b, _: a[1] <= b[1] <= a[1] + 1.5 * HOUR,
}


def rows_near(change: str, rng: Random) -> list[Row]:
    """In the order of their times."""

    def moment() -> Moment:
        minutes = 15 * rng.randint(-14, 14) + rng.choice([0, 0, 0, -1440, 1440])
        return Moment.fromisoformat(change).replace(tzinfo=datetime.UTC) + datetime.timedelta(minutes=minutes)

    times = sorted(moment() for _ in range(60))
    return [(number, time, moment()) for number, time in enumerate(times)]


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def pairs_of(sql: str, rows: list[Row], zone: str, checkpoint: Path) -> set[tuple[int | None, int | None]]:
    """Rows come one batch after another, so that state can go in between."""
    with LocalSession(checkpoint, timezone=zone) as session:
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA, "ts", "0 seconds")
        session.create_query(sql, "q")
        for start in range(0, len(rows), 12):
            session.push({name: table(rows[start : start + 12]) for name in ("a", "b")})
        # A row of long after, so that outer joins answer.
        late = [(999, rows[-1][1] + 30 * DAY, rows[-1][2] + 30 * DAY)]
        session.push({"a": table(late), "b": table(late)})
        found = session.results("q")
    return {(row["id"], row["other"]) for row in found.to_pylist() if 999 not in (row["id"], row["other"])}


@pytest.mark.parametrize("zone", CHANGES)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_joins_over_a_change_are_those_of_the_clocks(condition: str, zone: str, tmp_path: Path) -> None:
    rng = Random(f"{first_seed()} {zone} {condition}")
    for number, change in enumerate(CHANGES[zone]):
        rows = rows_near(change, rng)
        expected = {(a[0], b[0]) for a in rows for b in rows if CONDITIONS[condition](a, b, ZoneInfo(zone))}
        assert expected
        sql = f"SELECT a.id, b.id AS other FROM a JOIN b ON {condition}"
        assert pairs_of(sql, rows, zone, tmp_path / str(number)) == expected


@pytest.mark.parametrize("zone", CHANGES)
def test_outer_joins_over_a_change_wait_long_enough(zone: str, tmp_path: Path) -> None:
    rows = rows_near(CHANGES[zone][0], Random(f"{first_seed()} {zone}"))
    condition = "b.ts - a.ts <= INTERVAL 90 MINUTES AND b.ts >= a.ts"
    matches = {
        a[0]: [b[0] for b in rows if b[0] % 9 == 0 and CONDITIONS[condition](a, b, ZoneInfo(zone))] for a in rows
    }
    expected = {(a, b) for a, found in matches.items() for b in found or [None]}
    sql = f"SELECT a.id, b.id AS other FROM a LEFT JOIN b ON b.id % 9 = 0 AND {condition}"
    assert pairs_of(sql, rows, zone, tmp_path) == expected


GROUPED = """SELECT x.w.start AS s, x.w.end AS e, x.w, COUNT(*) AS n
    FROM (SELECT *, window(ts, {0}) AS w FROM a) AS x GROUP BY x.w"""


@pytest.mark.parametrize("zone", CHANGES)
@pytest.mark.parametrize(("window", "days"), [("'1 day'", 1), ("'2 weeks'", 14), ("'2 days', '1 day', '5 hours'", 2)])
def test_a_window_ends_its_size_after_its_start_whatever_the_clocks_do(
    window: str, days: int, zone: str, tmp_path: Path
) -> None:
    rows = rows_near(CHANGES[zone][0], Random(f"{first_seed()} {zone}"))
    with LocalSession(tmp_path, timezone=zone) as session:
        session.create_stream("a", SCHEMA, "ts", "0 seconds")
        session.create_query(GROUPED.format(window), "q")
        session.push({"a": table(rows)})
        session.push({"a": table([(999, rows[-1][1] + 30 * DAY, rows[-1][2])])})
        found = session.results("q")
    assert len(found)
    micros = [found[name].cast(pa.int64()).to_pylist() for name in ("s", "e")]
    assert [end - start for start, end in zip(*micros, strict=True)] == [days * 86_400_000_000] * len(found)
    assert [row["w"] for row in found.to_pylist()] == [{"start": r["s"], "end": r["e"]} for r in found.to_pylist()]
