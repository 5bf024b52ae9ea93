from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from typer.testing import CliRunner

from dovetail.cli.main import app
from dovetail.service.access.tokens import Caller, Role, TokenFile
from dovetail.service.config.config import load_config


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "serve.yaml"
    file.write_text("checkpoint_dir: ./checkpoint\nstreams:\n  ticks: {format: rate, event_time: timestamp}\n")
    return file


def run(*words: str | Path) -> tuple[int, str]:
    answer = CliRunner().invoke(app, [str(word) for word in words])
    return answer.exit_code, answer.output.strip()


def test_a_configuration_is_checked_without_spark(config: Path) -> None:
    code, text = run("serve", config, "--check")
    assert (code, text.splitlines()) == (
        0,
        ["line 3, stream ticks: create", f"{config}: 1 streams, 0 queries, nothing wrong"],
    )
    config.write_text("checkpoint_dir: x\nlisten: {port: many}\n")
    code, text = run("serve", config, "--check")
    assert code == 1
    assert "line 2, listen.port" in text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("checkpoint_dir: /dev/null", "line 1, checkpoint_dir: /dev/null is no folder"),
        ("checkpoint_dir: /dev/null/x/y", "line 1, checkpoint_dir: /dev/null/x cannot be made"),
        ("checkpoint_dir: /proc/x", "line 1, checkpoint_dir: /proc/x cannot be made: No such file"),
        ("checkpoint_dir: /", "line 1, checkpoint_dir: is the root of the filesystem"),
        ('checkpoint_dir: "\\0"', "\\x00' cannot be a path"),
        ("checkpoint_dir: ck\naudit_log: /", "line 2, audit_log: / is a folder"),
        ("checkpoint_dir: ck\naudit_log: /proc/x/y", "line 2, audit_log: /proc/x cannot be made"),
        ("checkpoint_dir: ck\nauth: {token_file: open}", "line 2, auth.token_file: others can read or change"),
        ("checkpoint_dir: ck\nauth: {token_file: none}", "line 2, auth.token_file: the file of the first token cannot"),
        ("checkpoint_dir: taken", "checkpoint_dir: {folder}/taken.service is no folder"),
    ],
)
@pytest.mark.parametrize("options", [["--check"], []], ids=["check", "serve"])
def test_places_that_cannot_be_used_are_named_before_spark_starts(
    config: Path, text: str, problem: str, options: list[str]
) -> None:
    config.write_text(text + "\n")
    for name in ("open", "taken.service"):
        (config.parent / name).write_text("a token of twenty-four characters")
    (config.parent / "open").chmod(0o644)
    before = sorted(config.parent.iterdir())
    code, answer = run("serve", config, *options)
    assert code == 1
    assert problem.format(folder=config.parent) in answer
    assert "instead: " in answer
    assert sorted(config.parent.iterdir()) == before


def test_places_that_can_be_made_are_not_made_by_a_check(config: Path) -> None:
    config.write_text("checkpoint_dir: ./new/checkpoint\naudit_log: ./logs/audit.jsonl\n")
    assert run("serve", config, "--check")[0] == 0
    assert list(config.parent.iterdir()) == [config]


def test_a_check_compiles_every_query_and_names_line_and_query(config: Path) -> None:
    config.write_text(
        config.read_text()
        + dedent("""\
        queries:
          right: {sql: SELECT value FROM ticks}
          wrong:
            sql: SELECT valu FROM ticks
        """)
    )
    code, text = run("serve", config, "--check")
    assert code == 1
    lines = text.splitlines()
    assert "line 5, query right: create" in lines
    assert any(line.startswith("line 7, query wrong: cannot be used: ") and "valu" in line for line in lines)
    assert "1 of 1 streams and 2 queries cannot be used" in text


@pytest.mark.parametrize("place", ["checkpoint/x", "checkpoint.service", "in", "."])
def test_a_check_finds_sinks_that_write_where_they_must_not(config: Path, place: str) -> None:
    config.write_text(
        dedent(f"""\
        checkpoint_dir: ./checkpoint
        streams:
          files: {{format: json, columns: {{k: bigint}}, options: {{path: ./in}}}}
        queries:
          out: {{sql: SELECT k FROM files, options: {{sink: json, sink.path: "{config.parent / place}"}}}}
          good: {{sql: SELECT k FROM files, options: {{sink: json, sink.path: "{config.parent}/out"}}}}
        """)
    )
    code, text = run("serve", config, "--check")
    assert code == 1
    assert "line 5, query out: cannot be used: sink.path of query 'out' is" in text
    assert "line 6, query good: create" in text


def test_tokens_are_made_listed_and_revoked(config: Path) -> None:
    code, token = run("token", "create", "--config", config, "--name", "alice", "--role", "write")
    tokens = TokenFile(load_config(config).service_options.tokens_file)
    assert (code, tokens.caller_of(token)) == (0, Caller("alice", Role.WRITE))
    code, listed = run("token", "list", "--config", config)
    assert (code, "alice" in listed, token in listed) == (0, True, False)
    assert run("token", "revoke", "--config", config, "--name", "alice") == (0, "revoked alice")
    assert tokens.caller_of(token) is None
    code, text = run("token", "revoke", "--config", config, "--name", "alice")
    assert (code, "no token 'alice'" in text) == (1, True)
    assert run("token", "create", "--config", config, "--name", "x", "--role", "king")[0] == 2
