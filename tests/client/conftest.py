from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.client import Client
from dovetail.service.access.tokens import Role
from tests.support.running_service import RunningService, running_service, views_and_clicks


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("DOVETAIL_URL", raising=False)
    monkeypatch.delenv("DOVETAIL_TOKEN", raising=False)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RunningService]:
    session = views_and_clicks(tmp_path / "checkpoint")
    try:
        with running_service(session, tmp_path / "service") as running:
            yield running
    finally:
        session.stop()


@pytest.fixture
def client(service: RunningService) -> Iterator[Client]:
    with Client(service.url, service.token("tester", Role.ADMIN)) as connected:
        yield connected
