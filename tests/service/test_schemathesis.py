"""Whatever a client sends, within the schema or outside: no 500, no hang, and only answers that the schema names."""

from __future__ import annotations

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from dovetail.service.config.options import Limits
from tests.support.examples import examples

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
PATIENCE_S = 20
# Never-ending answers are driven in `test_parameters_of_event_streams`.
EVENTS = r"/events$"


@pytest.fixture(scope="module")
def service(lasting_world, join):
    rates = {"changes_per_s": 100_000, "changes_burst": 100_000, "reads_per_s": 100_000, "reads_burst": 100_000}
    client = lasting_world.client(limits=Limits(**rates), open_docs=True)
    client.post("/v1/queries", json={"sql": join, "name": "q"})
    lasting_world.push(a=[(1, 1, 0)], b=[(1, 2, 0)])
    return client


@pytest.fixture(scope="module")
def operations(service):
    found = schemathesis.openapi.from_url(f"{service.base_url}/openapi.json").exclude(path_regex=EVENTS)
    return [operation.ok() for operation in found.get_all_operations()]


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@settings(examples(0.8), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_request_is_answered_as_the_schema_says(service, operations, mode, data):
    operation = data.draw(st.sampled_from(operations), label="operation")
    case = data.draw(operation.as_strategy(generation_mode=mode), label="case")
    case.call_and_validate(
        base_url=str(service.base_url),
        headers={"Authorization": service.headers["Authorization"]},
        checks=CHECKS,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize("path", ["/v1/queries/q/events", "/v1/events"])
@pytest.mark.parametrize(
    "query",
    ["", "from_batch=0", "from_batch=-1", "from_batch=x", "rows=0", "rows=-1", "rows=1e9", "from_batch=99999999999"],
)
@pytest.mark.parametrize("last", ["", "0", "5", "9999999999", "x", "-1", "99999999999999999999"])
def test_parameters_of_event_streams(service, path, query, last):
    headers = {"Last-Event-ID": last} if last else {}
    with service.stream("GET", f"{path}?{query}", headers=headers, timeout=httpx.Timeout(PATIENCE_S)) as response:
        assert response.status_code in (200, 422)
