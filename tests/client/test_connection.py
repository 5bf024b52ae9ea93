from __future__ import annotations

import stat
from pathlib import Path

import pytest

from dovetail.client.connection import (
    DEFAULT_URL,
    Connection,
    connection_file,
    find_connection,
    offered_connection,
    write_connection,
)
from dovetail.client.errors import ConnectionSettingsError


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("DOVETAIL_URL", raising=False)
    monkeypatch.delenv("DOVETAIL_TOKEN", raising=False)


def test_arguments_come_before_the_environment_and_that_before_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_connection() == Connection(DEFAULT_URL)
    write_connection(Connection("http://file:1", "of-file"))
    assert find_connection() == Connection("http://file:1", "of-file")
    monkeypatch.setenv("DOVETAIL_URL", "http://environment:2/")
    monkeypatch.setenv("DOVETAIL_TOKEN", "of-environment")
    assert find_connection() == Connection("http://environment:2", "of-environment")
    assert find_connection("http://argument:3", "of-argument") == Connection("http://argument:3", "of-argument")


def test_the_token_of_the_file_goes_to_no_other_service() -> None:
    write_connection(Connection("http://file:1", "of-file"))
    assert find_connection("http://elsewhere:1") == Connection("http://elsewhere:1", None)


def test_only_the_user_may_read_the_file() -> None:
    path = write_connection(Connection("http://file:1", "secret"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_an_offer_ends_with_the_file_as_it_was() -> None:
    offer = Connection("http://demo:1", "secret")
    with offered_connection(offer):
        assert find_connection() == offer
    assert not connection_file().exists()
    own = Connection("http://own:1", "mine")
    write_connection(own)
    with offered_connection(offer):
        assert find_connection() == offer
    assert find_connection() == own
    assert stat.S_IMODE(connection_file().stat().st_mode) == 0o600


def test_an_offer_leaves_what_somebody_else_wrote_meanwhile() -> None:
    newer = Connection("http://newer:1", "other")
    with offered_connection(Connection("http://demo:1", "secret")):
        write_connection(newer)
    assert find_connection() == newer


@pytest.mark.parametrize("text", ["{", "[]", '{"url": "http://a:1"}', '{"url": 1, "token": 2}'])
def test_a_damaged_file_is_named(text: str) -> None:
    connection_file().parent.mkdir(parents=True)
    connection_file().write_text(text)
    with pytest.raises(ConnectionSettingsError, match=r"connection\.json"):
        find_connection()


@pytest.mark.parametrize("url", ["", "localhost:8642", "ftp://host", "http://", "http://host:port", "http://hö:1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConnectionSettingsError, match="no address"):
        Connection(url)


def test_a_token_cannot_carry_a_header() -> None:
    with pytest.raises(ConnectionSettingsError, match="token"):
        Connection("http://host:1", "token\r\nX-Other: 1")


def test_a_representation_has_no_token() -> None:
    assert "secret" not in repr(Connection("http://host:1", "secret"))
