from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from textwrap import dedent

import pytest

from dovetail.core.errors import ConfigError
from dovetail.query.stream_spec import StreamSpec
from dovetail.query.types import BIGINT, STRING, TIMESTAMP, SqlType
from dovetail.service.config.config import SESSION_KEYS, Auth, Listen, QueryConfig, ServiceConfig, load_config
from dovetail.service.config.options import Limits

DOCS = Path(__file__).parents[3] / "docs" / "configuration.md"
EXAMPLE = Path(__file__).parents[3] / "examples" / "serve.yaml"


class ConfigFile:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "serve.yaml"

    def load(self, text: str, **variables: str) -> ServiceConfig:
        self.path.write_text(dedent(text), encoding="utf-8")
        return load_config(self.path, variables)

    def problems(self, text: str, **variables: str) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(text, **variables)
        assert str(self.path) in str(caught.value)
        return str(caught.value)


@pytest.fixture
def file(tmp_path: Path) -> ConfigFile:
    return ConfigFile(tmp_path)


def test_the_example_is_right() -> None:
    config = load_config(EXAMPLE, {})
    assert config.checkpoint_dir == EXAMPLE.parent / "checkpoint"
    assert [spec.name for spec in config.streams] == ["views", "comments"]
    assert [query.name for query in config.queries] == ["busy_users"]


def test_the_docs_name_every_key() -> None:
    text = DOCS.read_text(encoding="utf-8")
    parts = {"listen": Listen, "auth": Auth, "limits": Limits}
    keys = {entry.name for entry in fields(ServiceConfig) if entry.compare} - set(parts)
    keys |= {f"{part}.{entry.name}" for part, record in parts.items() for entry in fields(record)}
    assert [key for key in sorted(keys) if f"| `{key}` |" not in text] == []
    options = DOCS.with_name("options.md").read_text(encoding="utf-8")
    assert [key for key in SESSION_KEYS if f"| `{key}` |" not in options] == []


def test_a_checkpoint_folder_is_enough(file: ConfigFile, tmp_path: Path) -> None:
    config = file.load("checkpoint_dir: here")
    assert config == ServiceConfig(tmp_path / "here")
    assert (config.listen, config.auth, config.limits) == (Listen("127.0.0.1", 8642), Auth(True), Limits())


def test_everything_is_read(file: ConfigFile, tmp_path: Path) -> None:
    config = file.load(
        """
        checkpoint_dir: /var/checkpoint
        trigger: available_now
        spark: {spark.master: "local[2]", spark.ui.enabled: false, spark.task.cpus: 1}
        session: {partitions: 4, optimizer: joint, elastic: no}
        streams:
          clicks:
            format: csv
            columns: {id: bigint, price: "decimal(10,2)", url: string, ts: timestamp}
            event_time: ts
            lateness: 2 seconds
            options: {path: data/clicks, header: true}
          orders:
            format: kafka
            value_format: json
            columns: {id: bigint}
            options: {kafka.bootstrap.servers: "h:9092", subscribe: orders}
        queries:
          pairs:
            sql: SELECT c.url FROM clicks c JOIN orders o ON c.id = o.id
            options: {keep_intermediates: false, sink: kafka, sink.topic: pairs}
        listen: {host: 0.0.0.0, port: 80}
        auth: {token_file: token}
        limits: {queries_per_token: 1, max_body_bytes: 2, max_statement_chars: 3, max_results_per_batch: 4}
        audit_log: audit.jsonl
        """
    )
    columns = (("id", BIGINT), ("price", SqlType("decimal", 10, 2)), ("url", STRING), ("ts", TIMESTAMP))
    clicks = {"path": str(tmp_path / "data/clicks"), "header": "true"}
    orders = {"kafka.bootstrap.servers": "h:9092", "subscribe": "orders"}
    assert config == ServiceConfig(
        checkpoint_dir=Path("/var/checkpoint"),
        trigger="available_now",
        spark={"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.task.cpus": "1"},
        session={"partitions": 4, "optimizer": "joint", "elastic": False},
        streams=(
            StreamSpec("clicks", columns, "csv", clicks, "ts", "2 seconds"),
            StreamSpec("orders", (("id", BIGINT),), "kafka", orders),
        ),
        queries=(
            QueryConfig(
                "pairs",
                "SELECT c.url FROM clicks c JOIN orders o ON c.id = o.id",
                {"keep_intermediates": False, "sink": "kafka", "sink.topic": "pairs"},
            ),
        ),
        listen=Listen("0.0.0.0", 80),  # noqa: S104
        auth=Auth(True, tmp_path / "token"),
        limits=Limits(1, 2, 3, 4),
        audit_log=tmp_path / "audit.jsonl",
    )


