from __future__ import annotations

import pytest


def run(client, statement, **more):
    return client.post("/v1/statements", json={"statement": statement}, **more)


def test_a_query_from_statement_to_answers(world, client, join):
    made = run(client, f"CREATE CONTINUOUS QUERY q WITH (max_results_per_batch = 9) AS {join}")
    assert (made.status_code, made.json()["kind"]) == (202, "create_query")
    assert made.json()["query"]["options"]["max_results_per_batch"] == 9
    assert made.json()["query"]["owner"] == "admin"
    world.push(a=[(1, 1, 0)], b=[(1, 2, 0)])
    assert len(client.get("/v1/queries/q/results").json()["rows"]) == 1
    shown = run(client, "SHOW QUERIES").json()
    assert [(query["name"], query["state"]) for query in shown["queries"]] == [("q", "running")]
    altered = run(client, "ALTER CONTINUOUS QUERY q SET (keep_intermediates = false)")
    assert (altered.status_code, altered.json()["query"]["options"]["keep_intermediates"]) == (202, False)
    assert "q" in run(client, "EXPLAIN q").json()["text"]
    assert run(client, f"EXPLAIN {join}").json()["text"]
    dropped = run(client, "DROP CONTINUOUS QUERY q")
    assert (dropped.status_code, dropped.json()["query"]["state"]) == (202, "dropped")
    world.push()
    nothing = run(client, "DROP CONTINUOUS QUERY IF EXISTS q")
    assert (nothing.status_code, nothing.json()["query"]) == (200, None)
    assert run(client, "DROP CONTINUOUS QUERY q").status_code == 404


def test_streams_by_statement_and_by_route(client):
    made = run(
        client,
        "CREATE STREAM ticks (timestamp TIMESTAMP, value BIGINT) WITH (format = 'rate', event_time = 'timestamp')",
    )
    assert (made.status_code, made.json()["stream"]["event_time"]) == (201, "timestamp")
    body = {
        "name": "more",
        "format": "rate",
        "options": {"rowsPerSecond": 5},
        "event_time": "timestamp",
        "lateness": "2 seconds",
    }
    answer = client.post("/v1/streams", json=body)
    assert (answer.status_code, answer.json()["lateness"]) == (201, "2 seconds")
    assert client.post("/v1/streams", json=body).status_code == 201
    wrong = {**body, "columns": [{"name": "x", "type": "blob"}]}
    assert client.post("/v1/streams", json=wrong).status_code == 422
    names = [stream["name"] for stream in run(client, "SHOW STREAMS").json()["streams"]]
    assert names == ["a", "b", "more", "ticks"]
    assert client.get("/v1/streams/more").json()["columns"][0] == {"name": "timestamp", "type": "timestamp"}
    assert client.get("/v1/streams/nope").status_code == 404


def test_the_same_key_runs_a_statement_once(world, client, join):
    headers = {"Idempotency-Key": "k1"}
    drop = {"Idempotency-Key": "k2"}
    run(client, f"CREATE CONTINUOUS QUERY q AS {join}", headers=headers)
    world.push()
    run(client, "DROP CONTINUOUS QUERY q", headers=drop)
    world.push()
    again = run(client, f"CREATE CONTINUOUS QUERY q AS {join}", headers=headers).json()
    assert again["query"]["state"] == "dropped"
    assert len(client.get("/v1/queries?include_dropped=true").json()["queries"]) == 1


REFUSED = [
    "SELECT reflect('java.lang.System', 'exit', 1) FROM a JOIN b ON a.k = b.k",
    "SELECT java_method('java.lang.Runtime', 'getRuntime') FROM a JOIN b ON a.k = b.k",
    "SELECT * FROM parquet.`/etc/passwd` p JOIN a ON p.k = a.k",
    "SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM `file:///etc/passwd` p JOIN a ON p.k = a.k",
    "SELECT TRANSFORM(a.k) USING 'cat' AS (x) FROM a JOIN b ON a.k = b.k",
    "SELECT TRANSFORM (k, v) USING '/bin/sh -c id' FROM a",
    "FROM a SELECT TRANSFORM(k) USING 'sh'",
    "SELECT try_reflect('java.lang.System', 'getenv') FROM a JOIN b ON a.k = b.k",
    "SELECT a.k FROM a JOIN b ON a.k = b.k AND assert_true(a.k = 1) IS NULL",
    "SELECT a.k FROM a JOIN read_files('/etc/passwd') b ON a.k = b.value",
    "SELECT input_file_name() FROM a JOIN b ON a.k = b.k",
    "SELECT a.k FROM a JOIN b ON a.k = b.k; DROP CONTINUOUS QUERY q",
    "ADD JAR '/tmp/x.jar'",
    "SET spark.sql.extensions = x",
    "CREATE TABLE t AS SELECT * FROM a",
    "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT * FROM a",
    "CACHE TABLE a",
    "CREATE FUNCTION f AS 'x.Y' USING JAR '/tmp/x.jar'",
    "/*+ hint */ SELECT 1",
    "SELECT (SELECT max(v) FROM b) FROM a",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_text_that_would_reach_outside_is_refused_everywhere(world, client, sql):
    for answer in (
        client.post("/v1/queries", json={"sql": sql, "name": "q"}),
        client.put("/v1/queries/q", json={"sql": sql}),
        client.post("/v1/validate", json={"sql": sql}),
        run(client, sql),
        run(client, f"EXPLAIN {sql}"),
        run(client, f"CREATE CONTINUOUS QUERY q AS {sql}"),
    ):
        assert answer.status_code == 422, answer.text
        error = answer.json()["error"]
        assert error["message"]
        assert error["type"] in ("UnsupportedSql", "SqlSyntaxError", "UnknownName", "CrossProduct", "TypeMismatch")
    assert world.session.engine.queries.records() == ()
