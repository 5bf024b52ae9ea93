"""Who changed or tried what: one JSON line per change and per refusal, never with a token in it."""

from __future__ import annotations

import json
import logging
import sys
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, cast

from dovetail.core.errors import ServiceError
from dovetail.core.private_files import open_private, private_folder

_MAX_BYTES = 64 << 20
_KEPT_FILES = 4


class AuditLog:
    """Rotates by size; a full disk must not stop the service, so a line that cannot be written goes to the log."""

    def __init__(self, path: Path) -> None:
        try:
            private_folder(path.parent)
            self._handler = _PrivateHandler(path, maxBytes=_MAX_BYTES, backupCount=_KEPT_FILES, encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ServiceError(
                f"the audit log cannot be written: {getattr(error, 'strerror', None) or error}",
                where=f"{str(path)!a}",
                hint="audit_log: give a file in a folder that this user can make or write to",
            ) from None

    def write(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, separators=(",", ":"))
        self._handler.handle(logging.LogRecord("dovetail.audit", logging.INFO, "", 0, line, None, None))

    def close(self) -> None:
        self._handler.close()


class _PrivateHandler(RotatingFileHandler):
    def _open(self) -> TextIOWrapper:
        return cast(TextIOWrapper, open_private(Path(self.baseFilename), self.mode))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        error = sys.exc_info()[1]
        logging.getLogger("dovetail").error("the audit log cannot be written (%s): %s", error, record.getMessage())
