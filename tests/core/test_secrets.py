"""Secrets by reference: resolved when they are used, and then in no error and no line of a log."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import pytest

from dovetail.core.errors import QueryError, SecretError
from dovetail.core.secret_reference import check_reference, resolved


def test_a_reference_stands_for_a_variable_or_for_the_text_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_ENV", "from env 1")
    file = tmp_path / "key"
    file.write_text("from file 1\n")
    file.chmod(0o600)
    given = {"a": "secret://env/OF_ENV", "b": f"secret://file{file}", "c": "plain"}
    assert resolved(given) == {"a": "from env 1", "b": "from file 1", "c": "plain"}


@pytest.mark.parametrize(
    "text", ["secret://", "secret://env/", "secret://env/A-B", "secret://file", "secret://vault/a"]
)
def test_a_malformed_reference_says_how_to_write_one(text: str) -> None:
    with pytest.raises(SecretError, match="secret://env/NAME"):
        check_reference(text)


def test_nothing_behind_a_reference_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SecretError, match="secret://env/NOT_SET_AT_ALL"):
        resolved({"a": "secret://env/NOT_SET_AT_ALL"})
    with pytest.raises(SecretError, match="No such file"):
        resolved({"a": f"secret://file{tmp_path}/none"})


def test_a_file_that_everybody_reads_is_refused_with_the_command_to_run(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("known to all")
    file.chmod(0o644)
    with pytest.raises(SecretError, match=f"chmod o-rwx {file}"):
        resolved({"a": f"secret://file{file}"})


def test_a_resolved_secret_is_in_no_error_and_no_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OF_ENV", "hunter2\nand more")
    resolved({"a": "secret://env/OF_ENV"})
    error = QueryError("a library said hunter2", where="at hunter2", hint="not hunter2")
    assert "hunter2" not in f"{error} {pickle.loads(pickle.dumps(error))}"  # noqa: S301 - our own
    try:
        raise ValueError("jdbc:x?password=hunter2")
    except ValueError:
        logging.getLogger("dovetail").exception("it failed with %s", "hunter2\nand more")
    assert "hunter2" not in caplog.text
    assert "ValueError: jdbc:x?password=***" in caplog.text
