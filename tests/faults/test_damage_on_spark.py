"""Spark's folder in the checkpoint may be lost or damaged, in part or whole: manifests have what it takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.faults.spark_damage import SparkDamage, flipped, remove, rewrite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MENDED = {
    "all of Spark's folder is gone": remove("spark"),
    "the newest offsets and commits are gone": remove("spark/offsets/N", "spark/offsets/.N.crc", "spark/commits/N"),
    "the newest offsets are gone, and which files they mean": remove(
        "spark/offsets/N", "spark/commits/N", "spark/sources/*/N", "spark/sources/*/N.compact"
    ),
    "a source's whole log is gone": remove("spark/sources/0"),
    "Spark notes another file for the newest batch": rewrite(
        "spark/sources/0/N", lambda text: text.replace(b"007.parquet", b"006.parquet")
    ),
    "a bit of the newest offsets": rewrite("spark/offsets/N", flipped),
    "the newest commit is empty": rewrite("spark/commits/N", lambda _: b""),
    "the newest batch's manifest is gone": remove("manifests/b*N.json"),
    "the newest batch's manifest is empty": rewrite("manifests/b*N.json", lambda _: b""),
}
TOLD = {
    "a manifest is gone from the middle": remove("manifests/b0000000003.json"),
    "a bit of a result file": rewrite("results/*/b0000000002*.parquet", flipped),
}


def test_a_damaged_checkpoint_goes_on_exactly_or_says_what_is_damaged(spark: SparkSession, tmp_path: Path) -> None:
    runs = SparkDamage(spark, tmp_path)
    try:
        for outcome in runs.tries(MENDED.items()):
            assert (outcome.what, outcome.error, outcome.is_silent) == (outcome.what, None, False)
        for outcome in runs.tries(TOLD.items()):
            assert outcome.error is not None, outcome.what
            assert "lost" in outcome.error
    finally:
        runs.close()
