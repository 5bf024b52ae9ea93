"""A query's committed answers as a batch DataFrame, under the names and types that the SQL text gives them."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dovetail.query.answer_columns import answer_columns
from dovetail.query.join_query import JoinQuery
from dovetail.runtime.spark.part_rows import SEQUENCE, part_rows, results_schema
from dovetail.store.manifest import ResultPart
from dovetail.store.result_parts import check_results


def read_results(spark: SparkSession, root: Path, query: JoinQuery, parts: list[ResultPart]) -> DataFrame:
    """The answer as of these parts; of an updating query without the rows that were taken back."""
    output = answer_columns(query)
    schema = results_schema(output)
    check_results(root, parts)
    files = [str(root / part.path) for part in parts if part.offset is None]
    ranges = [part for part in parts if part.offset is not None]
    frames = [spark.read.schema(schema).parquet(*files)] if files else []
    frames += [part_rows(spark, root, output, ranges).drop(SEQUENCE)] if ranges else []
    frame = reduce(DataFrame.unionAll, frames) if frames else spark.createDataFrame([], schema)
    if query.is_updating:
        frame = _folded(frame)
    return frame.toDF(*(column.name for column in query.output))


def _folded(changes: DataFrame) -> DataFrame:
    """The rows that are true after all changes, each as often as it is."""
    names = [f"c{position}" for position in range(len(changes.columns) - 1)]
    numbered = changes.toDF(*names, "change")
    counted = numbered.groupBy(*names).agg(F.sum("change").alias("change")).where("change > 0")
    return counted.withColumn("change", F.explode(F.sequence(F.lit(1), F.col("change").cast("int")))).drop("change")
