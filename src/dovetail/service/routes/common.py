"""What routes have in common: who asks, with which role, under which request id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import Depends, Header, Query, Request, Response, Security
from fastapi.security import HTTPBearer

from dovetail.engine.control.registry import QueryRecord
from dovetail.service.access.refusals import RoleTooLow
from dovetail.service.access.tokens import Caller, Role
from dovetail.service.schemas import ErrorView, QueryView
from dovetail.service.service import Service

SCHEME = Security(HTTPBearer(auto_error=False, description="`dovetail token create` makes one"))
"""For the OpenAPI page: the gate has checked the token before."""

MAX_WAIT_S = 300.0
Wait = Annotated[float, Query(ge=0, le=MAX_WAIT_S, description="seconds to wait until the change is in effect")]
Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[A-Za-z0-9_.:-]{0,200}$",
        description="the same key again is the same change, once",
    ),
]
Form = Annotated[Literal["text", "json"], Query(alias="format")]


def errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The codes that a route answers besides those that every route may."""
    return {code: {"model": ErrorView} for code in (400, 401, 403, 413, 422, 429, 503, *codes)}


def answers_as(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """A route without one schema: what its answers are."""
    return {200: {"content": {kind: {} for kind in kinds}, "description": "found"}}


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def check_role(caller: Caller, role: Role) -> None:
    if not caller.role.includes(role):
        raise RoleTooLow(
            f"token {caller.name!r} has the role {caller.role.value}, and this needs {role.value}",
            hint="ask an admin for another token",
        )


def begin_change(request: Request, caller: Caller, role: Role) -> None:
    """Before anything changes: it goes to the audit log, needs the role, and a session that takes changes."""
    request.state.is_change = True
    check_role(caller, role)
    service_of(request).check_open()


def _reader(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


def _writer(request: Request) -> Caller:
    caller = _reader(request)
    begin_change(request, caller, Role.WRITE)
    return caller


def _admin(request: Request) -> Caller:
    caller = _reader(request)
    begin_change(request, caller, Role.ADMIN)
    return caller


Served = Annotated[Service, Depends(service_of)]
Reader = Annotated[Caller, Depends(_reader)]
Writer = Annotated[Caller, Depends(_writer)]
Admin = Annotated[Caller, Depends(_admin)]


class Change:
    """A change of a query as it was asked for: by whom, under which key, and how long to wait until it is in effect."""

    def __init__(
        self, request: Request, response: Response, service: Served, caller: Writer, key: Key = "", wait: Wait = 0
    ) -> None:
        self.request = request
        self.desk = service.desk
        self._service = service
        self._response = response
        self._caller = caller
        self._key = key
        self._wait_s = wait

    async def made(self, accept: Callable[..., QueryRecord], *what: Any, done_status: int) -> QueryView:
        """The query once the desk has accepted `what`, in effect or when the time is up."""
        is_long = accept == self.desk.create
        record = await self._service.run(accept, self._caller, *what, self._key, is_long=is_long)
        view = await self._service.settled(record.id, self._wait_s)
        return note_query(self.request, view, self._response, done_status)


Changing = Annotated[Change, Depends()]


def note_query(request: Request, view: QueryView, response: Response, done_status: int) -> QueryView:
    """Name the query in the audit log, and say by the status whether the change is in effect."""
    request.state.query = view.name
    response.status_code = done_status if view.in_effect else 202
    return view
