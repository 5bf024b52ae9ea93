"""The examples of docs/client.md and docs/cli.md run as they are."""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dovetail.cli.main import app
from dovetail.client.connection import Connection, write_connection
from dovetail.service.access.tokens import Role
from tests.support.running_service import RunningService, push_seen

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.fixture
def busy_service(service: RunningService) -> Iterator[RunningService]:
    """Batches go on until the test has ended."""
    write_connection(Connection(service.url, service.token("reader", Role.ADMIN)))
    ended = threading.Event()

    def push() -> None:
        while not ended.wait(0.05):
            push_seen(service.session, [1, 2])

    pushing = threading.Thread(target=push)
    pushing.start()
    yield service
    ended.set()
    pushing.join()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_example_of_the_client_runs(busy_service: RunningService, capsys: pytest.CaptureFixture[str]) -> None:
    assert busy_service.url
    (example,) = blocks("client.md", "python")
    exec(compile(example, "client.md", "exec"), {})  # noqa: S102 - our own text
    printed = capsys.readouterr().out
    assert printed.startswith("running ")
    assert "'page': 'home'" in printed


def test_the_commands_of_the_page_run(busy_service: RunningService) -> None:
    assert busy_service.url
    (listing,) = blocks("cli.md", "console")
    commands = re.findall(r"^\$ dovetail (.*)$", listing, flags=re.MULTILINE)
    assert len(commands) == len(listing.splitlines())
    for command in commands:
        answer = CliRunner().invoke(app, shlex.split(command))
        assert answer.exit_code == 0, f"{command}: {answer.output}"
        assert answer.stdout


def test_the_page_names_every_command() -> None:
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    for group in ("query", "stream"):
        listed = CliRunner().invoke(app, [group, "--help"]).output
        names = re.findall(r"^│ (\w+) {2,}", listed.partition("Commands")[2], flags=re.MULTILINE)
        assert names
        assert [name for name in names if f"`{group} {name}" not in text] == []