def test_variables_are_filled_in_and_keep_their_kind(file: ConfigFile, tmp_path: Path) -> None:
    text = """
        checkpoint_dir: ${BASE}/checkpoint
        listen:
          port: ${PORT}
        spark: {spark.app.name: "$${BASE} as it is"}
        """
    config = file.load(text, BASE="deep", PORT="99")
    assert config.checkpoint_dir == tmp_path / "deep" / "checkpoint"
    assert config.listen.port == 99
    assert config.spark["spark.app.name"] == "${BASE} as it is"


def test_all_mistakes_are_reported_together_each_with_its_line_and_key(file: ConfigFile) -> None:
    text = """\
    checkpoint_dir: ${NOWHERE}/x
    triger: 1 second
    streams:
      views:
        format: parquet
        columns:
          id: bigint
          when: datetime
        options: {path: x}
      clicks:
        format: csv
        columns: {id: bigint, ts: timestamp}
        lateness: soon
        options: {path: y}
      clicks:
        format: rate
    limits:
      queries_per_token: many
    """
    assert file.problems(text) == dedent(
        f"""\
        {file.path} cannot be used: 6 problems
          line 1, checkpoint_dir: environment variable NOWHERE is not set
            instead: set it, or write $${{NOWHERE}} for the text itself
          line 2, triger: unknown key
            instead: did you mean trigger?
          line 8, streams.views.columns.when: 'datetime' is no type of a column; types are: boolean, tinyint, \
smallint, int, bigint, float, double, string, date, timestamp, timestamp_ntz, decimal(p,s)
          line 13, streams.clicks.lateness: stream 'clicks': lateness: 'soon' is no duration
            instead: write for example 10 SECONDS, '5 minutes' or '1 hour 30 minutes'
          line 15, streams.clicks: given twice, first in line 10
            instead: keep one
          line 18, limits.queries_per_token: is 'many'
            instead: use a whole number from 1 on"""
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("trigger: 1 second", "line 1, checkpoint_dir: is missing\n    instead: add  checkpoint_dir: ./checkpoint"),
        ("- a", "line 1: no keys and values"),
        ("", "line 1: no keys and values"),
        ("a: [1", "line 1: no YAML"),
        ("a: 1\n  b: 2", "line 2: no YAML: mapping values are not allowed here"),
        ("checkpoint_dir: x\ntrigger: often", "line 2, trigger: 'often' is no duration"),
        ("checkpoint_dir:", "line 1, checkpoint_dir: has no value"),
        ("checkpoint_dir: [x]", "line 1, checkpoint_dir: not a single value"),
        (
            "checkpoint_dir: x\nspark:\n  master: y",
            "line 3, spark.master: no setting of Spark\n    instead: write spark.m",
        ),
        ("checkpoint_dir: x\nspark: y", "line 2, spark: not a list of keys and values"),
        (
            "checkpoint_dir: x\nsession:\n  optimiser: joint",
            "line 3, session.optimiser: unknown key\n    instead: did you",
        ),
        ("checkpoint_dir: x\nsession:\n  optimizer: best", "line 3, session.optimizer: optimizer is 'best'"),
        ("checkpoint_dir: x\nsession:\n  elastic: maybe", "line 3, session.elastic: elastic is 'maybe'"),
        (
            "checkpoint_dir: x\nsession:\n  small_batch_rows: 5",
            "line 3, session.small_batch_rows: no option of a session\n    instead: it is inside",
        ),
        (
            "checkpoint_dir: x\nsession:\n  timezone: UTC",
            "line 3, session.timezone: no option of a session\n    instead: it is Spark's",
        ),
        ("checkpoint_dir: x\nstreams:\n  s: {}", "line 3, streams.s: stream 's': no format"),
        ("checkpoint_dir: x\nstreams:\n  s: {format: rate, event_time: no}", "has no column 'no' for its event time"),
        ("checkpoint_dir: x\nstreams:\n  s-t: {format: rate}", "line 3, streams.s-t: 's-t' cannot name a stream"),
        ("checkpoint_dir: x\nstreams:\n  s: {format: rate, rowsPerSecond: 5}", "streams.s.rowsPerSecond: unknown key"),
        (
            "checkpoint_dir: x\nstreams:\n  s: {format: rate}\n  S: {format: rate}",
            "line 4, streams.S: differs from another",
        ),
        ("checkpoint_dir: x\nqueries:\n  q: {}", "line 3, queries.q.sql: is missing"),
        (
            "checkpoint_dir: x\nqueries:\n  q: {sql: S, options: {sink: x, sink.password: hunter}}",
            "the sink of query 'q': the value of 'password' is a secret in clear",
        ),
        (
            "checkpoint_dir: x\nstreams:\n  s: {format: rate, options: {apikey: hunter}}",
            "line 3, streams.s.options.apikey: stream 's': the value of 'apikey' is a secret in clear",
        ),
        (
            "checkpoint_dir: x\nqueries:\n  q: {sql: SELECT 1, options: {sinc: x}}",
            "queries.q.options.sinc: unknown option",
        ),
        ("checkpoint_dir: x\nqueries:\n  'a b': {sql: SELECT 1}", "line 3, queries.a b: 'a b' cannot name a query"),
        (
            "checkpoint_dir: x\nlisten: {port: 70000}",
            "listen.port: is '70000'\n    instead: use a whole number from 0 to",
        ),
        ("checkpoint_dir: x\nauth: {enabled: 5}", "auth.enabled: is '5'\n    instead: use true or false"),
        ("checkpoint_dir: x\nauth: {enabled: off}\nlisten: {host: 0.0.0.0}", "listen.host: 0.0.0.0 is reachable from"),
    ],
)
def test_a_mistake_is_named_with_what_to_write(file: ConfigFile, text: str, problem: str) -> None:
    assert problem in file.problems(text)


