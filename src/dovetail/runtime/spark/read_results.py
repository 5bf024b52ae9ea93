"""A query's committed answers as a batch DataFrame, under the names and types that the SQL text gives them."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dovetail.query.answer_columns import answer_columns
from dovetail.query.join_query import JoinQuery, OutputColumn
from dovetail.query.output_names import unique_names
from dovetail.runtime.spark.types import spark_type
from dovetail.store.manifest import ResultFile
from dovetail.store.result_files import check_results


def read_results(spark: SparkSession, root: Path, query: JoinQuery, files: list[ResultFile]) -> DataFrame:
    """The answer as of these files; of an updating query without the rows that were taken back."""
    schema = results_schema(answer_columns(query))
    check_results(root, files)
    if files:
        frame = spark.read.schema(schema).parquet(*(str(root / file.path) for file in files))
    else:
        frame = spark.createDataFrame([], schema)
    if query.is_updating:
        frame = _folded(frame)
    return frame.toDF(*(column.name for column in query.output))


def _folded(changes: DataFrame) -> DataFrame:
    """The rows that are true after all changes, each as often as it is."""
    names = [f"c{position}" for position in range(len(changes.columns) - 1)]
    numbered = changes.toDF(*names, "change")
    counted = numbered.groupBy(*names).agg(F.sum("change").alias("change")).where("change > 0")
    return counted.withColumn("change", F.explode(F.sequence(F.lit(1), F.col("change").cast("int")))).drop("change")


def results_schema(output: tuple[OutputColumn, ...]) -> T.StructType:
    """As in the files, where each column has a name of its own."""
    names = unique_names([column.name for column in output])
    return T.StructType(
        [T.StructField(name, spark_type(column.type), True) for name, column in zip(names, output, strict=True)]
    )
