from __future__ import annotations

import threading

import pytest

from dovetail.core.errors import ServiceError
from dovetail.service.access.first_token import VARIABLE, ensure_first_token
from dovetail.service.access.tokens import FIRST_ADMIN, Caller, Role, TokenFile


@pytest.fixture
def tokens(tmp_path):
    return TokenFile(tmp_path / "service" / "tokens.json")


def test_a_token_is_known_and_kept_only_as_a_hash(tokens):
    token = tokens.create("alice", Role.WRITE)
    assert tokens.caller_of(token) == Caller("alice", Role.WRITE)
    assert tokens.caller_of(token + "x") is None
    assert token not in tokens.path.read_text()
    assert oct(tokens.path.stat().st_mode)[-3:] == "600"
    assert oct(tokens.path.parent.stat().st_mode)[-3:] == "700"


def test_a_file_that_others_can_read_is_refused(tokens):
    tokens.create("alice", Role.WRITE)
    tokens.path.chmod(0o644)
    with pytest.raises(ServiceError, match="others can read"):
        TokenFile(tokens.path).all()


def test_names_are_checked_and_unique(tokens):
    tokens.create("alice", Role.READ)
    with pytest.raises(ServiceError, match="exists already"):
        tokens.create("alice", Role.READ)
    for name in ("", "a b", "x" * 65, "../x", "a\n"):
        with pytest.raises(ServiceError, match="cannot name"):
            tokens.create(name, Role.READ)
    with pytest.raises(ServiceError, match="no token"):
        tokens.revoke("bob")


def test_writers_at_once_lose_nothing(tokens):
    threads = [
        threading.Thread(target=TokenFile(tokens.path).create, args=(f"t{number}", Role.READ)) for number in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tokens.all()) == 12


def test_a_broken_file_is_an_error_that_names_it(tokens):
    tokens.create("alice", Role.READ)
    tokens.path.write_text("{")
    with pytest.raises(ServiceError, match="cannot be read") as refused:
        tokens.all()
    assert str(tokens.path) in str(refused.value)


def test_a_folder_in_its_place_is_an_error_that_says_so(tokens):
    tokens.path.mkdir(parents=True)
    with pytest.raises(ServiceError, match="is no file") as caught:
        tokens.all()
    assert "move away what is there" in caught.value.hint


def test_roles_include_those_below():
    assert [Role.ADMIN.includes(role) for role in Role] == [True, True, True]
    assert [Role.READ.includes(role) for role in Role] == [True, False, False]


def test_the_first_token_is_made_once(tokens):
    token = ensure_first_token(tokens, None, {})
    assert tokens.caller_of(token) == Caller(FIRST_ADMIN, Role.ADMIN)
    assert ensure_first_token(tokens, None, {}) is None


def test_the_first_token_may_be_given_and_changed(tokens, tmp_path):
    file = tmp_path / "first"
    file.write_text("a-token-of-more-than-24-characters\n")
    file.chmod(0o644)
    with pytest.raises(ServiceError, match=f"chmod 600 {file}"):
        ensure_first_token(tokens, file, {})
    file.chmod(0o600)
    assert ensure_first_token(tokens, file, {}) is None
    assert tokens.caller_of("a-token-of-more-than-24-characters").role is Role.ADMIN
    assert ensure_first_token(tokens, None, {VARIABLE: "another-token-of-more-than-24"}) is None
    assert tokens.caller_of("a-token-of-more-than-24-characters") is None
    assert tokens.caller_of("another-token-of-more-than-24").role is Role.ADMIN


def test_a_short_or_missing_first_token_is_refused(tokens, tmp_path):
    with pytest.raises(ServiceError, match="too short"):
        ensure_first_token(tokens, None, {VARIABLE: "secret"})
    with pytest.raises(ServiceError, match="cannot be read"):
        ensure_first_token(tokens, tmp_path / "none", {})
