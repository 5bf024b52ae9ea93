"""A user's program that is killed: joins two folders of Parquet files and ends when it has read them all.

Run as: python joining_program.py MASTER DATA CHECKPOINT QUERIES, the last a JSON object from name to SQL
"""

from __future__ import annotations

import json
import sys

from dovetail import Session
from dovetail.engine.options import EngineTuning
from dovetail.runtime.spark.local_session import local_spark


def main(master: str, data: str, checkpoint: str, queries: str) -> None:
    sql_by_name = json.loads(queries)
    spark = local_spark("dovetail-faults", spark__master=master)
    session = Session(spark, checkpoint, partitions=2, key_groups=16, tuning=EngineTuning(small_batch_rows=0))
    schema = spark.read.parquet(f"{data}/a").schema
    for name in ("a", "b"):
        files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{data}/{name}")
        session.create_stream(name, files, event_time="ts", lateness="1 second")
    for name, sql in sql_by_name.items():
        session.create_query(sql, name=name)
    session.start(trigger="available_now")
    session.await_termination()
    for name in sql_by_name:
        session.query(name).results().write.mode("overwrite").parquet(f"{checkpoint}-answers/{name}")
    session.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
