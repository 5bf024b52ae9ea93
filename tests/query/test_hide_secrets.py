"""Which values of options are shown: those known to be harmless, and no others."""

from __future__ import annotations

import pytest

from dovetail.core.errors import SecretError
from dovetail.query.hide_secrets import check_no_secrets, hide_secrets

SHOWN = [
    ("kafka", "kafka.bootstrap.servers", "a:9092,b:9092"),
    ("kafka", "startingOffsets", '{"token":{"0":23}}'),
    ("parquet", "path", "/data/a@b;c=d"),
    ("json", "PATH", "s3a://bucket/views"),
    ("csv", "sep", ";"),
    ("jdbc", "url", "jdbc:postgresql://db:5432/shop"),
    ("rate", "rowsPerSecond", "5"),
    ("made.up", "password", "secret://env/X"),
    ("made.up", "use_token", "true"),
]
HIDDEN = [
    ("made.up", "path", "/data"),
    ("made.up", "key", "abc"),
    ("rate", "x", "y"),
    ("kafka", "kafka.made.up", "z"),
    ("parquet", "path", "abfss://c@account/views"),
    ("parquet", "path", "https://h/x?v=1"),
    ("jdbc", "url", "jdbc:sqlserver://db;user=u;password=p"),
    ("jdbc", "url", "jdbc:sqlserver://db;trust=yes"),
    ("jdbc", "url", "jdbc:oracle:thin:scott/tiger@db"),
    ("jdbc", "dbtable", "(SELECT 1 WHERE token = 'x')"),
]
REFUSED = [
    ("pwd", "x"),
    ("apikey", "x"),
    ("api-key", "x"),
    ("passphrase", "x"),
    ("private_key", "x"),
    ("sas", "x"),
    ("fs.azure.sas.fixed", "x"),
    ("kafka.ssl.keystore.key", "x"),
    ("header.Authorization", "x"),
    ("fs.s3a.access.key", "x"),
    ("note", "jdbc:postgresql://db/shop?user=u&password=p"),
    ("note", "jdbc:oracle:thin:scott/tiger@db"),
    ("note", "amqp://user:pass@host"),
    ("note", '{"password": "x"}'),
    ("note", "-----BEGIN PRIVATE KEY-----"),
    ("note", "secret://else"),
]
TAKEN = [
    ("kafka.sasl.mechanism", "PLAIN"),
    ("assign", '{"auth":[0,1]}'),
    ("path", "/data/pass/2026"),
    ("password", "secret://file/run/p"),
    ("made.up", "x"),
    ("maxOffsetsPerTrigger", "7"),
]


@pytest.mark.parametrize(("kind", "key", "value"), SHOWN)
def test_what_is_known_to_be_harmless_is_shown(kind: str, key: str, value: str) -> None:
    assert hide_secrets(kind, {key: value}) == {key: value}


@pytest.mark.parametrize(("kind", "key", "value"), HIDDEN)
def test_everything_else_is_hidden(kind: str, key: str, value: str) -> None:
    assert hide_secrets(kind, {key: value}) == {key: "***"}


@pytest.mark.parametrize(("key", "value"), REFUSED)
def test_what_surely_is_a_secret_must_be_a_reference(key: str, value: str) -> None:
    with pytest.raises(SecretError) as caught:
        check_no_secrets("it", {key: value})
    assert "secret://env/NAME" in str(caught.value)


@pytest.mark.parametrize(("key", "value"), TAKEN)
def test_what_is_no_secret_for_sure_is_taken(key: str, value: str) -> None:
    check_no_secrets("it", {key: value})
