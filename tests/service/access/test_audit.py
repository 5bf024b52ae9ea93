"""Where the audit log cannot be written, a service says so before it begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.core.errors import ServiceError
from dovetail.service.access.audit import AuditLog


@pytest.mark.parametrize("path", ["/", "/proc/x/audit.jsonl", "/dev/null/audit.jsonl", "a\0b"])
def test_a_log_that_cannot_be_written_is_refused_with_what_to_do(path: str) -> None:
    with pytest.raises(ServiceError, match="the audit log cannot be written") as caught:
        AuditLog(Path(path))
    assert "audit_log" in str(caught.value.hint)
