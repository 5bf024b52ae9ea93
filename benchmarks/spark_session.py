"""The one Spark application in which all streaming systems of a benchmark run."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.data.workloads import SCHEMA_DDL, StreamFiles
from dovetail.runtime.spark.local_session import local_spark

FILE_SYSTEM_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""The default manager was seen to start `readlink` and `chmod` processes while batches ran, and batches spent less
time on offset logs with this one. It holds for the whole application, so for every streaming system alike."""

AS_JAVA_COMPILES = (
    "-XX:Tier4InvocationThreshold=5000 -XX:Tier4MinInvocationThreshold=600 "
    "-XX:Tier4CompileThreshold=15000 -XX:Tier4BackEdgeThreshold=40000"
)
"""Java's own settings: a local session compiles later for the sake of a quick start, which the peer never asked for."""


def memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def start_spark(cores: int, folder: Path, **conf: str) -> SparkSession:
    """Half of the memory is the JVM's: the peer keeps its state there, ours lives in files and Python workers."""
    heap_gib = max(1, memory_bytes() // 2**31)
    folder.mkdir(parents=True, exist_ok=True)
    options = " ".join((AS_JAVA_COMPILES, conf.pop("spark__driver__extraJavaOptions", ""))).strip()
    return local_spark(
        "dovetail-bench",
        cores,
        log_file=folder / "spark.log",
        spark__driver__memory=f"{heap_gib}g",
        spark__local__dir=str(folder / "spark"),
        spark__sql__warehouse__dir=str(folder / "warehouse"),
        spark__sql__parquet__outputTimestampType="TIMESTAMP_MICROS",
        spark__sql__streaming__checkpointFileManagerClass=FILE_SYSTEM_CHECKPOINTS,
        spark__sql__streaming__numRecentProgressUpdates="100000",
        spark__driver__extraJavaOptions=options,
        **conf,
    )


def read_stream(spark: SparkSession, files: StreamFiles, stream: str, seconds_per_batch: int) -> DataFrame:
    files_per_batch = files.workload.files_per_batch(seconds_per_batch)
    reader = spark.readStream.schema(SCHEMA_DDL).option("maxFilesPerTrigger", files_per_batch)
    return reader.parquet(str(files.path(stream)))
