"""A join over files, once: reads what is there and ends. On the same checkpoint again, it reads only what is new."""

import json
from pathlib import Path
from tempfile import mkdtemp

from dovetail import Session, local_spark

folder = Path(mkdtemp())
orders = [{"id": i, "price": 10.5 + i, "ts": f"2026-01-01T10:0{i}:00Z"} for i in range(6)]
payments = [{"order_id": i, "method": "card", "ts": f"2026-01-01T10:0{i}:20Z"} for i in range(0, 6, 2)]
for name, rows in (("orders", orders), ("payments", payments)):
    (folder / name).mkdir()
    (folder / name / "first.json").write_text("\n".join(json.dumps(row) for row in rows))

session = Session(local_spark("files"), folder / "checkpoint")
# Streams that Dovetail opens itself: after a restart they are there again.
for name, columns in (("orders", "id BIGINT, price DOUBLE"), ("payments", "order_id BIGINT, method STRING")):
    session.execute(
        f"""CREATE STREAM {name} ({columns}, ts TIMESTAMP)
            WITH (format = 'json', path = '{folder / name}', event_time = 'ts')"""
    )
paid = session.create_query(
    """SELECT o.id, o.price, p.method
       FROM orders o JOIN payments p ON p.order_id = o.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 1 MINUTE""",
    name="paid",
)
session.start(trigger="available_now")
session.await_termination()
paid.results().orderBy("id").show()
session.stop()
