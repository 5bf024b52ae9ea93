"""A user's program on a cluster of this machine: its partitions follow the load, its executors follow the partitions.

Run as: python elastic_program.py MASTER FOLDER MAX_PARTITIONS SETTINGS, the last a JSON object for Spark. FOLDER has
`data/a` and `data/b`, a Parquet file a batch; it gets `checkpoint`, a line of JSON for every batch in `units`, and in
`wrong` how many answers differ from batch SQL.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from dovetail import Session
from dovetail.engine.delivery.commit_news import CommitNews
from dovetail.engine.options import EngineTuning
from dovetail.runtime.spark.local_session import local_spark

SQL = (
    "SELECT a.id AS a_id, b.id AS b_id FROM a JOIN b ON a.k = b.k "
    "AND b.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts + INTERVAL 2 SECONDS"
)
PATIENCE_S = 90.0
# The executors live for seconds: compiling their code well would take longer than running it.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def main(master: str, folder: Path, max_partitions: str, settings: dict[str, str]) -> None:
    spark = local_spark(
        "dovetail-elastic",
        spark__master=master,
        spark__executor__memory="512m",
        spark__executor__extraJavaOptions=SHORT_LIVED,
        **{key.replace(".", "__"): value for key, value in settings.items()},
    )
    session = Session(
        spark,
        folder / "checkpoint",
        partitions=1,
        key_groups=16,
        elastic=True,
        max_partitions=int(max_partitions),
        max_bytes_per_partition=150_000,
        tuning=EngineTuning(small_batch_rows=0, scale_after=2),
    )
    schema = spark.read.parquet(str(folder / "data" / "a")).schema
    for name in ("a", "b"):
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        session.create_stream(name, reader.parquet(str(folder / "data" / name)), event_time="ts")
    query = session.create_query(SQL, name="q")

    def note(news: CommitNews) -> None:
        """Between two batches: wait until the executors are there, or gone, that the next one shall run with.

        Spark itself only adds some while tasks wait, so where it is left to Spark there is nothing to wait for.
        """
        units = session.engine.plans.elastic
        assert units is not None
        deadline = time.monotonic() + (0.0 if settings else PATIENCE_S)
        while units.count_executors() not in (None, units.units) and time.monotonic() < deadline:
            time.sleep(0.05)
        with (folder / "units").open("a") as lines:
            lines.write(json.dumps({**news.figures.scale.to_json(), "nextExecutors": units.count_executors()}) + "\n")

    session.engine.answers.listen(note)
    session.start(trigger="available_now")
    session.await_termination()
    for name in ("a", "b"):
        spark.read.parquet(str(folder / "data" / name)).createOrReplaceTempView(name)
    answers, expected = query.results(), spark.sql(SQL)
    wrong = answers.exceptAll(expected).count() + expected.exceptAll(answers).count()
    (folder / "wrong").write_text(json.dumps({"wrong": wrong, "answers": answers.count()}))
    session.stop()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]))
