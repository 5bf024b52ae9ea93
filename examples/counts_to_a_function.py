"""A count per minute over a join, handed to a Python function with each batch; the function ends the session."""

from tempfile import mkdtemp

from dovetail import Session, local_spark

spark = local_spark("counts")
session = Session(spark, mkdtemp())
rows = spark.readStream.format("rate").option("rowsPerSecond", 1000).load()
views = rows.selectExpr("value % 50 AS usr", "element_at(array('en', 'de'), 1 + int(value % 2)) AS lang",
                        "timestamp_seconds(value) AS ts")  # fmt: skip
clicks = rows.where("value % 3 = 0").selectExpr("value % 50 AS usr", "timestamp_seconds(value + 2) AS ts")
session.create_stream("views", views, event_time="ts")
session.create_stream("clicks", clicks, event_time="ts")

clicked = session.create_query(
    """SELECT window(v.ts, '1 minute').start AS minute, v.lang, COUNT(*) AS clicks
       FROM views v JOIN clicks c ON c.usr = v.usr AND c.ts BETWEEN v.ts AND v.ts + INTERVAL 10 SECONDS
       GROUP BY v.lang, window(v.ts, '1 minute')""",
    name="clicked",
)


def on_answers(table, batch):  # a pyarrow Table with the windows that this batch has closed
    print(f"batch {batch} closed {table.num_rows} windows, among them:")
    print(table.slice(0, 4).to_pandas().to_string(index=False))
    session.stop()


clicked.foreach_batch(on_answers)
session.start(trigger="1 second")
session.await_termination()
