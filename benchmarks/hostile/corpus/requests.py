"""Hostile requests as bytes on a socket: what no client library would send, and what a careless one does.

Each is sent over a connection of its own. `{token}`, `{host}` and `{length}` are filled in; `pause_s` is between the parts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

SQL = "SELECT k FROM a WHERE v = 1"


@dataclass(frozen=True)
class HostileRequest:
    """`parts` are sent one after the other; with `reads` False the client goes away without reading the answer."""

    mechanism: str
    what: str
    parts: tuple[bytes, ...]
    pause_s: float = 0.0
    reads: bool = True
    times: int = 1


def _request(
    method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, token: str = "{token}"
) -> bytes:
    given = {"Host": "{host}", "Authorization": f"Bearer {token}", "Connection": "close"}
    if body is not None:
        given |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    given |= headers or {}
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{key}: {value}\r\n" for key, value in given.items() if value)
    return head.encode("utf-8", "surrogateescape") + b"\r\n" + (body or b"")


def _of(mechanism: str, *requests: bytes, pause_s: float = 0.0, reads: bool = True) -> tuple[HostileRequest, ...]:
    return tuple(
        HostileRequest(mechanism, request[:80].decode("latin-1"), (request,), pause_s, reads) for request in requests
    )


def _post(body: bytes | str, path: str = "/v1/queries", **headers: str) -> bytes:
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    return _request("POST", path, data, {key.replace("_", "-"): value for key, value in headers.items()})


def _query(**fields: object) -> bytes:
    return _post(json.dumps({"sql": SQL, **fields}))


_LONG = "x" * 5_000
BODIES = (
    *(
        b"",
        b"{",
        b"[",
        b"null",
        b"1",
        b'"x"',
        b"[]",
        b"{}",
        b"{sql: 1}",
        b"{'sql': 'x'}",
        b'{"sql": "x",}',
        b"\x00",
        b"\xff\xfe",
    ),
    *(
        b'{"sql": null}',
        b'{"sql": 5}',
        b'{"sql": ["x"]}',
        b'{"sql": {"x": 1}}',
        b'{"sql": true}',
        b'{"sql": "x", "sql": "y"}',
    ),
    *(
        b'{"sql": NaN}',
        b'{"sql": Infinity}',
        b'{"sql": 1e999}',
        b'{"sql": "x"} {"sql": "y"}',
        b'{"sql": "\xc3\x28"}',
        b'{"sql": "\xed\xa0\x80"}',
    ),
    b'{"sql": "\\ud800"}',
    b'{"sql": "SELECT k FROM a", "name": "\\udfff"}',
    b'{"sql": "SELECT k FROM a", "name": "\\u0000"}',
    b'{"sql": "SELECT \\u0000 FROM a"}',
    b"[" * 100_000,
    b'{"sql": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    b'{"sql": ' + b"9" * 100_000 + b"}",
    json.dumps({f"key{i}": i for i in range(20_000)}).encode(),
    '{"sql": "SELECT k FROM a"}'.encode("utf-16"),
    b"\xef\xbb\xbf" + b'{"sql": "SELECT nothing FROM a"}',
    b"<xml/>",
    b"sql=SELECT",
)
NAMES = (
    *(
        "",
        " ",
        ".",
        "..",
        "../../etc/passwd",
        "a/b",
        "a\\b",
        "x" * 10_000,
        "a\nb",
        "a\rb",
        "\x00",
        "#1",
        "pairs#1",
        "a#b",
        "%2e%2e",
        "\u202e",
        "\U0001f600",
    ),
    *(
        "NUL",
        "con",
        "-rf",
        "~",
        "$HOME",
        "`x`",
        "'; DROP",
        "<script>",
        "{query}",
        "*",
        "?",
        "a b",
        "\ud800",
        "__proto__",
        "null",
        "SELECT",
    ),
)
ODD_NAMES: tuple[object, ...] = (5, True, [], {}, 1e300)
OPTIONS: tuple[object, ...] = (
    *(
        None,
        [],
        "x",
        5,
        {"nope": 1},
        {"max_results_per_batch": -1},
        {"max_results_per_batch": "many"},
        {"max_results_per_batch": 1e308},
    ),
    *(
        {"max_results_per_batch": True},
        {"max_results_per_batch": 2**70},
        {"max_results_per_batch": {}},
        {"backfill": "maybe"},
        {"backfill": 7},
    ),
    *(
        {"keep_intermediates": "no"},
        {"sink": 5},
        {"sink": ""},
        {"sink": "nope"},
        {"sink.path": "/tmp/x"},
        {"sink": "kafka", "sink.password": "x"},
    ),
    *(
        {"sink": "parquet", "sink.path": "secret://file/etc/shadow"},
        {"": 1},
        {"\ud800": 1},
        {"a" * 10_000: 1},
        {f"sink.o{i}": "x" for i in range(2_000)},
    ),
    *(
        {"max_pairs_per_batch": 0},
        {"max_pairs_per_batch": None, "max_results_per_batch": 0},
        {"sink": None, "sink.mode": "append"},
    ),
)
PATHS = (
    *(
        "/../../etc/passwd",
        "/v1/../../x",
        "/v1/queries/../tokens",
        "/v1/queries/%2e%2e%2f%2e%2e%2fetc",
        "/v1/queries/%00",
        "/v1/queries/%ff%fe",
    ),
    *(
        "/v1/queries/%ed%a0%80",
        "/v1/queries/%0a%0d",
        "/v1/queries/" + "x" * 9_000,
        "/v1/queries//",
        "//v1/queries",
        "/v1/queries/a%2Fb/results",
    ),
    *(
        "/v1/streams/%00/bad_rows",
        "/v1/streams/..%2f..",
        "/static/../../x",
        "/docs/../x",
        "/openapi.json/..",
        "/%",
        "/%zz",
        "/v1/queries/%",
    ),
    *(
        "/v1/queries/pairs/nothing",
        "/metrics/x",
        "/V1/QUERIES",
        "/v1/queries;x=1",
        "http://evil.example/v1/queries",
        "*",
    ),
)
PARAMETERS = (
    *(
        f"/v1/queries/pairs/results?{text}"
        for text in (
            "limit=-1",
            "limit=0",
            "limit=99999999999999999999",
            "limit=x",
            "limit=1e3",
            "limit=NaN",
            "from_batch=-5",
            "from_batch=99999999999999999999",
            "to_batch=-1",
            "from_batch=5&to_batch=1",
        )
    ),
    *(
        f"/v1/queries/pairs/results?{text}"
        for text in (
            "cursor=x",
            "cursor=1:2:3",
            "cursor=99999999999999999999:1",
            "cursor=-1:-1",
            "cursor=%00",
            "last=-1",
            "last=99999999999999",
            "last=5&cursor=0:0",
            "changes=maybe",
            "nope=1",
            "limit=1&limit=2",
            "last=&limit=",
        )
    ),
    *(
        f"/v1/queries?{text}"
        for text in (
            "limit=-1",
            "limit=x",
            "state=nope",
            "include_dropped=perhaps",
            "after=%00",
            "after=nope%231",
            "limit=99999999999999999999999",
        )
    ),
    *(
        "/v1/queries/pairs/explain?format=xml",
        "/v1/plan?format=%00",
        "/v1/plan?trace=maybe",
        "/v1/streams/a/bad_rows?limit=-1",
        "/v1/streams/a/bad_rows?limit=99999999999999999999",
        "/v1/streams/nope/bad_rows",
    ),
    *(
        "/v1/queries/pairs/events?from_batch=-1",
        "/v1/queries/pairs/events?rows=-1",
        "/v1/queries/pairs/events?rows=x",
        "/v1/queries/nope/events",
        "/v1/queries/nope/results",
        "/v1/streams/nope",
    ),
    "/v1/queries/pairs/results?" + "&".join(f"x{i}=1" for i in range(2_000)),
)
TOKENS = (
    "",
    "x",
    "dvt_",
    "dvt_" + "0" * 64,
    "x" * 20_000,
    "dvt_\u00e9",
    "../../x",
    "null",
    "{token}x",
    " {token}",
    "{token} {token}",
    "dvt_%00",
    "'; --",
)
VERBS = (
    "TRACE",
    "OPTIONS",
    "CONNECT",
    "PATCH",
    "PROPFIND",
    "HEAD",
    "PURGE",
    "GETT",
    "get",
    "P\u00d6ST",
    "X" * 5_000,
    "",
)
STATEMENTS = (
    *(
        "",
        ";",
        "SHOW",
        "SHOW NOTHING",
        "DROP CONTINUOUS QUERY",
        "DROP CONTINUOUS QUERY nope",
        "DROP CONTINUOUS QUERY IF EXISTS nope; SHOW QUERIES",
        "ALTER CONTINUOUS QUERY nope SET (x = 1)",
        "EXPLAIN",
        "EXPLAIN nope",
    ),
    *(
        "CREATE CONTINUOUS QUERY AS SELECT k FROM a",
        "CREATE CONTINUOUS QUERY x",
        "CREATE CONTINUOUS QUERY x AS",
        "CREATE CONTINUOUS QUERY `` AS SELECT k FROM a",
        "CREATE CONTINUOUS QUERY x WITH () AS SELECT k FROM a",
        "CREATE CONTINUOUS QUERY x WITH (a = ) AS SELECT k FROM a",
    ),
    *(
        "CREATE STREAM",
        "CREATE STREAM s",
        "CREATE STREAM s (k NOPE) WITH (format = 'parquet')",
        "CREATE STREAM s (k BIGINT) WITH (format = 'nope', path = '/x')",
        "CREATE STREAM s (k BIGINT) WITH (format = 'parquet')",
        "CREATE STREAM a (k BIGINT) WITH (format = 'rate')",
    ),
    *(
        "CREATE STREAM `../x` (k BIGINT) WITH (format = 'parquet', path = '/tmp')",
        "CREATE STREAM s (k BIGINT, k INT) WITH (format = 'parquet', path = '/tmp')",
        "CREATE STREAM s (ts TIMESTAMP) WITH (format = 'parquet', path = '/nowhere/at/all', event_time = 'ts')",
        "CREATE STREAM s (ts TIMESTAMP) WITH (format = 'parquet', path = '/tmp', event_time = 'nope')",
    ),
    *(
        "CREATE STREAM s (ts TIMESTAMP) WITH (format = 'parquet', path = '/tmp', event_time = 'ts', lateness = '-5 seconds')",
        "CREATE STREAM s (ts TIMESTAMP) WITH (format = 'jdbc', url = 'jdbc:x?password=y')",
        "DROP STREAM a",
        "INSERT INTO a VALUES (1)",
        "SET x = 1",
        "\x00",
        "SHOW QUERIES " + "x" * 50_000,
        "/* SHOW",
        "EXPLAIN SELECT (((k FROM a",
        "EXPLAIN SELECT " + "(" * 5_000,
    ),
)
STREAM_BODIES: tuple[object, ...] = (
    *(
        {},
        {"name": 5},
        {"name": "s"},
        {"name": "s", "columns": []},
        {"name": "s", "columns": [{"name": "k"}], "format": "parquet"},
        {"name": "s", "columns": {"k": "bigint"}, "format": "parquet"},
    ),
    {"name": "s", "columns": [{"name": "k", "type": "nope"}], "format": "parquet", "options": {"path": "/tmp"}},
    {"name": "s", "columns": [{"name": f"c{i}", "type": "int"} for i in range(5_000)], "format": "nope"},
    {"name": "s", "columns": [{"name": "k", "type": "bigint"}], "format": "parquet", "options": {"path": 5}},
    {"name": "s", "columns": [{"name": "k", "type": "bigint"}], "format": "parquet", "options": {"path": "\x00"}},
    {
        "name": "s",
        "columns": [{"name": "\x00", "type": "bigint"}],
        "format": "parquet",
        "options": {"path": "/nowhere"},
    },
    {
        "name": "s",
        "columns": [{"name": "k", "type": "decimal(99,1)"}],
        "format": "csv",
        "options": {"path": "/nowhere"},
    },
    {
        "name": "s",
        "columns": [{"name": "k", "type": "struct<x:int>"}],
        "format": "csv",
        "options": {"path": "/nowhere"},
    },
    {
        "name": "s",
        "columns": [{"name": "value", "type": "bigint"}],
        "format": "rate",
        "options": {"rowsPerSecond": "-5"},
    },
    {
        "name": "s",
        "columns": [{"name": "value", "type": "bigint"}],
        "format": "socket",
        "options": {"host": "169.254.169.254", "port": "80"},
    },
    {"name": "s", "columns": [{"name": "v", "type": "string"}], "format": "java.lang.Runtime", "options": {}},
)
GET = ("GET", "/v1/queries")

REQUESTS = (
    *_of("bodies that are no query", *(_post(body) for body in BODIES)),
    *_of("bodies of another kind", *(_request("POST", "/v1/queries", b'{"sql": "x"}', {"Content-Type": kind}) for kind in ("", "text/plain", "application/xml", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "application/json; charset=utf-16", "x" * 3_000, "application/json;" * 200))),
    *_of("compressed bodies", *(_request("POST", "/v1/queries", body, {"Content-Encoding": kind}) for kind, body in (("gzip", b"\x1f\x8b\x08\x00"), ("br", b"\x00"), ("gzip", b'{"sql": "x"}'), ("identity", b'{"sql": "x"}')))),
    *_of("bodies of another length", _request("POST", "/v1/queries", b"{}", {"Content-Length": "-1"}), _request("POST", "/v1/queries", b"{}", {"Content-Length": "x"}), _request("POST", "/v1/queries", b"{}", {"Content-Length": "99999999999999999999"}), _request("POST", "/v1/queries", b"{}", {"Content-Length": "2, 3"}), _request("POST", "/v1/queries", b"{}", {"Transfer-Encoding": "chunked"}), _request("POST", "/v1/queries", b"{}", {"Content-Length": "", "Transfer-Encoding": "chunked, chunked"})),
    *_of("chunks that make no sense", *(_request("POST", "/v1/queries", None, {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}) + chunk for chunk in (b"zz\r\n", b"FFFFFFFFFFFFFFFF\r\nx", b"-1\r\n\r\n", b"1\r\n{\r\n1;" + b"x" * 70_000, b"5\r\nab", b"0\r\n" + b"X: y\r\n" * 500 + b"\r\n"))),
    *_of("bodies beyond the limit", _post(b'{"sql": "' + b"x" * 3_000_000 + b'"}'), _post(json.dumps({"sql": SQL, "name": "x" * 900_000})), _post(json.dumps({"sql": f"SELECT k FROM a WHERE s = '{'x' * 200_000}'"})), _request("PUT", "/v1/queries/big", b"[" + b"1," * 700_000 + b"1]")),
    *_of("names of queries", *(_query(name=name) for name in NAMES), *(_query(name=name) for name in ODD_NAMES)),
    *_of("options of the wrong kind", *(_query(name="options", options=options) for options in OPTIONS)),
    *_of("unknown fields", _query(nope=1), _query(replace="maybe"), _query(replace=5), _query(name="x", options={}, owner="admin"), _query(id="pairs#1"), _query(__class__="x")),
    *_of("paths out of the service", *(_request("GET", path) for path in PATHS)),
    *_of("parameters out of range", *(_request("GET", path) for path in PARAMETERS), *(_request("DELETE", f"/v1/queries/nope?wait={text}") for text in ("-1", "1e9", "NaN", "inf", "x"))),
    *_of("tokens that are none", *(_request(*GET, token=token) for token in TOKENS), _request(*GET, headers={"Authorization": "Basic eDp5"}), _request(*GET, headers={"Authorization": "Bearer"}), _request(*GET, headers={"Authorization": ""})),
    *_of("verbs that are none", *(_request(verb, "/v1/queries") for verb in VERBS), *(_request("POST", path, b"{}") for path in ("/healthz", "/metrics", "/v1/plan", "/v1/progress", "/v1/queries/pairs/results"))),
    *_of("statements", *(_post(json.dumps({"statement": text}), "/v1/statements") for text in STATEMENTS), *(_post(body, "/v1/statements") for body in (b"{}", b'{"statement": 5}', b'{"statement": null}'))),
    *_of("streams that are none", *(_post(json.dumps(body), "/v1/streams") for body in STREAM_BODIES), *(_post(b"{}", f"/v1/streams/{name}/bad_rows/retry") for name in ("nope", "%00", ".."))),
    *_of("what is only asked", *(_post(json.dumps({"sql": text}), "/v1/validate") for text in ("", "SELECT", "SELECT k FROM a WHERE " + " OR ".join(["v = 1"] * 5_000), "SELECT 1 / 0 FROM a", "SELECT repeat('x', 1000000000) FROM a", "\x00", "SELECT k FROM nope"))),
    *_of("keys of requests", *(_request("POST", "/v1/queries", b'{"sql": "SELECT k FROM a", "name": "keyed"}', {"Idempotency-Key": key}) for key in ("", " ", "x" * 300, "a b", "\u00e9", "../x", "a", "a")), _request("POST", "/v1/queries", b'{"sql": "SELECT v FROM a", "name": "keyed2"}', {"Idempotency-Key": "a"}), _request("DELETE", "/v1/queries/keyed", None, {"Idempotency-Key": "a"})),
    *_of("headers of other hosts", *(_request(*GET, headers={"Host": host}) for host in ("evil.example", "", "127.0.0.1:1", "localhost.evil.example", "x" * 5_000, "[::1", "\u00e9")), _request(*GET, headers={"X-Forwarded-For": "1.2.3.4", "X-Forwarded-Host": "evil", "X-HTTP-Method-Override": "DELETE"})),
    *_of("headers without end", _request(*GET, headers={f"X-{i}": "y" for i in range(2_000)}), _request(*GET, headers={"X-Long": "y" * 200_000}), _request(*GET, headers={"X" * 100_000: "y"}), _request(*GET, headers={"Cookie": "a=b; " * 20_000}), _request(*GET, headers={"Accept": "text/html, " * 5_000})),
    *_of("answers of another kind", *(_request("GET", "/v1/queries/pairs/results?last=1", headers={"Accept": kind}) for kind in ("text/html", "application/xml", "nonsense", "*/*;q=x", "application/vnd.apache.arrow.stream;q=0", "\x7f")), _request("GET", "/v1/queries/pairs/results", headers={"Range": "bytes=0-5", "If-None-Match": "*"}), _request("GET", "/v1/queries/pairs/events?from_batch=0", headers={"Accept": "application/json"}), _request("GET", "/v1/events", headers={"Last-Event-ID": "99999999999999999999", "Accept": "x"}), _request("GET", "/v1/queries/nope/events", headers={"Last-Event-ID": "x"})),
    *_of("no HTTP at all", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00" * 1_000, b"SSH-2.0-x\r\n", b"GET /\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\r\n" * 500, b"GET /v1/queries HTTP/1.1\nHost: x\n\n", b"x" * 300_000, b"GET " + b"/" * 200_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nBad Header\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    *_of("connections that want to be something else", *(_request("GET", "/v1/events", headers={"Connection": "Upgrade", "Upgrade": kind, "Sec-WebSocket-Key": "x", "Sec-WebSocket-Version": "13"}) for kind in ("websocket", "h2c", "TLS/1.0")), _request("POST", "/v1/queries", b"{}", {"Expect": "100-continue"}), _request("POST", "/v1/queries", b"{}", {"Expect": "nonsense"}), _request(*GET, headers={"Connection": "keep-alive"}) * 50 + _request(*GET)),
    *_of("clients that go away", *(_request("GET", path, headers={"Connection": "close"}) for path in ("/v1/queries/pairs/results?limit=100000", "/v1/events", "/v1/queries/pairs/events?from_batch=0", "/metrics", "/v1/plan?trace=true")), _post(b'{"sql": "SELECT k FROM a", "name": "gone"}'), reads=False),
    HostileRequest("heads that never end", "a header a second", (b"GET /healthz HTTP/1.1\r\n", *(b"X: y\r\n" for _ in range(6))), 1.0),
    HostileRequest("heads that never end", "a byte at a time", tuple(bytes([byte]) for byte in b"GET /h"), 1.0),
    HostileRequest("bodies that never come", "a length and no body", (_request("POST", "/v1/queries", None, {"Content-Length": "100", "Content-Type": "application/json"}), b"{", b" ", b" ", b" ", b" ", b" ", b" ", b" "), 1.0),
    HostileRequest("bodies that never come", "a chunk a second", (_request("POST", "/v1/queries", None, {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}), *(b"1\r\n{\r\n" for _ in range(8))), 1.0),
    HostileRequest("half-open connections", "700 that say nothing", (b"",), 0.0, False, times=700),
    HostileRequest("half-open connections", "700 in the middle of a head", (b"GET / HTTP/1.1\r\nX: ",), 0.0, False, times=700),
    HostileRequest("readers that never read", "120 event streams", (_request("GET", "/v1/queries/pairs/events?from_batch=0"),), 0.0, False, times=120),
    HostileRequest("readers that never read", "200 large pages", (_request("GET", "/v1/queries/pairs/results?limit=100000"),), 0.0, False, times=200),
)  # fmt: skip
