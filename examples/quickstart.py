"""Two live streams and one continuous join; ends when it has printed the first answers."""

from tempfile import mkdtemp

from dovetail import Session, local_spark

spark = local_spark("quickstart")  # or any SparkSession that you have
session = Session(spark, mkdtemp())  # in this folder everything is kept; open it again, and it goes on


def numbers(*columns):  # any streaming DataFrame will do: Kafka, files, this generator of Spark's
    rows = spark.readStream.format("rate").option("rowsPerSecond", 1000).load()
    return rows.selectExpr(*columns, "timestamp AS ts")


session.create_stream("views", numbers("value % 5000 AS usr", "value % 30 AS video"), event_time="ts")
session.create_stream("comments", numbers("value * 7 % 5000 AS usr", "value % 40 AS length"), event_time="ts")

talk = session.create_query(
    """SELECT v.usr, v.video, c.length
       FROM views v JOIN comments c ON v.usr = c.usr AND c.ts BETWEEN v.ts AND v.ts + INTERVAL 3 SECONDS
       WHERE c.length > 5""",
    name="talk",
)
session.start(trigger="1 second")
talk.await_results(rows=5)  # until the batch that brings them
talk.results().show(5)  # all answers so far, as a batch DataFrame
session.stop()
