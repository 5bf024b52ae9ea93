"""Secrets that this process has in clear, so that no error and no line of a log says one of them.

Libraries repeat what they were given: Spark, a driver, a broker. What passes through our own errors and loggers is
searched for every value that was resolved here.
"""

from __future__ import annotations

import logging
import threading

HIDDEN = "***"
_SHORTEST = 4
"""Shorter values stand in any text by chance, and taking them out would leave nothing to read."""
_lock = threading.Lock()
_values: tuple[str, ...] = ()


def remember_secret(value: str) -> None:
    """Its lines too: a log shows the first one alone."""
    global _values  # noqa: PLW0603 - known to the whole process, because its errors come from everywhere
    parts = {part.strip() for part in (value, *value.splitlines())}
    with _lock:
        # Longest first: a part must not be taken out of the whole.
        kept = {*_values, *(part for part in parts if len(part) >= _SHORTEST)}
        _values = tuple(sorted(kept, key=lambda text: (-len(text), text)))


def without_secrets(text: str) -> str:
    """The text as people and logs may see it."""
    for value in _values:
        if value in text:
            text = text.replace(value, HIDDEN)
    return text


class HideSecrets(logging.Filter):
    """On a logger: its lines and the traces below them say no secret."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not _values:
            return True
        record.msg, record.args = without_secrets(record.getMessage()), None
        told = record.exc_text
        if record.exc_info and not told:
            told = logging.Formatter().formatException(record.exc_info)
        if told and without_secrets(told) != told:
            # Handlers print the text where there is one; the exception itself has the secret.
            record.exc_text, record.exc_info = without_secrets(told), None
        return True


for _name in ("dovetail", "py4j.clientserver"):
    logging.getLogger(_name).addFilter(HideSecrets())
