"""A user's program that is killed: declares streams of Parquet files and ends when it has read them all.

Run as: python declaring_program.py MASTER DATA CHECKPOINT QUERIES, the last a JSON object from name to SQL; the streams
are those that the queries name.
"""

from __future__ import annotations

import json
import re
import sys

from dovetail import Session
from dovetail.engine.options import EngineTuning
from dovetail.query.stream_spec import StreamSpec
from dovetail.query.types import BIGINT, INT, TIMESTAMP
from dovetail.runtime.spark.local_session import local_spark

COLUMNS = (("id", BIGINT), ("ts", TIMESTAMP), ("k", INT), ("x", INT))


def main(master: str, data: str, checkpoint: str, queries: str) -> None:
    sql_by_name = json.loads(queries)
    spark = local_spark("dovetail-faults", spark__master=master)
    session = Session(spark, checkpoint, partitions=2, key_groups=16, tuning=EngineTuning(small_batch_rows=0))
    # The last letter first, so that a new stream is never the last of them.
    for name in sorted(set(re.findall(r"(?:FROM|JOIN) (\w+)", queries)), reverse=True):
        options = {"path": f"{data}/{name}", "maxFilesPerTrigger": "1"}
        session.declare_stream(StreamSpec(name, COLUMNS, "parquet", options, "ts", "1 second"))
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
