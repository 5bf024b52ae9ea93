"""Spark's folder in the checkpoint may be lost or damaged, in part or whole: manifests have what it takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.faults.spark_damage import Inflict, SparkDamage, flipped, remove, rewrite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MENDED = {
    "all of Spark's folder is gone": remove("spark"),
    "the newest offsets are gone, and which files they mean": remove(
        "spark/offsets/N", "spark/commits/N", "spark/sources/*/N", "spark/sources/*/N.compact"
    ),
    "the newest batch's manifest is empty": rewrite("manifests/b*N.json", lambda _: b""),
}
MENDED_TOO = {
    "the newest offsets and commits are gone": remove("spark/offsets/N", "spark/offsets/.N.crc", "spark/commits/N"),
    "a source's whole log is gone": remove("spark/sources/0"),
    "Spark notes another file for the newest batch": rewrite(
        "spark/sources/0/N", lambda text: text.replace(b"007.parquet", b"006.parquet")
    ),
    "a bit of the newest offsets": rewrite("spark/offsets/N", flipped),
    "the newest commit is empty": rewrite("spark/commits/N", lambda _: b""),
    "the newest batch's manifest is gone": remove("manifests/b*N.json"),
}
TOLD = {
    "a manifest is gone from the middle": remove("manifests/b0000000003.json"),
    "a bit of the answers": rewrite("answers/b0000000002*.arrows", flipped),
}


@pytest.mark.parametrize("damages", [MENDED, pytest.param(MENDED_TOO, marks=pytest.mark.slow)], ids=["most", "rest"])
def test_what_is_lost_of_sparks_folder_or_the_newest_batch_is_made_again(
    spark: SparkSession, tmp_path: Path, damages: dict[str, Inflict]
) -> None:
    with SparkDamage(spark, tmp_path) as runs:
        outcomes = list(runs.tries(damages.items()))
    assert [outcome for outcome in outcomes if outcome.error is not None or outcome.is_silent] == []


@pytest.mark.slow
def test_what_cannot_be_made_again_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with SparkDamage(spark, tmp_path) as runs:
        outcomes = list(runs.tries(TOLD.items()))
    assert ["lost" in (outcome.error or "") for outcome in outcomes] == [True, True], outcomes
