"""How the first person gets in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dovetail.core.errors import ServiceError
from dovetail.core.private_files import is_private
from dovetail.service.access.tokens import FIRST_ADMIN, Caller, Role, TokenFile

VARIABLE = "DOVETAIL_ADMIN_TOKEN"


def ensure_first_token(tokens: TokenFile, token_file: Path | None, variables: Mapping[str, str]) -> str | None:
    """A token that is given by file or variable is let in as admin; without one and without any, one is made.

    The answer is a token that was made now: to be shown once, it is nowhere else.
    """
    given = given_token(token_file, variables)
    if given is None:
        return None if tokens.all() else tokens.create(FIRST_ADMIN, Role.ADMIN)
    if tokens.caller_of(given) != Caller(FIRST_ADMIN, Role.ADMIN):
        if any(stored.name == FIRST_ADMIN for stored in tokens.all()):
            tokens.revoke(FIRST_ADMIN)
        tokens.create(FIRST_ADMIN, Role.ADMIN, given)
    return None


def given_token(token_file: Path | None, variables: Mapping[str, str]) -> str | None:
    """The first token as a person chose it; None if nobody did."""
    if token_file is None:
        return variables.get(VARIABLE) or None
    try:
        is_open = not is_private(token_file)
        token = token_file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        raise ServiceError(
            "the file of the first token cannot be read",
            where=f"{str(token_file)!a}",
            hint="write a token of at least 24 characters into it; or leave token_file out, and one is made",
        ) from None
    if is_open:
        raise ServiceError(
            "others can read or change the file of the first token",
            where=str(token_file),
            hint=f"chmod 600 {token_file}",
        )
    if not token:
        raise ServiceError("the file of the first token is empty", where=str(token_file))
    return token
