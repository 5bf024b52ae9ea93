"""Rows without a partner: two queries over the same streams, which share what they keep of them."""

from tempfile import mkdtemp

from dovetail import Session, local_spark

spark = local_spark("unpaid_orders")
session = Session(spark, mkdtemp())
rows = spark.readStream.format("rate").option("rowsPerSecond", 1000).load()
# An order a minute, and a payment 20 seconds later for all but every fifth.
orders = rows.selectExpr("value AS id", "timestamp_seconds(60 * value) AS ts")
payments = rows.where("value % 5 > 0").selectExpr("value AS order_id", "timestamp_seconds(60 * value + 20) AS ts")
session.create_stream("orders", orders, event_time="ts")
session.create_stream("payments", payments, event_time="ts")

in_time = "p.order_id = o.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 10 MINUTES"
paid_at = session.create_query(
    f"SELECT o.id, o.ts AS ordered_at, p.ts AS paid_at FROM orders o LEFT JOIN payments p ON {in_time}", name="paid_at"
)
unpaid = session.create_query(
    f"SELECT o.id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM payments p WHERE {in_time})", name="unpaid"
)
session.start(trigger="1 second")
# An order is unpaid when no payment in time can come any more: its watermark has passed.
unpaid.await_results(rows=20)
paid_at.results().orderBy("id").show(6)
unpaid.results().orderBy("id").show(3)
session.stop()