def test_all_wrong_options_of_the_session_are_told_at_once(file: ConfigFile) -> None:
    told = file.problems("""\
        checkpoint_dir: x
        session:
          partitions: some
          optimizer: best
          elastic: maybe
          max_partitions: 4
          durability: none
          idle_timeout: long
          key_groups: 3
          max_pairs_per_batch:
        """)
    lines = [line.split(":")[0].strip() for line in told.splitlines() if line.strip().startswith("line ")]
    keys = [(3, "partitions"), (4, "optimizer"), (5, "elastic"), (7, "durability"), (8, "idle_timeout")]
    assert lines == [f"line {line}, session.{key}" for line, key in [*keys, (9, "key_groups")]]


def test_what_one_option_asks_of_another_is_told_once(file: ConfigFile) -> None:
    told = file.problems("checkpoint_dir: x\nsession: {max_partitions: 4, min_partitions: 2}")
    assert "1 problem\n" in told
    assert "the number of partitions is fixed" in told


def test_a_query_that_does_not_compile_is_not_the_matter_of_the_file(file: ConfigFile) -> None:
    (query,) = file.load("checkpoint_dir: x\nqueries:\n  q:\n    sql: SELEC").queries
    assert (query.name, query.line) == ("q", 4)


def test_loopback_needs_no_auth(file: ConfigFile) -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        assert not file.load(f"checkpoint_dir: x\nauth: {{enabled: false}}\nlisten: {{host: '{host}'}}").auth.enabled


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file") as caught:
        load_config(tmp_path / "nothing.yaml")
    assert "examples/serve.yaml" in str(caught.value)
