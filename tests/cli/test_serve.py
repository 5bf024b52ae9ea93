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
