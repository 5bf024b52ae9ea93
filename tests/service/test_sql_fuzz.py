"""Any text of SQL is answered: accepted, or refused with a message. Never a 500, and refused text leaves nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.service.config.options import Limits
from tests.support.examples import examples

JOINED = "SELECT a.k, b.v FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts"
TEXTS = [
    f"CREATE CONTINUOUS QUERY q AS {JOINED}",
    f"CREATE OR REPLACE CONTINUOUS QUERY q WITH (keep_intermediates = false, sink.topic = 'x') AS {JOINED}",
    "SELECT x.w.start FROM (SELECT k, window(ts, '4 seconds') AS w FROM a) x JOIN b ON x.k = b.k WITHIN 1 DAY",
    "SELECT CASE WHEN a.v > 1.5 THEN 'x' ELSE cast(b.v AS STRING) END y FROM a, b WHERE a.k = b.k AND a.v IN (1)",
    "ALTER CONTINUOUS QUERY q SET (max_results_per_batch = 5)",
    "DROP CONTINUOUS QUERY IF EXISTS q",
    "SHOW QUERIES",
    f"EXPLAIN {JOINED}",
    "CREATE STREAM s (k INT, ts TIMESTAMP) WITH (format = 'rate', event_time = 'ts', lateness = '2 seconds')",
]
WORDS = re.compile(r"'[^']*'|\w+|\S")
SPARE = ["(", ")", ",", ".", "*", "'", '"', "`", "NULL", "SELECT", "FROM", "WITHIN", "WITH", "AS", "=", ";", "--", "/*"]
SPARE += [
    "CREATE",
    "OR",
    "REPLACE",
    "CONTINUOUS",
    "QUERY",
    "reflect(",
    "TRANSFORM",
    "parquet.`/x`",
    "\x00",
    "1e999",
    "1e3-5",
    "1e",
    ".5",
    "-> 1BD",
    "é",
]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    words = WORDS.findall(draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(words) - 1))
        match draw(st.sampled_from(["drop", "repeat", "insert", "swap"])):
            case "drop" if len(words) > 1:
                del words[place]
            case "repeat":
                words.insert(place, words[place])
            case "insert":
                words.insert(place, draw(st.sampled_from(SPARE)))
            case _:
                other = draw(st.integers(0, len(words) - 1))
                words[place], words[other] = words[other], words[place]
    return " ".join(words)


@pytest.fixture(scope="module")
def client(lasting_world):
    return lasting_world.client(limits=Limits(changes_per_s=100_000, changes_burst=100_000, max_statement_chars=5_000))


def check(answer):
    assert answer.status_code in (200, 201, 202, 404, 409, 413, 422), answer.text
    if answer.status_code >= 400:
        message = answer.json()["error"]["message"]
        assert message
        assert "defect" not in message


@examples()
@given(text=st.one_of(damaged(), st.text(max_size=80)))
def test_any_text_is_answered(client, text):
    for path, body in (
        ("/v1/statements", {"statement": text}),
        ("/v1/queries", {"sql": text, "name": "q"}),
        ("/v1/validate", {"sql": text}),
    ):
        check(client.post(path, json=body))
    assert client.get("/healthz").status_code == 200
    assert len(client.get("/v1/queries").json()["queries"]) <= 2


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 2_000 + "1" + ")" * 2_000 + " FROM a JOIN b ON a.k = b.k",
        "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE " + " AND ".join(["a.v = 1"] * 400),
        "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE " + "NOT " * 1_000 + "a.v = 1",
        "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.v = " + "-" * 2_001 + "1",
        "SELECT " + "CASE WHEN true THEN " * 300 + "1" + " END" * 300 + " FROM a JOIN b ON a.k = b.k",
        "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.v = " + "9" * 4_000,
        "SELECT '" + "x" * 4_000 + "' FROM a JOIN b ON a.k = b.k",
        "CREATE CONTINUOUS QUERY q WITH (max_results_per_batch = " + "9" * 4_500 + ") AS SELECT 1",
    ],
    ids=["parentheses", "conjunction", "not", "minus", "case", "digits", "string", "option"],
)
def test_deep_and_long_texts_are_answered(client, text):
    for path, body in (("/v1/statements", {"statement": text}), ("/v1/validate", {"sql": text})):
        check(client.post(path, json=body))
