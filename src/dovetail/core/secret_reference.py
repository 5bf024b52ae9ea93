"""Secrets by reference: `secret://env/NAME` is an environment variable, `secret://file/PATH` the text of a file.

A reference is what is kept, shown and sent; it is resolved where the value is used, by the driver that opens a source
or a sink, and only there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from dovetail.core.errors import SecretError
from dovetail.core.known_secrets import remember_secret

SCHEME = "secret://"
HOW_TO_WRITE = "write secret://env/NAME for an environment variable of the service, or secret://file/PATH for a file"
_VARIABLE = re.compile(r"secret://env/([A-Za-z_][A-Za-z0-9_]*)\Z")
_FILE = re.compile(r"secret://file(/[^\x00]+)\Z")
_OTHERS_READ = 0o004


def is_reference(value: str) -> bool:
    return value.startswith(SCHEME)


def check_reference(value: str) -> None:
    """Raise unless it is well formed; whether there is something behind it shows when it is used."""
    if not _VARIABLE.match(value) and not _FILE.match(value):
        raise SecretError(f"{value[:100]!r} is no reference to a secret", hint=HOW_TO_WRITE)


def resolved(options: Mapping[str, str]) -> dict[str, str]:
    """The options with the secrets themselves: for the call that uses them, and to be kept nowhere."""
    return {key: _resolve(value) if is_reference(value) else value for key, value in options.items()}


def _resolve(reference: str) -> str:
    check_reference(reference)
    variable, file = _VARIABLE.match(reference), _FILE.match(reference)
    if variable is not None:
        value = os.environ.get(variable[1], "")
    else:
        assert file is not None
        value = _text_of(Path(file[1]), reference)
    if not value:
        raise SecretError(f"there is no secret behind {reference}", hint="set the variable or fill the file, and retry")
    remember_secret(value)
    return value


def _text_of(path: Path, reference: str) -> str:
    try:
        if path.stat().st_mode & _OTHERS_READ:
            raise SecretError(f"everybody can read the secret of {reference}", hint=f"chmod o-rwx {path}")
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8"
        raise SecretError(
            f"the secret of {reference} cannot be read: {why}", hint="see the path and its owner"
        ) from None
