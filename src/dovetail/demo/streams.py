"""The four streams of AJoin's running example, made from Spark's rate source.

Every column is a hash of the row's number, so a run always sees the same rows, only their times differ. Rates and
value ranges are chosen so that each demo query yields some tens of results a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from pyspark.sql import DataFrame, SparkSession

VIDEO_COUNT = 20_000
USER_COUNT = 10_000

_salts = count(1)


def _number(upper: int) -> str:
    """SQL text of a value in [0, upper), independent of the other columns."""
    return f"pmod(xxhash64(value, {next(_salts)}), {upper})"


def _one_of(*values: str) -> str:
    texts = ", ".join(f"'{value}'" for value in values)
    return f"element_at(array({texts}), cast(1 + {_number(len(values))} AS int))"


_COMMENT = _one_of("nice", "meh", "who paid for this?", "love it", "do not trust them", "again?!", "wake up, people")


@dataclass(frozen=True)
class DemoStream:
    """A stream: its column texts, by name, and how fast it flows. `ts` is added to the columns."""

    name: str
    about: str
    rows_per_s: int
    text_by_column: dict[str, str]

    def load(self, spark: SparkSession) -> DataFrame:
        rows = (
            spark.readStream.format("rate").option("rowsPerSecond", self.rows_per_s).option("numPartitions", 1).load()
        )
        texts = [f"{text} AS {column}" for column, text in self.text_by_column.items()]
        return rows.selectExpr(*texts, "timestamp AS ts")


STREAMS = (
    DemoStream(
        "videos",
        "videos shown on a wall",
        2_000,
        {
            "vid": _number(VIDEO_COUNT),
            "length": _number(600),
            "geo": _one_of("US", "GER", "EU", "BR", "IN"),
            "lang": _one_of("ENG", "GER", "POR", "HIN"),
        },
    ),
    DemoStream(
        "views",
        "videos watched by a user",
        4_000,
        {
            "usr_id": _number(USER_COUNT),
            "vid": _number(VIDEO_COUNT),
            "duration": _number(60),
            "geo": _one_of("US", "GER", "EU", "BR", "IN", "JP", "NG", "CA"),
        },
    ),
    DemoStream(
        "comments",
        "what users write",
        3_000,
        {
            "usr_id": _number(USER_COUNT),
            "comment": _COMMENT,
            "length": f"length({_COMMENT})",
            "photo": f"{_number(4)} = 0",
            "emojis": _number(2),
        },
    ),
    DemoStream(
        "reactions",
        "what users click",
        3_000,
        {
            "usr_id": _number(USER_COUNT),
            "reaction": _one_of("like", "love", "haha", "wow", "sad", "angry"),
        },
    ),
)
